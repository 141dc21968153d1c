/* Values of a template: lists, dicts, and what can be asked of any value. */
#include "value.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/text.h"

/* Makes room for n elements in an array of the arena; the old one stays there unused, which at most
 * doubles the memory. */
static void grow(tv_heap *h, void **array, size_t *cap, size_t n, size_t size) {
    if (n <= *cap)
        return;
    size_t wanted = *cap * 2 > n ? *cap * 2 : n + 4;
    void *bigger = llm_tv_alloc(h, wanted, size);
    if (*cap)
        memcpy(bigger, *array, *cap * size);
    *array = bigger;
    *cap = wanted;
}

/* --- lists and dicts -------------------------------------------------------------------------- */

tv llm_tv_new_list(tv_heap *h, tv_kind kind) {
    return (tv){.kind = kind, .list = llm_tv_alloc(h, 1, sizeof(tv_list))};
}

void llm_tv_push(tv_heap *h, tv list, tv v) {
    void *at = list.list->at;
    grow(h, &at, &list.list->cap, list.list->n + 1, sizeof v);
    list.list->at = at;
    list.list->at[list.list->n++] = v;
}

tv llm_tv_new_dict(tv_heap *h) {
    return (tv){.kind = TV_DICT, .dict = llm_tv_alloc(h, 1, sizeof(tv_dict))};
}

enum { FEW_ITEMS = 8 }; /* up to this number, items are searched one by one */

static size_t find(const tv_dict *d, ggl_str name) {
    if (d->n > FEW_ITEMS)
        return ggl_index_find(&d->index, d->item, name);
    for (size_t i = 0; i < d->n; i++)
        if (ggl_str_equal(d->item[i].name, name))
            return i;
    return SIZE_MAX;
}

/* Returns the name under which a key is stored: the text of a string, or that of another value after
 * a 0xff, which no string in UTF-8 begins with. Numbers that are equal are the same key. */
static ggl_str name_of(tv_heap *h, tv key) {
    if (key.kind == TV_STRING)
        return key.text;
    if (tv_is_list(key) || key.kind >= TV_DICT)
        llm_tv_fail(h, GGL_FORMAT, "%s cannot be a key", llm_tv_kind_text(key));
    if (key.kind == TV_BOOL)
        key = tv_int(key.truth);
    if (key.kind == TV_FLOAT && key.number == floor(key.number) && fabs(key.number) < 1e15)
        key = tv_int((int64_t)key.number);
    tv_text t = {0};
    llm_tv_put(h, &t, "\xff", 1);
    llm_tv_put_repr(h, &t, key);
    return llm_tv_done(&t);
}

void llm_tv_dict_set(tv_heap *h, tv_dict *d, tv key, tv value) {
    const ggl_str name = name_of(h, key);
    tv_scan(h, name.n);
    size_t i = find(d, name);
    if (i != SIZE_MAX) {
        d->item[i].value = value;
        return;
    }
    void *item = d->item;
    grow(h, &item, &d->cap, d->n + 1, sizeof *d->item);
    d->item = item;
    d->item[d->n++] = (tv_item){name, key, value};
    if (d->n <= FEW_ITEMS)
        return;
    const bool first = d->n == FEW_ITEMS + 1;
    ggl_status st = first
                        ? ggl_index_init(&d->index, 32, sizeof *d->item, GGL_INDEX_STRINGS, h->err)
                        : ggl_index_reserve(&d->index, d->item, d->n, h->err);
    if (first && st == GGL_OK) {
        d->next_indexed = h->indexed;
        h->indexed = d;
    }
    if (st != GGL_OK) {
        d->n--;
        llm_tv_fail(h, st, "out of memory");
    }
    for (i = first ? 0 : d->n - 1; i < d->n; i++)
        ggl_index_put(&d->index, d->item, i);
}

const tv *llm_tv_dict_find(const tv_dict *d, ggl_str name) {
    size_t i = find(d, name);
    return i == SIZE_MAX ? NULL : &d->item[i].value;
}

const tv *llm_tv_dict_get(tv_heap *h, const tv_dict *d, tv key) {
    const ggl_str name = name_of(h, key);
    tv_scan(h, name.n);
    return llm_tv_dict_find(d, name);
}

/* Python's json reads a number without a point and an exponent as an integer of any size. */
static tv number_from_json(const json_value *v) {
    uint64_t magnitude;
    bool negative;
    if (!llm_json_integer(v, &magnitude, &negative) || magnitude > (uint64_t)INT64_MAX + negative)
        return (tv){.kind = TV_FLOAT, .number = v->number, .written = v->text ? v : NULL};
    return tv_int((int64_t)(negative ? 0 - magnitude : magnitude));
}

tv llm_tv_from_json(tv_heap *h, const json_value *v) {
    tv to;
    switch ((json_kind)v->kind) {
    case JSON_BOOL:
        return tv_bool(v->flag);
    case JSON_NUMBER:
        return number_from_json(v);
    case JSON_STRING:
        return tv_str(json_str(v));
    case JSON_ARRAY:
        to = llm_tv_new_list(h, TV_LIST);
        for (size_t i = 0; i < v->n; i++)
            llm_tv_push(h, to, llm_tv_from_json(h, &v->item[i]));
        return to;
    case JSON_OBJECT:
        to = llm_tv_new_dict(h);
        for (size_t i = 0; i < v->n; i++)
            llm_tv_dict_set(h, to.dict, tv_str(json_name(v, i)), llm_tv_from_json(h, &v->item[i]));
        return to;
    case JSON_NULL:
        break;
    }
    return tv_none();
}

/* --- properties ------------------------------------------------------------------------------- */

bool llm_tv_truth(tv v) {
    switch (v.kind) {
    case TV_UNDEFINED:
    case TV_NONE:
        return false;
    case TV_BOOL:
        return v.truth;
    case TV_INT:
        return v.integer != 0;
    case TV_FLOAT:
        return v.number != 0;
    case TV_STRING:
        return v.text.n > 0;
    case TV_LIST:
    case TV_TUPLE:
        return v.list->n > 0;
    case TV_DICT:
        return v.dict->n > 0;
    default:
        return true;
    }
}

static double number_of(tv v) {
    return v.kind == TV_FLOAT ? v.number : v.kind == TV_INT ? (double)v.integer : v.truth;
}

/* Compares an integer beyond 64 bits with another number. */
static int compare_wide(tv a, tv b) {
    const ggl_str x = json_number_text(a.written);
    const int sign = x.s[0] == '-' ? -1 : 1;
    if (!llm_tv_is_wide(b) || (a.number < 0) != (b.number < 0))
        return sign;
    const ggl_str y = json_number_text(b.written); /* JSON has no zeros in front */
    const int order = x.n != y.n ? (x.n > y.n) - (x.n < y.n) : memcmp(x.s, y.s, x.n);
    return sign * ((order > 0) - (order < 0));
}

/* Compares two numbers; integers exactly. */
static int compare_numbers(tv a, tv b) {
    const bool a_is_wide = llm_tv_is_wide(a), b_is_wide = llm_tv_is_wide(b);
    if (a_is_wide && (b_is_wide || b.kind != TV_FLOAT))
        return compare_wide(a, b);
    if (b_is_wide && a.kind != TV_FLOAT)
        return -compare_wide(b, a);
    if (a.kind != TV_FLOAT && b.kind != TV_FLOAT) {
        int64_t x = a.kind == TV_INT ? a.integer : a.truth,
                y = b.kind == TV_INT ? b.integer : b.truth;
        return (x > y) - (x < y);
    }
    double x = number_of(a), y = number_of(b);
    return (x > y) - (x < y);
}

static int compare_text(tv_heap *h, ggl_str a, ggl_str b) { /* UTF-8 has the order of code points */
    size_t n = a.n < b.n ? a.n : b.n;
    tv_scan(h, n);
    int c = n ? memcmp(a.s, b.s, n) : 0;
    return c ? c : (a.n > b.n) - (a.n < b.n);
}

static bool equal_text(tv_heap *h, ggl_str a, ggl_str b) {
    if (a.n != b.n)
        return false;
    tv_scan(h, a.n);
    return ggl_str_equal(a, b);
}

static bool equal_lists(tv_heap *h, const tv_list *a, const tv_list *b) {
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = llm_tv_equal(h, a->at[i], b->at[i]);
    return same;
}

static bool equal_dicts(tv_heap *h, const tv_dict *a, const tv_dict *b) {
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++) {
        tv_scan(h, a->item[i].name.n);
        const tv *other = llm_tv_dict_find(b, a->item[i].name);
        same = other && llm_tv_equal(h, a->item[i].value, *other);
    }
    return same;
}

static bool equal(tv_heap *h, tv a, tv b) {
    if (tv_is_number(a) && tv_is_number(b))
        return !(a.kind == TV_FLOAT && isnan(a.number)) &&
               !(b.kind == TV_FLOAT && isnan(b.number)) && compare_numbers(a, b) == 0;
    if (a.kind != b.kind)
        return false;
    switch (a.kind) {
    case TV_STRING:
        return equal_text(h, a.text, b.text);
    case TV_LIST:
    case TV_TUPLE:
        return equal_lists(h, a.list, b.list);
    case TV_DICT:
        return equal_dicts(h, a.dict, b.dict);
    case TV_ITERATOR:
        return a.list == b.list;
    case TV_NAMESPACE:
        return a.dict == b.dict;
    case TV_LOOP:
        return a.loop == b.loop;
    case TV_FUNCTION:
        return a.function == b.function;
    case TV_MACRO:
        return a.macro == b.macro;
    default:
        return true; /* undefined, none */
    }
}

bool llm_tv_equal(tv_heap *h, tv a, tv b) {
    llm_tv_step(h, 1);
    llm_tv_enter(h);
    bool same = equal(h, a, b);
    tv_leave(h);
    return same;
}

static int compare(tv_heap *h, tv a, tv b, const char *op) {
    if (tv_is_number(a) && tv_is_number(b))
        return compare_numbers(a, b);
    if (a.kind == TV_STRING && b.kind == TV_STRING)
        return compare_text(h, a.text, b.text);
    if (tv_is_list(a) && a.kind == b.kind) {
        for (size_t i = 0; i < a.list->n && i < b.list->n; i++)
            if (!llm_tv_equal(h, a.list->at[i], b.list->at[i]))
                return llm_tv_compare(h, a.list->at[i], b.list->at[i], op);
        return (a.list->n > b.list->n) - (a.list->n < b.list->n);
    }
    llm_tv_fail(h, GGL_FORMAT, "%s and %s have no order for %s", llm_tv_kind_text(a),
                llm_tv_kind_text(b), op);
}

int llm_tv_compare(tv_heap *h, tv a, tv b, const char *op) {
    llm_tv_step(h, 1);
    llm_tv_enter(h);
    int order = compare(h, a, b, op);
    tv_leave(h);
    return order;
}

static bool has_text(tv_heap *h, ggl_str s, ggl_str part) {
    tv_scan(h, s.n);
    return part.n == 0 || (s.n > 0 && ggl_find_bytes(s.s, s.n, part.s, part.n));
}

bool llm_tv_contains(tv_heap *h, tv container, tv v) {
    if (container.kind == TV_STRING)
        return has_text(h, container.text, llm_tv_want_str(h, v, "what a string contains"));
    if (container.kind == TV_DICT)
        return llm_tv_dict_get(h, container.dict, v) != NULL;
    const tv_list *list = llm_tv_elements(h, container);
    for (size_t i = 0; i < list->n; i++)
        if (llm_tv_equal(h, list->at[i], v))
            return true;
    return false;
}

size_t llm_tv_length(tv_heap *h, tv v) {
    switch (v.kind) {
    case TV_UNDEFINED:
        return 0;
    case TV_STRING:
        tv_scan(h, v.text.n);
        return llm_tv_n_chars(v.text);
    case TV_LIST:
    case TV_TUPLE:
        return v.list->n;
    case TV_DICT:
        return v.dict->n;
    default:
        llm_tv_fail(h, GGL_FORMAT, "%s has no length", llm_tv_kind_text(v));
    }
}

tv_list *llm_tv_elements(tv_heap *h, tv v) {
    if (tv_is_list(v))
        return v.list;
    tv list = llm_tv_new_list(h, TV_LIST);
    if (v.kind == TV_DICT)
        for (size_t i = 0; i < v.dict->n; i++)
            llm_tv_push(h, list, v.dict->item[i].key);
    else if (v.kind == TV_STRING)
        for (size_t i = 0, at; i < v.text.n;) {
            at = i;
            llm_tv_next_char(v.text, &i);
            llm_tv_push(h, list, tv_str((ggl_str){v.text.s + at, i - at}));
        }
    else if (v.kind == TV_ITERATOR) {
        *list.list = *v.list;
        *v.list = (tv_list){0};
    } else if (v.kind != TV_UNDEFINED)
        llm_tv_fail(h, GGL_FORMAT, "%s has no elements to go over", llm_tv_kind_text(v));
    return list.list;
}

ggl_str llm_tv_want_str(tv_heap *h, tv v, const char *what) {
    if (v.kind == TV_UNDEFINED && v.text.n)
        llm_tv_fail(h, GGL_FORMAT, "%s must be a string; '%.*s' is undefined", what, (int)v.text.n,
                    v.text.s);
    if (v.kind != TV_STRING)
        llm_tv_fail(h, GGL_FORMAT, "%s must be a string, not %s", what, llm_tv_kind_text(v));
    return v.text;
}

int64_t llm_tv_want_int(tv_heap *h, tv v, const char *what) {
    if (v.kind != TV_INT && v.kind != TV_BOOL)
        llm_tv_fail(h, GGL_FORMAT, "%s must be an integer, not %s", what, llm_tv_kind_text(v));
    return v.kind == TV_INT ? v.integer : v.truth;
}

double llm_tv_want_number(tv_heap *h, tv v, const char *what) {
    if (!tv_is_number(v))
        llm_tv_fail(h, GGL_FORMAT, "%s must be a number, not %s", what, llm_tv_kind_text(v));
    return number_of(v);
}
