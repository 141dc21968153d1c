/* The operators: each maker takes what is there, makes what it lacks, and adds one operator or a
 * few. */
#include "gen_impl.h"

/* --- one operator ----------------------------------------------------------------------------- */

int unary(gen *g, r_op op, int x) {
    int y = add(g, op, 1, &x, 0, NULL);
    if (op == R_TANH || op == R_ERF || op == R_SIGMOID || op == R_SIN || op == R_COS)
        set_magnitude(g, y, 1);
    else if (op == R_EXP)
        set_magnitude(g, y, exp(fmin(node(g, x)->magnitude, 10)));
    else if (op == R_LOG)
        set_magnitude(g, y, fmax(1, log(node(g, x)->magnitude + 1)));
    return y;
}

static bool broadcasts(const r_node *a, const r_node *b) {
    for (int d = 0; d < 3; d++)
        if (a->ne[d] != b->ne[d] && a->ne[d] != 1 && b->ne[d] != 1)
            return false;
    return true;
}

static void broadcast_shape(gen *g, int y, int n_src, const int *src) {
    int ne[3] = {1, 1, 1}, n_dims = 0;
    for (int k = 0; k < n_src; k++) {
        const r_node *x = node(g, src[k]);
        for (int d = 0; d < 3; d++)
            ne[d] = x->ne[d] != 1 ? x->ne[d] : ne[d];
        n_dims = x->n_dims > n_dims ? x->n_dims : n_dims;
    }
    set_shape(g, y, n_dims, ne);
}

int binary(gen *g, r_op op, int a, int b) {
    const int src[2] = {a, b};
    double m = node(g, a)->magnitude, n = node(g, b)->magnitude;
    int y = add(g, op, 2, src, 0, NULL);
    broadcast_shape(g, y, 2, src);
    if (op == R_ADD || op == R_SUB)
        set_magnitude(g, y, m + n);
    else if (op == R_MUL)
        set_magnitude(g, y, m * n);
    else if (op >= R_EQ && op <= R_GE)
        set_magnitude(g, y, 1);
    return y;
}

int no_constant(gen *g, int x) {
    return avoids(AVOID_CONST_VIEW) && node(g, x)->op == R_CONST
               ? binary(g, R_ADD, x, number_of(g, 0))
               : x;
}

int reshape(gen *g, int x, int n_dims, const int *ne) {
    x = no_constant(g, x);
    double num[3] = {0};
    for (int d = 0; d < n_dims; d++)
        num[d] = ne[d];
    bool integer = node(g, x)->integer;
    int limit = node(g, x)->limit, y = add(g, R_RESHAPE, 1, &x, n_dims, num);
    set_shape(g, y, n_dims, ne);
    g->p->node[y].integer = integer;
    g->p->node[y].limit = limit;
    return y;
}

int split(gen *g, int x, int dim, int first, int size) {
    x = no_constant(g, x);
    int y = add(g, R_SPLIT, 1, &x, 3, (const double[]){dim, first, size});
    g->p->node[y].ne[dim] = size;
    g->p->node[y].integer = node(g, x)->integer;
    g->p->node[y].limit = node(g, x)->limit;
    return y;
}

int concat(gen *g, int a, int b, int dim) {
    int y = add(g, R_CONCAT, 2, (const int[]){a, b}, 1, (const double[]){dim});
    const r_node *t = node(g, a)->n_dims >= node(g, b)->n_dims ? node(g, a) : node(g, b);
    int ne[3] = {t->ne[0], t->ne[1], t->ne[2]};
    ne[dim] = node(g, a)->ne[dim] + node(g, b)->ne[dim];
    set_shape(g, y, t->n_dims > 0 ? t->n_dims : 1, ne);
    return y;
}

int transpose(gen *g, int x, int a, int b) {
    int y = add(g, R_TRANSPOSE, 1, &x, 2, (const double[]){a, b});
    const r_node *t = node(g, x);
    int ne[3] = {t->ne[0], t->ne[1], t->ne[2]}, last = a > b ? a : b;
    ne[a] = t->ne[b];
    ne[b] = t->ne[a];
    set_shape(g, y, t->n_dims > last ? t->n_dims : last + 1, ne);
    return y;
}

static int reduced(gen *g, r_op op, int x, int dim) {
    int y = add(g, op, 1, &x, 1, (const double[]){dim});
    g->p->node[y].ne[dim] = 1;
    g->p->node[y].n_dims -= dim == node(g, x)->n_dims - 1;
    return y;
}

int sum(gen *g, int x, int dim) {
    int y = reduced(g, R_SUM, x, dim);
    set_magnitude(g, y, node(g, x)->magnitude * sqrt(node(g, x)->ne[dim]) * 1.5);
    return y;
}

int amax(gen *g, int x, int dim) {
    return reduced(g, R_AMAX, x, dim);
}

int pick(gen *g, int x, int index) {
    int y = add(g, R_PICK, 2, (const int[]){x, index}, 0, NULL);
    const r_node *t = node(g, x), *i = node(g, index);
    int ne[4], n_dims = t->n_dims - 1;
    for (int d = 0; d < n_dims; d++)
        ne[d] = t->ne[d];
    if (i->n_dims)
        ne[n_dims++] = i->ne[0];
    set_shape(g, y, n_dims, ne);
    set_magnitude(g, y, t->magnitude);
    g->p->node[y].integer = t->integer;
    g->p->node[y].limit = t->limit;
    return y;
}

int linear(gen *g, int x, int w, int bias) {
    int y = add(g, R_LINEAR, 3, (const int[]){x, w, bias}, 0, NULL);
    const r_node *a = node(g, x), *m = node(g, w);
    int ne[3] = {m->ne[1], a->ne[1] != 1 ? a->ne[1] : m->ne[2],
                 a->ne[2] != 1 ? a->ne[2] : m->ne[3]};
    set_shape(g, y, a->n_dims > m->n_dims - 1 ? a->n_dims : m->n_dims - 1, ne);
    double gain = m->op == R_WEIGHT ? m->spread : m->magnitude;
    set_magnitude(
        g, y, a->magnitude * gain * sqrt(a->ne[0]) + (bias >= 0 ? node(g, bias)->magnitude : 0));
    return y;
}

int tamed(gen *g, int x) {
    if (node(g, x)->magnitude < 20 || node(g, x)->integer)
        return x;
    return unary(g, chance(g, 2) ? R_TANH : R_SIGMOID, binary(g, R_MUL, x, number_of(g, 0.125)));
}

/* --- operands --------------------------------------------------------------------------------- */

static bool is_partner(const gen *g, int i, int a, int unused) {
    (void)unused;
    const r_node *t = node(g, i), *x = node(g, a);
    if (!broadcasts(t, x) || !(is_float(g, i, 0, 3) || t->op == R_WEIGHT) || t->n_dims > 3)
        return false;
    int n = 1;
    for (int d = 0; d < 3; d++)
        n *= t->ne[d] > x->ne[d] ? t->ne[d] : x->ne[d];
    return n <= MOST_VALUE;
}

/* Something new that broadcasts with x. */
static int new_partner(gen *g, int x) {
    const r_node *t = node(g, x);
    int ne[3] = {t->ne[0], t->ne[1], t->ne[2]}, n_dims = t->n_dims ? choose(g, t->n_dims + 1) : 0;
    if (n_dims > 1 && chance(g, 3))
        ne[0] = 1;
    switch (choose(g, 5)) {
    case 0:
        return number_of(g, (choose(g, 9) - 4) * 0.5);
    case 1:
        return constant(g, n_dims, ne, 1);
    case 2: /* in an unbatched program the weight is a constant */
        return weight(g, n_dims, ne, ONE_OF(g, W_F32, W_F16, W_BF16), 1);
    case 3:
        return n_dims > 0 && ne[0] % 32 == 0 ? weight(g, n_dims, ne, W_Q8_0, 1)
                                             : input(g, n_dims, ne, false);
    default:
        return input(g, n_dims, ne, !chance(g, 3));
    }
}

static int partner(gen *g, int x) {
    int y = chance(g, 3) ? -1 : find(g, is_partner, x, 0);
    return y >= 0 ? y : new_partner(g, x);
}

/* |x| + 1/2: may be divided by, and has logarithms. */
static int positive(gen *g, int x) {
    return binary(g, R_ADD, unary(g, R_ABS, x), number_of(g, 0.5));
}

static bool is_scalar_index(const gen *g, int i, int limit, int unused) {
    (void)unused;
    const r_node *t = node(g, i);
    return t->integer && t->n_dims == 0 && t->limit <= limit &&
           (t->batched || !avoids(AVOID_UNBATCHED_PICK));
}

static bool is_index_list(const gen *g, int i, int limit, int most) {
    const r_node *t = node(g, i);
    return t->integer && t->n_dims == 1 && t->limit <= limit && t->ne[0] <= most &&
           (t->batched || !avoids(AVOID_UNBATCHED_PICK));
}

/* One index into n. */
static int scalar_index(gen *g, int n) {
    int x = chance(g, 3) ? -1 : find(g, is_scalar_index, n, 0);
    return x >= 0 ? x : index_input(g, 0, n, !chance(g, 3) || avoids(AVOID_UNBATCHED_PICK));
}

static int make_topk(gen *g);

/* A list of at most `most` of them. */
static int index_list(gen *g, int n, int most) {
    int x = chance(g, 4) ? -1 : find(g, is_index_list, n, most);
    return x >= 0 ? x
                  : index_input(g, 1 + choose(g, most < 4 ? most : 4), n,
                                !chance(g, 3) || avoids(AVOID_UNBATCHED_PICK));
}

/* --- makers ----------------------------------------------------------------------------------- */

static int make_unary(gen *g) {
    int x = any_float(g);
    r_op op = (r_op)(R_EXP + choose(g, R_CAST - R_EXP + 1));
    if (op == R_EXP)
        x = binary(g, R_MIN, x, number_of(g, 2));
    if (op == R_LOG)
        x = positive(g, x);
    if (op == R_SQRT)
        x = unary(g, R_ABS, x);
    return unary(g, op, x);
}

static int make_binary(gen *g) {
    r_op op = (r_op)(R_ADD + choose(g, R_MAX - R_ADD + 1));
    int a = any_float(g), b = partner(g, a);
    if (chance(g, 2) && op != R_DIV) {
        int swap = a;
        a = b;
        b = swap;
    }
    if (op == R_EQ || op == R_NE) { /* numbers that may be equal */
        a = unary(g, R_FLOOR, binary(g, R_MUL, a, number_of(g, 1.5)));
        b = unary(g, R_FLOOR, b);
    }
    if (op == R_DIV || op == R_MOD)
        b = positive(g, b);
    if (op == R_POW) {
        a = positive(g, a);
        b = unary(g, R_TANH, b);
    }
    return tamed(g, binary(g, op, a, b));
}

static int make_where(gen *g) {
    int a = any_float(g), b = partner(g, a), c = partner(g, a);
    if (!broadcasts(node(g, c), node(g, b)))
        c = new_partner(g, b);
    if (!broadcasts(node(g, c), node(g, a)))
        return -1;
    if (!chance(g, 4))
        c = binary(g, R_GT, c, number_of(g, 0.25));
    const int src[3] = {c, a, b};
    int y = add(g, R_WHERE, 3, src, 0, NULL);
    broadcast_shape(g, y, 3, src);
    return y;
}

static int make_reduce(gen *g) {
    int x = any_row(g), dim = choose(g, node(g, x)->n_dims);
    return tamed(g, chance(g, 2) ? amax(g, x, dim) : sum(g, x, dim));
}

static int make_rank(gen *g) {
    int x = any_row(g), n = node(g, x)->ne[0], r = add(g, R_RANK, 1, &x, 0, NULL);
    set_magnitude(g, r, n);
    if (chance(g, 2))
        return binary(g, R_MUL, binary(g, R_LT, r, number_of(g, 1 + choose(g, n))), x);
    return binary(g, R_MUL, r, number_of(g, 1.0 / n));
}

static int make_topk(gen *g) {
    int x = any_vector(g, 0), n = node(g, x)->ne[0], k = 1 + choose(g, n < 4 ? n : 4);
    int y = add(g, R_TOPK, 1, &x, 1, (const double[]){k});
    set_shape(g, y, 1, &k);
    g->p->node[y].integer = true;
    g->p->node[y].limit = n;
    set_magnitude(g, y, n);
    return y;
}

/* Rows of a weight that hashes of numbers choose. */
static int make_ngrams(gen *g) {
    const int m = 2 + choose(g, 3), k = (m - 1) * (1 + choose(g, 3)), d = 32,
              rows = 1 + choose(g, 60);
    const int digits[2][2] = {{4, m}, {4, k}};
    int x = index_input(g, m, 50, !chance(g, 3)), src[4];
    src[0] = binary(g, R_MUL, x, number_of(g, 777));
    src[1] = constant(g, 2, digits[0], 70000);
    src[2] = constant(g, 2, digits[1], ONE_OF(g, 3, 70000));
    src[3] = constant(g, 2, digits[1], ONE_OF(g, 3, 40));
    int y = add(g, R_NGRAMS, 4, src, 1, (const double[]){rows});
    set_shape(g, y, 1, &k);
    g->p->node[y].integer = true;
    g->p->node[y].limit = rows;
    set_magnitude(g, y, rows);
    if (chance(g, 3) || (avoids(AVOID_UNBATCHED_PICK) && !node(g, y)->batched))
        return binary(g, R_MUL, y, number_of(g, 1.0 / rows));
    return pick(g, weight(g, 2, (const int[]){d, rows}, ONE_OF(g, W_F32, W_F16, W_Q8_0), 1), y);
}

/* The best by score, and what belongs to them: elements, or a matrix for each, as experts are
 * chosen. */
static int make_choice(gen *g) {
    int i = make_topk(g), n = node(g, i)->limit, k = node(g, i)->ne[0];
    if (chance(g, 3))
        return pick(g, node(g, i)->src[0], i);
    int x = any_vector(g, 0), d = node(g, x)->ne[0], out = ONE_OF(g, 4, 8, 33);
    int type = d % 32 ? ONE_OF(g, W_F32, W_F16, W_BF16) : ONE_OF(g, W_F32, W_Q8_0, W_Q4_1, W_MXFP4);
    if (d * n * out > 16384 || (avoids(AVOID_UNBATCHED_PICK) && !node(g, i)->batched))
        return binary(g, R_MUL, i, number_of(g, 1.0 / n));
    int w = pick(g, weight(g, 3, (const int[]){d, out, n}, type, 1.7 / sqrt(d)), i);
    int y = linear(g, chance(g, 2) ? x : reshape(g, x, 2, (const int[]){d, 1}), w, -1);
    if (chance(g, 3))
        return tamed(g, y);
    int share =
        reshape(g, unary(g, R_SIGMOID, pick(g, node(g, i)->src[0], i)), 2, (const int[]){1, k});
    return tamed(g, sum(g, binary(g, R_MUL, y, share), 1));
}

static bool is_list(const gen *g, int i, int unused, int unused2) {
    (void)unused;
    (void)unused2;
    return node(g, i)->integer && node(g, i)->n_dims == 1;
}

/* Indices are moved, chosen from, computed with. */
static int make_of_indices(gen *g) {
    int x = find(g, is_list, 0, 0);
    if (x < 0)
        return make_topk(g);
    int n = node(g, x)->ne[0], first = choose(g, n);
    switch (choose(g, 4)) {
    case 0:
        return split(g, x, 0, first, 1 + choose(g, n - first));
    case 1:
        return n == 1 ? reshape(g, x, 0, NULL) : reshape(g, split(g, x, 0, first, 1), 0, NULL);
    case 2:
        return pick(g, x, scalar_index(g, n));
    default:
        return binary(g, R_MUL, x, number_of(g, 1.0 / node(g, x)->limit));
    }
}

/* Elements, rows or matrices of a value. */
static int make_pick(gen *g) {
    int x = any_row(g), n_dims = node(g, x)->n_dims, n = node(g, x)->ne[n_dims - 1];
    int most = MOST_VALUE * n / r_count(node(g, x)),
        limit = chance(g, 30) ? n + 1 : n; /* outside: NaN */
    if (n_dims == 3 && chance(g, 2))
        return pick(g, pick(g, x, scalar_index(g, n)), scalar_index(g, node(g, x)->ne[1]));
    return pick(g, x,
                chance(g, 2) ? scalar_index(g, limit) : index_list(g, limit, most < 4 ? most : 4));
}

static int position(gen *g) {
    int i = index_input(g, 0, g->p->n_pos, true);
    g->p->node[i].position = true;
    return i;
}

/* Rows of a table, as embeddings are. */
static int make_row(gen *g) {
    if (chance(g, 8))
        return pick(g, weight(g, 2, (const int[]){8, g->p->n_pos}, ONE_OF(g, W_F32, W_F16), 1),
                    position(g));
    if (chance(g, 12)) /* positions in arithmetic */
        return unary(g, R_SIN, binary(g, R_MUL, position(g), number_of(g, 0.125)));
    int n = 2 + choose(g, 6), d = ONE_OF(g, 4, 6, 8, 32, 64);
    int type = d % 32 == 0 ? ONE_OF(g, W_F32, W_F16, W_Q8_0, W_Q4_0, W_Q5_1, W_IQ4_NL)
                           : ONE_OF(g, W_F32, W_F16, W_BF16);
    int w = weight(g, 2, (const int[]){d, n}, type, 1), k = choose(g, 3);
    if (k == 0)
        w = split(g, w, 1, 1, n - 1);
    return k == 1 ? pick(g, w, index_list(g, n, 4))
                  : pick(g, w, scalar_index(g, node(g, w)->ne[1]));
}

/* One to three factors of n, at random. */
static int factors(gen *g, int n, int *ne) {
    int n_dims = 0;
    for (int d = 0; d < 2 && chance(g, 2) && n > 1; d++) {
        int f = ONE_OF(g, 1, 2, 3, 4, 8, 16, 32);
        if (n % f == 0) {
            ne[n_dims++] = f;
            n /= f;
        }
    }
    ne[n_dims++] = n;
    return n_dims;
}

static int make_reshape(gen *g) {
    int x = any_float(g), ne[3];
    if (r_count(node(g, x)) == 1 && chance(g, 2))
        return reshape(g, x, 0, NULL);
    int n_dims = factors(g, r_count(node(g, x)), ne);
    return reshape(g, x, n_dims, ne);
}

static int make_split(gen *g) {
    int x = any_row(g), dim = choose(g, node(g, x)->n_dims), n = node(g, x)->ne[dim],
        first = choose(g, n);
    return split(g, x, dim, first, 1 + choose(g, n - first));
}

static bool joins(const gen *g, int i, int a, int dim) {
    const r_node *t = node(g, i), *x = node(g, a);
    bool fits = is_float(g, i, 0, 3) && t->n_dims <= x->n_dims;
    for (int d = 0; d < 3; d++)
        fits = fits && (d == dim || t->ne[d] == x->ne[d]);
    return fits && r_count(t) + r_count(x) <= MOST_VALUE;
}

static int make_concat(gen *g) {
    int x = any_row(g), dim = choose(g, node(g, x)->n_dims), y = find(g, joins, x, dim);
    return y < 0                                                     ? -1
           : chance(g, 2) || node(g, y)->n_dims < node(g, x)->n_dims ? concat(g, x, y, dim)
                                                                     : concat(g, y, x, dim);
}

static int make_repeat(gen *g) {
    int x = any_float(g), ne[3], n = r_count(node(g, x)), n_dims = node(g, x)->n_dims;
    for (int d = 0; d < 3; d++) {
        int times = node(g, x)->ne[d] == 1 && (d < n_dims || n_dims == d) ? 1 + choose(g, 4) : 1;
        times = n * times > MOST_VALUE ? 1 : times;
        ne[d] = node(g, x)->ne[d] * times;
        n *= times;
        n_dims = times > 1 && d >= n_dims ? d + 1 : n_dims;
    }
    double num[3] = {ne[0], ne[1], ne[2]};
    int y = add(g, R_REPEAT, 1, &x, n_dims, num);
    set_shape(g, y, n_dims, ne);
    return y;
}

static int make_transpose(gen *g) {
    int x = any_row(g), a = choose(g, 3), b = choose(g, 3);
    return transpose(g, x, a, b);
}

/* --- products --------------------------------------------------------------------------------- */

static int type_for(gen *g, int n) {
    if (n % 256 == 0 && chance(g, 2))
        return ONE_OF(g, W_Q4_K, W_Q6_K, W_TQ2_0);
    if (n % 32 == 0 && !chance(g, 3))
        return ONE_OF(g, W_Q8_0, W_Q4_0, W_Q4_1, W_Q5_0, W_Q5_1, W_IQ4_NL, W_MXFP4);
    return ONE_OF(g, W_F32, W_F32, W_F16, W_BF16);
}

/* Matrices of a weight whose rows have n elements. */
static bool is_matrix(const gen *g, int i, int n, int n_batch) {
    int type;
    const r_node *t = node(g, i);
    if (t->op == R_PICK && avoids(AVOID_SHARED_PICK))
        return false;
    return t->n_dims >= 2 && t->n_dims <= 3 && t->ne[0] == n &&
           (t->ne[2] == 1 || n_batch == 1 || t->ne[2] == n_batch) &&
           t->ne[1] * (t->ne[2] > n_batch ? t->ne[2] : n_batch) <= 256 &&
           r_of_weight(g->p, i, &type);
}

/* [n, out] for each of `heads` (1: the same for all): a weight, a view of one, or chosen by
 * indices. */
static int new_matrix(gen *g, int n, int out, int heads) {
    double spread = 1.7 / sqrt(n);
    int type = type_for(g, n), many = 2 + choose(g, 3);
    switch (choose(g, avoids(AVOID_PICK_OF_FOUR) ? 7 : 8)) {
    case 7: /* for each head one of several, chosen together: of a weight of four dimensions */
        return pick(g, weight(g, 4, (const int[]){n, out, heads, 2}, type, spread),
                    scalar_index(g, 2));
    case 0: /* one of several, for each of the batch or for all */
        return pick(g, weight(g, 3, (const int[]){n, out, many}, type, spread),
                    scalar_index(g, many));
    case 1: /* one for each head, chosen */
        if (heads > 1)
            return pick(g, weight(g, 3, (const int[]){n, out, many}, type, spread),
                        index_input(g, heads, many, !chance(g, 3) || avoids(AVOID_UNBATCHED_PICK)));
        if (avoids(AVOID_PICK_OF_VIEW))
            return weight(g, 2, (const int[]){n, out}, type, spread);
        return pick(
            g, split(g, weight(g, 3, (const int[]){n, out, many + 1}, type, spread), 2, 1, many),
            scalar_index(g, many));
    case 2:
        return split(g, weight(g, 2, (const int[]){n, out + 3}, type, spread), 1, choose(g, 4),
                     out);
    case 3:
        return reshape(g, weight(g, 1, (const int[]){n * out}, type, spread), 2,
                       (const int[]){n, out});
    case 4:
        if (heads > 1)
            return weight(g, 3, (const int[]){n, out, heads}, type, spread);
        return split(g,
                     split(g, weight(g, 2, (const int[]){n, out + 4}, type, spread), 1, 1, out + 2),
                     1, 1, out);
    default:
        return weight(g, 2, (const int[]){n, out}, type, spread);
    }
}

int project(gen *g, int x, int out) {
    int n = node(g, x)->ne[0], w = new_matrix(g, n, out, 1);
    return tamed(g, linear(g, x, w, -1));
}

static int bias_for(gen *g, int w) {
    if (!chance(g, 3))
        return -1;
    int out = node(g, w)->ne[1];
    return chance(g, 2) ? weight(g, 1, &out, ONE_OF(g, W_F32, W_F16), 1) : any_vector(g, out);
}

/* Columns for a product. */
static int any_columns(gen *g) {
    return chance(g, 6) ? any_vector(g, 256) : any_row(g);
}

static int make_linear(gen *g) {
    int x = any_columns(g), n = node(g, x)->ne[0], heads = node(g, x)->ne[1];
    int rest = heads * node(g, x)->ne[2], w = chance(g, 2) ? find(g, is_matrix, n, heads) : -1;
    if (w < 0)
        w = new_matrix(g, n, ONE_OF(g, 2, 4, 6, 8, 16, 32, 33), heads);
    if (node(g, w)->ne[1] * rest * node(g, w)->ne[2] > MOST_VALUE)
        return -1;
    return tamed(g, linear(g, x, w, bias_for(g, w)));
}

/* Some products of the same columns, as Q, K and V are: with weights of one type or of several, with
 * biases or without. They are read beside each other, so that a backend may run them as one. */
static int make_linears(gen *g) {
    int x = any_columns(g), n = node(g, x)->ne[0], type = type_for(g, n), y = -1;
    int rest = node(g, x)->ne[1] * node(g, x)->ne[2], left = MOST_VALUE;
    const bool equal = !chance(g, 3), biased = chance(g, 3);
    for (int k = 2 + choose(g, 4); k > 0; k--) {
        const int ne[2] = {n, ONE_OF(g, 2, 4, 8, 16, 32, 33)};
        left -= ne[1] * rest;
        if (left < 0)
            break;
        int w = equal ? weight(g, 2, ne, type, 1.7 / sqrt(n)) : new_matrix(g, n, ne[1], 1);
        int bias = biased ? weight(g, 1, &ne[1], W_F32, 1) : equal ? -1 : bias_for(g, w);
        int next = tamed(g, linear(g, x, w, bias));
        y = y < 0 ? next : concat(g, y, next, 0);
    }
    return y;
}

static bool is_value_matrix(const gen *g, int i, int x, int unused) {
    (void)unused;
    int type;
    const r_node *t = node(g, i), *a = node(g, x);
    if (!is_float(g, i, 2, 3) || t->ne[0] != a->ne[0] || r_of_weight(g->p, i, &type) ||
        (t->op == R_PICK && avoids(AVOID_SHARED_PICK)))
        return false;
    int heads = a->ne[1] > t->ne[2] ? a->ne[1] : t->ne[2];
    return (a->ne[1] == 1 || t->ne[2] == 1 || a->ne[1] == t->ne[2]) &&
           t->ne[1] * heads * a->ne[2] <= MOST_VALUE;
}

/* A matrix that is computed. */
static int make_linear_of_values(gen *g) {
    int x = any_row(g), w = find(g, is_value_matrix, x, 0), n = node(g, x)->ne[0];
    if (w < 0 && n <= 32) {
        int v = any_vector(g, 0), out = node(g, v)->ne[0];
        if (out > 16 || out * (r_count(node(g, x)) / n) > MOST_VALUE)
            return -1;
        w = binary(g, R_MUL, reshape(g, v, 2, (const int[]){1, out}), constant(g, 1, &n, 1));
    }
    return w < 0 ? -1 : tamed(g, linear(g, x, w, -1));
}

/* A product with the columns of a matrix, as gradients need it. */
static int make_linear_back(gen *g) {
    int dy = any_columns(g), n = node(g, dy)->ne[0], heads = node(g, dy)->ne[1];
    int in = ONE_OF(g, 3, 4, 8, 32, 33, 64), type = type_for(g, in), w;
    const double spread = 1.7 / sqrt(n);
    if (in * heads * node(g, dy)->ne[2] > MOST_VALUE || in * n * heads > 16384)
        return -1;
    if (heads > 1 && chance(g, 3))
        w = weight(g, 3, (const int[]){in, n, heads}, type, spread);
    else if (chance(g, 3) && !avoids(AVOID_UNBATCHED_PICK))
        w = pick(g, weight(g, 3, (const int[]){in, n, 3}, type, spread), scalar_index(g, 3));
    else
        w = weight(g, 2, (const int[]){in, n}, type, spread);
    const double bf16 = chance(g, 2);
    int y = add(g, R_LINEAR_BACK, 2, (const int[]){dy, w}, 1, &bf16);
    const int ne[3] = {in, heads, node(g, dy)->ne[2]};
    set_shape(g, y, node(g, dy)->n_dims, ne);
    set_magnitude(g, y, node(g, dy)->magnitude * spread * sqrt(n));
    return tamed(g, y);
}

/* What is the same for all tokens: sums over a batch are not random graphs' matter, as tokens are computed in any pieces. */
static int rows_for_all(gen *g, int n, int k) {
    const int ne[2] = {n, k};
    return input(g, k > 1 ? 2 : 1, ne, false);
}

static int make_outer_sum(gen *g) {
    int in = ONE_OF(g, 1, 4, 7, 32, 65), out = ONE_OF(g, 1, 3, 8), k = 1 + choose(g, 3),
        kind = choose(g, 3);
    int n = kind == 0 ? 0 : kind == 1 ? k : 1 + choose(g, 3);
    const int ne[3] = {in, out, n > 0 ? n : 1}, dims = n > 0 ? 3 : 2;
    int src[4] = {rows_for_all(g, in, chance(g, 4) ? 1 : k), rows_for_all(g, out, k), -1, -1};
    if (kind == 2)
        src[2] = index_input(g, k > 1 || chance(g, 2) ? k : 0, n, false);
    if (chance(g, 2))
        src[3] = input(g, dims, ne, false);
    const double num[] = {n > 0 ? n : NAN, chance(g, 2)};
    int y = add(g, R_OUTER_SUM, 4, src, 2, num);
    set_shape(g, y, dims, ne);
    set_magnitude(g, y, 1 + k);
    return tamed(g, y);
}

/* --- rotations and attention ------------------------------------------------------------------ */

static bool is_frequencies(const gen *g, int i, int most, int unused) {
    (void)unused;
    const r_node *t = node(g, i);
    return is_float(g, i, 1, 1) && !t->batched && t->ne[0] <= most && t->magnitude <= 1;
}

static int frequencies(gen *g, int most) {
    int f = find(g, is_frequencies, most, 0), r = 1 + choose(g, most < 8 ? most : 8);
    if (f >= 0 && chance(g, 2))
        return f;
    if (chance(g, 3))
        return constant(g, 1, &r, 1);
    int i = add(g, R_IOTA, 0, NULL, 1, (const double[]){r}); /* 100 ** (-i / r) */
    set_shape(g, i, 1, &r);
    f = binary(g, R_POW, number_of(g, 100), binary(g, R_MUL, i, number_of(g, -1.0 / r)));
    set_magnitude(g, f, 1);
    return f;
}

static int rotated(gen *g, int x) {
    int most = node(g, x)->ne[0] / 2;
    if (most < 1)
        return -1;
    const int src[2] = {x, frequencies(g, most)};
    double mag = chance(g, 2) ? NAN : 0.75;
    bool batched = true; /* by the positions */
    int y = add(g, chance(g, 2) ? R_ROPE_PAIR : R_ROPE_HALF, 2, src, 1, &mag);
    g->p->node[y].batched = batched;
    set_magnitude(g, y, node(g, x)->magnitude * 1.4);
    return y;
}

static int make_rope(gen *g) {
    return rotated(g, any_row(g));
}

static bool has_count(const gen *g, int i, int count, int batched) {
    return is_float(g, i, 1, 3) && r_count(node(g, i)) == count &&
           node(g, i)->batched >= (batched != 0);
}

/* [d, h], from whatever is there. */
static int heads_of(gen *g, int d, int h) {
    int x = chance(g, 2) ? find(g, has_count, d * h, 1) : -1;
    if (x < 0)
        x = project(g, any_vector(g, 0), d * h);
    x = tamed(g, x);
    x = h == 1 && node(g, x)->n_dims == 1 ? x : reshape(g, x, 2, (const int[]){d, h});
    return chance(g, 3) && d > 1 ? rotated(g, x) : x;
}

static int make_attend(gen *g);

static int make_cache(gen *g) {
    bool blocks = w_is_quantized(g->p->type_k) || w_is_quantized(g->p->type_v);
    int d = blocks ? 32 : ONE_OF(g, 4, 6, 8, 32, 33), e = blocks ? 32 : ONE_OF(g, 4, d, 8, 16),
        h = 1 + choose(g, 2);
    int k = heads_of(g, d, h), v = chance(g, 4) && e <= d ? split(g, k, 0, 0, e)
                                   : chance(g, 4)         ? k
                                                          : heads_of(g, e, h);
    if (avoids(AVOID_UNBATCHED_ROWS) && !(node(g, k)->batched && node(g, v)->batched))
        return -1;
    int c = add(g, R_CACHE, 2, (const int[]){k, v}, 0, NULL);
    g->p->node[c].batched = true;
    set_shape(g, c, 0, NULL);
    return c;
}

static int last_cache(gen *g) {
    int c = g->p->n - 1;
    while (c >= 0 && node(g, c)->op != R_CACHE)
        c--;
    return c >= 0 && chance(g, 2) ? c : make_cache(g);
}

static int one_for_each_head(gen *g, int h) {
    switch (choose(g, 6)) {
    case 0:
        return weight(g, 1, &h, W_F32, 1);
    case 1:
        return constant(g, 1, &h, 1);
    case 2:
        return any_vector(g, h);
    default:
        return -1;
    }
}

/* For each head, biases of the distances -m .. m. */
static int one_for_each_distance(gen *g, int h) {
    const int ne[2] = {1 + 2 * choose(g, 9), h};
    if (!chance(g, 3))
        return -1;
    return chance(g, 2) ? weight(g, 2, ne, ONE_OF(g, W_F32, W_F16), 2) : constant(g, 2, ne, 2);
}

/* Rows of relative positions, of the heads of the keys or of all, and the number of each distance's row, which may be no row. */
static void add_relative(gen *g, int d, int heads, int *src) {
    const int kind = choose(g, 3), n = 1 + choose(g, 9), n_row = 1 + 2 * choose(g, 8);
    const int dims = chance(g, 2) ? 3 : 2, ne[3] = {d, n, heads};
    if (!chance(g, 3))
        return;
    for (int k = 0; k < 2; k++)
        if (kind == k || kind == 2)
            src[5 + k] = chance(g, 2) ? weight(g, dims, ne, W_F32, 1) : constant(g, dims, ne, 1);
    src[7] = chance(g, 2) ? weight(g, 1, &n_row, W_F32, n + 1) : constant(g, 1, &n_row, n + 1);
}

static int make_attend(gen *g) {
    int cache = last_cache(g);
    if (cache < 0)
        return -1;
    int k = node(g, cache)->src[0], v = node(g, cache)->src[1];
    int d = node(g, k)->ne[0], h = node(g, k)->ne[1] * (1 + choose(g, 2)), q = heads_of(g, d, h);
    int sinks = one_for_each_head(g, h), alibi = one_for_each_head(g, h);
    int src[8] = {q, cache, sinks, alibi, one_for_each_distance(g, h), -1, -1, -1};
    add_relative(g, d, node(g, k)->ne[1], src);
    double num[3] = {chance(g, 2) ? NAN : 0.25,
                     chance(g, 2) ? NAN : 1 + choose(g, chance(g, 2) ? 70 : 8),
                     chance(g, 3) ? 2 : NAN};
    int y = add(g, R_ATTEND, 8, src, 3, num);
    g->p->node[y].batched = true;
    set_shape(g, y, node(g, q)->n_dims, (const int[]){node(g, v)->ne[0], h});
    set_magnitude(g, y, node(g, v)->magnitude);
    return y;
}

/* Attention to rows that are chosen by their keys, of the same cache or of another. */
static int make_attend_chosen(gen *g) {
    int index = make_cache(g), cache = chance(g, 2) ? index : make_cache(g);
    if (index < 0 || cache < 0 || node(g, node(g, index)->src[0])->ne[1] != 1)
        return -1;
    const int d = node(g, node(g, index)->src[0])->ne[0], h = 1 + choose(g, 4);
    const int k = node(g, cache)->src[0], v = node(g, cache)->src[1];
    const bool apart = chance(g, 2), near_too = chance(g, 2); /* a list for each head of keys */
    const int lists = apart ? node(g, k)->ne[1] : 1, best = 1 + choose(g, apart ? 3 : 6),
              every = chance(g, 2) ? 1 : 1 + choose(g, 3);
    const int from[3] = {heads_of(g, d, apart ? lists : h), index, apart ? -1 : any_vector(g, h)};
    const double num[3] = {best, every, near_too ? choose(g, best + 1) : NAN};
    const int chosen = add(g, R_CHOOSE_ROWS, 3, from, 3, num),
              ne[2] = {best * every + (near_too ? 0 : every - 1), lists};
    g->p->node[chosen].batched = true;
    set_shape(g, chosen, apart ? node(g, from[0])->n_dims : 1, ne);
    set_magnitude(g, chosen, 64);
    const int heads = node(g, k)->ne[1] * (1 + choose(g, 2)),
              q = heads_of(g, node(g, k)->ne[0], heads);
    int src[10] = {q, cache, one_for_each_head(g, heads), -1, -1, -1, -1, -1, -1, chosen};
    const double option[3] = {chance(g, 2) ? NAN : 0.25, NAN, chance(g, 3) ? 2 : NAN};
    int y = add(g, R_ATTEND, 10, src, 3, option);
    g->p->node[y].batched = true;
    set_shape(g, y, node(g, q)->n_dims, (const int[]){node(g, v)->ne[0], heads});
    set_magnitude(g, y, node(g, v)->magnitude);
    return y;
}

/* The products of queries and of keys with rows of relative positions, or one of them; returns how many numbers they have, or 0. */
static int add_products(gen *g, int h, int groups, int *src) {
    const int kind = choose(g, 3), n = 1 + choose(g, 6), n_row = 1 + 2 * choose(g, 4);
    int size = 0;
    if (!chance(g, 2))
        return 0;
    for (int k = 0; k < 2; k++)
        if (kind == k || kind == 2) {
            const int ne[2] = {n, k ? groups : h};
            src[8 + k] = unary(g, R_TANH, input(g, ne[1] > 1 ? 2 : 1, ne, true));
            size += n * ne[1];
        }
    src[10] = chance(g, 2) ? weight(g, 1, &n_row, W_F32, n + 1) : constant(g, 1, &n_row, n + 1);
    return size;
}

/* The gradients of attention. With a window of one position each token sees itself alone, as in any pieces of a batch; sinks make
 * its share less than 1. The second form has one row, and the gradients are those of the parts of one result. */
static int make_attend_back(gen *g) {
    int d = ONE_OF(g, 1, 4, 6, 17), e = ONE_OF(g, 1, 4, 8), groups = 1 + choose(g, 2),
        h = groups * (1 + choose(g, 2));
    int src[11] = {heads_of(g, d, h), heads_of(g, d, groups), heads_of(g, e, groups),
                   heads_of(g, e, h)};
    for (int k = 4; k < 11; k++)
        src[k] = -1;
    for (int k = 0; k < 4; k++) {
        const int n = k == 0 || k == 3 ? h : groups;
        const int ne[2] = {k < 2 ? d : e, n};
        if (!node(g, src[k])->batched)
            src[k] = input(g, n > 1 ? 2 : 1, ne, true);
        src[k] = unary(g, R_TANH, src[k]); /* of large scores little would be known */
    }
    if (!chance(g, 4))
        src[4] = chance(g, 2) ? weight(g, 1, &h, W_F32, 1) : any_vector(g, h);
    double num[3] = {chance(g, 2) ? NAN : 0.25, 1, chance(g, 3) ? 2 : NAN};
    const int products = add_products(g, h, groups, src);
    int y = add(g, R_ATTEND_BACK, 11, src, 3, num);
    const int n = (d + e) * groups + d * h + (src[4] >= 0 ? h : 0) + products;
    g->p->node[y].batched = true;
    set_shape(g, y, 1, &n);
    set_magnitude(g, y, node(g, src[3])->magnitude * (1 + node(g, src[2])->magnitude));
    return tamed(g, y);
}

/* --- any -------------------------------------------------------------------------------------- */

static const struct {
    int (*make)(gen *g);
    int weight;
    bool top; /* not in a body */
} makers[] = {
    {make_unary, 6, false},    {make_binary, 12, false},    {make_where, 3, false},
    {make_reduce, 4, false},   {make_rank, 2, false},       {make_topk, 1, false},
    {make_choice, 4, false},   {make_of_indices, 3, false}, {make_pick, 4, false},
    {make_row, 3, false},      {make_reshape, 4, false},    {make_split, 5, false},
    {make_concat, 4, false},   {make_repeat, 3, false},     {make_transpose, 3, false},
    {make_linear, 9, false},   {make_linears, 3, false},    {make_linear_of_values, 4, false},
    {make_rope, 3, false},     {make_attend, 7, true},      {make_known, 5, false},
    {make_unknown, 4, false},  {make_recurrent, 5, false},  {make_linear_back, 4, false},
    {make_outer_sum, 3, true}, {make_attend_back, 2, true}, {make_attend_chosen, 3, true},
    {make_ngrams, 2, false},
};

int make_any(gen *g, bool top) {
    int total = 0, k = 0;
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++)
        total += makers[i].weight;
    int at = choose(g, total);
    while (at >= makers[k].weight)
        at -= makers[k++].weight;
    return makers[k].top && !top ? -1 : makers[k].make(g);
}
