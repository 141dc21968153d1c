/* choose_rows; docs/numeric.md, section 6, defines its arithmetic.
 *
 * A unit is a token; of a few tokens, it is a span of the scores of one, which are then in scratch of all threads. */
#include <math.h>
#include <string.h>

#include "attend.h"

enum { SPAN = 1024 /* keys */, FEW = 16 /* tokens */ };

/* Returns the most groups that a token can see. */
static int64_t most_groups(const cpu_step *s) {
    const int64_t every = (int64_t)s->node->num[CHOOSE_ROWS_EVERY];
    return (s->attend.kept[0].store->n_pos + every - 1) / every;
}

/* Returns how many scores a token has: those of all groups, for each of its lists. */
static int64_t most_scores(const cpu_step *s) {
    return most_groups(s) * s->dst.ne[1];
}

static ggl_status choose_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    const ggl_status st = ggl_cpu_attend_stores(c, s, s->node->src[CHOOSE_ROWS_KV], err);
    if (st != GGL_OK)
        return st;
    if (s->src[CHOOSE_ROWS_Q].type != GGL_F32 ||
        (s->src[CHOOSE_ROWS_W].region >= 0 && s->src[CHOOSE_ROWS_W].type != GGL_F32))
        return ggl_fail(err, GGL_UNSUPPORTED, "choose_rows supports only f32 values");
    const size_t scores = (size_t)most_scores(s) * sizeof(float);
    s->thread_size = scores + 2 * GGL_PAGE * (size_t)s->src[CHOOSE_ROWS_Q].ne[0] * sizeof(float);
    s->shared_size = scores * (size_t)cpu_min(FEW, ggl_cpu_compiler_n_max(c));
    return GGL_OK;
}

static int64_t position(const cpu_task *t, int64_t l) {
    return cpu_attend_number(&t->src[CHOOSE_ROWS_POS], l);
}

static ggl_choice choice_of(const cpu_task *t, int64_t l) {
    return ggl_choice_at(t->step->node, position(t, l));
}

/* Returns the keys of a group that count. */
static int64_t keys_of_group(const cpu_task *t) {
    return ggl_choice_is_of_all(t->step->node) ? (int64_t)t->step->node->num[CHOOSE_ROWS_EVERY] : 1;
}

/* Returns the groups of a span. */
static int64_t groups_of_span(const cpu_task *t) {
    return cpu_max(1, SPAN / keys_of_group(t));
}

static const float *row_of(const cpu_view *v, int64_t l) {
    return (const float *)(v->p + (v->ne[3] == 1 ? 0 : (size_t)l * v->nb[3]));
}

/* True if spans are units. */
static bool is_in_spans(const cpu_task *t) {
    return t->unit.attend.n_spans > 0;
}

static void choose_begin(cpu_task *t) {
    const int64_t span = groups_of_span(t);
    int64_t longest = 0;
    for (int64_t l = 0; l < t->n; l++)
        longest = cpu_max(longest, choice_of(t, l).n);
    const bool spans = t->n <= FEW && t->n_threads > t->n && longest > span;
    t->unit.attend.n_spans = spans ? (longest + span - 1) / span : 0;
    t->n_units = spans ? t->n * t->unit.attend.n_spans : t->n;
    t->cost = 2 * (double)ggl_extents(t->src[CHOOSE_ROWS_Q].ne, 0, 2, 1) *
              (double)((spans ? span : longest) * keys_of_group(t));
}

/* Makes columns of keys first .. first + n - 1, n at most a page: of all positions, or of the last ones of groups. rows: scratch. */
static void keys_of(const cpu_task *t, int64_t l, int64_t first, int n, float *rows,
                    float *columns) {
    const ggl_store *s = t->step->attend.kept[0].store;
    const int64_t every = (int64_t)t->step->node->num[CHOOSE_ROWS_EVERY] / keys_of_group(t),
                  d = s->ne[0], slot = cpu_attend_number(&t->src[CHOOSE_ROWS_SLOT], l);
    const cpu_apart from = {cpu_attend_table(&t->src[CHOOSE_ROWS_PAGE], slot), slot, 0};
    if (every == 1 && first % GGL_PAGE == 0 && s->kind == GGL_STORE_KEYS &&
        !ggl_type_get(s->type)->quantized) {
        const size_t page = (size_t)ggl_store_page(s, from.table, slot, first);
        t->b->k.to_f32[s->type](cpu_attend_rows(t, 0, 0) + page * t->step->attend.kept[0].at.step,
                                columns, d * GGL_PAGE);
        return;
    }
    int64_t pos[GGL_PAGE];
    for (int j = 0; j < n; j++)
        pos[j] = (first + j) * every + every - 1;
    ggl_cpu_rows_apart(t, 0, &from, pos, n, rows, d);
    ggl_cpu_rows_to_columns(rows, d, columns);
}

/* Returns a number that is larger for larger x, the same for both zeros, and 0 for NaN. */
static uint32_t order_of(float x) {
    uint32_t bits;
    x += 0.0f;
    memcpy(&bits, &x, sizeof bits);
    return isnan(x) ? 0 : bits >> 31 ? ~bits : bits | 0x80000000u;
}

/* Takes the scores of keys first .. first + n - 1 into those of their groups. */
static void take(const cpu_task *t, int64_t first, int n, const float *of_key, float *score) {
    const int64_t per = keys_of_group(t);
    if (per == 1) {
        memcpy(score + first, of_key, (size_t)n * sizeof *of_key);
        return;
    }
    for (int j = 0; j < n; j++) {
        float *x = score + (first + j) / per;
        *x = order_of(of_key[j]) > order_of(*x) ? of_key[j] : *x;
    }
}

/* Adds to sum[64] the products of head h that are above 0, times w[h]. */
static void weigh(float *sum, const float *product, float w) {
    for (int j = 0; j < GGL_PAGE; j++) {
        const float x = product[j] > 0 ? product[j] : 0, y = w * x;
        sum[j] += y;
    }
}

/* Sets score[g] of groups first .. last - 1 for token l. With w there is one list of scores: the sums over heads h of w[h] times the product,
 * if it is above 0; without w, that of each head has its products. */
static void score(const cpu_task *t, int64_t l, int64_t first, int64_t last, float *score,
                  float *rows) {
    const cpu_view *q = &t->src[CHOOSE_ROWS_Q], *w = &t->src[CHOOSE_ROWS_W];
    const int64_t d = q->ne[0], n_heads = q->ne[1], n_groups = most_groups(t->step),
                  per = keys_of_group(t), end = cpu_min(last * per, position(t, l) + 1);
    const char *query = (const char *)row_of(q, l);
    float *columns = rows + GGL_PAGE * d;
    for (int64_t c = 0; c < t->dst.ne[1]; c++)
        for (int64_t i = first; i < last; i++)
            score[c * n_groups + i] = NAN;
    for (int64_t k = first * per; k < end; k += GGL_PAGE) {
        const int n = (int)cpu_min(GGL_PAGE, end - k);
        float sum[GGL_PAGE] = {0}, product[CPU_TILE][GGL_PAGE];
        keys_of(t, l, k, n, rows, columns);
        for (int64_t h = 0; h < n_heads; h += CPU_TILE) {
            const float *tile[CPU_TILE];
            const int n_q = (int)cpu_min(CPU_TILE, n_heads - h);
            for (int i = 0; i < n_q; i++)
                tile[i] = (const float *)(query + (size_t)(h + i) * q->nb[1]);
            t->b->k.panel_scores(product, tile, n_q, columns, d);
            for (int i = 0; i < n_q; i++)
                if (w->p)
                    weigh(sum, product[i], row_of(w, l)[h + i]);
                else
                    take(t, k, n, product[i], score + (h + i) * n_groups);
        }
        if (w->p)
            take(t, k, n, sum, score);
    }
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

/* Writes the positions of the chosen groups of a token's list, and of its tail. */
static void choose(const cpu_task *t, int64_t l, int64_t list, const float *score) {
    const int64_t every = (int64_t)t->step->node->num[CHOOSE_ROWS_EVERY], pos = position(t, l);
    const ggl_choice of = choice_of(t, l);
    const bool all = of.n <= of.best;
    float *out = (float *)(t->dst.p + (size_t)l * t->dst.nb[3] + (size_t)list * t->dst.nb[1]),
          *const end = out + t->dst.ne[0];
    int64_t above = 0;
    const uint32_t least = all ? 0 : threshold(score, of.n, of.best, &above);
    int64_t left = all ? of.n : of.best - above; /* of those at the threshold, the first ones */
    for (int64_t i = 0; i < of.n; i++) {
        const uint32_t x = all ? 0 : order_of(score[i]);
        if (x < least || (x == least && left-- <= 0))
            continue;
        for (int64_t p = i * every; p < (i + 1) * every && p <= pos; p++)
            *out++ = (float)p;
    }
    for (int64_t p = of.n * every; p <= pos; p++)
        *out++ = (float)p;
    while (out < end)
        *out++ = -1;
}

static void choose_all(const cpu_task *t, int64_t l, const float *score) {
    for (int64_t c = 0; c < t->dst.ne[1]; c++)
        choose(t, l, c, score + c * most_groups(t->step));
}

static float *shared_scores(const cpu_task *t, int64_t l) {
    return (float *)t->shared + l * most_scores(t->step);
}

static void choose_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    float *own = (float *)cpu_thread_scratch(t, thread), *rows = own + most_scores(t->step);
    for (int64_t u = first; u < last; u++) {
        const int64_t n_spans = t->unit.attend.n_spans, l = is_in_spans(t) ? u / n_spans : u;
        const ggl_choice of = choice_of(t, l);
        if (is_in_spans(t)) {
            const int64_t span = groups_of_span(t), from = u % n_spans * span;
            score(t, l, from, cpu_min(of.n, from + span), shared_scores(t, l), rows);
            continue;
        }
        if (of.n > of.best)
            score(t, l, 0, of.n, own, rows);
        choose_all(t, l, own);
    }
}

static void choose_end(const cpu_task *t) {
    for (int64_t l = 0; l < t->n && is_in_spans(t); l++)
        choose_all(t, l, shared_scores(t, l));
}

const cpu_op ggl_cpu_op_choose_rows = {
    .compile = choose_compile, .begin = choose_begin, .run = choose_run, .end = choose_end};
