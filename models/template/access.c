/* Attributes, elements and slices of values; calls of builtins; the variable `loop`. */
#include <string.h>

#include "builtins.h"

const tv_builtin *llm_tv_lookup(const tv_builtin *table, size_t n, ggl_str name) {
    for (size_t i = 0; i < n; i++)
        if (ggl_str_is(name, table[i].name))
            return &table[i];
    return NULL;
}

/* --- calls ------------------------------------------------------------------------------------ */

/* Sets a->at from the arguments given by place. */
static size_t bind_places(const tv_given *g, size_t n_params, tv_args *a) {
    size_t n = 0;
    for (; n < n_params && n < g->by_place.n; n++)
        a->at[n] = &g->by_place.at[n];
    if (g->by_place.n > n)
        a->rest = (tv_list){g->by_place.at + n, g->by_place.n - n, 0};
    return n;
}

/* Splits b->params into names; returns their number. */
typedef struct params {
    ggl_str name[TV_MOST_PARAMS];
    bool needed[TV_MOST_PARAMS];
    size_t n;
    bool rest, named; /* "*", "**" */
} params;

static params params_of(const tv_builtin *b) {
    params p = {.n = 0};
    for (const char *s = b->params; *s; s += strspn(s, " ")) {
        size_t n = strcspn(s, " ");
        if (s[0] == '*') {
            *(n == 1 ? &p.rest : &p.named) = true;
        } else {
            const bool optional = s[n - 1] == '?';
            p.needed[p.n] = !optional;
            p.name[p.n++] = (ggl_str){s, n - optional};
        }
        s += n;
    }
    return p;
}

tv llm_tv_call_builtin(tv_heap *h, const tv_builtin *b, const char *what, tv self,
                       const tv_given *g) {
    const params p = params_of(b);
    tv_args a = {0};
    llm_tv_step(h, 1);
    llm_tv_enter(h);
    size_t n = bind_places(g, p.n, &a);
    if (a.rest.n && !p.rest)
        llm_tv_fail(h, GGL_FORMAT, "%s %s takes %zu arguments, not %zu", what, b->name, p.n,
                    g->by_place.n);
    a.named = llm_tv_new_dict(h).dict;
    for (size_t i = 0; g->by_name && i < g->by_name->n; i++) {
        const tv_item *item = &g->by_name->item[i];
        size_t k = 0;
        while (k < p.n && !llm_tv_equal(h, tv_str(p.name[k]), item->key))
            k++;
        if (k < p.n && k < n)
            llm_tv_fail(h, GGL_FORMAT, "%s %s has two values for '%.*s'", what, b->name,
                        (int)p.name[k].n, p.name[k].s);
        if (k == p.n && !p.named)
            llm_tv_fail(h, GGL_FORMAT, "%s %s has no parameter '%.*s'", what, b->name,
                        (int)item->name.n, item->name.s);
        if (k < p.n)
            a.at[k] = &item->value;
        else
            llm_tv_dict_set(h, a.named, item->key, item->value);
    }
    for (size_t k = 0; k < p.n; k++)
        if (p.needed[k] && !a.at[k])
            llm_tv_fail(h, GGL_FORMAT, "%s %s needs its argument '%.*s'", what, b->name,
                        (int)p.name[k].n, p.name[k].s);
    const tv result = b->fn(h, self, &a);
    tv_leave(h);
    return result;
}

/* --- the variable `loop` ---------------------------------------------------------------------- */

static tv loop_cycle(tv_heap *h, tv self, const tv_args *a) {
    if (a->rest.n == 0)
        llm_tv_fail(h, GGL_FORMAT, "loop.cycle needs arguments");
    return a->rest.at[self.loop->i % a->rest.n];
}

static tv loop_changed(tv_heap *h, tv self, const tv_args *a) {
    tv now = llm_tv_new_list(h, TV_TUPLE);
    for (size_t i = 0; i < a->rest.n; i++)
        llm_tv_push(h, now, a->rest.at[i]);
    const bool changed = self.loop->last.kind != TV_TUPLE || !llm_tv_equal(h, self.loop->last, now);
    self.loop->last = now;
    return tv_bool(changed);
}

static const tv_builtin loop_methods[] = {{"cycle", "*", loop_cycle},
                                          {"changed", "*", loop_changed}};

tv llm_tv_loop_attribute(tv_heap *h, tv_loop *l, ggl_str name) {
    const int64_t i = (int64_t)l->i, n = (int64_t)l->list->n;
    const struct {
        const char *name;
        tv value;
    } all[] = {
        {"index", tv_int(i + 1)},    {"index0", tv_int(i)},
        {"revindex", tv_int(n - i)}, {"revindex0", tv_int(n - i - 1)},
        {"first", tv_bool(i == 0)},  {"last", tv_bool(i == n - 1)},
        {"length", tv_int(n)},       {"depth", tv_int(1)},
        {"depth0", tv_int(0)},
    };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (ggl_str_is(name, all[k].name))
            return all[k].value;
    if (ggl_str_is(name, "previtem") && i > 0)
        return l->list->at[i - 1];
    if (ggl_str_is(name, "nextitem") && i + 1 < n)
        return l->list->at[i + 1];
    const tv_builtin *b = llm_tv_lookup(loop_methods, 2, name);
    if (!b)
        return tv_undefined(name);
    tv f = {.kind = TV_FUNCTION, .function = llm_tv_alloc(h, 1, sizeof(tv_function))};
    *f.function = (tv_function){b, {.kind = TV_LOOP, .loop = l}};
    return f;
}

/* --- attributes and elements ------------------------------------------------------------------ */

_Noreturn static void undefined_has_none(tv_heap *h, tv object, ggl_str name) {
    llm_tv_fail(h, GGL_FORMAT, "'%.*s' is undefined, so it has no '%.*s'", (int)object.text.n,
                object.text.s, (int)(name.n < 60 ? name.n : 60), name.s);
}

tv llm_tv_attribute(tv_heap *h, tv object, ggl_str name) {
    if (object.kind == TV_UNDEFINED)
        undefined_has_none(h, object, name);
    if (object.kind == TV_LOOP)
        return llm_tv_loop_attribute(h, object.loop, name);
    const tv_builtin *b = llm_tv_method(object.kind, name);
    if (b) {
        tv f = {.kind = TV_FUNCTION, .function = llm_tv_alloc(h, 1, sizeof(tv_function))};
        *f.function = (tv_function){b, object};
        return f;
    }
    llm_tv_step(h, name.n / 16);
    const tv *v = object.kind == TV_DICT || object.kind == TV_NAMESPACE
                      ? llm_tv_dict_find(object.dict, name)
                      : NULL;
    return v ? *v : tv_undefined(name);
}

/* The index of an element among n, counted from the end if negative; SIZE_MAX if none. */
static size_t place(int64_t i, size_t n) {
    if (i < 0)
        i += (int64_t)n;
    return i < 0 || (size_t)i >= n ? SIZE_MAX : (size_t)i;
}

/* True if the value can be no key, as it can change. */
static bool is_unhashable(tv v) {
    return v.kind == TV_LIST || v.kind == TV_DICT;
}

tv llm_tv_element(tv_heap *h, tv object, tv key) {
    if (object.kind == TV_UNDEFINED)
        undefined_has_none(h, object, llm_tv_to_str(h, key));
    if (object.kind == TV_DICT || object.kind == TV_NAMESPACE) {
        const tv *v = is_unhashable(key) ? NULL : llm_tv_dict_get(h, object.dict, key);
        if (v)
            return *v;
    }
    if (key.kind == TV_BOOL)
        key = tv_int(key.truth);
    if (key.kind == TV_INT && tv_is_list(object)) {
        const size_t i = place(key.integer, object.list->n);
        return i == SIZE_MAX ? tv_undefined(llm_tv_to_str(h, key)) : object.list->at[i];
    }
    if (key.kind == TV_INT && object.kind == TV_STRING) {
        const size_t i = place(key.integer, llm_tv_length(h, object));
        if (i == SIZE_MAX)
            return tv_undefined(llm_tv_to_str(h, key));
        size_t from = llm_tv_char_at(object.text, i), to = from;
        llm_tv_next_char(object.text, &to);
        return tv_str((ggl_str){object.text.s + from, to - from});
    }
    return key.kind == TV_STRING ? llm_tv_attribute(h, object, key.text)
                                 : tv_undefined(llm_tv_to_str(h, key));
}

tv llm_tv_path(tv_heap *h, tv object, ggl_str path, const tv *otherwise) {
    for (size_t i = 0; i <= path.n;) {
        const char *dot = i < path.n ? memchr(path.s + i, '.', path.n - i) : NULL;
        const ggl_str part = {path.s + i, (dot ? (size_t)(dot - path.s) : path.n) - i};
        bool digits = part.n > 0 && part.n < 10;
        int64_t number = 0;
        for (size_t k = 0; k < part.n && digits; k++) {
            digits = part.s[k] >= '0' && part.s[k] <= '9';
            number = number * 10 + (part.s[k] - '0');
        }
        object = llm_tv_element(h, object, digits ? tv_int(number) : tv_str(part));
        if (object.kind == TV_UNDEFINED && otherwise && otherwise->kind != TV_NONE)
            object = *otherwise;
        i += part.n + 1;
    }
    return object;
}

/* --- slices ----------------------------------------------------------------------------------- */

/* A bound of a slice of n elements, as Python moves it into lo .. hi. */
static int64_t bound(tv_heap *h, const tv *v, int64_t absent, int64_t n, int64_t lo, int64_t hi) {
    if (!v)
        return absent;
    int64_t i = llm_tv_want_int(h, *v, "a bound of a slice");
    if (i < 0)
        i = i < -n ? -1 : i + n;
    return i < lo ? lo : i > hi ? hi : i;
}

tv llm_tv_slice(tv_heap *h, tv object, const tv *first, const tv *end, const tv *step) {
    if (object.kind != TV_STRING && !tv_is_list(object))
        llm_tv_fail(h, GGL_FORMAT, "%s cannot be sliced", llm_tv_kind_text(object));
    const int64_t by = step ? llm_tv_want_int(h, *step, "the step of a slice") : 1;
    const int64_t n = (int64_t)llm_tv_length(h, object);
    if (by == 0)
        llm_tv_fail(h, GGL_FORMAT, "the step of a slice is 0");
    const int64_t lo = by > 0 ? 0 : -1, hi = by > 0 ? n : n - 1;
    const int64_t from = bound(h, first, by > 0 ? 0 : n - 1, n, lo, hi),
                  to = bound(h, end, by > 0 ? n : -1, n, lo, hi);
    if (object.kind == TV_STRING && by == 1) {
        const size_t a = llm_tv_char_at(object.text, (size_t)from);
        ggl_str rest = {object.text.s + a, object.text.n - a};
        rest.n = to > from ? llm_tv_char_at(rest, (size_t)(to - from)) : 0;
        return tv_str(rest);
    }
    const tv_list *all = llm_tv_elements(h, object);
    tv list = llm_tv_new_list(h, object.kind == TV_STRING ? TV_LIST : object.kind);
    tv_text text = {0};
    for (int64_t i = from; by > 0 ? i < to : i > to;) {
        if (object.kind == TV_STRING)
            llm_tv_put_str(h, &text, all->at[i]);
        else
            llm_tv_push(h, list, all->at[i]);
        if (__builtin_add_overflow(i, by, &i))
            break;
    }
    return object.kind == TV_STRING ? tv_str(llm_tv_done(&text)) : list;
}
