#include "share.h"

#include <math.h>

const double ggl_cpu_worth_sharing = 150e3, ggl_cpu_worth_waking = 1e6;

/* The least work of a chunk that a thread fetches, and of one in a long task: 20 us. */
static const double WORTH_FETCHING = 15e3, WORTH_FETCHING_OFTEN = 500e3;

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

double ggl_cpu_work_at_once(double work, int n_threads, bool asleep) {
    if (n_threads == 1 || work < (asleep ? ggl_cpu_worth_waking : ggl_cpu_worth_sharing))
        return INFINITY;
    const double part = work / n_threads;
    return fmax(fmax(part / 32, WORTH_FETCHING), fmin(part / 8, WORTH_FETCHING_OFTEN));
}

int64_t ggl_cpu_divide(cpu_share *task, int n, double work) {
    int64_t n_chunks = 0;
    for (cpu_share *t = task; t < task + n; t++) {
        const double units = t->cost > 0 ? work / t->cost : (double)t->n_units;
        t->chunk = units < 1 ? 1 : units < (double)t->n_units ? (int64_t)units : t->n_units;
        t->n_chunks = t->n_units > 0 ? (t->n_units + t->chunk - 1) / t->chunk : 0;
        n_chunks += t->n_chunks;
    }
    return n_chunks;
}

/* Returns how many chunks of the task are for teams before k. */
static int64_t part(const cpu_share *task, const cpu_spread *s, int k) {
    return k == 0            ? 0
           : k == s->n_teams ? task->n_chunks
                             : task->n_chunks * s->before[k] / s->before[s->n_teams];
}

void ggl_cpu_list_parts(const cpu_list *l, int64_t *end) {
    for (int k = 0; k < l->spread.n_teams; k++) {
        end[k] = 0;
        for (int i = 0; i < l->n; i++)
            end[k] += part(&l->share[i], &l->spread, k + 1);
    }
}

void ggl_cpu_list_take(const cpu_list *l, int i, int team, int64_t *first, int64_t *last,
                       int64_t *begin, int64_t *end) {
    const cpu_share *t = &l->share[i];
    const int64_t from = part(t, &l->spread, team), n = part(t, &l->spread, team + 1) - from;
    *begin = (from + least(*first, n)) * t->chunk;
    *end = least((from + least(*last, n)) * t->chunk, t->n_units);
    *first = *first > n ? *first - n : 0;
    *last = *last > n ? *last - n : 0;
}
