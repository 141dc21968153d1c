/* Built-in descriptors, with made-up weights, on the CPU: the logits of a prompt are the same
 * bits however it is cut, whatever the threads, wherever the layers are split, with and without
 * vector instructions, after a slot was copied or saved and restored, and with another sequence in
 * between; and they are near the double-precision reference. */
#include <math.h>

#include "ggl/internal/sched.h"
#include "sample.h"
#include "test.h"
#include "toy_run.h"

#define N 70 /* beyond a page of 64 positions, and beyond every toy's window */

typedef struct fixture {
    ggl_backend *cpu[2], *cpu3, *cpu7, *portable, *reference;
} fixture;

static ggl_backend *open_cpu(int n_threads, const char *mask) {
    ggl_backend *b = NULL;
    ggl_error err = {0};
    ggl_backend_params p = {.size = sizeof p, .n_threads = n_threads, .mask = mask};
    CHECK_OK(ggl_backend_open(&b, "cpu", &p, &err), &err);
    return b;
}

static void setup(fixture *f) {
    ggl_error err = {0};
    *f = (fixture){{open_cpu(1, NULL), open_cpu(2, NULL)},
                   open_cpu(3, NULL),
                   open_cpu(7, NULL),
                   open_cpu(2, "all"),
                   NULL};
    CHECK_OK(ggl_backend_open(&f->reference, "reference", NULL, &err), &err);
}

static void teardown(fixture *f) {
    ggl_backend *all[] = {f->cpu[0], f->cpu[1], f->cpu3, f->cpu7, f->portable, f->reference};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        ggl_backend_close(all[i]);
}

typedef struct logits {
    float *at;
    size_t n;
    bool has_states;
} logits;

static bool prompt(const toy_model *t, ggl_backend *const *b, int n_b, ggl_backend *fold, int split,
                   int chunk, ggl_type kv, logits *out, const char *what) {
    toy_run r;
    ggl_error err = {0};
    bool ok = toy_start(&r, t, b, n_b, fold, split, kv, &err);
    if (ok) {
        out->n = (size_t)N * (size_t)r.n_vocab;
        out->has_states = ggl_sched_has_states(r.sched);
        out->at = realloc(out->at, out->n * sizeof *out->at);
        ok = toy_prompt(&r, 1, N, chunk, out->at, &err);
    }
    CHECK_MSG(ok, "%s (%s), %s: %s", llm_arch_name(t->arch), llm_arch_toy_text(t->toy), what,
              err.msg);
    if (ok)
        toy_stop(&r);
    return ok;
}

static void same(const toy_model *t, const logits *a, const logits *b, const char *what) {
    size_t bad = 0, first = 0;
    for (size_t i = 0; i < a->n; i++)
        if (memcmp(&a->at[i], &b->at[i], 4) != 0 && !(isnan(a->at[i]) && isnan(b->at[i])))
            first = bad++ ? first : i;
    CHECK_MSG(bad == 0,
              "%s (%s), %s: %zu of %zu logits have other bits; the first is %zu: %.9g, not %.9g",
              llm_arch_name(t->arch), llm_arch_toy_text(t->toy), what, bad, a->n, first,
              (double)b->at[first], (double)a->at[first]);
}

/* With states, only the first tokens are compared: random weights make some states grow with every
 * token, until the logits are only differences of large numbers. */
static void near(const toy_model *t, const logits *a, const logits *exact) {
    double worst = 0, size = 0;
    for (size_t i = 0; i < (a->has_states ? a->n * 20 / N : a->n); i++) {
        if (a->at[i] == exact->at[i]) /* also of tokens that cannot follow: minus infinity */
            continue;
        double d = fabs((double)a->at[i] - (double)exact->at[i]);
        worst = d > worst || isnan(d) ? d : worst;
        size = isfinite(exact->at[i]) ? fmax(size, fabs((double)exact->at[i])) : size;
    }
    CHECK_MSG(worst <= TOY_BOUND * fmax(size, 1),
              "%s (%s): %g away from double precision (logits up to %g)", llm_arch_name(t->arch),
              llm_arch_toy_text(t->toy), worst, size);
}

static int n_layers(const toy_model *t) {
    llm_arch_result built = {0};
    ggl_graph_params p = ggl_graph_default();
    p.n_pos = TOY_CTX;
    ggl_graph *g = ggl_graph_new(&p);
    ggl_error err = {0};
    CHECK_OK(llm_arch_build(t->arch, llm_arch_toy_source(t->toy), NULL, g, &built, &err), &err);
    int n = (int)built.n_layer;
    llm_arch_result_fini(&built);
    ggl_graph_free(g);
    return n;
}

/* --- slots ------------------------------------------------------------------------------------ */

/* The last third of the text, after the slot was copied, then saved and restored, with another
 * sequence in between. */
static void check_slots(const fixture *f, const toy_model *t, const logits *want) {
    toy_run r;
    ggl_error err = {0};
    const int cut = 45;
    if (llm_arch_sees_all(t->arch)) /* nothing can follow a text that is seen whole */
        return;
    float *got = malloc(want->n * sizeof *got);
    REQUIRE(got);
    if (!CHECK_MSG(toy_start(&r, t, f->cpu, 1, f->reference, -1, GGL_F16, &err), "%s", err.msg)) {
        free(got);
        return;
    }
    size_t size = ggl_sched_slot_size(r.sched, cut, false), row = (size_t)r.n_vocab;
    void *saved = malloc(size + 1);
    logits tail = {got + (size_t)cut * row, want->n - (size_t)cut * row, false};
    logits want_tail = {want->at + (size_t)cut * row, tail.n, false};
    bool ok = toy_prompt(&r, 0, cut, 32, NULL, &err) &&
              ggl_sched_save_slot(r.sched, 0, cut, false, saved, &err) == GGL_OK &&
              ggl_sched_copy_slot(r.sched, 1, 0, INT64_MAX, &err) == GGL_OK &&
              toy_eval(&r, 0, cut, N - cut, NULL, &err) &&
              toy_eval(&r, 1, cut, N - cut, tail.at, &err);
    if (CHECK_MSG(ok, "%s: copy: %s", llm_arch_name(t->arch), err.msg))
        same(t, &want_tail, &tail, "in a copied slot");
    ok = ok && toy_prompt(&r, 1, 20, 20, NULL, &err) &&
         ggl_sched_clear_slot(r.sched, 1, &err) == GGL_OK &&
         ggl_sched_restore_slot(r.sched, 1, cut, false, saved, &err) == GGL_OK &&
         toy_eval(&r, 1, cut, N - cut, tail.at, &err);
    if (CHECK_MSG(ok, "%s: restore: %s", llm_arch_name(t->arch), err.msg))
        same(t, &want_tail, &tail, "in a restored slot");
    /* back to a snapshot: rows of later positions are not seen, states come back */
    ok = ok && toy_prompt(&r, 1, cut, 32, NULL, &err) &&
         ggl_sched_save_slot(r.sched, 1, cut, true, saved, &err) == GGL_OK &&
         toy_eval(&r, 1, cut, N - cut, NULL, &err) &&
         ggl_sched_restore_slot(r.sched, 1, cut, true, saved, &err) == GGL_OK &&
         toy_eval(&r, 1, cut, N - cut, tail.at, &err);
    if (CHECK_MSG(ok, "%s: snapshot: %s", llm_arch_name(t->arch), err.msg))
        same(t, &want_tail, &tail, "after a snapshot");
    free(saved);
    free(got);
    toy_stop(&r);
}

/* --- all descriptors -------------------------------------------------------------------------- */

static void run_variant(const fixture *f, const toy_model *t) {
    logits want = {0}, got = {0};
    if (prompt(t, f->cpu, 1, f->reference, -1, TOY_BATCH, GGL_F16, &want, "whole")) {
        const struct {
            const char *what;
            ggl_backend *b;
            int chunk;
        } ways[] = {{"token by token", f->cpu[0], 1},        {"in pieces of 5", f->cpu[0], 5},
                    {"with 2 threads", f->cpu[1], 32},       {"with 3 threads", f->cpu3, 7},
                    {"with 7 threads", f->cpu7, 32},         {"portable code", f->portable, 32},
                    {"portable, one by one", f->portable, 1}};
        for (size_t i = TEST_TSAN ? 2 : 0; i < sizeof ways / sizeof *ways; i++)
            if (prompt(t, &ways[i].b, 1, f->reference, -1, ways[i].chunk, GGL_F16, &got,
                       ways[i].what))
                same(t, &want, &got, ways[i].what);
        for (int split = 0; split <= n_layers(t); split++) {
            char what[64];
            snprintf(what, sizeof what, "split before layer %d", split);
            if (prompt(t, f->cpu, 2, f->reference, split, 9, GGL_F16, &got, what))
                same(t, &want, &got, what);
        }
        if (!TEST_TSAN) /* what follows runs in one thread */
            check_slots(f, t, &want);
        if (!TEST_TSAN && prompt(t, f->cpu, 1, f->reference, -1, 32, GGL_F32, &want, "f32 cache") &&
            prompt(t, &f->reference, 1, f->reference, -1, 32, GGL_F32, &got, "reference"))
            near(t, &want, &got);
    }
    free(want.at);
    free(got.at);
}

/* Each descriptor with nothing optional, and with everything. */
static void run_descriptor(int k) {
    fixture f;
    const char *name, *text;
    size_t n;
    REQUIRE(llm_arch_builtin(k, &name, &text, &n));
    printf("%s\n", name);
    setup(&f);
    for (int variant = 0; variant < 2; variant++) {
        toy_model t;
        ggl_error err = {0};
        if (!CHECK_MSG(toy_open(&t, name, text, n, variant, &err), "%s: %s", name, err.msg))
            continue;
        if (CHECK_MSG(toy_settle(&t, N, &err), "%s: %s", name, err.msg))
            run_variant(&f, &t);
        toy_close(&t);
    }
    teardown(&f);
}

/* A case for each of nine descriptors, so that a crash costs one. */
#define CASE(i)                                                                                    \
    TEST(descriptor_##i) {                                                                         \
        if (sample_at(i) < 0)                                                                      \
            SKIP("there are fewer descriptors");                                                   \
        run_descriptor(sample_at(i));                                                              \
    }
CASE(0)
CASE(1)
CASE(2)
CASE(3)
CASE(4)
CASE(5)
CASE(6)
CASE(7)
CASE(8)
