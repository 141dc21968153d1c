/* The operators that take elements one by one, or along a row. */
#include <math.h>
#include <string.h>

#include "judge_impl.h"

/* --- one number ------------------------------------------------------------------------------- */

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

/* f rises everywhere that it is used: what it makes of the ends bounds what it makes of the
 * rest. */
static number rising(double (*f)(double), number x, double least, double ulps) {
    double v = f(x.v), low = x.v - x.e, high = f(x.v + x.e);
    if (f == sqrt && x.v >= 0)
        low = fmax(low, 0); /* what roots are taken of is not negative, however small it is */
    if (low < least)
        return unknown();
    return rounded(v, fmax(high - v, v - f(low)), x.e == 0 && f == sqrt ? 1 : ulps);
}

static number wider(number x, double off) {
    x.e += fabs(x.v) < 0x1p-100 ? off : 0;
    return x;
}

static number unary(r_op op, number x) {
    switch (op) {
    case R_EXP: /* results without a normal number may be 0, as docs/numeric-functions.md has it */
        return wider(rising(exp, x, -INFINITY, 4), 0x1p-126);
    case R_LOG: /* near 1 a step of the argument is the larger part */
        return rising(log, (number){x.v, x.e, 0}, TINY, 4);
    case R_SQRT:
        return rising(sqrt, x, 0, 1);
    case R_FLOOR:
        return floor(x.v - x.e) == floor(x.v + x.e) ? (number){floor(x.v), 0, 0}
                                                    : (number){floor(x.v), 1, 0};
    case R_ABS:
        return (number){fabs(x.v), x.e, 0};
    case R_TANH:
        return rising(tanh, x, -INFINITY, 6);
    case R_ERF:
        return rising(erf, x, -INFINITY, 6);
    case R_SIGMOID:
        return wider(rising(sigmoid, x, -INFINITY, 8), 0x1p-126);
    case R_SIN:
        return rounded(sin(x.v), fmin(x.e, 2), 2);
    case R_COS:
        return rounded(cos(x.v), fmin(x.e, 2), 2);
    default: /* CAST */
        return rounded(x.v, x.e, 1);
    }
}

/* --- two numbers ------------------------------------------------------------------------------ */

static number divided(number a, number b) {
    double least = fabs(b.v) - b.e;
    if (!(least > 0))
        return unknown();
    double q = a.v / b.v;
    return rounded(q, (a.e + fabs(q) * b.e) / least, 1);
}

/* a to the power b, for a above 0: it rises or falls with each, so the corners bound it. */
static number power(number a, number b) {
    double v = pow(a.v, b.v), off = 0;
    if (!(a.v - a.e > 0))
        return unknown();
    for (int k = 0; k < 4; k++)
        off = fmax(off, fabs(pow(a.v + (k & 1 ? a.e : -a.e), b.v + (k & 2 ? b.e : -b.e)) - v));
    return rounded(v, off, 2);
}

static number modulo(number a, number b) {
    number q = divided(a, b);
    if (!known(q))
        return q;
    q.e += fabs(q.v) * UNIT;
    double f = floor(q.v);
    bool open = floor(q.v - q.e) != floor(q.v + q.e) && (a.e > 0 || b.e > 0 || a.v / b.v != f);
    double v = a.v - b.v * f;
    return open
               ? unknown()
               : rounded(v,
                         a.e + fabs(f) * b.e +
                             UNIT * (fabs(b.v * f) != fabs((double)(float)(b.v * f)) ? fabs(b.v * f)
                                                                                     : 0),
                         1);
}

/* -1, 0, 1; 2: it is open which. */
static int order(number a, number b) {
    double off = a.e + b.e;
    if (a.v == b.v && (off == 0 || (a.id == b.id && a.id != 0)))
        return 0;
    return a.v + off < b.v ? -1 : b.v + off < a.v ? 1 : 2;
}

static number compared(r_op op, number a, number b) {
    if (isnan(a.v) || isnan(b.v))
        return (number){op == R_NE, 0, 0};
    int o = order(a, b);
    bool yes = op == R_EQ   ? o == 0
               : op == R_NE ? o != 0
               : op == R_LT ? o == -1
               : op == R_LE ? o <= 0
               : op == R_GT ? o == 1
                            : o >= 0;
    return o == 2 ? unknown() : (number){yes, 0, 0};
}

/* The larger (or, negated, the smaller). */
static number larger(number a, number b, bool negate) {
    if (isnan(a.v) || isnan(b.v))
        return isnan(a.v) ? a : b;
    int o = negate ? order(b, a) : order(a, b);
    if (o == 1 || o == 0)
        return a;
    if (o == -1)
        return b;
    bool first = negate ? a.v < b.v : a.v > b.v;
    return (number){first ? a.v : b.v, fmax(a.e, b.e), 0};
}

static number binary(r_op op, number a, number b) {
    switch (op) {
    case R_ADD:
        return rounded(a.v + b.v, a.e + b.e, 1);
    case R_SUB:
        return rounded(a.v - b.v, a.e + b.e, 1);
    case R_MUL:
        return rounded(a.v * b.v, fabs(a.v) * b.e + fabs(b.v) * a.e + a.e * b.e, 1);
    case R_DIV:
        return divided(a, b);
    case R_POW:
        return power(a, b);
    case R_MOD:
        return modulo(a, b);
    case R_MIN:
        return larger(a, b, true);
    case R_MAX:
        return larger(a, b, false);
    default:
        return compared(op, a, b);
    }
}

static number chosen(number c, number a, number b) {
    if (isnan(c.v))
        return a;
    int o = order((number){fabs(c.v), c.e, 0}, (number){0, 0, 0});
    return o == 2 ? unknown() : o == 0 ? b : a;
}

/* The same node makes the same of the same. */
static uint64_t identity(uint64_t h, number x) {
    uint64_t bits;
    memcpy(&bits, &x.v, sizeof bits);
    return x.e == 0 ? r_mix(h, bits) : h == 0 || x.id == 0 ? 0 : r_mix(h, x.id);
}

static void elementwise(judge *j, int i) {
    const r_node *t = &j->p->node[i];
    for (int c = 0, at = 0; c < t->ne[2]; c++)
        for (int b = 0; b < t->ne[1]; b++)
            for (int a = 0; a < t->ne[0]; a++, at++) {
                number x[3];
                bool all = true;
                uint64_t id = (uint64_t)i + 1;
                for (int k = 0; k < t->n_src; k++) {
                    x[k] = *element(j, t->src[k], a, b, c);
                    all = all && known(x[k]);
                    id = identity(id, x[k]);
                }
                number y = t->op == R_WHERE && known(x[0]) ? chosen(x[0], x[1], x[2])
                           : !all                          ? unknown()
                           : t->n_src == 1                 ? unary(t->op, x[0])
                                                           : binary(t->op, x[0], x[1]);
                y.id = id;
                j->value[i][at] = y;
            }
}

/* --- rows ------------------------------------------------------------------------------------- */

/* Where element k along dim stands beside [a, b, c]. */
static const number *along(const judge *j, int i, int dim, int k, const int *at) {
    int p[3] = {at[0], at[1], at[2]};
    p[dim] = k;
    return element(j, i, p[0], p[1], p[2]);
}

static number sum(const judge *j, int x, int dim, const int *at) {
    int n = j->p->node[x].ne[dim];
    double v = 0, e = 0, size = 0;
    bool whole = true;
    for (int k = 0; k < n; k++) {
        number y = *along(j, x, dim, k, at);
        v += y.v;
        e += y.e;
        size += fabs(y.v);
        whole = whole && y.v == floor(y.v);
    }
    if (e == 0 && whole && size < 0x1p24)
        return (number){v, 0, 0};
    double steps = j->kind == JUDGE_EXACT ? 0 : dim == 0 ? n / 16 + 5 : n;
    return rounded(v, e + steps * UNIT * size, 2);
}

static number largest(const judge *j, int x, int dim, const int *at) {
    number top = *along(j, x, dim, 0, at);
    for (int k = 1; k < j->p->node[x].ne[dim]; k++) {
        number y = *along(j, x, dim, k, at);
        if (!known(y) || !known(top))
            return unknown();
        top = larger(top, y, false);
    }
    return top;
}

/* Whether x stands before y in the order of rank and topk: larger first, NaNs last. 2: it is
 * open. */
static int stands_before(number x, number y, bool earlier) {
    if (!known(x) || !known(y))
        return 2;
    if (isnan(x.v) || isnan(y.v))
        return isnan(x.v) == isnan(y.v) ? earlier : isnan(y.v);
    int o = order(x, y);
    return o == 0 ? earlier : o == 2 ? 2 : o == 1;
}

static number rank_of(const judge *j, int x, int k, const int *at) {
    int n = j->p->node[x].ne[0], place = 0;
    for (int i = 0; i < n; i++) {
        int before =
            i == k ? 0 : stands_before(*along(j, x, 0, i, at), *along(j, x, 0, k, at), i < k);
        if (before == 2)
            return unknown();
        place += before;
    }
    return (number){place, 0, 0};
}

static void reduce(judge *j, int i) {
    const r_node *t = &j->p->node[i];
    int dim = t->op == R_RANK ? 0 : (int)t->num[0];
    for (int c = 0, at = 0; c < t->ne[2]; c++)
        for (int b = 0; b < t->ne[1]; b++)
            for (int a = 0; a < t->ne[0]; a++, at++) {
                const int p[3] = {a, b, c};
                j->value[i][at] = t->op == R_SUM    ? sum(j, t->src[0], dim, p)
                                  : t->op == R_AMAX ? largest(j, t->src[0], dim, p)
                                                    : rank_of(j, t->src[0], a, p);
            }
}

static void topk(judge *j, int i) {
    const r_node *t = &j->p->node[i];
    const int first[3] = {0, 0, 0};
    for (int k = 0; k < t->ne[0]; k++)
        j->value[i][k] = unknown();
    for (int e = 0; e < j->p->node[t->src[0]].ne[0]; e++) {
        number place = rank_of(j, t->src[0], e, first);
        if (known(place) && place.v < t->ne[0])
            j->value[i][(int)place.v] = (number){e, 0, 0};
    }
}

/* A whole number from 0 to `most`; *open: it may be another one. */
static uint64_t whole_to(number x, double most, bool *open) {
    *open = *open || !known(x) || floor(x.v - x.e) != floor(x.v + x.e);
    return !(x.v >= 1) ? 0 : x.v < most ? (uint64_t)floor(x.v) : (uint64_t)most;
}

static uint64_t four_digits(judge *j, int x, int column, bool *open) {
    uint64_t sum = 0, place = 1;
    for (int k = 0; k < 4; k++, place *= 65536)
        sum += place * whole_to(*element(j, x, k, column, 0), 65535, open);
    return sum;
}

/* y[i] = first[i] + hash % into[i], where the hash of the first 2, 3, .. numbers of x is the xor of their products. */
static void ngrams(judge *j, int i) {
    const r_node *t = &j->p->node[i];
    const int m = j->p->node[t->src[0]].ne[0], each = t->ne[0] / (m - 1);
    for (int k = 0; k < t->ne[0]; k++) {
        bool open = false;
        uint64_t hash = 0;
        for (int n = 0; n < 2 + k / each; n++)
            hash ^= whole_to(*element(j, t->src[0], n, 0, 0), 16777216, &open) *
                    four_digits(j, t->src[1], n, &open);
        const uint64_t into = four_digits(j, t->src[2], k, &open),
                       at = four_digits(j, t->src[3], k, &open) + (into ? hash % into : 0);
        j->value[i][k] =
            open ? unknown() : (number){(double)at < t->num[0] ? (double)at : t->num[0] - 1, 0, 0};
    }
}

/* --- places ----------------------------------------------------------------------------------- */

/* y[.., k] = x[.., index[k]]; outside of x it is NaN. */
static void pick(judge *j, int i) {
    const r_node *t = &j->p->node[i], *x = &j->p->node[t->src[0]], *index = &j->p->node[t->src[1]];
    int inner = r_count(x) / x->ne[x->n_dims - 1];
    for (int k = 0; k < r_count(index); k++) {
        number at = j->value[t->src[1]][k];
        bool inside = at.v >= 0 && at.v < x->ne[x->n_dims - 1];
        for (int e = 0; e < inner; e++)
            j->value[i][k * inner + e] = !known(at) ? unknown()
                                         : inside   ? j->value[t->src[0]][(int)at.v * inner + e]
                                                    : (number){NAN, 0, 0};
    }
}

static number moved(const judge *j, const r_node *t, int at, const int *p) {
    int dim = (int)t->num[0], q[3] = {p[0], p[1], p[2]}, other;
    const r_node *x = &j->p->node[t->src[0]];
    switch (t->op) {
    case R_RESHAPE:
        return j->value[t->src[0]][at];
    case R_SPLIT:
        q[dim] += (int)t->num[1];
        break;
    case R_CONCAT:
        if (p[dim] >= x->ne[dim]) {
            q[dim] -= x->ne[dim];
            return *element(j, t->src[1], q[0], q[1], q[2]);
        }
        break;
    case R_TRANSPOSE:
        other = (int)t->num[1];
        q[dim] = p[other];
        q[other] = p[dim];
        break;
    default: /* REPEAT */
        break;
    }
    return *element(j, t->src[0], q[0], q[1], q[2]);
}

static void moves(judge *j, int i) {
    const r_node *t = &j->p->node[i];
    for (int c = 0, at = 0; c < t->ne[2]; c++)
        for (int b = 0; b < t->ne[1]; b++)
            for (int a = 0; a < t->ne[0]; a++, at++)
                j->value[i][at] = moved(j, t, at, (const int[]){a, b, c});
}

void judge_operator(judge *j, int i, const r_token *token) {
    const r_node *t = &j->p->node[i];
    switch (t->op) {
    case R_SUM:
    case R_AMAX:
    case R_RANK:
        reduce(j, i);
        return;
    case R_TOPK:
        topk(j, i);
        return;
    case R_NGRAMS:
        ngrams(j, i);
        return;
    case R_PICK:
        pick(j, i);
        return;
    case R_RESHAPE:
    case R_SPLIT:
    case R_CONCAT:
    case R_REPEAT:
    case R_TRANSPOSE:
        moves(j, i);
        return;
    case R_LINEAR:
        judge_linear(j, i);
        return;
    case R_LINEAR_BACK:
        judge_linear_back(j, i);
        return;
    case R_OUTER_SUM:
        judge_outer_sum(j, i);
        return;
    case R_ATTEND_BACK:
        judge_attend_back(j, i);
        return;
    case R_ROPE_HALF:
    case R_ROPE_PAIR:
        judge_rope(j, i, token);
        return;
    case R_IOTA:
        for (int e = 0; e < t->ne[0]; e++)
            j->value[i][e] = (number){e, 0, 0};
        return;
    default:
        elementwise(j, i);
    }
}
