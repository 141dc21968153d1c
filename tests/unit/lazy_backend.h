/* Fake backends that are as asynchronous as a device may be: they do nothing until they are waited for,
 * and then not more than that. So whoever reads results too early, or changes what is still to be read,
 * gets wrong numbers. */
#ifndef LAZY_BACKEND_H
#define LAZY_BACKEND_H

#include <stdatomic.h>

#include "fake_backend.h"

/* A call that is put off: a run, an upload, a copy, or the clearing of a range. */
typedef struct lazy_job {
    ggl_plan *plan;
    ggl_buffer *const *region;
    ggl_buffer *dst; /* of a run: its io region, which the others change in region[] */
    const ggl_buffer *src;
    char *data; /* bytes of an upload, or ranges of a copy */
    size_t offset, size, n_ranges;
    int64_t n;
} lazy_job;

typedef struct lazy_queue {
    lazy_job *job;
    size_t n, done, cap;
    bool takes_host; /* host memory can be a buffer that is copied to and from */
    const ggl_buffer *borrowed[16];
    int n_borrowed;
    size_t n_ahead; /* most jobs that were left when others were waited for */
} lazy_queue;

static atomic_bool lazy_held; /* runs do not return */
static atomic_int lazy_n_polls;
static atomic_bool lazy_polls_for_next; /* nothing is done before more is put off */
enum { LAZY_MOST = 4 };
static lazy_queue lazy[LAZY_MOST]; /* of the backends 'a', 'b', .. */

static lazy_queue *lazy_of(const ggl_backend *b) {
    return &lazy[((const fake *)b)->name - 'a'];
}

static ggl_status lazy_put(ggl_backend *b, const lazy_job *job, const void *data, size_t size) {
    lazy_queue *q = lazy_of(b);
    if (q->n == q->cap) {
        q->cap = q->cap * 2 + 64;
        q->job = realloc(q->job, q->cap * sizeof *q->job);
    }
    if (!CHECK(q->job))
        return GGL_NOMEM;
    q->job[q->n] = *job;
    if (data) {
        q->job[q->n].data = malloc(size + 1);
        if (!CHECK(q->job[q->n].data))
            return GGL_NOMEM;
        memcpy(q->job[q->n].data, data, size);
    }
    q->n++;
    return GGL_OK;
}

static ggl_status lazy_do(ggl_backend *real, const lazy_job *j, ggl_error *err) {
    if (!j->plan && !j->data)
        return real->v->clear(real, j->dst, j->offset, j->size, err);
    if (!j->plan && !j->src)
        return real->v->upload(real, j->dst, j->offset, j->data, j->size, err);
    if (!j->plan)
        return real->v->copy(real, j->dst, j->src, (const ggl_copy_range *)(void *)j->data,
                             j->n_ranges, err);
    ggl_buffer **io = (ggl_buffer **)(uintptr_t)&j->region[GGL_REGION_IO], *present = *io;
    *io = j->dst;
    const ggl_status st = real->v->run(real, j->plan, j->region, j->n, err);
    *io = present;
    return st;
}

static ggl_status lazy_wait_for(ggl_backend *b, uint64_t mark, ggl_error *err) {
    lazy_queue *q = lazy_of(b);
    ggl_status st = GGL_OK;
    q->n_ahead = q->n - mark > q->n_ahead ? q->n - mark : q->n_ahead;
    for (; q->done < mark && st == GGL_OK; q->done++) {
        st = lazy_do(((fake *)b)->real, &q->job[q->done], err);
        free(q->job[q->done].data);
    }
    return st;
}

/* Says two times of three that it is not done. */
static ggl_status lazy_poll(ggl_backend *b, uint64_t mark, bool *done, ggl_error *err) {
    enum { MOST_POLLS = 20000 };
    (void)err;
    const int n = ++lazy_n_polls;
    *done = lazy_polls_for_next && n < MOST_POLLS ? lazy_of(b)->n > mark : n % 3 == 0;
    usleep(*done ? 0 : 100);
    return GGL_OK;
}

static ggl_status lazy_mark(ggl_backend *b, uint64_t *mark, ggl_error *err) {
    (void)err;
    *mark = lazy_of(b)->n;
    return GGL_OK;
}

static ggl_status lazy_wait(ggl_backend *b, ggl_error *err) {
    return lazy_wait_for(b, lazy_of(b)->n, err);
}

static ggl_status lazy_run(ggl_backend *b, ggl_plan *p, ggl_buffer *const *region, int64_t n,
                           ggl_error *err) {
    (void)err;
    while (lazy_held)
        usleep(100);
    return lazy_put(
        b, &(lazy_job){.plan = p, .region = region, .dst = region[GGL_REGION_IO], .n = n}, NULL, 0);
}

static ggl_status lazy_upload(ggl_backend *b, ggl_buffer *dst, size_t offset, const void *src,
                              size_t size, ggl_error *err) {
    (void)err;
    return lazy_put(b, &(lazy_job){.dst = dst, .offset = offset, .size = size}, src, size);
}

static ggl_status lazy_download(ggl_backend *b, const ggl_buffer *src, size_t offset, void *dst,
                                size_t size, ggl_error *err) {
    ggl_backend *real = ((fake *)b)->real;
    const ggl_status st = lazy_wait(b, err);
    return st == GGL_OK ? real->v->download(real, src, offset, dst, size, err) : st;
}

static ggl_status lazy_copy(ggl_backend *b, ggl_buffer *dst, const ggl_buffer *src,
                            const ggl_copy_range *range, size_t n, ggl_error *err) {
    (void)err;
    return lazy_put(b, &(lazy_job){.dst = dst, .src = src, .n_ranges = n}, range,
                    n * sizeof *range);
}

static ggl_status lazy_clear(ggl_backend *b, ggl_buffer *buf, size_t offset, size_t size,
                             ggl_error *err) {
    (void)err;
    return lazy_put(b, &(lazy_job){.dst = buf, .offset = offset, .size = size}, NULL, 0);
}

static ggl_status lazy_alloc(ggl_backend *b, int region, size_t size, const void *host,
                             ggl_buffer **out, ggl_error *err) {
    ggl_backend *real = ((fake *)b)->real;
    return host && region == GGL_REGION_IO && lazy_of(b)->takes_host
               ? real->v->alloc(real, region, size, host, out, err)
               : fake_alloc(b, region, size, host, out, err);
}

/* A handle is the buffer itself, which all of these backends can read. */
static ggl_status lazy_share(ggl_backend *b, const ggl_buffer *buf, ggl_shared *out,
                             ggl_error *err) {
    (void)b;
    (void)err;
    *out = (ggl_shared){.fd = -1};
    memcpy(out->owner, &buf, sizeof(ggl_buffer *));
    return GGL_OK;
}

static ggl_status lazy_borrow(ggl_backend *b, const ggl_shared *from, ggl_buffer **out,
                              ggl_error *err) {
    lazy_queue *q = lazy_of(b);
    memcpy(out, from->owner, sizeof *out);
    if (q->n_borrowed == sizeof q->borrowed / sizeof *q->borrowed)
        return ggl_fail(err, GGL_LIMIT, "borrowed too often");
    q->borrowed[q->n_borrowed++] = *out;
    return GGL_OK;
}

static void lazy_free_buffer(ggl_backend *b, ggl_buffer *buf) {
    lazy_queue *q = lazy_of(b);
    for (int i = 0; i < q->n_borrowed; i++)
        if (q->borrowed[i] == buf) {
            q->borrowed[i] = q->borrowed[--q->n_borrowed];
            return;
        }
    ((fake *)b)->real->v->free(((fake *)b)->real, buf);
}

/* Makes a fake backend lazy. */
static void lazy_make(fake *f, bool takes_host, bool has_peers) {
    lazy_queue *q = lazy_of(&f->base);
    free(q->job);
    *q = (lazy_queue){.takes_host = takes_host};
    f->base.async = true;
    f->v.alloc = lazy_alloc;
    f->v.upload = lazy_upload;
    f->v.download = lazy_download;
    f->v.copy = lazy_copy;
    f->v.clear = lazy_clear;
    f->v.run = lazy_run;
    f->v.wait = lazy_wait;
    f->v.free = lazy_free_buffer;
    f->v.share = has_peers ? lazy_share : NULL;
    f->v.borrow = has_peers ? lazy_borrow : NULL;
    f->v.mark = lazy_mark;
    f->v.wait_for = lazy_wait_for;
    f->v.poll = lazy_poll;
}

static void lazy_free(void) {
    for (int i = 0; i < LAZY_MOST; i++) {
        free(lazy[i].job);
        lazy[i] = (lazy_queue){0};
    }
}

#endif
