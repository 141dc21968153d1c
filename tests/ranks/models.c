/* Made-up models of the built-in descriptors, with layers on ranks of a job of mpirun: every border between two, three and four
 * ranks, every type of the KV cache, layers and single weights anywhere, and slots that are saved under one border and
 * restored under another one. The bits are those of one process. */
#include <math.h>

#include "sample.h"
#include "toy_run.h"
#include "under_mpirun.h"

enum { N = 70 /* beyond a page, and beyond every toy's window */, N_PUSHED = 24, N_SAVED = 45 };
enum { N_DAILY = 1, N_SCATTERED = 3 };

typedef struct fixture {
    ggl_backend *here, *fold, *rank[N_RANKS]; /* rank[0] is not used */
} fixture;

static ggl_backend *open_backend(const char *name) {
    ggl_backend *b = NULL;
    ggl_error err = {0};
    const ggl_backend_params p = {.size = sizeof p, .n_threads = 1};
    CHECK_OK(ggl_backend_open(&b, name, &p, &err), &err);
    return b;
}

static bool setup(fixture *f) {
    *f = (fixture){.here = open_backend("cpu"), .fold = open_backend("reference")};
    for (int k = 1; k < N_RANKS; k++) {
        char name[16];
        snprintf(name, sizeof name, "rank%d", k);
        f->rank[k] = open_backend(name);
    }
    return test_failures == 0;
}

static void teardown(fixture *f) {
    for (int k = 1; k < N_RANKS; k++)
        ggl_backend_close(f->rank[k]);
    ggl_backend_close(f->here);
    ggl_backend_close(f->fold);
}

/* --- where layers run -------------------------------------------------------------------------- */

/* Devices in the order of the layers; device k has the layers from border[k] on. With a seed, each layer and every third
 * weight is anywhere. */
typedef struct division {
    ggl_backend *b[N_RANKS];
    int n;
    int border[N_RANKS];
    uint64_t seed;
    int n_layers; /* seen so far */
} division;

static int place(void *ctx, int group, const char *weight) {
    division *d = ctx;
    int k = 0;
    d->n_layers = group > d->n_layers ? group : d->n_layers;
    if (d->seed) {
        uint64_t h = sample_mix(d->seed + (uint64_t)(group + 2));
        for (; weight && *weight; weight++)
            h = sample_mix(h ^ (unsigned char)*weight);
        return weight && h % 3 ? -1 : (int)(h / 3 % (uint64_t)d->n);
    }
    while (k + 1 < d->n && group >= d->border[k + 1])
        k++;
    return weight ? -1 : k;
}

static const char *text_of(const division *d) {
    static char s[200];
    size_t n = 0;
    for (int k = 0; k < d->n; k++)
        n += (size_t)snprintf(s + n, sizeof s - n, "%s from layer %d, ", d->b[k]->name,
                              d->border[k]);
    snprintf(s + n, sizeof s - n, "seed %d", (int)d->seed);
    return s;
}

/* --- runs --------------------------------------------------------------------------------------- */

typedef struct logits {
    float *at; /* for free() */
    size_t n, row;
} logits;

/* The logits after N_PUSHED tokens, whose batches are all under way at once. False: it failed. */
static bool run(const fixture *f, const toy_model *t, division *d, ggl_type kv, logits *out,
                ggl_error *err) {
    toy_run r = {0};
    bool ok = toy_start_placed(&r, t, d->b, d->n, f->fold, place, d, kv, err);
    if (ok) {
        out->row = (size_t)r.n_vocab;
        out->n = (size_t)(N - N_PUSHED) * out->row;
        free(out->at);
        out->at = calloc(out->n, sizeof *out->at);
        ok = out->at && toy_prompt(&r, 1, N_PUSHED, 5, NULL, err);
        for (int i = N_PUSHED, k; ok && i < N; i += k) {
            k = N - i < TOY_BATCH || r.sees_all ? N - i : TOY_BATCH;
            ok = toy_eval(&r, 1, i, k, out->at + (size_t)(i - N_PUSHED) * out->row, err);
        }
    }
    toy_stop(&r);
    return ok;
}

static void same_bits(const toy_model *t, const logits *a, const float *b, size_t from, ggl_type kv,
                      const division *d) {
    for (size_t i = from; i < a->n; i++)
        if (memcmp(a->at + i, b + i, 4) != 0 && !(isnan(a->at[i]) && isnan(b[i]))) {
            (void)TEST_SAY("%s (%s), cache of %s, %s: logit %zu is %.9g, not %.9g",
                           llm_arch_name(t->arch), llm_arch_toy_text(t->toy),
                           ggl_type_get(kv)->name, text_of(d), i, (double)b[i], (double)a->at[i]);
            return;
        }
}

static void check_division(const fixture *f, const toy_model *t, division *d, ggl_type kv,
                           const logits *want) {
    logits got = {0};
    ggl_error err = {0};
    if (CHECK_MSG(run(f, t, d, kv, &got, &err), "%s (%s), cache of %s, %s: %s",
                  llm_arch_name(t->arch), llm_arch_toy_text(t->toy), ggl_type_get(kv)->name,
                  text_of(d), err.msg))
        same_bits(t, want, got.at, 0, kv, d);
    free(got.at);
}

/* Saves the slot under one division, restores it under another one, and goes on. */
static void check_slot(const fixture *f, const toy_model *t, division *a, division *b, ggl_type kv,
                       const logits *want) {
    toy_run r = {0}, q = {0};
    ggl_error err = {0};
    float *got = calloc(want->n, sizeof *got);
    void *saved = NULL;
    const size_t at = (size_t)(N_SAVED - N_PUSHED) * want->row;
    bool ok = got && toy_start_placed(&r, t, a->b, a->n, f->fold, place, a, kv, &err) &&
              toy_start_placed(&q, t, b->b, b->n, f->fold, place, b, kv, &err) &&
              (saved = malloc(ggl_sched_slot_size(r.sched, N_SAVED, false) + 1)) &&
              CHECK(ggl_sched_slot_size(r.sched, N_SAVED, false) ==
                    ggl_sched_slot_size(q.sched, N_SAVED, false)) &&
              toy_prompt(&r, 0, N_SAVED, 9, NULL, &err) &&
              ggl_sched_save_slot(r.sched, 0, N_SAVED, false, saved, &err) == GGL_OK &&
              ggl_sched_restore_slot(q.sched, 1, N_SAVED, false, saved, &err) == GGL_OK &&
              toy_eval(&q, 1, N_SAVED, N - N_SAVED, got + at, &err);
    if (CHECK_MSG(ok, "%s: a slot saved with %s: %s", llm_arch_name(t->arch), text_of(a), err.msg))
        same_bits(t, want, got, at, kv, b);
    free(saved);
    free(got);
    toy_stop(&r);
    toy_stop(&q);
}

/* All borders from the k-th on, which are not below those before. */
static void check_borders(const fixture *f, const toy_model *t, division *d, int k, ggl_type kv,
                          const logits *want) {
    if (k == d->n) {
        uint64_t x = sample_seed();
        for (int i = 1; i < d->n; i++)
            x = sample_mix(x + (uint64_t)d->border[i]);
        if (sample_is_all() || d->n == 2 || x % 8 == 0) /* there are hundreds of three borders */
            check_division(f, t, d, kv, want);
        return;
    }
    for (d->border[k] = d->border[k - 1]; d->border[k] <= d->n_layers; d->border[k]++)
        check_borders(f, t, d, k + 1, kv, want);
}

static void check_model(const fixture *f, const toy_model *t, uint64_t seed) {
    static const ggl_type types[] = {GGL_F32, GGL_F16, GGL_Q8_0, GGL_Q4_0};
    ggl_backend *const *rank = f->rank;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (!sample_is_all() && (i + seed) % 2) /* two of the types, another day the others */
            continue;
        division one = {.b = {f->here}, .n = 1};
        logits want = {0};
        ggl_error err = {0};
        if (!run(f, t, &one, types[i], &want, &err)) {
            CHECK_MSG(i > 1, "%s: %s", llm_arch_name(t->arch), err.msg); /* heads too short */
            free(want.at);
            continue;
        }
        const int n = one.n_layers;
        division two = {.b = {f->here, rank[1]}, .n = 2, .n_layers = n},
                 three = {.b = {rank[2], f->here, rank[1]}, .n = 3, .n_layers = n},
                 four = {.b = {f->here, rank[1], rank[2], rank[3]}, .n = 4, .n_layers = n};
        check_borders(f, t, &two, 1, types[i], &want);
        if (i % 2 == 0)
            check_borders(f, t, &three, 1, types[i], &want);
        if (i == 1)
            check_borders(f, t, &four, 1, types[i], &want);
        for (int k = 0; k < N_SCATTERED; k++) {
            four.seed = seed * 8 + i + (uint64_t)k * 4 + 1;
            check_division(f, t, &four, types[i], &want);
        }
        two.border[1] = n / 2;
        if (!llm_arch_sees_all(t->arch)) /* nothing can follow a text that is seen whole */
            check_slot(f, t, &two, &four, types[i], &want);
        free(want.at);
    }
}

TEST(descriptors) {
    RANKS_OR_SKIP();
    fixture f;
    const char *name, *text;
    size_t n;
    if (setup(&f))
        for (int k = 0; llm_arch_builtin(k, &name, &text, &n); k++) {
            if (!sample_is_all() && !sampled(k, N_DAILY))
                continue;
            printf("%s\n", name);
            for (int variant = 0; variant < 2; variant++) {
                toy_model t;
                ggl_error err = {0};
                if (!CHECK_MSG(toy_open(&t, name, text, n, variant, &err), "%s: %s", name, err.msg))
                    continue;
                check_model(&f, &t, sample_seed());
                toy_close(&t);
            }
        }
    teardown(&f);
}
