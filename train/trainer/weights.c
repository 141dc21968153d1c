/* The weights that learn: their numbers, as f32, and those that belong to them. */
#include <inttypes.h>
#include <string.h>

#include "common/work_share.h"
#include "compile/compile.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/file.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/types.h"
#include "train_impl.h"

/* True if the weight can be rounded to the type: a matrix of the model with rows of whole blocks. */
static bool is_rounded(const llm_train_weight *w, const ggl_type_info *type) {
    return w->n_dims > 1 && w->ne[0] % type->block == 0 && !strstr(w->name, ".lora_");
}

static size_t n_blocks(const llm_train_weight *w) {
    return ((size_t)llm_train_weight_count(w) + LLM_TRAIN_BLOCK - 1) / LLM_TRAIN_BLOCK;
}

/* Makes room for what the optimizer remembers: nothing so far. Zeros of blocks are zeros, too. */
static bool make_states(llm_train_weight *w, const llm_train_params *p) {
    const size_t n = (size_t)llm_train_weight_count(w);
    if (p->optimizer_bits == 8 && w->n_dims > 1) {
        w->packed_mean = ggl_calloc(n_blocks(w), sizeof *w->packed_mean);
        w->packed_square = ggl_calloc(n_blocks(w), sizeof *w->packed_square);
        return w->packed_mean && w->packed_square;
    }
    w->mean = ggl_calloc(n, sizeof *w->mean);
    w->square = ggl_calloc(n, sizeof *w->square);
    return w->mean && w->square;
}

llm_train_state llm_train_weight_state(const llm_train_weight *w, int k) {
    llm_train_block *const packed[LLM_TRAIN_STATES] = {NULL, w->packed_mean, w->packed_square};
    float *const plain[LLM_TRAIN_STATES] = {w->master, w->mean, w->square};
    llm_train_state s = {.data = plain[k],
                         .size = (size_t)llm_train_weight_count(w) * sizeof(float),
                         .type = GGL_F32,
                         .n_dims = w->n_dims};
    memcpy(s.ne, w->ne, sizeof s.ne);
    if (!packed[k])
        return s;
    return (llm_train_state){.data = packed[k],
                             .size = n_blocks(w) * sizeof *packed[k],
                             .type = GGL_I32,
                             .n_dims = 2,
                             .ne = {sizeof *packed[k] / 4, (int64_t)n_blocks(w), 1, 1}};
}

size_t llm_train_weight_bytes(const llm_train_weight *w) {
    const size_t n = (size_t)llm_train_weight_count(w) * sizeof(float);
    size_t sum = n +
                 (w->master != w->data ? n : 0) + /* the gradient, what is rounded, and copies */
                 (w->copy ? n / 2 : 0);
    for (int k = 0; k < LLM_TRAIN_STATES; k++)
        sum += llm_train_weight_state(w, k).size;
    return sum;
}

size_t llm_train_expected_bytes(const ggl_gguf *f, const llm_train_params *p) {
    size_t sum = 0;
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const ggl_gguf_tensor *x = ggl_gguf_tensor_at(f, i);
        const size_t n = (size_t)ggl_extents(x->ne, 0, GGL_MAX_DIMS, 1);
        const bool is_matrix = x->n_dims > 1;
        if (p->n_learn > 0 && !arch_match_any(p->learn, p->n_learn, x->name))
            continue;
        sum += 2 * n * sizeof(float) + (is_matrix && p->rounded != GGL_F32 ? n * sizeof(float) : 0);
        sum += is_matrix && p->bf16 ? n * sizeof(uint16_t) : 0;
        sum += is_matrix && p->optimizer_bits == 8 ? 2 * n : 2 * n * sizeof(float);
    }
    return sum;
}

/* Makes a weight's memory, with its numbers. False: there is not enough. */
static bool copy_numbers(llm_train_weight *w, const llm_train_params *p) {
    const size_t n = (size_t)llm_train_weight_count(w);
    w->data = ggl_calloc(n, sizeof(float));
    w->grad = ggl_calloc(n, sizeof(float));
    if (!w->data || !w->grad || !make_states(w, p))
        return false;
    if (w->type == GGL_F32)
        memcpy(w->data, w->origin, n * sizeof(float));
    else
        ggl_to_float(ggl_type_get(w->type), w->origin, w->ne[0], 0, (int64_t)n, w->data);
    ggl_file_map file; /* whose pages nobody needs any more */
    if (ggl_file_at(w->origin, &file))
        ggl_file_map_drop(&file, w->origin,
                          ggl_row_size(w->type, w->ne[0]) *
                              (size_t)ggl_extents(w->ne, 1, GGL_MAX_DIMS, 1));
    w->master = w->data;
    if (w->rounded == GGL_F32)
        return true;
    w->master = ggl_calloc(n, sizeof(float));
    if (w->master)
        memcpy(w->master, w->data, n * sizeof(float));
    return w->master != NULL;
}

/* Rounds the numbers of a weight, one row after the other. */
static void round_weight(const llm_train_weight *w, void *row) {
    const ggl_type_info *type = ggl_type_get(w->rounded);
    const int64_t n = ggl_extents(w->ne, 1, GGL_MAX_DIMS, 1);
    for (int64_t i = 0; i < n; i++) {
        type->from_float(w->master + i * w->ne[0], row, w->ne[0]);
        type->to_float(row, w->data + i * w->ne[0], w->ne[0]);
    }
}

enum { PIECE = 1 << 16 }; /* numbers that a thread takes at a time */

static void copy_piece(void *ctx, size_t i, int thread) {
    const llm_train_weight *w = ctx;
    const int64_t first = (int64_t)i * PIECE, left = llm_train_weight_count(w) - first;
    (void)thread;
    ggl_type_get(GGL_BF16)->from_float(w->data + first, w->copy + first,
                                       left < PIECE ? left : PIECE);
}

void llm_train_weights_round(const train_weights *list) {
    for (int k = 0; k < list->n; k++)
        if (list->at[k].w.rounded != GGL_F32)
            round_weight(&list->at[k].w, list->row);
    for (int k = 0; k < list->n; k++) {
        llm_train_weight *w = &list->at[k].w;
        if (w->copy)
            llm_work_share(list->n_threads, ((size_t)llm_train_weight_count(w) + PIECE - 1) / PIECE,
                           copy_piece, w);
    }
}

ggl_status llm_train_weights_init(train_weights *list, ggl_tensor *const *weight, int n,
                                  const llm_train_params *p, ggl_error *err) {
    const ggl_type_info *type = ggl_type_get(p->rounded);
    size_t row = 0;
    *list = (train_weights){.n_threads = p->n_threads > 1 ? p->n_threads : 1};
    ggl_status st =
        ggl_index_init(&list->index, (size_t)n, sizeof *list->at, GGL_INDEX_STRINGS, err);
    list->at = st == GGL_OK ? ggl_calloc((size_t)n, sizeof *list->at) : NULL;
    for (; list->at && list->n < n && st == GGL_OK; list->n++) {
        const ggl_tensor *t = weight[list->n];
        struct train_weight *to = &list->at[list->n];
        const size_t length = strlen(t->name);
        char *name = ggl_calloc(length + 1, 1);
        to->w = (llm_train_weight){
            .name = name, .type = t->type, .n_dims = t->n_dims, .origin = t->data};
        memcpy(to->w.ne, t->ne, sizeof t->ne);
        if (name)
            memcpy(name, t->name, length);
        if (name && p->rounded != GGL_F32 && is_rounded(&to->w, type)) {
            const size_t own = (size_t)(t->ne[0] / type->block) * type->size;
            to->w.rounded = p->rounded;
            row = own > row ? own : row;
        }
        if (!name || !copy_numbers(&to->w, p)) {
            st = ggl_fail(err, GGL_NOMEM,
                          "out of memory for the weight %s, its gradient and what the optimizer "
                          "remembers of it, %.0f MiB",
                          t->name, (double)llm_train_weight_bytes(&to->w) / 0x1p20);
            continue;
        }
        to->name = (ggl_str){name, length};
        if (ggl_index_put(&list->index, list->at, (size_t)list->n) != (size_t)list->n)
            st = ggl_fail(err, GGL_UNSUPPORTED,
                          "two weights have the name %s, so they cannot both learn", name);
    }
    if (st == GGL_OK && p->rounded != GGL_F32 && row == 0)
        st = ggl_fail(err, GGL_NOT_FOUND,
                      "no weight that learns can be rounded to %s: no matrix has rows of a "
                      "multiple of %" PRId64 " numbers",
                      type->name, type->block);
    list->row = st == GGL_OK ? ggl_calloc(row + 1, 1) : NULL;
    if (st == GGL_OK && (!list->at || !list->row))
        st = ggl_fail(err, GGL_NOMEM, "out of memory for a trainer");
    if (st == GGL_OK)
        llm_train_weights_round(list);
    return st;
}

void llm_train_weights_fini(train_weights *list) {
    for (int k = 0; k < list->n; k++) {
        llm_train_weight *w = &list->at[k].w;
        if (w->master != w->data)
            ggl_free(w->master);
        ggl_free(w->data);
        ggl_free(w->grad);
        ggl_free(w->mean);
        ggl_free(w->square);
        ggl_free(w->packed_mean);
        ggl_free(w->packed_square);
        ggl_free(w->copy);
        ggl_free((char *)w->name);
    }
    ggl_free(list->at);
    ggl_free(list->row);
    ggl_index_fini(&list->index);
    *list = (train_weights){0};
}

llm_train_weight *llm_train_weights_find(const train_weights *list, const char *name) {
    const size_t k = ggl_index_find(&list->index, list->at, (ggl_str){name, strlen(name)});
    return k == SIZE_MAX ? NULL : &list->at[k].w;
}
