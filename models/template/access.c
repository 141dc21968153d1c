/* Attributes and elements of values; the variable `loop`. */
#include <string.h>

#include "builtins.h"

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
