/* Repacks weights between runs, little by little (ggl_sched_params.repack_late): until the copy of a
 * weight is made, products read the original, with the same results. */

#include "ggl/internal/graph.h"
#include "ggl/internal/os_clock.h"
#include "repack.h"
#include "shared_copies.h"

/* Bytes of a weight that are repacked at once: enough work for all threads, and a few milliseconds. */
enum { PART = 8 << 20 };

/* With fewer runs to come, not even one part is copied to learn how long that takes. */
enum { LEAST_RUNS = 8 };

void ggl_sched_begin_late(device *d) {
    d->repack.left = 0;
    for (size_t i = 0; i < d->repack.list.n; i++)
        if (ggl_sched_repacks_late(d, d->repack.list.at[i]))
            d->repack.left += d->repack.list.at[i]->size;
    d->repack.all = d->repack.left;
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Returns the part of the weight t that begins at `row`, counted over all matrices: some of its
 * matrices, or rows of one. each: ggl_backend_vtable.repack_rows. */
static ggl_tensor part_of(const ggl_tensor *t, int64_t row, int64_t each) {
    const int64_t n_rows = t->ne[1], n_matrices = ggl_extents(t->ne, 2, GGL_MAX_DIMS, 1);
    const size_t size = t->size / (size_t)(n_rows * n_matrices);
    const int64_t most = PART / (int64_t)size > 0 ? PART / (int64_t)size : 1;
    ggl_tensor part = *t;
    part.ne[2] = part.ne[3] = 1;
    if (row % n_rows == 0 && most >= n_rows) {
        part.ne[2] = smaller(most / n_rows, n_matrices - row / n_rows);
    } else {
        const int64_t left = n_rows - row % n_rows, n = (most + each - 1) / each * each;
        part.ne[1] = left - n < each ? left : n;
    }
    part.data = (const char *)t->data + (size_t)row * size;
    part.size = (size_t)ggl_extents(part.ne, 1, 3, 1) * size;
    return part;
}

/* Returns where the copy of the part that begins at `row` lies in the copy of the weight t. */
static size_t copy_offset(const device *d, const ggl_tensor *t, int64_t row) {
    const int64_t n_matrices = ggl_extents(t->ne, 2, GGL_MAX_DIMS, 1);
    ggl_tensor before = *t;
    before.ne[1] = row % t->ne[1];
    before.ne[2] = before.ne[3] = 1;
    return d->b->v->repack_size(d->b, t) / (size_t)n_matrices * (size_t)(row / t->ne[1]) +
           (before.ne[1] > 0 ? d->b->v->repack_size(d->b, &before) : 0);
}

/* Notes that n more rows of the weight t are repacked. */
static void note_rows(device_repack *r, const ggl_tensor *t, int64_t n) {
    r->next_row += n;
    r->left -= t->size / (size_t)ggl_sched_rows_of(t) * (size_t)n;
}

/* Repacks the part of t that begins at r->next_row. */
static ggl_status repack_rows(device *d, const ggl_tensor *t, ggl_error *err) {
    device_repack *r = &d->repack;
    const ggl_tensor part = part_of(t, r->next_row, d->b->v->repack_rows(d->b, t));
    const ggl_loc to = r->loc[t->id];
    const double since = ggl_os_seconds();
    const ggl_status st = d->b->v->repack(d->b, d->region[to.region],
                                          to.offset + copy_offset(d, t, r->next_row), &part, err);
    atomic_fetch_add(&r->spent_ns, (int64_t)((ggl_os_seconds() - since) * 1e9));
    if (st != GGL_OK)
        return ggl_within(err, st, "repacking %s", t->name);
    note_rows(r, t, ggl_extents(part.ne, 1, 3, 1));
    return GGL_OK;
}

/* Repacks the next part of what waits, or learns that another scheduler has repacked the rest of it. */
static ggl_status repack_part(const schedule *s, device *d, ggl_error *err) {
    device_repack *r = &d->repack;
    while (!r->waits[r->list.at[r->next]->id])
        r->next++;
    const ggl_tensor *t = r->list.at[r->next];
    const int64_t n_rows = ggl_sched_rows_of(t);
    shared_copy *c = r->shared[t->id];
    ggl_status st = GGL_OK;
    ggl_shared_copy_lock(c);
    if (c) { /* what others have repacked has taken this device no time: see pays */
        const size_t left = r->left;
        note_rows(r, t, c->n_rows - r->next_row);
        r->all -= left - r->left;
    }
    if (r->next_row < n_rows)
        st = repack_rows(d, t, err);
    if (c)
        c->n_rows = r->next_row;
    ggl_shared_copy_unlock(c);
    if (st == GGL_OK && r->next_row == n_rows) {
        ggl_sched_repacked(s, d, t);
        r->next++;
        r->next_row = 0;
    }
    return st;
}

/* True if copying what is left takes less time than n runs save by it, of which the last took `run` seconds. A run with all copies
 * takes about half of the time of one with none: so one of which a part x is left takes (1 + x) / 2 of that, and the copies save x / 2. */
static bool pays(const device_repack *r, int64_t n, double run) {
    const double spent = (double)atomic_load(&r->spent_ns) * 1e-9;
    if (n < LEAST_RUNS || r->left == r->all)
        return n >= LEAST_RUNS;
    return spent / (double)(r->all - r->left) * (double)(r->all + r->left) < (double)n * run;
}

ggl_status ggl_sched_repack_before(const schedule *s, device *d, const flight *f,
                                   bool (*stops)(void *ctx), void *ctx, ggl_error *err) {
    device_repack *r = &d->repack;
    /* A prompt without outputs would not gain by it, and its answer would come later. */
    if (r->batch == f->number || f->n_rows == 0)
        return GGL_OK;
    const int64_t n_left =
        s->params.n_expected > 0 ? s->params.n_expected - r->n_batches++ : INT64_MAX;
    /* One token after a long prompt must not wait as long as the prompt has taken. */
    const double run =
        r->batch_n > 0 ? r->run / (double)r->batch_n * (double)smaller(f->n, r->batch_n) : 0;
    const double since = ggl_os_seconds();
    double debt = r->debt - run;
    ggl_status st = GGL_OK;
    while (debt < 0 && r->left > 0 && pays(r, n_left, run) && st == GGL_OK &&
           !(stops && stops(ctx))) {
        st = repack_part(s, d, err);
        debt = r->debt - run + ggl_os_seconds() - since;
    }
    r->debt = debt > 0 ? debt : 0; /* time that was not used is no credit */
    r->batch = f->number;
    r->batch_n = f->n;
    r->run = 0;
    return st;
}

ggl_status ggl_sched_repack_until(const schedule *s, device *d, double end, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (bool more = true; more && d->repack.left > 0 && st == GGL_OK;) {
        st = repack_part(s, d, err);
        more = ggl_os_seconds() < end;
    }
    return st;
}
