#include "knapsack.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/alloc.h"

/* A step of an item from one option of its hull to the next larger one. */
typedef struct step {
    size_t item;
    int to;           /* the option */
    uint64_t size;    /* what the step adds.. */
    double gain;      /* ..and what it saves */
    double efficient; /* gain / size */
} step;

typedef struct solver {
    const knapsack_item *item;
    size_t n;
    uint64_t budget;
    int *choice;
    knapsack_result *r;
} solver;

/* Returns whether option a comes before b: smaller, or of equals that with less loss. */
static bool before(const knapsack_option *a, const knapsack_option *b) {
    return a->size != b->size ? a->size < b->size : a->loss < b->loss;
}

static int smallest(const knapsack_item *x) {
    int best = 0;
    for (int k = 1; k < x->n; k++)
        if (before(&x->option[k], &x->option[best]))
            best = k;
    return best;
}

static int least_loss(const knapsack_item *x) {
    int best = 0;
    for (int k = 1; k < x->n; k++)
        if (x->option[k].loss < x->option[best].loss ||
            (x->option[k].loss <= x->option[best].loss && before(&x->option[k], &x->option[best])))
            best = k;
    return best;
}

void knapsack_range(const knapsack_item *item, size_t n, uint64_t *least, uint64_t *most) {
    *least = *most = 0;
    for (size_t i = 0; i < n; i++) {
        *least += item[i].option[smallest(&item[i])].size;
        *most += item[i].option[least_loss(&item[i])].size;
    }
}

static void add_up(const solver *s) {
    s->r->size = 0;
    s->r->loss = 0;
    for (size_t i = 0; i < s->n; i++) {
        const knapsack_option *o = &s->item[i].option[s->choice[i]];
        s->r->size += o->size;
        s->r->loss += o->loss;
    }
}

/* --- the hull --------------------------------------------------------------------------------- */

/* Writes an item's steps along its lower hull: from each point, to the one with the most saved per
 * byte. Returns their number. */
static int hull_steps(const knapsack_item *x, size_t i, step *out) {
    int n = 0, at = smallest(x);
    for (;;) {
        const knapsack_option *from = &x->option[at];
        step best = {.item = i, .to = -1};
        for (int k = 0; k < x->n; k++) {
            const knapsack_option *o = &x->option[k];
            if (o->size <= from->size || !(o->loss < from->loss))
                continue;
            step t = {i, k, o->size - from->size, from->loss - o->loss, 0};
            t.efficient = t.gain / (double)t.size;
            if (best.to < 0 || t.efficient > best.efficient ||
                (t.efficient >= best.efficient && t.size > best.size))
                best = t;
        }
        if (best.to < 0)
            return n;
        out[n++] = best;
        at = best.to;
    }
}

/* The most efficient first; steps of one item stay in their order, even if rounding makes two of
 * them equal, because the earlier one leads to the smaller option. */
static int by_efficiency(const void *a, const void *b) {
    const step *x = a, *y = b;
    if (x->efficient != y->efficient)
        return x->efficient > y->efficient ? -1 : 1;
    return x->item != y->item ? (x->item > y->item) - (x->item < y->item)
                              : (x->gain < y->gain) - (x->gain > y->gain);
}

/* Takes the steps that fit. The first one that does not gives the bound: with a part of it the budget
 * would be used up, and nothing else saves more per byte. */
static ggl_status solve_hull(const solver *s, ggl_error *err) {
    size_t n_step = 0, most = 0;
    for (size_t i = 0; i < s->n; i++)
        most += (size_t)s->item[i].n;
    step *all = ggl_calloc(most + 1, sizeof *all);
    bool *closed = ggl_calloc(s->n + 1, sizeof *closed);
    if (!all || !closed) {
        ggl_free(all);
        ggl_free(closed);
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    }
    for (size_t i = 0; i < s->n; i++) {
        s->choice[i] = smallest(&s->item[i]);
        n_step += (size_t)hull_steps(&s->item[i], i, all + n_step);
    }
    qsort(all, n_step, sizeof *all, by_efficiency);
    add_up(s);
    uint64_t left = s->budget - s->r->size;
    double bound = s->r->loss;
    bool full = false;
    for (size_t k = 0; k < n_step; k++) {
        const step *t = &all[k];
        const bool fits = !closed[t->item] && t->size <= left;
        if (!full) {
            bound -= t->size <= left ? t->gain : t->efficient * (double)left;
            full = t->size > left;
        }
        closed[t->item] = !fits;
        if (!fits)
            continue;
        s->choice[t->item] = t->to;
        left -= t->size;
    }
    ggl_free(all);
    ggl_free(closed);
    add_up(s);
    s->r->bound = bound < s->r->loss ? bound : s->r->loss;
    return GGL_OK;
}

/* --- dynamic programming ---------------------------------------------------------------------- */

enum { TABLE_SIZE = 1 << 25 }; /* bytes: about a second */

static uint64_t common_divisor(uint64_t a, uint64_t b) {
    while (b) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Returns the greatest common divisor of (size - smallest size of the item) over all options; 0 if
 * every item has only one size. */
static uint64_t unit_of(const solver *s) {
    uint64_t unit = 0;
    for (size_t i = 0; i < s->n; i++) {
        const knapsack_item *x = &s->item[i];
        for (int k = 0; k < x->n; k++)
            unit = common_divisor(unit, x->option[k].size - x->option[smallest(x)].size);
    }
    return unit;
}

/* Adds item i to best[0 .. cap]: the least loss of the items so far within that many units. taken[u]:
 * the item's option. From the largest u down, so that best[u - w] is still without the item. */
static void add_item(const knapsack_item *x, uint64_t unit, size_t cap, double *best,
                     uint8_t *taken) {
    const int first = smallest(x); /* always fits */
    const uint64_t least = x->option[first].size;
    for (size_t u = cap + 1; u-- > 0;) {
        double loss = best[u] + x->option[first].loss;
        taken[u] = (uint8_t)first;
        for (int k = 0; k < x->n; k++) {
            const uint64_t w = (x->option[k].size - least) / unit;
            if (w <= u && best[u - w] + x->option[k].loss < loss) {
                loss = best[u - w] + x->option[k].loss;
                taken[u] = (uint8_t)k;
            }
        }
        best[u] = loss;
    }
}

/* Solves the problem exactly if the table is small enough; else changes nothing. */
static ggl_status solve_exactly(const solver *s, ggl_error *err) {
    const uint64_t unit = unit_of(s);
    uint64_t least, most;
    knapsack_range(s->item, s->n, &least, &most);
    const uint64_t room = (s->budget < most ? s->budget : most) - least;
    if (unit == 0 || s->n == 0) { /* nothing to choose, except by loss */
        s->r->exact = true;
        return GGL_OK;
    }
    if (room / unit >= TABLE_SIZE / s->n)
        return GGL_OK;
    const size_t cap = (size_t)(room / unit);
    double *best = ggl_calloc(cap + 1, sizeof *best);
    uint8_t *taken = ggl_calloc(s->n * (cap + 1), 1);
    if (!best || !taken) {
        ggl_free(best);
        ggl_free(taken);
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    }
    for (size_t i = 0; i < s->n; i++)
        add_item(&s->item[i], unit, cap, best, taken + i * (cap + 1));
    size_t u = cap;
    for (size_t i = s->n; i-- > 0;) {
        const knapsack_item *x = &s->item[i];
        s->choice[i] = taken[i * (cap + 1) + u];
        u -= (size_t)((x->option[s->choice[i]].size - x->option[smallest(x)].size) / unit);
    }
    ggl_free(best);
    ggl_free(taken);
    add_up(s);
    s->r->exact = true;
    return GGL_OK;
}

/* --- exchanges -------------------------------------------------------------------------------- */

typedef struct move {
    size_t item;
    int to;
    double size, loss; /* changes; sizes below 2^53 are exact */
} move;

/* The cheapest moves of all that are at least that small, of two different items. */
typedef struct cheapest {
    const move *first, *second;
} cheapest;

static int by_size(const void *a, const void *b) {
    const move *x = a, *y = b;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return x->item != y->item ? (x->item > y->item) - (x->item < y->item) : x->to - y->to;
}

static size_t list_moves(const solver *s, move *m) {
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const knapsack_option *o = s->item[i].option, *now = &o[s->choice[i]];
        for (int k = 0; k < s->item[i].n; k++)
            if (k != s->choice[i])
                m[n++] = (move){i, k, (double)o[k].size - (double)now->size, o[k].loss - now->loss};
    }
    qsort(m, n, sizeof *m, by_size);
    return n;
}

static void list_cheapest(const move *m, size_t n, cheapest *c) {
    cheapest so_far = {NULL, NULL};
    for (size_t k = 0; k < n; k++) {
        if (!so_far.first || m[k].loss < so_far.first->loss) {
            if (so_far.first && so_far.first->item != m[k].item)
                so_far.second = so_far.first;
            so_far.first = &m[k];
        } else if (m[k].item != so_far.first->item &&
                   (!so_far.second || m[k].loss < so_far.second->loss)) {
            so_far.second = &m[k];
        }
        c[k] = so_far;
    }
}

/* Returns how many moves, of those sorted by size, are at most that large. */
static size_t count_within(const move *m, size_t n, double size) {
    size_t low = 0, high = n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (m[mid].size <= size)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Makes the best move, or pair of moves. False: none saves anything. */
static bool exchange(const solver *s, move *m, cheapest *c) {
    const size_t n = list_moves(s, m);
    const double left = (double)(s->budget - s->r->size);
    const move *one = NULL, *other = NULL;
    double best = -1e-12 * (fabs(s->r->loss) + 1e-300);
    list_cheapest(m, n, c);
    for (size_t k = 0; k < n; k++) {
        if (m[k].size <= left && m[k].loss < best) {
            best = m[k].loss;
            one = &m[k];
            other = NULL;
        }
        const size_t within = count_within(m, n, left - m[k].size);
        if (within == 0)
            continue;
        const cheapest *with = &c[within - 1];
        const move *v = with->first->item != m[k].item ? with->first : with->second;
        if (v && m[k].loss + v->loss < best) {
            best = m[k].loss + v->loss;
            one = &m[k];
            other = v;
        }
    }
    if (!one)
        return false;
    s->choice[one->item] = one->to;
    if (other)
        s->choice[other->item] = other->to;
    add_up(s);
    return true;
}

static ggl_status improve(const solver *s, ggl_error *err) {
    size_t most = 0;
    for (size_t i = 0; i < s->n; i++)
        most += (size_t)s->item[i].n;
    move *m = ggl_calloc(most + 1, sizeof *m);
    cheapest *c = ggl_calloc(most + 1, sizeof *c);
    ggl_status st = m && c ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory");
    while (st == GGL_OK && exchange(s, m, c))
        ;
    ggl_free(m);
    ggl_free(c);
    return st;
}

static ggl_status check_losses(const knapsack_item *item, size_t n, ggl_error *err) {
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < item[i].n; k++) {
            const double loss = item[i].option[k].loss;
            if (!(loss >= 0 && loss <= KNAPSACK_MAX_LOSS)) /* NaN, too */
                return ggl_fail(err, GGL_USAGE, "item %zu: option %d has a loss of %g", i, k, loss);
        }
    return GGL_OK;
}

ggl_status knapsack_solve(const knapsack_item *item, size_t n, uint64_t budget, int *choice,
                          knapsack_result *r, ggl_error *err) {
    const solver s = {item, n, budget, choice, r};
    uint64_t least, most;
    *r = (knapsack_result){0};
    ggl_status st = check_losses(item, n, err);
    if (st != GGL_OK)
        return st;
    knapsack_range(item, n, &least, &most);
    if (budget < least)
        return ggl_fail(err, GGL_LIMIT,
                        "the smallest choice has %" PRIu64 " bytes, more than %" PRIu64, least,
                        budget);
    st = solve_hull(&s, err);
    if (st == GGL_OK)
        st = solve_exactly(&s, err);
    if (st == GGL_OK && !r->exact)
        st = improve(&s, err);
    if (st == GGL_OK && r->exact)
        r->bound = r->loss;
    return st;
}
