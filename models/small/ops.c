/* Which function of the runtime in small/ runs an operator, and the numbers that it gets: a row for each. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "program.h"

/* The forms of sources: rows rounded for products, and tables of cosines. */
enum { FORM_BF16 = 1, FORM_Q8, FORM_ROPE };
enum { COLUMN_BLOCK = 48 }; /* bytes of cpu_qblock in backends/cpu/kernels.h, for 32 elements */

typedef enum type_rule {
    ANY,   /* fill() checks them */
    F32,   /* all operands are f32 */
    WORDS, /* all operands have the same type, of 4 bytes */
} type_rule;

/* Sets the numbers. */
typedef ggl_status fill_fn(const ggl_step *s, small_call *out, ggl_error *err);

typedef struct row {
    const char *run, *kernel;
    int n_views; /* the least */
    type_rule types;
    bool in_place;
    fill_fn *fill; /* NULL: there is nothing to do */
} row;

static ggl_status fail_type(const ggl_step *s, const ggl_operand *o, ggl_error *err) {
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "the operator '%s' of %s values is not in the runtime for small boards",
                    s->node->call ? s->node->call : ggl_op_get(s->node->op).name,
                    ggl_type_get(o->type)->name);
}

/* --- numbers ---------------------------------------------------------------------------------- */

/* The first number, or the first two. */
static ggl_status fill_numbers(const ggl_step *s, small_call *out, ggl_error *err) {
    (void)err;
    for (int k = 0; k < 2 && k < s->node->n_num; k++)
        out->n[k] = (int64_t)s->node->num[k];
    return GGL_OK;
}

static ggl_status fill_rms(const ggl_step *s, small_call *out, ggl_error *err) {
    (void)err;
    out->f[0] = s->node->num[0];
    return GGL_OK;
}

static ggl_status fill_l2(const ggl_step *s, small_call *out, ggl_error *err) {
    (void)err;
    out->f[0] = s->node->num[0] * s->node->num[0];
    return GGL_OK;
}

static ggl_status fill_cast(const ggl_step *s, small_call *out, ggl_error *err) {
    (void)out;
    return s->dst.type == GGL_F32 ? GGL_OK : fail_type(s, &s->dst, err);
}

/* Rows of the same type, or decoded to f32. */
static ggl_status fill_copy(const ggl_step *s, small_call *out, ggl_error *err) {
    (void)out;
    return s->src[0].type == s->dst.type || s->dst.type == GGL_F32 ? GGL_OK
                                                                   : fail_type(s, &s->dst, err);
}

static ggl_status fill_pick(const ggl_step *s, small_call *out, ggl_error *err) {
    out->n[0] = s->node->src[PICK_T]->n_dims - 1;
    out->n[1] = s->node->src[PICK_I]->n_dims > 0;
    return s->src[PICK_I].type == GGL_I32 ? fill_copy(s, out, err)
                                          : fail_type(s, &s->src[PICK_I], err);
}

/* x ** 2 has the bits of x * x: docs/numeric.md, section 2. */
static ggl_status fill_pow(const ggl_step *s, small_call *out, ggl_error *err) {
    const ggl_tensor *by = s->node->src[1];
    const float two = 2;
    (void)err;
    if (by->op == GGL_OP_CONST && by->type == GGL_F32 && by->size == sizeof two &&
        memcmp(by->data, &two, sizeof two) == 0) {
        snprintf(out->kernel, sizeof out->kernel, "binary_MUL");
        out->squares = true;
    }
    return GGL_OK;
}

static ggl_status fill_linear(const ggl_step *s, small_call *out, ggl_error *err) {
    const ggl_operand *x = &s->src[LINEAR_X], *w = &s->src[LINEAR_W], *bias = &s->src[LINEAR_BIAS];
    if (!ggl_type_has_products(w->type) || w->nb[0] != ggl_type_get(w->type)->size)
        return fail_type(s, w, err);
    if (!x->form && x->type != GGL_F32)
        return fail_type(s, x, err);
    if (s->n_src > LINEAR_BIAS && bias->region >= 0 && bias->type != GGL_F32)
        return fail_type(s, bias, err);
    snprintf(out->kernel, sizeof out->kernel, "rows_%s", ggl_type_get(w->type)->name);
    out->n[0] = ggl_is_batched(s->node->src[LINEAR_W]);
    return GGL_OK;
}

static ggl_status fill_rope(const ggl_step *s, small_call *out, ggl_error *err) {
    const ggl_operand *f = &s->src[ROPE_HALF_F];
    if (s->src[0].type != GGL_F32 || (f->type != GGL_F32 && f->type != GGL_F64))
        return fail_type(s, s->src[0].type != GGL_F32 ? &s->src[0] : f, err);
    out->n[0] = f->ne[0];
    return GGL_OK;
}

static ggl_status fill_cache(const ggl_step *s, small_call *out, ggl_error *err) {
    (void)err;
    for (int k = 0; k < 2; k++)
        out->store[k] = s->node->store[k];
    return GGL_OK;
}

static ggl_status fill_attend(const ggl_step *s, small_call *out, ggl_error *err) {
    const ggl_tensor *t = s->node;
    for (int k = 0; k < s->n_src; k++)
        if (s->src[k].region >= 0 && k != ATTEND_POS && k != ATTEND_SLOT && k != ATTEND_PAGE &&
            s->src[k].type != GGL_F32)
            return fail_type(s, &s->src[k], err);
    if (s->n_src > ATTEND_END && s->src[ATTEND_END].region >= 0)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "attention to later positions is not in the runtime for small boards");
    if (s->n_src > ATTEND_CHOSEN && s->src[ATTEND_CHOSEN].region >= 0)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "attention to chosen rows is not in the runtime for small boards");
    const int64_t e = s->dst.ne[0];
    for (int k = 0; k < 2; k++)
        out->store[k] = t->src[ATTEND_KV]->store[k];
    out->f[0] = isnan(t->num[ATTEND_SCALE]) ? 1 / sqrt((double)s->src[ATTEND_Q].ne[0])
                                            : t->num[ATTEND_SCALE];
    out->f[1] = isnan(t->num[ATTEND_CAP]) ? 0 : t->num[ATTEND_CAP];
    out->n[0] = ggl_attend_window(t);
    out->scratch = (size_t)(3 * e + (out->store[1] ? 0 : GGL_PAGE * e)) * sizeof(float) +
                   (ggl_type_get(out->store[0]->type)->quantized
                        ? (size_t)s->src[ATTEND_Q].ne[0] / 32 * COLUMN_BLOCK
                        : 0);
    return GGL_OK;
}

static ggl_status fill_state(const ggl_step *s, small_call *out, ggl_error *err) {
    (void)err;
    out->store[0] = s->node->store[0];
    return GGL_OK;
}

static ggl_status fill_keep(const ggl_step *s, small_call *out, ggl_error *err) {
    (void)err;
    out->store[0] = s->node->src[KEEP_STATE]->store[0];
    return GGL_OK;
}

/* --- rows ------------------------------------------------------------------------------------- */

#define UNARY(NAME)                                                                                \
    { "unary", "unary_" #NAME, 2, F32, true, NULL }
#define BINARY(NAME, fill)                                                                         \
    { "binary", "binary_" #NAME, 3, F32, true, fill }

static const row op_row[GGL_OP_COUNT] = {
    [GGL_OP_ADD] = BINARY(ADD, NULL),
    [GGL_OP_SUB] = BINARY(SUB, NULL),
    [GGL_OP_MUL] = BINARY(MUL, NULL),
    [GGL_OP_DIV] = BINARY(DIV, NULL),
    [GGL_OP_POW] = BINARY(POW, fill_pow),
    [GGL_OP_MOD] = BINARY(MOD, NULL),
    [GGL_OP_EQ] = BINARY(EQ, NULL),
    [GGL_OP_NE] = BINARY(NE, NULL),
    [GGL_OP_LT] = BINARY(LT, NULL),
    [GGL_OP_LE] = BINARY(LE, NULL),
    [GGL_OP_GT] = BINARY(GT, NULL),
    [GGL_OP_GE] = BINARY(GE, NULL),
    [GGL_OP_MIN] = BINARY(MIN, NULL),
    [GGL_OP_MAX] = BINARY(MAX, NULL),
    [GGL_OP_WHERE] = {"where", NULL, 4, F32, true, NULL},
    [GGL_OP_EXP] = UNARY(EXP),
    [GGL_OP_LOG] = UNARY(LOG),
    [GGL_OP_SQRT] = UNARY(SQRT),
    [GGL_OP_FLOOR] = UNARY(FLOOR),
    [GGL_OP_ABS] = UNARY(ABS),
    [GGL_OP_TANH] = UNARY(TANH),
    [GGL_OP_ERF] = UNARY(ERF),
    [GGL_OP_SIGMOID] = UNARY(SIGMOID),
    [GGL_OP_SIN] = UNARY(SIN),
    [GGL_OP_COS] = UNARY(COS),
    [GGL_OP_CAST] = {"cast", NULL, 2, ANY, false, fill_cast},
    [GGL_OP_SUM] = {"sum", NULL, 2, F32, false, fill_numbers},
    [GGL_OP_AMAX] = {"amax", NULL, 2, F32, false, fill_numbers},
    [GGL_OP_RANK] = {"rank", NULL, 2, F32, false, NULL},
    [GGL_OP_TOPK] = {"topk", NULL, 2, ANY, false, NULL},
    [GGL_OP_PICK] = {"pick", NULL, 3, ANY, false, fill_pick},
    [GGL_OP_RESHAPE] = {"copy", NULL, 2, ANY, false, fill_copy},
    [GGL_OP_SPLIT] = {"split", NULL, 2, WORDS, false, fill_numbers},
    [GGL_OP_CONCAT] = {"concat", NULL, 3, WORDS, false, fill_numbers},
    [GGL_OP_REPEAT] = {"repeat", NULL, 2, WORDS, false, NULL},
    [GGL_OP_TRANSPOSE] = {"transpose", NULL, 2, WORDS, false, fill_numbers},
    [GGL_OP_IOTA] = {"iota", NULL, 1, F32, false, NULL},
    [GGL_OP_LINEAR] = {"linear", NULL, 5, ANY, false, fill_linear},
    [GGL_OP_ROPE_HALF] = {"rope", "rope_half", 4, ANY, false, fill_rope},
    [GGL_OP_ROPE_PAIR] = {"rope", "rope_pair", 4, ANY, false, fill_rope},
    [GGL_OP_CACHE] = {"cache", NULL, 6, ANY, false, fill_cache},
    [GGL_OP_ATTEND] = {"attend", NULL, 14, ANY, false, fill_attend},
    [GGL_OP_STATE] = {"state", NULL, 2, ANY, false, fill_state},
    [GGL_OP_KEEP] = {"keep", NULL, 3, ANY, false, fill_keep},
};

/* Composites that are quicker than their bodies; the others run by these. */
static const row composite_row[GGL_COMPOSITE_COUNT] = {
    [GGL_COMPOSITE_RELU] = UNARY(RELU),
    [GGL_COMPOSITE_SILU] = UNARY(SILU),
    [GGL_COMPOSITE_GELU] = UNARY(GELU),
    [GGL_COMPOSITE_GELU_ERF] = UNARY(GELU_ERF),
    [GGL_COMPOSITE_GELU_QUICK] = UNARY(GELU_QUICK),
    [GGL_COMPOSITE_SOFTPLUS] = UNARY(SOFTPLUS),
    [GGL_COMPOSITE_SOFTMAX] = {"softmax", NULL, 2, F32, true, NULL},
    [GGL_COMPOSITE_RMS] = {"rms", NULL, 2, F32, true, fill_rms},
    [GGL_COMPOSITE_CENTER] = {"center", NULL, 2, F32, true, NULL},
    [GGL_COMPOSITE_L2] = {"l2", NULL, 2, F32, true, fill_l2},
    [GGL_COMPOSITE_NORMALISED] = {"normalised", NULL, 2, F32, true, NULL},
};

/* Returns the row of a node; its run is NULL if there is none. */
static const row *row_of(const ggl_tensor *node) {
    return node->op == GGL_OP_CALL ? &composite_row[ggl_composite_of(node)] : &op_row[node->op];
}

const char *llm_small_refuses(const ggl_backend *b, const ggl_tensor *node) {
    (void)b;
    return row_of(node)->run ? NULL : "not in the runtime for small boards";
}

bool llm_small_in_place(const ggl_tensor *node) {
    return row_of(node)->in_place;
}

ggl_form llm_small_form(const ggl_backend *b, const ggl_step *s) {
    (void)b;
    const ggl_form none = {.with = -1};
    const ggl_op op = s->node->op;
    if (op == GGL_OP_ROPE_HALF || op == GGL_OP_ROPE_PAIR)
        return (ggl_form){.kind = FORM_ROPE,
                          .src = ROPE_HALF_AT,
                          .with = ROPE_HALF_F,
                          .row_size = (size_t)s->src[ROPE_HALF_F].ne[0] * 2 * sizeof(float),
                          .num = s->node->num[ROPE_HALF_MAG]};
    if (op != GGL_OP_LINEAR || s->src[LINEAR_X].type != GGL_F32)
        return none;
    const ggl_type type = s->src[LINEAR_W].type;
    const size_t blocks = (size_t)(s->src[LINEAR_X].ne[0] + 31) / 32;
    if (type == GGL_BF16)
        return (ggl_form){.kind = FORM_BF16, .with = -1, .row_size = blocks * 32 * sizeof(float)};
    if (ggl_type_get(type)->quantized)
        return (ggl_form){.kind = FORM_Q8, .with = -1, .row_size = blocks * COLUMN_BLOCK};
    return none;
}

/* --- calls ------------------------------------------------------------------------------------ */

static ggl_status call_of_form(const ggl_step *s, small_call *out, ggl_error *err) {
    if (s->form != FORM_ROPE) {
        *out = (small_call){.run = "columns", .n_views = 2};
        snprintf(out->kernel, sizeof out->kernel, "columns_%s", s->form == FORM_Q8 ? "q8" : "bf16");
        return GGL_OK;
    }
    const ggl_operand *f = &s->src[1];
    *out = (small_call){.run = "rope_table",
                        .n_views = 3,
                        .n = {f->type == GGL_F64},
                        .d = s->node->num[ROPE_HALF_MAG]};
    return f->type == GGL_F32 || f->type == GGL_F64 ? GGL_OK : fail_type(s, f, err);
}

static ggl_status check_types(const ggl_step *s, type_rule types, ggl_error *err) {
    for (int k = -1; k < s->n_src && types != ANY; k++) {
        const ggl_operand *o = k < 0 ? &s->dst : &s->src[k];
        if (o->region >= 0 && (types == F32 ? o->type != GGL_F32
                                            : o->type != s->dst.type ||
                                                  ggl_type_get(o->type)->size != sizeof(int32_t)))
            return fail_type(s, o, err);
    }
    return GGL_OK;
}

ggl_status llm_small_call(const ggl_step *s, small_call *out, ggl_error *err) {
    if (s->kind == GGL_STEP_FORM)
        return call_of_form(s, out, err);
    const row *r = row_of(s->node);
    if (!r->run)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "the operator '%s' is not in the runtime for small boards",
                        s->node->call ? s->node->call : ggl_op_get(s->node->op).name);
    *out = (small_call){.run = r->run, .n_views = r->n_views};
    snprintf(out->kernel, sizeof out->kernel, "%s", r->kernel ? r->kernel : "");
    const ggl_status st = check_types(s, r->types, err);
    return st == GGL_OK && r->fill ? r->fill(s, out, err) : st;
}
