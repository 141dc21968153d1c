/* The variants of cases, and the texts for cases and forms. */
#include "build.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/types.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const conform_kind *conform_kind_at(int k) {
    static const conform_kind *const kinds[] = {
        &conform_elementwise, &conform_rows,        &conform_moves,
        &conform_products,    &conform_attention,   &conform_spans,
        &conform_composites,  &conform_recurrences, &conform_kept};
    return k >= 0 && k < (int)(sizeof kinds / sizeof *kinds) ? kinds[k] : NULL;
}

/* --- variants --------------------------------------------------------------------------------- */

static const ggl_type some_types[] = {GGL_F32, GGL_F16, GGL_BF16, GGL_Q8_0, GGL_Q4_0};
static const ggl_type kept_types[] = {GGL_F16, GGL_F32, GGL_BF16, GGL_Q8_0, GGL_Q4_0};
enum { N_SOME = 5, N_KEPT = 5, EDGE_FORMS = 2 };

/* Sets *out to the n-th type that a weight can have; false: there are fewer. */
static bool weight_type(int n, ggl_type *out) {
    for (int i = 0; ggl_type_at(i); i++) {
        *out = ggl_type_at(i)->type;
        if (ggl_type_has_products(*out) && n-- == 0)
            return true;
    }
    return false;
}

/* Returns how many types a case's forms are run with. */
static int n_types(const conform_case *info) {
    int n = 0;
    ggl_type t;
    switch (info->types) {
    case CONFORM_AS_FORM:
        return 1;
    case CONFORM_SOME_WEIGHT:
        return N_SOME;
    case CONFORM_ANY_KEPT:
        return N_KEPT * N_KEPT;
    case CONFORM_ANY_WEIGHT:
    case CONFORM_NOT_F32:
        break;
    }
    while (weight_type(n, &t))
        n++;
    return info->types == CONFORM_NOT_F32 ? n - 1 : n;
}

/* Sets the n-th of these types. */
static void set_type(const conform_case *info, conform_form *f, int n) {
    if (info->types == CONFORM_SOME_WEIGHT)
        f->type = some_types[n];
    if (info->types == CONFORM_ANY_WEIGHT)
        (void)weight_type(n, &f->type);
    if (info->types == CONFORM_NOT_F32) /* f32 is the first type */
        (void)weight_type(n + 1, &f->type);
    if (info->types == CONFORM_ANY_KEPT) {
        f->type_k = kept_types[n % N_KEPT];
        f->type_v = kept_types[n / N_KEPT];
    }
}

static int n_edge_forms(const conform_case *info) {
    return info->n_forms < EDGE_FORMS ? info->n_forms : EDGE_FORMS;
}

static int n_edges(const conform_case *info) {
    int n = 0;
    for (int v = CONFORM_NAN; v < CONFORM_N_VALUES; v++)
        n += (info->edges >> v) & 1;
    return n;
}

static conform_values nth_edge(const conform_case *info, int n) {
    int v = CONFORM_NAN;
    while (!(info->edges >> v & 1) || n-- > 0)
        v++;
    return (conform_values)v;
}

int conform_n_variants(const conform_case *info) {
    return n_types(info) * (info->n_forms + n_edges(info) * n_edge_forms(info));
}

static void set_defaults(conform_form *f) {
    f->n = f->n ? f->n : 5;
    f->n_batch = f->n_batch ? f->n_batch : f->n;
    f->n_slots = f->n_slots ? f->n_slots : 1;
}

conform_form conform_variant(const conform_case *info, int variant) {
    int which = variant / n_types(info), edge = which - info->n_forms;
    conform_form f = info->form[edge < 0 ? which : edge % n_edge_forms(info)];
    if (edge >= 0)
        f.values = nth_edge(info, edge / n_edge_forms(info));
    set_type(info, &f, variant % n_types(info));
    set_defaults(&f);
    f.seed = 77 + (uint64_t)variant;
    return f;
}

conform_form conform_large(const conform_case *info, const conform_form *typed) {
    conform_form f = *info->large;
    f.type = typed->type;
    f.type_k = typed->type_k;
    f.type_v = typed->type_v;
    set_defaults(&f);
    f.seed = 77;
    return f;
}

double conform_bound(const conform_case *info, const conform_form *form, bool halves) {
    if (form->type == GGL_F16 && halves && info->bound_halves > 0)
        return info->bound_halves;
    if (form->type == GGL_BF16 && info->bound_bf16 > 0)
        return info->bound_bf16;
    const ggl_type type = info->op == GGL_OP_ATTEND ? form->type_k : form->type;
    if (ggl_type_get(type)->quantized && info->bound_quantized > 0)
        return info->bound_quantized;
    return info->bound;
}

/* --- names ------------------------------------------------------------------------------------ */

const char *conform_op_name(const conform_case *info) {
    return info->call ? info->call : ggl_op_get(info->op).name;
}

const char *conform_type_name(const conform_case *info, const conform_form *form, char *buf,
                              size_t size) {
    if (info->op == GGL_OP_ATTEND)
        snprintf(buf, size, "%s, %s", ggl_type_get(form->type_k)->name,
                 ggl_type_get(form->type_v)->name);
    else
        snprintf(buf, size, "%s", ggl_type_get(form->type)->name);
    return buf;
}

typedef struct text {
    char *p;
    size_t n, size;
} text;

#if defined(__GNUC__) || defined(__clang__)
__attribute__((format(printf, 2, 3)))
#endif
static void
say(text *t, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    int n = t->n < t->size ? vsnprintf(t->p + t->n, t->size - t->n, fmt, args) : 0;
    t->n += n > 0 ? (size_t)n : 0;
    va_end(args);
}

static void say_operand(text *t, const conform_build *c, const ggl_tensor *x) {
    char shape[80];
    if (x->op == GGL_OP_CACHE) {
        say(t, "cache(");
        say_operand(t, c, x->src[0]);
        say(t, " as %s, ", ggl_type_get(c->f.type_k)->name);
        say_operand(t, c, x->src[1]);
        say(t, " as %s)", ggl_type_get(c->f.type_v)->name);
        return;
    }
    if (x->op == GGL_OP_CONST && x->n_dims == 0) {
        say(t, "%g", *(const double *)x->data);
        return;
    }
    if (x->type != GGL_F32 && x->op != GGL_OP_CONST)
        say(t, "%s ", ggl_type_get(x->type)->name);
    say(t, "%s", x->n_dims ? ggl_shape_text(x, shape, sizeof shape) : "one");
    if (ggl_is_batched(x))
        say(t, " x %" PRId64, c->f.n);
}

static void say_numbers(text *t, const ggl_tensor *x) {
    ggl_op_info info = ggl_op_get(x->op);
    int k = 0;
    for (int i = 0; i < info.n_params; i++) {
        ggl_param p = ggl_op_param(x->op, i);
        if (p.kind != GGL_PARAM_NUMBER)
            continue;
        for (bool first = true; k < x->n_num && (first || p.variadic); first = false, k++)
            if (!isnan(x->num[k]))
                say(t, first ? ", %s %g" : "%s %g", first ? p.name : "", x->num[k]);
    }
}

static void say_node(text *t, const conform_build *c, const char *name, const ggl_tensor *x) {
    bool infix = x->n_src == 2 && name[0] != '<' && strspn(name, "+-*/%=!<>") == strlen(name);
    infix = infix || (x->n_src == 2 && strspn(name, "<=>") == strlen(name));
    if (!infix)
        say(t, "%s(", name);
    for (int i = 0, n = 0; i < x->n_src; i++)
        if (x->src[i] && x->src[i]->op != GGL_OP_PARAM) {
            if (n++ && infix)
                say(t, " %s ", name);
            else if (n > 1)
                say(t, ", ");
            say_operand(t, c, x->src[i]);
        }
    say_numbers(t, x);
    if (!infix)
        say(t, ")");
}

static void say_form(text *t, const conform_form *f) {
    static const char *const values[CONFORM_N_VALUES] = {
        [CONFORM_ORDINARY] = "",
        [CONFORM_WHOLE] = ", whole numbers",
        [CONFORM_ONES] = ", of ones",
        [CONFORM_NAN] = ", NaN among the values",
        [CONFORM_INF] = ", infinities among the values",
        [CONFORM_TINY] = ", zeros and subnormal numbers among the values",
        [CONFORM_HUGE] = ", huge values",
    };
    if (f->view)
        say(t, ", slices from %" PRId64, f->view);
    say(t, "%s", values[f->values]);
    if (f->n_slots > 1)
        say(t, ", %" PRId64 " sequences", f->n_slots);
    if (f->n_slots > 1 && f->turn > 1)
        say(t, " with %" PRId64 " tokens in turns", f->turn);
    if (f->n_batch < f->n)
        say(t, ", at most %" PRId64 " at once", f->n_batch);
    if (f->chunk > 0)
        say(t, ", %" PRId64 " at a time", f->chunk);
    if (f->chunk < 0)
        say(t, ", the last %" PRId64 " one at a time", -f->chunk);
    if (f->unnamed)
        say(t, ", without the name");
    if (f->alone)
        say(t, ", all else on the reference");
}

void conform_say(const conform_case *info, const conform_build *c, char *buf, size_t size) {
    text t = {buf, 0, size};
    const ggl_tensor *x = conform_node(info, c->g);
    if (x)
        say_node(&t, c, conform_op_name(info), x);
    else
        say(&t, "%s", info->name);
    say_form(&t, &c->f);
}
