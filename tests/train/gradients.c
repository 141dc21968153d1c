/* Gradients of whole models: made-up models of each family, whose loss is differentiated by all f32 weights, against differences
 * of the loss. The loss is computed by the reference backend in double, and so is its distance from the loss before, so that only
 * rows of caches are rounded. And the same gradients on the CPU. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/compose.h"
#include "ggl/internal/fold.h"
#include "ggl/internal/gradient.h"
#include "ggl/internal/graph.h"
#include "llm/internal/text_inputs.h"
#include "sample.h"
#include "test.h"
#include "models/toy_run.h"

enum { TOKENS = 14, MOST_WEIGHTS = 512, CHECKED = 6, EACH_DAY = 8 };
static const double LARGE =
    1e6; /* what differences of losses are multiplied with before they are rounded to f32 */

typedef struct trained {
    toy_model toy;
    ggl_graph *g;
    ggl_sched *s;
    ggl_tensor *by[MOST_WEIGHTS], *d[MOST_WEIGHTS];
    int output[MOST_WEIGHTS]; /* of the gradient; -1: there is none */
    int n;
    bool sees_all, refused;
    int64_t n_vocab;
    int32_t token[TOKENS], target[TOKENS];
    ggl_error why;
} trained;

static int64_t count(const ggl_tensor *t) {
    return ggl_extents(t->ne, 0, GGL_MAX_DIMS, 1);
}

/* Gives the weights memory of their own, where they may change. False: out of memory. */
static bool own_weights(trained *m) {
    for (int i = 0; i < ggl_graph_n_nodes(m->g); i++) {
        ggl_tensor *t = ggl_graph_node(m->g, i);
        if (t->op != GGL_OP_WEIGHT || t->type != GGL_F32 || t->n_dims > 3 || m->n == MOST_WEIGHTS ||
            strstr(t->name, "rope"))
            continue;
        float *own = malloc((size_t)count(t) * sizeof *own);
        if (!own)
            return false;
        memcpy(own, t->data, (size_t)count(t) * sizeof *own);
        t->data = own;
        t->variable = true;
        m->by[m->n++] = t;
    }
    return true;
}

static ggl_tensor *find_output(const ggl_graph *g, const char *name) {
    for (int i = 0; i < ggl_graph_n_outputs(g); i++)
        if (strcmp(ggl_graph_get_output(g, i)->name, name) == 0)
            return ggl_graph_get_output(g, i);
    return NULL;
}

/* False: the model has no scores of tokens, or err says why. */
static bool build(trained *m, const char *name, const char *text, size_t size,
                  const ggl_grad_params *p, ggl_error *err) {
    *m = (trained){0};
    const bool opened = toy_open(&m->toy, name, text, size, 0, err);
    *err = (ggl_error){
        0}; /* other tests say which variants there are; tries that it made are forgotten */
    if (!opened)
        return false;
    const ggl_graph_params params = {.size = sizeof params,
                                     .n_pos = TOY_CTX,
                                     .n_batch = 32,
                                     .n_slots = 1,
                                     .type_k = GGL_F32,
                                     .type_v = GGL_F32};
    llm_arch_result built = {0};
    m->g = ggl_graph_new(&params);
    if (llm_arch_build(m->toy.arch, llm_arch_toy_source(m->toy.toy), NULL, m->g, &built, err) !=
        GGL_OK) {
        *err = (ggl_error){0}; /* other tests say how these are built */
        return false;
    }
    m->sees_all = built.sees_all;
    m->n_vocab = built.n_vocab;
    for (int i = 0; i < TOKENS && m->n_vocab > 0; i++) {
        m->token[i] = (int32_t)((uint32_t)(i + 3) * 2654435761u >> 8) % (int32_t)m->n_vocab;
        m->target[i] = (m->token[i] * 5 + 7) % (int32_t)m->n_vocab;
    }
    ggl_tensor *logits = find_output(m->g, "logits");
    llm_arch_result_fini(&built);
    if (!logits || !own_weights(m))
        return false;
    ggl_tensor *target = ggl_graph_input(m->g, "target", GGL_I32, 0, NULL, true),
               *before = ggl_graph_input(m->g, "before", GGL_F32, 0, NULL, true);
    ggl_tensor *loss = ggl_cross_entropy(m->g, logits, target);
    ggl_tensor *change = ggl_binary(m->g, GGL_OP_SUB, loss, before);
    change = ggl_binary(m->g, GGL_OP_MUL, change, ggl_graph_number(m->g, LARGE));
    ggl_graph_output(m->g, "loss", loss);
    ggl_graph_output(m->g, "change", change);
    if (!ggl_graph_grad(m->g, loss, m->by, m->n, p, m->d)) {
        m->refused = ggl_graph_error(m->g, &m->why) == GGL_UNSUPPORTED;
        *err = m->why;
        return false;
    }
    for (int k = 0; k < m->n; k++) {
        m->output[k] = m->d[k] ? ggl_graph_n_outputs(m->g) : -1;
        if (m->d[k])
            ggl_graph_output(m->g, "d", m->d[k]);
    }
    return ggl_graph_finish(m->g, err) == GGL_OK;
}

static void stop(trained *m) {
    ggl_sched_free(m->s);
    m->s = NULL;
}

static void trained_free(trained *m) {
    stop(m);
    for (int k = 0; k < m->n; k++)
        free((void *)(uintptr_t)m->by[k]->data);
    ggl_graph_free(m->g);
    if (m->toy.toy)
        toy_close(&m->toy);
}

static bool start(trained *m, ggl_backend *on, ggl_error *err) {
    const ggl_sched_params p = {
        .size = sizeof p, .backend = &on, .n_backends = 1, .whole = "change"};
    return ggl_sched_new(&m->s, m->g, &p, err) == GGL_OK && ggl_sched_alloc(m->s, err) == GGL_OK;
}

static const float *output_of(const trained *m, const char *name) {
    int k = 0;
    while (ggl_graph_get_output(m->g, k) != find_output(m->g, name))
        k++;
    return ggl_sched_output(m->s, k);
}

/* Runs a text, with the losses before; returns the sum of their changes, times LARGE. */
static double run(trained *m, const float *before, ggl_error *err) {
    const llm_text_inputs x = {m->token, 0, 0, TOKENS, m->sees_all ? NULL : m->token, TOKENS};
    if (ggl_sched_clear_slot(m->s, 0, err) != GGL_OK ||
        llm_text_inputs_set(&x, m->s, m->g, err) != GGL_OK ||
        ggl_sched_set(m->s, "target", m->target, sizeof m->target, TOKENS, err) != GGL_OK ||
        ggl_sched_set(m->s, "before", before, TOKENS * sizeof *before, TOKENS, err) != GGL_OK ||
        ggl_sched_run(m->s, TOKENS, NULL, 0, err) != GGL_OK)
        return NAN;
    const float *change = output_of(m, "change");
    double sum = 0;
    for (int i = 0; i < TOKENS; i++)
        sum += (double)change[i];
    return sum;
}

/* Chooses other targets where a descriptor forbids them. */
static bool choose_targets(trained *m, ggl_error *err) {
    static const float zero[TOKENS];
    for (int again = 0, changed = 1; again < 100 && changed; again++) {
        if (isnan(run(m, zero, err)))
            return false;
        const float *loss = output_of(m, "loss");
        changed = 0;
        for (int i = 0; i < TOKENS; i++)
            if (loss[i] > 1e4f) {
                m->target[i] = (m->target[i] + 1) % (int32_t)m->n_vocab;
                changed++;
            }
    }
    return true;
}

/* How the loss changes with weight i of by[k], by differences of steps h; and *edge, how much more it rises upwards than downwards. */
static double differences(trained *m, const float *before, int k, int64_t i, double h, double *edge,
                          ggl_error *err) {
    float *w = (float *)(uintptr_t)m->by[k]->data + i, was = *w;
    const double here = run(m, before, err);
    *w = was + (float)h;
    const double up = (double)*w, high = run(m, before, err);
    *w = was - (float)h;
    const double down = (double)*w, low = run(m, before, err);
    *w = was;
    *edge = (high + low - 2 * here) / LARGE / h;
    return (high - low) / LARGE / (up - down);
}

/* Copies of all gradients, one after another. */
static float *take(const trained *m, int64_t *n) {
    *n = 0;
    for (int k = 0; k < m->n; k++)
        *n += m->output[k] < 0 ? 0 : count(m->by[k]);
    float *all = malloc((size_t)*n * sizeof *all);
    for (int64_t k = 0, at = 0; all && k < m->n; k++)
        if (m->output[k] >= 0) {
            memcpy(all + at, ggl_sched_output(m->s, m->output[k]),
                   (size_t)count(m->by[k]) * sizeof *all);
            at += count(m->by[k]);
        }
    return all;
}

static double largest(const float *x, int64_t n, int64_t *at) {
    double most = 0;
    *at = 0;
    for (int64_t i = 0; i < n; i++)
        if (isnan(x[i]) || fabs((double)x[i]) > most) {
            most = isnan(x[i]) ? INFINITY : fabs((double)x[i]);
            *at = i;
        }
    return most;
}

/* Steps of differences. Rows of caches are rounded, which moves the loss by about NOISE. If half the step says something else, an edge
 * may be in between: of relu, or where another expert is chosen; and if the loss rises more on one side, however small the step is, an edge is
 * here. So the step counts that leaves least open. */
static const double steps[] = {0.08, 0.02, 0.0025};
#define NOISE 1e-6

/* Some weights, of which one has the largest gradient of its tensor each time. */
static void check_weights(trained *m, const char *name, const float *d, uint64_t seed) {
    ggl_error err = {0};
    float before[TOKENS];
    int judged = 0;
    memcpy(before, output_of(m, "loss"), sizeof before);
    for (int c = 0; c < CHECKED; c++) {
        const int k = (int)(sample_mix(seed + (uint64_t)c) % (uint64_t)m->n);
        int64_t first = 0, at;
        for (int i = 0; i < k; i++)
            first += m->output[i] < 0 ? 0 : count(m->by[i]);
        if (m->output[k] < 0) {
            judged++;
            continue;
        }
        const int64_t n = count(m->by[k]);
        const double most = largest(d + first, n, &at);
        at = c % 2 ? (int64_t)(sample_mix(seed + 77 + (uint64_t)c) % (uint64_t)n) : at;
        const double got = (double)d[first + at];
        double want = 0, may = INFINITY;
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            double far, near;
            const double whole = differences(m, before, k, at, steps[i], &far, &err),
                         half = differences(m, before, k, at, steps[i] / 2, &near, &err),
                         open =
                             NOISE / steps[i] + 3 * fabs(whole - half) + 2 * fabs(2 * near - far);
            if (!(open < may))
                continue;
            may = open;
            want = (4 * half - whole) / 3;
        }
        if (may > 0.02 * most)
            continue;
        judged++;
        CHECK_MSG(fabs(got - want) <= 1e-4 * most + may,
                  "%s, %s[%lld]: the gradient is %g, differences say %g, at most %g off (the "
                  "largest is %g)%s",
                  name, m->by[k]->name, (long long)at, got, want, may, most, err.msg);
    }
    CHECK_MSG(judged >= CHECKED / 4, "%s: only %d of %d weights could be judged", name, judged,
              CHECKED);
}

static void check_on_cpu(trained *m, const char *name, const float *d, int64_t n) {
    ggl_error err = {0};
    float *first = NULL, before[TOKENS] = {0};
    for (int threads = 1; threads <= 2; threads++) {
        ggl_backend *cpu = NULL;
        int64_t n_got = 0;
        const ggl_backend_params p = {
            .size = sizeof p, .n_threads = threads, .n_threads_batch = threads};
        if (!CHECK_OK(ggl_backend_open(&cpu, "cpu", &p, &err), &err))
            continue;
        if (CHECK_MSG(start(m, cpu, &err) && !isnan(run(m, before, &err)), "%s: %s", name,
                      err.msg)) {
            float *got = take(m, &n_got);
            for (int64_t k = 0, at = 0; got && k < m->n && threads == 1; k++) {
                int64_t where;
                if (m->output[k] < 0)
                    continue;
                const double most = largest(d + at, count(m->by[k]), &where);
                double off = 0;
                for (int64_t i = 0; i < count(m->by[k]); i++)
                    off = fmax(off, fabs((double)got[at + i] - (double)d[at + i]));
                CHECK_MSG(off <= 1e-3 * most + 1e-6, "%s, %s: the CPU is off by %g of %g", name,
                          m->by[k]->name, off, most);
                at += count(m->by[k]);
            }
            CHECK(n_got == n);
            CHECK_MSG(!first || memcmp(first, got, (size_t)n * sizeof *got) == 0,
                      "%s: two threads have other bits", name);
            if (first)
                free(got);
            else
                first = got;
        }
        stop(m);
        ggl_backend_close(cpu);
    }
    free(first);
}

/* Returns false if the family's gradient is refused. */
static bool check_family(const char *name, const char *text, size_t size, uint64_t seed) {
    trained m;
    ggl_error err = {0};
    ggl_backend *reference = NULL;
    if (!CHECK_OK(ggl_backend_open(&reference, "reference", NULL, &err), &err))
        return false;
    bool right = build(&m, name, text, size, NULL, &err);
    if (!right)
        printf("%s: %s\n", name,
               m.refused    ? err.msg
               : err.msg[0] ? err.msg
                            : "has no scores of tokens");
    CHECK_MSG(right || m.refused || !err.msg[0], "%s: %s", name, err.msg);
    if (right && CHECK_MSG(ggl_graph_fold(m.g, reference, &err) == GGL_OK &&
                               start(&m, reference, &err) && choose_targets(&m, &err),
                           "%s: %s", name, err.msg)) {
        int64_t n;
        float *d = take(&m, &n);
        check_weights(&m, name, d, seed);
        stop(&m);
        check_on_cpu(&m, name, d, n);
        free(d);
    }
    trained_free(&m);
    ggl_backend_close(reference);
    return right;
}

static void check_named(const char *wanted) {
    const char *name, *text;
    size_t size;
    char file[64];
    snprintf(file, sizeof file, "%s.arch", wanted);
    for (int k = 0; llm_arch_builtin(k, &name, &text, &size); k++)
        if (strcmp(name, file) == 0)
            CHECK_MSG(check_family(name, text, size, 5), "%s is refused", name);
}

TEST(of_common_families) {
    static const char *const names[] = {"llama",    "gpt2",  "qwen2", "qwen3",
                                        "qwen3moe", "gemma", "gemma3"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        check_named(names[i]);
}

TEST(of_other_families) {
    const char *name, *text;
    size_t size;
    const uint64_t seed = sample_seed();
    for (int k = 0; llm_arch_builtin(k, &name, &text, &size); k++)
        if (getenv("GGL_ALL_FAMILIES") || sampled(k, EACH_DAY))
            check_family(name, text, size, seed);
}
