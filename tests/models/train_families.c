/* Ten steps of each family: a made-up model learns on the CPU by one and by two threads, with the same bits, and by the reference backend, which
 * computes in double. Families that give logits learn tokens; the others learn through their vectors or scores. Some families each day, or all with
 * GGL_ALL_FAMILIES; GGL_TEST_SHOW prints why others do not learn. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/backends.h"
#include "llm/internal/train.h"
#include "sample.h"
#include "test.h"

enum { N_CTX = 24, N_SEQ = 3, N = 13 + 7 + 12, STEPS = 10, EACH_DAY = 4, ON = 3 };

/* What is not learned from tokens, and why. */
static bool is_other(const char *why) {
    return strstr(why, "gives no logits") || strstr(why, "has no output") ||
           strstr(why, "which texts do not give it") || strstr(why, "is none of its outputs") ||
           strstr(why, "does not give");
}

/* The loss of a step, whose gradients are added: the mean over tokens; or of vectors, half of the square of what they lack to a made-up one. */
static double learn(llm_trainer *t, bool by_rows, int first) {
    static int32_t token[N], target[N];
    static float weight[N];
    static const int64_t length[N_SEQ] = {13, 7,
                                          12} /* states of made-up models may grow without end */;
    ggl_error err = {0};
    double loss = 0;
    for (int i = 0; i < N; i++) {
        token[i] = (i * 7 + i / 5) % 29;
        target[i] = first + ((i + 1) * 7 + (i + 1) / 5) % 29;
        weight[i] = (float)(1 + i % 4) / N;
    }
    llm_train_batch b = {
        .token = token, .target = target, .weight = weight, .length = length, .n_seq = N_SEQ};
    if (!by_rows) {
        CHECK_OK(llm_trainer_add(t, &b, &loss, &err), &err);
        return loss;
    }
    const int64_t n = llm_trainer_output(t).rows.n;
    float *row = malloc((size_t)(N * n) * sizeof *row);
    if (!CHECK(row))
        return NAN;
    CHECK_OK(llm_trainer_look(t, &b, row, &err), &err);
    for (int64_t i = 0; i < N * n; i++) {
        const double lack = (double)row[i] - (double)(i * 37 % 11) / 11;
        loss += lack * lack / 2 / (double)(N * n);
        row[i] = (float)(lack / (double)(N * n));
    }
    b.gradient = row;
    CHECK_OK(llm_trainer_add(t, &b, NULL, &err), &err);
    free(row);
    return loss;
}

/* Makes a trainer through the first of the outputs that the model has. */
static llm_trainer *trainer_of(const llm_arch *arch, const llm_arch_toy *toy, ggl_backend *on,
                               ggl_backend *reference, bool *by_rows, ggl_error *err) {
    static const char *const output[] = {NULL, "embedding", "score"};
    llm_trainer *t = NULL;
    for (size_t i = 0; i < sizeof output / sizeof *output && !t; i++) {
        const llm_train_params p = {.size = sizeof p,
                                    .backend = on,
                                    .reference = reference,
                                    .n_ctx = N_CTX,
                                    .n_batch = 2 * N_CTX,
                                    .output = output[i]};
        *err = (ggl_error){0};
        *by_rows = output[i] != NULL;
        if (llm_trainer_new(&t, arch, llm_arch_toy_source(toy), &p, err) != GGL_OK &&
            !is_other(err->msg))
            return NULL;
    }
    return t;
}

/* All weights, one after the other. */
static float *weights_of(const llm_trainer *t, int64_t *n) {
    *n = 0;
    for (int k = 0; k < llm_trainer_n_weights(t); k++) {
        const llm_train_weight w = llm_trainer_weight(t, k);
        *n += llm_train_weight_count(&w);
    }
    float *all = malloc((size_t)*n * sizeof *all), *to = all;
    for (int k = 0; all && k < llm_trainer_n_weights(t); k++) {
        const llm_train_weight w = llm_trainer_weight(t, k);
        memcpy(to, w.data, (size_t)llm_train_weight_count(&w) * sizeof *to);
        to += llm_train_weight_count(&w);
    }
    return all;
}

/* Returns whether the family learns. */
static bool check_family(const char *name, const char *text, size_t size, ggl_backend *const on[ON],
                         ggl_backend *reference) {
    ggl_error err = {0};
    llm_arch *arch = NULL;
    llm_arch_toy *toy = NULL;
    double loss[ON][STEPS];
    float *weight[ON] = {NULL};
    int64_t n[ON] = {0};
    int done = 0, first = 0;
    if (CHECK_OK(llm_arch_parse(&arch, text, size, name, &err), &err))
        toy = llm_arch_toy_new(arch, 0, &err);
    for (; toy && done < ON; done++) {
        bool by_rows;
        llm_trainer *t = trainer_of(arch, toy, on[done], reference, &by_rows, &err);
        if (!t)
            break;
        while (!by_rows && learn(t, false, first) > 1e30 && first < 8 * 29) {
            llm_trainer_forget(t); /* some tokens are never written: others are to be */
            first += 29;
        }
        llm_trainer_forget(t);
        for (int i = 0; i < STEPS; i++) {
            loss[done][i] = learn(t, by_rows, first);
            CHECK_OK(llm_trainer_step(t, 1e-4, NULL, &err), &err);
        }
        weight[done] = weights_of(t, &n[done]);
        llm_trainer_free(t);
    }
    if (done == ON) {
        CHECK_MSG(n[0] == n[1] && memcmp(weight[0], weight[1], (size_t)n[0] * sizeof(float)) == 0,
                  "%s: two threads give other bits", name);
        for (int i = 0; i < STEPS; i++)
            CHECK_MSG(fabs(loss[0][i] - loss[2][i]) <= 1e-3 * fabs(loss[2][i]),
                      "%s: step %d: the loss is %.7g, in double %.7g", name, i + 1, loss[0][i],
                      loss[2][i]);
        CHECK_MSG(loss[2][STEPS - 1] < loss[2][0], "%s: the loss goes from %g to %g", name,
                  loss[2][0], loss[2][STEPS - 1]);
    } else if (getenv("GGL_TEST_SHOW")) {
        printf("%s: %s\n", name, err.msg);
    }
    for (int i = 0; i < ON; i++)
        free(weight[i]);
    llm_arch_toy_free(toy);
    llm_arch_free(arch);
    return done == ON;
}

TEST(ten_steps) {
    ggl_error err = {0};
    ggl_backend *on[ON] = {NULL};
    const char *name, *text;
    size_t size;
    int n = 0, n_all = 0;
    setenv("GGL_CPU_SHARE_ALL", "1", 1);
    for (int i = 0; i < 2; i++) {
        const ggl_backend_params p = {.size = sizeof p, .n_threads = i + 1};
        REQUIRE_OK(ggl_backend_open(&on[i], "cpu", &p, &err), &err);
    }
    REQUIRE_OK(ggl_backend_open(&on[2], "reference", NULL, &err), &err);
    for (int k = 0; llm_arch_builtin(k, &name, &text, &size); k++)
        if (getenv("GGL_ALL_FAMILIES") || sampled(k, EACH_DAY)) {
            n += check_family(name, text, size, on, on[2]);
            n_all++;
        }
    CHECK_MSG(2 * n >= n_all, "%d of %d families learn", n, n_all);
    for (int i = 0; i < ON; i++)
        ggl_backend_close(on[i]);
}
