/* Arithmetic, as Python does it. */
#include <math.h>
#include <string.h>

#include "builtins.h"
#include "strings.h"

void llm_tv_no_operation(tv_heap *h, const char *op, tv a, tv b) {
    const tv u = a.kind == TV_UNDEFINED ? a : b;
    if (u.kind == TV_UNDEFINED)
        llm_tv_fail(h, GGL_FORMAT, "'%.*s' is undefined, and %s needs a value", (int)u.text.n,
                    u.text.s, op);
    llm_tv_fail(h, GGL_FORMAT, "%s does not work with %s and %s", op, llm_tv_kind_text(a),
                llm_tv_kind_text(b));
}

/* Python's // and %: the quotient is rounded down, and the rest has the divisor's sign. */
static int64_t floor_div(int64_t a, int64_t b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static bool power(int64_t a, int64_t b, int64_t *out) {
    for (*out = 1; b > 0; b >>= 1) {
        if ((b & 1) && __builtin_mul_overflow(*out, a, out))
            return false;
        if (b > 1 && __builtin_mul_overflow(a, a, &a))
            return false;
    }
    return true;
}

static tv integers(tv_heap *h, int op, int64_t a, int64_t b) {
    int64_t c = 0;
    bool fits = true;
    if ((op == '/' || op == 'f' || op == '%') && b == 0)
        llm_tv_fail(h, GGL_FORMAT, "division by zero");
    if (op == '/')
        return tv_float((double)a / (double)b);
    if (op == 'p' && b < 0)
        return tv_float(pow((double)a, (double)b));
    if ((op == 'f' || op == '%') && b == -1)
        fits = op == '%' || !__builtin_sub_overflow((int64_t)0, a, &c);
    else if (op == 'f')
        c = floor_div(a, b);
    else if (op == '%')
        c = a - b * floor_div(a, b);
    else
        fits = op == '+'   ? !__builtin_add_overflow(a, b, &c)
               : op == '-' ? !__builtin_sub_overflow(a, b, &c)
               : op == '*' ? !__builtin_mul_overflow(a, b, &c)
                           : power(a, b, &c);
    if (!fits)
        llm_tv_fail(h, GGL_LIMIT, "the result is not an integer of 64 bits");
    return tv_int(c);
}

static tv numbers(tv_heap *h, int op, double a, double b) {
    if ((op == '/' || op == 'f' || op == '%') && b == 0)
        llm_tv_fail(h, GGL_FORMAT, "division by zero");
    return tv_float(op == '+'   ? a + b
                    : op == '-' ? a - b
                    : op == '*' ? a * b
                    : op == '/' ? a / b
                    : op == 'f' ? floor(a / b)
                    : op == '%' ? a - b * floor(a / b)
                                : pow(a, b));
}

/* A string or list, `times` times. */
static tv repeated(tv_heap *h, tv v, int64_t times) {
    if (v.kind == TV_STRING) {
        tv_text t = {0};
        for (; times > 0 && v.text.n > 0; times--)
            llm_tv_put(h, &t, v.text.s, v.text.n);
        return tv_str(llm_tv_done(&t));
    }
    tv list = llm_tv_new_list(h, v.kind);
    for (; times > 0 && v.list->n > 0; times--)
        for (size_t i = 0; i < v.list->n; i++)
            llm_tv_push(h, list, v.list->at[i]);
    return list;
}

static tv joined(tv_heap *h, tv a, tv b) {
    tv list = llm_tv_new_list(h, a.kind);
    for (size_t i = 0; i < a.list->n; i++)
        llm_tv_push(h, list, a.list->at[i]);
    for (size_t i = 0; i < b.list->n; i++)
        llm_tv_push(h, list, b.list->at[i]);
    return list;
}

/* The text whose end the room behind it follows; NULL: none does. */
static tv_growing *growing_of(tv_heap *h, ggl_str s) {
    for (size_t k = 0; k < sizeof h->growing / sizeof *h->growing; k++)
        if (s.n > 0 && h->growing[k].s == s.s && h->growing[k].n == s.n)
            return &h->growing[k];
    return NULL;
}

/* Templates collect a prompt by `text ~ more`, a message at a time. Its beginning is not copied each time: that would take the square of its length. */
static tv concatenated(tv_heap *h, ggl_str a, ggl_str b) {
    enum { LONG = 1024 };
    tv_growing *g = growing_of(h, a);
    tv_text t = g ? (tv_text){.s = g->s, .n = g->n, .cap = g->cap} : (tv_text){0};
    if (!g)
        llm_tv_put(h, &t, a.s, a.n);
    llm_tv_put(h, &t, b.s, b.n);
    if (!g && t.n >= LONG)
        g = &h->growing[h->next_growing++ % (sizeof h->growing / sizeof *h->growing)];
    if (g)
        *g = (tv_growing){t.s, t.n, t.cap};
    return tv_str(llm_tv_done(&t));
}

/* a + b, where at least one is markup: the other is escaped, unless it is markup, too. */
static tv joined_markup(tv_heap *h, tv a, tv b) {
    tv v = concatenated(h, a.markup ? a.text : llm_tv_escape(h, a.text),
                        b.markup ? b.text : llm_tv_escape(h, b.text));
    v.markup = true;
    return v;
}

tv llm_tv_binary(tv_heap *h, int op, tv a, tv b) {
    const bool a_repeats = a.kind == TV_STRING || tv_is_list(a),
               b_repeats = b.kind == TV_STRING || tv_is_list(b);
    if (op == '~')
        return concatenated(h, llm_tv_to_str(h, a), llm_tv_to_str(h, b));
    if (op == '%' && a.kind == TV_STRING)
        return llm_tv_percent(h, a.text, b);
    if (op == '+' && a.kind == TV_STRING && b.kind == TV_STRING)
        return a.markup || b.markup ? joined_markup(h, a, b) : concatenated(h, a.text, b.text);
    if (op == '+' && tv_is_list(a) && a.kind == b.kind)
        return joined(h, a, b);
    if (op == '*' && a_repeats && (b.kind == TV_INT || b.kind == TV_BOOL))
        return repeated(h, a, llm_tv_want_int(h, b, "a count"));
    if (op == '*' && b_repeats && (a.kind == TV_INT || a.kind == TV_BOOL))
        return repeated(h, b, llm_tv_want_int(h, a, "a count"));
    if (!tv_is_number(a) || !tv_is_number(b)) {
        const char name[] = {(char)op, 0};
        llm_tv_no_operation(h, op == 'f' ? "//" : op == 'p' ? "**" : name, a, b);
    }
    if (a.kind == TV_FLOAT || b.kind == TV_FLOAT)
        return numbers(h, op, llm_tv_want_number(h, a, ""), llm_tv_want_number(h, b, ""));
    return integers(h, op, llm_tv_want_int(h, a, ""), llm_tv_want_int(h, b, ""));
}

tv llm_tv_negated(tv_heap *h, tv v) {
    if (v.kind == TV_FLOAT)
        return tv_float(-v.number);
    return integers(h, '-', 0, llm_tv_want_int(h, v, "the operand of -"));
}
