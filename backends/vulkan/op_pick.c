/* pick: y[.., i] = t[.., index[i]]. A table larger than a binding is bound in parts of its last
 * dimension, with a dispatch each. */
#include "weights.h"

enum { LOCAL = 64, DIMS = 4 };

/* The operands as rows of n elements. Dimensions are ordered as in shaders/pick.comp: two within
 * a matrix, the picked one, the batch. */
typedef struct rows {
    int64_t n, extent[DIMS];
    uint32_t table_step[DIMS], y_step[DIMS];
    int64_t n_table; /* extent of the table's last dimension */
    size_t picked;   /* bytes between its elements */
} rows;

static rows rows_of(const vk_emit *e) {
    const ggl_operand *t = &e->step->src[0], *y = &e->step->dst;
    const int last = e->step->node->src[0]->n_dims - 1;
    const bool list = e->step->node->src[PICK_I]->n_dims > 0;
    rows r = {.n = last == 0 ? 1 : t->ne[0],
              .extent = {1, 1, 1, 1},
              .n_table = t->ne[last],
              .picked = t->nb[last]};
    for (int d = 1; d < last; d++) {
        r.extent[d - 1] = t->ne[d];
        r.table_step[d - 1] = ggl_vk_weight_stride(e, t, d);
        r.y_step[d - 1] = ggl_vk_stride(e, y, d);
    }
    r.table_step[2] = (uint32_t)r.picked;
    if (list) {
        r.extent[2] = ggl_vk_extent(e, y, last);
        r.y_step[2] = ggl_vk_stride(e, y, last);
    }
    r.extent[3] = ggl_vk_extent(e, y, GGL_BATCH_DIM);
    r.y_step[3] = ggl_vk_stride(e, y, GGL_BATCH_DIM);
    if (last < GGL_BATCH_DIM) /* else a weight of four dimensions, of which the last is picked */
        r.table_step[3] = ggl_vk_weight_stride(e, t, GGL_BATCH_DIM);
    return r;
}

/* Returns the elements that an invocation moves (see shaders/pick.comp). */
static int64_t unit_of(ggl_type type) {
    return type == GGL_F32 || type == GGL_I32 ? 1 : type == GGL_F16 || type == GGL_BF16 ? 8 : 32;
}

static ggl_status emit_part(vk_emit *e, const rows *r, int64_t first, int64_t n, size_t size,
                            ggl_error *err) {
    const ggl_operand *t = &e->step->src[PICK_T], *index = &e->step->src[PICK_I],
                      *y = &e->step->dst;
    vk_call c = {.shader = ggl_vk_has_codebook(t->type) ? VK_SHADER_PICK_CODEBOOK : VK_SHADER_PICK,
                 VK_SPEC(pick, .local = LOCAL, .type = t->type)};
    const int64_t unit = unit_of(t->type);
    const int64_t n_units =
        (r->n + unit - 1) / unit * r->extent[0] * r->extent[1] * r->extent[2] * r->extent[3];
    const uint32_t table_at = ggl_vk_bind_weight(e, &c, t, (size_t)first * r->picked, size),
                   index_at = ggl_vk_bind(e, &c, index, false), y_at = ggl_vk_bind(e, &c, y, true);
    if (ggl_vk_has_codebook(t->type))
        ggl_vk_bind_codebooks(&c);
    c.spec.pick.aligned = ggl_vk_weight_aligned(e, t, table_at);
    vk_push_pick *p = VK_PUSH(&c, pick);
    p->n = (uint32_t)r->n;
    for (int d = 0; d < DIMS; d++)
        p->rows[d] = (uint32_t)r->extent[d];
    for (int d = 0; d < DIMS; d++)
        p->table_step[d] = r->table_step[d];
    p->index_step[0] = ggl_vk_stride(e, index, 0);
    p->index_step[1] = ggl_vk_stride(e, index, GGL_BATCH_DIM);
    for (int d = 0; d < DIMS; d++)
        p->y_step[d] = r->y_step[d];
    p->table_at = table_at;
    p->index_at = index_at;
    p->y_at = y_at;
    p->n_table = (uint32_t)r->n_table;
    p->first = (uint32_t)first;
    p->n_bound = (uint32_t)n;
    p->n_units = (uint32_t)n_units;
    c.groups[0] = ggl_vk_groups(n_units, LOCAL);
    return ggl_vk_dispatch(e, &c, err);
}

/* Returns the bytes of n elements of the table's last dimension. */
static size_t size_of(const vk_emit *e, const rows *r, int64_t n) {
    const ggl_operand *t = &e->step->src[0];
    size_t size = r->n == 1 ? t->nb[0] : ggl_row_size(t->type, t->ne[0]);
    for (int d = 0; d < 2; d++)
        size += (size_t)(r->extent[d] - 1) * r->table_step[d];
    return size + (size_t)(n - 1) * r->picked + (size_t)(r->extent[3] - 1) * r->table_step[3];
}

static ggl_status pick_emit(vk_emit *e, ggl_error *err) {
    const rows r = rows_of(e);
    const size_t most = ggl_vk_most_bound(e->b);
    int64_t each = r.n_table;
    if (size_of(e, &r, each) > most && r.table_step[3] == 0)
        each = size_of(e, &r, 1) > most ? 1 : 1 + (int64_t)((most - size_of(e, &r, 1)) / r.picked);
    ggl_status st = GGL_OK;
    for (int64_t first = 0; first < r.n_table && st == GGL_OK; first += each) {
        const int64_t n = each < r.n_table - first ? each : r.n_table - first;
        st = emit_part(e, &r, first, n, size_of(e, &r, n), err);
    }
    return st;
}

static const char *pick_refuses(const vk_backend *b, const ggl_tensor *node) {
    (void)b;
    const ggl_tensor *t = node->src[0];
    if (!ggl_vk_decodes(t->type) && t->type != GGL_I32)
        return "no pick from a table of this type";
    return t->n_dims == 1 && ggl_type_get(t->type)->quantized
               ? "no pick of single elements of a quantized row"
               : NULL;
}

const vk_op ggl_vk_op_pick = {.emit = pick_emit, .refuses = pick_refuses};
