/* Slices of strings and lists. */
#include "builtins.h"

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
