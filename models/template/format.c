/* `text % values`, and times. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "builtins.h"
#include "ggl/internal/os_clock.h"

/* --- percent ---------------------------------------------------------------------------------- */

/* One conversion: "%-8.3f". */
typedef struct conversion {
    char flags[8];
    int width, precision; /* -1: none */
    char kind;
} conversion;

static int read_digits(tv_heap *h, ggl_str f, size_t *i) {
    int n = 0;
    for (; *i < f.n && f.s[*i] >= '0' && f.s[*i] <= '9'; ++*i) {
        n = n * 10 + (f.s[*i] - '0');
        if (n > 1000)
            llm_tv_fail(h, GGL_LIMIT, "a width or precision of a format is over 1000");
    }
    return n;
}

/* Reads the conversion after the '%' at f[*i - 1]. */
static conversion read_conversion(tv_heap *h, ggl_str f, size_t *i) {
    conversion c = {.width = -1, .precision = -1};
    size_t n = 0;
    for (; *i < f.n && f.s[*i] && strchr("-+ 0#", f.s[*i]); ++*i)
        if (n < sizeof c.flags - 1 && !strchr(c.flags, f.s[*i]))
            c.flags[n++] = f.s[*i];
    if (*i < f.n && f.s[*i] >= '0' && f.s[*i] <= '9')
        c.width = read_digits(h, f, i);
    if (*i < f.n && f.s[*i] == '.') {
        ++*i;
        c.precision = read_digits(h, f, i);
    }
    c.kind = *i < f.n ? f.s[(*i)++] : 0;
    return c;
}

static void put_padded(tv_heap *h, tv_text *t, const conversion *c, ggl_str s) {
    const size_t n = llm_tv_n_chars(s), width = c->width > 0 ? (size_t)c->width : 0;
    const bool left = strchr(c->flags, '-');
    for (size_t i = n; !left && i < width; i++)
        llm_tv_put(h, t, " ", 1);
    llm_tv_put(h, t, s.s, s.n);
    for (size_t i = n; left && i < width; i++)
        llm_tv_put(h, t, " ", 1);
}

static void put_converted(tv_heap *h, tv_text *t, const conversion *c, tv v) {
    char spec[32], out[1500];
    tv_text text = {0};
    if (c->kind == 's' || c->kind == 'r') {
        c->kind == 's' ? llm_tv_put_str(h, &text, v) : llm_tv_put_repr(h, &text, v);
        ggl_str s = llm_tv_done(&text);
        if (c->precision >= 0)
            s.n = llm_tv_char_at(s, (size_t)c->precision);
        put_padded(h, t, c, s);
        return;
    }
    if (c->kind && strchr("diu", c->kind) && llm_tv_is_wide(v)) {
        llm_tv_put_str(h, &text, v);
        put_padded(h, t, c, llm_tv_done(&text));
        return;
    }
    const bool whole = strchr("diuxXo", c->kind) && c->kind,
               real = strchr("fFeEgG", c->kind) && c->kind;
    if (!whole && !real)
        llm_tv_fail(h, GGL_UNSUPPORTED, "%%%c in a format is not supported",
                    c->kind ? c->kind : ' ');
    snprintf(spec, sizeof spec, "%%%s*.*%s%c", c->flags, whole ? "ll" : "",
             c->kind == 'u' || c->kind == 'i' ? 'd' : c->kind);
    const double x = llm_tv_want_number(h, v, "what is formatted");
    const long long i =
        v.kind == TV_FLOAT ? (x > -9e18 && x < 9e18 ? (long long)x : 0) : llm_tv_want_int(h, v, "");
    const int width = c->width < 0 ? 0 : c->width;
    int n;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (whole)
        n = snprintf(out, sizeof out, spec, width, c->precision, i);
    else
        n = snprintf(out, sizeof out, spec, width, c->precision < 0 ? 6 : c->precision, x);
#pragma GCC diagnostic pop
    llm_tv_put(h, t, out, n < (int)sizeof out ? (size_t)n : sizeof out - 1);
}

/* True if % takes the value like a dict, so that a format need not use all elements. */
static bool is_mapping(tv v) {
    return v.kind == TV_DICT || v.kind == TV_LIST || v.kind == TV_UNDEFINED;
}

tv llm_tv_percent(tv_heap *h, ggl_str format, tv args) {
    tv_text t = {0};
    size_t used = 0;
    const bool many = args.kind == TV_TUPLE;
    for (size_t i = 0, from; i < format.n;) {
        for (from = i; i < format.n && format.s[i] != '%';)
            i++;
        llm_tv_put(h, &t, format.s + from, i - from);
        if (i++ >= format.n)
            break;
        if (i < format.n && format.s[i] == '%') {
            llm_tv_put(h, &t, "%", 1);
            i++;
            continue;
        }
        const conversion c = read_conversion(h, format, &i);
        if (many ? used >= args.list->n : used > 0)
            llm_tv_fail(h, GGL_FORMAT, "a format has more conversions than values");
        put_converted(h, &t, &c, many ? args.list->at[used] : args);
        used++;
    }
    if (used < (many ? args.list->n : !is_mapping(args)))
        llm_tv_fail(h, GGL_FORMAT, "a format has fewer conversions than values");
    return tv_str(llm_tv_done(&t));
}

/* --- times ------------------------------------------------------------------------------------ */

void llm_tv_put_time(tv_heap *h, tv_text *t, ggl_str format) {
    struct tm tm = {0};
    const bool known =
        h->now ? ggl_os_utc_parts(h->now, &tm) : ggl_os_local_parts((int64_t)time(NULL), &tm);
    char f[256], out[1024];
    if (!known || format.n >= sizeof f)
        llm_tv_fail(h, GGL_LIMIT, "strftime_now: the format is too long, or there is no such time");
    memcpy(f, format.s, format.n);
    f[format.n] = 0;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    const size_t n = strftime(out, sizeof out, f, &tm);
#pragma GCC diagnostic pop
    if (n == 0 && format.n > 0)
        llm_tv_fail(h, GGL_LIMIT, "strftime_now: the text is too long");
    llm_tv_put(h, t, out, n);
}
