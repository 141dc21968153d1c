/* The CPU backend. Its memory is the host's, so weights are used in place. */
#include "cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cores.h"
#include "cpu_features.h"
#include "ggl/internal/alloc.h"
#include "trial.h"
#include "ggl/internal/os_process.h"

/* Stores of at least so many bytes ask for huge pages: attention at depth reads all of them for every token, from many places. Pages of
 * stores lie side by side, so that a short text wastes no more than one huge page. Larger stores are spread over the memories of all processors. */
enum { HUGE_STORES = 4 << 20, SPREAD_STORES = 64 << 20 };

static ggl_status cpu_alloc(ggl_backend *b, int region, size_t size, const void *host,
                            ggl_buffer **out, ggl_error *err) {
    const size_t some = size > 0 ? size : 1;
    ggl_buffer *buf = ggl_calloc(1, sizeof *buf);
    char *data = NULL;
    if (buf && host) {
        data = (char *)(uintptr_t)host;
    } else if (buf) {
        data = ggl_pages_calloc(some); /* whose pages cost nothing until touched */
        if (data && region == GGL_REGION_STORES && size >= HUGE_STORES)
            ggl_prefer_huge_pages(data, size);
        if (data && region == GGL_REGION_STORES && size >= SPREAD_STORES)
            ggl_cpu_nodes_interleave(&((cpu_backend *)b)->nodes, data, size);
    }
    if (!data) {
        ggl_free(buf);
        return ggl_fail(err, GGL_NOMEM, "out of memory for %zu bytes", size);
    }
    *buf = (ggl_buffer){data, some, !host, host != NULL};
    *out = buf;
    return GGL_OK;
}

static void cpu_free(ggl_backend *b, ggl_buffer *buf) {
    (void)b;
    if (!buf)
        return;
    if (buf->owned)
        ggl_pages_free(buf->data, buf->size);
    ggl_free(buf);
}

static void cpu_close(ggl_backend *b) {
    cpu_backend *c = (cpu_backend *)b;
    ggl_cpu_pool_close(c->pool);
    ggl_cpu_nodes_fini(&c->nodes);
    ggl_free(c);
}

static const ggl_backend_vtable vtable = {
    .close = cpu_close,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .upload = host_upload,
    .download = host_download,
    .copy = host_copy,
    .clear = host_clear,
    .refuses = ggl_cpu_refuses,
    .compile = ggl_cpu_compile,
    .run = ggl_cpu_run,
    .wait = host_wait,
    .plan_free = ggl_cpu_plan_free,
    .describe = ggl_cpu_describe,
    .repack_size = ggl_cpu_repack_size,
    .repack = ggl_cpu_repack,
    .repack_layout = CPU_REPACK_LAYOUT,
    .repack_rows = ggl_cpu_repack_rows,
};

/* Returns the bytes of the machine's memory, or of addresses that this process may have (ulimit -v), if these are fewer; 0:
 * unknown. */
static size_t most_memory(void) {
    const uint64_t all = ggl_os_memory(), limit = ggl_os_limit_addresses();
    return (size_t)(limit != UINT64_MAX && (!all || limit < all) ? limit : all);
}

ggl_status ggl_cpu_open(ggl_backend **out, const ggl_backend_params *params, ggl_error *err);
ggl_status ggl_cpu_open(ggl_backend **out, const ggl_backend_params *params, ggl_error *err) {
    const ggl_backend_params none = {.size = sizeof none};
    const ggl_backend_params *p = params ? params : &none;
    *out = NULL;
    if (p->n_threads < 0 || p->n_threads_batch < 0 || p->n_threads > GGL_MAX_THREADS ||
        p->n_threads_batch > GGL_MAX_THREADS)
        return ggl_fail(err, GGL_USAGE, "%d threads, and %d for batches: at most %d are allowed",
                        p->n_threads, p->n_threads_batch, GGL_MAX_THREADS);
    cpu_backend *c = ggl_calloc(1, sizeof *c);
    if (!c)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a backend");
    uint32_t features = ggl_cpu_features_mask(
        ggl_cpu_features_mask(ggl_cpu_features_detect(), p->mask), getenv("GGL_CPU_MASK"));
    features = ggl_cpu_features_ask(features);
    features = ggl_cpu_kernels_choose(&c->k, features, !getenv("GGL_CPU_NO_TRIAL"));
    c->profile = p->profile;
    c->profile_ctx = p->profile_ctx;
    c->f16_as_bf16 = p->f16_as_bf16;
    c->share_all = getenv("GGL_CPU_SHARE_ALL") != NULL;
    const cpu_threads threads =
        p->n_threads > 0 ? (cpu_threads){p->n_threads, p->n_threads} : ggl_cpu_default_threads();
    c->n_threads = threads.token;
    c->n_threads_batch = p->n_threads_batch > 0 ? p->n_threads_batch : threads.batch;
    ggl_cpu_nodes_init(&c->nodes);
    ggl_status s =
        ggl_cpu_pool_open(&c->pool, (int)cpu_max(c->n_threads, c->n_threads_batch), &c->nodes, err);
    if (s != GGL_OK) {
        cpu_close(&c->base);
        return s;
    }
    char batch[32] = "", text[64];
    if (c->n_threads_batch != c->n_threads)
        snprintf(batch, sizeof batch, " (batches: %d)", c->n_threads_batch);
    c->base.v = &vtable;
    c->base.memory = most_memory();
    c->base.lazy = true;
    snprintf(c->base.name, sizeof c->base.name, "cpu");
    snprintf(c->base.alike, sizeof c->base.alike, "cpu");
    snprintf(c->base.description, sizeof c->base.description, "%d thread%s%s, %s", c->n_threads,
             c->n_threads == 1 ? "" : "s", batch,
             ggl_cpu_features_text(features, text, sizeof text));
    *out = &c->base;
    return GGL_OK;
}
