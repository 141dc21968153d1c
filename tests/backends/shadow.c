/* The shadow: on a backend that computes as it should it finds nothing and changes nothing; of one
 * that computes a node wrong it names the node. */
#include "ggl/internal/graph.h"
#include "llm/internal/session.h"

#include <math.h>

#include "ggl/internal/backends.h"
#include "../models/toy_run.h"
#include "alloc_fail.h"
#include "common/wrap.h"
#include "ggl/alloc.h"
#include "sample.h"
#include "test.h"

enum { N = 20 };

static ggl_backend *open_backend(const char *name) {
    ggl_backend *b = NULL;
    ggl_error err = {0};
    CHECK_OK(ggl_backend_open(
                 &b, name,
                 &(ggl_backend_params){.size = sizeof(ggl_backend_params), .n_threads = 1}, &err),
             &err);
    return b;
}

/* One of a name for all cases, which stays open. */
static ggl_backend *reference(void) {
    static ggl_backend *b;
    return b = b ? b : open_backend("reference");
}

/* --- a backend that computes one node wrong --------------------------------------------------- */

typedef struct faulty {
    wrap w;
    const ggl_tensor *target; /* NULL: none */
    ggl_tensor other;         /* what it computes instead */
    ggl_tensor *src[8];
    double num[8];
} faulty;

/* Another weight of the same form, which a product of the group reads. */
static ggl_tensor *other_weight(const ggl_graph *g, const ggl_tensor *t) {
    for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
        const ggl_tensor *x = ggl_graph_node(g, i);
        if (x->op == GGL_OP_LINEAR && x->needed && x->group == t->group && x->src[1] != t->src[1] &&
            x->src[1]->op == GGL_OP_WEIGHT && x->src[1]->type == t->src[1]->type &&
            memcmp(x->src[1]->ne, t->src[1]->ne, sizeof t->ne) == 0)
            return x->src[1];
    }
    return NULL;
}

/* Makes a common mistake: the pairs of the rotation, a scale, a sign, the weight. False if none
 * applies to the node. */
static bool confuse(faulty *f, const ggl_graph *g, const ggl_tensor *t) {
    ggl_tensor *c = &f->other;
    *c = *t;
    if (t->n_src > 8 || t->n_num > 8 || !t->needed)
        return false;
    for (int i = 0; i < t->n_src; i++)
        f->src[i] = t->src[i];
    for (int i = 0; i < t->n_num; i++)
        f->num[i] = t->num[i];
    c->src = f->src;
    c->num = f->num;
    if (t->op == GGL_OP_ROPE_HALF || t->op == GGL_OP_ROPE_PAIR) {
        c->op = t->op == GGL_OP_ROPE_HALF ? GGL_OP_ROPE_PAIR : GGL_OP_ROPE_HALF;
    } else if (t->op == GGL_OP_ATTEND) {
        f->num[0] = isnan(f->num[0]) ? 1 : f->num[0] * 1.2;
    } else if (t->op == GGL_OP_ADD) {
        c->op = GGL_OP_SUB;
    } else if (t->op == GGL_OP_MUL) {
        c->op = GGL_OP_ADD;
    } else if (t->op == GGL_OP_LINEAR && t->src[1]->op == GGL_OP_WEIGHT && other_weight(g, t)) {
        f->src[1] = other_weight(g, t);
    } else {
        return false;
    }
    f->target = t;
    return true;
}

static ggl_status f_compile(ggl_backend *b, const ggl_segment *s, ggl_plan **out, ggl_error *err) {
    const faulty *f = (const faulty *)b;
    ggl_segment changed = *s;
    ggl_tensor **node = ggl_calloc((size_t)s->n_node + 1, sizeof *node);
    if (!node)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    for (int i = 0; i < s->n_node; i++)
        node[i] = s->node[i] == f->target ? (ggl_tensor *)&f->other : s->node[i];
    changed.node = node;
    ggl_status st = f->w.inner->v->compile(f->w.inner, &changed, out, err);
    ggl_free(node);
    return st;
}

static void f_close(ggl_backend *b) {
    (void)b; /* the CPU is the test's */
}

static void faulty_init(faulty *f, ggl_backend *cpu) {
    *f = (faulty){0};
    ggl_wrap_init(&f->w, cpu);
    f->w.v.close = f_close;
    f->w.v.compile = f_compile;
}

/* --- toys ------------------------------------------------------------------------------------- */

static ggl_backend *shadowed(ggl_backend *inner, ggl_backend *trusted, double rate, int n_nodes) {
    ggl_backend *b = NULL;
    ggl_error err = {0};
    const ggl_shadow_params p = {.size = sizeof p, .rate = rate, .n_nodes = n_nodes, .seed = 7};
    CHECK_OK(ggl_shadow_wrap(&b, inner, trusted, &p, &err), &err);
    return b;
}

/* Logits of a prompt and of tokens one by one, to free(). */
static float *logits_of(toy_run *r, size_t *n) {
    ggl_error err = {0};
    *n = (size_t)r->n_vocab * N * 2;
    float *logits = calloc(*n, sizeof *logits);
    CHECK_MSG(logits && toy_prompt(r, 1, N, 9, logits, &err) &&
                  toy_prompt(r, 0, N, 1, logits + *n / 2, &err),
              "%s", err.msg);
    return logits;
}

/* Gives the slots their pages from last to first, so that no two of a slot's are in order. */
static bool turn_pages(const toy_run *r, ggl_error *err) {
    int32_t page[TOY_SLOTS * (TOY_CTX / GGL_PAGE + 1)];
    const int n = (int)ggl_graph_n_pages(r->graph);
    for (int i = 0; i < n; i++)
        page[i] = n - 1 - i;
    return n == 0 ||
           ggl_sched_set(r->sched, "page", page, (size_t)n * sizeof *page, 1, err) == GGL_OK;
}

static float *run_toy(const toy_model *t, ggl_backend *const *b, int n_backends, ggl_type kv,
                      size_t *n) {
    toy_run r;
    ggl_error err = {0};
    float *logits = NULL;
    int split = n_backends > 1 ? 1 : -1;
    if (CHECK_MSG(toy_start(&r, t, b, n_backends, reference(), split, kv, &err), "%s", err.msg)) {
        CHECK_MSG(turn_pages(&r, &err), "%s", err.msg);
        logits = logits_of(&r, n);
        toy_stop(&r);
    }
    return logits;
}

static bool open_toy(int k, toy_model *t, const char **name) {
    const char *text;
    size_t size;
    ggl_error err = {0};
    return sample_at(k) >= 0 && llm_arch_builtin(sample_at(k), name, &text, &size) &&
           CHECK_MSG(toy_open(t, *name, text, size, 1, &err), "%s", err.msg);
}

static bool next_toy(int k, toy_model *t, const char **name) {
    return k < (TEST_SANITIZED ? 4 : 9) && open_toy(k, t, name);
}

/* Opens the n-th toy of those that read a text token by token. */
static bool open_causal(int n, toy_model *t) {
    const char *name;
    for (int k = 0; open_toy(k, t, &name); k++) {
        if (!llm_arch_sees_all(t->arch) && n-- == 0)
            return true;
        toy_close(t);
    }
    return false;
}

/* n_least: nodes that must have been checked. */
static void check_quiet(const char *name, const ggl_backend *b, int n_least) {
    ggl_shadow_result r = ggl_shadow_get(b);
    CHECK_MSG(r.n_faults == 0, "%s: %s (%s) is said to be %g, not %g, bound %g", name, r.worst.node,
              r.worst.origin, r.worst.got, r.worst.want, r.worst.bound);
    CHECK_MSG(r.n_skipped == 0, "%s: %s", name, r.why);
    CHECK_MSG(r.n_nodes > n_least, "%s: %d nodes checked", name, (int)r.n_nodes);
}

/* The CPU against itself and against the reference, which shows what the bounds have to allow; the
 * bits of its logits are those without. Several types of rows, one backend and two. */
TEST(finds_nothing) {
    static const ggl_type kv[] = {GGL_F16, GGL_BF16, GGL_F32};
    const char *name;
    toy_model t;
    ggl_error err = {0};
    for (int k = 0; next_toy(k, &t, &name); k++) {
        size_t n = 0, m = 0;
        CHECK_MSG(toy_settle(&t, N, &err), "%s",
                  err.msg); /* else f32 may overflow where double does not */
        ggl_type type = kv[k % 3];
        ggl_backend *plain[] = {open_backend("cpu"), open_backend("cpu")},
                    *trusted = open_backend("cpu");
        /* the toy of an eye or ear is its last stage: few nodes, all of them on one backend */
        const bool is_last = llm_arch_has_output(t.arch, "rows");
        ggl_backend *b[] = {shadowed(open_backend("cpu"), reference(), is_last ? 1 : 0.7, 6),
                            shadowed(open_backend("cpu"), trusted, 1, 2)};
        float *want = run_toy(&t, plain, 1 + k % 2, type, &n),
              *got = run_toy(&t, b, 1 + k % 2, type, &m);
        CHECK_MSG(got && want && n == m && memcmp(got, want, n * sizeof *got) == 0,
                  "%s: doubted, the bits are others", name);
        const int least = is_last                     ? 0
                          : llm_arch_sees_all(t.arch) ? 5 /* a whole text is one run */
                                                      : 20;
        const bool is_on[] = {!is_last || ggl_shadow_get(b[0]).n_runs > 0,
                              k % 2 && (!is_last || ggl_shadow_get(b[1]).n_runs > 0)};
        CHECK(is_on[0] || is_on[1]);
        if (is_on[0])
            check_quiet(name, b[0], least);
        CHECK(ggl_shadow_report(b[0], stdout));
        if (is_on[1]) {
            check_quiet(name, b[1], least);
            CHECK_MSG(ggl_shadow_get(b[1]).largest == 0, "%s: the CPU differs from itself by %g",
                      name, ggl_shadow_get(b[1]).largest);
        }
        free(got);
        free(want);
        for (int i = 0; i < 2; i++) {
            ggl_backend_close(b[i]);
            ggl_backend_close(plain[i]);
        }
        ggl_backend_close(trusted);
        toy_close(&t);
    }
}

/* Runs the toy with a fault in the node; whether it was found, and nothing else. */
static void check_fault(const char *name, toy_run *r, const ggl_tensor *t, ggl_backend *b,
                        int *n_found) {
    size_t n;
    ggl_shadow_result before = ggl_shadow_get(b), s = before;
    for (int i = 0; i < 8 && s.n_faults == 0;
         i++) { /* of a long graph each run looks at few nodes */
        free(logits_of(r, &n));
        s = ggl_shadow_get(b);
    }
    CHECK(before.n_faults == 0);
    CHECK_MSG(s.n_skipped == 0, "%s: %s", name, s.why);
    if (s.n_faults == 0) /* it may not have been chosen */
        return;
    const char *want = t->name ? t->name : ggl_op_get(t->op).name;
    CHECK_MSG(strstr(s.first.node, want) && strcmp(s.first.origin, t->origin ? t->origin : "") == 0,
              "%s: a fault in %s (%s) was seen in %s (%s)", name, want, t->origin, s.first.node,
              s.first.origin);
    CHECK_MSG(strcmp(s.first.node, s.worst.node) == 0, "%s: %s is wrong, %s is said to be, too",
              name, s.first.node, s.worst.node);
    CHECK(s.n_faults <= s.n_checked_runs);
    ++*n_found;
}

static int n_nodes_of(const toy_model *t, ggl_backend *b) {
    toy_run r;
    ggl_error err = {0};
    if (!CHECK_MSG(toy_start(&r, t, &b, 1, reference(), -1, GGL_F16, &err), "%s", err.msg))
        return 0;
    int n = ggl_graph_n_nodes(r.graph);
    toy_stop(&r);
    return n;
}

/* Ten nodes of each graph, other ones on each day. More graphs have their turn if these have few nodes. */
TEST(names_the_node) {
    const char *name;
    toy_model t;
    enum { N_FAULTS = 30 };
    int n_faults = 0, n_found = 0;
    ggl_backend *cpu = open_backend("cpu"), *trusted = open_backend("cpu");
    for (int k = 0; n_faults <= N_FAULTS ? open_toy(k, &t, &name) : next_toy(k, &t, &name); k++) {
        const int n_nodes = n_nodes_of(&t, cpu), step = n_nodes / 10 + 1;
        for (int i = (int)(sample_seed() % (uint64_t)step); i < n_nodes; i += step) {
            faulty f;
            faulty_init(&f, cpu);
            ggl_backend *b = shadowed(&f.w.base, trusted, 1, 16);
            toy_run r;
            ggl_error err = {0};
            /* the graph has to be there to choose a node of it: built twice, the same both times */
            REQUIRE(toy_start(&r, &t, &b, 1, reference(), -1, GGL_F16, &err));
            ggl_sched_free(r.sched);
            r.sched = NULL;
            while (i < n_nodes && !confuse(&f, r.graph, ggl_graph_node(r.graph, i)))
                i++;
            ggl_sched_params sp = {.size = sizeof sp, .backend = &b, .n_backends = 1};
            if (i < n_nodes && CHECK_OK(ggl_sched_new(&r.sched, r.graph, &sp, &err), &err) &&
                CHECK_OK(ggl_sched_alloc(r.sched, &err), &err)) {
                n_faults++;
                check_fault(name, &r, f.target, b, &n_found);
            }
            toy_stop(&r);
            ggl_backend_close(b);
        }
        toy_close(&t);
    }
    printf("%d faults, %d found\n", n_faults, n_found);
    CHECK(n_faults > N_FAULTS);
    CHECK(n_found >= n_faults * 9 / 10);
    ggl_backend_close(cpu);
    ggl_backend_close(trusted);
}

/* --- a model of quantized weights ------------------------------------------------------------- */

static float *logits_of_model(ggl_backend *b, int64_t *n) {
    llm_model *m = NULL;
    llm_session *s = NULL;
    ggl_error err = {0};
    float *logits = NULL;
    llm_session_params p = llm_session_default();
    p.backend = &b;
    p.n_backends = 1;
    p.fold = reference();
    p.type_k = GGL_Q8_0;
    p.type_v = GGL_Q4_0;
    int32_t token[N];
    for (int i = 0; i < N; i++)
        token[i] = 1 + i * 7;
    if (CHECK_OK(llm_model_open(&m, BUILTIN_MODEL, NULL, &err), &err) &&
        CHECK_OK(llm_session_new(&s, m, &p, &err), &err) &&
        CHECK_OK(llm_session_alloc(s, &err), &err)) {
        for (int i = 0; i < N; i += i ? 1 : 8) {
            llm_batch batch = {.n = i ? 1 : 8, .token = token + i};
            CHECK_OK(llm_session_eval(s, &batch, &err), &err);
        }
        *n = llm_session_n_vocab(s);
        logits = malloc((size_t)*n * sizeof *logits);
        memcpy(logits, llm_session_logits(s), (size_t)*n * sizeof *logits);
    }
    llm_session_free(s);
    llm_model_free(m);
    return logits;
}

/* The CPU rounds activations to 8 bits, the reference does not: the difference is no fault. */
TEST(quantized_weights) {
    int64_t n = 0, m = 0;
    ggl_backend *plain = open_backend("cpu"), *trusted = open_backend("cpu");
    ggl_backend *b = shadowed(open_backend("cpu"), reference(), 1, 16),
                *other = shadowed(open_backend("reference"), trusted, 0.5, 16);
    float *want = logits_of_model(plain, &n), *got = logits_of_model(b, &m);
    CHECK(got && want && n == m && memcmp(got, want, (size_t)n * sizeof *got) == 0);
    free(logits_of_model(other, &m));
    CHECK(ggl_shadow_report(b, stdout));
    CHECK(ggl_shadow_report(other, stdout));
    check_quiet("the CPU", b, 20);
    check_quiet("the reference", other, 20);
    CHECK(ggl_shadow_get(b).largest > 0);
    free(want);
    free(got);
    ggl_backend_close(b);
    ggl_backend_close(other);
    ggl_backend_close(plain);
    ggl_backend_close(trusted);
}

/* A product with one row of quantized weights, whose terms cancel: rounding is all there is left.
 */
TEST(cancelled_product) {
    enum { LENGTH = 256, TOKENS = 16 };
    float w[LENGTH], x[TOKENS * LENGTH];
    char q8[LENGTH / 32 * 34];
    uint64_t random = 5;
    for (int i = 0; i < LENGTH; i++)
        w[i] = test_random_float(&random);
    for (int t = 0; t < TOKENS; t++)
        for (int i = 0; i < LENGTH; i++)
            x[t * LENGTH + i] = test_random_float(&random);
    ggl_type_get(GGL_Q8_0)->from_float(w, q8, LENGTH);
    ggl_type_get(GGL_Q8_0)->to_float(q8, w, LENGTH);
    for (int t = 0; t < TOKENS; t++) { /* x loses its part along w, but for a millionth */
        double wx = 0, ww = 0;
        for (int i = 0; i < LENGTH; i++) {
            wx += (double)w[i] * (double)x[t * LENGTH + i];
            ww += (double)w[i] * (double)w[i];
        }
        for (int i = 0; i < LENGTH; i++)
            x[t * LENGTH + i] -= (float)(wx / ww * 0.999999 * (double)w[i]);
    }
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_tensor *in = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){LENGTH}, true);
    ggl_tensor *m = ggl_graph_weight(g, "gate", GGL_Q8_0, 2, (int64_t[]){LENGTH, 1}, q8);
    ggl_graph_output(g, "y", ggl_linear(g, in, m, NULL));
    ggl_error err = {0};
    ggl_sched *s = NULL;
    ggl_backend *b = shadowed(open_backend("cpu"), reference(), 1, 1);
    ggl_sched_params p = {.size = sizeof p, .backend = &b, .n_backends = 1};
    CHECK_OK(ggl_graph_finish(g, &err), &err);
    if (CHECK_OK(ggl_sched_new(&s, g, &p, &err), &err) && CHECK_OK(ggl_sched_alloc(s, &err), &err))
        for (int t = 0; t < TOKENS; t++) {
            CHECK_OK(ggl_sched_set(s, "x", x + t * LENGTH, LENGTH * sizeof *x, 1, &err), &err);
            CHECK_OK(ggl_sched_run(s, 1, NULL, 0, &err), &err);
        }
    ggl_shadow_result r = ggl_shadow_get(b);
    CHECK_INT(r.n_nodes, TOKENS);
    CHECK_MSG(r.n_faults == 0 && r.largest > 0, "%g, not %g, of %g", r.worst.got, r.worst.want,
              r.worst.scale);
    ggl_sched_free(s);
    ggl_graph_free(g);
    ggl_backend_close(b);
}

TEST(same_seed_same_nodes) {
    toy_model t;
    size_t n;
    REQUIRE(open_causal(0, &t));
    int64_t checked[2];
    double most[2];
    for (int i = 0; i < 2; i++) {
        ggl_backend *b = shadowed(open_backend("cpu"), reference(), 0.25, 1);
        free(run_toy(&t, &b, 1, GGL_F16, &n));
        ggl_shadow_result r = ggl_shadow_get(b);
        CHECK(r.n_runs > 40 && r.n_checked_runs > r.n_runs / 10 && r.n_checked_runs < r.n_runs / 2);
        checked[i] = r.n_checked_runs;
        most[i] = r.largest;
        ggl_backend_close(b);
    }
    CHECK_INT(checked[0], checked[1]);
    CHECK(most[0] == most[1]);
    toy_close(&t);
}

/* Without memory to look at a run it runs all the same, and its results are right. */
TEST(every_allocation_fails_in_turn) {
    toy_model t;
    toy_run r;
    size_t n;
    ggl_error err = {0};
    REQUIRE(open_causal(1, &t));
    ggl_backend *plain = open_backend("cpu"), *b = shadowed(open_backend("cpu"), reference(), 1, 4);
    float *want = run_toy(&t, &plain, 1, GGL_F16, &n), *got = calloc(n, sizeof *got);
    REQUIRE(got && want && toy_start(&r, &t, &b, 1, reference(), -1, GGL_F16, &err));
    bool failed = true;
    int64_t skipped = 0;
    long k = 0;
    for (; failed; k++) {
        CHECK_OK(ggl_sched_clear_slot(r.sched, 1, &err), &err);
        alloc_fail_at(k + 1);
        bool ok = toy_eval(&r, 1, 0, 9, got, &err);
        failed = alloc_has_failed();
        alloc_fail_at(0);
        if (!ok && strstr(err.msg, "out of memory for the input")) /* of the test's text */
            continue;
        CHECK_MSG(ok, "allocation %ld: %s", k, err.msg);
        CHECK_MSG(memcmp(got, want, (size_t)r.n_vocab * 9 * sizeof *got) == 0, "allocation %ld", k);
    }
    skipped = ggl_shadow_get(b).n_skipped;
    CHECK_MSG(k > 50 && skipped > 30, "%ld allocations, %d nodes were not checked", k,
              (int)skipped);
    CHECK(ggl_shadow_get(b).n_faults == 0);
    free(want);
    free(got);
    toy_stop(&r);
    ggl_backend_close(plain);
    ggl_backend_close(b);
    toy_close(&t);
}

TEST(wrong_use) {
    ggl_backend *b = NULL, *cpu = open_backend("cpu");
    ggl_error err = {0};
    const ggl_shadow_params wrong[] = {{.size = sizeof(ggl_shadow_params), .rate = -1},
                                       {.size = sizeof(ggl_shadow_params), .rate = 2},
                                       {.size = sizeof(ggl_shadow_params), .rate = NAN},
                                       {.size = sizeof(ggl_shadow_params), .n_nodes = 17},
                                       {.size = sizeof(ggl_shadow_params), .n_nodes = -1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(ggl_shadow_wrap(&b, cpu, reference(), &wrong[i], &err) == GGL_USAGE && !b);
    ggl_backend_close(cpu);
}
