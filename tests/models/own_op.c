/* Ops that a descriptor declares itself: a backend is asked for one by its name, "own:NAME", and may
 * compute it; the results are those of its text. */
#define ggl_backend_plugin mine_plugin
#include "../../examples/backend/mine.c"
#undef ggl_backend_plugin

#include "measure/verify.h"
#include "ggl/internal/backends.h"
#include "ggl/internal/graph.h"
#include "test.h"
#include "toy_run.h"

enum { N = 20 };

/* The backend has a kernel for selective_scan, which softmax is not: it hides the prelude's. The def is
 * recurrent, too, but is no op, so nobody is asked for it. */
static const char descriptor[] =
    "arch own\n"
    "language 1\n"
    "n_layer = .block_count\n"
    "n_embd = .embedding_length\n"
    "n_st = .ssm.state_size\n"
    "op selective_scan(x, dt, a, b, c, gain):\n"
    "  s = state(size(b), size(x))\n"
    "  left = s * exp(a * reshape(dt, 1, size(dt)))\n"
    "  keep s = left + reshape(b, size(b), 1) * reshape(dt * x, 1, size(x))\n"
    "  return gain * flat(linear(c, s))\n"
    "op softmax(x):\n"
    "  s = state(size(x))\n"
    "  keep s = 0.5 * s + x\n"
    "  return tanh(s)\n"
    "def smooth(x):\n"
    "  s = state(size(x))\n"
    "  keep s = 0.25 * s + x\n"
    "  return s\n"
    "token_embd [n_embd, n_vocab]\n"
    "x = token_embd[token]\n"
    "layer l < n_layer:\n"
    "  ssm_x [n_embd, n_embd + 2*n_st]\n"
    "  ssm_a [n_st, n_embd]\n"
    "  dt, b, c = split(linear(x, ssm_x), n_embd, n_st, n_st)\n"
    "  y = selective_scan(x, sigmoid(dt), -abs(ssm_a), b, c, 0.5)\n"
    "  x = x + softmax(y) + smooth(tanh(x))\n"
    "logits = linear(x, token_embd)\n";

/* --- a backend with a kernel for own:selective_scan ------------------------------------------- */

typedef struct own_backend {
    ggl_backend b;
    bool wrong;   /* computes something else */
    int n_asked;  /* how often refuses was asked for the op */
    int n_run;    /* how often the kernel ran */
    int n_others; /* how often it was asked for another name with "own:" */
    ggl_profile_fn *profile;
    void *profile_ctx;
} own_backend;

static own_backend *last; /* where the kernel counts */

/* sources: x, dt [d], a [n, d], b, c [n]; num: gain */
static const char *own_refuses(const ggl_backend *base, const ggl_tensor *node) {
    own_backend *b = (own_backend *)base;
    if (node->op == GGL_OP_CALL && node->call && strcmp(node->call, "own:selective_scan") == 0) {
        b->n_asked++;
        bool fits = node->n_src == 5 && node->n_num == 1 && ggl_composite_state(node);
        return fits ? NULL : "selective_scan is of x, dt, a, b, c";
    }
    b->n_others += node->op == GGL_OP_CALL && node->call && strncmp(node->call, "own:", 4) == 0;
    return mine_refuses(base, node);
}

typedef struct own_plan {
    plan p;
    ggl_operand slot; /* the same for all steps */
} own_plan;

static ggl_status own_compile(ggl_backend *b, const ggl_segment *s, ggl_plan **out,
                              ggl_error *err) {
    own_plan *p = ggl_calloc(1, sizeof *p);
    ggl_plan *made = NULL;
    if (!p)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
    ggl_status st = mine_compile(b, s, &made, err);
    if (st != GGL_OK) {
        ggl_free(p);
        return st;
    }
    p->p = *(plan *)made;
    ggl_free(made);
    for (int i = 0; i < p->p.program.n_step; i++)
        if (p->p.program.step[i].node->op == GGL_OP_CALL)
            p->slot = ggl_step_slot(s, &p->p.program.step[i]);
    *out = &p->p.base;
    return GGL_OK;
}

static float *state_of(const task *t, const ggl_store *s, const view *slot, int64_t l) {
    const ggl_loc at = t->store_loc[s->id];
    return (float *)(t->region[at.region]->data + at.offset +
                     (size_t) * (int32_t *)row(slot, 0, 0, l) * s->slot_size);
}

static void selective_scan(const task *t, const view *slot, bool wrong) {
    const ggl_store *store = ggl_composite_state(t->node);
    const int64_t d = t->src[0].ne[0], n = t->src[3].ne[0];
    for (int64_t l = 0; l < t->dst.ne[3]; l++) {
        float *s = state_of(t, store, slot, l), *x = row(&t->src[0], 0, 0, l);
        float *dt = row(&t->src[1], 0, 0, l), *b = row(&t->src[3], 0, 0, l);
        float *c = row(&t->src[4], 0, 0, l), *y = row(&t->dst, 0, 0, l);
        for (int64_t j = 0; j < d; j++) {
            const float *a = row(&t->src[2], j, 0, l);
            y[j] = 0;
            for (int64_t i = 0; i < n; i++) {
                s[j * n + i] = s[j * n + i] * expf(a[i] * dt[j]) + b[i] * dt[j] * x[j];
                y[j] += (float)t->node->num[0] * c[i] * s[j * n + i] * (wrong ? 1.5f : 1);
            }
        }
    }
}

static ggl_status own_run(ggl_backend *base, ggl_plan *plan_base, ggl_buffer *const *region,
                          int64_t n, ggl_error *err) {
    own_backend *b = (own_backend *)base;
    const own_plan *p = (const own_plan *)plan_base;
    (void)err;
    for (int i = 0; i < p->p.program.n_step; i++) {
        const ggl_step *s = &p->p.program.step[i];
        task t = {.node = s->node, .region = region, .store_loc = p->p.store_loc};
        t.row = (float *)(region[GGL_REGION_ARENA]->data + p->p.program.arena_size);
        t.dst = view_of(&s->dst, region, n);
        for (int k = 0; k < s->n_src; k++)
            t.src[k] = view_of(&s->src[k], region, n);
        if (s->node->op == GGL_OP_CALL) {
            const view slot = view_of(&p->slot, region, n);
            selective_scan(&t, &slot, b->wrong);
            b->n_run++;
        } else {
            operators[s->node->op](&t);
        }
        if (b->profile)
            b->profile(b->profile_ctx, s->node, n, false, 0, 1000);
    }
    return GGL_OK;
}

static ggl_backend *own_open(void) {
    static ggl_backend_vtable own;
    own = vtable;
    own.refuses = own_refuses;
    own.compile = own_compile;
    own.run = own_run;
    last = ggl_calloc(1, sizeof *last);
    last->b =
        (ggl_backend){.v = &own, .name = "own", .description = "loops, and one for an own op"};
    return &last->b;
}

/* --- tests ------------------------------------------------------------------------------------ */

static ggl_backend *open_backend(const char *name) {
    ggl_backend *b = NULL;
    ggl_error err = {0};
    CHECK_OK(ggl_backend_open(&b, name, NULL, &err), &err);
    return b;
}

enum { MOST = N * 4096 };
static float got[MOST], want[MOST];

/* Runs a prompt in pieces on the first of the backends, and on the second what it refuses. text: what
 * ggl_sched_print writes; NULL: not wanted. False: reported. */
static bool logits_of(const toy_model *t, ggl_backend *const *b, int n_backends, float *logits,
                      char **text) {
    toy_run r;
    ggl_error err = {0};
    size_t size;
    ggl_backend *fold = open_backend("reference");
    bool ok = toy_start(&r, t, b, n_backends, fold, -1, GGL_F32, &err);
    ok = ok && CHECK(r.n_vocab <= MOST / N);
    if (ok && text) {
        FILE *out = open_memstream(text, &size);
        ggl_sched_print(r.sched, out, true);
        fclose(out);
    }
    if (ok) {
        ok = toy_prompt(&r, 0, N, 7, logits, &err) && toy_prompt(&r, 1, N, 3, logits, &err);
        toy_stop(&r);
    }
    ggl_backend_close(fold);
    return CHECK_MSG(ok, "%s", err.msg);
}

static toy_model open_model(void) {
    toy_model t;
    ggl_error err = {0};
    CHECK_MSG(toy_open(&t, "own.arch", descriptor, sizeof descriptor - 1, 0, &err), "%s", err.msg);
    return t;
}

TEST(a_backend_is_asked_by_name_and_computes) {
    toy_model t = open_model();
    REQUIRE(t.toy);
    char *text = NULL;
    ggl_backend *cpu = open_backend("cpu"), *reference = open_backend("reference");
    ggl_backend *own = own_open(), *both[2] = {own, cpu};
    if (logits_of(&t, both, 2, got, &text) && logits_of(&t, &reference, 1, want, NULL)) {
        double most = 0, off = 0;
        for (int i = 0; i < MOST; i++) {
            most = fmax(most, fabs((double)want[i]));
            off = fmax(off, fabs((double)got[i] - (double)want[i]));
        }
        CHECK_MSG(most > 0 && off < 1e-4 * most, "off by %g of %g", off, most);
        CHECK(last->n_asked > 0 && last->n_run > 0 && last->n_others > 0);
        CHECK_HAS(text, "own:selective_scan");
        CHECK_HAS(text, "own:softmax"); /* on the CPU, by its body */
        CHECK_HAS(text, "<loop>");      /* the def */
    }
    free(text);
    toy_close(&t);
    ggl_backend_close(own);
    ggl_backend_close(cpu);
    ggl_backend_close(reference);
}

TEST(no_own_op_is_taken_for_the_prelude_s) {
    toy_model t = open_model();
    REQUIRE(t.toy);
    ggl_error err = {0};
    ggl_graph *g = ggl_graph_new(NULL);
    int n = 0;
    REQUIRE_OK(llm_arch_build(t.arch, llm_arch_toy_source(t.toy), NULL, g, NULL, &err), &err);
    for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
        const ggl_tensor *x = ggl_graph_node(g, i);
        if (x->op != GGL_OP_CALL)
            continue;
        CHECK_INT(ggl_composite_of(x), GGL_COMPOSITE_NONE);
        CHECK(!x->call || strncmp(x->call, "own:", 4) == 0);
        n += x->call != NULL;
    }
    CHECK(n >= 2);
    ggl_graph_free(g);
    toy_close(&t);
}

TEST(traced_under_its_name) {
    toy_model t = open_model();
    REQUIRE(t.toy);
    ggl_error err = {0};
    ggl_backend *own = own_open(), *traced = NULL, *cpu = open_backend("cpu");
    const char *path = test_path("own.json");
    last->profile = ggl_trace_node;
    last->profile_ctx = &traced;
    REQUIRE_OK(ggl_trace_wrap(&traced, own, path, &err), &err);
    ggl_backend *both[2] = {traced, cpu};
    logits_of(&t, both, 2, got, NULL);
    ggl_backend_close(traced);
    ggl_backend_close(cpu);
    toy_close(&t);
    static char text[1 << 20];
    FILE *in = fopen(path, "r");
    REQUIRE(in);
    text[fread(text, 1, sizeof text - 1, in)] = 0;
    fclose(in);
    CHECK_HAS(text, "own:selective_scan");
}

static void shadowed(bool wrong) {
    toy_model t = open_model();
    REQUIRE(t.toy);
    ggl_error err = {0};
    ggl_backend *own = own_open(), *shadow = NULL, *cpu = open_backend("cpu");
    last->wrong = wrong;
    REQUIRE_OK(
        ggl_shadow_wrap(&shadow, own, cpu,
                        &(ggl_shadow_params){
                            .size = sizeof(ggl_shadow_params), .rate = 1, .n_nodes = 16, .seed = 1},
                        &err),
        &err);
    ggl_backend *both[2] = {shadow, cpu};
    if (logits_of(&t, both, 2, got, NULL)) {
        ggl_shadow_result r = ggl_shadow_get(shadow);
        CHECK_MSG((r.n_faults > 0) == wrong, "%d faults: %s", (int)r.n_faults, r.first.node);
        CHECK(r.n_nodes > 0);
        if (wrong)
            CHECK_HAS(r.first.node, "own:selective_scan");
    }
    ggl_backend_close(shadow);
    ggl_backend_close(cpu);
    toy_close(&t);
}

TEST(shadowed_under_its_name) {
    shadowed(false);
    shadowed(true);
}

static void verified(bool wrong) {
    toy_model t = open_model();
    REQUIRE(t.toy);
    toy_run r;
    verify_result v;
    ggl_error err = {0};
    int32_t token[N];
    for (int i = 0; i < N; i++)
        token[i] = (5 * i + 1) % 16;
    ggl_backend *own = own_open(), *reference = open_backend("reference");
    last->wrong = wrong;
    if (CHECK_MSG(toy_start(&r, &t, &reference, 1, reference, -1, GGL_F32, &err), "%s", err.msg)) {
        if (CHECK_OK(llm_verify_graph(&v, r.graph, own, reference, token, N, NULL, &err), &err)) {
            const ggl_tensor *first = v.first < 0 ? NULL : v.at[v.first].node;
            CHECK(last->n_run > 0 && v.n_refused > 0);
            CHECK_MSG((first != NULL) == wrong, "departs: %s",
                      first && first->call ? first->call : "");
            if (wrong && first)
                CHECK_STR(first->call, "own:selective_scan");
            llm_verify_result_fini(&v);
        }
        toy_stop(&r);
    }
    ggl_backend_close(own);
    ggl_backend_close(reference);
    toy_close(&t);
}

TEST(verified_under_its_name) {
    verified(false);
    verified(true);
}
