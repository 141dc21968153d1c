/* The operators cache and attend. */
#include <math.h>

#include "vulkan.h"

enum {
    LOCAL = 64,           /* as in attend.comp: one invocation per position of a page */
    QUERIES = 8,          /* most queries of a workgroup */
    SUMS = 32,            /* most sums of an invocation: queries times dimensions */
    SHARED_FLOATS = 2048, /* of queries, in shared memory */
    MOST_DIMS = SUMS * LOCAL,
    SPANS = 32,  /* most workgroups among which the positions of a query are divided */
    GROUPS = 256 /* with fewer workgroups than this, positions are divided among several */
};

/* OPTIONS of shaders/attend.comp */
enum { WINDOW = 1, CAP = 2, SINKS = 4, ALIBI = 8, SPLIT = 16, IN_KEYS = 32, RING = 64 };

static bool has(const ggl_operand *o) {
    return o->region >= 0;
}

/* --- cache ------------------------------------------------------------------------------------ */

/* Returns the shader that stores elements of the type's width, if shaders can; else the one that
 * uses 32-bit words. */
static vk_shader cache_shader(const vk_features *f, ggl_type type) {
    if (ggl_type_get(type)->quantized)
        return f->storage8 ? VK_SHADER_CACHE_ROWS_8 : VK_SHADER_CACHE_ROWS;
    return type != GGL_F32 && f->storage16 ? VK_SHADER_CACHE_ROWS_16 : VK_SHADER_CACHE_ROWS;
}

/* Writes the batch's keys (part 0) or values (part 1) to their store. */
static ggl_status keep_rows(vk_emit *e, int part, ggl_error *err) {
    const ggl_store *s = e->step->node->store[part];
    const ggl_operand *x = &e->step->src[part], *pos = &e->step->src[2], *slot = &e->step->src[3],
                      *page = &e->step->src[4];
    vk_call c = {.shader = cache_shader(&e->b->features, s->type),
                 .spec = {LOCAL, s->type, s->kind == GGL_STORE_KEYS, s->ring},
                 .n_spec = 4};
    const int64_t n_batch = ggl_vk_extent(e, x, GGL_BATCH_DIM),
                  unit = ggl_type_get(s->type)->quantized ? 32 : 4;
    const uint32_t x_at = ggl_vk_bind(e, &c, x, false), pos_at = ggl_vk_bind(e, &c, pos, false),
                   slot_at = ggl_vk_bind(e, &c, slot, false),
                   page_at = ggl_vk_bind(e, &c, page, false),
                   store_at = ggl_vk_bind_store(e, &c, s, true);
    ggl_vk_push(&c, (uint32_t)s->ne[0]);
    ggl_vk_push(&c, (uint32_t)s->ne[1]);
    ggl_vk_push(&c, (uint32_t)n_batch);
    ggl_vk_push(&c, x_at);
    ggl_vk_push(&c, ggl_vk_stride(e, x, 1));
    ggl_vk_push(&c, ggl_vk_stride(e, x, GGL_BATCH_DIM));
    ggl_vk_push(&c, pos_at);
    ggl_vk_push(&c, ggl_vk_stride(e, pos, GGL_BATCH_DIM));
    ggl_vk_push(&c, slot_at);
    ggl_vk_push(&c, ggl_vk_stride(e, slot, GGL_BATCH_DIM));
    ggl_vk_push(&c, page_at);
    ggl_vk_push(&c, ggl_vk_stride(e, page, 1));
    ggl_vk_push(&c, store_at);
    ggl_vk_push(&c, (uint32_t)e->n_slots);
    ggl_vk_push(&c, (uint32_t)s->n_pos);
    c.groups[0] = ggl_vk_groups((s->ne[0] + unit - 1) / unit * s->ne[1] * n_batch, LOCAL);
    return ggl_vk_dispatch(e, &c, err);
}

static ggl_status cache_emit(vk_emit *e, ggl_error *err) {
    ggl_status st = keep_rows(e, 0, err);
    return st == GGL_OK && e->step->node->store[1] ? keep_rows(e, 1, err) : st;
}

static const char *cache_refuses(const vk_backend *b, const ggl_tensor *node) {
    (void)b;
    return node->src[0]->type != GGL_F32 || node->src[1]->type != GGL_F32
               ? "a cache needs f32 values"
               : NULL;
}

const vk_op ggl_vk_op_cache = {.emit = cache_emit, .refuses = cache_refuses};

/* --- attend ----------------------------------------------------------------------------------- */

/* How attend's work is divided among workgroups. */
typedef struct shape {
    const ggl_store *keys, *values; /* values NULL: they are part of the keys */
    int64_t n_batch;
    /* of a workgroup; of an invocation, per query */
    uint32_t queries, sums;
    int64_t n_groups; /* groups of queries */
    uint32_t spans;
} shape;

static int64_t ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static shape shape_of(const ggl_step *step, int64_t n_batch) {
    const ggl_tensor *cache = step->node->src[1];
    shape s = {
        .keys = cache->store[0], .values = cache->store[1], .n_batch = n_batch, .queries = 1};
    const int64_t pairs = n_batch * (step->dst.ne[1] / s.keys->ne[1]);
    s.sums = (uint32_t)ceil_div(step->dst.ne[0], LOCAL);
    while (s.queries < QUERIES && s.queries < pairs && 2 * s.queries * s.sums <= SUMS &&
           2 * s.queries * s.keys->ne[0] <= SHARED_FLOATS)
        s.queries *= 2;
    s.n_groups = ceil_div(pairs, s.queries) * s.keys->ne[1];
    s.spans = 1;
    while (s.spans < SPANS && 2 * s.spans * s.n_groups <= GROUPS &&
           2 * s.spans <= s.keys->n_pos / GGL_PAGE)
        s.spans *= 2;
    return s;
}

static int64_t n_batch_of(const vk_emit *e) {
    return ggl_vk_extent(e, &e->step->dst, GGL_BATCH_DIM);
}

static size_t partial_size(const ggl_step *step, const shape *s) {
    return s->spans == 1 ? 0
                         : (size_t)(s->n_batch * step->dst.ne[1] * s->spans) *
                               (size_t)(step->dst.ne[0] + 2) * sizeof(float);
}

/* Returns the largest scratch of all batches up to n; larger batches have fewer spans. */
static size_t attend_scratch(const vk_backend *b, const ggl_step *step, int64_t n) {
    (void)b;
    size_t most = 0;
    for (int64_t i = 1; i <= n; i++) {
        const shape s = shape_of(step, i);
        const size_t size = partial_size(step, &s);
        if (s.spans == 1 && i > QUERIES)
            break;
        most = size > most ? size : most;
    }
    return most;
}

/* Pushes the start of an operand with a number for each head, and its strides by head and by
 * token. */
static void push_heads(const vk_emit *e, vk_call *c, const ggl_operand *o, uint32_t at, int head) {
    ggl_vk_push(c, at);
    ggl_vk_push(c, ggl_vk_stride(e, o, head));
    ggl_vk_push(c, ggl_vk_stride(e, o, GGL_BATCH_DIM));
}

static uint32_t options_of(const ggl_step *step, const shape *s) {
    const double *num = step->node->num;
    return (!isnan(num[1]) && num[1] < 0x1p31 ? WINDOW : 0) | (!isnan(num[2]) ? CAP : 0) |
           (has(&step->src[2]) ? SINKS : 0) | (has(&step->src[3]) ? ALIBI : 0) |
           (s->spans > 1 ? SPLIT : 0) | (s->values ? 0 : IN_KEYS) | (s->keys->ring ? RING : 0);
}

/* Emits the attention, over all positions or by spans. */
static ggl_status emit_spans(vk_emit *e, const shape *s, ggl_error *err) {
    const ggl_step *step = e->step;
    const ggl_operand *q = &step->src[0], *sinks = &step->src[2], *alibi = &step->src[3],
                      *pos = &step->src[4], *slot = &step->src[5], *page = &step->src[6],
                      *y = &step->dst;
    const double *num = step->node->num;
    const ggl_store *values = s->values ? s->values : s->keys;
    const uint32_t options = options_of(step, s);
    vk_call c = {.shader = VK_SHADER_ATTEND,
                 .spec = {LOCAL, s->keys->type, values->type, s->queries, s->sums,
                          (uint32_t)s->keys->ne[0], options},
                 .n_spec = 7};
    const uint32_t q_at = ggl_vk_bind(e, &c, q, false),
                   k_at = ggl_vk_bind_store(e, &c, s->keys, false),
                   v_at = ggl_vk_bind_store(e, &c, values, false),
                   y_at = s->spans > 1 ? ggl_vk_bind_bytes(e, &c, GGL_REGION_ARENA, e->scratch,
                                                           partial_size(step, s), true) /
                                             4
                                       : ggl_vk_bind(e, &c, y, true),
                   pos_at = ggl_vk_bind(e, &c, pos, false),
                   slot_at = ggl_vk_bind(e, &c, slot, false),
                   sinks_at = ggl_vk_bind(e, &c, sinks, false),
                   alibi_at = ggl_vk_bind(e, &c, alibi, false),
                   page_at = ggl_vk_bind(e, &c, page, false);
    ggl_vk_push(&c, (uint32_t)y->ne[0]);
    ggl_vk_push(&c, (uint32_t)y->ne[1]);
    ggl_vk_push(&c, (uint32_t)s->keys->ne[1]);
    ggl_vk_push(&c, (uint32_t)s->n_batch);
    push_heads(e, &c, q, q_at, 1);
    push_heads(e, &c, y, y_at, 1);
    push_heads(e, &c, sinks, sinks_at, 0);
    push_heads(e, &c, alibi, alibi_at, 0);
    ggl_vk_push(&c, pos_at);
    ggl_vk_push(&c, ggl_vk_stride(e, pos, GGL_BATCH_DIM));
    ggl_vk_push(&c, slot_at);
    ggl_vk_push(&c, ggl_vk_stride(e, slot, GGL_BATCH_DIM));
    ggl_vk_push(&c, page_at);
    ggl_vk_push(&c, ggl_vk_stride(e, page, 1));
    ggl_vk_push(&c, k_at);
    ggl_vk_push(&c, v_at);
    ggl_vk_push(&c, (uint32_t)s->keys->n_pos);
    ggl_vk_push(&c, (uint32_t)e->n_slots);
    ggl_vk_push(&c, options & WINDOW ? (uint32_t)num[1] : 0);
    ggl_vk_push_float(&c, (float)(isnan(num[0]) ? 1 / sqrt((double)q->ne[0]) : num[0]));
    ggl_vk_push_float(&c, options & CAP ? (float)num[2] : 0);
    ggl_vk_push(&c, s->spans);
    c.groups[0] = ggl_vk_groups(s->n_groups * s->spans, 1);
    return ggl_vk_dispatch(e, &c, err);
}

/* Emits the merging of the spans' partial results. */
static ggl_status emit_merge(vk_emit *e, const shape *s, ggl_error *err) {
    const ggl_step *step = e->step;
    const ggl_operand *sinks = &step->src[2], *y = &step->dst;
    vk_call c = {.shader = VK_SHADER_ATTEND_MERGE, .spec = {LOCAL, has(sinks)}, .n_spec = 2};
    const uint32_t from = ggl_vk_bind_bytes(e, &c, GGL_REGION_ARENA, e->scratch,
                                            partial_size(step, s), false) /
                          4,
                   sinks_at = ggl_vk_bind(e, &c, sinks, false), y_at = ggl_vk_bind(e, &c, y, true);
    ggl_vk_push(&c, (uint32_t)y->ne[0]);
    ggl_vk_push(&c, (uint32_t)y->ne[1]);
    ggl_vk_push(&c, (uint32_t)s->n_batch);
    ggl_vk_push(&c, s->spans);
    ggl_vk_push(&c, from);
    push_heads(e, &c, sinks, sinks_at, 0);
    push_heads(e, &c, y, y_at, 1);
    c.groups[0] = ggl_vk_groups(ggl_extents(y->ne, 0, 2, 1) * s->n_batch, LOCAL);
    return ggl_vk_dispatch(e, &c, err);
}

static ggl_status attend_emit(vk_emit *e, ggl_error *err) {
    const shape s = shape_of(e->step, n_batch_of(e));
    ggl_status st = emit_spans(e, &s, err);
    return st == GGL_OK && s.spans > 1 ? emit_merge(e, &s, err) : st;
}

static bool is_f32(const ggl_tensor *t) {
    return !t || t->type == GGL_F32;
}

static const char *attend_refuses(const vk_backend *b, const ggl_tensor *node) {
    (void)b;
    if (!is_f32(node->src[0]) || !is_f32(node->src[2]) || !is_f32(node->src[3]))
        return "attention needs f32 values";
    return node->src[0]->ne[0] > SHARED_FLOATS || node->ne[0] > MOST_DIMS
               ? "attention supports heads of at most 2048 dimensions"
               : NULL;
}

const vk_op ggl_vk_op_attend = {
    .emit = attend_emit, .scratch = attend_scratch, .refuses = attend_refuses};
