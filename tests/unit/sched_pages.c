/* unit.sched: where pages of stores lie. Where memory costs nothing until it is touched, the same page of all stores lies side by side; what
 * is computed, and saved, does not depend on it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/backends.h"
#include "ggl/compose.h"
#include "ggl/internal/graph.h"
#include "ggl/sched.h"
#include "test.h"

enum { D = 8, N_POS = 320, N_SLOTS = 2, LAYERS = 3, N_TOKENS = 150, MOST_STORES = 2 * LAYERS + 2 };

static ggl_loc seen[MOST_STORES]; /* by store id: of the last compile */
static ggl_backend_vtable changed;
static const ggl_backend_vtable *own;
static size_t seen_size; /* of the buffer of stores */

static ggl_status noted_compile(ggl_backend *b, const ggl_segment *s, ggl_plan **out,
                                ggl_error *err) {
    for (int i = 0; i < ggl_graph_n_stores(s->graph) && i < MOST_STORES; i++)
        seen[i] = s->store_loc[i];
    return own->compile(b, s, out, err);
}

static ggl_status noted_alloc(ggl_backend *b, int region, size_t size, const void *host,
                              ggl_buffer **out, ggl_error *err) {
    seen_size = region == GGL_REGION_STORES ? size : seen_size;
    return own->alloc(b, region, size, host, out, err);
}

/* Layers that attend to all positions, with heads of other sizes; the last one has a window, whose stores are rings. */
static ggl_graph *graph_of_layers(void) {
    ggl_graph *g = ggl_graph_new(&(ggl_graph_params){.size = sizeof(ggl_graph_params),
                                                     .n_pos = N_POS,
                                                     .n_batch = 4,
                                                     .n_slots = N_SLOTS,
                                                     .type_k = GGL_F16,
                                                     .type_v = GGL_F32});
    ggl_graph_input(g, "pos", GGL_I32, 0, NULL, true);
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 2, (int64_t[]){D, 2}, true), *y = x;
    for (int i = 0; i <= LAYERS && y; i++) {
        ggl_tensor *kv = ggl_binary(g, GGL_OP_CACHE, x, y);
        const double number[] = {NAN, i < LAYERS ? NAN : 16}; /* scale, window */
        y = ggl_graph_op(g, GGL_OP_ATTEND, (ggl_tensor *[]){x, kv}, 2, number, 2);
    }
    ggl_graph_output(g, "y", y);
    return g;
}

typedef struct texts {
    float y[N_TOKENS][D * 2];
    char *saved;
    size_t n_saved;
} texts;

/* Computes a text in slot 0 token by token, and a part of it again in slot 1, to which it is copied. */
static void compute(bool lazy, texts *out) {
    ggl_error err = {0};
    ggl_backend *b = NULL;
    ggl_graph *g = graph_of_layers();
    REQUIRE_OK(ggl_graph_finish(g, &err), &err);
    REQUIRE_OK(ggl_backend_open(&b, "cpu", NULL, &err), &err);
    own = b->v;
    changed = *own;
    changed.compile = noted_compile;
    changed.alloc = noted_alloc;
    b->v = &changed;
    CHECK(b->lazy);
    b->lazy = lazy;
    ggl_sched_params p = {.size = sizeof p, .backend = &b, .n_backends = 1};
    ggl_sched *s = NULL;
    REQUIRE_OK(ggl_sched_new(&s, g, &p, &err), &err);
    REQUIRE_OK(ggl_sched_alloc(s, &err), &err);
    const ggl_tensor *table = ggl_graph_find_input(g, "page");
    REQUIRE(table && table->ne[0] == N_POS / GGL_PAGE);
    int32_t page[N_SLOTS * N_POS / GGL_PAGE];
    for (int i = 0; i < N_SLOTS * N_POS / GGL_PAGE; i++) /* pages of both slots in turns */
        page[i] = i % (N_POS / GGL_PAGE) * N_SLOTS + i / (N_POS / GGL_PAGE);
    REQUIRE_OK(ggl_sched_set(s, "page", page, sizeof page, 1, &err), &err);
    for (int32_t i = 0; i < N_TOKENS; i++) {
        const int32_t slot = i >= 140, row = 0;
        float x[D * 2];
        for (int k = 0; k < D * 2; k++)
            x[k] = (float)((i * 37 + k * 11) % 64 - 32) / 16;
        if (i == 140)
            REQUIRE_OK(ggl_sched_copy_slot(s, 1, 0, 140, &err), &err);
        REQUIRE_OK(ggl_sched_set(s, "x", x, sizeof x, 1, &err), &err);
        REQUIRE_OK(ggl_sched_set(s, "pos", &i, sizeof i, 1, &err), &err);
        REQUIRE_OK(ggl_sched_set(s, "slot", &slot, sizeof slot, 1, &err), &err);
        REQUIRE_OK(ggl_sched_run(s, 1, &row, 1, &err), &err);
        memcpy(out->y[i], ggl_sched_output(s, 0), sizeof out->y[i]);
    }
    out->n_saved = ggl_sched_slot_size(s, N_TOKENS, false);
    out->saved = malloc(out->n_saved);
    REQUIRE(out->saved);
    CHECK_OK(ggl_sched_save_slot(s, 1, N_TOKENS, false, out->saved, &err), &err);
    CHECK_OK(ggl_sched_restore_slot(s, 0, N_TOKENS, false, out->saved, &err), &err);
    ggl_sched_free(s);
    ggl_graph_free(g);
    b->v = own;
    ggl_backend_close(b);
}

/* Checks that no two pages of stores overlap, and that all are in the buffer. */
static void check_apart(const ggl_graph *g) {
    for (int i = 0; i < ggl_graph_n_stores(g); i++)
        for (int k = 0; k < ggl_graph_n_stores(g); k++) {
            const ggl_store *a = ggl_graph_store(g, i), *b = ggl_graph_store(g, k);
            for (size_t m = 0; m < a->size / a->page_size; m++)
                for (size_t n = 0; n < b->size / b->page_size; n++) {
                    const size_t x = seen[i].offset + m * seen[i].step,
                                 y = seen[k].offset + n * seen[k].step;
                    CHECK((i == k && m == n) || x + a->page_size <= y || y + b->page_size <= x);
                    CHECK(x + a->page_size <= seen_size);
                }
        }
}

TEST(pages_of_stores_lie_side_by_side) {
    static texts side_by_side, one_after_other;
    ggl_error err = {0};
    ggl_graph *g = graph_of_layers();
    REQUIRE_OK(ggl_graph_finish(g, &err), &err);
    REQUIRE(ggl_graph_n_stores(g) == MOST_STORES);
    compute(false, &one_after_other);
    check_apart(g);
    for (int i = 0; i < MOST_STORES; i++)
        CHECK_INT((long long)seen[i].step, (long long)ggl_graph_store(g, i)->page_size);
    compute(true, &side_by_side);
    check_apart(g);
    size_t all = 0, rings = 0, first = SIZE_MAX, last = 0;
    for (int i = 0; i < MOST_STORES; i++)
        *(ggl_graph_store(g, i)->ring ? &rings : &all) += ggl_graph_store(g, i)->page_size;
    CHECK(rings > 0);
    for (int i = 0; i < MOST_STORES; i++) {
        const ggl_store *s = ggl_graph_store(g, i);
        CHECK_INT((long long)seen[i].step, (long long)(s->ring ? rings : all));
        if (!s->ring) {
            first = seen[i].offset < first ? seen[i].offset : first;
            last = seen[i].offset + s->page_size > last ? seen[i].offset + s->page_size : last;
        }
    }
    CHECK_INT((long long)(last - first), (long long)all); /* page 0 of all is one range */
    CHECK(memcmp(side_by_side.y, one_after_other.y, sizeof side_by_side.y) == 0);
    CHECK(side_by_side.n_saved == one_after_other.n_saved);
    CHECK(memcmp(side_by_side.saved, one_after_other.saved, side_by_side.n_saved) == 0);
    free(side_by_side.saved);
    free(one_after_other.saved);
    ggl_graph_free(g);
}
