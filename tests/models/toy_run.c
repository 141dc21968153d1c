#include "toy_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/divide.h"
#include "ggl/internal/fold.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/sched.h"
#include "llm/internal/text_inputs.h"

bool toy_open(toy_model *t, const char *name, const char *text, size_t n, int variant,
              ggl_error *err) {
    *t = (toy_model){0};
    if (llm_arch_parse(&t->arch, text, n, name, err) != GGL_OK)
        return false;
    t->toy = llm_arch_toy_new(t->arch, variant, err);
    if (t->toy)
        return true;
    toy_close(t);
    return false;
}

void toy_close(toy_model *t) {
    llm_arch_toy_free(t->toy);
    llm_arch_free(t->arch);
    *t = (toy_model){0};
}

static int place(void *ctx, int group, const char *weight) {
    const toy_run *r = ctx;
    (void)weight;
    return r->split >= 0 && group >= r->split;
}

/* A copy of a weight's n numbers for a draw, which is the same for draw 0: each from another place of the tensor; in vectors, whose numbers are about 1, all with
 * a sign that goes by the name, the same in all layers. */
static float *drawn(const ggl_tensor *w, int draw, int64_t n) {
    const float *x = w->data;
    const char *stem = strncmp(w->name, "blk.", 4) == 0 ? strchr(w->name + 4, '.') : w->name;
    uint64_t h = (uint64_t)draw * 0x9e3779b97f4a7c15u;
    for (; stem && *stem; stem++)
        h = (h ^ (unsigned char)*stem) * 0x100000001b3u;
    const float sign = draw > 0 && w->n_dims < 2 && (h ^ h >> 29) >> 7 & 1 ? -1.0f : 1.0f;
    float *y = malloc((size_t)n * sizeof *y);
    for (int64_t i = 0; y && i < n; i++)
        y[i] = sign * x[(i + (int64_t)draw * 7919) % n];
    return y;
}

/* True for a tensor of an adapter: "NAME.weight.lora_a", or that of another weight of the graph. Models have such names, too. */
static bool is_adapters(const ggl_graph *g, const char *name) {
    static const char weight[] = ".weight";
    size_t n = 0;
    for (const char *at = name; (at = strstr(at, ".lora_")); at++)
        n = (size_t)(at - name);
    if (n == 0)
        return false;
    if (n >= strlen(weight) && strncmp(name + n - strlen(weight), weight, strlen(weight)) == 0)
        return true;
    for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
        const ggl_tensor *w = ggl_graph_node(g, i);
        if (w->op == GGL_OP_WEIGHT && strlen(w->name) == n && strncmp(w->name, name, n) == 0)
            return true;
    }
    return false;
}

static bool draw_weights(toy_run *r, const toy_model *t) {
    const int n = ggl_graph_n_nodes(r->graph);
    if (t->draw == 0 && !t->change)
        return true;
    r->weight = calloc((size_t)n, sizeof *r->weight);
    for (int i = 0; i < n && r->weight; i++) {
        ggl_tensor *w = ggl_graph_node(r->graph, i);
        if (w->op != GGL_OP_WEIGHT || w->type != GGL_F32)
            continue;
        if (is_adapters(r->graph, w->name) || strncmp(w->name, "direction.", 10) == 0)
            continue;
        float *y = drawn(w, t->draw, ggl_extents(w->ne, 0, GGL_MAX_DIMS, 1));
        if (!y)
            return false;
        if (t->change)
            t->change(t->change_ctx, w, y);
        w->data = r->weight[r->n_weights++] = y;
    }
    return r->weight != NULL;
}

/* As far as it goes, to the last row. */
static bool divide(toy_run *r, const toy_model *t, ggl_error *err) {
    const double share[] = {2, 1, 2, 1};
    int n;
    return t->n_divided == 0 ||
           ggl_graph_divide(r->graph, share, t->n_divided, 1, 1, &n, err) == GGL_OK;
}

bool toy_start(toy_run *r, const toy_model *t, ggl_backend *const *backend, int n_backends,
               ggl_backend *fold, int split, ggl_type kv, ggl_error *err) {
    *r = (toy_run){.split = split};
    return toy_start_placed(r, t, backend, n_backends, fold, place, r, kv, err);
}

bool toy_start_placed(toy_run *r, const toy_model *t, ggl_backend *const *backend, int n_backends,
                      ggl_backend *fold, int (*where)(void *, int, const char *), void *ctx,
                      ggl_type kv, ggl_error *err) {
    r->graph = NULL;
    r->sched = NULL;
    r->weight = NULL;
    r->n_weights = 0;
    ggl_graph_params p = {.size = sizeof p,
                          .n_pos = TOY_CTX,
                          .n_batch = llm_arch_sees_all(t->arch) ? TOY_CTX : TOY_BATCH,
                          .n_slots = TOY_SLOTS,
                          .type_k = kv,
                          .type_v = kv};
    llm_arch_result built = {0};
    llm_arch_params ap = {.size = sizeof ap,
                          .adapter = t->adapter,
                          .n_adapters = t->n_adapters,
                          .embedding = t->embedding,
                          .tap = t->tap,
                          .n_taps = t->n_taps};
    r->graph = ggl_graph_new(&p);
    bool ok =
        r->graph && llm_arch_build(t->arch, t->source ? t->source : llm_arch_toy_source(t->toy),
                                   &ap, r->graph, &built, err) == GGL_OK;
    r->n_tokens = built.n_vocab;
    r->n_vocab = built.logits.n        ? built.logits.n
                 : built.embedding.n   ? built.embedding.n
                 : built.score.n       ? built.score.n
                 : built.guess_in_turn ? built.n_row
                                       : built.guess.n;
    r->sees_all = built.sees_all;
    llm_arch_result_fini(&built);
    ggl_sched_params sp = {.size = sizeof sp,
                           .backend = backend,
                           .n_backends = n_backends,
                           .place = where,
                           .ctx = ctx,
                           .early = t->embedding ? "embedding" : NULL,
                           .watch = t->watch,
                           .side_by_side = t->n_divided > 0};
    ok = ok && draw_weights(r, t) && ggl_graph_finish(r->graph, err) == GGL_OK &&
         ggl_graph_fold(r->graph, fold, err) == GGL_OK && divide(r, t, err) &&
         ggl_sched_new(&r->sched, r->graph, &sp, err) == GGL_OK &&
         ggl_sched_alloc(r->sched, err) == GGL_OK;
    if (!ok)
        toy_stop(r);
    return ok;
}

void toy_stop(toy_run *r) {
    ggl_sched_free(r->sched);
    ggl_graph_free(r->graph);
    for (int i = 0; i < r->n_weights; i++)
        free(r->weight[i]);
    free(r->weight);
    *r = (toy_run){0};
}

static int32_t toy_token(const toy_run *r, int i) {
    const int32_t id = (int32_t)((uint32_t)i * 2654435761u >> 7) % (int32_t)r->n_tokens;
    return id < 0 ? id + (int32_t)r->n_tokens : id;
}

bool toy_eval(toy_run *r, int slot, int first, int n, float *logits, ggl_error *err) {
    enum { N_READ = 20 };
    int32_t token[TOY_CTX], read[N_READ];
    for (int i = 0; i < n; i++)
        token[i] = toy_token(r, first + i);
    for (int i = 0; i < N_READ; i++)
        read[i] = toy_token(r, 1000 + i);
    const llm_text_inputs x = {token, first, slot, n, r->sees_all ? NULL : read, N_READ};
    if (llm_text_inputs_set(&x, r->sched, r->graph, err) != GGL_OK ||
        (logits ? ggl_sched_run(r->sched, n, NULL, 0, err)
                : ggl_sched_submit(r->sched, n, NULL, 0, false, NULL, err)) != GGL_OK)
        return false;
    if (logits)
        memcpy(logits, ggl_sched_output(r->sched, 0),
               (size_t)n * (size_t)r->n_vocab * sizeof *logits);
    return true;
}

bool toy_prompt(toy_run *r, int slot, int n, int chunk, float *logits, ggl_error *err) {
    if (ggl_sched_clear_slot(r->sched, slot, err) != GGL_OK)
        return false;
    for (int i = 0, k; i < n; i += k) {
        k = n - i < chunk || r->sees_all ? n - i : chunk;
        if (!toy_eval(r, slot, i, k, logits ? logits + (size_t)i * (size_t)r->n_vocab : NULL, err))
            return false;
    }
    return true;
}

/* --- what f32 can hold ------------------------------------------------------------------------- */

/* The logits of the first n tokens on one backend; *n becomes how many they are, fewer where there are states. For free(). */
static float *first_logits(const toy_model *t, ggl_backend *b, ggl_backend *fold, int64_t *n,
                           ggl_error *err) {
    toy_run r = {0};
    float *x = NULL;
    if (!toy_start(&r, t, &b, 1, fold, -1, GGL_F32, err))
        return NULL;
    const int64_t n_tokens = ggl_sched_has_states(r.sched) && *n > 20 ? 20 : *n;
    *n = n_tokens * r.n_vocab;
    x = malloc((size_t)*n * sizeof *x);
    if (x && !toy_prompt(&r, 0, (int)n_tokens, TOY_BATCH, x, err)) {
        free(x);
        x = NULL;
    }
    toy_stop(&r);
    return x;
}

/* How far f32 between operators and in sums of products moves the logits of the reference, as a share of the largest; NaN:
 * that failed, or did so with one of them. */
static double moved_by_f32(const toy_model *t, ggl_backend *exact, ggl_backend *narrow, int n,
                           ggl_error *err) {
    int64_t n_x = n, n_y = n;
    float *x = first_logits(t, exact, exact, &n_x, err);
    float *y = x ? first_logits(t, narrow, exact, &n_y, err) : NULL;
    double worst = x && y ? 0 : NAN, size = 1;
    for (int64_t i = 0; x && y && i < n_x; i++) {
        const double d = fabs((double)x[i] - (double)y[i]);
        if (x[i] < -1e37f && y[i] < -1e37f) /* tokens that the descriptor forbids */
            continue;
        worst = d > worst || isnan(d) ? d : worst;
        size = fmax(size, fabs((double)x[i]));
    }
    free(x);
    free(y);
    return worst / size;
}

bool toy_settle(toy_model *t, int n, ggl_error *err) {
    ggl_backend *exact = NULL, *narrow = NULL;
    const ggl_backend_params p = {.size = sizeof p, .n_threads = 1, .mask = "f64"};
    double moved = NAN;
    bool ok = ggl_backend_open(&exact, "reference", NULL, err) == GGL_OK &&
              ggl_backend_open(&narrow, "reference", &p, err) == GGL_OK;
    *err = (ggl_error){0};
    for (t->draw = 0; ok && t->draw < TOY_DRAWS; t->draw++) {
        moved = moved_by_f32(t, exact, narrow, n, err);
        if (err->msg[0] || moved <= TOY_BOUND / 4)
            break;
        printf("%s (%s): draw %d is left out: f32 moves its logits by %.2g\n",
               llm_arch_name(t->arch), llm_arch_toy_text(t->toy), t->draw, moved);
    }
    if (ok && !err->msg[0] && t->draw == TOY_DRAWS)
        snprintf(err->msg, sizeof err->msg, "f32 cannot hold any of %d draws of weights",
                 TOY_DRAWS);
    ggl_backend_close(exact);
    ggl_backend_close(narrow);
    return ok && moved <= TOY_BOUND / 4;
}
