#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "common/machine.h"
#include "common/progress.h"
#include "ggl/internal/types.h"
#include "ops.h"

enum { FEW = 64, MANY = OPS_MAX_COLS };

/* Takes the fastest kernel for each number of columns. */
static void take_products(cluster_speed *s, const ops *o) {
    for (size_t i = 0; i < o->n_rows; i++) {
        const ops_row *r = &o->row[i];
        const double seconds = r->ns * 1e-9 / r->bytes, n = r->n_cols;
        int k = 0;
        while (k < s->n_points && s->columns[k] < n)
            k++;
        if (k < s->n_points && s->columns[k] == n) {
            s->seconds[k] = fmin(s->seconds[k], seconds);
            continue;
        }
        memmove(&s->columns[k + 1], &s->columns[k], (size_t)(s->n_points - k) * sizeof *s->columns);
        memmove(&s->seconds[k + 1], &s->seconds[k], (size_t)(s->n_points - k) * sizeof *s->seconds);
        s->columns[k] = n;
        s->seconds[k] = seconds;
        s->n_points++;
    }
}

static void take_attention(cluster_speed *s, const ops *o) {
    double macs = 0, ns = 0;
    for (size_t i = 0; i < o->n_rows; i++) {
        macs += o->row[i].macs;
        ns += o->row[i].ns;
    }
    s->attend = macs > 0 ? ns * 1e-9 / macs / (double)o->n_threads : 0;
}

ggl_status cluster_measure(cluster_speed *out, ggl_type type, int n_threads, ggl_error *err) {
    *out = (cluster_speed){.n_points = 0};
    ops *o = calloc(1, sizeof *o);
    if (!o)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    o->n_threads = n_threads;
    o->k = o->m = 2048;
    o->seconds = bench_brief() ? 0.001 : 0.1;
    o->type = ggl_type_get((int)type)->name;
    o->best = true;
    o->only = "product";
    o->n_cols = MANY;
    ggl_status st = ggl_cpu_pool_open(&o->pool, n_threads, NULL, err);
    if (st != GGL_OK) {
        free(o);
        return st;
    }
    ops_find_sets(o);
    progress_begin(NULL, 0, "this machine's kernels");
    bool ok = ops_measure_products(o);
    o->only = "panels";
    o->n_cols = FEW;
    ok = ok && ops_measure_products(o);
    take_products(out, o);
    o->only = "of a panel"; /* of attention */
    o->n_rows = 0;
    ops_measure_kernels(o);
    take_attention(out, o);
    progress_end();
    ggl_cpu_pool_close(o->pool);
    if (!ok)
        st = ggl_fail(err, GGL_NOMEM, "out of memory");
    else if (out->n_points == 0)
        st = ggl_fail(err, GGL_UNSUPPORTED,
                      "this machine has no kernel for products with %s: give --rank GB/s,GMAC/s",
                      o->type);
    free(o);
    return st;
}
