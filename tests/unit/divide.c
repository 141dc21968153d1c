/* Products that are divided among backends: which are, and into what. That no bit changes is for tests/random. */
#include "ggl/internal/divide.h"
#include "ggl/internal/graph.h"
#include "test.h"

enum { IN = 64, OUT = 96 };

typedef struct fixture {
    ggl_graph *g;
    ggl_tensor *x, *y;
    float w[IN * OUT], bias[OUT];
    ggl_error err;
} fixture;

static bool begin(fixture *f) {
    *f = (fixture){.g = ggl_graph_new(NULL)};
    for (int i = 0; i < IN * OUT; i++)
        f->w[i] = (float)i;
    for (int i = 0; i < OUT; i++)
        f->bias[i] = (float)-i;
    f->x = ggl_graph_input(f->g, "x", GGL_F32, 1, (int64_t[]){IN}, true);
    return CHECK(f->x);
}

static ggl_tensor *matrix(fixture *f, const char *name, int64_t rows) {
    return ggl_graph_weight(f->g, name, GGL_F32, 2, (int64_t[]){IN, rows}, f->w);
}

/* Divides, and returns the number of divided products. */
static int divide(fixture *f, const double *share, int n_parts, int64_t unit) {
    int n = -1;
    CHECK_OK(ggl_graph_finish(f->g, &f->err), &f->err);
    CHECK_OK(ggl_graph_divide(f->g, share, n_parts, 1, unit, &n, &f->err), &f->err);
    return n;
}

/* Counts the needed leaves with names like `like`, and adds up their bytes. */
static int count(const fixture *f, const char *like, size_t *bytes) {
    int n = 0;
    *bytes = 0;
    for (int i = 0; i < ggl_graph_n_nodes(f->g); i++) {
        const ggl_tensor *t = ggl_graph_node(f->g, i);
        if (t->op != GGL_OP_WEIGHT || !t->needed || strncmp(t->name, like, strlen(like)) != 0)
            continue;
        n++;
        *bytes += t->size;
    }
    return n;
}

static const ggl_tensor *find(const fixture *f, const char *name) {
    for (int i = 0; i < ggl_graph_n_nodes(f->g); i++)
        if (ggl_graph_node(f->g, i)->name && strcmp(ggl_graph_node(f->g, i)->name, name) == 0)
            return ggl_graph_node(f->g, i);
    return NULL;
}

/* The parts are rows of the weight and of the bias, where they lie. */
TEST(parts) {
    fixture f;
    const double share[] = {1, 0, 2};
    size_t bytes;
    if (begin(&f)) {
        ggl_tensor *bias = ggl_graph_weight(f.g, "b", GGL_F32, 1, (int64_t[]){OUT}, f.bias);
        ggl_graph_output(f.g, "y", ggl_linear(f.g, f.x, matrix(&f, "w", OUT), bias));
        CHECK_INT(divide(&f, share, 3, 32), 1);
        CHECK_INT(count(&f, "w", &bytes), 2);
        CHECK_INT(bytes, sizeof f.w);
        const ggl_tensor *first = find(&f, "w#0"), *last = find(&f, "w#2"), *y = find(&f, "y"),
                         *of_last = find(&f, "b#2");
        if (CHECK(first && last && y && of_last) && CHECK(!find(&f, "w#1"))) {
            CHECK(first->data == f.w && first->ne[1] == 32);
            CHECK(last->data == f.w + 32 * IN && last->ne[1] == 64);
            CHECK(of_last->data == f.bias + 32 && of_last->ne[0] == 64);
            CHECK(y->op == GGL_OP_CONCAT && y->ne[0] == OUT && y == ggl_graph_get_output(f.g, 0));
        }
    }
    ggl_graph_free(f.g);
}

/* Products of one weight read the same parts: nothing is stored twice. */
TEST(shared) {
    fixture f;
    const double share[] = {1, 1};
    size_t bytes;
    if (begin(&f)) {
        ggl_tensor *w = matrix(&f, "w", IN), *y = f.x;
        for (int i = 0; i < 5; i++)
            y = ggl_unary(f.g, GGL_OP_TANH, ggl_linear(f.g, y, w, NULL));
        ggl_graph_output(f.g, "y", y);
        CHECK_INT(divide(&f, share, 2, 16), 5);
        CHECK_INT(count(&f, "w", &bytes), 2);
        CHECK_INT(bytes, IN * IN * sizeof(float));
    }
    ggl_graph_free(f.g);
}

/* What is too small for a part of each, or has no rows for the second one, stays whole. */
TEST(whole) {
    fixture f;
    const double all_first[] = {1, 0};
    size_t bytes;
    if (begin(&f)) {
        ggl_tensor *small = ggl_linear(f.g, f.x, matrix(&f, "small", 40), NULL);
        ggl_graph_output(f.g, "small_y", small);
        ggl_graph_output(f.g, "y", ggl_linear(f.g, f.x, matrix(&f, "w", OUT), NULL));
        CHECK_INT(divide(&f, all_first, 2, 32), 0);
        CHECK_INT(count(&f, "w", &bytes), 1);
        CHECK_INT(count(&f, "small", &bytes), 1);
    }
    ggl_graph_free(f.g);
}
