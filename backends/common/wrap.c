#include "wrap.h"

#include "ggl/backends.h"

void ggl_backend_close(ggl_backend *b) {
    if (b)
        b->v->close(b);
}

_Static_assert(sizeof(ggl_backend_vtable) == 22 * sizeof(void *),
               "another function of a backend: it is to be passed on");

static ggl_status w_alloc(ggl_backend *b, int region, size_t size, const void *host,
                          ggl_buffer **out, ggl_error *err) {
    return wrap_inner(b)->v->alloc(wrap_inner(b), region, size, host, out, err);
}

static void w_free(ggl_backend *b, ggl_buffer *buf) {
    wrap_inner(b)->v->free(wrap_inner(b), buf);
}

static ggl_status w_upload(ggl_backend *b, ggl_buffer *dst, size_t offset, const void *src,
                           size_t size, ggl_error *err) {
    return wrap_inner(b)->v->upload(wrap_inner(b), dst, offset, src, size, err);
}

static ggl_status w_download(ggl_backend *b, const ggl_buffer *src, size_t offset, void *dst,
                             size_t size, ggl_error *err) {
    return wrap_inner(b)->v->download(wrap_inner(b), src, offset, dst, size, err);
}

static ggl_status w_copy(ggl_backend *b, ggl_buffer *dst, const ggl_buffer *src,
                         const ggl_copy_range *range, size_t n, ggl_error *err) {
    return wrap_inner(b)->v->copy(wrap_inner(b), dst, src, range, n, err);
}

static ggl_status w_clear(ggl_backend *b, ggl_buffer *buf, size_t offset, size_t size,
                          ggl_error *err) {
    return wrap_inner(b)->v->clear(wrap_inner(b), buf, offset, size, err);
}

static const char *w_refuses(const ggl_backend *b, const ggl_tensor *node) {
    return wrap_inner(b)->v->refuses(wrap_inner(b), node);
}

/* Lets the inner backend call the wrapper's cancelled() and reads(), or forbids it. */
static void lend(const ggl_backend *b, bool lent) {
    ggl_backend *inner = wrap_inner(b);
    inner->cancelled = lent ? b->cancelled : NULL;
    inner->cancelled_ctx = lent ? b->cancelled_ctx : NULL;
    inner->reads = lent ? b->reads : NULL;
    inner->reads_ctx = lent ? b->reads_ctx : NULL;
}

ggl_status ggl_wrap_compile(ggl_backend *b, const ggl_segment *s, ggl_plan **out, ggl_error *err) {
    lend(b, true);
    const ggl_status st = wrap_inner(b)->v->compile(wrap_inner(b), s, out, err);
    lend(b, false);
    return st;
}

ggl_status ggl_wrap_run(ggl_backend *b, ggl_plan *p, ggl_buffer *const *region, int64_t n,
                        ggl_error *err) {
    lend(b, true);
    const ggl_status st = wrap_inner(b)->v->run(wrap_inner(b), p, region, n, err);
    lend(b, false);
    return st;
}

static ggl_status w_wait(ggl_backend *b, ggl_error *err) {
    return wrap_inner(b)->v->wait(wrap_inner(b), err);
}

static ggl_status w_mark(ggl_backend *b, uint64_t *mark, ggl_error *err) {
    return wrap_inner(b)->v->mark(wrap_inner(b), mark, err);
}

static ggl_status w_wait_for(ggl_backend *b, uint64_t mark, ggl_error *err) {
    return wrap_inner(b)->v->wait_for(wrap_inner(b), mark, err);
}

static ggl_status w_poll(ggl_backend *b, uint64_t mark, bool *done, ggl_error *err) {
    return wrap_inner(b)->v->poll(wrap_inner(b), mark, done, err);
}

static ggl_status w_share(ggl_backend *b, const ggl_buffer *buf, ggl_shared *out, ggl_error *err) {
    return wrap_inner(b)->v->share(wrap_inner(b), buf, out, err);
}

static ggl_status w_borrow(ggl_backend *b, const ggl_shared *from, ggl_buffer **out,
                           ggl_error *err) {
    return wrap_inner(b)->v->borrow(wrap_inner(b), from, out, err);
}

static void w_plan_free(ggl_backend *b, ggl_plan *p) {
    wrap_inner(b)->v->plan_free(wrap_inner(b), p);
}

static void w_describe(ggl_backend *b, ggl_plan *p, int64_t n, char *text, size_t size) {
    wrap_inner(b)->v->describe(wrap_inner(b), p, n, text, size);
}

static size_t w_repack_size(const ggl_backend *b, const ggl_tensor *weight) {
    return wrap_inner(b)->v->repack_size(wrap_inner(b), weight);
}

static ggl_status w_repack(ggl_backend *b, ggl_buffer *dst, size_t offset, const ggl_tensor *weight,
                           ggl_error *err) {
    return wrap_inner(b)->v->repack(wrap_inner(b), dst, offset, weight, err);
}

static int64_t w_repack_rows(const ggl_backend *b, const ggl_tensor *weight) {
    return wrap_inner(b)->v->repack_rows(wrap_inner(b), weight);
}

void ggl_wrap_init(wrap *w, ggl_backend *inner) {
    const ggl_backend_vtable *v = inner->v;
    w->inner = inner;
    w->v = (ggl_backend_vtable){
        .alloc = w_alloc,
        .free = w_free,
        .upload = w_upload,
        .download = w_download,
        .copy = w_copy,
        .clear = w_clear,
        .refuses = w_refuses,
        .compile = ggl_wrap_compile,
        .run = ggl_wrap_run,
        .wait = w_wait,
        .mark = v->mark ? w_mark : NULL,
        .wait_for = v->wait_for ? w_wait_for : NULL,
        .poll = v->poll ? w_poll : NULL,
        .share = v->share ? w_share : NULL,
        .borrow = v->borrow ? w_borrow : NULL,
        .plan_free = w_plan_free,
        .describe = v->describe ? w_describe : NULL,
        .repack_size = v->repack_size ? w_repack_size : NULL,
        .repack = v->repack ? w_repack : NULL,
        .repack_layout = v->repack_layout,
        .repack_rows = v->repack_rows ? w_repack_rows : NULL,
    };
    w->base = *inner;
    w->base.v = &w->v;
}
