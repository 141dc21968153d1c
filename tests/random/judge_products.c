/* Products, rotations, attention. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge_impl.h"

enum { MOST_ROW = 1024 };

/* --- products --------------------------------------------------------------------------------- */

/* What a product with weights of that type makes of its activations on the CPU: to bf16. */
static void as_bf16(number *x, int n) {
    for (int i = 0; i < n; i++) {
        double v = w_round_bf16(x[i].v), low = w_round_bf16(x[i].v - x[i].e),
               high = w_round_bf16(x[i].v + x[i].e);
        x[i] = (number){v, fmax(high - v, v - low) + 0x1p-56, 0};
    }
}

/* To whole codes of 127ths of the largest, 32 at a time. */
static void as_codes(number *x, int n) {
    for (int at = 0; at < n; at += 32) {
        double m = 0, off = 0;
        for (int i = at; i < at + 32; i++) {
            m = fmax(m, fabs(x[i].v));
            off = fmax(off, x[i].e);
        }
        for (int i = at; i < at + 32; i++) {
            if (m <= off || m < 0x1p-99) { /* all codes may be zero, below 2^-100 they are */
                x[i].e += off + fabs(x[i].v);
                continue;
            }
            double t = x[i].v * 127 / m, t_off = 127 * x[i].e / m + fabs(t) * (off / m + 4 * UNIT);
            double code = rint(t), low = fmax(-127, rint(t - t_off)),
                   high = fmin(127, rint(t + t_off));
            x[i].v = code * m / 127;
            x[i].e = fmax(high - code, code - low) * (m + off) / 127 + fabs(code) / 127 * off +
                     4 * UNIT * fabs(x[i].v);
        }
    }
}

static void prepare(const judge *j, int type, number *x, int n) {
    number y[MOST_ROW];
    if (j->kind == JUDGE_EXACT || !(type == W_BF16 || w_is_quantized(type)))
        return;
    memcpy(y, x, (size_t)n * sizeof *y);
    if (type == W_BF16)
        as_bf16(y, n);
    else
        as_codes(y, n);
    for (int i = 0; i < n; i++)
        if (j->kind == JUDGE_CPU)
            x[i] = y[i];
        else /* as it was, or as it is rounded */
            x[i].e = fmax(x[i].e, fabs(y[i].v - x[i].v) + y[i].e);
}

static number dot(const judge *j, const number *w, const number *x, int n) {
    double v = 0, e = 0, size = 0, most = 0;
    for (int i = 0; i < n; i++)
        most = fmax(most, fabs(w[i].v));
    for (int i = 0; i < n; i++) {
        v += w[i].v * x[i].v;
        e += fabs(w[i].v) * x[i].e + fabs(x[i].v) * w[i].e + x[i].e * w[i].e;
        size += most * fabs(x[i].v);
    }
    if (size == 0 && e == 0)
        return (number){isnan(v) ? NAN : 0, 0, 0};
    double steps = j->kind == JUDGE_EXACT ? 0 : n / 8 + 8;
    return rounded(v, e + steps * UNIT * size, 2);
}

/* y[.., j, k] = matrix (j, k) of w times row (j, k) of x, each of them the only one if it has but
 * one. */
void judge_linear(judge *j, int i) {
    const r_node *t = &j->p->node[i], *x = &j->p->node[t->src[0]], *w = &j->p->node[t->src[1]];
    int n = x->ne[0], type = W_F32;
    number row[MOST_ROW];
    bool chosen_outside = w->op == R_PICK && w->body != t->body; /* so it comes in as a value */
    if (chosen_outside || !r_of_weight(j->p, t->src[1], &type))
        type = W_F32;
    for (int c = 0, at = 0; c < t->ne[2]; c++)
        for (int b = 0; b < t->ne[1]; b++) {
            int matrix = b % w->ne[2] + w->ne[2] * (c % w->ne[3]);
            memcpy(row, element(j, t->src[0], 0, b, c), (size_t)n * sizeof *row);
            prepare(j, type, row, n);
            for (int a = 0; a < t->ne[0]; a++, at++) {
                number y = dot(j, j->value[t->src[1]] + n * (a + w->ne[1] * matrix), row, n);
                if (t->src[2] >= 0) {
                    number bias = *element(j, t->src[2], a, b, c);
                    y = rounded(y.v + bias.v, y.e + bias.e, 1);
                }
                j->value[i][at] = y;
            }
        }
}

/* A sum of products that begins with a number, one after the other. */
typedef struct chain {
    double v, e, size;
    int n;
} chain;

static void add_product(chain *c, number a, number b) {
    c->v += a.v * b.v;
    c->e += fabs(a.v) * b.e + fabs(b.v) * a.e + a.e * b.e;
    c->size += fabs(a.v * b.v);
    c->n++;
}

static number end_chain(const judge *j, const chain *c) {
    double steps = j->kind == JUDGE_EXACT ? 0 : c->n + 1;
    return rounded(c->v, c->e + steps * UNIT * (c->size + fabs(c->v)), 2);
}

/* Adds the product, in bf16 if it is one of such. */
static void add_as(const judge *j, chain *c, bool bf16, number a, number b) {
    if (bf16) {
        prepare(j, W_BF16, &a, 1);
        prepare(j, W_BF16, &b, 1);
    }
    add_product(c, a, b);
}

/* y[a] = the sum over r of w[a, r] dy[r]. */
void judge_linear_back(judge *j, int i) {
    const r_node *t = &j->p->node[i], *dy = &j->p->node[t->src[0]], *w = &j->p->node[t->src[1]];
    for (int c = 0, at = 0; c < t->ne[2]; c++)
        for (int b = 0; b < t->ne[1]; b++)
            for (int a = 0; a < t->ne[0]; a++, at++) {
                chain sum = {0};
                for (int r = 0; r < dy->ne[0]; r++)
                    add_as(j, &sum, t->num[0] != 0,
                           *element(j, t->src[1], a, r, w->ne[2] == 1 ? 0 : b),
                           *element(j, t->src[0], r, b, c));
                j->value[i][at] = end_chain(j, &sum);
            }
}

/* y[a, b, m] = into[a, b, m] + the sum of x[a] dy[b] over all rows k whose matrix is m. Of values that are the same for all. */
void judge_outer_sum(judge *j, int i) {
    const r_node *t = &j->p->node[i], *x = &j->p->node[t->src[0]], *dy = &j->p->node[t->src[1]];
    const int n = x->ne[1] > dy->ne[1] ? x->ne[1] : dy->ne[1];
    for (int m = 0, at = 0; m < t->ne[2]; m++)
        for (int b = 0; b < t->ne[1]; b++)
            for (int a = 0; a < t->ne[0]; a++, at++) {
                chain sum = {0};
                if (t->src[3] >= 0) {
                    number into = j->value[t->src[3]][at];
                    sum = (chain){into.v, into.e, fabs(into.v), 0};
                }
                for (int k = 0; k < n; k++) {
                    int matrix = t->src[2] >= 0     ? (int)element(j, t->src[2], k, 0, 0)->v
                                 : isnan(t->num[0]) ? 0
                                                    : k;
                    if (matrix == m)
                        add_as(j, &sum, t->num[1] != 0, *element(j, t->src[0], a, k, 0),
                               *element(j, t->src[1], b, k, 0));
                }
                j->value[i][at] = end_chain(j, &sum);
            }
}

/* --- rotations -------------------------------------------------------------------------------- */

void judge_rope(judge *j, int i, const r_token *token) {
    const r_node *t = &j->p->node[i];
    int n = t->ne[0], r = j->p->node[t->src[1]].ne[0];
    double mag = isnan(t->num[0]) ? 1 : t->num[0];
    for (int row = 0; row < r_count(t) / n; row++) {
        const number *x = j->value[t->src[0]] + row * n;
        number *y = j->value[i] + row * n;
        memcpy(y, x, (size_t)n * sizeof *y);
        for (int k = 0; k < r; k++) {
            int a = t->op == R_ROPE_HALF ? k : 2 * k, b = t->op == R_ROPE_HALF ? k + r : 2 * k + 1;
            number f = j->value[t->src[1]][k];
            double angle = token->pos * f.v, c = cos(angle) * mag, s = sin(angle) * mag;
            double off = fabs(mag) * (token->pos * f.e + 2 * UNIT) * (fabs(x[a].v) + fabs(x[b].v));
            y[a] = rounded(x[a].v * c - x[b].v * s, fabs(c) * x[a].e + fabs(s) * x[b].e + off, 2);
            y[b] = rounded(x[a].v * s + x[b].v * c, fabs(s) * x[a].e + fabs(c) * x[b].e + off, 2);
        }
    }
}

/* --- attention -------------------------------------------------------------------------------- */

/* True if the value is the leading part of the key, and so lies in it, in its type. */
static bool is_within(const judge *j, const r_node *cache) {
    const r_node *x = &j->p->node[cache->src[1]];
    return x->op == R_SPLIT && x->src[0] == cache->src[0] && x->num[0] == 0 && x->num[1] == 0;
}

/* The contents of a slot for a CACHE: for each position the key, then the value. */
void judge_cache(judge *j, int i, const r_token *token) {
    const r_node *t = &j->p->node[i];
    int size = j->keeps[i].size / j->p->n_pos;
    number *row = judge_state(j, i, token->slot) + token->pos * size;
    for (int part = 0; part < 2; part++) {
        const r_node *x = &j->p->node[t->src[part]];
        bool within = part == 1 && is_within(j, t);
        int type = part == 0 || within ? j->p->type_k : j->p->type_v, n = x->ne[0];
        if (within) {
            const r_node *k = &j->p->node[t->src[0]];
            for (int e = 0; e < r_count(x); e++)
                row[e] = row[e / n * k->ne[0] + e % n - r_count(k)];
            continue;
        }
        for (int h = 0; h < x->ne[1]; h++, row += n) {
            double v[MOST_ROW], e[MOST_ROW];
            for (int k = 0; k < n; k++) {
                number y = j->value[t->src[part]][h * n + k];
                v[k] = known(y) ? y.v : 0;
                e[k] = y.e;
            }
            w_keep(type, n, v, e);
            for (int k = 0; k < n; k++)
                row[k] = (number){v[k], isnan(e[k]) ? INFINITY : e[k], 0};
        }
    }
}

typedef struct attention {
    int head, of, d, n_heads; /* the query's head, the keys' head, its size, how many key heads */
    int size, e;              /* of a position; of a value's row */
    const number *rows;
    number query[MOST_ROW]; /* of the head, as its products take it */
    number plain[MOST_ROW]; /* as its products with relative positions take it */
    int type_v;             /* of values with weights that are rounded; else W_F32 */
    int first, pos;
} attention;

/* For quantized values, the CPU rounds the weight of a position times the scale of its block to a
 * whole number of 16256ths of the largest scale in the page. So it is off by half of one, and by
 * roundings to f32. */

static const number *value_of(const attention *a, int p) {
    return a->rows + p * a->size + a->size - a->n_heads * a->e + a->of * a->e;
}

/* The scale of a block of values, from the largest of them, whose code is the largest: at most. */
static double most_scale(const number *v, int levels) {
    double most = 0;
    for (int i = 0; i < 32; i++)
        most = fmax(most, fabs(v[i].v) + v[i].e);
    return most / levels >= 0x1p-14 ? most / levels : most / levels * 2 + 0x1p-24; /* f16 */
}

/* The code of v in its block, without its sign: at most. */
static double most_code(const number *block, const number *v, int levels) {
    double most = 0;
    for (int i = 0; i < 32; i++)
        most = fmax(most, fabs(block[i].v) - block[i].e);
    return most / levels >= 0x1p-14 ? fmin(levels, (fabs(v->v) + v->e) * levels / most) : levels;
}

/* How far element i may be off by the rounding of weights; share: of each position. */
static double off_by_weights(const attention *a, int i, const double *share, double top_share) {
    const int levels = a->type_v == W_Q8_0 ? 127 : 8;
    double off = 0;
    for (int p = a->first, next; p <= a->pos; p = next) {
        double scale = 0, most = 0;
        next = p / 64 * 64 + 64 <= a->pos ? p / 64 * 64 + 64 : a->pos + 1;
        for (int k = p; k < next; k++) {
            scale = fmax(scale, most_scale(value_of(a, k) + i / 32 * 32, levels));
            most = fmax(most, share[k]);
        }
        for (int k = p; k < next; k++) {
            const number *v = value_of(a, k) + i;
            off += most * 0.51 / 16256 * scale * most_code(v - i % 32, v, levels);
        }
    }
    return off / top_share;
}

/* Returns the index of the distance among those of -m .. m, of which there are n; farther ones are as m. */
static int index_of(int distance, int n) {
    const int m = n / 2;
    return m + (distance < -m ? -m : distance > m ? m : distance);
}

/* Returns the row of relative positions, of n, that node `row` has for the distance. */
static int relative_row(const judge *j, int row, int distance, int n) {
    const int at = index_of(distance, j->p->node[row].ne[0]);
    const float x = (float)element(j, row, at, 0, 0)->v;
    return x >= (float)(n - 1) ? n - 1 : x > 0 ? (int)x : 0;
}

/* Adds the product of x and the distance's row in a table to *v, and to its error and size. */
static void add_relative(const judge *j, const r_node *t, const attention *a, int table, int p,
                         const number *x, double *v, double *e, double *size) {
    const r_node *all = &j->p->node[table];
    const int r = relative_row(j, t->src[7], p - a->pos, all->ne[1]);
    for (int i = 0; i < a->d; i++) {
        const number *y = element(j, table, i, r, all->ne[2] == 1 ? 0 : a->of);
        *v += x[i].v * y->v;
        *e += fabs(x[i].v) * y->e + fabs(y->v) * x[i].e + x[i].e * y->e;
        *size += fabs(x[i].v * y->v);
    }
}

static number score(const judge *j, const r_node *t, const attention *a, int p) {
    const number *q = a->query, *k = a->rows + p * a->size + a->of * a->d;
    double v = 0, e = 0, size = 0, cap = t->num[2];
    double scale = isnan(t->num[0]) ? 1 / sqrt(a->d) : t->num[0];
    for (int i = 0; i < a->d; i++) {
        v += q[i].v * k[i].v;
        e += fabs(q[i].v) * k[i].e + fabs(k[i].v) * q[i].e + q[i].e * k[i].e;
        size += fabs(q[i].v * k[i].v);
    }
    if (t->src[5] >= 0)
        add_relative(j, t, a, t->src[5], p, a->plain, &v, &e, &size);
    if (t->src[6] >= 0)
        add_relative(j, t, a, t->src[6], p, k, &v, &e, &size);
    number s = rounded(v * scale, fabs(scale) * (e + (a->d + 2) * UNIT * size), 2);
    if (!isnan(cap)) {
        double off = s.e;
        s = rounded(cap * tanh(s.v / cap), off, 10);
    }
    if (t->src[3] >= 0) {
        number slope = *element(j, t->src[3], a->head, 0, 0);
        double far = a->pos - p;
        s = rounded(s.v - slope.v * far, s.e + slope.e * far + UNIT * fabs(slope.v * far), 1);
    }
    if (t->src[4] >= 0) {
        const int at = index_of(p - a->pos, j->p->node[t->src[4]].ne[0]);
        number bias = *element(j, t->src[4], at, a->head, 0);
        s = rounded(s.v + bias.v, s.e + bias.e, 1);
    }
    return s;
}

/* One head: the sum of the values by their shares. If all scores are off by at most `off`, each
 * share is off by a factor of at most exp(2 off). */
static void attend_head(const judge *j, const r_node *t, const attention *a, number *out) {
    double s[R_MOST_TOKENS + 64], top = -INFINITY, total = 0, off = 0;
    number sink = {-INFINITY, 0, 0};
    if (t->src[2] >= 0)
        sink = *element(j, t->src[2], a->head, 0, 0);
    for (int p = a->first; p <= a->pos; p++) {
        number x = score(j, t, a, p);
        s[p] = x.v;
        off = fmax(off, known(x) && !isnan(x.v) ? x.e + UNIT * fabs(x.v) : INFINITY);
        top = fmax(top, x.v);
    }
    off = fmax(off, sink.e);
    top = fmax(top, sink.v);
    for (int p = a->first; p <= a->pos; p++)
        total += s[p] = exp(s[p] - top);
    total += exp(sink.v - top);
    double factor = off < 1 ? expm1(2 * off + 16 * UNIT) : INFINITY;
    for (int i = 0; i < a->e; i++) {
        double y = 0, e = 0, size = 0;
        const number *v = value_of(a, 0) + i;
        for (int p = a->first; p <= a->pos; p++)
            y += s[p] / total * v[p * a->size].v;
        for (int p = a->first; p <= a->pos; p++) {
            number x = v[p * a->size];
            /* exp gives 0 below the normal numbers */
            e += s[p] / total * (x.e + factor * (fabs(x.v - y) + x.e)) + 0x1p-125 * fabs(x.v);
            size += s[p] / total * fabs(v[p * a->size].v);
        }
        e += exp(sink.v - top) / total * factor * fabs(y);
        if (j->kind != JUDGE_EXACT && w_is_quantized(a->type_v))
            e += off_by_weights(a, i, s, total);
        out[i] = rounded(y, e + (a->pos - a->first + 16) * UNIT * size, 2);
    }
}

/* The product of head h with a key. */
static number choice_product(const judge *j, const r_node *t, int h, const number *key) {
    const r_node *q = &j->p->node[t->src[0]];
    const number *x = j->value[t->src[0]] + h * q->ne[0];
    double product = 0, off = 0, size = 0;
    for (int i = 0; i < q->ne[0]; i++) {
        product += x[i].v * key[i].v;
        off += fabs(x[i].v) * key[i].e + fabs(key[i].v) * x[i].e + x[i].e * key[i].e;
        size += fabs(x[i].v * key[i].v);
    }
    return isfinite(product) ? (number){product, off + (q->ne[0] + 2) * UNIT * size, 0} : unknown();
}

/* The score of a key: the sum over heads of w times what is above 0 of the product; without w, the product of head `list`. */
static number choice_score(const judge *j, const r_node *t, int list, const number *key) {
    const int n_heads = j->p->node[t->src[0]].ne[1];
    double v = 0, e = 0;
    if (t->src[2] < 0)
        return choice_product(j, t, list, key);
    for (int h = 0; h < n_heads; h++) {
        const number *w = element(j, t->src[2], h, 0, 0), x = choice_product(j, t, h, key);
        if (!known(x) || isnan(w->v))
            return unknown();
        const double above = x.v > 0 ? x.v : 0;
        const bool is_zero = x.v <= -x.e || (x.v == 0 && x.e == 0);
        v += w->v * above;
        e += is_zero ? 0
                     : fabs(w->v) * x.e + w->e * (above + x.e) + UNIT * fabs(w->v) * (above + x.e);
    }
    return e == 0 && v == 0 ? (number){0, 0, 0} : rounded(v, e, n_heads);
}

/* The largest score of n keys, each of `size` numbers. */
static number choice_most(const judge *j, const r_node *t, int list, const number *key, int n,
                          int size) {
    number most = choice_score(j, t, list, key);
    for (int i = 1; i < n && known(most); i++) {
        const number x = choice_score(j, t, list, key + i * size);
        const double e = x.e > most.e ? x.e : most.e;
        if (!known(x))
            return unknown();
        most = x.v > most.v ? x : most;
        most.e = e;
    }
    return most;
}

/* Returns whether group `at` is among the k best of n; 2: it is open. */
static int is_best(const number *s, int n, int at, int k) {
    int before = 0, open = 0;
    for (int g = 0; g < n; g++) {
        const double off = s[g].e + s[at].e;
        const bool equal = s[g].v == s[at].v && off == 0;
        if (g == at)
            continue;
        if (!known(s[g]) || !known(s[at]) || (!equal && fabs(s[g].v - s[at].v) <= off))
            open++;
        else
            before += equal ? g < at : s[g].v > s[at].v;
    }
    return before >= k ? 0 : before + open < k ? 1 : 2;
}

/* What one list of a token has. */
static void judge_list(judge *j, int i, int list, const r_token *token) {
    const r_node *t = &j->p->node[i];
    const bool of_all = !isnan(t->num[2]); /* the keys of a group */
    const int every = (int)t->num[1], seen = token->pos + 1,
              size = j->keeps[t->src[1]].size / j->p->n_pos,
              groups = of_all ? (seen + every - 1) / every : seen / every,
              own = !of_all              ? 0
                    : t->num[2] < groups ? (int)t->num[2]
                                         : groups,
              n = groups - own, best = (int)t->num[0] - own;
    const number *rows = judge_state(j, t->src[1], token->slot);
    number score[R_MOST_TOKENS + 64], *begin = j->value[i] + list * t->ne[0], *out = begin,
                                      *end = out + t->ne[0];
    bool open = false;
    for (int g = 0; g < n; g++) {
        const int first = g * every, last = first + every < seen ? first + every : seen;
        score[g] = of_all ? choice_most(j, t, list, rows + first * size, last - first, size)
                          : choice_score(j, t, list, rows + (last - 1) * size);
    }
    for (int g = 0; g < n && !open; g++) {
        const int is = n <= best ? 1 : is_best(score, n, g, best);
        open = is == 2;
        for (int k = g * every; k < (g + 1) * every && k < seen && is == 1; k++)
            *out++ = (number){k, 0, 0};
    }
    for (int p = n * every; p < seen && !open; p++)
        *out++ = (number){p, 0, 0};
    for (out = open ? begin : out; out < end; out++)
        *out = open ? unknown() : (number){-1, 0, 0};
}

void judge_choose_rows(judge *j, int i, const r_token *token) {
    for (int list = 0; list < j->p->node[i].ne[1]; list++)
        judge_list(j, i, list, token);
}

/* Puts the chosen rows of a list side by side: they are then seen as positions 0 .. n - 1. False: it is open which ones are. */
static bool take_chosen(const judge *j, int chosen, int list, attention *a, number *rows) {
    int n = 0;
    for (; n < j->p->node[chosen].ne[0]; n++) {
        const number at = *element(j, chosen, n, list, 0);
        if (!known(at) || isnan(at.v))
            return false;
        if (at.v < 0)
            break;
        const int p = at.v < a->pos + 1 ? (int)at.v : a->pos;
        memcpy(rows + n * a->size, a->rows + p * a->size, (size_t)a->size * sizeof *rows);
    }
    if (n == 0)
        memcpy(rows, a->rows + a->pos * a->size, (size_t)a->size * sizeof *rows);
    a->rows = rows;
    a->first = 0;
    a->pos = n > 0 ? n - 1 : 0;
    a->type_v = W_F32;
    return true;
}

void judge_attend(judge *j, int i, const r_token *token) {
    const r_node *t = &j->p->node[i], *q = &j->p->node[t->src[0]], *cache = &j->p->node[t->src[1]];
    const r_node *k = &j->p->node[cache->src[0]], *v = &j->p->node[cache->src[1]];
    double window = t->num[1];
    attention all = {.d = q->ne[0],
                     .n_heads = k->ne[1],
                     .e = v->ne[0],
                     .size = j->keeps[t->src[1]].size / j->p->n_pos,
                     .rows = judge_state(j, t->src[1], token->slot),
                     .pos = token->pos};
    all.first = isnan(window) || token->pos < window ? 0 : token->pos - (int)window + 1;
    all.type_v = is_within(j, cache) ? W_F32 : j->p->type_v;
    const int chosen = t->n_src > 9 ? t->src[9] : -1;
    number *own =
        chosen >= 0 ? calloc((size_t)(j->p->node[chosen].ne[0] * all.size), sizeof *own) : NULL;
    for (int head = 0; head < q->ne[1]; head++) {
        attention a = all;
        a.head = head;
        a.of = head * k->ne[1] / q->ne[1];
        if (chosen >= 0 && (!own || !take_chosen(j, chosen, a.of, &a, own))) {
            for (int at = 0; at < a.e; at++)
                j->value[i][head * a.e + at] = unknown();
            continue;
        }
        memcpy(a.query, j->value[t->src[0]] + a.head * a.d, (size_t)a.d * sizeof *a.query);
        memcpy(a.plain, a.query, sizeof a.query);
        if (w_is_quantized(j->p->type_k) &&
            chosen < 0) /* keys of other types, and chosen ones, are multiplied as floats */
            prepare(j, j->p->type_k, a.query, a.d);
        attend_head(j, t, &a, j->value[i] + a.head * a.e);
    }
    free(own);
}

/* --- gradients of attention ------------------------------------------------------------------- */

static number times(number a, number b) {
    return rounded(a.v * b.v, fabs(a.v) * b.e + fabs(b.v) * a.e + a.e * b.e, 1);
}

static number minus(number a, number b) {
    return rounded(a.v - b.v, a.e + b.e, 1);
}

static number dot_of(const judge *j, const number *a, const number *b, int n) {
    chain sum = {0};
    for (int i = 0; i < n; i++)
        add_product(&sum, a[i], b[i]);
    return end_chain(j, &sum);
}

/* Adds a to what several heads make. */
static void add_to(number *sum, number a) {
    *sum = rounded(sum->v + a.v, sum->e + a.e, 2);
}

/* Each token sees itself, and the sink: its score s is tanh'ed if there is a cap, and its share is p = 1 / (1 + exp(sink - s)). */
void judge_attend_back(judge *j, int i) {
    const r_node *t = &j->p->node[i];
    const int d = j->p->node[t->src[0]].ne[0], h = j->p->node[t->src[0]].ne[1],
              g = j->p->node[t->src[1]].ne[1], e = j->p->node[t->src[2]].ne[0];
    const double cap = t->num[2], scale = isnan(t->num[0]) ? 1 / sqrt(d) : t->num[0];
    const int by_query = t->src[8], by_key = t->src[9], any = by_query >= 0 ? by_query : by_key,
              n = any < 0 ? 0 : j->p->node[any].ne[0],
              row = any < 0 ? 0 : relative_row(j, t->src[10], 0, n);
    number *dq = j->value[i], *dk = dq + d * h, *dv = dk + d * g, *dsink = dv + e * g,
           *dq_rel = dsink + (t->src[4] >= 0 ? h : 0),
           *dk_rel = dq_rel + (by_query >= 0 ? n * h : 0);
    for (number *k = dk; k < j->value[i] + t->ne[0]; k++)
        *k = (number){0, 0, 0};
    for (int head = 0; head < h; head++) {
        const int of = head / (h / g);
        const number *q = j->value[t->src[0]] + head * d, *k = j->value[t->src[1]] + of * d,
                     *v = j->value[t->src[2]] + of * e, *dy = j->value[t->src[3]] + head * e;
        number s = dot_of(j, q, k, d), slope = {1, 0, 0}, share = {1, UNIT, 0};
        if (by_query >= 0)
            add_to(&s, *element(j, by_query, row, head, 0));
        if (by_key >= 0)
            add_to(&s, *element(j, by_key, row, of, 0));
        s = rounded(s.v * scale, fabs(scale) * s.e, 2);
        if (!isnan(cap)) {
            const double off = s.e / cap + 8 * UNIT, th = tanh(s.v / cap);
            slope = (number){1 - th * th, 2 * off + 4 * UNIT, 0};
            s = rounded(cap * th, cap * off, 2);
        }
        if (t->src[4] >= 0) {
            const number sink = *element(j, t->src[4], head, 0, 0);
            const double off = s.e + sink.e + UNIT * (fabs(s.v) + fabs(sink.v)) + 16 * UNIT;
            share.v = 1 / (1 + exp(sink.v - s.v));
            share.e = off < 1 ? fmin(1, expm1(2 * off)) + 0x1p-120 : INFINITY;
        }
        const number of_value = dot_of(j, dy, v, e), mean = times(share, of_value);
        number ds = times(times(minus(of_value, mean), share), slope);
        ds = rounded(ds.v * scale, fabs(scale) * ds.e, 2);
        for (int c = 0; c < d; c++) {
            dq[head * d + c] = times(ds, k[c]);
            add_to(&dk[of * d + c], times(ds, q[c]));
        }
        for (int c = 0; c < e; c++)
            add_to(&dv[of * e + c], times(share, dy[c]));
        if (by_query >= 0)
            dq_rel[head * n + row] = ds;
        if (by_key >= 0)
            add_to(&dk_rel[of * n + row], ds);
        if (t->src[4] >= 0) {
            const number rest = {1 - share.v, share.e, 0}, product = times(rest, mean);
            dsink[head] = (number){-product.v, product.e, 0};
        }
    }
}
