#include "json_write.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/show.h"

void llm_json_put(llm_json_out *out, const char *text, size_t n) {
    out->failed |= !ggl_grow(&out->s, &out->cap, out->n + n + 1, 1);
    if (out->failed)
        return;
    if (n > 0) /* text may be NULL */
        memcpy(out->s + out->n, text, n);
    out->n += n;
    out->s[out->n] = '\0';
}

void llm_json_put_text(llm_json_out *out, const char *text) {
    llm_json_put(out, text, strlen(text));
}

static void put_escape(llm_json_out *out, unsigned char c) {
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *named = c ? strchr(from, c) : NULL;
    char text[8];
    if (named)
        snprintf(text, sizeof text, "\\%c", to[named - from]);
    else
        snprintf(text, sizeof text, "\\u%04x", c);
    llm_json_put_text(out, text);
}

void llm_json_put_string(llm_json_out *out, ggl_str s) {
    llm_json_put(out, "\"", 1);
    for (size_t i = 0, from = 0; i < s.n; from = i) {
        size_t len = 0;
        while (i < s.n && (unsigned char)s.s[i] >= 0x20 && s.s[i] != '"' && s.s[i] != '\\' &&
               (len = ggl_utf8_length(s.s + i, s.n - i)) > 0)
            i += len;
        llm_json_put(out, s.s + from, i - from);
        if (i == s.n)
            break;
        const unsigned char c = (unsigned char)s.s[i++];
        if (c < 0x80)
            put_escape(out, c);
        else
            llm_json_put_text(out, "\xef\xbf\xbd");
    }
    llm_json_put(out, "\"", 1);
}

/* Writes the argument of a directive such as "%.3f", of n bytes. Numbers are at most as long as 1e308 with all its digits. */
static void put_argument(llm_json_out *out, const char *directive, size_t n, va_list *args) {
    const char length = directive[n - 2], kind = directive[n - 1];
    char spec[16], text[400];
    assert(n < sizeof spec && strchr("duxfgs%", kind));
    memcpy(spec, directive, n);
    spec[n] = '\0';
    if (kind == 's' && strcmp(spec, "%.*s") == 0) {
        const int size = va_arg(*args, int);
        const char *bytes = va_arg(*args, const char *);
        out->failed |= size < 0; /* llm_json_precision */
        llm_json_put_string(out, (ggl_str){bytes, size < 0 ? 0 : (size_t)size});
        return;
    }
    if (kind == 's') {
        llm_json_put_text(out, va_arg(*args, const char *));
        return;
    }
    if (kind == 'f' || kind == 'g')
        snprintf(text, sizeof text, spec, va_arg(*args, double));
    else if (kind == '%')
        snprintf(text, sizeof text, "%%");
    else if (length == 'z')
        snprintf(text, sizeof text, spec, va_arg(*args, size_t));
    else if (length == 'l' && directive[n - 3] == 'l')
        snprintf(text, sizeof text, spec, va_arg(*args, long long));
    else if (length == 'l')
        snprintf(text, sizeof text, spec, va_arg(*args, long));
    else
        snprintf(text, sizeof text, spec, va_arg(*args, int));
    llm_json_put_text(out, text);
}

void llm_json_format(llm_json_out *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    for (const char *at = format; *at;) {
        const size_t n = strcspn(at, "'%");
        llm_json_put(out, at, n);
        at += n;
        if (*at == '%') {
            const size_t n_directive = 2 + strspn(at + 1, ".*0123456789lz");
            put_argument(out, at, n_directive, &args);
            at += n_directive;
        } else if (*at) {
            llm_json_put(out, "\"", 1);
            at++;
        }
    }
    va_end(args);
}

static void put_number(llm_json_out *out, const json_value *v) {
    char text[40];
    if (v->text) {
        llm_json_put(out, v->text, v->n_text);
        return;
    }
    if (v->whole)
        snprintf(text, sizeof text, "%.0f", v->number);
    else if (isnan(v->number))
        snprintf(text, sizeof text, "NaN");
    else if (isinf(v->number))
        snprintf(text, sizeof text, "%sInfinity", v->number < 0 ? "-" : "");
    else
        snprintf(text, sizeof text, "%.17g", v->number);
    llm_json_put_text(out, text);
}

/* Nested as deep as the parser permits: LLM_JSON_MAX_DEPTH. */
void llm_json_put_value(llm_json_out *out, const json_value *v) {
    const bool is_object = v->kind == JSON_OBJECT;
    switch ((json_kind)v->kind) {
    case JSON_NULL:
        llm_json_put_text(out, "null");
        return;
    case JSON_BOOL:
        llm_json_put_text(out, v->flag ? "true" : "false");
        return;
    case JSON_NUMBER:
        put_number(out, v);
        return;
    case JSON_STRING:
        llm_json_put_string(out, json_str(v));
        return;
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    llm_json_put(out, is_object ? "{" : "[", 1);
    for (uint32_t i = 0; i < v->n; i++) {
        if (i > 0)
            llm_json_put_text(out, ", ");
        if (is_object) {
            llm_json_put_string(out, json_name(v, i));
            llm_json_put_text(out, ": ");
        }
        llm_json_put_value(out, &v->item[i]);
    }
    llm_json_put(out, is_object ? "}" : "]", 1);
}
