/* llm-bench ops: which kernels are measured, for how long, and the list of results. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/machine.h"
#include "common/progress.h"
#include "ggl/internal/os_clock.h"
#include "ops.h"
#include "tool.h"

/* Returns the name after the next comma; NULL if none. */
static const char *next_name(const char *at) {
    const char *comma = strchr(at, ',');
    return comma ? comma + 1 : NULL;
}

/* Returns the type whose name begins at `at`; NULL if there is none. */
static const ggl_type_info *type_at(const char *at, char name[32]) {
    snprintf(name, 32, "%.*s", (int)strcspn(at, ","), at);
    return ggl_type_find(name);
}

bool ops_wanted_type(const ops *o, const ggl_type_info *t) {
    char name[32];
    for (const char *at = o->type; at; at = next_name(at))
        if (type_at(at, name) == t)
            return true;
    return !o->type;
}

bool ops_wanted_set(const ops *o, int set) {
    return !o->best || set == o->n_sets - 1;
}

int ops_check_types(const ops *o) {
    char name[32];
    for (const char *at = o->type; at; at = next_name(at))
        if (!type_at(at, name))
            return tool_error("llm-bench ops", 2, "--type: there is no type '%s'", name);
    return -1;
}

bool ops_wanted(const ops *o, const char *kernel) {
    return !o->only || strstr(kernel, o->only);
}

bool ops_begins(ops *o, bool large, const char *kernel, const char *type) {
    if (o->counts) {
        o->n_planned++;
        o->n_planned_large += large;
        return false;
    }
    progress_say("%s%s%s", kernel, *type ? " " : "", type);
    progress_set((double)o->n_done++);
    return true;
}

void ops_add_row(ops *o, ops_row r, ggl_type type) {
    r.peak = bench_peak_of(type);
    if (o->n_rows < OPS_MAX_ROWS)
        o->row[o->n_rows++] = r;
}

float ops_number(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(*state >> 32) * 0x1p-31f;
}

bool ops_same_bits(const float *a, const float *b, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (memcmp(a + i, b + i, sizeof *a) != 0 && !(isnan(a[i]) && isnan(b[i])))
            return false;
    return true;
}

double ops_best_ns(const ops *o, void (*call)(void *ctx), void *ctx) {
    double least = INFINITY;
    int64_t begin = ggl_os_clock(), at = begin;
    do {
        call(ctx);
        int64_t now = ggl_os_clock();
        least = fmin(least, (double)(now - at));
        at = now;
    } while ((double)(at - begin) < o->seconds * 1e9);
    return fmax(least, 1);
}
