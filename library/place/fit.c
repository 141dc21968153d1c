#include "fit.h"

#include <math.h>
#include <string.h>

#include "ggl/internal/sched.h"
#include "ggl/internal/memory_left.h"
#include "ggl/internal/os_process.h"

enum {
    MULTIPLE = 256,
    FEW_TOKENS = 4096,   /* as many as weights in mapped files may give way to */
    LEAST_TOKENS = 2048, /* fewer are of no use: then memory lacks */
    MOST_MEMORIES = 16,  /* two of them are the CPU's */
    HOST_MARGIN = 10,    /* a tenth is left to other programs */
    DEVICE_MARGIN = 20,  /* a twentieth is left to the driver */
    ARENA = 64 << 20     /* addresses that malloc of the C library reserves for a thread */
};

/* --- the calculation ------------------------------------------------------------------------------ */

/* Returns how many tokens have room: n_ctx, or a multiple of 256 below it. */
static int64_t tokens_in(double room, double row, int64_t n_ctx) {
    if (row * (double)n_ctx <= room)
        return n_ctx;
    const double fits = floor(room / row / MULTIPLE) * MULTIPLE;
    return fits > 0 ? (int64_t)fits : 0;
}

int64_t llm_fit_tokens(const llm_fit_memory *m, int n, int64_t n_ctx, int *tightest) {
    int64_t least = n_ctx;
    *tightest = 0;
    for (int i = 0; i < n; i++) {
        const double room = m[i].available - m[i].margin - m[i].fixed;
        if (m[i].available <= 0 || m[i].row <= 0)
            continue;
        const int64_t beside = tokens_in(room - m[i].mapped, m[i].row, least),
                      alone = tokens_in(room, m[i].row, least < FEW_TOKENS ? least : FEW_TOKENS),
                      fits = beside > alone ? beside : alone;
        if (fits >= least)
            continue;
        least = fits;
        *tightest = i;
    }
    return least;
}

/* --- measuring ------------------------------------------------------------------------------------- */

/* Fills in the memories that the session uses, the CPU's first. Returns how many. */
static int measure(const llm_placement *p, const llm_session *s, const llm_fit_others *o,
                   llm_fit_memory *m) {
    const double n_ctx = (double)llm_session_n_ctx(s), available = (double)ggl_memory_left("");
    const double addresses = (double)ggl_memory_left_addresses();
    int n = 2;
    m[0] = (llm_fit_memory){.name = "the memory",
                            .available = available,
                            .margin = available / HOST_MARGIN,
                            .fixed = o->draft_fixed + (o->taken ? o->taken(o->taken_ctx, "") : 0),
                            .row = o->draft_row};
    for (int i = 0; i < llm_placement_n_backends(p); i++) {
        const ggl_backend *b = llm_placement_backend(p, i);
        ggl_memory u;
        if (n == MOST_MEMORIES || !ggl_sched_memory(llm_session_sched(s), i, &u))
            continue;
        llm_fit_memory *at = llm_placement_is_host(b) ? m : &m[n++];
        if (at != m)
            *at = (llm_fit_memory){.name = b->name,
                                   .available = (double)b->memory,
                                   .margin = (double)b->memory / DEVICE_MARGIN,
                                   .fixed = o->taken ? o->taken(o->taken_ctx, b->name) : 0};
        const ggl_memory *r = llm_placement_reserved(p, i);
        at->fixed += llm_placement_taken(&u) - (double)u.stores_rows + llm_placement_taken(r);
        at->row += (double)u.stores_rows / n_ctx;
        at->copies += (double)u.weights_repacked;
        m[0].mapped += (double)u.weights_mapped + (double)r->weights_mapped;
    }
    /* the addresses of mapped weights are taken already; the threads' malloc will take some */
    m[1] = m[0];
    m[1].name = "the limit of addresses (ulimit -v)";
    m[1].available = addresses;
    m[1].margin = addresses / HOST_MARGIN + ggl_os_n_processors() * ARENA;
    m[1].mapped = 0;
    return n;
}

/* True if the cache is larger than all of the computer's memory: allocating it fails, with advice of its own. */
static bool is_refused(const llm_placement *p, const llm_fit_memory *m, int64_t n_ctx) {
    double most = 0;
    for (int i = 0; i < llm_placement_n_backends(p); i++)
        if (llm_placement_is_host(llm_placement_backend(p, i)))
            most = (double)llm_placement_backend(p, i)->memory;
    return most > 0 && m->row * (double)n_ctx > most;
}

llm_fit llm_fit_measure(const llm_placement *p, const llm_session *s,
                        const llm_fit_others *others) {
    static const llm_fit_others none;
    llm_fit_memory m[MOST_MEMORIES];
    int tightest;
    const int64_t n_ctx = llm_session_n_ctx(s);
    const int n = measure(p, s, others ? others : &none, m);
    const int64_t fits = llm_fit_tokens(m, n, n_ctx, &tightest);
    const int64_t least = n_ctx < LEAST_TOKENS ? n_ctx : LEAST_TOKENS;
    return (llm_fit){.fits = fits,
                     .n_ctx = fits > least ? fits : least,
                     .tightest = m[tightest],
                     .is_refused = is_refused(p, &m[tightest], n_ctx)};
}

/* Replaces *s by a session with a context of n tokens. */
static ggl_status replace(const llm_fitting *f, llm_session **s, int64_t n, ggl_error *err) {
    llm_session_free(*s);
    *s = NULL;
    f->params->n_pool = f->params->n_pool > 0 ? n : 0;
    f->params->n_ctx = n;
    return llm_placement_session(f->placement, s, f->model, f->params, err);
}

/* True if the session does not fit into the computer's memory, even with the smallest context, because it repacks weights. On
 * other devices their layout decides about bits, so that it stays. */
static bool lacks_room_for_copies(const llm_fitting *f, const llm_session *s, llm_fit_memory *of) {
    llm_fit_memory m[MOST_MEMORIES];
    const int n = measure(f->placement, s, &f->others, m);
    const int64_t n_ctx = llm_session_n_ctx(s);
    const double tokens = (double)(n_ctx < LEAST_TOKENS ? n_ctx : LEAST_TOKENS);
    for (int i = 2; i < n; i++)
        if (m[i].copies > 0)
            return false;
    /* Allocations beyond the limit of addresses fail, so its margin counts; more memory than there is is only slow. */
    const bool lacks_addresses =
        m[1].available > 0 && m[1].fixed + m[1].row * tokens + m[1].margin > m[1].available;
    *of = m[lacks_addresses];
    return m->copies > 0 &&
           (lacks_addresses || (m->available > 0 && m->fixed + m->row * tokens > m->available));
}

/* Does without copies that have no room; *fit is measured anew then. */
static ggl_status leave_as_they_are(const llm_fitting *f, llm_session **s, llm_fit *fit,
                                    ggl_error *err) {
    llm_fit_memory m;
    if (!f->may_leave || !lacks_room_for_copies(f, *s, &m))
        return GGL_OK;
    const int64_t n_ctx = llm_session_n_ctx(*s);
    f->params->no_repack = true;
    if (f->leaves)
        f->leaves(f->leaves_ctx, &m);
    const ggl_status st = replace(f, s, n_ctx, err);
    if (st == GGL_OK)
        *fit = llm_fit_measure(f->placement, *s, &f->others);
    return st;
}

ggl_status llm_fit_session(const llm_fitting *f, llm_session **s, ggl_error *err) {
    const int64_t n_ctx = llm_session_n_ctx(*s);
    llm_fit fit = llm_fit_measure(f->placement, *s, &f->others);
    if (f->refuses && f->refuses(f->ctx, &fit, n_ctx, f->is_asked))
        return ggl_fail(err, GGL_NOMEM, "the model does not fit into memory");
    const ggl_status st = leave_as_they_are(f, s, &fit, err);
    if (st != GGL_OK)
        return st;
    if (fit.fits == n_ctx || (f->is_asked && fit.is_refused))
        return GGL_OK;
    if (f->lacks)
        f->lacks(f->ctx, &fit, n_ctx, f->is_asked);
    return f->is_asked || fit.n_ctx == n_ctx ? GGL_OK : replace(f, s, fit.n_ctx, err);
}
