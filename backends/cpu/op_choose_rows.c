/* choose_rows; docs/numeric.md, section 6, defines its arithmetic.
 *
 * A unit is a token; of a few tokens, it is a span of the scores of one, which are then in scratch of all threads. */
#include <math.h>
#include <string.h>

#include "attend.h"

enum { SPAN = 1024, FEW = 16 /* tokens */ };

/* Returns the most groups that a token can see whole. */
static int64_t most_groups(const cpu_step *s) {
    return s->attend.kept[0].store->n_pos / (int64_t)s->node->num[CHOOSE_ROWS_EVERY];
}

static ggl_status choose_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    const ggl_status st = ggl_cpu_attend_stores(c, s, s->node->src[CHOOSE_ROWS_KV], err);
    if (st != GGL_OK)
        return st;
    if (s->src[CHOOSE_ROWS_Q].type != GGL_F32 || s->src[CHOOSE_ROWS_W].type != GGL_F32)
        return ggl_fail(err, GGL_UNSUPPORTED, "choose_rows supports only f32 values");
    const size_t scores = (size_t)most_groups(s) * sizeof(float);
    s->thread_size = scores + 2 * GGL_PAGE * (size_t)s->src[CHOOSE_ROWS_Q].ne[0] * sizeof(float);
    s->shared_size = scores * (size_t)cpu_min(FEW, ggl_cpu_compiler_n_max(c));
    return GGL_OK;
}

static int64_t position(const cpu_task *t, int64_t l) {
    return cpu_attend_number(&t->src[CHOOSE_ROWS_POS], l);
}

static int64_t groups_of(const cpu_task *t, int64_t l) {
    return ggl_groups_whole(position(t, l), (int64_t)t->step->node->num[CHOOSE_ROWS_EVERY]);
}

static const float *row_of(const cpu_view *v, int64_t l) {
    return (const float *)(v->p + (v->ne[3] == 1 ? 0 : (size_t)l * v->nb[3]));
}

/* True if spans are units. */
static bool is_in_spans(const cpu_task *t) {
    return t->unit.attend.n_spans > 0;
}

static void choose_begin(cpu_task *t) {
    int64_t longest = 0;
    for (int64_t l = 0; l < t->n; l++)
        longest = cpu_max(longest, groups_of(t, l));
    const bool spans = t->n <= FEW && t->n_threads > t->n && longest > SPAN;
    t->unit.attend.n_spans = spans ? (longest + SPAN - 1) / SPAN : 0;
    t->n_units = spans ? t->n * t->unit.attend.n_spans : t->n;
    t->cost = 2 * (double)ggl_extents(t->src[CHOOSE_ROWS_Q].ne, 0, 2, 1) *
              (double)(spans ? SPAN : longest);
}

/* Makes columns of the keys of groups first .. first + n - 1, n at most a page. rows: scratch. */
static void keys_of(const cpu_task *t, int64_t l, int64_t first, int n, float *rows,
                    float *columns) {
    const ggl_store *s = t->step->attend.kept[0].store;
    const int64_t every = (int64_t)t->step->node->num[CHOOSE_ROWS_EVERY], d = s->ne[0],
                  slot = cpu_attend_number(&t->src[CHOOSE_ROWS_SLOT], l);
    const cpu_apart from = {cpu_attend_table(&t->src[CHOOSE_ROWS_PAGE], slot), slot, 0};
    if (every == 1 && s->kind == GGL_STORE_KEYS && !ggl_type_get(s->type)->quantized) {
        const size_t page = (size_t)ggl_store_page(s, from.table, slot, first);
        t->b->k.to_f32[s->type](cpu_attend_rows(t, 0, 0) + page * s->page_size, columns,
                                d * GGL_PAGE);
        return;
    }
    int64_t pos[GGL_PAGE];
    for (int j = 0; j < n; j++)
        pos[j] = (first + j) * every + every - 1;
    ggl_cpu_rows_apart(t, 0, &from, pos, n, rows, d);
    ggl_cpu_rows_to_columns(rows, d, columns);
}

/* Sets score[g] of groups first .. last - 1 for token l: the sum over heads h of w[h] times the product, if it is above 0. */
static void score(const cpu_task *t, int64_t l, int64_t first, int64_t last, float *score,
                  float *rows) {
    const cpu_view *q = &t->src[CHOOSE_ROWS_Q];
    const int64_t d = q->ne[0], n_heads = q->ne[1];
    const float *w = row_of(&t->src[CHOOSE_ROWS_W], l);
    const char *query = (const char *)row_of(q, l);
    float *columns = rows + GGL_PAGE * d;
    for (; first < last; first += GGL_PAGE) {
        const int n = (int)cpu_min(GGL_PAGE, last - first);
        float sum[GGL_PAGE] = {0}, product[CPU_TILE][GGL_PAGE];
        keys_of(t, l, first, n, rows, columns);
        for (int64_t h = 0; h < n_heads; h += CPU_TILE) {
            const float *tile[CPU_TILE];
            const int n_q = (int)cpu_min(CPU_TILE, n_heads - h);
            for (int i = 0; i < n_q; i++)
                tile[i] = (const float *)(query + (size_t)(h + i) * q->nb[1]);
            t->b->k.panel_scores(product, tile, n_q, columns, d);
            for (int i = 0; i < n_q; i++)
                for (int j = 0; j < GGL_PAGE; j++) {
                    const float x = product[i][j] > 0 ? product[i][j] : 0, y = w[h + i] * x;
                    sum[j] += y;
                }
        }
        memcpy(score + first, sum, (size_t)n * sizeof *sum);
    }
}

/* Returns a number that is larger for larger x, the same for both zeros, and 0 for NaN. */
static uint32_t order_of(float x) {
    uint32_t bits;
    x += 0.0f;
    memcpy(&bits, &x, sizeof bits);
    return isnan(x) ? 0 : bits >> 31 ? ~bits : bits | 0x80000000u;
}

/* Returns the order of the k-th largest of n scores, k < n, and sets *above to how many are above it: byte by byte, from the highest. */
static uint32_t threshold(const float *score, int64_t n, int64_t k, int64_t *above) {
    uint32_t found = 0;
    *above = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        int64_t count[256] = {0};
        int byte = 255;
        for (int64_t i = 0; i < n; i++) {
            const uint32_t x = order_of(score[i]);
            if (shift == 24 || (x ^ found) >> (shift + 8) == 0)
                count[x >> shift & 255]++;
        }
        while (*above + count[byte] < k)
            *above += count[byte--];
        found |= (uint32_t)byte << shift;
    }
    return found;
}

/* Writes the positions of the chosen groups of token l, and of its tail. */
static void choose(const cpu_task *t, int64_t l, const float *score) {
    const ggl_tensor *node = t->step->node;
    const int64_t every = (int64_t)node->num[CHOOSE_ROWS_EVERY], pos = position(t, l),
                  n = ggl_groups_whole(pos, every), k = (int64_t)node->num[CHOOSE_ROWS_BEST];
    float *out = (float *)(t->dst.p + (size_t)l * t->dst.nb[3]), *const end = out + t->dst.ne[0];
    int64_t above = 0;
    const uint32_t least = n > k ? threshold(score, n, k, &above) : 0;
    int64_t left = n > k ? k - above : n; /* of those at the threshold, the first ones */
    for (int64_t i = 0; i < n; i++) {
        const uint32_t x = n > k ? order_of(score[i]) : 0;
        if (x < least || (x == least && left-- <= 0))
            continue;
        for (int64_t j = 0; j < every; j++)
            *out++ = (float)(i * every + j);
    }
    for (int64_t p = n * every; p <= pos; p++)
        *out++ = (float)p;
    while (out < end)
        *out++ = -1;
}

static float *shared_scores(const cpu_task *t, int64_t l) {
    return (float *)t->shared + l * most_groups(t->step);
}

static void choose_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    float *own = (float *)cpu_thread_scratch(t, thread), *rows = own + most_groups(t->step);
    for (int64_t u = first; u < last; u++) {
        const int64_t n_spans = t->unit.attend.n_spans, l = is_in_spans(t) ? u / n_spans : u,
                      n = groups_of(t, l);
        if (is_in_spans(t)) {
            const int64_t from = u % n_spans * SPAN;
            score(t, l, from, cpu_min(n, from + SPAN), shared_scores(t, l), rows);
            continue;
        }
        if (n > (int64_t)t->step->node->num[CHOOSE_ROWS_BEST])
            score(t, l, 0, n, own, rows);
        choose(t, l, own);
    }
}

static void choose_end(const cpu_task *t) {
    for (int64_t l = 0; l < t->n && is_in_spans(t); l++)
        choose(t, l, shared_scores(t, l));
}

const cpu_op ggl_cpu_op_choose_rows = {
    .compile = choose_compile, .begin = choose_begin, .run = choose_run, .end = choose_end};
