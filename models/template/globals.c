/* Global functions and tests. */
#include <string.h>

#include "builtins.h"
#include "strings.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* --- functions -------------------------------------------------------------------------------- */

static tv f_range(tv_heap *h, tv self, const tv_args *a) {
    (void)self;
    const int64_t one = llm_tv_want_int(h, *a->at[0], "a bound of range");
    const int64_t from = a->at[1] ? one : 0,
                  to = a->at[1] ? llm_tv_want_int(h, *a->at[1], "a bound of range") : one,
                  by = a->at[2] ? llm_tv_want_int(h, *a->at[2], "the step of range") : 1;
    if (by == 0)
        llm_tv_fail(h, GGL_FORMAT, "the step of range is 0");
    tv list = llm_tv_new_list(h, TV_LIST);
    for (int64_t i = from; by > 0 ? i < to : i > to;) {
        llm_tv_push(h, list, tv_int(i));
        if (__builtin_add_overflow(i, by, &i))
            break;
    }
    return list;
}

/* The items of a dict, if one is given, and those given by name. */
static tv new_dict(tv_heap *h, const tv_args *a) {
    tv d = llm_tv_new_dict(h);
    if (a->at[0] && a->at[0]->kind != TV_DICT && a->at[0]->kind != TV_NAMESPACE)
        llm_tv_fail(h, GGL_FORMAT, "a dict is made from a dict, not from %s",
                    llm_tv_kind_text(*a->at[0]));
    const tv_dict *from[] = {a->at[0] ? a->at[0]->dict : NULL, a->named};
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; from[k] && i < from[k]->n; i++)
            llm_tv_dict_set(h, d.dict, from[k]->item[i].key, from[k]->item[i].value);
    return d;
}

static tv f_dict(tv_heap *h, tv self, const tv_args *a) {
    (void)self;
    return new_dict(h, a);
}

static tv f_namespace(tv_heap *h, tv self, const tv_args *a) {
    (void)self;
    tv d = new_dict(h, a);
    d.kind = TV_NAMESPACE;
    return d;
}

static tv f_raise(tv_heap *h, tv self, const tv_args *a) {
    (void)self;
    const ggl_str s = llm_tv_to_str(h, *a->at[0]);
    if (h->refuses_bare)
        llm_tv_fail_bare(h, GGL_USAGE, s);
    llm_tv_fail(h, GGL_USAGE, "the template refuses this conversation: %.*s",
                (int)(s.n < 1000 ? s.n : 1000), s.s);
}

static tv f_strftime(tv_heap *h, tv self, const tv_args *a) {
    (void)self;
    tv_text t = {0};
    llm_tv_put_time(h, &t, llm_tv_want_str(h, *a->at[0], "the format of strftime_now"));
    return tv_str(llm_tv_done(&t));
}

const tv_builtin *llm_tv_global(ggl_str name) {
    static const tv_builtin table[] = {
        {"range", "start stop? step?", f_range}, {"dict", "items? **", f_dict},
        {"namespace", "items? **", f_namespace}, {"raise_exception", "message", f_raise},
        {"strftime_now", "format", f_strftime},
    };
    return llm_tv_lookup(table, COUNT(table), name);
}

/* --- tests ------------------------------------------------------------------------------------ */

#define TEST(name, ...)                                                                            \
    static tv name(tv_heap *h, tv v, const tv_args *a) {                                           \
        (void)h, (void)a;                                                                          \
        return tv_bool(__VA_ARGS__);                                                               \
    }

static bool has_rest(tv_heap *h, tv v, tv by, int64_t rest) {
    return llm_tv_equal(h, llm_tv_binary(h, '%', v, by), tv_int(rest));
}

TEST(t_defined, v.kind != TV_UNDEFINED)
TEST(t_undefined, v.kind == TV_UNDEFINED)
TEST(t_none, v.kind == TV_NONE)
TEST(t_boolean, v.kind == TV_BOOL)
TEST(t_true, v.kind == TV_BOOL && v.truth)
TEST(t_false, v.kind == TV_BOOL && !v.truth)
TEST(t_integer, v.kind == TV_INT || llm_tv_is_wide(v))
TEST(t_float, v.kind == TV_FLOAT && !llm_tv_is_wide(v))
TEST(t_number, tv_is_number(v))
TEST(t_string, v.kind == TV_STRING)
TEST(t_mapping, v.kind == TV_DICT)
TEST(t_sequence,
     tv_is_list(v) || v.kind == TV_DICT || v.kind == TV_STRING || v.kind == TV_UNDEFINED)
TEST(t_iterable, v.kind == TV_ITERATOR || llm_tv_truth(t_sequence(h, v, a)))
TEST(t_callable, v.kind == TV_FUNCTION || v.kind == TV_MACRO || v.kind == TV_UNDEFINED)
TEST(t_even, has_rest(h, v, tv_int(2), 0))
TEST(t_odd, has_rest(h, v, tv_int(2), 1))
TEST(t_divisible, has_rest(h, v, *a->at[0], 0))
TEST(t_lower, llm_tv_is_case(h, llm_tv_to_str(h, v), false))
TEST(t_upper, llm_tv_is_case(h, llm_tv_to_str(h, v), true))
TEST(t_eq, llm_tv_equal(h, v, *a->at[0]))
TEST(t_ne, !llm_tv_equal(h, v, *a->at[0]))
TEST(t_lt, llm_tv_compare(h, v, *a->at[0], "<") < 0)
TEST(t_le, llm_tv_compare(h, v, *a->at[0], "<=") <= 0)
TEST(t_gt, llm_tv_compare(h, v, *a->at[0], ">") > 0)
TEST(t_ge, llm_tv_compare(h, v, *a->at[0], ">=") >= 0)
TEST(t_in, llm_tv_contains(h, *a->at[0], v))
TEST(t_same, v.kind == a->at[0]->kind && llm_tv_equal(h, v, *a->at[0]))
TEST(t_filter, v.kind == TV_STRING && llm_tv_filter(v.text))
TEST(t_test, v.kind == TV_STRING && llm_tv_test(v.text))

const tv_builtin *llm_tv_test(ggl_str name) {
    static const tv_builtin table[] = {
        {"defined", "", t_defined},
        {"undefined", "", t_undefined},
        {"none", "", t_none},
        {"boolean", "", t_boolean},
        {"true", "", t_true},
        {"false", "", t_false},
        {"integer", "", t_integer},
        {"float", "", t_float},
        {"number", "", t_number},
        {"string", "", t_string},
        {"mapping", "", t_mapping},
        {"iterable", "", t_iterable},
        {"sequence", "", t_sequence},
        {"callable", "", t_callable},
        {"even", "", t_even},
        {"odd", "", t_odd},
        {"divisibleby", "num", t_divisible},
        {"lower", "", t_lower},
        {"upper", "", t_upper},
        {"==", "other", t_eq},
        {"!=", "other", t_ne},
        {"<", "other", t_lt},
        {"<=", "other", t_le},
        {">", "other", t_gt},
        {">=", "other", t_ge},
        {"eq", "other", t_eq},
        {"equalto", "other", t_eq},
        {"ne", "other", t_ne},
        {"lt", "other", t_lt},
        {"lessthan", "other", t_lt},
        {"le", "other", t_le},
        {"gt", "other", t_gt},
        {"greaterthan", "other", t_gt},
        {"ge", "other", t_ge},
        {"in", "seq", t_in},
        {"sameas", "other", t_same},
        {"filter", "", t_filter},
        {"test", "", t_test},
    };
    return llm_tv_lookup(table, COUNT(table), name);
}
