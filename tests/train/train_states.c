/* What the optimizer remembers, in 8 bits: the codes, and trainers that use them. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/backends.h"
#include "ggl/internal/gguf.h"
#include "llm/internal/trainer.h"
#include "test.h"
#include "trainer/dynamic.h"

/* --- codes ------------------------------------------------------------------------------------ */

/* A number below 1 for each k, the same in each run. */
static double noise(uint32_t k) {
    k = (k ^ 61 ^ k >> 16) * 9;
    k = (k ^ k >> 4) * 0x27d4eb2d;
    return (double)(k ^ k >> 15) / 0x1p32;
}

/* The share that is nearest to x: all are tried. */
static double nearest(const dynamic_codes *c, double x) {
    double best = INFINITY;
    for (int k = 0; k < 256; k++)
        if (fabs((double)c->share[k] - x) < fabs(best - x))
            best = (double)c->share[k];
    return best;
}

/* Numbers of all sizes become the nearest shares of the largest; and only zeros become zeros without a sign. */
TEST(nearest_shares) {
    for (int sign = 0; sign < 2; sign++) {
        dynamic_codes c;
        llm_dynamic_init(&c, sign);
        for (uint32_t round = 0; round < 200; round++) {
            float x[LLM_TRAIN_BLOCK], y[LLM_TRAIN_BLOCK], most = 0;
            llm_train_block b;
            const double size = pow(10, 60 * noise(round) - 30);
            for (uint32_t i = 0; i < LLM_TRAIN_BLOCK; i++) {
                const double a = pow(10, -9 * noise(round * 977 + 3 * i));
                x[i] = (float)(size * (i % 37 == 1 ? 0 : a));
                if (sign && noise(round * 977 + 3 * i + 1) < 0.5)
                    x[i] = -x[i];
                most = fmaxf(most, fabsf(x[i]));
            }
            llm_dynamic_pack(&c, x, LLM_TRAIN_BLOCK, &b);
            llm_dynamic_unpack(&c, &b, y);
            for (int i = 0; i < LLM_TRAIN_BLOCK; i++) {
                const double share = (double)x[i] / (double)most, have = (double)(y[i] / most),
                             want = sign || nearest(&c, share) != 0 || share == 0
                                        ? nearest(&c, share)
                                        : (double)c.share[1];
                CHECK_MSG(fabs(fabs(have - share) - fabs(want - share)) <= 1e-6 * fabs(want),
                          "%d: %g becomes %g, not %g", sign, share, have, want);
                CHECK(sign || (x[i] > 0) == (y[i] > 0));
            }
        }
    }
}

/* Blocks that are not full, of zeros, and of the smallest and largest numbers. */
TEST(odd_blocks) {
    dynamic_codes mean, square;
    llm_train_block b;
    float x[LLM_TRAIN_BLOCK] = {0}, y[LLM_TRAIN_BLOCK];
    llm_dynamic_init(&mean, true);
    llm_dynamic_init(&square, false);
    memset(&b, 255, sizeof b);
    llm_dynamic_pack(&square, x, LLM_TRAIN_BLOCK, &b);
    llm_dynamic_unpack(&square, &b, y);
    CHECK(memcmp(x, y, sizeof x) == 0);
    llm_dynamic_unpack(&mean, &(llm_train_block){0}, y);
    CHECK(memcmp(x, y, sizeof x) == 0);

    x[0] = -2;
    x[1] = 1.98f;
    x[2] = 5; /* no part of it */
    llm_dynamic_pack(&mean, x, 2, &b);
    llm_dynamic_unpack(&mean, &b, y);
    CHECK(y[0] == -2 && fabsf(y[1] - 1.98f) < 0.02f && y[2] == 0 && y[255] == 0);

    const float size[] = {1e-45f, FLT_MIN, 1e-30f, 1, FLT_MAX, INFINITY};
    for (size_t k = 0; k < sizeof size / sizeof *size; k++) {
        x[0] = size[k];
        x[1] = 1e-45f;
        x[2] = 0;
        llm_dynamic_pack(&square, x, 3, &b);
        llm_dynamic_unpack(&square, &b, y);
        CHECK_MSG(y[0] >= fminf(FLT_MAX, x[0]) && y[0] <= fmaxf(FLT_MIN, x[0]) && y[1] >= FLT_MIN &&
                      y[2] == 0,
                  "%g: %g, %g, %g", (double)x[0], (double)y[0], (double)y[1], (double)y[2]);
    }
}

/* --- trainers --------------------------------------------------------------------------------- */

enum { N_CTX = 24, N_BATCH = 48, N = 42 };

typedef struct machine {
    ggl_gguf *file;
    llm_arch *arch;
    llm_arch_source source;
    ggl_backend *cpu, *reference;
} machine;

static bool open_machine(machine *m) {
    ggl_error err = {0};
    *m = (machine){0};
    const bool done = CHECK_OK(ggl_gguf_open(&m->file, BUILTIN_MODEL, NULL, &err), &err) &&
                      CHECK_OK(llm_arch_open(&m->arch, "llama", &err), &err) &&
                      CHECK_OK(ggl_backend_open(&m->cpu, "cpu", NULL, &err), &err) &&
                      CHECK_OK(ggl_backend_open(&m->reference, "reference", NULL, &err), &err);
    if (done)
        m->source = llm_arch_source_gguf(m->file);
    return done;
}

static void close_machine(machine *m) {
    llm_arch_free(m->arch);
    ggl_gguf_close(m->file);
    ggl_backend_close(m->cpu);
    ggl_backend_close(m->reference);
}

static llm_trainer *new_trainer(const machine *m, llm_train_params p) {
    ggl_error err = {0};
    llm_trainer *t = NULL;
    p.size = sizeof p;
    p.backend = m->cpu;
    p.reference = m->reference;
    p.n_ctx = N_CTX;
    p.n_batch = N_BATCH;
    CHECK_OK(llm_trainer_new(&t, m->arch, &m->source, &p, &err), &err);
    return t;
}

static double train(llm_trainer *t, int steps, double rate) {
    static const int64_t length[] = {13, 7, 22};
    int32_t token[N], target[N];
    ggl_error err = {0};
    double loss = NAN;
    for (int i = 0; i < N; i++) {
        token[i] = (i * 7 + i / 5) % 29;
        target[i] = ((i + 1) * 7 + (i + 1) / 5) % 29;
    }
    const llm_train_batch b = {.token = token, .target = target, .length = length, .n_seq = 3};
    for (int i = 0; i < steps; i++) {
        CHECK_OK(llm_trainer_add(t, &b, &loss, &err), &err);
        CHECK_OK(llm_trainer_step(t, rate, NULL, &err), &err);
    }
    return loss;
}

static bool same_states(const llm_trainer *a, const llm_trainer *b, int n_states) {
    bool same = llm_trainer_n_weights(a) == llm_trainer_n_weights(b);
    for (int i = 0; i < llm_trainer_n_weights(a) && same; i++) {
        const llm_train_weight v = llm_trainer_weight(a, i), w = llm_trainer_weight(b, i);
        for (int k = 0; k < n_states && same; k++) {
            const llm_train_state x = llm_train_weight_state(&v, k),
                                  y = llm_train_weight_state(&w, k);
            same = x.size == y.size && memcmp(x.data, y.data, x.size) == 0;
        }
    }
    return same;
}

static const llm_train_optimizer_kind kinds[] = {LLM_TRAIN_ADAMW, LLM_TRAIN_SGD, LLM_TRAIN_MUON};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* The first step begins with zeros, so it has the bits of one with f32; then the loss falls as it does there. Vectors stay f32, and matrices
 * need a byte and a 64th for each number. */
LONG_TEST(learns_as_with_f32) {
    machine m;
    REQUIRE(open_machine(&m));
    for (int k = 0; k < KINDS; k++) {
        const double rate = kinds[k] == LLM_TRAIN_SGD ? 0.1 : 1e-3;
        llm_train_params p = {.optimizer = kinds[k], .max_norm = 1, .decay = 0.1};
        llm_trainer *a = new_trainer(&m, p);
        p.optimizer_bits = 8;
        llm_trainer *b = new_trainer(&m, p);
        REQUIRE(a && b);
        size_t full = 0, packed = 0;
        for (int i = 0; i < llm_trainer_n_weights(b); i++) {
            const llm_train_weight v = llm_trainer_weight(a, i), w = llm_trainer_weight(b, i);
            CHECK(w.n_dims > 1 ? !w.mean && !w.square : w.mean && w.square && !w.packed_mean);
            full += llm_train_weight_bytes(&v);
            packed += llm_train_weight_bytes(&w);
        }
        CHECK_MSG(packed < full * 10.1 / 16, "%zu of %zu", packed, full);
        train(a, 1, rate);
        train(b, 1, rate);
        CHECK_MSG(same_states(a, b, 1), "optimizer %d: the first step", k);
        const double f32 = train(a, 15, rate), bits = train(b, 15, rate);
        CHECK_MSG(fabs(f32 - bits) < 0.02 * f32 && !same_states(a, b, 1), "optimizer %d: %g, %g", k,
                  f32, bits);
        llm_trainer_free(a);
        llm_trainer_free(b);
    }
    close_machine(&m);
}

/* One thread or several; and written after the third step, and read by another one. */
TEST(the_same_bits) {
    char state[600];
    ggl_error err = {0};
    machine m;
    REQUIRE(open_machine(&m));
    snprintf(state, sizeof state, "%s/state.gguf", test_folder());
    for (int k = 0; k < KINDS; k++) {
        llm_train_params p = {.optimizer = kinds[k], .optimizer_bits = 8, .n_threads = 1};
        ggl_gguf *saved = NULL;
        llm_trainer *a = new_trainer(&m, p);
        p.n_threads = 3;
        llm_trainer *b = new_trainer(&m, p), *c = new_trainer(&m, p);
        p.optimizer_bits = 0;
        llm_trainer *d = new_trainer(&m, p);
        REQUIRE(a && b && c && d);
        train(a, 3, 1e-3);
        train(b, 3, 1e-3);
        CHECK(same_states(a, b, LLM_TRAIN_STATES));
        CHECK_OK(llm_trainer_write_state(a, (ggl_str){"", 0}, state, &err), &err);
        REQUIRE_OK(ggl_gguf_open(&saved, state, NULL, &err), &err);
        CHECK_OK(llm_trainer_read_state(c, saved, &err), &err);
        CHECK(same_states(a, c, LLM_TRAIN_STATES));
        CHECK_INT(llm_trainer_read_state(d, saved, &err), GGL_FORMAT);
        CHECK_HAS(err.msg, "mean has another type or shape");
        ggl_gguf_close(saved);
        train(a, 3, 1e-3);
        train(c, 3, 1e-3);
        CHECK(same_states(a, c, LLM_TRAIN_STATES));
        llm_trainer_free(a);
        llm_trainer_free(b);
        llm_trainer_free(c);
        llm_trainer_free(d);
    }
    close_machine(&m);
}

/* Gradients of very different sizes in one block, also such that come and go: no step is much longer than one of AdamW can be. */
TEST(no_weight_jumps) {
    machine m;
    ggl_error err = {0};
    REQUIRE(open_machine(&m));
    const llm_train_params p = {.optimizer_bits = 8, .eps = 1e-30};
    llm_trainer *t = new_trainer(&m, p);
    REQUIRE(t);
    int at = 0;
    while (llm_trainer_weight(t, at).n_dims < 2)
        at++;
    const llm_train_weight w = llm_trainer_weight(t, at);
    const int64_t n = llm_train_weight_count(&w);
    float *before = malloc((size_t)n * sizeof *before);
    REQUIRE(before);
    double most = 0;
    for (uint32_t step = 0; step < 60; step++) {
        memcpy(before, w.data, (size_t)n * sizeof *before);
        for (int64_t i = 0; i < n; i++) {
            const double size = pow(10, -12 * noise((uint32_t)i));
            const bool rests = (step / 10 + (uint32_t)i) % 3 == 0;
            w.grad[i] = rests ? 0 : (float)(size * (noise(step * 7919 + (uint32_t)i) - 0.3));
        }
        CHECK_OK(llm_trainer_step(t, 1e-3, NULL, &err), &err);
        for (int64_t i = 0; i < n; i++)
            most = fmax(most, fabs((double)w.data[i] - (double)before[i]));
    }
    CHECK_MSG(most < 5e-3, "a weight jumps by %g", most);
    free(before);
    llm_trainer_free(t);
    close_machine(&m);
}

TEST(other_bits) {
    machine m;
    ggl_error err = {0};
    llm_trainer *t = NULL;
    REQUIRE(open_machine(&m));
    const llm_train_params p = {
        .size = sizeof p, .backend = m.cpu, .reference = m.reference, .optimizer_bits = 4};
    CHECK_INT(llm_trainer_new(&t, m.arch, &m.source, &p, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "an optimizer that remembers 4 bits");
    close_machine(&m);
}
