/* Graphs as bytes: those of random programs are the same after they were written and read, and damaged bytes are refused. */
#include "build.h"
#include "gen.h"
#include "ggl/backends.h"
#include "ggl/compose.h"
#include "ggl/internal/fold.h"
#include "ggl/internal/gradient.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/image.h"
#include "ggl/internal/op_args.h"
#include "ggl/sched.h"
#include "test.h"

/* A finished and settled graph of a random program. */
typedef struct fixture {
    r_program p;
    r_built built;
    ggl_backend *reference, *cpu;
    ggl_sched *s;
    ggl_error err;
} fixture;

static bool setup(fixture *f, uint64_t seed) {
    r_source source = {.state = r_mix(seed, 7)};
    memset(f, 0, sizeof *f);
    r_generate(&f->p, seed, &source);
    if (!CHECK_OK(ggl_backend_open(&f->reference, "reference", NULL, &f->err), &f->err) ||
        !CHECK_OK(ggl_backend_open(&f->cpu, "cpu", NULL, &f->err), &f->err) ||
        !CHECK_OK(r_build(&f->built, &f->p, &f->err), &f->err))
        return false;
    if (seed % 2 && !CHECK_OK(ggl_graph_fold(f->built.g, f->reference, &f->err), &f->err))
        return false;
    const ggl_sched_params sp = {.size = sizeof sp, .backend = &f->cpu, .n_backends = 1};
    return CHECK_OK(ggl_sched_new(&f->s, f->built.g, &sp, &f->err), &f->err);
}

static void teardown(fixture *f) {
    ggl_sched_free(f->s);
    r_built_free(&f->built);
    ggl_backend_close(f->cpu);
    ggl_backend_close(f->reference);
}

static void check_text(const char *got, const char *want) {
    CHECK((got == NULL) == (want == NULL) && (!got || strcmp(got, want) == 0));
}

/* All that a backend may read of a node. */
static void check_tensor(const ggl_tensor *a, const ggl_tensor *b) {
    CHECK(a->op == b->op && a->type == b->type && a->id == b->id && a->n_dims == b->n_dims);
    CHECK(memcmp(a->ne, b->ne, sizeof a->ne) == 0);
    CHECK(a->group == b->group && a->rows == b->rows && a->scope == b->scope);
    CHECK(a->dense == b->dense && a->gather == b->gather && a->keeps_state == b->keeps_state);
    CHECK(a->needed == b->needed && a->computed == b->computed);
    CHECK((a->view_of ? a->view_of->id : -1) == (b->view_of ? b->view_of->id : -1));
    check_text(a->name, b->name);
    check_text(a->origin, b->origin);
    check_text(a->call, b->call);
    CHECK_INT(a->n_src, b->n_src);
    for (int k = 0; k < a->n_src && k < b->n_src; k++)
        CHECK((a->src[k] ? a->src[k]->id : -1) == (b->src[k] ? b->src[k]->id : -1));
    CHECK_INT(a->n_num, b->n_num);
    CHECK(a->n_num != b->n_num || a->n_num == 0 ||
          memcmp(a->num, b->num, (size_t)a->n_num * sizeof *a->num) == 0);
    CHECK(a->op != GGL_OP_CONST || (a->size == b->size && memcmp(a->data, b->data, a->size) == 0));
    CHECK(a->op != GGL_OP_WEIGHT || (a->size == b->size && !b->data));
    for (int k = 0; k < 2;
         k++) /* a node that is not needed may have a store that is not there any more */
        CHECK(!b->store[k] || (a->store[k] && a->store[k]->size == b->store[k]->size &&
                               a->store[k]->page_size == b->store[k]->page_size &&
                               a->store[k]->ring == b->store[k]->ring));
    CHECK((a->body != NULL) == (b->body != NULL));
    if (a->body && b->body)
        CHECK(a->body->n_node == b->body->n_node && a->body->n_param == b->body->n_param &&
              a->body->recurrent == b->body->recurrent && a->body->chunk == b->body->chunk &&
              a->body->n_forward == b->body->n_forward &&
              a->body->result->id == b->body->result->id);
}

/* One that shares no memory with the original. */
TEST(same) {
    for (uint64_t seed = 1; seed <= (TEST_SANITIZED ? 20 : 100) && test_failures == 0; seed++) {
        fixture f;
        ggl_bytes first = {0}, second = {0};
        ggl_graph *copy = NULL;
        if (setup(&f, seed) && CHECK_OK(ggl_graph_image(f.built.g, &first, &f.err), &f.err) &&
            CHECK_OK(ggl_graph_of_image(&copy, first.at, first.n, &f.err), &f.err) &&
            CHECK_OK(ggl_graph_image(copy, &second, &f.err), &f.err)) {
            CHECK_MSG(first.n == second.n && memcmp(first.at, second.at, first.n) == 0,
                      "seed %d: the image of the copy is another one", (int)seed);
            ggl_tensor **a = ggl_graph_by_id(f.built.g), **b = ggl_graph_by_id(copy);
            for (int i = 0; i < ggl_graph_n_ids(f.built.g); i++)
                if (CHECK((a[i] != NULL) == (b[i] != NULL)) && a[i])
                    check_tensor(a[i], b[i]);
            CHECK_INT(ggl_graph_n_pages(copy), ggl_graph_n_pages(f.built.g));
            CHECK_INT(ggl_graph_n_stores(copy), ggl_graph_n_stores(f.built.g));
            ggl_free(a);
            ggl_free(b);
        }
        ggl_bytes_fini(&first);
        ggl_bytes_fini(&second);
        ggl_graph_free(copy);
        teardown(&f);
    }
}

/* A recurrence and its gradient, whose states have a store and none. */
TEST(gradient_of_a_recurrence) {
    const int64_t ne[2] = {3, 2};
    ggl_error err = {0};
    ggl_bytes first = {0}, second = {0};
    ggl_graph *g = ggl_graph_new(NULL), *copy = NULL;
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    ggl_tensor *x[4], *d[4];
    for (int k = 0; k < 4; k++)
        x[k] = ggl_graph_input(g, (const char[]){(char)('a' + k), 0}, GGL_F32, 2, ne, true);
    ggl_tensor *y = ggl_gated_linear_attention(g, x[0], x[1], x[2], x[3]);
    y = ggl_unary(g, GGL_OP_SUM, ggl_flat(g, y));
    CHECK(ggl_graph_grad(g, y, x, 4, NULL, d));
    for (int k = 0; k < 4; k++)
        ggl_graph_output(g, "d", d[k]);
    if (CHECK_OK(ggl_graph_finish(g, &err), &err) &&
        CHECK_OK(ggl_graph_image(g, &first, &err), &err) &&
        CHECK_OK(ggl_graph_of_image(&copy, first.at, first.n, &err), &err) &&
        CHECK_OK(ggl_graph_image(copy, &second, &err), &err)) {
        CHECK(first.n == second.n && memcmp(first.at, second.at, first.n) == 0);
        ggl_tensor **a = ggl_graph_by_id(g), **b = ggl_graph_by_id(copy);
        bool any = false;
        for (int i = 0; i < ggl_graph_n_ids(g); i++)
            if (CHECK((a[i] != NULL) == (b[i] != NULL)) && a[i]) {
                check_tensor(a[i], b[i]);
                any |= b[i]->body && b[i]->body->chunk > 0 && b[i]->body->n_forward > 0;
            }
        CHECK(any);
        ggl_free(a);
        ggl_free(b);
    }
    ggl_bytes_fini(&first);
    ggl_bytes_fini(&second);
    ggl_graph_free(copy);
    ggl_graph_free(g);
}

/* A run reads the slot of each element of the batch, so nothing else may stand there. */
TEST(other_slots) {
    const int64_t ne[2] = {3, 2};
    for (int by = 0; by < 3; by++) {
        ggl_error err = {0};
        ggl_bytes image = {0};
        ggl_graph *g = ggl_graph_new(NULL), *copy = NULL;
        ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
        ggl_tensor *x[4], *wrong[3] = {NULL, ggl_graph_input(g, "once", GGL_I32, 0, NULL, false),
                                       ggl_graph_input(g, "numbers", GGL_F32, 0, NULL, true)};
        for (int k = 0; k < 4; k++)
            x[k] = ggl_graph_input(g, (const char[]){(char)('a' + k), 0}, GGL_F32, 2, ne, true);
        ggl_graph_output(g, "y", ggl_gated_linear_attention(g, x[0], x[1], x[2], x[3]));
        ggl_graph_output(g, "once", ggl_unary(g, GGL_OP_EXP, wrong[2]));
        REQUIRE(CHECK_OK(ggl_graph_finish(g, &err), &err));
        ggl_tensor **at = ggl_graph_by_id(g);
        int n = 0;
        for (int i = 0; i < ggl_graph_n_ids(g); i++)
            for (int k = 0; at[i] && at[i]->body && k < at[i]->body->n_node; k++)
                if (at[i]->body->node[k]->op == GGL_OP_STATE && wrong[by]) {
                    at[i]->body->node[k]->src[STATE_SLOT] = wrong[by];
                    n++;
                }
        CHECK(n > 0 || by == 0);
        if (CHECK_OK(ggl_graph_image(g, &image, &err), &err)) {
            const ggl_status st = ggl_graph_of_image(&copy, image.at, image.n, &err);
            CHECK_MSG((st == GGL_OK) == (by == 0), "wrong slots %d: %s", by,
                      st == GGL_OK ? "accepted" : err.msg);
            CHECK(by == 0 || strstr(err.msg, "slots"));
        }
        ggl_bytes_fini(&image);
        ggl_free(at);
        ggl_graph_free(copy);
        ggl_graph_free(g);
    }
}

/* Bytes that were changed, cut off or added make an error, or another graph, but nothing else; the address sanitizer looks on. */
TEST(damaged) {
    int n_refused = 0;
    for (uint64_t seed = 1; seed <= 12 && test_failures == 0; seed++) {
        fixture f;
        ggl_bytes image = {0};
        if (setup(&f, seed) && CHECK_OK(ggl_graph_image(f.built.g, &image, &f.err), &f.err))
            for (uint64_t k = 0; k < 400; k++) {
                ggl_graph *copy = NULL;
                const uint64_t r = r_mix(seed, k);
                size_t n = image.n;
                char *bytes = malloc(image.n);
                REQUIRE(bytes);
                memcpy(bytes, image.at, n);
                if (k % 4 == 0)
                    n = r % n;
                else
                    for (uint64_t i = 0; i < 1 + k % 3; i++)
                        bytes[r_mix(r, i) % n] =
                            (char)(k % 4 == 1 ? -1 : (int)(r_mix(r, 9 + i) % 256));
                char *exact = malloc(n + !n); /* so that reading past its end is seen */
                REQUIRE(exact);
                memcpy(exact, bytes, n);
                const ggl_status st = ggl_graph_of_image(&copy, exact, n, &f.err);
                CHECK((st == GGL_OK) == (copy != NULL));
                CHECK(k % 4 != 0 || st != GGL_OK);
                n_refused += st != GGL_OK;
                ggl_graph_free(copy);
                free(exact);
                free(bytes);
            }
        ggl_bytes_fini(&image);
        teardown(&f);
    }
    CHECK(n_refused > 1200);
}

/* A node alone: a backend gives the same reasons for it as in its graph, at the top and in bodies. */
static void ask_all(fixture *f, ggl_tensor *const *node, int n) {
    for (int i = 0; i < n; i++) {
        ggl_bytes image = {0};
        ggl_graph *alone = NULL;
        if (!ggl_is_leaf(node[i]) && node[i]->op != GGL_OP_PARAM && node[i]->needed &&
            CHECK_OK(ggl_node_image(node[i], &image, &f->err), &f->err) &&
            CHECK_OK(ggl_graph_of_image(&alone, image.at, image.n, &f->err), &f->err)) {
            ggl_backend *const backend[] = {f->cpu, f->reference};
            for (int k = 0; k < 2; k++) {
                const char *want = backend[k]->v->refuses(backend[k], node[i]),
                           *got =
                               backend[k]->v->refuses(backend[k], ggl_graph_get_output(alone, 0));
                CHECK_MSG((!want && !got) || (want && got && strcmp(want, got) == 0),
                          "%s %s: '%s', not '%s'", ggl_op_get(node[i]->op).name,
                          node[i]->call ? node[i]->call : "", got ? got : "-", want ? want : "-");
            }
        }
        ggl_bytes_fini(&image);
        ggl_graph_free(alone);
        if (node[i]->body && node[i]->needed) /* else: its states are nowhere */
            ask_all(f, node[i]->body->node, node[i]->body->n_node);
    }
}

TEST(node_alone) {
    for (uint64_t seed = 1; seed <= (TEST_SANITIZED ? 20 : 100) && test_failures == 0; seed++) {
        fixture f;
        if (setup(&f, seed))
            for (int i = 0; i < ggl_graph_n_nodes(f.built.g); i++)
                ask_all(&f, (ggl_tensor *[]){ggl_graph_node(f.built.g, i)}, 1);
        teardown(&f);
    }
}
