/* Gradients of attention over rows of relative positions, for random shapes: against a pass in double that goes through all pairs; and
 * with equal bits for any number of threads and for sequences that run together or one after the other. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/compose.h"
#include "ggl/internal/gradient.h"
#include "ggl/internal/sched.h"
#include "ggl/sched.h"
#include "gradient_test.h"

enum { MOST_SEQ = 3, MOST_LENGTH = 61, MOST = MOST_SEQ * MOST_LENGTH, WIDE = 8, HEADS = 4 };
enum { MOST_ROWS = 40, MOST_FAR = 70, SIZE = WIDE * HEADS, TABLE = WIDE * MOST_ROWS * HEADS };

/* A shape, and what is computed with it. */
typedef struct problem {
    int n_seq, length[MOST_SEQ], n; /* sequences; elements of all */
    int d, e, groups, per;          /* sizes of keys and values, heads of keys, queries of each */
    int rows, most;  /* rows of relative positions; they have numbers for -most .. most */
    int tables;      /* 1: rel_k, 2: rel_q, 3: both */
    int of_heads[2]; /* matrices of both tables: 1, or one for each head of the keys */
    int window;      /* 0: none */
    bool whole;      /* all tokens of a sequence see each other */
    bool in_turns;   /* sequences take turns in the batch */
    double scale;
    float q[MOST * SIZE], k[MOST * SIZE], v[MOST * SIZE], c[MOST * SIZE];
    float rel[2][TABLE], row[2 * MOST_FAR + 1];
    int32_t pos[MOST], slot[MOST], end[MOST];
} problem;

/* The gradients by q, k, v and both tables. */
typedef struct result {
    float q[MOST * SIZE], k[MOST * SIZE], v[MOST * SIZE], rel[2][TABLE];
} result;

static int pick(int n) {
    return (int)(draw() * n);
}

static void fill(float *x, int n, double size) {
    for (int i = 0; i < n; i++)
        x[i] = (float)((draw() * 2 - 1) * size);
}

static int table_size(const problem *p, int i) {
    return p->d * p->rows * p->of_heads[i];
}

static void make_problem(problem *p, int seed) {
    state = (uint64_t)seed * 1000;
    memset(p, 0, sizeof *p);
    p->n_seq = 1 + pick(MOST_SEQ);
    p->d = 1 + pick(WIDE);
    p->e = 1 + pick(WIDE);
    p->groups = 1 + pick(2);
    p->per = 1 + pick(2);
    p->rows = 1 + pick(MOST_ROWS);
    p->most = pick(MOST_FAR + 1);
    p->tables = 1 + pick(3);
    p->whole = pick(3) > 0;
    p->in_turns = pick(3) == 0;
    p->window = pick(3) ? 0 : 1 + pick(30);
    p->scale = pick(2) ? NAN : 0.1 + draw();
    for (int i = 0; i < 2; i++)
        p->of_heads[i] = pick(2) ? p->groups : 1;
    int left = 0;
    for (int s = 0; s < p->n_seq; s++)
        left += p->length[s] = 1 + pick(pick(2) ? MOST_LENGTH : 7);
    for (int s = 0, at[MOST_SEQ] = {0}; left > 0; s = (s + 1) % p->n_seq)
        while (at[s] < p->length[s]) {
            p->pos[p->n] = at[s]++;
            p->slot[p->n] = s;
            p->end[p->n++] = p->length[s];
            left--;
            if (p->in_turns)
                break;
        }
    fill(p->q, p->n * p->d * p->groups * p->per, 1);
    fill(p->k, p->n * p->d * p->groups, 1);
    fill(p->v, p->n * p->e * p->groups, 1);
    fill(p->c, p->n * p->e * p->groups * p->per, 1);
    for (int i = 0; i < 2; i++)
        fill(p->rel[i], table_size(p, i), 1);
    for (int i = 0; i < 2 * p->most + 1; i++) /* also no rows, which count as the first or last */
        p->row[i] = (float)(draw() * (p->rows + 2) - 1);
}

/* --- in double, pair by pair ------------------------------------------------------------------ */

static bool sees(const problem *p, int i, int j) {
    const int far = p->pos[j] - p->pos[i];
    if (p->slot[i] != p->slot[j])
        return false;
    if (p->whole)
        return !p->window || abs(far) <= p->window / 2;
    return far <= 0 && (!p->window || far > -p->window);
}

/* Where the table has the row of head g for what i sees of j. */
static int place_of(const problem *p, int table, int i, int j, int g) {
    int far = p->pos[j] - p->pos[i];
    far = far < -p->most ? -p->most : far > p->most ? p->most : far;
    const double row = floor((double)p->row[p->most + far]);
    const int r = row < 0 ? 0 : row >= p->rows ? p->rows - 1 : (int)row;
    return p->d * (r + p->rows * (p->of_heads[table] > 1 ? g : 0));
}

static double dot(const float *a, const float *b, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

typedef struct sums {
    double q[MOST * SIZE], k[MOST * SIZE], v[MOST * SIZE], rel[2][TABLE];
} sums;

/* Adds what query i of head h says. */
static void add_query(const problem *p, sums *y, int i, int h) {
    const int heads = p->groups * p->per, g = h / p->per;
    const double scale = isnan(p->scale) ? 1 / sqrt(p->d) : p->scale;
    const float *q = p->q + (i * heads + h) * p->d, *c = p->c + (i * heads + h) * p->e;
    double share[MOST], of[MOST], total = 0, mean = 0;
    for (int j = 0; j < p->n; j++) {
        const float *k = p->k + (j * p->groups + g) * p->d;
        double s = dot(q, k, p->d);
        if (p->tables & 1)
            s += dot(q, p->rel[0] + place_of(p, 0, i, j, g), p->d);
        if (p->tables & 2)
            s += dot(k, p->rel[1] + place_of(p, 1, i, j, g), p->d);
        total += share[j] = sees(p, i, j) ? exp(s * scale) : 0;
        of[j] = dot(c, p->v + (j * p->groups + g) * p->e, p->e);
    }
    for (int j = 0; j < p->n; j++)
        mean += share[j] / total * of[j];
    for (int j = 0; j < p->n; j++) {
        const double part = share[j] / total, ds = part * (of[j] - mean) * scale;
        const int at = (j * p->groups + g) * p->d;
        for (int e = 0; e < p->e; e++)
            y->v[(j * p->groups + g) * p->e + e] += part * (double)c[e];
        for (int x = 0; x < p->d; x++) {
            double *dq = &y->q[(i * heads + h) * p->d + x], *dk = &y->k[at + x];
            *dq += ds * (double)p->k[at + x];
            *dk += ds * (double)q[x];
            if (p->tables & 1) {
                const int r = place_of(p, 0, i, j, g) + x;
                *dq += ds * (double)p->rel[0][r];
                y->rel[0][r] += ds * (double)q[x];
            }
            if (p->tables & 2) {
                const int r = place_of(p, 1, i, j, g) + x;
                *dk += ds * (double)p->rel[1][r];
                y->rel[1][r] += ds * (double)p->k[at + x];
            }
        }
    }
}

/* --- by a graph ------------------------------------------------------------------------------- */

/* Runs elements first .. first + n - 1, which are whole sequences. */
static ggl_status run_part(const problem *p, ggl_sched *s, ggl_graph *g, int first, int n,
                           result *y, ggl_error *err) {
    const int d = p->d, e = p->e, heads = p->groups * p->per;
    const struct {
        const char *name;
        const void *data;
        int size;
        float *to;
    } input[] = {{"q", p->q, d * heads, y->q},     {"k", p->k, d * p->groups, y->k},
                 {"v", p->v, e * p->groups, y->v}, {"c", p->c, e * heads, NULL},
                 {"pos", p->pos, 1, NULL},         {"slot", p->slot, 1, NULL},
                 {"end", p->end, 1, NULL}};
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < sizeof input / sizeof *input && st == GGL_OK; i++) {
        const ggl_tensor *t = ggl_graph_find_input(g, input[i].name);
        if (t && t->needed)
            st = ggl_sched_set(s, input[i].name,
                               (const char *)input[i].data + first * input[i].size * 4,
                               (size_t)(n * input[i].size) * 4, n, err);
    }
    if (st == GGL_OK)
        st = ggl_sched_run(s, n, NULL, 0, err);
    for (int i = 0; i < 3 && st == GGL_OK; i++)
        memcpy(input[i].to + first * input[i].size, ggl_sched_output(s, 1 + i),
               (size_t)(n * input[i].size) * sizeof(float));
    return st;
}

/* Makes the graph, whose gradients by tables are added to y->rel. */
static ggl_graph *make_graph(problem *p, result *y) {
    const ggl_graph_params of = {.size = sizeof of,
                                 .n_pos = 64,
                                 .n_batch = MOST,
                                 .n_slots = MOST_SEQ,
                                 .type_k = GGL_F32,
                                 .type_v = GGL_F32};
    ggl_graph *g = ggl_graph_new(&of);
    const int64_t heads = p->groups * p->per, n_row = 2 * p->most + 1;
    const int64_t ne[4][2] = {{p->d, heads}, {p->d, p->groups}, {p->e, p->groups}, {p->e, heads}};
    static const char *const name[4] = {"q", "k", "v", "c"};
    ggl_tensor *x[4], *table[2] = {NULL}, *by[5], *into[5] = {NULL}, *dy[5] = {NULL};
    int n = 0;
    ggl_graph_input(g, "pos", GGL_I32, 0, NULL, true);
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    if (p->whole)
        ggl_graph_input(g, "end", GGL_I32, 0, NULL, true);
    for (int i = 0; i < 4; i++)
        x[i] = ggl_graph_input(g, name[i], GGL_F32, 2, ne[i], true);
    for (; n < 3; n++)
        by[n] = x[n];
    for (int i = 0; i < 2; i++)
        if (p->tables >> i & 1) {
            const int64_t of_table[3] = {p->d, p->rows, p->of_heads[i]};
            by[n] = table[i] =
                ggl_graph_variable(g, i ? "rel_q" : "rel_k", GGL_F32, 3, of_table, p->rel[i]);
            into[n++] =
                ggl_graph_variable(g, i ? "drel_q" : "drel_k", GGL_F32, 3, of_table, y->rel[i]);
        }
    ggl_tensor *src[8] = {x[0],     ggl_binary(g, GGL_OP_CACHE, x[1], x[2]),
                          NULL,     NULL,
                          NULL,     table[0],
                          table[1], ggl_graph_weight(g, "row", GGL_F32, 1, &n_row, p->row)};
    const double num[3] = {p->scale, p->window ? (double)p->window : NAN, NAN};
    ggl_tensor *loss =
        sum_all(g, ggl_binary(g, GGL_OP_MUL, ggl_graph_op(g, GGL_OP_ATTEND, src, 8, num, 3), x[3]));
    ggl_graph_output(g, "loss", loss);
    const ggl_grad_params grad = {.size = sizeof grad, .into = into};
    if (ggl_graph_grad(g, loss, by, n, &grad, dy))
        for (int i = 0; i < n; i++) {
            if (into[i])
                ggl_graph_assign(g, into[i], dy[i]);
            else
                ggl_graph_output(g, name[i], dy[i]);
        }
    return g;
}

static void compute(problem *p, ggl_backend *on, bool one_by_one, result *y) {
    ggl_error err = {0};
    ggl_sched *s = NULL;
    memset(y, 0, sizeof *y);
    ggl_graph *g = make_graph(p, y);
    const ggl_sched_params of = {.size = sizeof of, .backend = &on, .n_backends = 1};
    ggl_status st = ggl_graph_finish(g, &err);
    if (st == GGL_OK)
        st = ggl_sched_new(&s, g, &of, &err);
    if (st == GGL_OK)
        st = ggl_sched_alloc(s, &err);
    for (int i = 0, first = 0; i < p->n_seq && one_by_one && st == GGL_OK; first += p->length[i++])
        st = run_part(p, s, g, first, p->length[i], y, &err);
    if (st == GGL_OK && !one_by_one)
        st = run_part(p, s, g, 0, p->n, y, &err);
    CHECK_MSG(st == GGL_OK, "%s", err.msg);
    ggl_sched_free(s);
    ggl_graph_free(g);
}

/* --- the test --------------------------------------------------------------------------------- */

static void compare(const char *name, int seed, const float *got, const double *want, int n) {
    double most = 1e-3, off = 0;
    for (int i = 0; i < n; i++)
        most = fmax(most, fabs(want[i]));
    for (int i = 0; i < n; i++)
        off = isnan(got[i]) ? INFINITY : fmax(off, fabs((double)got[i] - want[i]));
    CHECK_MSG(off <= 1e-5 * most, "problem %d, %s: off by %g of %g", seed, name, off, most);
}

static void check_problem(int seed, ggl_backend *reference, ggl_backend *const cpu[3]) {
    static problem p;
    static sums want;
    static result got, first;
    make_problem(&p, seed);
    memset(&want, 0, sizeof want);
    for (int i = 0; i < p.n; i++)
        for (int h = 0; h < p.groups * p.per; h++)
            add_query(&p, &want, i, h);
    for (int k = -1; k < 3; k++) {
        compute(&p, k < 0 ? reference : cpu[k], false, k == 0 ? &first : &got);
        const result *y = k == 0 ? &first : &got;
        if (k > 0)
            CHECK_MSG(memcmp(&first, y, sizeof first) == 0, "problem %d: CPU %d has other bits",
                      seed, k);
        if (k > 0)
            continue;
        compare("q", seed, y->q, want.q, p.n * p.d * p.groups * p.per);
        compare("k", seed, y->k, want.k, p.n * p.d * p.groups);
        compare("v", seed, y->v, want.v, p.n * p.e * p.groups);
        for (int i = 0; i < 2; i++)
            compare(i ? "rel_q" : "rel_k", seed, y->rel[i], want.rel[i], table_size(&p, i));
    }
    if (p.in_turns)
        return;
    compute(&p, cpu[1], true, &got);
    CHECK_MSG(memcmp(&first, &got, sizeof got) == 0, "problem %d: sequences alone have other bits",
              seed);
}

TEST(relative_positions) {
    ggl_backend *reference = opened("reference", 1, NULL);
    ggl_backend *cpu[3] = {opened("cpu", 1, NULL), opened("cpu", 2, NULL), opened("cpu", 1, "all")};
    REQUIRE(reference && cpu[0] && cpu[1] && cpu[2]);
    test_set_variable("GGL_CPU_SHARE_ALL", "1");
    for (int seed = 1; seed <= 60; seed++)
        check_problem(seed, reference, cpu);
    test_set_variable("GGL_CPU_SHARE_ALL", NULL);
    for (int k = 0; k < 3; k++)
        ggl_backend_close(cpu[k]);
    ggl_backend_close(reference);
}

/* Both products or one of them, with as many rows, and the rows of distances. */
TEST(products_that_cannot_be) {
    static const char *const words[] = {"q_rel",      "k_rel",      "numbers of rows differ",
                                        "or neither", "or neither", "with rel_row"};
    static const int64_t many[2] = {20000, 2};
    for (int k = 0; k < 6; k++) {
        ggl_graph *g = ggl_graph_new(NULL);
        ggl_graph_input(g, "pos", GGL_I32, 0, NULL, true);
        ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
        ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 2, (int64_t[]){3, 2}, true),
                   *fixed = ggl_graph_input(g, "fixed", GGL_F32, 2, (int64_t[]){3, 2}, false),
                   *more = ggl_graph_input(g, "more", GGL_F32, 2, (int64_t[]){4, 2}, true),
                   *row = ggl_graph_input(g, "row", GGL_F32, 1, (int64_t[]){k == 5 ? 4 : 5}, false);
        ggl_tensor *src[11] = {x, x, x, x, NULL, NULL, NULL, NULL, x, x, row};
        if (k == 0)
            src[8] = fixed;
        if (k == 1)
            src[9] = ggl_graph_input(g, "many", GGL_F32, 2, many, true);
        if (k == 2)
            src[9] = more;
        if (k == 3)
            src[10] = NULL;
        if (k == 4)
            src[8] = src[9] = NULL;
        ggl_graph_op(g, GGL_OP_ATTEND_BACK, src, 11, NULL, 0);
        refused(g, words[k]);
    }
}
