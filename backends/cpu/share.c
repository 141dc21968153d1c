#include "share.h"

#include "cpu.h"

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

void ggl_cpu_take(const cpu_share *task, int64_t *first, int64_t *last, int64_t *begin,
                  int64_t *end) {
    *begin = cpu_min(*first, task->n_chunks) * task->chunk;
    *end = cpu_min(cpu_min(*last, task->n_chunks) * task->chunk, task->n_units);
    *first = *first > task->n_chunks ? *first - task->n_chunks : 0;
    *last = *last > task->n_chunks ? *last - task->n_chunks : 0;
}
