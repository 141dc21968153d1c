/* conformance.cpu: whole attention steps with seeded shapes, numbers and batches, in every instruction
 * set, with several threads and pieces. Each must have the bits of docs/numeric.md, section 6, which
 * is computed here head by head from the rows as they are stored. */
#include <math.h>

#include "../../backends/cpu/cpu_features.h"
#include "attend_codes.h"
#include "ggl/backends.h"
#include "ggl/internal/math.h"
#include "ggl/sched.h"
#include "kernels.h"
#include "seed.h"

enum { MOST_TOKENS = 400, MOST_SLOTS = 3, MOST_BATCH = 130, N_POS = 2304, SPAN = 1024 };

typedef struct problem {
    uint64_t seed;
    int64_t d, e, heads, store_heads, window;
    bool part, sinks, alibi; /* part: values are the leading part of the keys */
    bool whole;              /* tokens see all those of their slot, which are in one run */
    int64_t far;             /* there are biases for the distances -far .. far; -1: none */
    int64_t rows,
        near; /* rows of relative positions, 0: none; they have numbers for the distances -near .. near */
    int64_t tables;        /* of them: one for all heads of the store, or one for each */
    bool by_query, by_key; /* rel_k, rel_q */
    float cap, scale;      /* NAN: none */
    ggl_type type_k, type_v;
    int n_slots, n;            /* slots, tokens */
    int n_batch;               /* most tokens of a batch */
    int32_t start[MOST_SLOTS]; /* the slot's first position */
    int32_t pos[MOST_TOKENS], slot[MOST_TOKENS];
    int32_t end[MOST_TOKENS]; /* of a whole problem: the tokens of the slot */
    bool within;              /* each token sees a part of these rows alone */
    float part_of[MOST_TOKENS][2];
    float *q, *k, *v, *sink, *slope, *bias, *rel_k, *rel_q, *row;
} problem;

static uint64_t below(uint64_t *seed, uint64_t n) {
    return test_random(seed) % n;
}

/* --- numbers -------------------------------------------------------------------------------- */

enum { ANY_SIZE = 1, ONE_SIZE, SOME_SPECIAL, N_KINDS };

/* n numbers in rows: ordinary ones; rows of any magnitude; all of one magnitude; some special. */
static float *numbers(uint64_t *seed, int64_t rows, int64_t n) {
    static const float special[] = {0,         -0.0f,  INFINITY, -INFINITY, NAN,        0x1p-149f,
                                    0x1p-126f, 1e-30f, 65504,    65520,     8400000.0f, 3e38f};
    float *x = malloc((size_t)(rows * n) * sizeof *x);
    const uint64_t kind = below(seed, N_KINDS);
    for (int64_t r = 0; r < rows; r++) {
        const float by = kind == ANY_SIZE ? ldexpf(1, (int)below(seed, 140) - 120) : 1;
        for (int64_t i = 0; i < n; i++) {
            float y = test_random_float(seed);
            y = kind == ONE_SIZE ? (y < 0 ? -1.5f : 1.5f) : y * by;
            if (kind == SOME_SPECIAL && below(seed, 3000) == 0)
                y = special[below(seed, sizeof special / sizeof *special)];
            x[r * n + i] = y;
        }
    }
    return x;
}

static void choose_types(problem *p, uint64_t *seed) {
    static const ggl_type type[] = {GGL_F32, GGL_F16, GGL_BF16, GGL_Q8_0, GGL_Q4_0};
    p->type_k = type[below(seed, 5)];
    p->type_v = below(seed, 2) ? p->type_k : type[below(seed, 5)];
    p->d = 1 + (int64_t)below(seed, 80);
    p->e = below(seed, 2) ? p->d : 1 + (int64_t)below(seed, 80);
    p->part = below(seed, 6) == 0;
    if (ggl_type_get(p->type_k)->quantized)
        p->d = (p->d + 31) / 32 * 32;
    if (ggl_type_get(p->type_v)->quantized && !p->part)
        p->e = (p->e + 31) / 32 * 32;
    if (p->part)
        p->e = p->e < p->d ? p->e : p->d;
}

/* Each slot's positions go on from where it starts; turns have one slot. */
static void choose_tokens(problem *p, uint64_t *seed) {
    int32_t next[MOST_SLOTS];
    const bool long_ones = below(seed, 3) == 0;
    p->n_slots = 1 + (int)below(seed, MOST_SLOTS);
    p->n_batch = 1 + (int)below(seed, MOST_BATCH);
    p->n = 1 + (int)below(seed, MOST_TOKENS);
    for (int s = 0; s < p->n_slots; s++)
        next[s] = p->start[s] = long_ones ? (int32_t)below(seed, 1900) : 0;
    for (int i = 0; i < p->n;) {
        const int s = (int)below(seed, (uint64_t)p->n_slots);
        for (int turn = 1 + (int)below(seed, below(seed, 2) ? 3 : 150); turn > 0 && i < p->n;
             turn--) {
            p->slot[i] = s;
            p->pos[i++] = next[s]++;
        }
    }
}

/* Makes the slots' tokens whole texts. */
static void see_all(problem *p) {
    int32_t n[MOST_SLOTS] = {0};
    p->n = p->n < p->n_batch ? p->n : p->n_batch;
    p->type_k = p->type_v = GGL_F32; /* as which the graph keeps such rows */
    for (int i = 0; i < p->n; i++)
        p->pos[i] = n[p->slot[i]]++;
    for (int i = 0; i < p->n; i++)
        p->end[i] = n[p->slot[i]];
    memset(p->start, 0, sizeof p->start);
}

/* Rows that grow with the distance, as buckets of distances do, or any; also numbers that are not whole, and none of a row. */
static void choose_rows(problem *p, uint64_t *seed) {
    static const float odd[] = {-3, -0.5f, 0.999f, 1e30f, -INFINITY, INFINITY, NAN};
    const bool any = below(seed, 3) == 0;
    p->rows = below(seed, 3) ? 0 : 1 + (int64_t)below(seed, 90);
    p->near = (int64_t)below(seed, 200);
    p->by_query = below(seed, 3) > 0;
    p->by_key = !p->by_query || below(seed, 3) > 0;
    p->tables = below(seed, 2) ? 1 : p->store_heads;
    p->row = malloc((size_t)(2 * p->near + 1) * sizeof *p->row);
    for (int64_t i = 0; i <= 2 * p->near; i++) {
        p->row[i] = any ? (float)below(seed, (uint64_t)p->rows + 1) + 0.5f
                        : (float)(i * p->rows / (2 * p->near + 1));
        if (any && below(seed, 9) == 0)
            p->row[i] = odd[below(seed, sizeof odd / sizeof *odd)];
    }
}

/* Blocks of rows side by side, or any rows; also parts that have no row of what the token sees, and numbers that are not whole. */
static void choose_within(problem *p, uint64_t *seed) {
    static const float odd[] = {-3, -0.5f, 0.999f, 1e30f, -INFINITY, INFINITY, NAN};
    const bool any = below(seed, 3) == 0;
    const int64_t n = 1 + (int64_t)below(seed, 130);
    p->within = below(seed, 3) == 0;
    for (int i = 0; i < p->n; i++) {
        p->part_of[i][0] = (float)(p->pos[i] / n * n);
        p->part_of[i][1] = p->part_of[i][0] + (float)n;
        for (int k = 0; any && k < 2; k++) {
            p->part_of[i][k] = (float)below(seed, 450) + 0.5f * (float)below(seed, 2);
            if (below(seed, 9) == 0)
                p->part_of[i][k] = odd[below(seed, sizeof odd / sizeof *odd)];
        }
    }
}

static void problem_new(problem *p, uint64_t seed) {
    *p = (problem){.seed = seed};
    seed = seed * 0x9e3779b97f4a7c15u + 1;
    choose_types(p, &seed);
    choose_tokens(p, &seed);
    p->whole = below(&seed, 3) == 0;
    if (p->whole)
        see_all(p);
    p->far = below(&seed, 4) ? -1 : (int64_t)below(&seed, 90);
    p->store_heads = 1 + (int64_t)below(&seed, 3);
    p->heads = p->store_heads * (1 + (int64_t)below(&seed, below(&seed, 3) ? 4 : 12));
    p->window = below(&seed, 3) ? 0 : 1 + (int64_t)below(&seed, 200);
    p->cap = below(&seed, 4) ? NAN : 3.5f;
    p->scale = below(&seed, 2) ? NAN : 0.3f;
    p->sinks = below(&seed, 3) == 0;
    p->alibi = below(&seed, 4) == 0;
    p->q = numbers(&seed, p->n, p->d * p->heads);
    p->k = numbers(&seed, p->n, p->d * p->store_heads);
    p->v = numbers(&seed, p->n, p->e * p->store_heads);
    p->sink = numbers(&seed, 1, p->heads);
    p->slope = numbers(&seed, 1, p->heads);
    p->bias = numbers(&seed, p->heads, 2 * (p->far < 0 ? 0 : p->far) + 1);
    choose_rows(p, &seed);
    p->rel_k = numbers(&seed, (p->rows + 1) * p->tables, p->d);
    p->rel_q = numbers(&seed, (p->rows + 1) * p->tables, p->d);
    choose_within(p, &seed);
}

static void problem_free(problem *p) {
    free(p->q);
    free(p->k);
    free(p->v);
    free(p->sink);
    free(p->slope);
    free(p->bias);
    free(p->rel_k);
    free(p->rel_q);
    free(p->row);
}

/* --- the contract ---------------------------------------------------------------------------- */

typedef struct rows_of_head {
    char k[N_POS][80 * 4 + 64], v[N_POS][80 * 4 + 64]; /* encoded */
    float x[N_POS][96], y[N_POS][96];                  /* decoded */
} rows_of_head;
static rows_of_head kept; /* of one head of one slot */

static bool is_quantized(ggl_type type) {
    return ggl_type_get(type)->quantized;
}

/* The rows of a head that slot s has after token `last`; those that nobody stored are 0. */
static void keep_rows(const problem *p, int s, int64_t h, int last) {
    const ggl_type_info *tk = ggl_type_get(p->type_k), *tv = ggl_type_get(p->type_v);
    memset(&kept, 0, sizeof kept);
    for (int i = 0; i <= last; i++) {
        const int32_t j = p->pos[i];
        if (p->slot[i] != s)
            continue;
        tk->from_float(p->k + (i * p->store_heads + h) * p->d, kept.k[j], p->d);
        tk->to_float(kept.k[j], kept.x[j], p->d);
        if (p->part) {
            memcpy(kept.y[j], kept.x[j], (size_t)p->e * sizeof(float));
            continue;
        }
        tv->from_float(p->v + (i * p->store_heads + h) * p->e, kept.v[j], p->e);
        tv->to_float(kept.v[j], kept.y[j], p->e);
    }
}

static float product(const problem *p, const float *q, int64_t j) {
    float a = 0;
    if (is_quantized(p->type_k))
        return product_of_codes(p->type_k, kept.k[j], q, p->d);
    for (int64_t i = 0; i < p->d; i++)
        a = fmaf(kept.x[j][i], q[i], a);
    return a;
}

static int64_t nearest(int64_t distance, int64_t far) {
    return distance < -far ? -far : distance > far ? far : distance;
}

/* The product of x and the row of the distance in a table, of the head of the store. */
static float relative(const problem *p, const float *table, int64_t head, int64_t distance,
                      const float *x) {
    const float number = p->row[p->near + nearest(distance, p->near)];
    const int64_t r = number >= (float)p->rows ? p->rows - 1
                      : number > 0             ? (int64_t)number
                                               : 0,
                  t = p->tables == 1 ? 0 : head / (p->heads / p->store_heads);
    float a = 0;
    for (int64_t i = 0; i < p->d; i++)
        a = fmaf(table[(t * p->rows + r) * p->d + i], x[i], a);
    return a;
}

static float score(const problem *p, int token, int64_t head, int64_t j) {
    const float scale = isnan(p->scale) ? (float)(1 / sqrt((double)p->d)) : p->scale,
                *q = p->q + (token * p->heads + head) * p->d;
    float s = product(p, q, j);
    if (p->rows && p->by_query)
        s += relative(p, p->rel_k, head, j - p->pos[token], q);
    if (p->rows && p->by_key)
        s += relative(p, p->rel_q, head, j - p->pos[token], kept.x[j]);
    s *= scale;
    if (!isnan(p->cap)) {
        const float t = ggl_tanhf(s / p->cap);
        s = p->cap * t;
    }
    if (p->alibi) {
        const float drop = p->slope[head] * fabsf((float)(p->pos[token] - j));
        s -= drop;
    }
    if (p->far >= 0) {
        s += p->bias[head * (2 * p->far + 1) + p->far + nearest(j - p->pos[token], p->far)];
    }
    return s;
}

typedef struct part {
    bool any;
    float m, l, o[96];
} part;

static void merge(part *a, const part *b, int64_t e) {
    if (!b->any)
        return;
    if (!a->any) {
        *a = *b;
        return;
    }
    const float top = a->m > b->m || isnan(a->m) ? a->m : b->m;
    const float x = ggl_expf(a->m - top), y = ggl_expf(b->m - top), l = b->l * y;
    a->m = top;
    a->l = fmaf(a->l, x, l);
    for (int64_t i = 0; i < e; i++) {
        const float o = b->o[i] * y;
        a->o[i] = fmaf(a->o[i], x, o);
    }
}

/* Element i of the sum of a page's values, of positions from .. to. */
static float value(const problem *p, const float *weight, int64_t from, int64_t to, int64_t i) {
    float o = 0;
    const int64_t page = from / GGL_PAGE * GGL_PAGE;
    if (!p->part && is_quantized(p->type_v))
        return value_of_codes(p->type_v, kept.v[page], sizeof *kept.v, weight, from - page,
                              to - page + 1, i);
    for (int64_t j = from; j <= to; j++)
        o = fmaf(weight[j % GGL_PAGE], kept.y[j][i], o);
    return o;
}

/* One page, of the positions from .. to that are visible. */
static part page(const problem *p, int token, int64_t head, int64_t from, int64_t to) {
    part r = {.any = true};
    float w[GGL_PAGE] = {0}, sum[16] = {0};
    r.m = -INFINITY;
    for (int64_t j = from; j <= to; j++) {
        const float s = w[j % GGL_PAGE] = score(p, token, head, j);
        r.m = isnan(s) || isnan(r.m) ? NAN : fmaxf(r.m, s);
    }
    r.m += 0.0f;
    for (int64_t j = from; j <= to; j++) {
        w[j % GGL_PAGE] = ggl_expf(w[j % GGL_PAGE] - r.m);
        sum[j % 16] += w[j % GGL_PAGE];
    }
    for (int step = 8; step > 0; step /= 2)
        for (int i = 0; i < step; i++)
            sum[i] += sum[i + step];
    r.l = sum[0];
    for (int64_t i = 0; i < p->e; i++)
        r.o[i] = value(p, w, from, to, i);
    return r;
}

/* Leaves those of the rows *from .. *last that are in the token's part, and one of them if none is: the last, or the one at which the part
 * begins. Numbers are rounded down, and NaN bounds nothing. */
static void keep_part(const problem *p, int token, int64_t *from, int64_t *last) {
    const float *of = p->part_of[token];
    const int64_t to = *last;
    if (!p->within)
        return;
    while (*from < to && (float)(*from + 1) <= of[0])
        ++*from;
    while (*last > *from && (float)(*last + 1) > of[1])
        --*last;
}

static void attend(const problem *p, int token, int64_t head, float *y) {
    const int64_t pos = p->pos[token], back = p->whole ? p->window / 2 : p->window - 1,
                  end = p->end[token] - 1;
    int64_t from = p->window && pos >= back ? pos - back : 0, last = !p->whole ? pos
                                                                     : p->window && pos + back < end
                                                                         ? pos + back
                                                                         : end;
    keep_part(p, token, &from, &last);
    part all = {.any = false};
    for (int64_t span = from / SPAN; span <= last / SPAN; span++) {
        part one = {.any = false};
        for (int64_t n = SPAN / GGL_PAGE * span; n < SPAN / GGL_PAGE * (span + 1); n++) {
            const int64_t a = n * GGL_PAGE > from ? n * GGL_PAGE : from,
                          b = n * GGL_PAGE + 63 < last ? n * GGL_PAGE + 63 : last;
            if (a <= b) {
                const part next = page(p, token, head, a, b);
                merge(&one, &next, p->e);
            }
        }
        merge(&all, &one, p->e);
    }
    if (p->sinks)
        merge(&all, &(part){.any = true, .m = p->sink[head], .l = 1}, p->e);
    for (int64_t i = 0; i < p->e; i++)
        y[i] = all.o[i] / all.l;
}

/* --- the engine ------------------------------------------------------------------------------ */

static ggl_graph *graph_of(const problem *p) {
    const ggl_graph_params gp = {.size = sizeof gp,
                                 .n_pos = N_POS,
                                 .n_batch = p->n_batch,
                                 .n_slots = p->n_slots,
                                 .type_k = p->type_k,
                                 .type_v = p->type_v};
    ggl_graph *g = ggl_graph_new(&gp);
    ggl_graph_input(g, "pos", GGL_I32, 0, NULL, true);
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    if (p->whole)
        ggl_graph_input(g, "end", GGL_I32, 0, NULL, true);
    ggl_tensor *q = ggl_graph_input(g, "q", GGL_F32, 2, (int64_t[]){p->d, p->heads}, true),
               *k = ggl_graph_input(g, "k", GGL_F32, 2, (int64_t[]){p->d, p->store_heads}, true),
               *v = ggl_graph_input(g, "v", GGL_F32, 2, (int64_t[]){p->e, p->store_heads}, true);
    if (p->part)
        v = ggl_graph_op(g, GGL_OP_SPLIT, &k, 1, (double[]){0, 0, (double)p->e}, 3);
    ggl_tensor *cache = ggl_graph_op(g, GGL_OP_CACHE, (ggl_tensor *[]){k, v}, 2, NULL, 0);
    ggl_tensor *src[9] = {q, cache};
    if (p->sinks)
        src[2] = ggl_graph_weight(g, "sinks", GGL_F32, 1, &p->heads, p->sink);
    if (p->alibi)
        src[3] = ggl_graph_weight(g, "slopes", GGL_F32, 1, &p->heads, p->slope);
    if (p->far >= 0)
        src[4] =
            ggl_graph_weight(g, "bias", GGL_F32, 2, (int64_t[]){2 * p->far + 1, p->heads}, p->bias);
    const int64_t table[3] = {p->d, p->rows, p->tables}, n_row = 2 * p->near + 1;
    if (p->rows && p->by_query)
        src[5] = ggl_graph_weight(g, "rel_k", GGL_F32, 3, table, p->rel_k);
    if (p->rows && p->by_key)
        src[6] = ggl_graph_weight(g, "rel_q", GGL_F32, 3, table, p->rel_q);
    if (p->rows)
        src[7] = ggl_graph_weight(g, "rel_row", GGL_F32, 1, &n_row, p->row);
    if (p->within)
        src[8] = ggl_graph_input(g, "within", GGL_F32, 1, (int64_t[]){2}, true);
    const double num[3] = {(double)p->scale, p->window ? (double)p->window : NAN, (double)p->cap};
    ggl_graph_output(g, "y", ggl_graph_op(g, GGL_OP_ATTEND, src, 9, num, 3));
    return g;
}

/* Each slot's pages are every n_slots-th, backwards. */
static bool set_pages(ggl_sched *s, ggl_graph *g, const problem *p, ggl_error *err) {
    int32_t table[MOST_SLOTS * (N_POS / GGL_PAGE)];
    const int64_t per = N_POS / GGL_PAGE, n = ggl_graph_n_pages(g);
    for (int64_t i = 0; i < per * p->n_slots; i++)
        table[i] = (int32_t)(n - 1 - i % per * p->n_slots - i / per);
    return n == 0 || CHECK_OK(ggl_sched_set(s, "page", table,
                                            (size_t)(per * p->n_slots) * sizeof *table, 1, err),
                              err);
}

static bool run_pieces(ggl_sched *s, const problem *p, uint64_t *seed, float *y, ggl_error *err) {
    const int64_t row = p->e * p->heads;
    const int most =
        p->whole || below(seed, 2) ? p->n_batch : 1 + (int)below(seed, (uint64_t)p->n_batch);
    for (int at = 0; at < p->n;) {
        const int piece = p->whole || below(seed, 3) ? most : 1 + (int)below(seed, (uint64_t)most),
                  n = piece < p->n - at ? piece : p->n - at;
        const struct {
            const char *name;
            const void *data;
            int64_t size;
            bool has;
        } in[] = {{"pos", p->pos + at, 4, true},
                  {"slot", p->slot + at, 4, true},
                  {"end", p->end + at, 4, p->whole},
                  {"within", p->part_of + at, sizeof *p->part_of, p->within},
                  {"q", p->q + at * p->d * p->heads, 4 * p->d * p->heads, true},
                  {"k", p->k + at * p->d * p->store_heads, 4 * p->d * p->store_heads, true},
                  {"v", p->v + at * p->e * p->store_heads, 4 * p->e * p->store_heads, !p->part}};
        for (size_t i = 0; i < sizeof in / sizeof *in; i++)
            if (in[i].has && !CHECK_OK(ggl_sched_set(s, in[i].name, in[i].data,
                                                     (size_t)(in[i].size * n), n, err),
                                       err))
                return false;
        if (!CHECK_OK(ggl_sched_run(s, n, NULL, 0, err), err))
            return false;
        memcpy(y + at * row, ggl_sched_output(s, 0), (size_t)(n * row) * sizeof *y);
        at += n;
    }
    return true;
}

static bool run(const problem *p, ggl_backend *cpu, uint64_t *seed, float *y) {
    ggl_error err = {0};
    ggl_sched *s = NULL;
    ggl_graph *g = graph_of(p);
    const ggl_sched_params sp = {.size = sizeof sp, .backend = &cpu, .n_backends = 1};
    const bool ok = CHECK_OK(ggl_graph_finish(g, &err), &err) &&
                    CHECK_OK(ggl_sched_new(&s, g, &sp, &err), &err) &&
                    CHECK_OK(ggl_sched_alloc(s, &err), &err) && set_pages(s, g, p, &err) &&
                    run_pieces(s, p, seed, y, &err);
    ggl_sched_free(s);
    ggl_graph_free(g);
    return ok;
}

/* --- the test -------------------------------------------------------------------------------- */

/* The backends: each instruction set with another number of threads. */
typedef struct engines {
    ggl_backend *cpu[CPU_MAX_SETS];
    char name[CPU_MAX_SETS][96];
    int n;
} engines;

static bool engines_open(engines *c) {
    uint32_t set[CPU_MAX_SETS];
    ggl_error err = {0};
    setenv("GGL_CPU_SHARE_ALL", "1", 1); /* the steps are too small for threads to pay */
    c->n = ggl_cpu_features_sets(set);
    for (int i = 0; i < c->n; i++) {
        const uint32_t without = ggl_cpu_features_detect() & ~set[i];
        char mask[96];
        ggl_cpu_features_text(without, mask, sizeof mask);
        for (char *p = mask; (p = strchr(p, ' '));)
            *p++ = ',';
        const ggl_backend_params bp = {.size = sizeof bp,
                                       .n_threads = 1 + (3 * i + 2) % 5,
                                       .mask = !set[i]   ? "all"
                                               : without ? mask
                                                         : ""};
        ggl_cpu_features_text(set[i], c->name[i], sizeof c->name[i]);
        if (!CHECK_OK(ggl_backend_open(&c->cpu[i], "cpu", &bp, &err), &err))
            return false;
    }
    return true;
}

/* Compares the results of some tokens with the contract. */
static void judge(const problem *p, const float *y, const char *name, uint64_t *seed) {
    for (int k = 0; k < 3; k++) {
        const int token = k ? (int)below(seed, (uint64_t)p->n) : p->n - 1;
        const int64_t head = (int64_t)below(seed, (uint64_t)p->heads);
        float want[96];
        keep_rows(p, p->slot[token], head / (p->heads / p->store_heads),
                  p->whole ? p->n - 1 : token);
        attend(p, token, head, want);
        CHECK_SAME(y + (token * p->heads + head) * p->e, want, p->e,
                   "seed %llu: token %d of %d, head %lld, %s and %s, %s",
                   (unsigned long long)p->seed, token, p->n, (long long)head,
                   ggl_type_get(p->type_k)->name, ggl_type_get(p->type_v)->name, name);
    }
}

static void check_problem(const engines *c, uint64_t seed) {
    static problem p;
    problem_new(&p, seed);
    const int64_t n = p.n * p.e * p.heads;
    float *first = malloc((size_t)n * sizeof *first), *y = malloc((size_t)n * sizeof *y);
    const int portable = (int)below(&seed, 8); /* it is slow: now and then */
    bool have = false;
    for (int i = portable == 0 || c->n == 1 ? 0 : 1; i < c->n; i++) {
        if (!run(&p, c->cpu[i], &seed, have ? y : first))
            break;
        if (have)
            CHECK_SAME(y, first, n, "seed %llu: %s and %s, %s and another",
                       (unsigned long long)p.seed, ggl_type_get(p.type_k)->name,
                       ggl_type_get(p.type_v)->name, c->name[i]);
        else
            judge(&p, first, c->name[i], &seed);
        have = true;
    }
    free(first);
    free(y);
    problem_free(&p);
}

TEST(attend_seeded) {
    static engines c;
    const char *count = getenv("GGL_ATTEND_COUNT"), *every = getenv("GGL_KERNELS_EVERY");
    const uint64_t first = sample_seed() * 1000003;
    /* other problems each day; fewer under a sanitizer and on emulated processors */
    const bool few = TEST_SANITIZED && !sample_is_all();
    const int n = count ? atoi(count) : every ? 1 + 6 / atoi(every) : few ? 6 : 24;
    if (engines_open(&c))
        for (int i = 0; i < n && test_failures < 20; i++)
            check_problem(&c, first + (uint64_t)i);
    for (int i = 0; i < c.n; i++)
        ggl_backend_close(c.cpu[i]);
}
