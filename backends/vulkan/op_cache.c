/* The operators cache, rope_half and rope_pair, and what is one dispatch with it (cache.comp). A dispatch has up to three parts:
 * rows that are rotated, and rows of keys and of values that are stored. So the rotation of queries,
 * the rotation and the store of keys, and the store of values take one dispatch. */
#include "shaders/kinds.h"
#include "weights.h"

enum {
    LOCAL = 64,
    HEADS = 4, /* heads that share an angle in an invocation (cache.comp) */
    MOST_PARTS = 3,
    KEYS = 5, /* bindings that are written: keys, values, result */
    VALUES = 6,
    RESULT = 7
};

typedef struct part {
    uint32_t kind;         /* PART_ROTATED .. (shaders/kinds.h) */
    const ggl_step *rope;  /* NULL: rows are not rotated */
    const ggl_step *cache; /* NULL: they are not stored */
    const ggl_operand *x;  /* the rows */
} part;

static const ggl_operand absent = {.region = -1};

/* --- parts ------------------------------------------------------------------------------------ */

static const ggl_step *rope_of(const ggl_step *s) {
    return s->node->op == GGL_OP_CACHE ? NULL : s;
}

static const ggl_step *cache_of(const ggl_step *s) {
    return s->node->op == GGL_OP_CACHE ? s : s->n_links > 1 ? s + 1 : NULL;
}

/* Sets *p to the parts of a rotation, a store, or a chain of both. Returns how many: 1 or 2. */
static int parts_of(const ggl_step *s, part *p) {
    const ggl_step *rope = rope_of(s), *cache = cache_of(s);
    p[0] = (part){.kind = !cache ? PART_ROTATED
                          : rope ? PART_ROTATED_KEYS
                                 : PART_KEYS,
                  .rope = rope,
                  .cache = cache,
                  .x = rope ? &rope->src[0] : &cache->src[0]};
    if (!cache || !cache->node->store[1]) /* values may be a part of the keys */
        return 1;
    p[1] = (part){.kind = PART_VALUES, .cache = cache, .x = &cache->src[CACHE_V]};
    return 2;
}

static const ggl_store *store_of(const part *p) {
    return p->cache ? p->cache->node->store[p->kind == PART_VALUES] : NULL;
}

static int64_t dims_of(const part *p) {
    return p->cache ? store_of(p)->ne[0] : p->rope->dst.ne[0];
}

static int64_t heads_of(const part *p) {
    return p->cache ? store_of(p)->ne[1] : p->rope->dst.ne[1];
}

/* Returns the shader that stores elements of the type's width, if shaders can; else the one that
 * uses 32-bit words. */
static vk_shader shader_of(const vk_features *f, ggl_type type) {
    if (ggl_type_get(type)->quantized && f->storage8)
        return VK_SHADER_CACHE_ROWS_8;
    if (!ggl_type_get(type)->quantized && type != GGL_F32 && f->storage16)
        return VK_SHADER_CACHE_ROWS_16;
    return VK_SHADER_CACHE_ROWS;
}

/* --- which parts are one dispatch ------------------------------------------------------------- */

/* True if the step's parts can share a dispatch with others at all: it has the whole batch, and a
 * rotated result is dense, with at most two dimensions for each token. */
static bool is_plain(const ggl_step *s) {
    const ggl_step *cache = cache_of(s);
    const ggl_operand *y = &s->dst;
    if (cache)
        return cache->src[CACHE_SLOT].ne[GGL_BATCH_DIM] == GGL_N;
    return y->ne[GGL_BATCH_DIM] == GGL_N && y->ne[2] == 1 &&
           y->nb[1] == (size_t)y->ne[0] * sizeof(float) &&
           y->nb[GGL_BATCH_DIM] == (size_t)y->ne[1] * y->nb[1];
}

/* True if both have the same positions, and rotate in the same way if both do. */
static bool turn_alike(const ggl_step *a, const ggl_step *b) {
    if (ggl_read(a->node, 2) != ggl_read(b->node, 2))
        return false;
    return !rope_of(a) || !rope_of(b) ||
           (a->node->op == b->node->op && ggl_read(a->node, 1) == ggl_read(b->node, 1) &&
            a->node->num[ROPE_HALF_MAG] == b->node->num[ROPE_HALF_MAG]);
}

bool ggl_vk_rows_join(const vk_backend *b, const ggl_step *const *member, int n,
                      const ggl_step *next) {
    (void)b;
    part p[2];
    int n_parts = parts_of(next, p), n_caches = cache_of(next) != NULL;
    for (int i = 0; i < n; i++) {
        if (!is_plain(member[i]) || !turn_alike(member[i], next))
            return false;
        n_parts += parts_of(member[i], p);
        n_caches += cache_of(member[i]) != NULL;
    }
    return is_plain(next) && n_parts <= MOST_PARTS && n_caches <= 1;
}

/* Collects what the parts read, or what they rotate to. Returns how many operands there are. */
static int collect(const part *p, int n, bool results, const ggl_operand **o) {
    int k = 0;
    for (int i = 0; i < n; i++)
        if (!results || p[i].kind == PART_ROTATED)
            o[k++] = results ? &p[i].rope->dst : p[i].x;
    return k;
}

/* Binds the operands of collect() as one binding. at[]: where each begins, in elements. Returns false
 * if they do not fit a binding. */
static bool bind_all(vk_emit *e, vk_call *c, const part *p, int n, bool results, uint32_t *at) {
    const ggl_operand *o[MOST_PARTS] = {&absent};
    size_t size[MOST_PARTS] = {0};
    const int k = collect(p, n, results, o);
    for (int i = 0; i < k; i++) {
        if (o[i]->region != o[0]->region)
            return false;
        size[i] = ggl_vk_span(e, o[i]);
    }
    const bool fits =
        ggl_vk_bind_together(e, c, o, size, k > 0 ? k : 1, results, at) <= ggl_vk_most_bound(e->b);
    for (int i = 0; i < k; i++)
        at[i] /= sizeof(float);
    return fits;
}

/* True if the parts are one dispatch: their stores have elements of one width and the same pages, and
 * their rows can be bound together. */
static bool fit_together(vk_emit *e, const part *p, int n) {
    const ggl_store *first = NULL;
    vk_call c = {0};
    uint32_t at[MOST_PARTS];
    for (int i = 0; i < n; i++) {
        const ggl_store *s = store_of(&p[i]);
        if (first && s &&
            (shader_of(&e->b->features, s->type) != shader_of(&e->b->features, first->type) ||
             s->n_pos != first->n_pos || s->ring != first->ring))
            return false;
        first = first ? first : s;
    }
    return e->b->features.fuse && bind_all(e, &c, p, n, false, at) &&
           bind_all(e, &c, p, n, true, at);
}

/* --- emitting --------------------------------------------------------------------------------- */

/* What the parts of a dispatch share. An absent store or rotation is NULL. */
typedef struct shared {
    const ggl_step *rope;
    const ggl_step *cache;
    const ggl_store *keys, *values;
} shared;

static shared shared_of(const part *p, int n) {
    shared s = {0};
    for (int i = 0; i < n; i++) {
        s.rope = p[i].rope ? p[i].rope : s.rope;
        s.cache = p[i].cache ? p[i].cache : s.cache;
        if (p[i].kind == PART_VALUES)
            s.values = store_of(&p[i]);
        else if (p[i].cache)
            s.keys = store_of(&p[i]);
    }
    return s;
}

static vk_call call_of(const vk_emit *e, const shared *s, const part *p, int n) {
    const ggl_store *any = s->keys ? s->keys : s->values;
    vk_call c = {.shader = any ? shader_of(&e->b->features, any->type) : VK_SHADER_CACHE_ROWS,
                 VK_SPEC(cache, .local = LOCAL, .type_k = s->keys ? s->keys->type : 0,
                         .type_v = s->values ? s->values->type : 0, .ring = any && any->ring,
                         .part_0 = p[0].kind, .part_1 = n > 1 ? p[1].kind : PART_NONE,
                         .part_2 = n > 2 ? p[2].kind : PART_NONE)};
    if (s->rope) {
        c.spec.cache.half = s->rope->node->op == GGL_OP_ROPE_HALF;
        c.spec.cache.doubles = s->rope->src[ROPE_HALF_F].type == GGL_F64;
    }
    return c;
}

/* Returns the workgroups of a part (cache.comp). */
static int64_t groups_of(const part *p, int64_t n_batch) {
    const int64_t n = dims_of(p), heads = heads_of(p);
    if (p->kind == PART_ROTATED)
        return ggl_vk_groups(
            n_batch * (n - p->rope->src[ROPE_HALF_F].ne[0]) * ((heads + HEADS - 1) / HEADS), LOCAL);
    const int64_t unit = ggl_type_get(store_of(p)->type)->quantized ? 32 : 4;
    return ggl_vk_groups(n_batch * heads * ((n + unit - 1) / unit), LOCAL);
}

/* A shader that can write to a binding counts as writing to it, even where no part does. So an
 * output of a part is bound in place of an absent one. */
static void bind_in_place_of_absent(vk_call *c) {
    const vk_binding *written = &c->bind[KEYS];
    while (written->region < 0)
        written++;
    for (int i = KEYS; i <= RESULT; i++)
        c->bind[i] = c->bind[i].region < 0 ? *written : c->bind[i];
}

static uint32_t bind_store(vk_emit *e, vk_call *c, const ggl_store *s) {
    return s ? ggl_vk_bind_store(e, c, s, true) : ggl_vk_bind(e, c, &absent, false);
}

static ggl_status emit_parts(vk_emit *e, const part *p, int n, ggl_error *err) {
    if (n == 1 && p->kind == PART_ROTATED)
        return ggl_vk_emit_rope(e, p->rope, err);
    const shared s = shared_of(p, n);
    const ggl_operand *pos = s.cache ? &s.cache->src[CACHE_POS] : &s.rope->src[ROPE_HALF_AT],
                      *slot = s.cache ? &s.cache->src[CACHE_SLOT] : &absent,
                      *page = s.cache ? &s.cache->src[CACHE_PAGE] : &absent,
                      *freq = s.rope ? &s.rope->src[ROPE_HALF_F] : &absent;
    const int64_t n_batch = /* x may be the same for all */
        ggl_vk_extent(e, s.cache ? slot : &s.rope->dst, GGL_BATCH_DIM);
    const ggl_store *any = s.keys ? s.keys : s.values;
    vk_call c = call_of(e, &s, p, n);
    uint32_t x_at[MOST_PARTS], y_at[MOST_PARTS];
    bind_all(e, &c, p, n, false, x_at);
    const uint32_t pos_at = ggl_vk_bind(e, &c, pos, false),
                   slot_at = ggl_vk_bind(e, &c, slot, false),
                   page_at = ggl_vk_bind(e, &c, page, false),
                   freq_at = ggl_vk_bind(e, &c, freq, false), keys_at = bind_store(e, &c, s.keys),
                   values_at = bind_store(e, &c, s.values);
    bind_all(e, &c, p, n, true, y_at);
    bind_in_place_of_absent(&c);
    vk_push_cache *to = VK_PUSH(&c, cache);
    to->n_batch = (uint32_t)n_batch;
    to->pos_at = pos_at;
    to->pos_step = ggl_vk_stride(e, pos, GGL_BATCH_DIM);
    to->slot_at = slot_at;
    to->slot_step = ggl_vk_stride(e, slot, GGL_BATCH_DIM);
    to->page_at = page_at;
    to->page_step = ggl_vk_stride(e, page, 1);
    to->n_slots = (uint32_t)e->n_slots;
    to->n_pos = any ? (uint32_t)any->n_pos : 0;
    to->n_pairs = s.rope ? (uint32_t)freq->ne[0] : 0;
    to->freq_at = freq_at * (uint32_t)(ggl_type_get(freq->type)->size / 4);
    to->mag = s.rope ? (float)s.rope->node->num[ROPE_HALF_MAG] : 0;
    int64_t groups = 0;
    for (int i = 0, k = 0; i < n; i++) {
        to->part[i].n = (uint32_t)dims_of(&p[i]);
        to->part[i].n_heads = (uint32_t)heads_of(&p[i]);
        to->part[i].x_at = x_at[i];
        to->part[i].x_step[0] = ggl_vk_stride(e, p[i].x, 1);
        to->part[i].x_step[1] = ggl_vk_stride(e, p[i].x, GGL_BATCH_DIM);
        to->part[i].to_at = p[i].kind == PART_ROTATED  ? y_at[k++]
                            : p[i].kind == PART_VALUES ? values_at
                                                       : keys_at;
        groups += groups_of(&p[i], n_batch);
    }
    c.groups[0] = ggl_vk_groups(groups, 1);
    return ggl_vk_dispatch(e, &c, err);
}

ggl_status ggl_vk_emit_rows(vk_emit *e, ggl_error *err) {
    part p[2 * GGL_MAX_GROUP];
    const ggl_step *s = e->step;
    int n = 0, together = 0;
    ggl_status st = GGL_OK;
    for (int m = 0; m < e->step->n_members; m++, s += s->n_links)
        n += parts_of(s, p + n);
    for (int i = 0; i < n && st == GGL_OK; i += together) {
        together = n - i;
        while (together > 1 && !fit_together(e, p + i, together))
            together--;
        st = emit_parts(e, p + i, together, err);
    }
    return st;
}

static const char *cache_refuses(const vk_backend *b, const ggl_tensor *node) {
    (void)b;
    return node->src[CACHE_K]->type != GGL_F32 || node->src[CACHE_V]->type != GGL_F32
               ? "a cache needs f32 values"
               : NULL;
}

const vk_op ggl_vk_op_cache = {
    .emit = ggl_vk_emit_rows, .joins = ggl_vk_rows_join, .refuses = cache_refuses};

/* --- rotations -------------------------------------------------------------------------------- */

/* The rotated keys are stored at once. */
static int rope_chain(const vk_backend *b, const ggl_step *step, int n) {
    (void)b, (void)n;
    const ggl_tensor *cache = step[1].node;
    return step[0].dst.region < 0 && step[1].kind == GGL_STEP_NODE && cache->op == GGL_OP_CACHE &&
                   step[1].link == 0 && ggl_read(cache, 2) == ggl_read(step[0].node, 2)
               ? 2
               : 1;
}

static const char *rope_refuses(const vk_backend *b, const ggl_tensor *node) {
    (void)b;
    const ggl_type f = node->src[ROPE_HALF_F]->type;
    return node->src[0]->type != GGL_F32 || (f != GGL_F32 && f != GGL_F64)
               ? "no rotation of values of this type, or with such frequencies"
               : NULL;
}

const vk_op ggl_vk_op_rope = {.emit = ggl_vk_emit_rows,
                              .chain = rope_chain,
                              .joins = ggl_vk_rows_join,
                              .refuses = rope_refuses};
