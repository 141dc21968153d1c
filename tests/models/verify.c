/* The basis of llm-arch verify: a wrapper around the CPU backend makes one node wrong, and the
 * comparison must name that node and no other, whatever the node and however it is wrong. */
#include "measure/verify.h"

#include "../../backends/common/wrap.h"

#include <math.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/backends.h"
#include "ggl/internal/fold.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/op_args.h"
#include "llm/internal/model.h"
#include "sample.h"
#include "test.h"
#include "toy_run.h"

#define N 8

/* --- a backend with a fault ------------------------------------------------------------------------------------------- */

typedef enum fault { NO_FAULT, ONE_ELEMENT, SCALED, OTHER_OPERATOR, ONLY_WHOLE } fault;

typedef const char *refusal(const ggl_tensor *t);

typedef struct faulty {
    wrap w;
    refusal *refusal; /* NULL: what the real one refuses */
    const ggl_tensor *target;
    fault kind;
} faulty;

typedef struct faulty_plan {
    ggl_plan base;
    ggl_plan *real;
    bool hit;
    ggl_loc loc;
    size_t row;
    ggl_tensor other; /* what is computed instead */
    double num[8];
} faulty_plan;

static const char *f_refuses(const ggl_backend *b, const ggl_tensor *t) {
    refusal *own = ((const faulty *)b)->refusal;
    if (own && own(t))
        return own(t);
    return wrap_inner(b)->v->refuses(wrap_inner(b), t);
}
/* Common mistakes: the pairs of the rotation, a scale, an activation. */
static ggl_tensor confused(const ggl_tensor *t, double *num) {
    ggl_tensor c = *t;
    c.num = num;
    for (int i = 0; i < t->n_num; i++)
        num[i] = t->num[i];
    if (t->op == GGL_OP_ROPE_HALF || t->op == GGL_OP_ROPE_PAIR)
        c.op = t->op == GGL_OP_ROPE_HALF ? GGL_OP_ROPE_PAIR : GGL_OP_ROPE_HALF;
    else if (t->op == GGL_OP_ATTEND)
        num[0] = isnan(num[0]) ? 1 : num[0] * 1.05;
    else if (t->op == GGL_OP_ADD)
        c.op = GGL_OP_SUB;
    else if (t->op == GGL_OP_MUL)
        c.op = GGL_OP_ADD;
    return c;
}

static bool can_confuse(const ggl_tensor *t) {
    if (t->op == GGL_OP_ROPE_HALF || t->op == GGL_OP_ROPE_PAIR)
        return t->src[1]->ne[0] > 1; /* one pair of numbers is the same in both */
    if (t->op == GGL_OP_ATTEND)      /* of one row, and for a mean of rows, no scale matters */
        return !(t->num[ATTEND_WINDOW] < 2) && t->src[0]->ne[0] > 1;
    return t->op == GGL_OP_ADD || t->op == GGL_OP_MUL;
}

static ggl_status f_compile(ggl_backend *b, const ggl_segment *s, ggl_plan **out, ggl_error *err) {
    const faulty *f = (const faulty *)b;
    faulty_plan *p = ggl_calloc(1, sizeof *p);
    ggl_tensor *last = s->node[s->n_node - 1];
    bool alone = last == f->target; /* a segment that ends in it is the node by itself */
    bool whole = s->n_node > 16;
    ggl_segment changed = *s;
    ggl_tensor **node = ggl_calloc((size_t)s->n_node, sizeof *node);
    if (!p || !node) {
        ggl_free(p);
        ggl_free(node);
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    }
    memcpy(node, s->node, (size_t)s->n_node * sizeof *node);
    changed.node = node;
    if (f->kind == OTHER_OPERATOR && alone) {
        p->other = confused(last, p->num);
        node[s->n_node - 1] = &p->other;
    }
    p->hit = (f->kind == ONLY_WHOLE && whole) ||
             (alone && (f->kind == ONE_ELEMENT || f->kind == SCALED));
    p->loc = s->loc[f->kind == ONLY_WHOLE ? f->target->id : last->id];
    p->row = (size_t)ggl_count(f->target);
    ggl_status st = wrap_inner(b)->v->compile(wrap_inner(b), &changed, &p->real, err);
    ggl_free(node);
    if (st != GGL_OK) {
        ggl_free(p);
        return st;
    }
    p->base.arena_size = p->real->arena_size;
    *out = &p->base;
    return GGL_OK;
}

static ggl_status spoil(ggl_backend *b, const faulty_plan *p, ggl_buffer *buf, int64_t n,
                        ggl_error *err) {
    const faulty *f = (const faulty *)b;
    size_t count = p->row * (size_t)n;
    float *x = ggl_calloc(count, sizeof *x);
    double sum = 0;
    ggl_status st = b->v->download(b, buf, p->loc.offset, x, count * sizeof *x, err);
    for (size_t i = 0; i < count; i++)
        sum += (double)x[i] * (double)x[i];
    if (f->target->type == GGL_I32)
        ((int32_t *)x)[count / 2] ^= 1;
    else if (f->kind == SCALED)
        for (size_t i = 0; i < count; i++)
            x[i] *= 1.05f;
    else
        x[count / 2] += (float)(0.3 * sqrt(sum / (double)count) + 1e-3);
    if (st == GGL_OK)
        st = b->v->upload(b, buf, p->loc.offset, x, count * sizeof *x, err);
    ggl_free(x);
    return st;
}

static ggl_status f_run(ggl_backend *b, ggl_plan *plan, ggl_buffer *const *region, int64_t n,
                        ggl_error *err) {
    faulty_plan *p = (faulty_plan *)plan;
    ggl_status st = wrap_inner(b)->v->run(wrap_inner(b), p->real, region, n, err);
    if (st == GGL_OK && p->hit && p->loc.region >= 0)
        st = spoil(b, p, region[p->loc.region], n, err);
    return st;
}

static void f_plan_free(ggl_backend *b, ggl_plan *plan) {
    wrap_inner(b)->v->plan_free(wrap_inner(b), ((faulty_plan *)plan)->real);
    ggl_free(plan);
}

static void faulty_init(faulty *f, ggl_backend *real, const char *name) {
    *f = (faulty){0};
    ggl_wrap_init(&f->w, real);
    snprintf(f->w.base.name, sizeof f->w.base.name, "%s", name);
    f->w.v.refuses = f_refuses;
    f->w.v.compile = f_compile;
    f->w.v.run = f_run;
    f->w.v.plan_free = f_plan_free;
    f->w.v.describe = NULL; /* of another plan */
    f->w.v.repack_size = NULL;
    f->w.v.repack = NULL;
}

/* --- fixture ---------------------------------------------------------------------------------------------------------- */

typedef struct fixture {
    ggl_backend *cpu, *reference;
    faulty f;
    ggl_graph *g;
    llm_arch_result built;
    int32_t token[N];
    ggl_error err;
} fixture;

static bool open_backends(fixture *f) {
    ggl_backend_params p = {.size = sizeof p, .n_threads = 1};
    *f = (fixture){0};
    bool ok = ggl_backend_open(&f->cpu, "cpu", &p, &f->err) == GGL_OK &&
              ggl_backend_open(&f->reference, "reference", NULL, &f->err) == GGL_OK;
    if (ok)
        faulty_init(&f->f, f->cpu, "faulty");
    return CHECK_MSG(ok, "%s", f->err.msg);
}

/* Of a model without tokens: the graph of its first stage. */
static bool build(fixture *f, const llm_arch *arch, const llm_arch_source *source) {
    ggl_graph_params p = ggl_graph_default();
    const llm_arch_params ap = {
        .size = sizeof ap, .only = llm_arch_reads_text(arch) ? NULL : llm_arch_rows_stage(arch, 0)};
    p.n_pos = p.n_batch = N;
    f->g = ggl_graph_new(&p);
    bool ok = f->g && llm_arch_build(arch, source, &ap, f->g, &f->built, &f->err) == GGL_OK &&
              ggl_graph_finish(f->g, &f->err) == GGL_OK &&
              ggl_graph_fold(f->g, f->reference, &f->err) == GGL_OK;
    for (int i = 0; i < N && ok; i++)
        f->token[i] = (int32_t)((uint32_t)i * 2654435761u %
                                (uint64_t)(f->built.n_vocab > 0 ? f->built.n_vocab : 1));
    return CHECK_MSG(ok, "%s", f->err.msg);
}

static void teardown(fixture *f) {
    ggl_graph_free(f->g);
    llm_arch_result_fini(&f->built);
    ggl_backend_close(f->cpu);
    ggl_backend_close(f->reference);
}

/* Verifies with a fault; the first node that departs, NULL if none does. */
static const ggl_tensor *first_wrong(fixture *f, const ggl_tensor *target, fault kind,
                                     verify_result *r) {
    f->f.target = target;
    f->f.kind = kind;
    if (!CHECK_OK(llm_verify_graph(r, f->g, &f->f.w.base, f->reference, f->token, N, NULL, &f->err),
                  &f->err))
        return NULL;
    return r->first < 0 ? NULL : r->at[r->first].node;
}

static int n_wrong(const verify_result *r) {
    int n = 0;
    for (size_t i = 0; i < r->n; i++)
        n += r->at[i].departure > 1;
    return n;
}

static const char *name_of(const ggl_tensor *t) {
    static char text[2][160];
    static int turn;
    return t ? ggl_node_text(t, text[turn++ % 2], sizeof text[0]) : "no node";
}

/* About `most` nodes of the graph in turn, each with a fault. */
static void inject(fixture *f, const char *what, size_t most) {
    verify_result clean, r;
    if (!CHECK_MSG(first_wrong(f, ggl_graph_get_output(f->g, 0), NO_FAULT, &clean) == NULL,
                   "%s: a node departs without a fault", what))
        return;
    CHECK(clean.n > 10);
    CHECK_MSG(!clean.whole_departs, "%s: the whole departs without a fault", what);
    size_t step = clean.n / most + 1, n_faults = 0;
    for (size_t i = 0; i < clean.n; i += step) {
        const ggl_tensor *t = clean.at[i].node;
        if (t->op == GGL_OP_CACHE) /* has no value to spoil */
            continue;
        fault kind = can_confuse(t) && i % 2 == 0                  ? OTHER_OPERATOR
                     : n_faults % 3 == 2 && t->op == GGL_OP_LINEAR ? SCALED
                                                                   : ONE_ELEMENT;
        const ggl_tensor *got = first_wrong(f, t, kind, &r);
        CHECK_MSG(got == t && n_wrong(&r) == 1,
                  "%s: fault %d in %s (%s) was seen in %s; %d nodes depart", what, (int)kind,
                  name_of(t), t->origin ? t->origin : "", name_of(got), n_wrong(&r));
        llm_verify_result_fini(&r);
        n_faults++;
    }
    CHECK(n_faults > 5);
    llm_verify_result_fini(&clean);
}

/* --- cases ------------------------------------------------------------------------------------------------------------ */

TEST(made_up_models) {
    const char *name, *text;
    size_t n;
    for (int k = 0; llm_arch_builtin(k, &name, &text, &n); k++) {
        fixture f;
        toy_model t;
        if (!sampled(k, TEST_SANITIZED ? 4 : 10))
            continue;
        if (open_backends(&f) &&
            CHECK_MSG(toy_open(&t, name, text, n, 1, &f.err), "%s", f.err.msg)) {
            if (llm_arch_reads_text(t.arch) && /* the last stage of an eye may be a product alone */
                build(&f, t.arch, llm_arch_toy_source(t.toy)))
                inject(&f, name, TEST_SANITIZED ? 10 : 24);
            toy_close(&t);
        }
        teardown(&f);
    }
}

/* A real one, with quantized weights, if its weights are; and what only the whole shows. */
TEST(builtin_model) {
    fixture f;
    llm_model *m = NULL;
    REQUIRE(open_backends(&f));
    REQUIRE_OK(llm_model_open(&m, BUILTIN_MODEL, NULL, &f.err), &f.err);
    llm_arch_source source = llm_arch_source_gguf(llm_model_file(m));
    if (build(&f, llm_model_arch(m), &source)) {
        inject(&f, "the built-in model", 12);
        verify_result r;
        CHECK(first_wrong(&f, ggl_graph_get_output(f.g, 0), ONLY_WHOLE, &r) == NULL);
        CHECK_MSG(r.whole_departs, "a fault of the whole was not seen: %g, rounding %g", r.whole,
                  r.rounding);
        llm_verify_result_fini(&r);
    }
    teardown(&f);
    llm_model_free(m);
}

/* In gelu(-4) the factor 1 + tanh is the difference of two ones: float is off by more than a
 * rounding of x explains, but correct. */
TEST(rounded_within) {
    static const char text[] =
        "arch far\nlanguage 1\nn_embd = .embedding_length\ntoken_embd [n_embd, n_vocab]\n"
        "x = token_embd[token]\nlogits = linear(x, token_embd) + sum(gelu(x * 0.1 - 4))\n";
    fixture f;
    toy_model t;
    verify_result r;
    if (open_backends(&f) &&
        CHECK_MSG(toy_open(&t, "far.arch", text, sizeof text - 1, 1, &f.err), "%s", f.err.msg)) {
        if (build(&f, t.arch, llm_arch_toy_source(t.toy))) {
            const ggl_tensor *wrong = first_wrong(&f, ggl_graph_get_output(f.g, 0), NO_FAULT, &r);
            CHECK_MSG(!wrong, "%s departs by %g", name_of(wrong),
                      r.at[r.first < 0 ? 0 : r.first].departure);
            llm_verify_result_fini(&r);
        }
        toy_close(&t);
    }
    teardown(&f);
}

static const char *all_but_linear(const ggl_tensor *t) {
    return t->op == GGL_OP_LINEAR ? NULL : "it has products only";
}

/* A backend that has products alone is right: the rounding that bounds the whole run goes on through what it refuses. */
TEST(products_only) {
    const char *name, *text;
    size_t n;
    verify_result r;
    for (int k = 0; llm_arch_builtin(k, &name, &text, &n); k++) {
        fixture f;
        toy_model t;
        /* In these two a number that a cache keeps falls to the other side, which moves the outputs more than all other rounding. */
        if (!sampled(k, 8) && !strstr("chatglm.arch olmoe.arch", name))
            continue;
        if (open_backends(&f) &&
            CHECK_MSG(toy_open(&t, name, text, n, 1, &f.err), "%s", f.err.msg)) {
            f.f.refusal = all_but_linear;
            if (build(&f, t.arch, llm_arch_toy_source(t.toy)) &&
                CHECK_MSG(!first_wrong(&f, ggl_graph_get_output(f.g, 0), NO_FAULT, &r),
                          "%s: a node departs", name)) {
                /* of an eye or an ear, the graph is that of its last stage, which may be one product */
                const size_t least = llm_arch_reads_text(t.arch) ? 5 : 1;
                CHECK_MSG(r.n >= least && r.n_refused > 2 * r.n, "%s: %zu nodes, %zu refused", name,
                          r.n, r.n_refused);
                CHECK_MSG(!r.whole_departs, "%s: the whole differs by %g, rounding is %g", name,
                          r.whole, r.rounding);
                llm_verify_result_fini(&r);
            }
            toy_close(&t);
        }
        teardown(&f);
    }
    fixture f;
    llm_model *m = NULL;
    REQUIRE(open_backends(&f));
    f.f.refusal = all_but_linear;
    REQUIRE_OK(llm_model_open(&m, BUILTIN_MODEL, NULL, &f.err), &f.err);
    llm_arch_source source = llm_arch_source_gguf(llm_model_file(m));
    if (build(&f, llm_model_arch(m), &source)) {
        CHECK(!first_wrong(&f, ggl_graph_get_output(f.g, 0), NO_FAULT, &r));
        CHECK_MSG(!r.whole_departs, "the whole differs by %g, rounding is %g", r.whole, r.rounding);
        llm_verify_result_fini(&r);
        /* the reference is asked, too, whether it has an operator */
        faulty poor;
        faulty_init(&poor, f.reference, "poor");
        poor.refusal = all_but_linear;
        CHECK_INT(llm_verify_graph(&r, f.g, f.cpu, &poor.w.base, f.token, N, NULL, &f.err),
                  GGL_UNSUPPORTED);
        CHECK_HAS(f.err.msg, "does not run on poor: it has products only");
    }
    teardown(&f);
    llm_model_free(m);
}
