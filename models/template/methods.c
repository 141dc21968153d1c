/* Methods of strings, dicts and lists: those of Python that change nothing. */
#include <string.h>

#include "builtins.h"
#include "ggl/internal/text.h"
#include "strings.h"
#include "text/unicode.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* The argument as text; NULL: it is absent or none. */
static const ggl_str *text_of(tv_heap *h, const tv *v, ggl_str *to, const char *what) {
    if (!v || v->kind == TV_NONE)
        return NULL;
    *to = llm_tv_want_str(h, *v, what);
    return to;
}

static int64_t count_of(tv_heap *h, const tv *v, const char *what) {
    return v ? llm_tv_want_int(h, *v, what) : -1;
}

/* --- strings ---------------------------------------------------------------------------------- */

static tv strip(tv_heap *h, tv s, const tv_args *a, int sides) {
    ggl_str chars;
    return tv_str(llm_tv_strip(h, s.text, text_of(h, a->at[0], &chars, "what is stripped"), sides));
}
static tv s_strip(tv_heap *h, tv s, const tv_args *a) {
    return strip(h, s, a, TV_LEFT | TV_RIGHT);
}
static tv s_lstrip(tv_heap *h, tv s, const tv_args *a) {
    return strip(h, s, a, TV_LEFT);
}
static tv s_rstrip(tv_heap *h, tv s, const tv_args *a) {
    return strip(h, s, a, TV_RIGHT);
}

static tv s_split(tv_heap *h, tv s, const tv_args *a) {
    ggl_str separator;
    return llm_tv_split(h, s.text, text_of(h, a->at[0], &separator, "the separator"),
                        count_of(h, a->at[1], "maxsplit"));
}

/* Splits at all separators, and joins those in front again. */
static tv s_rsplit(tv_heap *h, tv s, const tv_args *a) {
    const int64_t most = count_of(h, a->at[1], "maxsplit");
    tv all = s_split(h, s, &(tv_args){.at = {a->at[0]}});
    const tv_list *l = all.list;
    if (most < 0 || (int64_t)l->n <= most + 1)
        return all;
    tv list = llm_tv_new_list(h, TV_LIST);
    const size_t first = l->n - 1 - (size_t)most;
    ggl_str head = {s.text.s, (size_t)(l->at[first].text.s - s.text.s) + l->at[first].text.n};
    llm_tv_push(h, list, tv_str(head));
    for (size_t i = first + 1; i < l->n; i++)
        llm_tv_push(h, list, l->at[i]);
    return list;
}

static tv s_splitlines(tv_heap *h, tv s, const tv_args *a) {
    return llm_tv_split_lines(h, s.text, a->at[0] && llm_tv_truth(*a->at[0]));
}

/* Cuts s to what the arguments from the k-th on choose, which are "start" and "end" of a slice. Returns
 * false if it starts after the end of s, where not even an empty text is. */
static bool cut(tv_heap *h, ggl_str *s, const tv_args *a, int k) {
    const tv *at[2] = {a->at[k], a->at[k + 1]};
    for (int i = 0; i < 2; i++)
        if (at[i] && at[i]->kind == TV_NONE)
            at[i] = NULL;
    if (!at[0] && !at[1])
        return true;
    if (at[0] && llm_tv_want_int(h, *at[0], "start") > (int64_t)llm_tv_length(h, tv_str(*s)))
        return false;
    *s = llm_tv_slice(h, tv_str(*s), at[0], at[1], NULL).text;
    return true;
}

/* True if s begins (or ends) with p. */
static bool has_end(tv_heap *h, ggl_str s, ggl_str p, bool at_end) {
    tv_scan(h, p.n);
    return p.n <= s.n && (p.n == 0 || memcmp(s.s + (at_end ? s.n - p.n : 0), p.s, p.n) == 0);
}
/* The argument is a text, or a tuple of texts; one of them must fit. */
static tv fits_end(tv_heap *h, tv s, const tv_args *a, bool at_end) {
    static const char what[] = "what a string begins or ends with";
    const tv given = *a->at[0], *part = given.kind == TV_TUPLE ? given.list->at : &given;
    const size_t n = given.kind == TV_TUPLE ? given.list->n : 1;
    const bool inside = cut(h, &s.text, a, 1);
    bool fits = false;
    for (size_t i = 0; i < n && !fits; i++)
        fits = has_end(h, s.text, llm_tv_want_str(h, part[i], what), at_end) && inside;
    return tv_bool(fits);
}
static tv s_startswith(tv_heap *h, tv s, const tv_args *a) {
    return fits_end(h, s, a, false);
}
static tv s_endswith(tv_heap *h, tv s, const tv_args *a) {
    return fits_end(h, s, a, true);
}
static tv s_removeprefix(tv_heap *h, tv s, const tv_args *a) {
    const ggl_str part = llm_tv_want_str(h, *a->at[0], "what is removed");
    const size_t n = has_end(h, s.text, part, false) ? part.n : 0;
    return tv_str((ggl_str){s.text.s + n, s.text.n - n});
}
static tv s_removesuffix(tv_heap *h, tv s, const tv_args *a) {
    const ggl_str part = llm_tv_want_str(h, *a->at[0], "what is removed");
    const size_t n = has_end(h, s.text, part, true) ? part.n : 0;
    return tv_str((ggl_str){s.text.s, s.text.n - n});
}

static tv s_lower(tv_heap *h, tv s, const tv_args *a) {
    (void)a;
    return tv_str(llm_tv_lower(h, s.text));
}
static tv s_upper(tv_heap *h, tv s, const tv_args *a) {
    (void)a;
    return tv_str(llm_tv_upper(h, s.text));
}
static tv s_capitalize(tv_heap *h, tv s, const tv_args *a) {
    (void)a;
    return tv_str(llm_tv_capitalize(h, s.text, NULL, true));
}
static bool is_no_letter(uint32_t c) {
    return !(llm_unicode_properties(c) & UNICODE_L);
}
static tv s_title(tv_heap *h, tv s, const tv_args *a) {
    (void)a;
    return tv_str(llm_tv_capitalize(h, s.text, is_no_letter, true));
}

static tv s_replace(tv_heap *h, tv s, const tv_args *a) {
    return tv_str(llm_tv_replace(h, s.text, llm_tv_want_str(h, *a->at[0], "what is replaced"),
                                 llm_tv_want_str(h, *a->at[1], "the replacement"),
                                 count_of(h, a->at[2], "count")));
}

/* Returns the last byte where the part, which is not empty, begins; NULL: nowhere. A search looks at
 * ever longer ends of s until one has the part; then, where it may begin is halved again and again.
 * So the time grows little more than s, whatever the texts are. */
static const char *found_last(tv_heap *h, ggl_str s, ggl_str part) {
    const char *hit = NULL;
    size_t none = s.n < part.n ? 0 : s.n - part.n + 1; /* from here on, no part begins */
    for (size_t lowest = 0, back = 16; lowest < none; back *= 2) {
        const size_t from = hit ? lowest + (none - lowest) / 2 : none > back ? none - back : 0;
        const size_t n = none - 1 + part.n - from;
        tv_scan(h, n);
        const char *at = ggl_find_bytes(s.s + from, n, part.s, part.n);
        if (at) {
            hit = at;
            lowest = (size_t)(at - s.s) + 1;
        } else {
            none = from;
        }
    }
    return hit;
}

/* Returns the byte where the part is first (or last); NULL: nowhere. */
static const char *found(tv_heap *h, ggl_str s, ggl_str part, bool last) {
    if (part.n == 0)
        return last ? s.s + s.n : s.s;
    if (last)
        return found_last(h, s, part);
    tv_scan(h, s.n);
    return s.n ? ggl_find_bytes(s.s, s.n, part.s, part.n) : NULL;
}
static tv find(tv_heap *h, tv s, const tv_args *a, bool last, bool must) {
    const ggl_str part = llm_tv_want_str(h, *a->at[0], "what is searched");
    ggl_str in = s.text;
    const char *at = cut(h, &in, a, 1) ? found(h, in, part, last) : NULL;
    if (!at && must)
        llm_tv_fail(h, GGL_FORMAT, "index: the string does not contain that");
    const ggl_str before = {s.text.s, at ? (size_t)(at - s.text.s) : 0};
    return tv_int(at ? (int64_t)llm_tv_length(h, tv_str(before)) : -1);
}
static tv s_find(tv_heap *h, tv s, const tv_args *a) {
    return find(h, s, a, false, false);
}
static tv s_rfind(tv_heap *h, tv s, const tv_args *a) {
    return find(h, s, a, true, false);
}
static tv s_index(tv_heap *h, tv s, const tv_args *a) {
    return find(h, s, a, false, true);
}
static tv s_rindex(tv_heap *h, tv s, const tv_args *a) {
    return find(h, s, a, true, true);
}
static tv s_count(tv_heap *h, tv s, const tv_args *a) {
    const ggl_str part = llm_tv_want_str(h, *a->at[0], "what is counted");
    if (!cut(h, &s.text, a, 1))
        return tv_int(0);
    if (part.n == 0)
        return tv_int((int64_t)llm_tv_length(h, s) + 1);
    return tv_int((int64_t)llm_tv_split(h, s.text, &part, -1).list->n - 1);
}

static tv partition(tv_heap *h, tv s, const tv_args *a, bool last) {
    const ggl_str part = llm_tv_want_str(h, *a->at[0], "the separator");
    const char *at = found(h, s.text, part, last), *end = s.text.s + s.text.n;
    const ggl_str none = {"", 0};
    ggl_str three[3] = {s.text, none, none};
    if (at) {
        three[0] = (ggl_str){s.text.s, (size_t)(at - s.text.s)};
        three[1] = part;
        three[2] = (ggl_str){at + part.n, (size_t)(end - at) - part.n};
    } else if (last) {
        three[2] = s.text;
        three[0] = none;
    }
    tv list = llm_tv_new_list(h, TV_TUPLE);
    for (int i = 0; i < 3; i++)
        llm_tv_push(h, list, tv_str(three[i]));
    return list;
}
static tv s_partition(tv_heap *h, tv s, const tv_args *a) {
    return partition(h, s, a, false);
}
static tv s_rpartition(tv_heap *h, tv s, const tv_args *a) {
    return partition(h, s, a, true);
}

static tv s_join(tv_heap *h, tv s, const tv_args *a) {
    const tv_list *l = llm_tv_elements(h, *a->at[0]);
    for (size_t i = 0; i < l->n; i++)
        (void)llm_tv_want_str(h, l->at[i], "what is joined");
    return tv_str(llm_tv_join(h, l, s.text));
}

/* True if there are characters, and all have one of the properties. */
static tv all_have(tv_heap *h, tv s, unsigned properties) {
    bool all = s.text.n > 0;
    tv_scan(h, s.text.n);
    for (size_t i = 0; i < s.text.n && all;) {
        const uint32_t c = llm_tv_next_char(s.text, &i);
        all = properties == UNICODE_WHITE ? llm_tv_is_space(c)
                                          : llm_unicode_properties(c) & properties;
    }
    return tv_bool(all);
}
static tv s_isdigit(tv_heap *h, tv s, const tv_args *a) {
    (void)a;
    return all_have(h, s, UNICODE_ND);
}
static tv s_isalpha(tv_heap *h, tv s, const tv_args *a) {
    (void)a;
    return all_have(h, s, UNICODE_L);
}
static tv s_isalnum(tv_heap *h, tv s, const tv_args *a) {
    (void)a;
    return all_have(h, s, UNICODE_L | UNICODE_N);
}
static tv s_isnumeric(tv_heap *h, tv s, const tv_args *a) {
    (void)a;
    return all_have(h, s, UNICODE_N);
}
static tv s_islower(tv_heap *h, tv s, const tv_args *a) {
    (void)a;
    return tv_bool(llm_tv_is_case(h, s.text, false));
}
static tv s_isupper(tv_heap *h, tv s, const tv_args *a) {
    (void)a;
    return tv_bool(llm_tv_is_case(h, s.text, true));
}
static tv s_isspace(tv_heap *h, tv s, const tv_args *a) {
    (void)a;
    return all_have(h, s, UNICODE_WHITE);
}

/* The string with fill on the left and right to `width` characters. */
static tv padded(tv_heap *h, tv s, const tv_args *a, int where) {
    const int64_t width = llm_tv_want_int(h, *a->at[0], "a width"),
                  n = (int64_t)llm_tv_length(h, s), all = width > n ? width - n : 0,
                  left = where < 0   ? 0
                         : where > 0 ? all
                                     : all / 2 + (all & width & 1);
    const ggl_str fill = a->at[1] ? llm_tv_want_str(h, *a->at[1], "the fill") : (ggl_str){" ", 1};
    tv_text t = {0};
    const size_t n_fill = llm_tv_length(h, tv_str(fill));
    if (n_fill != 1)
        llm_tv_fail(h, GGL_FORMAT, "the fill must be one character, not %zu", n_fill);
    for (int64_t i = 0; i < left; i++)
        llm_tv_put(h, &t, fill.s, fill.n);
    llm_tv_put(h, &t, s.text.s, s.text.n);
    for (int64_t i = left; i < all; i++)
        llm_tv_put(h, &t, fill.s, fill.n);
    return tv_str(llm_tv_done(&t));
}
static tv s_ljust(tv_heap *h, tv s, const tv_args *a) {
    return padded(h, s, a, -1);
}
static tv s_rjust(tv_heap *h, tv s, const tv_args *a) {
    return padded(h, s, a, 1);
}
static tv s_center(tv_heap *h, tv s, const tv_args *a) {
    return padded(h, s, a, 0);
}
static tv s_zfill(tv_heap *h, tv s, const tv_args *a) {
    const bool sign = s.text.n && (s.text.s[0] == '-' || s.text.s[0] == '+');
    const tv zero = tv_str((ggl_str){"0", 1});
    const int64_t all = llm_tv_want_int(h, *a->at[0], "a width");
    const tv width = tv_int(all > 0 ? all - sign : 0);
    const tv rest = tv_str((ggl_str){s.text.s + sign, s.text.n - sign});
    const tv filled = padded(h, rest, &(tv_args){.at = {&width, &zero}}, 1);
    tv_text t = {0};
    llm_tv_put(h, &t, s.text.s, sign);
    llm_tv_put(h, &t, filled.text.s, filled.text.n);
    return tv_str(llm_tv_done(&t));
}

/* Appends the value by what follows ":" in "{name:5.2f}", which means almost what it does after "%". */
static void put_by_spec(tv_heap *h, tv_text *t, tv v, ggl_str spec) {
    const char kind = spec.n ? spec.s[spec.n - 1] : 0;
    const bool whole = kind && strchr("dxXo", kind), real = kind && strchr("fFeE", kind),
               digits = spec.n && strspn(spec.s, "0123456789.") >= spec.n - 1;
    const bool fits = whole  ? v.kind == TV_INT && !memchr(spec.s, '.', spec.n)
                      : real ? tv_is_number(v)
                             : kind == 's' && v.kind == TV_STRING && spec.s[0] != '0';
    if (!digits || !fits)
        llm_tv_fail(h, GGL_UNSUPPORTED, "format: ':%.*s' is not supported for %s",
                    (int)(spec.n < 60 ? spec.n : 60), spec.s, llm_tv_kind_text(v));
    tv_text format = {0};
    llm_tv_puts(h, &format, kind == 's' ? "%-" : "%");
    llm_tv_put(h, &format, spec.s, spec.n);
    tv list = llm_tv_new_list(h, TV_TUPLE);
    llm_tv_push(h, list, v);
    llm_tv_put_str(h, t, llm_tv_percent(h, llm_tv_done(&format), list));
}

/* "{} {0} {name} {:5.2f}".format(..), without conversions such as {!r}, and with few specifications. */
static tv s_format(tv_heap *h, tv s, const tv_args *a) {
    tv_text t = {0};
    const ggl_str f = s.text;
    size_t next = 0;
    for (size_t i = 0; i < f.n; i++) {
        if ((f.s[i] == '{' || f.s[i] == '}') && i + 1 < f.n && f.s[i + 1] == f.s[i]) {
            llm_tv_put(h, &t, &f.s[i++], 1);
            continue;
        }
        if (f.s[i] != '{' && f.s[i] != '}') {
            llm_tv_put(h, &t, &f.s[i], 1);
            continue;
        }
        const char *end = f.s[i] == '{' ? memchr(f.s + i, '}', f.n - i) : NULL;
        if (!end)
            llm_tv_fail(h, GGL_FORMAT, "format: a single '%c'", f.s[i]);
        const char *colon = memchr(f.s + i, ':', (size_t)(end - f.s) - i);
        const ggl_str name = {f.s + i + 1, (size_t)((colon ? colon : end) - f.s) - i - 1};
        if (memchr(name.s, '!', name.n) || memchr(name.s, '[', name.n))
            llm_tv_fail(h, GGL_UNSUPPORTED, "format: '{%.*s}' is not supported", (int)name.n,
                        name.s);
        const bool number = name.n > 0 && name.n < 4 && name.s[0] >= '0' && name.s[0] <= '9';
        size_t k = 0;
        for (size_t d = 0; number && d < name.n; d++)
            k = k * 10 + (size_t)(name.s[d] - '0');
        k = name.n == 0 ? next++ : k;
        const tv *v = name.n && !number ? llm_tv_dict_find(a->named, name)
                      : k < a->rest.n   ? &a->rest.at[k]
                                        : NULL;
        if (!v)
            llm_tv_fail(h, GGL_FORMAT, "format: there is no value for '{%.*s}'", (int)name.n,
                        name.s);
        if (colon && colon + 1 < end)
            put_by_spec(h, &t, *v, (ggl_str){colon + 1, (size_t)(end - colon) - 1});
        else
            llm_tv_put_str(h, &t, *v);
        i = (size_t)(end - f.s);
    }
    return tv_str(llm_tv_done(&t));
}

/* --- dicts and lists -------------------------------------------------------------------------- */

static tv d_items(tv_heap *h, tv d, const tv_args *a) {
    (void)a;
    tv list = llm_tv_new_list(h, TV_LIST);
    for (size_t i = 0; i < d.dict->n; i++) {
        tv pair = llm_tv_new_list(h, TV_TUPLE);
        llm_tv_push(h, pair, d.dict->item[i].key);
        llm_tv_push(h, pair, d.dict->item[i].value);
        llm_tv_push(h, list, pair);
    }
    return list;
}
static tv d_keys(tv_heap *h, tv d, const tv_args *a) {
    (void)a;
    return (tv){.kind = TV_LIST, .list = llm_tv_elements(h, d)};
}
static tv d_values(tv_heap *h, tv d, const tv_args *a) {
    (void)a;
    tv list = llm_tv_new_list(h, TV_LIST);
    for (size_t i = 0; i < d.dict->n; i++)
        llm_tv_push(h, list, d.dict->item[i].value);
    return list;
}
static tv d_get(tv_heap *h, tv d, const tv_args *a) {
    const tv *v = llm_tv_dict_get(h, d.dict, *a->at[0]);
    return v ? *v : a->at[1] ? *a->at[1] : tv_none();
}
static tv d_copy(tv_heap *h, tv d, const tv_args *a) {
    (void)a;
    tv to = llm_tv_new_dict(h);
    for (size_t i = 0; i < d.dict->n; i++)
        llm_tv_dict_set(h, to.dict, d.dict->item[i].key, d.dict->item[i].value);
    return to;
}

static tv l_copy(tv_heap *h, tv l, const tv_args *a) {
    (void)a;
    return llm_tv_slice(h, l, NULL, NULL, NULL);
}
static tv l_index(tv_heap *h, tv l, const tv_args *a) {
    for (size_t i = 0; i < l.list->n; i++)
        if (llm_tv_equal(h, l.list->at[i], *a->at[0]))
            return tv_int((int64_t)i);
    llm_tv_fail(h, GGL_FORMAT, "index: the list does not contain that");
}
static tv l_count(tv_heap *h, tv l, const tv_args *a) {
    int64_t n = 0;
    for (size_t i = 0; i < l.list->n; i++)
        n += llm_tv_equal(h, l.list->at[i], *a->at[0]);
    return tv_int(n);
}

/* Returns the place of an index, from the end if it is negative, moved into the list or up to its end. */
static size_t place_in(tv_heap *h, tv l, tv index) {
    const int64_t n = (int64_t)l.list->n, i = llm_tv_want_int(h, index, "the index"),
                  at = i < 0 ? i + n : i;
    return (size_t)(at < 0 ? 0 : at > n ? n : at);
}
static tv l_append(tv_heap *h, tv l, const tv_args *a) {
    llm_tv_push(h, l, *a->at[0]);
    return tv_none();
}
static tv l_extend(tv_heap *h, tv l, const tv_args *a) {
    const tv_list *more = llm_tv_elements(h, *a->at[0]);
    const size_t n = more->n; /* which may be the list itself */
    for (size_t i = 0; i < n; i++)
        llm_tv_push(h, l, more->at[i]);
    return tv_none();
}
static tv l_insert(tv_heap *h, tv l, const tv_args *a) {
    const size_t i = place_in(h, l, *a->at[0]), n = l.list->n;
    llm_tv_push(h, l, tv_none());
    llm_tv_step(h, n - i);
    memmove(l.list->at + i + 1, l.list->at + i, (n - i) * sizeof *l.list->at);
    l.list->at[i] = *a->at[1];
    return tv_none();
}
static tv take_out(tv_heap *h, tv l, size_t i) {
    const tv v = l.list->at[i];
    llm_tv_step(h, l.list->n - i);
    memmove(l.list->at + i, l.list->at + i + 1, (--l.list->n - i) * sizeof v);
    return v;
}
static tv l_pop(tv_heap *h, tv l, const tv_args *a) {
    const int64_t n = (int64_t)l.list->n,
                  i = a->at[0] ? llm_tv_want_int(h, *a->at[0], "the index") : -1;
    if (i < -n || i >= n)
        llm_tv_fail(h, GGL_FORMAT, "pop: the list has %lld elements, none at %lld", (long long)n,
                    (long long)i);
    return take_out(h, l, (size_t)(i < 0 ? i + n : i));
}
static tv l_remove(tv_heap *h, tv l, const tv_args *a) {
    (void)take_out(h, l, (size_t)l_index(h, l, a).integer);
    return tv_none();
}
static tv l_clear(tv_heap *h, tv l, const tv_args *a) {
    (void)h, (void)a;
    l.list->n = 0;
    return tv_none();
}
static tv l_reverse(tv_heap *h, tv l, const tv_args *a) {
    (void)a;
    llm_tv_step(h, l.list->n);
    for (size_t i = 0, k = l.list->n; i + 1 < k--; i++) {
        const tv v = l.list->at[i];
        l.list->at[i] = l.list->at[k];
        l.list->at[k] = v;
    }
    return tv_none();
}

/* Other methods that change their object. */
static tv changes(tv_heap *h, tv self, const tv_args *a) {
    (void)a;
    llm_tv_fail(h, GGL_UNSUPPORTED, "a method that changes %s is not supported",
                llm_tv_kind_text(self));
}

static const tv_builtin string_methods[] = {
    {"strip", "chars?", s_strip},
    {"lstrip", "chars?", s_lstrip},
    {"rstrip", "chars?", s_rstrip},
    {"split", "sep? maxsplit?", s_split},
    {"rsplit", "sep? maxsplit?", s_rsplit},
    {"splitlines", "keepends?", s_splitlines},
    {"startswith", "prefix start? end?", s_startswith},
    {"endswith", "suffix start? end?", s_endswith},
    {"removeprefix", "prefix", s_removeprefix},
    {"removesuffix", "suffix", s_removesuffix},
    {"lower", "", s_lower},
    {"upper", "", s_upper},
    {"capitalize", "", s_capitalize},
    {"title", "", s_title},
    {"replace", "old new count?", s_replace},
    {"find", "sub start? end?", s_find},
    {"rfind", "sub start? end?", s_rfind},
    {"index", "sub start? end?", s_index},
    {"rindex", "sub start? end?", s_rindex},
    {"count", "sub start? end?", s_count},
    {"partition", "sep", s_partition},
    {"rpartition", "sep", s_rpartition},
    {"join", "iterable", s_join},
    {"isdigit", "", s_isdigit},
    {"isalpha", "", s_isalpha},
    {"isalnum", "", s_isalnum},
    {"isspace", "", s_isspace},
    {"isdecimal", "", s_isdigit},
    {"isnumeric", "", s_isnumeric},
    {"islower", "", s_islower},
    {"isupper", "", s_isupper},
    {"ljust", "width fillchar?", s_ljust},
    {"rjust", "width fillchar?", s_rjust},
    {"center", "width fillchar?", s_center},
    {"zfill", "width", s_zfill},
    {"format", "* **", s_format},
};

static const tv_builtin dict_methods[] = {
    {"items", "", d_items},         {"keys", "", d_keys},   {"values", "", d_values},
    {"get", "key default?", d_get}, {"copy", "", d_copy},   {"update", "* **", changes},
    {"pop", "* **", changes},       {"clear", "", changes}, {"setdefault", "* **", changes},
};

static const tv_builtin list_methods[] = {
    {"index", "value", l_index},
    {"count", "value", l_count},
    /* a tuple has those above; the ones below change their list, as Jinja allows and Hugging Face's environment does not: templates of published
     * models do so */
    {"append", "object", l_append},
    {"copy", "", l_copy},
    {"extend", "iterable", l_extend},
    {"insert", "index object", l_insert},
    {"pop", "index?", l_pop},
    {"remove", "value", l_remove},
    {"clear", "", l_clear},
    {"reverse", "", l_reverse},
    {"sort", "* **", changes},
};

const tv_builtin *llm_tv_method(tv_kind kind, ggl_str name) {
    if (kind == TV_STRING)
        return llm_tv_lookup(string_methods, COUNT(string_methods), name);
    if (kind == TV_DICT)
        return llm_tv_lookup(dict_methods, COUNT(dict_methods), name);
    return kind == TV_LIST || kind == TV_TUPLE
               ? llm_tv_lookup(list_methods, kind == TV_LIST ? COUNT(list_methods) : 2, name)
               : NULL;
}
