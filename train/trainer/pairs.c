/* New adapters: which matrices they change, and what they begin with. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compile/compile.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/params.h"
#include "llm/internal/trainer.h"
#include "train_impl.h"
#include "sample/sampler_impl.h"
#include "trainer_impl.h"

/* True if a pattern of the list fits the name; hit[i] grows for each that does. */
static bool fits(const llm_train_pairs *p, const char *name, size_t *hit) {
    const ggl_str s = {name, strlen(name)};
    return llm_arch_match_first(p->matrix, p->n_matrices, s, hit) < p->n_matrices;
}

/* True if products read the weight, and no row of it is looked up. */
static bool is_matrix(const ggl_graph *g, const ggl_tensor *w) {
    bool is = false;
    for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
        const ggl_tensor *t = ggl_graph_node(g, i);
        for (int k = 0; k < ggl_n_reads(t); k++)
            if (ggl_read(t, k) == w) {
                if (t->op != GGL_OP_LINEAR)
                    return false;
                is = true;
            }
    }
    return is;
}

/* Numbers from -most to most. */
static void draw(float *x, int64_t n, double most, uint64_t rng[4]) {
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(most * (2 * llm_rng_uniform(rng) - 1));
}

/* Adds the lengths of the weight's rows to the file; they are kept in the arena. They have the bits of those that a run divides by
 * (docs/numeric.md, section 3), so that the adapter changes none at first. False: out of memory. */
static bool put_lengths(ggl_gguf_writer *w, ggl_arena *arena, const ggl_tensor *t) {
    const ggl_type_info *type = ggl_type_get(t->type);
    const int64_t n = ggl_extents(t->ne, 1, GGL_MAX_DIMS, 1), ne[] = {t->ne[1], t->ne[2], 1, 1};
    const size_t size = ggl_row_size(t->type, t->ne[0]);
    float *x = ggl_arena_alloc(arena, (size_t)n, sizeof *x),
          *row = ggl_calloc((size_t)t->ne[0], sizeof *row);
    char name[512];
    for (int64_t i = 0; x && row && i < n; i++) {
        float sum[16] = {0};
        type->to_float((const char *)t->data + (size_t)i * size, row, t->ne[0]);
        for (int64_t k = 0; k < t->ne[0]; k++) {
            const float square = row[k] * row[k];
            sum[k % 16] += square;
        }
        for (int n_sums = 8; n_sums > 0; n_sums /= 2)
            for (int k = 0; k < n_sums; k++)
                sum[k] += sum[k + n_sums];
        x[i] = sqrtf(sum[0]);
    }
    snprintf(name, sizeof name, "%s.lora_magnitude", t->name);
    if (x && row)
        ggl_gguf_put_tensor(w, name, GGL_F32, t->n_dims - 1, ne, x);
    ggl_free(row);
    return x && row;
}

/* Adds a pair to the file; its numbers are kept in the arena. */
static bool put_pair(ggl_gguf_writer *w, ggl_arena *arena, const ggl_tensor *t, int64_t rank,
                     uint64_t rng[4]) {
    const int64_t a[] = {t->ne[0], rank, t->ne[2], 1}, b[] = {rank, t->ne[1], t->ne[2], 1},
                  n_a = ggl_extents(a, 0, GGL_MAX_DIMS, 1),
                  n_b = ggl_extents(b, 0, GGL_MAX_DIMS, 1);
    float *x = ggl_arena_alloc(arena, (size_t)n_a, sizeof *x),
          *y = ggl_arena_alloc(arena, (size_t)n_b, sizeof *y); /* zeros */
    char name[512];
    if (!x || !y)
        return false;
    draw(x, n_a, sqrt(1 / (double)t->ne[0]), rng);
    snprintf(name, sizeof name, "%s.lora_a", t->name);
    ggl_gguf_put_tensor(w, name, GGL_F32, t->n_dims, a, x);
    snprintf(name, sizeof name, "%s.lora_b", t->name);
    ggl_gguf_put_tensor(w, name, GGL_F32, t->n_dims, b, y);
    return true;
}

/* Adds a pair for each matrix of the graph that is wanted, and their number to *n. *most grows to the largest rank that one can have. */
static ggl_status put_pairs(ggl_gguf_writer *w, ggl_arena *arena, const ggl_graph *g,
                            const llm_train_pairs *p, bool any_rank, uint64_t rng[4], size_t *hit,
                            size_t *n, int64_t *most, ggl_error *err) {
    for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
        const ggl_tensor *t = ggl_graph_node(g, i);
        if (t->op != GGL_OP_WEIGHT || !t->name || t->n_dims < 2 || t->n_dims > 3 ||
            (p->n_matrices && !fits(p, t->name, hit)))
            continue;
        const bool is = is_matrix(g, t);
        if (p->n_matrices && !is)
            return ggl_fail(
                err, GGL_UNSUPPORTED,
                "%s is not only multiplied with: new adapters change matrices of products",
                t->name);
        if (!is || (!p->n_matrices && !strstr(t->name, LLM_TRAIN_LAYER)))
            continue;
        const int64_t side = t->ne[0] < t->ne[1] ? t->ne[0] : t->ne[1],
                      rank = any_rank && side < p->rank ? side : p->rank;
        if (rank > side)
            return ggl_fail(err, GGL_USAGE,
                            "rank %" PRId64 " is larger than a side of %s, %" PRId64 " x %" PRId64,
                            p->rank, t->name, t->ne[0], t->ne[1]);
        if (p->magnitudes && (!t->data || !llm_train_is_of_numbers(t->type)))
            return ggl_fail(err, GGL_UNSUPPORTED,
                            "%s: its rows have no lengths (it is %s), with which a new adapter's "
                            "magnitudes begin",
                            t->name, t->data ? ggl_type_get(t->type)->name : "without data");
        if (!put_pair(w, arena, t, rank, rng) || (p->magnitudes && !put_lengths(w, arena, t)))
            return ggl_fail(err, GGL_NOMEM, "out of memory for an adapter");
        ++*n;
        *most = side > *most ? side : *most;
    }
    return GGL_OK;
}

/* True if a pattern begins as the names of tensors in files of eyes and ears. */
static bool is_of_eye(const char *pattern) {
    static const char *const begin[] = {"v.", "a.", "mm."};
    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
        if (strncmp(pattern, begin[i], strlen(begin[i])) == 0)
            return true;
    return false;
}

/* Adds those of the model and, if matrices are named, of its eye or ear. The graphs stay as long as their tensors' names are needed. */
static ggl_status put_all(ggl_gguf_writer *w, ggl_arena *arena, ggl_graph *const g[2],
                          const llm_train_pairs *p, bool any_rank, bool is_given, ggl_error *err) {
    int64_t most = 0;
    size_t *hit = ggl_calloc(p->n_matrices + 1, sizeof *hit), n = 0;
    ggl_status st = hit ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for an adapter");
    uint64_t rng[4];
    llm_rng_seed(rng, p->seed);
    for (int k = 0; k < 2 && st == GGL_OK; k++)
        if (g[k])
            st = put_pairs(w, arena, g[k], p, any_rank, rng, hit, &n, &most, err);
    for (size_t i = 0; i < p->n_matrices && st == GGL_OK; i++)
        if (!hit[i])
            st = ggl_fail(err, GGL_NOT_FOUND, "'%s' fits the name of no matrix%s", p->matrix[i],
                          !p->eye && is_of_eye(p->matrix[i])
                              ? "; those of an eye or an ear are in a file of its own: mmproj "
                                "(--mmproj FILE)"
                              : "");
    ggl_free(hit);
    if (st == GGL_OK && n == 0)
        return ggl_fail(err, GGL_NOT_FOUND, "no layer of the model has a product");
    return st == GGL_OK && is_given && p->rank > most
               ? ggl_fail(err, GGL_USAGE,
                          "rank (--rank) is %" PRId64 ", but ranks above %" PRId64
                          " add nothing: no matrix has a shorter side of more numbers",
                          p->rank, most)
               : st;
}

static void put_keys(ggl_gguf_writer *w, const llm_arch_source *source, double alpha) {
    llm_arch_key k;
    llm_arch_item item = {0};
    const float f = (float)alpha;
    ggl_gguf_put_string(w, "general.type", "adapter", 7);
    ggl_gguf_put_string(w, "adapter.type", "lora", 4);
    if (source->find_key(source->ctx, "general.architecture", &k) &&
        source->get_item(source->ctx, &k, 0, &item))
        ggl_gguf_put_string(w, "general.architecture", item.string.s, item.string.n);
    ggl_gguf_put(w, "adapter.lora.alpha", GGL_GGUF_F32, false, &f, 1);
}

ggl_status llm_train_new_adapter(const llm_arch *arch, const llm_arch_source *source,
                                 const llm_train_pairs *params, void **data, size_t *size,
                                 ggl_error *err) {
    llm_train_pairs p = {.size = sizeof p};
    *data = NULL;
    *size = 0;
    ggl_status st = GGL_READ_PARAMS(llm_train_pairs, &p, params, err);
    if (st != GGL_OK)
        return st;
    /* Matrices with shorter sides, such as those that choose among a few experts, have pairs of their rank, unless both are given. */
    const bool is_given = p.rank != 0, any_rank = !is_given || p.n_matrices == 0;
    p.rank = p.rank ? p.rank : 16;
    p.alpha = p.alpha != 0 ? p.alpha : 2 * (double)p.rank;
    if (p.rank < 1 || !(p.alpha > 0 && isfinite(p.alpha)))
        return ggl_fail(err, GGL_USAGE,
                        "an adapter of rank %" PRId64 " and alpha %g: both must be more than 0",
                        p.rank, p.alpha);
    const char *only =
        llm_arch_has_output(arch, "logits") ? "logits" : NULL; /* else vectors, or scores */
    const llm_arch_params of = {.size = sizeof of, .n_ctx = 1, .only = only};
    const llm_arch_params of_eye = {.size = sizeof of_eye, .n_ctx = 1, .ignore = p.eye_ignore};
    const bool with_eye = p.eye && p.n_matrices > 0;
    ggl_graph *g[2] = {ggl_graph_new(NULL), with_eye ? ggl_graph_new(NULL) : NULL};
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_arena arena = {0};
    st = g[0] && w && (g[1] || !with_eye)
             ? llm_arch_build(arch, source, &of, g[0], NULL, err)
             : ggl_fail(err, GGL_NOMEM, "out of memory for an adapter");
    if (st == GGL_OK && with_eye)
        st = llm_arch_build(p.eye, p.eye_source, &of_eye, g[1], NULL, err);
    if (st == GGL_OK) {
        put_keys(w, source, p.alpha);
        st = put_all(w, &arena, g, &p, any_rank, is_given, err);
    }
    if (st == GGL_OK)
        st = ggl_gguf_writer_write_memory(w, data, size, err);
    ggl_arena_fini(&arena);
    ggl_gguf_writer_free(w);
    ggl_graph_free(g[0]);
    ggl_graph_free(g[1]);
    return st;
}
