#include "build.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/types.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- values ----------------------------------------------------------------------------------- */

uint64_t conform_draw(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Returns a random number in the range of `fill`. */
static float number(uint64_t *seed, conform_fill fill) {
    float x = (float)(int32_t)(conform_draw(seed) >> 32) * 0x1p-31f;
    return fill == FILL_POSITIVE ? 0.1f + fabsf(x) * 2 : fill == FILL_SMALL ? x * 0.3f : x * 2;
}

static float whole(uint64_t *seed, conform_fill fill) {
    int x = (int)(conform_draw(seed) % 9) - 4;
    return (float)(fill == FILL_POSITIVE ? 1 + abs(x) : x);
}

enum { N_SPECIAL = 6 };
static const float special[CONFORM_N_VALUES][N_SPECIAL] = {
    [CONFORM_NAN] = {NAN, NAN, NAN, NAN, NAN, NAN},
    [CONFORM_INF] = {INFINITY, -INFINITY, INFINITY, INFINITY, -INFINITY, -INFINITY},
    [CONFORM_TINY] = {0.0f, -0.0f, 1e-40f, -3e-42f, 1e-45f, -1.1e-38f},
    [CONFORM_HUGE] = {1e38f, -1e38f, 3e38f, -3e38f, 2e20f, -1e30f},
};

static float subnormal_as_zero(float x) {
    return fabsf(x) < FLT_MIN ? copysignf(0, x) : x;
}

/* Returns the i-th value of an input. If the form has special values, the first is one, and
 * about every sixth of the others. */
static float value(conform_build *c, conform_fill fill, int64_t i) {
    if (c->f.values == CONFORM_ONES)
        return 1;
    if (c->f.values == CONFORM_WHOLE)
        return whole(&c->seed, fill);
    float x = number(&c->seed, fill);
    if (c->f.values < CONFORM_NAN)
        return x;
    uint64_t which = conform_draw(&c->seed);
    if (i > 0 && which % 6 != 0)
        return x;
    x = special[c->f.values][which / 6 % N_SPECIAL];
    return c->flush ? subnormal_as_zero(x) : x;
}

/* Returns how many of all tokens have the slot of token i, if `range` slots take turns. */
static int32_t tokens_of_slot(const conform_build *c, int64_t turn, int64_t range, int64_t i) {
    const int64_t before = i / turn % range * turn, round = range * turn,
                  rest = c->f.n % round - before;
    return (int32_t)(c->f.n / round * turn + (rest < 0 ? 0 : rest < turn ? rest : turn));
}

static int32_t index_value(conform_build *c, conform_fill fill, int64_t range, int64_t i) {
    const int64_t turn = c->f.turn > 0 ? c->f.turn : 1;
    return fill == FILL_POS    ? (int32_t)(i / (range * turn) * turn + i % turn)
           : fill == FILL_SLOT ? (int32_t)(i / turn % range)
           : fill == FILL_END  ? tokens_of_slot(c, turn, range, i)
                               : (int32_t)(conform_draw(&c->seed) % (uint64_t)range);
}

/* --- leaves ----------------------------------------------------------------------------------- */

static int dims_of(int n_dims, const int64_t *ne) {
    int n = 0;
    while (n < n_dims && ne[n] > 0)
        n++;
    return n;
}

/* Fills an input's values for the whole run. */
static void fill_input(conform_build *c, conform_input *in, conform_fill fill, int64_t range,
                       int64_t total) {
    for (int64_t i = 0; i < total; i++)
        if (in->is_index)
            ((int32_t *)in->data)[i] = index_value(c, fill, range, i);
        else
            ((float *)in->data)[i] = value(c, fill, i);
}

/* Makes an input with values; `batched`: one for each token. */
static ggl_tensor *new_input(conform_build *c, bool batched, conform_fill fill, int64_t range,
                             int n_dims, const int64_t *ne) {
    if (c->n_inputs == CONFORM_INPUTS)
        return NULL;
    conform_input *in = &c->input[c->n_inputs];
    int64_t n = batched ? c->f.n : 1;
    if (fill >= FILL_POS)
        snprintf(in->name, sizeof in->name, "%s",
                 fill == FILL_POS    ? "pos"
                 : fill == FILL_SLOT ? "slot"
                                     : "end");
    else
        snprintf(in->name, sizeof in->name, "x%d", c->n_inputs);
    in->batched = batched;
    in->is_index = fill >= FILL_INDEX;
    in->count = 1;
    for (int d = 0; d < n_dims; d++)
        in->count *= ne[d];
    in->data = calloc((size_t)(n * in->count), 4);
    if (!in->data) {
        c->no_memory = true;
        return NULL;
    }
    c->n_inputs++;
    fill_input(c, in, fill, range < 1 ? 1 : range, n * in->count);
    return ggl_graph_input(c->g, in->name, in->is_index ? GGL_I32 : GGL_F32, n_dims, ne, batched);
}

ggl_tensor *case_input(conform_build *c, bool batched, conform_fill fill, int64_t range, int n_dims,
                       const int64_t *ne) {
    int64_t whole_ne[GGL_MAX_DIMS] = {0};
    int n = dims_of(n_dims, ne);
    if (!c->f.view || n == 0 || fill >= FILL_INDEX)
        return new_input(c, batched, fill, range, n, ne);
    int cut = n > 1 && c->n_inputs % 2; /* cut the slices by rows and by columns in turn */
    memcpy(whole_ne, ne, (size_t)n * sizeof *ne);
    whole_ne[cut] += c->f.view + 2;
    ggl_tensor *x = new_input(c, batched, fill, range, n, whole_ne);
    return OP1N(c, SPLIT, x, 3, cut, (double)c->f.view, (double)ne[cut]);
}

/* Makes a row of random blocks for a type without an encoder, with a small scale. The scale is an f16 at
 * the beginning of the block, in ptq1_0 at its end, or, in iq1_m, in the upper 4 bits of its last four 16-bit words; or that
 * of the row. */
static void any_blocks(uint64_t *seed, char *p, const ggl_type_info *t, size_t row_size) {
    const uint16_t d = 0x2400; /* 1/64 */
    const float f = 0x1p-10f;
    for (size_t i = 0; i < row_size; i++)
        p[i] = (char)conform_draw(seed);
    if (t->row_meta > 0)
        memcpy(p, t->row_meta == sizeof d ? (const void *)&d : (const void *)&f, t->row_meta);
    for (size_t at = 0; at < row_size && t->row_meta == 0; at += t->size)
        if (t->type == GGL_IQ1_M)
            for (int i = 0; i < 4; i++) {
                char *high = p + at + t->size - 7 + 2 * i;
                *high = (char)((*high & 15) | (d >> 4 * i & 15) << 4);
            }
        else
            memcpy(p + at + (t->type == GGL_PTQ1_0 ? t->size - sizeof d : 0), &d, sizeof d);
}

/* Makes a row of k random weights of the type. */
static void weight_row(conform_build *c, const ggl_type_info *t, char *dst, float *row, int64_t k) {
    for (int64_t i = 0; i < k; i++)
        row[i] = c->f.values == CONFORM_ONES ? 1 : number(&c->seed, FILL_SMALL);
    if (t->from_float)
        t->from_float(row, dst, k);
    else
        any_blocks(&c->seed, dst, t, ggl_row_size(t->type, k));
}

ggl_tensor *case_weight(conform_build *c, ggl_type type, int n_dims, const int64_t *ne) {
    enum { DISTINCT = 256 }; /* different rows, as encoding takes long; they repeat */
    int64_t rows = 1;
    char name[16];
    size_t row_size;
    n_dims = dims_of(n_dims, ne);
    for (int d = 1; d < n_dims; d++)
        rows *= ne[d];
    if (n_dims == 0 || c->n_weights == CONFORM_WEIGHTS ||
        !ggl_row_size_checked(type, ne[0], &row_size))
        return NULL;
    float *row = calloc((size_t)ne[0], sizeof *row);
    char *data = malloc(row_size * (size_t)rows);
    if (!row || !data) {
        c->no_memory = true;
        free(row);
        free(data);
        return NULL;
    }
    for (int64_t r = 0; r < rows; r++)
        if (r < DISTINCT)
            weight_row(c, ggl_type_get(type), data + (size_t)r * row_size, row, ne[0]);
        else
            memcpy(data + (size_t)r * row_size, data + (size_t)(r - DISTINCT) * row_size, row_size);
    free(row);
    c->weight[c->n_weights] = data;
    snprintf(name, sizeof name, "w%d", c->n_weights++);
    return ggl_graph_weight(c->g, name, type, n_dims, ne, data);
}

int64_t case_blocks(const conform_build *c, int64_t k) {
    int64_t block = ggl_type_get(c->f.type)->block;
    return (k + block - 1) / block * block;
}

/* --- nodes ------------------------------------------------------------------------------------ */

/* Sets the group of the next node, which tells whether it is part of what the case tests. Nodes
 * that the graph inserts have the group of the node before; a cache runs where it is read. */
static void set_group(conform_build *c, ggl_op o) {
    bool own = o == c->op || c->op == GGL_OP_CAST ||
               ((c->op == GGL_OP_ATTEND || c->op == GGL_OP_CHOOSE_ROWS) && o == GGL_OP_CACHE);
    ggl_graph_set_group(c->g, own ? CASE_OWN : CASE_OTHER);
}

ggl_tensor *case_node(conform_build *c, ggl_op o, ggl_tensor *const *src, int n_src,
                      const double *num, int n_num) {
    set_group(c, o);
    return ggl_graph_op(c->g, o, src, n_src, num, n_num);
}

ggl_tensor *case_op(conform_build *c, ggl_op o, ggl_tensor *a, ggl_tensor *b, ggl_tensor *d,
                    int n_num, const double *num) {
    ggl_tensor *src[3] = {a, b, d};
    return case_node(c, o, src, d ? 3 : b ? 2 : a ? 1 : 0, num, n_num);
}

ggl_tensor *case_linear(conform_build *c, ggl_tensor *x, ggl_tensor *w, ggl_tensor *bias) {
    set_group(c, GGL_OP_LINEAR);
    return ggl_linear(c->g, x, w, bias);
}

ggl_tensor *case_call(conform_build *c, const char *name, ggl_tensor *result, const double *num,
                      int n_num) {
    set_group(c, GGL_OP_CALL);
    return ggl_body_end(c->g, name, result, num, n_num);
}

ggl_tensor *case_positions(conform_build *c) {
    return new_input(c, true, FILL_POS, c->f.n_slots, 0, NULL);
}

void case_slots(conform_build *c) {
    new_input(c, true, FILL_SLOT, c->f.n_slots, 0, NULL);
}

void case_ends(conform_build *c) {
    new_input(c, true, FILL_END, c->f.n_slots, 0, NULL);
}

/* --- graphs ----------------------------------------------------------------------------------- */

/* Returns y, or a value of it if y cannot be an output itself. */
static ggl_tensor *as_output(conform_build *c, ggl_tensor *y) {
    if (y && y->op <= GGL_OP_PARAM)
        y = OP1(c, ABS, y);
    if (y && y->type != GGL_F32)
        y = OP1(c, CAST, y);
    return y;
}

ggl_status conform_build_graph(conform_build *c, const conform_case *info, const conform_form *form,
                               bool flush, ggl_error *err) {
    *c = (conform_build){.f = *form, .op = info->op, .flush = flush, .seed = form->seed};
    const ggl_graph_params gp = {.size = sizeof gp,
                                 .n_pos = 4096,
                                 .n_batch = form->n_batch,
                                 .n_slots = form->n_slots,
                                 .type_k = form->type_k,
                                 .type_v = form->type_v};
    c->g = ggl_graph_new(&gp);
    ggl_tensor *y = c->g ? as_output(c, info->build(c)) : NULL;
    if (!c->g || c->no_memory)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    if (y)
        ggl_graph_output(c->g, "y", y);
    ggl_status st = ggl_graph_error(c->g, err);
    if (st == GGL_OK && !y)
        st = ggl_fail(err, GGL_USAGE, "%s: the graph cannot be built", info->name);
    return st == GGL_OK ? ggl_graph_finish(c->g, err) : st;
}

void conform_build_fini(conform_build *c) {
    ggl_graph_free(c->g);
    for (int i = 0; i < c->n_inputs; i++)
        free(c->input[i].data);
    for (int i = 0; i < c->n_weights; i++)
        free(c->weight[i]);
    *c = (conform_build){0};
}

/* --- what a backend has ----------------------------------------------------------------------- */

ggl_tensor *conform_node(const conform_case *info, const ggl_graph *g) {
    for (int i = ggl_graph_n_nodes(g) - 1; i >= 0; i--)
        if (ggl_graph_node(g, i)->op == info->op && ggl_graph_node(g, i)->needed)
            return ggl_graph_node(g, i);
    return NULL;
}

/* Returns why b refuses a node, or NULL; *op becomes the operator that it lacks. */
static const char *node_refusal(const ggl_backend *b, const ggl_tensor *t, const char **op,
                                bool *by_body) {
    const ggl_tensor *part = NULL;
    const char *why = ggl_refusal(b, t, &part);
    *op = part ? (part->call ? part->call : ggl_op_get(part->op).name) : *op;
    *by_body = *by_body || (t->op == GGL_OP_CALL && b->v->refuses(b, t));
    return why;
}

/* Returns whether a node is what the case tests: its operator; the cache of an attention, which
 * the backend that reads it keeps; matrices picked for a product. */
static bool is_own(const conform_case *info, const ggl_tensor *t) {
    return t->op == info->op ||
           ((info->op == GGL_OP_ATTEND || info->op == GGL_OP_CHOOSE_ROWS) &&
            t->op == GGL_OP_CACHE) ||
           ((info->op == GGL_OP_LINEAR || info->op == GGL_OP_LINEAR_BACK) && t->gather);
}

const char *conform_refusal(const conform_case *info, const ggl_graph *g, const ggl_backend *b,
                            const char **op, bool *by_body) {
    const char *why = NULL;
    *by_body = false;
    for (int i = 0; i < ggl_graph_n_nodes(g) && !why; i++) {
        const ggl_tensor *t = ggl_graph_node(g, i);
        if (t->needed && is_own(info, t))
            why = node_refusal(b, t, op, by_body);
    }
    return why;
}
