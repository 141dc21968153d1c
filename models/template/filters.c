/* Filters. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "builtins.h"
#include "ggl/internal/number.h"
#include "strings.h"
#include "text/unicode.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

static const ggl_str NONE = {"", 0};

static ggl_str text_or(tv_heap *h, const tv *v, ggl_str otherwise, const char *what) {
    return v && v->kind != TV_NONE ? llm_tv_want_str(h, *v, what) : otherwise;
}

static tv list_of(const tv_list *l) {
    return (tv){.kind = TV_LIST, .list = (tv_list *)l};
}

/* The result of a filter that is a generator in Jinja: always true, without a length, and used up
 * by the first that goes over it. */
static tv iterator_of(tv list) {
    list.kind = TV_ITERATOR;
    return list;
}

/* --- text ------------------------------------------------------------------------------------- */

static tv f_string(tv_heap *h, tv v, const tv_args *a) {
    (void)a;
    return tv_str(llm_tv_to_str(h, v));
}
static tv f_upper(tv_heap *h, tv v, const tv_args *a) {
    (void)a;
    return tv_str(llm_tv_upper(h, llm_tv_to_str(h, v)));
}
static tv f_lower(tv_heap *h, tv v, const tv_args *a) {
    (void)a;
    return tv_str(llm_tv_lower(h, llm_tv_to_str(h, v)));
}
static tv f_capitalize(tv_heap *h, tv v, const tv_args *a) {
    (void)a;
    return tv_str(llm_tv_capitalize(h, llm_tv_to_str(h, v), NULL, true));
}
static bool begins_word(uint32_t before) {
    return llm_tv_is_space(before) || (before < 0x80 && before && strchr("-({[<", (int)before));
}
static tv f_title(tv_heap *h, tv v, const tv_args *a) {
    (void)a;
    return tv_str(llm_tv_capitalize(h, llm_tv_to_str(h, v), begins_word, false));
}
static tv f_trim(tv_heap *h, tv v, const tv_args *a) {
    const ggl_str chars = text_or(h, a->at[0], NONE, "what is trimmed");
    return tv_str(llm_tv_strip(h, llm_tv_to_str(h, v),
                               a->at[0] && a->at[0]->kind != TV_NONE ? &chars : NULL,
                               TV_LEFT | TV_RIGHT));
}
static tv f_replace(tv_heap *h, tv v, const tv_args *a) {
    return tv_str(llm_tv_replace(
        h, llm_tv_to_str(h, v), llm_tv_to_str(h, *a->at[0]), llm_tv_to_str(h, *a->at[1]),
        a->at[2] && a->at[2]->kind != TV_NONE ? llm_tv_want_int(h, *a->at[2], "count") : -1));
}
static tv f_join(tv_heap *h, tv v, const tv_args *a) {
    const ggl_str separator = a->at[0] ? llm_tv_to_str(h, *a->at[0]) : NONE;
    const tv_list *list = llm_tv_elements(h, v);
    if (a->at[1]) {
        tv part = llm_tv_new_list(h, TV_LIST);
        for (size_t i = 0; i < list->n; i++)
            llm_tv_push(h, part, llm_tv_path(h, list->at[i], llm_tv_to_str(h, *a->at[1]), NULL));
        list = part.list;
    }
    return tv_str(llm_tv_join(h, list, separator));
}
static tv f_format(tv_heap *h, tv v, const tv_args *a) {
    return llm_tv_percent(h, llm_tv_want_str(h, v, "a format"),
                          (tv){.kind = TV_TUPLE, .list = (tv_list *)&a->rest});
}
/* A text that + does not escape. */
static tv markup(ggl_str text) {
    return (tv){.kind = TV_STRING, .markup = true, .text = text};
}
static tv f_safe(tv_heap *h, tv v, const tv_args *a) {
    (void)a;
    return markup(llm_tv_to_str(h, v));
}
static tv f_forceescape(tv_heap *h, tv v, const tv_args *a) {
    (void)a;
    return markup(llm_tv_escape(h, llm_tv_to_str(h, v)));
}
static tv f_escape(tv_heap *h, tv v, const tv_args *a) {
    return v.kind == TV_STRING && v.markup ? v : f_forceescape(h, v, a);
}
static tv f_indent(tv_heap *h, tv v, const tv_args *a) {
    tv_text t = {0}, pad = {0};
    if (a->at[0] && a->at[0]->kind == TV_STRING)
        llm_tv_put_str(h, &pad, *a->at[0]);
    else
        for (int64_t i = a->at[0] ? llm_tv_want_int(h, *a->at[0], "a width") : 4; i > 0; i--)
            llm_tv_put(h, &pad, " ", 1);
    const bool first = a->at[1] && llm_tv_truth(*a->at[1]),
               blank = a->at[2] && llm_tv_truth(*a->at[2]);
    const ggl_str s = llm_tv_to_str(h, v);
    const bool ends = s.n && s.s[s.n - 1] == '\n';
    const tv_list *line = llm_tv_split_lines(h, s, false).list;
    if (first && line->n == 0)
        llm_tv_put(h, &t, pad.s, pad.n);
    for (size_t i = 0; i < line->n; i++) {
        if (i)
            llm_tv_put(h, &t, "\n", 1);
        if ((i || first) && (blank || line->at[i].text.n || i == 0))
            llm_tv_put(h, &t, pad.s, pad.n);
        llm_tv_put_str(h, &t, line->at[i]);
    }
    if (ends) {
        llm_tv_put(h, &t, "\n", 1);
        if (blank)
            llm_tv_put(h, &t, pad.s, pad.n);
    }
    return tv_str(llm_tv_done(&t));
}
static tv f_wordcount(tv_heap *h, tv v, const tv_args *a) {
    const ggl_str s = llm_tv_to_str(h, v);
    int64_t n = 0;
    bool in_word = false;
    (void)a;
    tv_scan(h, s.n);
    for (size_t i = 0; i < s.n;) { /* words are \w+ */
        const uint32_t c = llm_tv_next_char(s, &i);
        const bool word = c == '_' || (llm_unicode_properties(c) & (UNICODE_L | UNICODE_N));
        n += word && !in_word;
        in_word = word;
    }
    return tv_int(n);
}
static tv f_center(tv_heap *h, tv v, const tv_args *a) {
    const tv width = a->at[0] ? *a->at[0] : tv_int(80);
    const tv_builtin *center = llm_tv_method(TV_STRING, (ggl_str){"center", 6});
    return center->fn(h, tv_str(llm_tv_to_str(h, v)), &(tv_args){.at = {&width}});
}
static tv f_urlencode(tv_heap *h, tv v, const tv_args *a) {
    static const char digit[] = "0123456789ABCDEF";
    const ggl_str s = llm_tv_to_str(h, v);
    tv_text t = {0};
    (void)a;
    for (size_t i = 0; i < s.n; i++) {
        const unsigned char c = (unsigned char)s.s[i];
        const bool plain = (c | 0x20) >= 'a' && (c | 0x20) <= 'z' ? true
                           : c >= '0' && c <= '9'                 ? true
                                                                  : c && strchr("_.-~/", c);
        if (plain)
            llm_tv_put(h, &t, &s.s[i], 1);
        else
            llm_tv_put(h, &t, (char[]){'%', digit[c >> 4], digit[c & 15]}, 3);
    }
    return tv_str(llm_tv_done(&t));
}
/* As Hugging Face defines it: json.dumps(x, ensure_ascii=False, ..). */
static tv f_tojson(tv_heap *h, tv v, const tv_args *a) {
    tv_json_style style = {.indent = -1, .item = {", ", 2}, .name = {": ", 2}};
    style.ascii = a->at[0] && llm_tv_truth(*a->at[0]);
    if (a->at[1] && a->at[1]->kind != TV_NONE) {
        const int64_t indent = llm_tv_want_int(h, *a->at[1], "the indent of tojson");
        style.indent = indent < 0 ? 0 : indent > 100 ? 100 : (int)indent;
        style.item = (ggl_str){",", 1};
    }
    if (a->at[2] && a->at[2]->kind != TV_NONE) {
        const tv_list *two = llm_tv_elements(h, *a->at[2]);
        if (two->n != 2)
            llm_tv_fail(h, GGL_FORMAT, "tojson: separators are two strings");
        style.item = llm_tv_want_str(h, two->at[0], "a separator");
        style.name = llm_tv_want_str(h, two->at[1], "a separator");
    }
    style.sort_keys = a->at[3] && llm_tv_truth(*a->at[3]);
    tv_text t = {0};
    llm_tv_put_json(h, &t, v, &style);
    return tv_str(llm_tv_done(&t));
}

/* --- numbers ---------------------------------------------------------------------------------- */

_Noreturn static void too_wide(tv_heap *h) {
    llm_tv_fail(h, GGL_LIMIT, "the result is not an integer of 64 bits");
}

static tv f_abs(tv_heap *h, tv v, const tv_args *a) {
    (void)a;
    if (v.kind == TV_FLOAT)
        return tv_float(fabs(v.number));
    const int64_t i = llm_tv_want_int(h, v, "the value of abs");
    if (i == INT64_MIN)
        too_wide(h);
    return tv_int(i < 0 ? -i : i);
}

/* Reads a text that is a number as a whole; false if it is not. */
static bool read_number(tv_heap *h, ggl_str s, double *out) {
    s = llm_tv_strip(h, s, NULL, TV_LEFT | TV_RIGHT);
    tv_scan(h, s.n);
    const bool number = s.n > 0 && ggl_number_length(s.s, s.n) == s.n;
    *out = number ? ggl_number_value(s.s, s.n) : 0;
    return number;
}

/* Skips "0x", "0o" or "0b" if it suits the base (0: any does), and returns the base of the digits; 0:
 * there is no such base. */
static int skip_prefix(ggl_str s, size_t *i, int64_t base) {
    static const struct {
        char letter;
        int base;
    } prefix[] = {{'x', 16}, {'o', 8}, {'b', 2}};
    for (int k = 0; k < 3 && s.n - *i >= 2 && s.s[*i] == '0'; k++)
        if ((s.s[*i + 1] | 0x20) == prefix[k].letter && (base == 0 || base == prefix[k].base)) {
            *i += 2;
            return prefix[k].base;
        }
    return base == 0 ? 10 : base < 2 || base > 36 ? 0 : (int)base;
}

/* Reads an integer as Python's int(text, base): digits, with single '_' between them.
 * False if s is no integer. Fails if it is one, but exceeds 64 bits. */
static bool read_integer(tv_heap *h, ggl_str s, int64_t base, int64_t *out) {
    s = llm_tv_strip(h, s, NULL, TV_LEFT | TV_RIGHT);
    tv_scan(h, s.n);
    const bool negative = s.n && s.s[0] == '-';
    size_t i = negative || (s.n && s.s[0] == '+');
    const size_t start = i;
    const int radix = skip_prefix(s, &i, base);
    bool fits = true, digit = false, may_separate = i > start; /* "0x_1" is fine, too */
    for (*out = 0; i < s.n; i++) {
        const char c = s.s[i], low = c | 0x20;
        const int value = c >= '0' && c <= '9'       ? c - '0'
                          : low >= 'a' && low <= 'z' ? low - 'a' + 10
                                                     : radix;
        if (value >= radix && !(c == '_' && may_separate))
            return false;
        digit = may_separate = c != '_';
        if (digit)
            fits = fits && !__builtin_mul_overflow(*out, (int64_t)radix, out) &&
                   !__builtin_add_overflow(*out, (int64_t)(negative ? -value : value), out);
    }
    if (digit && !fits)
        too_wide(h);
    return digit;
}

static tv f_int(tv_heap *h, tv v, const tv_args *a) {
    const tv otherwise = a->at[0] ? *a->at[0] : tv_int(0);
    const int64_t base = a->at[1] ? llm_tv_want_int(h, *a->at[1], "the base of int") : 10;
    double x = 0;
    int64_t i;
    if (v.kind == TV_INT || v.kind == TV_BOOL || v.kind == TV_UNDEFINED)
        return tv_int(llm_tv_want_int(h, v, "the value of int"));
    if (v.kind == TV_STRING && read_integer(h, v.text, base, &i))
        return tv_int(i);
    if (llm_tv_is_wide(v))
        return v;
    if (v.kind == TV_FLOAT)
        x = v.number;
    else if (v.kind != TV_STRING || !read_number(h, v.text, &x))
        return otherwise;
    if (isnan(x) || isinf(x))
        return otherwise;
    if (!(x >= -0x1p63 && x < 0x1p63))
        too_wide(h);
    return tv_int((int64_t)x);
}
static tv f_float(tv_heap *h, tv v, const tv_args *a) {
    double x;
    if (tv_is_number(v) || v.kind == TV_UNDEFINED)
        return tv_float(llm_tv_want_number(h, v, "the value of float"));
    if (v.kind == TV_STRING && read_number(h, v.text, &x))
        return tv_float(x);
    return a->at[0] ? *a->at[0] : tv_float(0);
}
/* x with `places` decimal places, as Python's round(): its decimal form is rounded, not a
 * product. */
static double rounded(double x, int64_t places) {
    char text[400];
    const double scale = pow(10, (double)places);
    if (places < 0)
        return nearbyint(x * scale) / scale;
    if (places > 30 || !(fabs(x) < 1e17))
        return x;
    const int n = snprintf(text, sizeof text, "%.*f", (int)places, x);
    return ggl_number_value(text, (size_t)n);
}
/* i rounded to a multiple of 10^zeros, in the middle to the even one. */
static tv rounded_integer(tv_heap *h, int64_t i, int64_t zeros) {
    const uint64_t n = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    uint64_t unit = 1, whole;
    for (int64_t k = 0; k < zeros && k < 20; k++)
        if (__builtin_mul_overflow(unit, (uint64_t)10, &unit))
            return tv_int(0); /* 10^20: no integer is half of it or more */
    const uint64_t rest = n % unit, up = unit - rest;
    const uint64_t q = n / unit + (rest > up || (rest == up && n / unit % 2 == 1));
    if (__builtin_mul_overflow(q, unit, &whole) || whole > (uint64_t)INT64_MAX + (i < 0))
        too_wide(h);
    return tv_int(i < 0 ? (int64_t)(0 - whole) : (int64_t)whole);
}
static tv f_round(tv_heap *h, tv v, const tv_args *a) {
    const double x = llm_tv_want_number(h, v, "the value of round");
    const int64_t given = a->at[0] ? llm_tv_want_int(h, *a->at[0], "precision") : 0,
                  places = given > 300    ? 300
                           : given < -300 ? -300
                                          : given;
    const ggl_str how = text_or(h, a->at[1], (ggl_str){"common", 6}, "the method of round");
    const double scale = pow(10, (double)places);
    if (how.n == 4 && memcmp(how.s, "ceil", 4) == 0)
        return tv_float(ceil(x * scale) / scale);
    if (how.n == 5 && memcmp(how.s, "floor", 5) == 0)
        return tv_float(floor(x * scale) / scale);
    if (how.n != 6 || memcmp(how.s, "common", 6) != 0)
        llm_tv_fail(h, GGL_FORMAT, "round: the method must be common, ceil or floor");
    if (v.kind == TV_FLOAT)
        return tv_float(rounded(x, places));
    return rounded_integer(h, llm_tv_want_int(h, v, ""), -places);
}
static tv f_sum(tv_heap *h, tv v, const tv_args *a) {
    const tv_list *list = llm_tv_elements(h, v);
    tv sum = a->at[1] ? *a->at[1] : tv_int(0);
    for (size_t i = 0; i < list->n; i++)
        sum = llm_tv_binary(h, '+', sum,
                            a->at[0] && a->at[0]->kind != TV_NONE
                                ? llm_tv_path(h, list->at[i], llm_tv_to_str(h, *a->at[0]), NULL)
                                : list->at[i]);
    return sum;
}

/* --- any value -------------------------------------------------------------------------------- */

static tv f_default(tv_heap *h, tv v, const tv_args *a) {
    (void)h;
    const bool falsy = a->at[1] && llm_tv_truth(*a->at[1]) && !llm_tv_truth(v);
    return v.kind != TV_UNDEFINED && !falsy ? v : a->at[0] ? *a->at[0] : tv_str(NONE);
}
static tv f_length(tv_heap *h, tv v, const tv_args *a) {
    (void)a;
    return tv_int((int64_t)llm_tv_length(h, v));
}
static tv f_list(tv_heap *h, tv v, const tv_args *a) {
    const tv_list *from = llm_tv_elements(h, v);
    tv list = llm_tv_new_list(h, TV_LIST);
    (void)a;
    for (size_t i = 0; i < from->n; i++)
        llm_tv_push(h, list, from->at[i]);
    return list;
}
static tv f_attr(tv_heap *h, tv v, const tv_args *a) {
    const ggl_str name = llm_tv_to_str(h, *a->at[0]);
    if (v.kind == TV_DICT && !llm_tv_method(v.kind, name))
        return tv_undefined(name); /* not an item */
    return llm_tv_attribute(h, v, name);
}
static tv f_items(tv_heap *h, tv v, const tv_args *a) {
    (void)a;
    if (v.kind == TV_UNDEFINED)
        return iterator_of(llm_tv_new_list(h, TV_LIST));
    if (v.kind != TV_DICT)
        llm_tv_fail(h, GGL_FORMAT, "items: %s is not a dict", llm_tv_kind_text(v));
    return iterator_of(llm_tv_method(TV_DICT, (ggl_str){"items", 5})->fn(h, v, a));
}

/* --- lists ------------------------------------------------------------------------------------ */

static tv f_first(tv_heap *h, tv v, const tv_args *a) {
    (void)a;
    if (v.kind == TV_ITERATOR && v.list->n) { /* the others are left */
        v.list->n--;
        return *v.list->at++;
    }
    const tv_list *l = llm_tv_elements(h, v);
    return l->n ? l->at[0] : tv_undefined((ggl_str){"first", 5});
}
static tv f_last(tv_heap *h, tv v, const tv_args *a) {
    if (v.kind == TV_ITERATOR)
        llm_tv_fail(h, GGL_FORMAT, "last: the value is %s", llm_tv_kind_text(v));
    const tv_list *l = llm_tv_elements(h, v);
    (void)a;
    return l->n ? l->at[l->n - 1] : tv_undefined((ggl_str){"last", 4});
}
static tv f_reverse(tv_heap *h, tv v, const tv_args *a) {
    const tv back = tv_int(-1);
    (void)a;
    if (v.kind == TV_STRING)
        return llm_tv_slice(h, v, NULL, NULL, &back);
    return iterator_of(llm_tv_slice(h, list_of(llm_tv_elements(h, v)), NULL, NULL, &back));
}

static tv in_lower(tv_heap *h, tv v, bool with_case) {
    return v.kind == TV_STRING && !with_case ? tv_str(llm_tv_lower(h, v.text)) : v;
}

/* What sort, unique, min, max and groupby compare: the element itself, an attribute, or several,
 * whose names have commas between them; `otherwise` stands for an absent one (NULL: nothing). Strings
 * are in lower case if case does not count. */
static tv key_of(tv_heap *h, tv v, const tv *attribute, const tv *otherwise, bool with_case) {
    if (!attribute || attribute->kind == TV_NONE)
        return in_lower(h, v, with_case);
    const ggl_str comma = {",", 1};
    const tv_list *name = llm_tv_split(h, llm_tv_to_str(h, *attribute), &comma, -1).list;
    if (name->n == 1)
        return in_lower(h, llm_tv_path(h, v, name->at[0].text, otherwise), with_case);
    tv all = llm_tv_new_list(h, TV_TUPLE);
    for (size_t i = 0; i < name->n; i++)
        llm_tv_push(h, all, in_lower(h, llm_tv_path(h, v, name->at[i].text, otherwise), with_case));
    return all;
}

typedef struct keyed {
    tv key, value;
} keyed;

/* Sorts n elements, which keep their order where keys are equal: merges runs of from[] into to[]. */
static void sort(tv_heap *h, keyed *from, keyed *to, size_t n, bool reverse) {
    for (size_t run = 1; run < n; run *= 2) {
        for (size_t start = 0; start < n; start += 2 * run) {
            const size_t middle = start + run < n ? start + run : n,
                         end = start + 2 * run < n ? start + 2 * run : n;
            for (size_t i = start, j = middle, k = start; k < end; k++) {
                int c = i == middle ? 1
                        : j == end  ? -1
                                    : llm_tv_compare(h, from[j].key, from[i].key, "sort");
                if (i < middle && j < end)
                    c = (reverse ? c > 0 : c < 0) ? 1 : -1;
                to[k] = c < 0 ? from[i++] : from[j++];
            }
        }
        keyed *swap = from;
        from = to;
        to = swap;
        for (size_t i = 0; i < n; i++)
            to[i] = from[i];
    }
}

/* Returns the elements in the order of their keys, which key_of describes. */
static keyed *sorted(tv_heap *h, const tv_list *l, const tv *attribute, const tv *otherwise,
                     bool with_case, bool reverse) {
    keyed *all = llm_tv_alloc(h, l->n + 1, sizeof *all),
          *other = llm_tv_alloc(h, l->n + 1, sizeof *all);
    for (size_t i = 0; i < l->n; i++)
        all[i] = (keyed){key_of(h, l->at[i], attribute, otherwise, with_case), l->at[i]};
    sort(h, all, other, l->n, reverse);
    return all;
}
static bool truth_of(const tv *v) {
    return v && llm_tv_truth(*v);
}
static tv f_sort(tv_heap *h, tv v, const tv_args *a) {
    const tv_list *l = llm_tv_elements(h, v);
    const keyed *all = sorted(h, l, a->at[2], NULL, truth_of(a->at[1]), truth_of(a->at[0]));
    tv list = llm_tv_new_list(h, TV_LIST);
    for (size_t i = 0; i < l->n; i++)
        llm_tv_push(h, list, all[i].value);
    return list;
}
static tv f_dictsort(tv_heap *h, tv v, const tv_args *a) {
    const bool by_value = a->at[1] && llm_tv_equal(h, *a->at[1], tv_str((ggl_str){"value", 5}));
    const tv place = tv_int(by_value);
    const tv_list *l = f_items(h, v, &(tv_args){0}).list;
    const keyed *all = sorted(h, l, &place, NULL, truth_of(a->at[0]), truth_of(a->at[2]));
    tv list = llm_tv_new_list(h, TV_LIST);
    for (size_t i = 0; i < l->n; i++)
        llm_tv_push(h, list, all[i].value);
    return list;
}
static tv f_unique(tv_heap *h, tv v, const tv_args *a) {
    const tv_list *l = llm_tv_elements(h, v);
    tv list = llm_tv_new_list(h, TV_LIST), seen = llm_tv_new_dict(h);
    for (size_t i = 0; i < l->n; i++) {
        const tv key = key_of(h, l->at[i], a->at[1], NULL, truth_of(a->at[0]));
        if (!llm_tv_dict_get(h, seen.dict, key))
            llm_tv_push(h, list, l->at[i]);
        llm_tv_dict_set(h, seen.dict, key, tv_none());
    }
    return iterator_of(list);
}
static tv extreme(tv_heap *h, tv v, const tv_args *a, int sign) {
    const tv_list *l = llm_tv_elements(h, v);
    tv best = tv_undefined((ggl_str){"min", 3}), best_key = tv_none();
    for (size_t i = 0; i < l->n; i++) {
        const tv key = key_of(h, l->at[i], a->at[1], NULL, truth_of(a->at[0]));
        if (i && sign * llm_tv_compare(h, key, best_key, sign > 0 ? "max" : "min") <= 0)
            continue;
        best = l->at[i];
        best_key = key;
    }
    return best;
}
static tv f_min(tv_heap *h, tv v, const tv_args *a) {
    return extreme(h, v, a, -1);
}
static tv f_max(tv_heap *h, tv v, const tv_args *a) {
    return extreme(h, v, a, 1);
}
static tv f_groupby(tv_heap *h, tv v, const tv_args *a) {
    const tv_list *l = llm_tv_elements(h, v);
    const keyed *all = sorted(h, l, a->at[0], a->at[1], truth_of(a->at[2]), false);
    tv list = llm_tv_new_list(h, TV_LIST), members = tv_none();
    for (size_t i = 0; i < l->n; i++) {
        if (i == 0 || !llm_tv_equal(h, all[i].key, all[i - 1].key)) {
            tv pair = llm_tv_new_list(h, TV_TUPLE);
            members = llm_tv_new_list(h, TV_LIST);
            llm_tv_push(h, pair,
                        llm_tv_path(h, all[i].value, llm_tv_to_str(h, *a->at[0]), a->at[1]));
            llm_tv_push(h, pair, members);
            llm_tv_push(h, list, pair);
        }
        llm_tv_push(h, members, all[i].value);
    }
    return list;
}
static tv f_batch(tv_heap *h, tv v, const tv_args *a) {
    const tv_list *l = llm_tv_elements(h, v);
    const int64_t n = llm_tv_want_int(h, *a->at[0], "the size of a batch");
    tv list = llm_tv_new_list(h, TV_LIST), part = tv_none();
    if (n < 1)
        llm_tv_fail(h, GGL_FORMAT, "batch: a size of %lld", (long long)n);
    for (size_t i = 0; i < l->n; i++) {
        if (i % (size_t)n == 0) {
            part = llm_tv_new_list(h, TV_LIST);
            llm_tv_push(h, list, part);
        }
        llm_tv_push(h, part, l->at[i]);
    }
    while (a->at[1] && a->at[1]->kind != TV_NONE && l->n && (int64_t)part.list->n < n)
        llm_tv_push(h, part, *a->at[1]);
    return iterator_of(list);
}

/* --- filters that apply others ---------------------------------------------------------------- */

/* The arguments from the k-th of a->rest on, as those of another call. */
static tv_given rest_of(const tv_args *a, size_t k) {
    tv_given g = {.by_name = a->named};
    if (a->rest.n > k)
        g.by_place = (tv_list){a->rest.at + k, a->rest.n - k, 0};
    return g;
}

/* map(attribute=.., default=..) or map("filter", ..) */
static tv f_map(tv_heap *h, tv v, const tv_args *a) {
    const tv *attribute = llm_tv_dict_find(a->named, (ggl_str){"attribute", 9}),
             *otherwise = llm_tv_dict_find(a->named, (ggl_str){"default", 7});
    const tv_builtin *filter = NULL;
    tv list = llm_tv_new_list(h, TV_LIST);
    if (!llm_tv_truth(v)) /* whatever it is, and without a look at the arguments */
        return iterator_of(list);
    const tv_list *l = llm_tv_elements(h, v);
    if (!attribute) {
        const ggl_str name =
            a->rest.n ? llm_tv_want_str(h, a->rest.at[0], "the filter of map") : NONE;
        filter = llm_tv_filter(name);
        if (!filter)
            llm_tv_fail(h, GGL_UNSUPPORTED, "map: there is no filter '%.*s'", (int)name.n, name.s);
    }
    const tv_given g = rest_of(a, 1);
    for (size_t i = 0; i < l->n; i++) {
        tv e = attribute ? llm_tv_path(h, l->at[i], llm_tv_to_str(h, *attribute), otherwise)
                         : llm_tv_call_builtin(h, filter, "filter", l->at[i], &g);
        llm_tv_push(h, list, e);
    }
    return iterator_of(list);
}

/* Keeps the elements for which a test of them, or of an attribute, gives `wanted`. */
static tv filtered(tv_heap *h, tv v, const tv_args *a, bool by_attribute, bool wanted) {
    const size_t k = by_attribute;
    const tv_builtin *test = NULL;
    tv list = llm_tv_new_list(h, TV_LIST);
    if (!llm_tv_truth(v))
        return iterator_of(list);
    const tv_list *l = llm_tv_elements(h, v);
    if (by_attribute && a->rest.n == 0)
        llm_tv_fail(h, GGL_FORMAT, "selectattr and rejectattr need the name of an attribute");
    if (a->rest.n > k) {
        const ggl_str name = llm_tv_want_str(h, a->rest.at[k], "the name of a test");
        test = llm_tv_test(name);
        if (!test)
            llm_tv_fail(h, GGL_UNSUPPORTED, "there is no test '%.*s'", (int)name.n, name.s);
    }
    const tv_given g = rest_of(a, k + 1);
    for (size_t i = 0; i < l->n; i++) {
        tv e = by_attribute ? llm_tv_path(h, l->at[i], llm_tv_to_str(h, a->rest.at[0]), NULL)
                            : l->at[i];
        if (test)
            e = llm_tv_call_builtin(h, test, "test", e, &g);
        if (llm_tv_truth(e) == wanted)
            llm_tv_push(h, list, l->at[i]);
    }
    return iterator_of(list);
}
static tv f_select(tv_heap *h, tv v, const tv_args *a) {
    return filtered(h, v, a, false, true);
}
static tv f_reject(tv_heap *h, tv v, const tv_args *a) {
    return filtered(h, v, a, false, false);
}
static tv f_selectattr(tv_heap *h, tv v, const tv_args *a) {
    return filtered(h, v, a, true, true);
}
static tv f_rejectattr(tv_heap *h, tv v, const tv_args *a) {
    return filtered(h, v, a, true, false);
}

const tv_builtin *llm_tv_filter(ggl_str name) {
    static const tv_builtin table[] = {
        {"abs", "", f_abs},
        {"attr", "name", f_attr},
        {"batch", "linecount fill_with?", f_batch},
        {"capitalize", "", f_capitalize},
        {"center", "width?", f_center},
        {"count", "", f_length},
        {"d", "default_value? boolean?", f_default},
        {"default", "default_value? boolean?", f_default},
        {"dictsort", "case_sensitive? by? reverse?", f_dictsort},
        {"e", "", f_escape},
        {"escape", "", f_escape},
        {"first", "", f_first},
        {"float", "default?", f_float},
        {"forceescape", "", f_forceescape},
        {"format", "*", f_format},
        {"groupby", "attribute default? case_sensitive?", f_groupby},
        {"indent", "width? first? blank?", f_indent},
        {"int", "default? base?", f_int},
        {"items", "", f_items},
        {"join", "d? attribute?", f_join},
        {"last", "", f_last},
        {"length", "", f_length},
        {"list", "", f_list},
        {"lower", "", f_lower},
        {"map", "* **", f_map},
        {"max", "case_sensitive? attribute?", f_max},
        {"min", "case_sensitive? attribute?", f_min},
        {"reject", "* **", f_reject},
        {"rejectattr", "* **", f_rejectattr},
        {"replace", "old new count?", f_replace},
        {"reverse", "", f_reverse},
        {"round", "precision? method?", f_round},
        {"safe", "", f_safe},
        {"select", "* **", f_select},
        {"selectattr", "* **", f_selectattr},
        {"sort", "reverse? case_sensitive? attribute?", f_sort},
        {"string", "", f_string},
        {"sum", "attribute? start?", f_sum},
        {"title", "", f_title},
        {"tojson", "ensure_ascii? indent? separators? sort_keys?", f_tojson},
        {"trim", "chars?", f_trim},
        {"unique", "case_sensitive? attribute?", f_unique},
        {"upper", "", f_upper},
        {"urlencode", "", f_urlencode},
        {"wordcount", "", f_wordcount},
    };
    return llm_tv_lookup(table, COUNT(table), name);
}
