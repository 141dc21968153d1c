/* Gradients of recurrences, whose states are computed again in chunks: the chunk changes no bit, whatever the batch is, and memory
 * does not grow with the batch as the states of all of it would. */
#include <stdlib.h>
#include <string.h>

#include "ggl/backends.h"
#include "ggl/compose.h"
#include "ggl/internal/gradient.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/turns.h"
#include "ggl/program.h"
#include "ggl/sched.h"
#include "gradient_test.h"
#include "test.h"

enum { MOST = 6, N_BATCH = 80, N_SLOTS = 5, WIDTH = 16, MOST_NODES = 1024 };

/* --- recurrences ------------------------------------------------------------------------------ */

/* Two states that change places, and one that nothing writes. Only what runs forward reads x[2]. */
static ggl_tensor *swapped(ggl_graph *g, ggl_tensor **x) {
    const double n = 3;
    ggl_tensor **p = ggl_body_begin(g, x, 3);
    if (!p)
        return NULL;
    ggl_tensor *a = with(g, GGL_OP_STATE, NULL, 1, &n), *b = with(g, GGL_OP_STATE, NULL, 1, &n),
               *c = with(g, GGL_OP_STATE, NULL, 1, &n),
               *y = ggl_binary(g, GGL_OP_MUL, ggl_binary(g, GGL_OP_ADD, a, p[0]), p[1]);
    ggl_binary(g, GGL_OP_KEEP, a, b);
    ggl_binary(g, GGL_OP_KEEP, b, ggl_binary(g, GGL_OP_ADD, ggl_unary(g, GGL_OP_TANH, y), p[2]));
    y = ggl_binary(g, GGL_OP_MUL, ggl_binary(g, GGL_OP_MUL, y, b), ggl_unary(g, GGL_OP_EXP, c));
    return ggl_body_end(g, NULL, y, NULL, 0);
}

static ggl_tensor *recent(ggl_graph *g, ggl_tensor **x) {
    return ggl_unary(g, GGL_OP_EXP, ggl_recent(g, x[0], 3));
}
static ggl_tensor *delta(ggl_graph *g, ggl_tensor **x) {
    return ggl_gated_delta_rule(g, x[0], x[1], x[2], x[3], x[4]);
}
static ggl_tensor *scan(ggl_graph *g, ggl_tensor **x) {
    return ggl_ssm_scan(g, x[0], x[1], x[2], x[3], x[4]);
}
static ggl_tensor *linear_attention(ggl_graph *g, ggl_tensor **x) {
    return ggl_gated_linear_attention(g, x[0], x[1], x[2], x[3]);
}
static ggl_tensor *wkv7(ggl_graph *g, ggl_tensor **x) {
    return ggl_wkv7(g, x[0], x[1], x[2], x[3], x[4], x[5]);
}

typedef struct leaf {
    int64_t ne[2];
    bool batched;
} leaf;

static const struct recurrence {
    const char *name;
    ggl_tensor *(*f)(ggl_graph *g, ggl_tensor **x);
    leaf x[MOST];
} recurrences[] = {
    {"swapped states", swapped, {{{3, 0}, true}, {{3, 0}, true}, {{3, 0}, true}}},
    /* its state is larger than all that it computes for an element */
    {"gated_linear_attention",
     linear_attention,
     {{{WIDTH, 1}, true}, {{WIDTH, 1}, true}, {{WIDTH, 1}, true}, {{WIDTH, 1}, true}}},
    {"recent", recent, {{{4, 0}, true}}},
    {"gated_delta_rule",
     delta,
     {{{4, 1}, true}, {{4, 1}, true}, {{3, 2}, true}, {{2, 0}, true}, {{2, 0}, true}}},
    {"ssm_scan",
     scan,
     {{{3, 2}, true}, {{2, 0}, true}, {{2, 0}, false}, {{4, 1}, true}, {{4, 1}, true}}},
    {"wkv7",
     wkv7,
     {{{4, 2}, true},
      {{4, 2}, true},
      {{4, 2}, true},
      {{4, 2}, true},
      {{4, 2}, true},
      {{4, 2}, true}}},
};
enum { SWAPPED, LINEAR_ATTENTION, N_RECURRENCES = sizeof recurrences / sizeof *recurrences };

/* --- graphs ----------------------------------------------------------------------------------- */

typedef struct built {
    ggl_graph *g;
    ggl_sched *s;
    float *data[MOST];
    int n_leaves, n_by;
} built;

static void built_free(built *b) {
    ggl_sched_free(b->s);
    ggl_graph_free(b->g);
    for (int k = 0; k < b->n_leaves; k++)
        free(b->data[k]);
}

/* Makes the graph of a recurrence, of the sum of its elements times numbers that differ, and of the gradients by all that is batched. */
static bool build_graph(built *b, const struct recurrence *r, int64_t chunk, int64_t n_batch) {
    const ggl_graph_params params = {
        .size = sizeof params, .n_pos = n_batch, .n_batch = n_batch, .n_slots = N_SLOTS};
    ggl_tensor *x[MOST], *by[MOST], *d[MOST];
    *b = (built){.g = ggl_graph_new(&params)};
    ggl_graph_input(b->g, "slot", GGL_I32, 0, NULL, true);
    state = 7;
    for (int k = 0; k < MOST && r->x[k].ne[0]; k++) {
        const leaf *l = &r->x[k];
        const int n_dims = l->ne[1] > 0 ? 2 : 1;
        const int64_t n = l->ne[0] * (l->ne[1] > 0 ? l->ne[1] : 1) * (l->batched ? n_batch : 1);
        b->data[k] = calloc((size_t)n, sizeof(float));
        b->n_leaves++;
        if (!CHECK(b->data[k]))
            return false;
        for (int64_t i = 0; i < n; i++)
            b->data[k][i] = (float)(draw() - 0.5);
        const char name[2] = {(char)('a' + k), 0};
        x[k] = l->batched ? ggl_graph_input(b->g, name, GGL_F32, n_dims, l->ne, true)
                          : ggl_graph_variable(b->g, name, GGL_F32, n_dims, l->ne, b->data[k]);
        by[b->n_by++] = x[k];
        if (l->batched) /* so that its memory is free as soon as nothing reads it */
            x[k] = ggl_binary(b->g, GGL_OP_SUB, x[k], ggl_graph_number(b->g, 0.125));
    }
    ggl_tensor *y = r->f(b->g, x);
    const ggl_grad_params p = {.size = sizeof p, .chunk = chunk};
    ggl_error err = {0};
    const bool ok = y && ggl_graph_grad(b->g, sum_all(b->g, ggl_binary(b->g, GGL_OP_MUL, y, y)), by,
                                        b->n_by, &p, d);
    if (!CHECK_OK(ggl_graph_error(b->g, &err), &err) || !CHECK(ok))
        return false;
    for (int k = 0; k < b->n_by; k++)
        ggl_graph_output(b->g, "d", d[k]);
    return true;
}

static bool build(built *b, const struct recurrence *r, ggl_backend *on, int64_t chunk) {
    ggl_error err = {0};
    if (!build_graph(b, r, chunk, N_BATCH))
        return false;
    const ggl_sched_params sp = {.size = sizeof sp, .backend = &on, .n_backends = 1};
    return CHECK_OK(ggl_graph_finish(b->g, &err), &err) &&
           CHECK_OK(ggl_sched_new(&b->s, b->g, &sp, &err), &err) &&
           CHECK_OK(ggl_sched_alloc(b->s, &err), &err);
}

/* Runs n elements with these slots, and returns the gradients one after another, *n_out numbers. */
static float *run(const built *b, const int32_t *slot, int64_t n, int64_t *n_out) {
    ggl_error err = {0};
    static int32_t row[N_BATCH];
    for (int64_t i = 0; i < n; i++)
        row[i] = (int32_t)i;
    for (int k = 0; k < N_SLOTS; k++)
        if (!CHECK_OK(ggl_sched_clear_slot(b->s, k, &err), &err))
            return NULL;
    if (!CHECK_OK(ggl_sched_set(b->s, "slot", slot, (size_t)n * 4, n, &err), &err))
        return NULL;
    for (int k = 0; k < b->n_leaves; k++) {
        const char name[2] = {(char)('a' + k), 0};
        const ggl_tensor *t = ggl_graph_find_input(b->g, name);
        if (t && !CHECK_OK(
                     ggl_sched_set(b->s, name, b->data[k], (size_t)(n * ggl_count(t)) * 4, n, &err),
                     &err))
            return NULL;
    }
    if (!CHECK_OK(ggl_sched_run(b->s, n, row, n, &err), &err))
        return NULL;
    float *out = NULL;
    *n_out = 0;
    for (int pass = 0; pass < 2; pass++) {
        int64_t at = 0;
        for (int k = 0; k < b->n_by; k++) {
            const ggl_tensor *t = ggl_graph_get_output(b->g, k);
            const int64_t count = ggl_count(t) * (ggl_is_batched(t) ? n : 1);
            if (out)
                memcpy(out + at, ggl_sched_output(b->s, k), (size_t)count * sizeof *out);
            at += count;
        }
        *n_out = at;
        out = out ? out : calloc((size_t)at + 1, sizeof *out);
    }
    return out;
}

/* --- bits ------------------------------------------------------------------------------------- */

/* Sets the slots of n elements: 0: one sequence; 1: several, one after another; 2: any order. */
static void set_slots(int32_t *slot, int64_t n, int kind) {
    static const int32_t order[N_SLOTS] = {3, 0, 4, 1, 2};
    state = 5;
    for (int64_t i = 0; i < n; i++)
        slot[i] = kind == 0   ? 2
                  : kind == 1 ? order[i * i * N_SLOTS / (n * n)]
                              : (int32_t)(draw() * N_SLOTS);
}

/* The states of all elements at once, and chunks of several sizes: 0 is the one that is used if nothing else is asked for. */
static void check_on(const struct recurrence *r, ggl_backend *on) {
    static const int64_t chunks[] = {0, 1, 2, 3, 7, 16},
                         sizes[] = {1, 2, 3, 4, 6, 7, 8, 21, 33, 80};
    enum { N_CHUNKS = sizeof chunks / sizeof *chunks, N_SIZES = sizeof sizes / sizeof *sizes };
    built whole, b;
    bool ok = build(&whole, r, on, N_BATCH);
    for (int c = 0; c < N_CHUNKS && ok; c++) {
        ok = build(&b, r, on, chunks[c]);
        for (int i = 0; i < N_SIZES * 3 && ok; i++) {
            int32_t slot[N_BATCH];
            int64_t n = 0, m = 0;
            set_slots(slot, sizes[i / 3], i % 3);
            float *want = run(&whole, slot, sizes[i / 3], &n),
                  *got = run(&b, slot, sizes[i / 3], &m);
            ok = want && got && CHECK(n == m) &&
                 CHECK_MSG(memcmp(want, got, (size_t)n * sizeof *got) == 0,
                           "%s on %s: %d elements, slots of kind %d: chunks of %d have other bits",
                           r->name, on->name, (int)sizes[i / 3], i % 3, (int)chunks[c]);
            free(want);
            free(got);
        }
        built_free(&b);
    }
    built_free(&whole);
}

static void check_all(const char *name, int n_threads, const char *mask) {
    ggl_backend *on = opened(name, n_threads, mask);
    REQUIRE(on);
    for (int k = 0; k < N_RECURRENCES; k++)
        check_on(&recurrences[k], on);
    ggl_backend_close(on);
}

TEST(bits_on_the_cpu) {
    check_all("cpu", 2, NULL);
}

TEST(bits_of_portable_code) {
    check_all("cpu", 1, "all");
}

LONG_TEST(bits_on_the_reference) {
    check_all("reference", 1, NULL);
}

TEST(bits_on_the_reference_in_f32) {
    check_all("reference", 1, "f64");
}

/* Nothing that a run leaves in memory goes into the next one. */
TEST(bits_after_another_run) {
    ggl_backend *on = opened("cpu", 1, NULL);
    built b;
    REQUIRE(on && build(&b, &recurrences[SWAPPED], on, 4));
    int32_t one[N_BATCH], several[N_BATCH];
    int64_t n = 0, m = 0, of_other = 0;
    set_slots(one, 21, 0);
    set_slots(several, N_BATCH, 2);
    float *want = run(&b, one, 21, &n), *other = run(&b, several, N_BATCH, &of_other),
          *got = run(&b, one, 21, &m);
    CHECK(want && other && got && n == m && memcmp(want, got, (size_t)n * sizeof *got) == 0);
    free(want);
    free(other);
    free(got);
    built_free(&b);
    ggl_backend_close(on);
}

/* --- turns ------------------------------------------------------------------------------------ */

/* Each element has one turn backward, in descending order, when the state before it is in its array of the chunk. */
TEST(turns) {
    for (int64_t n = 1; n <= 20; n++)
        for (int64_t chunk = 1; chunk <= 21; chunk++)
            for (int kind = 0; kind < 3; kind++) {
                const ggl_body body = {.recurrent = true, .chunk = chunk};
                int32_t slot[N_BATCH];
                int64_t array[2 * N_BATCH] = {0}, in_chunk[N_BATCH] = {0};
                int64_t forward = 0, backward = n;
                ggl_turns t;
                set_slots(slot, n, kind);
                const int64_t n_rows = ggl_turns_n_arrays(chunk, 20);
                ggl_turns_begin(&t, &body, slot, n, 20);
                while (ggl_turns_next(&t)) {
                    if (t.backward) {
                        CHECK_INT(t.turn, --backward);
                        int64_t last =
                            t.turn; /* the one before of the same slot; states are its number + 1 */
                        while (--last >= 0 && slot[last] != slot[t.turn])
                            ;
                        CHECK_INT(in_chunk[t.in_chunk], last + 1);
                        continue;
                    }
                    forward++;
                    CHECK(t.from < n_rows + N_SLOTS && t.to < n_rows + N_SLOTS);
                    in_chunk[t.in_chunk] = t.from < 0 ? 0 : array[t.from];
                    if (t.to >= 0)
                        array[t.to] = t.turn + 1;
                }
                CHECK_INT(backward, 0);
                if (kind < 2)
                    CHECK_INT(forward, ggl_turns_n_forward(chunk, n));
            }
}

/* --- memory ----------------------------------------------------------------------------------- */

static const char *no_call(const ggl_backend *b, const ggl_tensor *node) {
    (void)b;
    return node->op == GGL_OP_CALL ? "no calls" : NULL;
}

/* Returns the bytes of values between steps that n elements need at most. */
static size_t planned(int64_t n) {
    ggl_loc loc[MOST_NODES];
    ggl_tensor *node[MOST_NODES];
    ggl_error err = {0};
    ggl_program p = {0};
    built b;
    size_t size = 0;
    int n_node = 0;
    if (build_graph(&b, &recurrences[LINEAR_ATTENTION], 0, n) &&
        CHECK_OK(ggl_graph_finish(b.g, &err), &err) && CHECK(ggl_graph_n_ids(b.g) <= MOST_NODES)) {
        CHECK_INT((long long)ggl_graph_n_stores(b.g), 1); /* gradients need none */
        for (int i = 0; i < ggl_graph_n_ids(b.g); i++)
            loc[i] = (ggl_loc){.region = -1, .offset = 0};
        for (int i = 0; i < ggl_graph_n_nodes(b.g); i++) {
            ggl_tensor *t = ggl_graph_node(b.g, i);
            if (ggl_is_leaf(t))
                loc[t->id].region = GGL_REGION_IO;
            else
                node[n_node++] = t;
        }
        const ggl_segment s = {.graph = b.g,
                               .node = node,
                               .n_node = n_node,
                               .n_max = n,
                               .loc = loc,
                               .n_slots = N_SLOTS};
        const ggl_program_params params = {.refuses = no_call, .value_type = GGL_F32};
        if (CHECK_OK(ggl_program_build(&p, &s, &params, &err), &err))
            size = p.arena_size;
        ggl_program_fini(&p);
    }
    built_free(&b);
    return size;
}

/* A state is as large as 16 rows. Of each element some rows are in memory, so these grow with the batch. The states do not; if they
 * did, they would need more than what is allowed here for all. */
TEST(memory) {
    const size_t state_size = WIDTH * WIDTH * sizeof(float), one = planned(1),
                 chunk = planned(GGL_GRAD_CHUNK), many = planned(4096);
    CHECK_MSG(one > 0 && chunk < one + 2 * GGL_GRAD_CHUNK * state_size,
              "%zu bytes for 1 element, %zu for a chunk", one, chunk);
    CHECK_MSG(many < 4096 * state_size, "%zu bytes for 4096 elements", many);
}
