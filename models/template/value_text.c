/* Values as text: str() and repr() of Python, and JSON. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/number.h"
#include "origin.h"
#include "text/unicode.h"
#include "value.h"

void llm_tv_put(tv_heap *h, tv_text *t, const char *s, size_t n) {
    if (n > t->cap - t->n) {
        size_t wanted = t->cap * 2 > t->n + n ? t->cap * 2 : t->n + n + 32;
        char *bigger = llm_tv_alloc(h, wanted, 1);
        if (t->n) {
            memcpy(bigger, t->s, t->n);
            llm_tv_copied(h, bigger, t->s, t->n);
        }
        t->s = bigger;
        t->cap = wanted;
    }
    llm_tv_step(h, n / 16);
    if (n) {
        memcpy(t->s + t->n, s, n);
        llm_tv_copied(h, t->s + t->n, s, n);
    }
    t->n += n;
}

void llm_tv_puts(tv_heap *h, tv_text *t, const char *s) {
    llm_tv_put(h, t, s, strlen(s));
}

ggl_str llm_tv_done(const tv_text *t) {
    return (ggl_str){t->s ? t->s : "", t->n};
}

/* --- characters ------------------------------------------------------------------------------- */

uint32_t llm_tv_next_char(ggl_str s, size_t *i) {
    const unsigned char *p = (const unsigned char *)s.s + *i;
    const size_t left = s.n - *i, len = p[0] < 0xc2   ? 1
                                        : p[0] < 0xe0 ? 2
                                        : p[0] < 0xf0 ? 3
                                        : p[0] < 0xf5 ? 4
                                                      : 1;
    uint32_t c = len == 1 ? p[0] : p[0] & (0x7fu >> len);
    for (size_t k = 1; k < len; k++) {
        if (k >= left || (p[k] & 0xc0) != 0x80) {
            *i += 1;
            return p[0];
        }
        c = c << 6 | (p[k] & 0x3fu);
    }
    *i += len;
    return c;
}

size_t llm_tv_n_chars(ggl_str s) {
    size_t n = 0;
    for (size_t i = 0; i < s.n; n++)
        llm_tv_next_char(s, &i);
    return n;
}

size_t llm_tv_char_at(ggl_str s, size_t i) {
    size_t at = 0;
    for (; i > 0 && at < s.n; i--)
        llm_tv_next_char(s, &at);
    return at;
}

void llm_tv_put_char(tv_heap *h, tv_text *t, uint32_t c) {
    char b[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t k = n; k > 1; k--, c >>= 6)
        b[k - 1] = (char)(0x80 | (c & 0x3f));
    b[0] = (char)(lead[n] | c);
    llm_tv_put(h, t, b, n);
}

/* --- str and repr ----------------------------------------------------------------------------- */

/* Finds the fewest digits that give the same number: n of them, and the exponent of the first. */
static size_t shortest(tv_heap *h, double x, char mantissa[24], int *exponent) {
    char digits[40];
    size_t n = 0;
    llm_tv_step(h, 16); /* up to 17 conversions */
    for (int precision = 0; precision < 17; precision++) {
        snprintf(digits, sizeof digits, "%.*e", precision, fabs(x));
        if (ggl_number_value(digits, strlen(digits)) == fabs(x))
            break;
    }
    for (const char *p = digits; *p != 'e'; p++)
        if (*p >= '0' && *p <= '9')
            mantissa[n++] = *p;
    *exponent = atoi(strchr(digits, 'e') + 1);
    return n;
}

/* True if digits of a number as it was written, without zeros at both ends, are not those of a mantissa. */
static bool loses_digits(ggl_str written, const char *mantissa, size_t n) {
    size_t k = 0,
           zeros = 0; /* digits that were compared; zeros after them, which may be at the end */
    while (n > 0 && mantissa[n - 1] == '0')
        n--;
    for (size_t i = 0; i < written.n && (written.s[i] | 0x20) != 'e'; i++) {
        const char c = written.s[i];
        if (c < '0' || c > '9' || (c == '0' && k + zeros == 0))
            continue;
        if (c == '0') {
            zeros++;
            continue;
        }
        for (; zeros > 0 && k < n && mantissa[k] == '0'; zeros--)
            k++;
        if (zeros > 0 || k >= n || mantissa[k++] != c)
            return true;
    }
    return k != n;
}

/* Appends x as Python's repr does: an exponent
 * below 1e-4 and from 1e16 on, and ".0" after a whole number. */
static void put_float(tv_heap *h, tv_text *t, double x) {
    static const char zeros[] = "0000000000000000";
    char mantissa[24], exponent_text[24];
    int exponent;
    if (isnan(x) || isinf(x)) {
        llm_tv_puts(h, t, isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
        return;
    }
    const size_t n = shortest(h, x, mantissa, &exponent);
    const size_t whole = exponent >= 0 ? (size_t)exponent + 1 : 0; /* digits before the point */
    llm_tv_puts(h, t, signbit(x) ? "-" : "");
    if (exponent < -4 || exponent >= 16) {
        snprintf(exponent_text, sizeof exponent_text, "e%c%02d", exponent < 0 ? '-' : '+',
                 abs(exponent));
        llm_tv_put(h, t, mantissa, 1);
        llm_tv_puts(h, t, n > 1 ? "." : "");
        llm_tv_put(h, t, mantissa + 1, n - 1);
        llm_tv_puts(h, t, exponent_text);
    } else if (exponent < 0) {
        llm_tv_puts(h, t, "0.");
        llm_tv_put(h, t, zeros, (size_t)(-exponent - 1));
        llm_tv_put(h, t, mantissa, n);
    } else {
        llm_tv_put(h, t, mantissa, n < whole ? n : whole);
        llm_tv_put(h, t, zeros, n < whole ? whole - n : 0);
        llm_tv_puts(h, t, ".");
        llm_tv_put(h, t, n > whole ? mantissa + whole : "0", n > whole ? n - whole : 1);
    }
}

bool llm_tv_is_wide(tv v) {
    if (v.kind != TV_FLOAT || !v.written)
        return false;
    const ggl_str s = json_number_text(v.written);
    size_t i = s.s[0] == '-';
    while (i < s.n && s.s[i] >= '0' && s.s[i] <= '9')
        i++;
    return i == s.n;
}

/* True if a number was given with more digits than its double has. */
static bool is_as_written(tv_heap *h, tv v) {
    char mantissa[24];
    int exponent;
    if (!v.written || llm_tv_is_wide(v) || isinf(v.number))
        return v.written;
    const size_t n = shortest(h, v.number, mantissa, &exponent);
    return loses_digits(json_number_text(v.written), mantissa, n);
}

static void put_number(tv_heap *h, tv_text *t, tv v) {
    char b[24];
    if (v.kind == TV_FLOAT && is_as_written(h, v)) {
        const ggl_str s = json_number_text(v.written);
        llm_tv_put(h, t, s.s, s.n);
        return;
    }
    if (v.kind == TV_FLOAT) {
        put_float(h, t, v.number);
        return;
    }
    snprintf(b, sizeof b, "%lld", (long long)v.integer);
    llm_tv_puts(h, t, b);
}

/* True for what Python's str.isprintable accepts: letters, marks, numbers, punctuation, symbols. */
static bool is_printable(uint32_t c) {
    return c == ' ' || (llm_unicode_properties(c) &
                        (UNICODE_L | UNICODE_M | UNICODE_N | UNICODE_P | UNICODE_S));
}

/* Appends \xXX, \uXXXX or \UXXXXXXXX. */
static void put_code(tv_heap *h, tv_text *t, uint32_t c) {
    char b[16];
    const int digits = c < 0x100 ? 2 : c < 0x10000 ? 4 : 8;
    snprintf(b, sizeof b, "\\%c%0*x",
             digits == 2   ? 'x'
             : digits == 4 ? 'u'
                           : 'U',
             digits, (unsigned)c);
    llm_tv_puts(h, t, b);
}

/* Appends a string as a literal of Python. */
static void put_literal(tv_heap *h, tv_text *t, ggl_str s) {
    const bool single = memchr(s.n ? s.s : "", '\'', s.n), both = memchr(s.n ? s.s : "", '"', s.n);
    const char quote = single && !both ? '"' : '\'';
    llm_tv_put(h, t, &quote, 1);
    for (size_t i = 0; i < s.n;) {
        const size_t from = i;
        const uint32_t c = llm_tv_next_char(s, &i);
        if (c == (unsigned char)quote || c == '\\')
            llm_tv_put(h, t, (char[]){'\\', (char)c}, 2);
        else if (c == '\n' || c == '\t' || c == '\r')
            llm_tv_put(h, t, c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r", 2);
        else if (is_printable(c))
            llm_tv_put(h, t, s.s + from, i - from);
        else
            put_code(h, t, c);
    }
    llm_tv_put(h, t, &quote, 1);
}

static void put_elements(tv_heap *h, tv_text *t, const tv_list *list) {
    for (size_t i = 0; i < list->n; i++) {
        llm_tv_puts(h, t, i ? ", " : "");
        llm_tv_put_repr(h, t, list->at[i]);
    }
}

static void put_items(tv_heap *h, tv_text *t, const tv_dict *d) {
    for (size_t i = 0; i < d->n; i++) {
        llm_tv_puts(h, t, i ? ", " : "");
        llm_tv_put_repr(h, t, d->item[i].key);
        llm_tv_puts(h, t, ": ");
        llm_tv_put_repr(h, t, d->item[i].value);
    }
}

static void put_repr(tv_heap *h, tv_text *t, tv v) {
    switch (v.kind) {
    case TV_UNDEFINED:
        llm_tv_puts(h, t, "Undefined");
        break;
    case TV_NONE:
        llm_tv_puts(h, t, "None");
        break;
    case TV_BOOL:
        llm_tv_puts(h, t, v.truth ? "True" : "False");
        break;
    case TV_INT:
    case TV_FLOAT:
        put_number(h, t, v);
        break;
    case TV_STRING:
        put_literal(h, t, v.text);
        break;
    case TV_LIST:
    case TV_TUPLE:
        llm_tv_puts(h, t, v.kind == TV_LIST ? "[" : "(");
        put_elements(h, t, v.list);
        llm_tv_puts(h, t, v.kind == TV_LIST ? "]" : v.list->n == 1 ? ",)" : ")");
        break;
    case TV_DICT:
        llm_tv_puts(h, t, "{");
        put_items(h, t, v.dict);
        llm_tv_puts(h, t, "}");
        break;
    default:
        llm_tv_fail(h, GGL_FORMAT, "%s cannot be printed", llm_tv_kind_text(v));
    }
}

void llm_tv_put_repr(tv_heap *h, tv_text *t, tv v) {
    llm_tv_step(h, 1);
    llm_tv_enter(h);
    put_repr(h, t, v);
    tv_leave(h);
}

void llm_tv_put_str(tv_heap *h, tv_text *t, tv v) {
    if (v.kind == TV_STRING)
        llm_tv_put(h, t, v.text.s, v.text.n);
    else if (v.kind != TV_UNDEFINED)
        llm_tv_put_repr(h, t, v);
}

ggl_str llm_tv_to_str(tv_heap *h, tv v) {
    tv_text t = {0};
    if (v.kind == TV_STRING)
        return v.text;
    llm_tv_put_str(h, &t, v);
    return llm_tv_done(&t);
}

/* --- JSON ------------------------------------------------------------------------------------- */

/* Appends \uXXXX, or two of them for a character beyond 16 bits. */
static void put_escaped(tv_heap *h, tv_text *t, uint32_t c) {
    char b[16];
    if (c < 0x10000)
        snprintf(b, sizeof b, "\\u%04x", (unsigned)c);
    else
        snprintf(b, sizeof b, "\\u%04x\\u%04x", (unsigned)(0xd800 + ((c - 0x10000) >> 10)),
                 (unsigned)(0xdc00 + ((c - 0x10000) & 0x3ff)));
    llm_tv_puts(h, t, b);
}

static void put_json_string(tv_heap *h, tv_text *t, ggl_str s, bool ascii) {
    static const char special[] = "\"\\\n\r\t\f\b", letter[] = "\"\\nrtfb";
    llm_tv_put(h, t, "\"", 1);
    for (size_t i = 0, from; i < s.n;) {
        for (from = i; i < s.n && (unsigned char)s.s[i] >= 0x20 && s.s[i] != '"' &&
                       s.s[i] != '\\' && !(ascii && (unsigned char)s.s[i] >= 0x7f);)
            i++;
        llm_tv_put(h, t, s.s + from, i - from);
        if (i == s.n)
            break;
        const char *named = s.s[i] ? strchr(special, s.s[i]) : NULL;
        if (named) {
            llm_tv_put(h, t, (char[]){'\\', letter[named - special]}, 2);
            i++;
        } else {
            put_escaped(h, t, llm_tv_next_char(s, &i));
        }
    }
    llm_tv_put(h, t, "\"", 1);
}

static void put_break(tv_heap *h, tv_text *t, const tv_json_style *style, int depth) {
    if (style->indent < 0)
        return;
    llm_tv_put(h, t, "\n", 1);
    for (int i = 0; i < style->indent * depth; i++)
        llm_tv_put(h, t, " ", 1);
}

static void put_json(tv_heap *h, tv_text *t, tv v, const tv_json_style *style, int depth);

/* Appends a name of an object: JSON has only strings, which json.dumps makes of other keys. */
static void put_json_name(tv_heap *h, tv_text *t, tv key, const tv_json_style *style) {
    if (key.kind == TV_STRING) {
        put_json_string(h, t, key.text, style->ascii);
        return;
    }
    llm_tv_put(h, t, "\"", 1);
    put_json(h, t, key, style, 0);
    llm_tv_put(h, t, "\"", 1);
}

/* For qsort: orders pointers to items by key. */
static int by_name(const void *a, const void *b) {
    const ggl_str x = (*(const tv_item *const *)a)->name, y = (*(const tv_item *const *)b)->name;
    int c = memcmp(x.s, y.s, x.n < y.n ? x.n : y.n);
    return c ? c : (x.n > y.n) - (x.n < y.n);
}

static void put_json_object(tv_heap *h, tv_text *t, const tv_dict *d, const tv_json_style *style,
                            int depth) {
    const tv_item **item = llm_tv_alloc(h, d->n + 1, sizeof(tv_item *));
    for (size_t i = 0; i < d->n; i++)
        item[i] = &d->item[i];
    if (style->sort_keys && d->n > 1)
        qsort(item, d->n, sizeof(tv_item *), by_name);
    llm_tv_enter(h);
    llm_tv_put(h, t, "{", 1);
    for (size_t i = 0; i < d->n; i++) {
        if (i)
            llm_tv_put(h, t, style->item.s, style->item.n);
        put_break(h, t, style, depth + 1);
        put_json_name(h, t, item[i]->key, style);
        llm_tv_put(h, t, style->name.s, style->name.n);
        put_json(h, t, item[i]->value, style, depth + 1);
    }
    if (d->n)
        put_break(h, t, style, depth);
    llm_tv_put(h, t, "}", 1);
    tv_leave(h);
}

static void put_json_array(tv_heap *h, tv_text *t, const tv_list *list, const tv_json_style *style,
                           int depth) {
    llm_tv_enter(h);
    llm_tv_put(h, t, "[", 1);
    for (size_t i = 0; i < list->n; i++) {
        if (i)
            llm_tv_put(h, t, style->item.s, style->item.n);
        put_break(h, t, style, depth + 1);
        put_json(h, t, list->at[i], style, depth + 1);
    }
    if (list->n)
        put_break(h, t, style, depth);
    llm_tv_put(h, t, "]", 1);
    tv_leave(h);
}

static void put_json(tv_heap *h, tv_text *t, tv v, const tv_json_style *style, int depth) {
    llm_tv_step(h, 1);
    switch (v.kind) {
    case TV_NONE:
        llm_tv_puts(h, t, "null");
        break;
    case TV_BOOL:
        llm_tv_puts(h, t, v.truth ? "true" : "false");
        break;
    case TV_INT:
        put_number(h, t, v);
        break;
    case TV_FLOAT:
        if (isnan(v.number) || (isinf(v.number) && !v.written))
            llm_tv_puts(h, t, isnan(v.number) ? "NaN" : v.number > 0 ? "Infinity" : "-Infinity");
        else
            put_number(h, t, v);
        break;
    case TV_STRING:
        put_json_string(h, t, v.text, style->ascii);
        break;
    case TV_LIST:
    case TV_TUPLE:
    case TV_ITERATOR: /* an error in Python; templates that other programs run rely on it */
        put_json_array(h, t, v.list, style, depth);
        break;
    case TV_DICT:
        put_json_object(h, t, v.dict, style, depth);
        break;
    default:
        llm_tv_fail(h, GGL_FORMAT, "tojson: %s%s%.*s%s has no form in JSON", llm_tv_kind_text(v),
                    v.kind == TV_UNDEFINED ? " ('" : "", v.kind == TV_UNDEFINED ? (int)v.text.n : 0,
                    v.kind == TV_UNDEFINED ? v.text.s : "", v.kind == TV_UNDEFINED ? "')" : "");
    }
}

void llm_tv_put_json(tv_heap *h, tv_text *t, tv v, const tv_json_style *style) {
    put_json(h, t, v, style, 0);
}

const char *llm_tv_kind_text(tv v) {
    static const char *const text[] = {
        [TV_UNDEFINED] = "an undefined value",
        [TV_NONE] = "none",
        [TV_BOOL] = "a truth value",
        [TV_INT] = "an integer",
        [TV_FLOAT] = "a number",
        [TV_STRING] = "a string",
        [TV_LIST] = "a list",
        [TV_TUPLE] = "a tuple",
        [TV_DICT] = "a dict",
        [TV_ITERATOR] = "an iterator (|list makes a list of it)",
        [TV_NAMESPACE] = "a namespace",
        [TV_LOOP] = "a loop",
        [TV_FUNCTION] = "a function",
        [TV_MACRO] = "a macro",
    };
    return text[v.kind];
}
