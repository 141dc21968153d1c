/* Operators along a dimension: sums, maxima, norms, softmax, ranks. */
#include <string.h>

#include "rows.h"
#include "shaders/kinds.h"

enum {
    LOCAL = 128,
    LEAST_LOCAL = 32,
    MOST_LOCAL = 256,
    SHORT_ROW = 32,
    NO_KIND = ROW_NORMALISED + 1
};

/* --- one workgroup per row -------------------------------------------------------------------- */

static const struct {
    const char *name;
    uint32_t kind;
} composite[] = {
    {"softmax", ROW_SOFTMAX},       {"rms", ROW_RMS}, {"center", ROW_CENTER}, {"l2", ROW_L2},
    {"normalised", ROW_NORMALISED},
};

/* Four elements per invocation, if the row is long enough. */
uint32_t ggl_vk_row_local(const vk_backend *b, int64_t n) {
    /* without subgroups, linear_vec.comp has a sum of each invocation in shared memory */
    const uint32_t most =
        b->features.subgroup && b->limits.local_size >= MOST_LOCAL ? MOST_LOCAL : LOCAL;
    uint32_t local = LEAST_LOCAL;
    while (local < most && local * 4 < n)
        local *= 2;
    return local;
}

vk_norm ggl_vk_norm_of(const ggl_step *step, int n_links) {
    const ggl_step *last = step + n_links - 1;
    vk_norm l = {.norm = step, .round = last > step && last->kind == GGL_STEP_FORM ? last : NULL};
    if (n_links > 1 && step->node->op == GGL_OP_ADD) {
        l.add = step;
        l.norm = step + 1;
    }
    const ggl_step *next = l.norm + 1;
    if (next <= last && next != l.round)
        l.mul = next;
    return l;
}

const ggl_operand *ggl_vk_normed(const vk_norm *l) {
    return l->mul ? &l->mul->dst : &l->norm->dst;
}

const ggl_operand *ggl_vk_stored(const vk_norm *l, const ggl_operand *result) {
    return result->region >= 0 ? result : &l->round->dst;
}

float ggl_vk_norm_eps(const vk_norm *l) {
    return l->norm->node->n_num > 0 ? (float)l->norm->node->num[0] : 0;
}

/* Binds the norm's addend, weight and rounded result, and sets the constants that say which of them
 * there are, and where. */
static void bind_links(vk_emit *e, vk_call *c, const vk_norm *l, const ggl_operand *result) {
    vk_push_rows *p = &c->push.rows;
    static const ggl_operand absent = {.region = -1};
    const ggl_operand *addend = l->add ? &l->add->src[1] : &absent,
                      *weight = l->mul ? ggl_vk_other(l->mul) : &absent;
    const bool keeps = l->add && l->add->dst.region >= 0;
    vk_spec_rows *s = &c->spec.rows;
    s->addend = l->add != NULL;
    s->keep = keeps;
    s->weight = l->mul != NULL;
    s->round = l->round != NULL;
    s->store = result->region >= 0;
    p->addend_at = ggl_vk_bind(e, c, addend, false);
    ggl_vk_strides(e, addend, p->addend_stride);
    p->sums_at = ggl_vk_bind(e, c, keeps ? &l->add->dst : ggl_vk_stored(l, result), true);
    p->weight_at = ggl_vk_bind(e, c, weight, false);
    ggl_vk_strides(e, weight, p->weight_stride);
    p->blocks_at = ggl_vk_bind(e, c, l->round ? &l->round->dst : ggl_vk_stored(l, result), true);
}

static ggl_status emit_kind(vk_emit *e, uint32_t kind, ggl_error *err) {
    const ggl_operand *x = &e->step->src[0];
    const int64_t rows = ggl_vk_rows(e, x);
    const vk_norm l = ggl_vk_norm_of(e->step, e->step->n_links);
    const ggl_operand *y = ggl_vk_normed(&l);
    vk_call c = {.shader = e->b->features.subgroup ? VK_SHADER_ROWS_SUBGROUP : VK_SHADER_ROWS,
                 VK_SPEC(rows, .local = ggl_vk_row_local(e->b, x->ne[0]), .kind = kind),
                 .groups = {ggl_vk_groups(rows, 1)}};
    vk_push_rows *p = VK_PUSH(&c, rows);
    p->rows = (uint32_t)rows;
    p->n = (uint32_t)x->ne[0];
    p->ne[0] = (uint32_t)ggl_vk_extent(e, x, 1);
    p->ne[1] = (uint32_t)ggl_vk_extent(e, x, 2);
    p->y_at = ggl_vk_bind(e, &c, ggl_vk_stored(&l, y), true);
    p->x_at = ggl_vk_bind(e, &c, x, false);
    ggl_vk_strides(e, x, p->x_stride);
    p->eps = ggl_vk_norm_eps(&l);
    bind_links(e, &c, &l, y);
    return ggl_vk_dispatch(e, &c, err);
}

/* Returns the composite's kind; NO_KIND: rows.comp does not compute it. */
static uint32_t kind_of(const ggl_tensor *node) {
    for (size_t i = 0; i < sizeof composite / sizeof *composite; i++)
        if (node->op == GGL_OP_CALL && node->call && strcmp(composite[i].name, node->call) == 0)
            return composite[i].kind;
    return NO_KIND;
}

static ggl_status emit_rows(vk_emit *e, ggl_error *err) {
    const uint32_t kind = kind_of(e->step->node);
    return kind == NO_KIND ? ggl_fail(err, GGL_UNSUPPORTED, "there is no kernel for it")
                           : emit_kind(e, kind, err);
}

/* True if the step normalizes rows, which a chain may begin with. */
static bool is_norm(const ggl_step *step) {
    const uint32_t kind = step->kind == GGL_STEP_NODE ? kind_of(step->node) : NO_KIND;
    return kind == ROW_RMS || kind == ROW_CENTER || kind == ROW_L2 || kind == ROW_NORMALISED;
}

uint32_t ggl_vk_norm_kind(const vk_norm *l) {
    return kind_of(l->norm->node);
}

int ggl_vk_norm_links(const ggl_step *step, int n) {
    if (n < 1 || !is_norm(step))
        return 0;
    if (step->dst.region >= 0)
        return 1;
    return ggl_vk_and_form(step, n, ggl_vk_feeds(step, n, GGL_OP_MUL) ? 2 : 1);
}

static int rows_chain(const vk_backend *b, const ggl_step *step, int n) {
    (void)b;
    const int links = ggl_vk_norm_links(step, n);
    return links > 0 ? links : 1;
}

const vk_op ggl_vk_op_rows = {.emit = emit_rows,
                              .chain = rows_chain,
                              .refuses = ggl_vk_refuses_all_but_f32,
                              .in_place = true};

/* The chain of a sum and its norm, which begins with the operator of the sum (op_elementwise.c). */
ggl_status ggl_vk_emit_add_norm(vk_emit *e, ggl_error *err) {
    return emit_kind(e, kind_of(e->step[1].node), err);
}

int ggl_vk_add_norm_chain(const vk_backend *b, const ggl_step *step, int n) {
    (void)b;
    if (step->node->op != GGL_OP_ADD || !is_norm(&step[1]))
        return 1;
    for (int k = 0; k < 2; k++)
        if (memcmp(step->src[k].ne, step->dst.ne, sizeof step->dst.ne) != 0)
            return 1;
    return 1 + ggl_vk_norm_links(&step[1], n - 1);
}

/* --- one invocation per result ---------------------------------------------------------------- */

/* Sums up or maximizes x along dimension dim. */
static ggl_status emit_terms(vk_emit *e, uint32_t kind, int dim, ggl_error *err) {
    const ggl_operand *x = &e->step->src[0];
    vk_call c = {.shader = VK_SHADER_REDUCE, VK_SPEC(reduce, .local = LOCAL, .kind = kind)};
    int64_t ne[GGL_MAX_DIMS], count = 1;
    for (int d = 0; d < GGL_MAX_DIMS; d++) {
        ne[d] = d == dim ? 1 : ggl_vk_extent(e, x, d);
        count *= ne[d];
    }
    c.groups[0] = ggl_vk_groups(count, LOCAL);
    vk_push_reduce *p = VK_PUSH(&c, reduce);
    p->count = (uint32_t)count;
    for (int d = 0; d < 3; d++)
        p->ne[d] = (uint32_t)ne[d];
    p->y_at = ggl_vk_bind(e, &c, &e->step->dst, true);
    p->x_at = ggl_vk_bind(e, &c, x, false);
    ggl_vk_strides(e, x, p->x_stride);
    p->terms = (uint32_t)ggl_vk_extent(e, x, dim);
    p->step = ggl_vk_stride(e, x, dim);
    return ggl_vk_dispatch(e, &c, err);
}

static ggl_status emit_reduce(vk_emit *e, ggl_error *err) {
    const int dim = (int)e->step->node->num[SUM_DIM];
    const uint32_t kind = e->step->node->op == GGL_OP_SUM ? ROW_SUM : ROW_AMAX;
    if (dim == 0 && e->step->src[0].ne[0] > SHORT_ROW)
        return emit_kind(e, kind, err);
    return emit_terms(e, kind, dim, err);
}

const vk_op ggl_vk_op_reduce = {.emit = emit_reduce, .refuses = ggl_vk_refuses_all_but_f32};

/* --- order ------------------------------------------------------------------------------------ */

static ggl_status emit_rank(vk_emit *e, ggl_error *err) {
    const ggl_operand *x = &e->step->src[0];
    const int64_t count = ggl_vk_count(e, x);
    vk_call c = {
        .shader = VK_SHADER_RANK, VK_SPEC(rank, LOCAL), .groups = {ggl_vk_groups(count, LOCAL)}};
    vk_push_rank *p = VK_PUSH(&c, rank);
    p->count = (uint32_t)count;
    for (int d = 0; d < 3; d++)
        p->ne[d] = (uint32_t)ggl_vk_extent(e, x, d);
    p->y_at = ggl_vk_bind(e, &c, &e->step->dst, true);
    p->x_at = ggl_vk_bind(e, &c, x, false);
    ggl_vk_strides(e, x, p->x_stride);
    return ggl_vk_dispatch(e, &c, err);
}

static ggl_status emit_topk(vk_emit *e, ggl_error *err) {
    const ggl_operand *x = &e->step->src[0], *y = &e->step->dst;
    const int64_t rows = ggl_vk_extent(e, y, GGL_BATCH_DIM);
    vk_call c = {
        .shader = VK_SHADER_TOPK, VK_SPEC(topk, LOCAL), .groups = {ggl_vk_groups(rows, 1)}};
    vk_push_topk *p = VK_PUSH(&c, topk);
    p->rows = (uint32_t)rows;
    p->n = (uint32_t)x->ne[0];
    p->k = (uint32_t)y->ne[0];
    p->y_at = ggl_vk_bind(e, &c, y, true);
    p->y_batch = ggl_vk_stride(e, y, GGL_BATCH_DIM);
    p->x_at = ggl_vk_bind(e, &c, x, false);
    p->x_batch = ggl_vk_stride(e, x, GGL_BATCH_DIM);
    return ggl_vk_dispatch(e, &c, err);
}

const vk_op ggl_vk_op_rank = {.emit = emit_rank, .refuses = ggl_vk_refuses_all_but_f32};
const vk_op ggl_vk_op_topk = {.emit = emit_topk, .refuses = ggl_vk_refuses_all_but_f32};
