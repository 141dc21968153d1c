/* Escapes text for terminals: see ggl_show and ggl_vformat in ggl/internal/show.h. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "ggl/alloc.h"
#include "show_impl.h"

size_t ggl_utf8_length(const char *s, size_t n) {
    const unsigned char *u = (const unsigned char *)s;
    if (n == 0)
        return 0;
    size_t len = u[0] < 0x80                   ? 1
                 : u[0] >= 0xc2 && u[0] < 0xe0 ? 2
                 : u[0] >= 0xe0 && u[0] < 0xf0 ? 3
                 : u[0] >= 0xf0 && u[0] < 0xf5 ? 4
                                               : 0;
    if (len == 0 || len > n)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((u[i] & 0xc0) != 0x80)
            return 0;
    bool bad = (u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] > 0x9f) ||
               (u[0] == 0xf0 && u[1] < 0x90) || (u[0] == 0xf4 && u[1] > 0x8f);
    return bad ? 0 : len; /* overlong forms, surrogates, beyond U+10FFFF */
}

bool ggl_utf8_is_valid(const char *s, size_t n) {
    size_t i = 0, length = 1;
    for (; i < n && length > 0; i += length)
        length = ggl_utf8_length(s + i, n - i);
    return length > 0;
}

size_t ggl_utf8_cut(const char *s, size_t n, size_t most) {
    if (n <= most)
        return n;
    size_t k = most;
    while (k > 0 && most - k < 3 && ((unsigned char)s[k] & 0xc0) == 0x80)
        k--;
    return k;
}

/* Output to a buffer: n counts all bytes, also those for which the buffer has no room. */
typedef struct output {
    char *buf;
    size_t size, n;
} output;

static void put(output *o, const char *s, size_t n) {
    size_t room = o->n + 1 < o->size ? o->size - 1 - o->n : 0;
    if (n > 0 && room > 0)
        memcpy(o->buf + o->n, s, n < room ? n : room);
    o->n += n;
}

/* Adds the NUL; returns the number of bytes, or -1 if it does not fit into an int. */
static int end(output *o) {
    if (o->size > 0)
        o->buf[o->n < o->size ? o->n : o->size - 1] = '\0';
    return o->n <= INT32_MAX ? (int)o->n : -1;
}

/* True if s[0..n) may be the start of a UTF-8 character that is longer than n. */
static bool is_cut(const char *s, size_t n) {
    const unsigned char c = (unsigned char)s[0];
    size_t len = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 0;
    for (size_t i = 1; i < n; i++)
        if (((unsigned char)s[i] & 0xc0) != 0x80)
            return false;
    return n < len && c < 0xf5;
}

/* Writes s[0..n), escaped. cut: the string was cut at n, so leaves out a partial character at its
 * end. raw: writes it unchanged, because it is escaped already. */
static void put_shown(output *o, const char *s, size_t n, bool cut, bool raw) {
    for (size_t i = 0, len; i < n; i += len) {
        const unsigned char *u = (const unsigned char *)s + i;
        char hex[8];
        len = ggl_utf8_length(s + i, n - i);
        bool control = u[0] < 0x20 || u[0] == 0x7f || (len == 2 && u[0] == 0xc2 && u[1] < 0xa0);
        if (raw || (len > 0 && !control)) {
            len = len > 0 ? len : 1;
            put(o, s + i, len);
        } else if (len == 0 && cut && is_cut(s + i, n - i)) {
            return;
        } else {
            size_t k = len > 0 ? len : 1;
            for (size_t j = 0; j < k; j++)
                put(o, hex, (size_t)snprintf(hex, sizeof hex, "\\x%02x", u[j]));
            len = k;
        }
    }
}

size_t ggl_show(char *buf, size_t size, const char *s, size_t n) {
    output o = {buf, size, 0};
    put_shown(&o, s, n, true, false);
    (void)end(&o);
    return o.n;
}

/* A conversion of a format, such as "%-*.*s", with the numbers given for its stars. */
typedef struct conversion {
    char spec[48]; /* for printf, without stars */
    size_t n;
    int width, precision; /* -1: not given */
    bool left;
    char length[3], type;
} conversion;

static int number_at(const char **p) {
    int x = 0;
    for (; **p >= '0' && **p <= '9'; ++*p)
        x = x < 1000000 ? 10 * x + (**p - '0') : x;
    return x;
}

/* Reads the conversion after a '%' at *p, and the numbers for its stars from args. */
static conversion read_conversion(const char **p, va_list *args) {
    conversion c = {.width = -1, .precision = -1};
    char flags[8] = "";
    size_t n = 0;
    for (; **p && strchr("-+ #0", **p); ++*p) {
        c.left = c.left || **p == '-';
        if (n < 5)
            flags[n++] = **p;
    }
    if (**p == '*') {
        int width = va_arg(*args, int);
        c.left = c.left || width < 0;
        if (width < 0 && n < 6)
            flags[n++] = '-';
        c.width = width < 0 ? -width : width;
        ++*p;
    } else if (**p >= '1' && **p <= '9') {
        c.width = number_at(p);
    }
    if (**p == '.') {
        ++*p;
        c.precision = **p == '*' ? va_arg(*args, int) : number_at(p);
        *p += **p == '*';
    }
    for (n = 0; **p && strchr("hljztL", **p); ++*p)
        if (n < 2)
            c.length[n++] = **p;
    c.type = **p;
    *p += **p != '\0';
    int used = snprintf(c.spec, sizeof c.spec, "%%%s", flags);
    if (c.width >= 0)
        used += snprintf(c.spec + used, sizeof c.spec - (size_t)used, "%d", c.width);
    if (c.precision >= 0)
        used += snprintf(c.spec + used, sizeof c.spec - (size_t)used, ".%d", c.precision);
    snprintf(c.spec + used, sizeof c.spec - (size_t)used, "%s%c", c.length, c.type);
    return c;
}

static void put_string(output *o, const conversion *c, const char *s, const char *raw) {
    size_t n = 0, shown = 0, width = c->width > 0 ? (size_t)c->width : 0;
    s = s ? s : "(null)";
    while ((c->precision < 0 || n < (size_t)c->precision) && s[n])
        n++;
    bool cut = c->precision >= 0 && n == (size_t)c->precision;
    output count = {NULL, 0, 0};
    if (width > 0) {
        put_shown(&count, s, n, cut, s == raw);
        shown = count.n;
    }
    for (size_t i = shown; !c->left && i < width; i++)
        put(o, " ", 1);
    put_shown(o, s, n, cut, s == raw);
    for (size_t i = shown; c->left && i < width; i++)
        put(o, " ", 1);
}

/* clang-format off */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* spec is part of a checked literal */
/* Formats one argument that is not a string; c->length and c->type give its C type. */
static int format_number(char *buf, size_t size, const conversion *c, va_list *args) {
    const char *l = c->length;
    if (strchr("eEfFgGaA", c->type))
        return l[0] == 'L' ? snprintf(buf, size, c->spec, va_arg(*args, long double))
                           : snprintf(buf, size, c->spec, va_arg(*args, double));
    if (c->type == 'p')
        return snprintf(buf, size, c->spec, va_arg(*args, void *));
    if (l[0] == 'l' && l[1] == 'l')
        return snprintf(buf, size, c->spec, va_arg(*args, long long));
    if (l[0] == 'l')
        return snprintf(buf, size, c->spec, va_arg(*args, long));
    if (l[0] == 'j')
        return snprintf(buf, size, c->spec, va_arg(*args, intmax_t));
    if (l[0] == 'z')
        return snprintf(buf, size, c->spec, va_arg(*args, size_t));
    if (l[0] == 't')
        return snprintf(buf, size, c->spec, va_arg(*args, ptrdiff_t));
    return snprintf(buf, size, c->spec, va_arg(*args, int));
}
#pragma GCC diagnostic pop
/* clang-format on */

int ggl_vformat_raw(char *buf, size_t size, const char *raw, const char *fmt, va_list args) {
    output o = {buf, size, 0};
    va_list a;
    va_copy(a, args);
    for (const char *p = fmt; *p;) {
        size_t n = strcspn(p, "%");
        put(&o, p, n);
        p += n;
        if (!*p)
            break;
        p++;
        conversion c = read_conversion(&p, &a);
        char number[400];
        if (c.type == '%') {
            put(&o, "%", 1);
        } else if (c.type == 's') {
            put_string(&o, &c, va_arg(a, const char *), raw);
        } else if (c.type) {
            int k = format_number(number, sizeof number, &c, &a);
            size_t most = sizeof number - 1, made = k > 0 ? (size_t)k : 0;
            if (c.type == 'c')
                put_shown(&o, number, made < most ? made : most, false, false);
            else
                put(&o, number, made < most ? made : most);
        }
    }
    va_end(a);
    return end(&o);
}

int ggl_vformat(char *buf, size_t size, const char *fmt, va_list args) {
    return ggl_vformat_raw(buf, size, NULL, fmt, args);
}

bool ggl_fprint(FILE *to, const char *fmt, ...) {
    char few[512], *text = few;
    va_list args;
    va_start(args, fmt);
    int n = ggl_vformat(few, sizeof few, fmt, args);
    size_t size = n > 0 ? (size_t)n : 0;
    if (size >= sizeof few) {
        text = ggl_calloc(size + 1, 1);
        if (text)
            (void)ggl_vformat(text, size + 1, fmt, args);
    }
    va_end(args);
    bool ok = n >= 0 && text && fwrite(text, 1, size, to) == size;
    if (text != few)
        ggl_free(text);
    return ok;
}
