/* The operator attend. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "matrix.h"
#include "vulkan.h"
#include "weights.h"

enum {
    LOCAL = 64,        /* as in attend.comp: one invocation per position of a page */
    QUERIES = 8,       /* most queries of a workgroup */
    LOCAL_TILES = 128, /* as in attend_tiles.comp, with tiles of TILE queries, and values of at most
                        * TILE_DIMS dimensions */
    TILE = 32,
    TILE_DIMS = 512,
    TILE_MATRIX =
        64, /* the same of attend_matrix.comp, and the bytes of shared memory that it needs
                       * besides a word for each invocation, or for each query if these are more */
    TILE_MATRIX_DIMS = 256,
    SHARED_MATRIX = 21008,
    SHARED_TILES =
        17000, /* attend_tiles.comp with codes, besides 36 bytes for a dimension of keys */
    SUMS = 64, /* most sums of an invocation: queries times dimensions */
    MOST_DIMS = 2048,
    ALIGN = 256, /* of the result in the scratch */
    BLOCK = 32,  /* numbers that are rounded together, and the words that they become */
    BLOCK_WORDS = 12,
    SPANS = 256,      /* most workgroups among which the positions of a query are divided */
    GROUPS = 8,       /* of 64; with fewer on a unit, positions are divided among several */
    MOST_ALIGN = 256, /* of bindings, so that what is before an operand has less than 64 numbers */
    FEW_TOKENS = 8    /* that see later ones: up to so many, attend.comp processes them */
};

/* OPTIONS of shaders/attend.glsl */
enum {
    WINDOW = 1,
    CAP = 2,
    SINKS = 4,
    ALIBI = 8,
    SPLIT = 16,
    IN_KEYS = 32,
    RING = 64,
    MIXED = 128,
    WIDE_TILES = 256,
    CODED_K = 512,
    CODED_V = 1024,
    END = 2048,
    BIAS = 4096, /* this and the next ones: attend_distance.glsl */
    REL_K = 8192,
    REL_Q = 16384,
    WITHIN = 32768 /* not with the two before it */
};

static bool has(const ggl_operand *o) {
    return o->region >= 0;
}

/* Binds the positions, the slots and the table of pages. */
static void bind_place(vk_emit *e, vk_call *c, vk_push_attend *p) {
    const ggl_operand *pos = &e->step->src[ATTEND_POS], *slot = &e->step->src[ATTEND_SLOT],
                      *page = &e->step->src[ATTEND_PAGE];
    p->pos_at = ggl_vk_bind(e, c, pos, false);
    p->pos_step = ggl_vk_stride(e, pos, GGL_BATCH_DIM);
    p->slot_at = ggl_vk_bind(e, c, slot, false);
    p->slot_step = ggl_vk_stride(e, slot, GGL_BATCH_DIM);
    p->page_at = ggl_vk_bind(e, c, page, false);
    p->page_step = ggl_vk_stride(e, page, 1);
}

/* How attend's work is divided among workgroups. */
typedef struct shape {
    const ggl_store *keys, *values; /* values NULL: they are part of the keys */
    int64_t n_batch, dims;          /* dims: of a value */
    uint32_t queries;               /* of a workgroup of attend.comp */
    int64_t n_groups;               /* groups of queries */
    int64_t n_tiles;                /* tiles of queries; 0 if none */
    bool coded_k, coded_v; /* attend.comp multiplies codes of keys, and of values, in integers */
    bool coded_tiles;      /* attend_tiles.comp does it with those of keys */
    bool matrix;           /* tiles are for attend_matrix.comp, else for attend_tiles.comp */
    size_t halves;         /* bytes of the queries as f16, for attend_matrix.comp */
    uint32_t spans;
} shape;

static int64_t ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static ggl_type value_type(const shape *s) {
    return s->values ? s->values->type : s->keys->type;
}

/* Returns the bytes of shared memory that attend.comp needs. For each query: its elements, as floats or codes; its partial
 * scores, of all and of one invocation; its weights, as floats or as two words for each block of values. All queries share
 * the scales of values. The last 32: arrays that are not used have one element. */
static int64_t shared_bytes(const shape *s, int64_t queries) {
    const int64_t blocks = s->dims / 32,
                  query = s->coded_k ? ceil_div(3 * s->keys->ne[0], 4) : s->keys->ne[0],
                  weights = s->coded_v ? blocks * (LOCAL / 2 + 2) : LOCAL,
                  scales = s->coded_v ? blocks * (LOCAL + LOCAL / 4) : 0;
    return 4 * (queries * (query + LOCAL * 4 + weights + LOCAL / 4 + 6) + scales + 32);
}

/* Returns the sums of an invocation that each query takes. */
static int64_t query_sums(const shape *s) {
    const int64_t unit = value_type(s) == GGL_Q4_0 ? 8 : 4;
    return ceil_div(ceil_div(s->dims, unit), LOCAL) * unit;
}

/* Returns the bytes of the spans' partial results: their totals, then their sums. */
static size_t totals_size(const ggl_step *step, const shape *s, uint32_t spans) {
    return (size_t)ceil_div(s->n_batch * step->dst.ne[1] * spans * 2, 4) * 16;
}

static size_t partial_size(const ggl_step *step, const shape *s, uint32_t spans) {
    return spans == 1
               ? 0
               : totals_size(step, s, spans) + (size_t)(s->n_batch * step->dst.ne[1] * spans) *
                                                   (size_t)ceil_div(s->dims, 4) * 16;
}

/* Returns among how many workgroups positions are divided, so that each unit of the device has
 * several workgroups. */
static uint32_t spans_of(const vk_backend *b, const ggl_step *step, const shape *s) {
    const int64_t groups = s->n_tiles ? s->n_tiles * (LOCAL_TILES / LOCAL) : s->n_groups,
                  wanted = (int64_t)b->limits.units * GROUPS / groups,
                  pages = s->keys->n_pos / GGL_PAGE, most = pages < SPANS ? pages : SPANS;
    uint32_t spans = (uint32_t)(wanted < most ? wanted : most);
    while (spans > 1 &&
           partial_size(step, s, spans) > b->limits.max_range - 2 * b->limits.offset_align)
        spans--;
    return spans > 1 ? spans : 1;
}

/* Returns whether keys or values of the type may be f16 on their way to matrix units: its range suffices. */
static bool suits_matrix(ggl_type type) {
    return type == GGL_F16 || ggl_type_get(type)->quantized;
}

/* Returns the rows and columns of a product that a subgroup of attend_matrix.comp computes. A small subgroup
 * has fewer registers for them. */
static uint32_t own_matrix(const vk_backend *b) {
    return b->limits.subgroup_size <= 16 ? 16 : 32;
}

static uint32_t local_matrix(const vk_backend *b) {
    const uint32_t across = TILE_MATRIX / own_matrix(b);
    return across * across * b->limits.subgroup_size;
}

static int64_t tile_of(const shape *s) {
    return s->matrix ? TILE_MATRIX : TILE;
}

/* True if the step has operands that only attend.comp and attend_tiles.comp read. */
static bool has_more(const ggl_step *step) {
    return has(&step->src[ATTEND_END]) || has(&step->src[ATTEND_BIAS]) ||
           has(&step->src[ATTEND_REL_ROW]) || has(&step->src[ATTEND_WITHIN]);
}

/* True if attend_matrix.comp computes this number of queries of each head of the store. */
static bool uses_matrix(const vk_backend *b, const shape *s, int64_t pairs) {
    const vk_limits *l = &b->limits;
    const uint32_t local = local_matrix(b);
    return b->features.matrix && pairs >= TILE_MATRIX && s->dims <= TILE_MATRIX_DIMS &&
           suits_matrix(s->keys->type) && suits_matrix(value_type(s)) && l->matrix.n >= 4 &&
           local <= l->local_size &&
           SHARED_MATRIX + 4 * (local > TILE_MATRIX ? local : TILE_MATRIX) <= l->shared_size &&
           s->halves <= ggl_vk_most_bound(b);
}

/* True if tiles compute the queries. Of tokens that see later ones, they compute all batches but the smallest, in which products have
 * other bits, too, and their positions are not divided: so an element's bits do not depend on the others of the batch. */
static bool uses_tiles(const ggl_step *step, const shape *s, int64_t first, int64_t pairs) {
    const bool many = has(&step->src[ATTEND_END]) ? first + s->n_batch > FEW_TOKENS : pairs >= TILE;
    return s->matrix || (many && s->dims <= TILE_DIMS);
}

/* first: tokens of the batch that earlier pieces have. */
static shape shape_of(const vk_backend *b, const ggl_step *step, int64_t first, int64_t n_batch) {
    const ggl_tensor *cache = step->node->src[ATTEND_KV];
    shape s = {.keys = cache->store[0],
               .values = cache->store[1],
               .n_batch = n_batch,
               .dims = step->dst.ne[0],
               .queries = 1};
    const int64_t pairs = n_batch * (step->dst.ne[1] / s.keys->ne[1]);
    s.coded_k = b->features.idot && ggl_type_get(s.keys->type)->quantized;
    s.coded_v = b->features.idot && s.values && ggl_type_get(s.values->type)->quantized;
    s.coded_tiles = s.coded_k && SHARED_TILES + 36 * s.keys->ne[0] <= b->limits.shared_size;
    if (shared_bytes(&s, 1) > b->limits.shared_size)
        s.coded_v = false;
    while (s.queries < QUERIES && s.queries < pairs && 2 * s.queries * query_sums(&s) <= SUMS &&
           shared_bytes(&s, 2 * s.queries) <= b->limits.shared_size)
        s.queries *= 2;
    s.n_groups = ceil_div(pairs, s.queries) * s.keys->ne[1];
    s.halves = (size_t)(n_batch * step->dst.ne[1]) * ggl_vk_halves_size(s.keys->ne[0]);
    s.matrix = !has_more(step) && uses_matrix(b, &s, pairs);
    if (uses_tiles(step, &s, first, pairs))
        s.n_tiles = ceil_div(pairs, tile_of(&s)) * s.keys->ne[1];
    s.spans = s.n_tiles && has(&step->src[ATTEND_END]) ? 1 : spans_of(b, step, &s);
    return s;
}

static int64_t n_batch_of(const vk_emit *e) {
    return ggl_vk_extent(e, &e->step->dst, GGL_BATCH_DIM);
}

/* Returns the link that rounds the result to bytes, which nothing else reads then; NULL if none. */
static const ggl_step *rounding(const ggl_step *step) {
    return ggl_vk_form_link(step);
}

/* Returns whether the shader that ends the attention rounds the result itself. Otherwise it is first in the scratch. */
static bool rounds_itself(const shape *s) {
    return s->n_tiles == 0 && s->spans > 1;
}

/* Returns the bytes of scratch before the result. */
static size_t partial_and_halves(const ggl_step *step, const shape *s) {
    return (partial_size(step, s, s->spans) + (s->matrix ? s->halves : 0) + ALIGN - 1) / ALIGN *
           ALIGN;
}

static size_t scratch_of(const ggl_step *step, const shape *s) {
    const bool result = rounding(step) && !rounds_itself(s);
    return partial_and_halves(step, s) +
           (result ? (size_t)(s->n_batch * step->dst.ne[1] * s->dims) * sizeof(float) : 0);
}

/* Returns the largest scratch of all batches up to n. */
static size_t attend_scratch(const vk_backend *b, const ggl_step *step, int64_t n) {
    size_t most = 0;
    for (int64_t i = 1; i <= n; i++) {
        const shape s = shape_of(b, step, 0, i);
        const size_t size = scratch_of(step, &s);
        most = size > most ? size : most;
    }
    return most;
}

/* Writes the strides between heads and between tokens; head: the dimension of heads. */
static void steps_of(const vk_emit *e, const ggl_operand *o, int head, uint32_t step[2]) {
    step[0] = ggl_vk_stride(e, o, head);
    step[1] = ggl_vk_stride(e, o, GGL_BATCH_DIM);
}

static uint32_t options_of(const ggl_step *step, const shape *s) {
    const double *num = step->node->num;
    return (ggl_attend_window(step->node) > 0 ? WINDOW : 0) | (!isnan(num[ATTEND_CAP]) ? CAP : 0) |
           (has(&step->src[ATTEND_SINKS]) ? SINKS : 0) |
           (has(&step->src[ATTEND_ALIBI]) ? ALIBI : 0) | (s->spans > 1 ? SPLIT : 0) |
           (s->values ? 0 : IN_KEYS) | (s->keys->ring ? RING : 0) |
           (has(&step->src[ATTEND_END]) ? END : 0) | (has(&step->src[ATTEND_BIAS]) ? BIAS : 0) |
           (has(&step->src[ATTEND_REL_K]) ? REL_K : 0) |
           (has(&step->src[ATTEND_REL_Q]) ? REL_Q : 0) |
           (has(&step->src[ATTEND_WITHIN]) ? WITHIN : 0);
}

/* True if the tokens of a tile may have different slots, and such tiles are left to attend.comp. */
static bool may_mix(const vk_emit *e, const shape *s) {
    return !has(&e->step->src[ATTEND_END]) && e->n_slots > 1 && s->n_batch > 1 &&
           e->step->dst.ne[1] / s->keys->ne[1] % tile_of(s) != 0;
}

/* Returns the variant of attend.comp. Codes are multiplied if the device multiplies bytes fast. */
static vk_shader shader_of(const vk_features *f, const shape *s) {
    static const vk_shader shader[2][2] = {{VK_SHADER_ATTEND, VK_SHADER_ATTEND_HALF},
                                           {VK_SHADER_ATTEND_IDOT, VK_SHADER_ATTEND_IDOT_HALF}};
    return shader[s->coded_k || s->coded_v][f->half];
}

static vk_shader tiles_shader_of(const vk_features *f, const shape *s) {
    static const vk_shader shader[2][2] = {
        {VK_SHADER_ATTEND_TILES, VK_SHADER_ATTEND_TILES_HALF},
        {VK_SHADER_ATTEND_TILES_IDOT, VK_SHADER_ATTEND_TILES_IDOT_HALF}};
    return shader[s->coded_tiles][f->half];
}

/* What is the same for all dispatches of a step that has the operands of attend_distance.glsl. */
typedef struct distances {
    uint32_t bias_most, bias_step, rel_most, rel_rows, k_step, k_head, q_step, q_head;
} distances;

static distances distances_of(const vk_emit *e) {
    const ggl_operand *src = e->step->src, *bias = &src[ATTEND_BIAS], *k = &src[ATTEND_REL_K],
                      *q = &src[ATTEND_REL_Q], *row = &src[ATTEND_REL_ROW];
    return (distances){.bias_most = has(bias) ? (uint32_t)bias->ne[0] / 2 : 0,
                       .bias_step = ggl_vk_stride(e, bias, 1),
                       .rel_most = has(row) ? (uint32_t)row->ne[0] / 2 : 0,
                       .rel_rows = has(row) ? (uint32_t)(has(k) ? k : q)->ne[1] : 0,
                       .k_step = ggl_vk_stride(e, k, 1),
                       .k_head = ggl_vk_stride(e, k, 2),
                       .q_step = ggl_vk_stride(e, q, 1),
                       .q_head = ggl_vk_stride(e, q, 2)};
}

#define DISTANCES(x)                                                                               \
    .bias_most = x.bias_most, .bias_step = x.bias_step, .rel_most = x.rel_most,                    \
    .rel_rows = x.rel_rows, .rel_k_step = x.k_step, .rel_k_head = x.k_head,                        \
    .rel_q_step = x.q_step, .rel_q_head = x.q_head

/* Binds what only some attention has: the ends of texts, and operands by distance, or the part of the rows that is seen. */
static void bind_more(vk_emit *e, vk_call *c, vk_push_attend *p) {
    const ggl_operand *within = &e->step->src[ATTEND_WITHIN];
    const int begins[] = {ATTEND_END, ATTEND_BIAS, has(within) ? ATTEND_WITHIN : ATTEND_REL_K,
                          ATTEND_REL_Q};
    if (!has_more(e->step))
        return;
    for (int i = 0; i < 4; i++)
        p->begins |= ggl_vk_bind(e, c, &e->step->src[begins[i]], false) << 8 * i;
    p->rel_row_at = ggl_vk_bind(e, c, &e->step->src[ATTEND_REL_ROW], false);
    if (has(within))
        p->rel_row_at = ggl_vk_stride(e, within, GGL_BATCH_DIM);
    assert(ggl_vk_stride(e, &e->step->src[ATTEND_END], GGL_BATCH_DIM) <= 1);
}

/* Chooses the shader, and its constants and workgroups. */
static vk_call call_of(const vk_emit *e, const shape *s, bool tiles, uint32_t options) {
    const vk_features *f = &e->b->features;
    const ggl_type k = s->keys->type, v = value_type(s);
    const uint32_t dims = (uint32_t)s->dims, key_dims = (uint32_t)s->keys->ne[0];
    const vk_matrix *m = &e->b->limits.matrix;
    const distances x = distances_of(e);
    if (tiles && s->matrix)
        return (vk_call){.shader = VK_SHADER_ATTEND_MATRIX,
                         VK_SPEC(attend_matrix, .local = local_matrix(e->b), .type_k = k,
                                 .type_v = v, .e = dims, .d = key_dims, .options = options,
                                 .m = m->m, .n = m->n, .k = m->k, .exact_half = f->half,
                                 .own = own_matrix(e->b)),
                         .groups = {ggl_vk_groups(s->n_tiles * s->spans, 1)},
                         .full_subgroups = true};
    if (tiles)
        return (vk_call){.shader = tiles_shader_of(f, s),
                         VK_SPEC(attend_tiles, .local = LOCAL_TILES, .type_k = k, .type_v = v,
                                 .e = dims, .d = key_dims,
                                 .options = options | (s->coded_tiles ? CODED_K : 0), DISTANCES(x)),
                         .groups = {ggl_vk_groups(s->n_tiles * s->spans, 1)}};
    return (vk_call){.shader = shader_of(f, s),
                     VK_SPEC(attend, .local = LOCAL, .type_k = k, .type_v = v, .q = s->queries,
                             .e = dims, .d = key_dims,
                             .options = options | (s->n_tiles ? MIXED : 0) |
                                        (s->matrix ? WIDE_TILES : 0) | (s->coded_k ? CODED_K : 0) |
                                        (s->coded_v ? CODED_V : 0),
                             .ahead = f->ahead ? 16 : 4, DISTANCES(x)),
                     .groups = {ggl_vk_groups(s->n_groups * s->spans, 1)}};
}

/* Returns where the queries are as f16: after the partial results. */
static vk_binding halves_of(const vk_emit *e, const shape *s) {
    return (vk_binding){.region = GGL_REGION_ARENA,
                        .offset = e->scratch + partial_size(e->step, s, s->spans),
                        .size = s->halves};
}

/* Binds the queries, as they are or as f16. */
static uint32_t bind_queries(vk_emit *e, vk_call *c, const shape *s, bool halves) {
    const vk_binding h = halves_of(e, s);
    return halves ? ggl_vk_bind_bytes(e, c, h.region, h.offset, h.size, false) / VK_HALVES_UNIT
                  : ggl_vk_bind(e, c, &e->step->src[ATTEND_Q], false);
}

/* Writes the strides of the queries. */
static void query_steps(const vk_emit *e, const shape *s, bool halves, uint32_t step[2]) {
    const ggl_operand *q = &e->step->src[ATTEND_Q];
    const uint32_t pitch = (uint32_t)(ggl_vk_halves_size(s->keys->ne[0]) / VK_HALVES_UNIT);
    steps_of(e, q, 1, step);
    if (!halves)
        return;
    step[0] = pitch;
    step[1] = ggl_vk_extent(e, q, GGL_BATCH_DIM) > 1 ? pitch * (uint32_t)q->ne[1] : 0;
}

/* Emits the attention of tiles, or of other groups of queries, over all positions or by spans. */
static ggl_status emit_spans(vk_emit *e, const shape *s, bool tiles, ggl_error *err) {
    const ggl_step *step = e->step;
    const ggl_operand *sinks = &step->src[ATTEND_SINKS], *alibi = &step->src[ATTEND_ALIBI],
                      *y = &step->dst;
    const double *num = step->node->num;
    const uint32_t options = options_of(step, s);
    vk_call c = call_of(e, s, tiles, options);
    const bool halves = tiles && s->matrix;
    vk_push_attend *p = VK_PUSH(&c, attend);
    p->n_heads = (uint32_t)y->ne[1];
    p->n_store_heads = (uint32_t)s->keys->ne[1];
    p->n_batch = (uint32_t)s->n_batch;
    p->q_at = bind_queries(e, &c, s, halves);
    query_steps(e, s, halves, p->q_step);
    p->k_at = ggl_vk_bind_store(e, &c, s->keys, false);
    p->v_at = ggl_vk_bind_store(e, &c, s->values ? s->values : s->keys, false);
    p->y_at = s->spans > 1 ? ggl_vk_bind_bytes(e, &c, GGL_REGION_ARENA, e->scratch,
                                               partial_size(step, s, s->spans), true) /
                                 4
                           : ggl_vk_bind(e, &c, y, true);
    steps_of(e, y, 1, p->y_step);
    bind_place(e, &c, p);
    p->sinks_at = ggl_vk_bind(e, &c, sinks, false);
    steps_of(e, sinks, 0, p->sinks_step);
    p->alibi_at = ggl_vk_bind(e, &c, alibi, false);
    steps_of(e, alibi, 0, p->alibi_step);
    bind_more(e, &c, p);
    assert(p->k_at % 16 == 0 && p->v_at % 16 == 0 && (s->spans == 1 || p->y_at % 4 == 0));
    p->n_pos = (uint32_t)s->keys->n_pos;
    p->n_slots = (uint32_t)e->n_slots;
    p->window = (int32_t)ggl_attend_window(step->node);
    p->scale =
        (float)(isnan(num[ATTEND_SCALE]) ? 1 / sqrt((double)s->keys->ne[0]) : num[ATTEND_SCALE]);
    p->cap = options & CAP ? (float)num[ATTEND_CAP] : 0;
    p->n_spans = s->spans;
    p->sums_at = p->y_at / 4 + (uint32_t)(totals_size(step, s, s->spans) / 16);
    return ggl_vk_dispatch(e, &c, err);
}

/* Emits the merging of the spans' partial results. */
static ggl_status emit_merge(vk_emit *e, const shape *s, ggl_error *err) {
    const ggl_step *step = e->step;
    const ggl_step *round = rounding(step);
    const ggl_operand *sinks = &step->src[ATTEND_SINKS], *y = &step->dst;
    vk_call c = {.shader = VK_SHADER_ATTEND_MERGE,
                 VK_SPEC(attend_merge, .local = LOCAL, .sinks = has(sinks), .e = (uint32_t)s->dims,
                         .round = round != NULL)};
    vk_push_attend_merge *p = VK_PUSH(&c, attend_merge);
    p->n_heads = (uint32_t)y->ne[1];
    p->n_batch = (uint32_t)s->n_batch;
    p->n_spans = s->spans;
    p->partial_at = ggl_vk_bind_bytes(e, &c, GGL_REGION_ARENA, e->scratch,
                                      partial_size(step, s, s->spans), false) /
                    4;
    p->sums_at = p->partial_at / 4 + (uint32_t)(totals_size(step, s, s->spans) / 16);
    p->sinks_at = ggl_vk_bind(e, &c, sinks, false);
    steps_of(e, sinks, 0, p->sinks_step);
    p->y_at = ggl_vk_bind(e, &c, round ? &round->dst : y, true);
    steps_of(e, y, 1, p->y_step);
    c.groups[0] = ggl_vk_groups(y->ne[1] * s->n_batch, 1);
    return ggl_vk_dispatch(e, &c, err);
}

static ggl_status emit_all(vk_emit *e, const shape *s, ggl_error *err) {
    const vk_binding halves = halves_of(e, s);
    ggl_status st = GGL_OK;
    if (s->matrix)
        st = ggl_vk_emit_halves(e, &e->step->src[ATTEND_Q], s->keys->ne[0], false, false, &halves,
                                err);
    if (st == GGL_OK && s->n_tiles)
        st = emit_spans(e, s, true, err);
    if (st == GGL_OK && (!s->n_tiles || may_mix(e, s)))
        st = emit_spans(e, s, false, err);
    return st == GGL_OK && s->spans > 1 ? emit_merge(e, s, err) : st;
}

/* Returns the rows that a form is made of, without gaps. `at` is where the row of token e->first
 * begins; rows of earlier tokens are before it. */
static ggl_operand rows_of_form(const vk_emit *e, const ggl_operand *form, size_t at) {
    ggl_operand x = {.type = GGL_F32, .region = GGL_REGION_ARENA};
    memcpy(x.ne, form->ne, sizeof x.ne);
    x.ne[0] = form->ne[0] / BLOCK_WORDS * BLOCK;
    x.nb[0] = sizeof(float);
    for (int d = 1; d < GGL_MAX_DIMS; d++)
        x.nb[d] = x.nb[d - 1] * (size_t)x.ne[d - 1];
    x.offset = at - (x.ne[GGL_BATCH_DIM] == GGL_N ? (size_t)e->first * x.nb[GGL_BATCH_DIM] : 0);
    return x;
}

/* Emits the attention with its result in the scratch, and the rounding of that. */
static ggl_status emit_and_round(vk_emit *e, const shape *s, ggl_error *err) {
    ggl_step attend = *e->step, round = *rounding(e->step);
    round.src[0] = rows_of_form(e, &round.dst, e->scratch + partial_and_halves(e->step, s));
    attend.n_links = 1;
    attend.dst.region = round.src[0].region;
    attend.dst.offset = round.src[0].offset;
    vk_emit part = *e;
    part.step = &attend;
    ggl_status st = emit_all(&part, s, err);
    part.step = &round;
    return st == GGL_OK ? ggl_vk_op_round.emit(&part, err) : st;
}

static ggl_status attend_emit(vk_emit *e, ggl_error *err) {
    const shape s = shape_of(e->b, e->step, e->first, n_batch_of(e));
    return rounding(e->step) && !rounds_itself(&s) ? emit_and_round(e, &s, err)
                                                   : emit_all(e, &s, err);
}

/* Attention, and the rounding of its result. */
static int attend_chain(const vk_backend *b, const ggl_step *step, int n) {
    (void)b;
    return step->dst.region < 0 ? ggl_vk_and_form(step, n, 1) : 1;
}

static const char *attend_refuses(const vk_backend *b, const ggl_tensor *node) {
    static const int floats[] = {ATTEND_Q,     ATTEND_SINKS, ATTEND_ALIBI,   ATTEND_BIAS,
                                 ATTEND_REL_K, ATTEND_REL_Q, ATTEND_REL_ROW, ATTEND_WITHIN};
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
        if (node->src[floats[i]] && node->src[floats[i]]->type != GGL_F32)
            return "attention needs f32 values";
    const bool more = node->src[ATTEND_END] || node->src[ATTEND_BIAS] ||
                      node->src[ATTEND_REL_ROW] || node->src[ATTEND_WITHIN];
    if (node->src[ATTEND_CHOSEN])
        return "attention to chosen rows is not there";
    if (node->src[ATTEND_REL_ROW] && node->src[ATTEND_WITHIN])
        return "attention to a part of the rows has no rows by distance";
    if (more && (b->limits.n_bind < VK_MAX_BIND || b->limits.offset_align > MOST_ALIGN))
        return "attention to later rows, and biases and rows by distance, need a device whose "
               "shaders can use 14 storage buffers";
    return node->src[ATTEND_Q]->ne[0] > MOST_DIMS || node->ne[0] > MOST_DIMS
               ? "attention supports heads of at most 2048 dimensions"
               : NULL;
}

const vk_op ggl_vk_op_attend = {.emit = attend_emit,
                                .scratch = attend_scratch,
                                .chain = attend_chain,
                                .refuses = attend_refuses};
