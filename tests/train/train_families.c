/* Ten steps of each family: a made-up model learns on the CPU by one and by two threads, with the same bits, and by the reference backend, which
 * computes in double. Families that give logits learn tokens, which read something if the family has a stage for it; eyes and ears learn beside a text model; the others
 * learn through their vectors or scores. Some families each day, or all with GGL_ALL_FAMILIES, or those
 * whose names contain GGL_FAMILY; GGL_TEST_SHOW prints why others do not learn. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/backends.h"
#include "llm/internal/trainer.h"
#include "sample.h"
#include "test.h"

enum { N_CTX = 24, N_SEQ = 3, N = 13 + 7 + 12, STEPS = 10, EACH_DAY = 4, ON = 3 };

/* What is not learned from tokens, and why. */
static bool is_other(const char *why) {
    return strstr(why, "gives no logits") || strstr(why, "has no output") ||
           strstr(why, "which texts do not give it") || strstr(why, "is none of its outputs") ||
           strstr(why, "does not give");
}

/* A text model for an eye or an ear that makes rows of so many numbers. */
#define BESIDE                                                                                     \
    "arch tiny\nlanguage 2\ntoken_embd [%lld, n_vocab]\nx = given(token_embd[token])\n"            \
    "layer l < 1:\n  h = heads(x, 1)\n  x = x + attention(h, h, h)\n"                              \
    "logits = linear(x, token_embd)\n"

typedef struct family {
    const char *name;
    llm_arch *arch, *text; /* text: beside an eye; NULL: the family has tokens */
    llm_arch_toy *toy, *text_toy;
} family;

/* Returns the numbers of the rows that the family makes for another model; 0: it makes none. */
static int64_t n_rows_of(const family *f) {
    const ggl_graph_params of = ggl_graph_default();
    ggl_graph *g = ggl_graph_new(&of);
    llm_arch_result built;
    ggl_error err = {0};
    const llm_arch_params p = {.size = sizeof p, .n_ctx = N_CTX};
    const ggl_status st = llm_arch_build(f->arch, llm_arch_toy_source(f->toy), &p, g, &built, &err);
    const bool makes = st == GGL_OK && built.n_sources > 0 && !built.reads_text;
    const int64_t n = makes ? built.rows.n : 0;
    llm_arch_result_fini(&built);
    ggl_graph_free(g);
    return n;
}

static void close_family(family *f) {
    llm_arch_toy_free(f->toy);
    llm_arch_toy_free(f->text_toy);
    llm_arch_free(f->arch);
    llm_arch_free(f->text);
}

static bool open_family(family *f, const char *name, const char *text, size_t size,
                        ggl_error *err) {
    char beside[512];
    *f = (family){.name = name};
    if (!CHECK_OK(llm_arch_parse(&f->arch, text, size, name, err), err))
        return false;
    f->toy = llm_arch_toy_new(f->arch, 0, err);
    const int64_t n = f->toy ? n_rows_of(f) : 0;
    if (n == 0)
        return f->toy != NULL;
    snprintf(beside, sizeof beside, BESIDE, (long long)n);
    if (CHECK_OK(llm_arch_parse(&f->text, beside, strlen(beside), "beside.arch", err), err))
        f->text_toy = llm_arch_toy_new(f->text, 0, err);
    return f->text_toy != NULL;
}

/* What tokens read: two readings, the longest one and a shorter one. */
enum { MOST_READ = 24 };
static void give_readings(const llm_trainer *t, llm_train_batch *b) {
    static llm_train_reading reading[2];
    static int32_t text[MOST_READ], read[N_SEQ] = {1, 0, 1}, place[N];
    static float *row = NULL;
    const llm_train_reader r = llm_trainer_reader(t);
    if (!r.is_there)
        return;
    free(row);
    row = calloc((size_t)(r.n_most * (r.n_input + 1)), sizeof *row);
    if (!CHECK(row))
        return;
    for (int i = 0; i < MOST_READ; i++)
        text[i] = (i * 11 + 3) % 29;
    for (int64_t i = 0; i < r.n_most * r.n_input; i++)
        row[i] = (float)sin(0.7 * (double)(i % 1000));
    for (int k = 0; k < 2; k++)
        reading[k] = (llm_train_reading){.row = r.of_text ? NULL : row,
                                         .token = r.of_text ? text : NULL,
                                         .n = k || !r.of_text ? r.n_most : 9};
    const int64_t n = llm_trainer_n_rows(t, reading[0].n);
    for (int i = 0; i < N; i++)
        place[i] = i % 13 > 0 && i % 13 < 5 ? (int32_t)((i % 13) % (2 * n)) : -1;
    b->reading = reading;
    b->n_readings = 2;
    b->read = read;
    b->place = place;
}

/* The loss of a step, whose gradients are added: the mean over tokens; or of vectors, half of the square of what they lack to a made-up one. */
static double learn(llm_trainer *t, bool by_rows, int first, int n_targets) {
    static int32_t token[N], target[N];
    static float weight[N];
    static const int64_t length[N_SEQ] = {13, 7,
                                          12} /* states of made-up models may grow without end */;
    ggl_error err = {0};
    double loss = 0;
    for (int i = 0; i < N; i++) {
        token[i] = (i * 7 + i / 5) % 29;
        target[i] = first + ((i + 1) * 7 + (i + 1) / 5) % n_targets;
        weight[i] = (float)(1 + i % 4) / N;
    }
    llm_train_batch b = {
        .token = token, .target = target, .weight = weight, .length = length, .n_seq = N_SEQ};
    if (!by_rows) {
        give_readings(t, &b);
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
static llm_trainer *trainer_of(const family *f, ggl_backend *on, ggl_backend *reference,
                               bool *by_rows, ggl_error *err) {
    static const char *const output[] = {NULL, "embedding", "score"};
    llm_trainer *t = NULL;
    for (size_t i = 0; i < sizeof output / sizeof *output && !t; i++) {
        const llm_train_params p = {.size = sizeof p,
                                    .backend = on,
                                    .reference = reference,
                                    .n_ctx = N_CTX,
                                    .n_batch = 2 * N_CTX,
                                    .n_read = f->text ? 4 * MOST_READ : MOST_READ,
                                    .eye = f->text ? f->arch : NULL,
                                    .eye_source = f->text ? llm_arch_toy_source(f->toy) : NULL,
                                    .output = output[i]};
        *err = (ggl_error){0};
        *by_rows = output[i] != NULL;
        if (llm_trainer_new(&t, f->text ? f->text : f->arch,
                            llm_arch_toy_source(f->text ? f->text_toy : f->toy), &p,
                            err) != GGL_OK &&
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
    family f;
    double loss[ON][STEPS];
    float *weight[ON] = {NULL};
    int64_t n[ON] = {0};
    int done = 0, first = 0, n_targets = 29;
    const bool is_open = open_family(&f, name, text, size, &err);
    for (; is_open && done < ON; done++) {
        bool by_rows;
        llm_trainer *t = trainer_of(&f, on[done], reference, &by_rows, &err);
        if (!t)
            break;
        while (!by_rows && !(learn(t, false, first, n_targets) < 1e30) &&
               first + n_targets < llm_trainer_n_vocab(t)) {
            llm_trainer_forget(t); /* some tokens are never written: one that is will do */
            first = n_targets > 1 ? 0 : first + 1;
            n_targets = 1;
        }
        llm_trainer_forget(t);
        for (int i = 0; i < STEPS; i++) {
            loss[done][i] = learn(t, by_rows, first, n_targets);
            CHECK_OK(llm_trainer_step(t, 3e-5, NULL, &err), &err);
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
    } else { /* models that guess for another one learn beside it: arch.guesses_learned */
        CHECK_MSG(strstr(err.msg, "gives no embedding"), "%s does not learn: %s", name, err.msg);
        if (getenv("GGL_TEST_SHOW"))
            printf("%s: %s\n", name, err.msg);
    }
    for (int i = 0; i < ON; i++)
        free(weight[i]);
    close_family(&f);
    return done == ON;
}

TEST(ten_steps) {
    ggl_error err = {0};
    ggl_backend *on[ON] = {NULL};
    const char *name, *text, *only = getenv("GGL_FAMILY");
    size_t size;
    int n = 0, n_all = 0;
    setenv("GGL_CPU_SHARE_ALL", "1", 1);
    for (int i = 0; i < 2; i++) {
        const ggl_backend_params p = {.size = sizeof p, .n_threads = i + 1};
        REQUIRE_OK(ggl_backend_open(&on[i], "cpu", &p, &err), &err);
    }
    REQUIRE_OK(ggl_backend_open(&on[2], "reference", NULL, &err), &err);
    for (int k = 0; llm_arch_builtin(k, &name, &text, &size); k++)
        if (only ? strstr(name, only) != NULL
                 : getenv("GGL_ALL_FAMILIES") || sampled(k, EACH_DAY)) {
            n += check_family(name, text, size, on, on[2]);
            n_all++;
        }
    CHECK_MSG(2 * n >= n_all, "%d of %d families learn", n, n_all);
    for (int i = 0; i < ON; i++)
        ggl_backend_close(on[i]);
}
