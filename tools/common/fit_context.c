#include "fit_context.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "amounts.h"
#include "place/memory_left.h"

enum {
    MULTIPLE = 256,
    FEW_TOKENS = 4096,   /* as many as weights in mapped files may give way to */
    LEAST_TOKENS = 2048, /* fewer are of no use: then the note says that memory lacks */
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

int64_t fit_context_tokens(const fit_memory *m, int n, int64_t n_ctx, int *tightest) {
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

const char *fit_context_text(const fit_memory *m, int64_t n_ctx, char *buf, size_t size) {
    char cache[AMOUNT_TEXT], all[AMOUNT_TEXT], other[AMOUNT_TEXT], margin[AMOUNT_TEXT];
    snprintf(buf, size,
             "the KV cache of %" PRId64 " tokens takes %s, but %s has %s available; the rest of "
             "the model takes %s, and %s are left free",
             n_ctx, amount_bytes(cache, (uint64_t)(m->row * (double)n_ctx)), m->name,
             amount_bytes(all, (uint64_t)m->available),
             amount_bytes(other, (uint64_t)(m->fixed + m->mapped)),
             amount_bytes(margin, (uint64_t)m->margin));
    return buf;
}

/* --- measuring ------------------------------------------------------------------------------------- */

/* True if the backend computes in the memory of the CPU. */
bool fit_context_is_host(const ggl_backend *b) {
    return b->software || strncmp(b->name, "cpu", 3) == 0 || strcmp(b->name, "reference") == 0;
}

/* Fills in the memories that the session uses, the CPU's first. Returns how many. */
static int measure(const fit_context *f, const llm_session *s, fit_memory *m) {
    const double n_ctx = (double)llm_session_n_ctx(s), available = (double)llm_memory_left("");
    const double addresses = (double)llm_memory_left_addresses();
    int n = 2;
    m[0] = (fit_memory){.name = "the memory",
                        .available = available,
                        .margin = available / HOST_MARGIN,
                        .fixed = f->draft_fixed + (f->taken ? f->taken(f->taken_ctx, "") : 0),
                        .row = f->draft_row};
    for (int i = 0; i < llm_placement_n_backends(f->placement); i++) {
        const ggl_backend *b = llm_placement_backend(f->placement, i);
        ggl_memory u;
        if (n == MOST_MEMORIES || !ggl_sched_memory(llm_session_sched(s), i, &u))
            continue;
        fit_memory *at = fit_context_is_host(b) ? m : &m[n++];
        if (at != m)
            *at = (fit_memory){.name = b->name,
                               .available = (double)b->memory,
                               .margin = (double)b->memory / DEVICE_MARGIN,
                               .fixed = f->taken ? f->taken(f->taken_ctx, b->name) : 0};
        at->fixed += (double)u.weights_copied + (double)u.weights_repacked +
                     (double)u.stores_states + (double)u.arena + (double)u.io;
        at->row += (double)u.stores_rows / n_ctx;
        m[0].mapped += (double)u.weights_mapped;
    }
    /* the addresses of mapped weights are taken already; the threads' malloc will take some */
    m[1] = m[0];
    m[1].name = "the limit of addresses (ulimit -v)";
    m[1].available = addresses;
    m[1].margin = addresses / HOST_MARGIN + (double)sysconf(_SC_NPROCESSORS_ONLN) * ARENA;
    m[1].mapped = 0;
    return n;
}

/* Returns what to do if a memory allows too few tokens. */
static const char *advice(const fit_memory *m) {
    if (m->available - m->margin <= m->fixed)
        return "this model needs more memory; a file with smaller weights (llm-quantize) needs "
               "less";
    return "-ctk q8_0 -ctv q8_0 halves the KV cache";
}

/* True if the cache is larger than all of the computer's memory: allocating it fails, with advice of its own. */
static bool is_refused(const fit_context *f, const fit_memory *m, int64_t n_ctx) {
    double most = 0;
    for (int i = 0; i < llm_placement_n_backends(f->placement); i++)
        if (fit_context_is_host(llm_placement_backend(f->placement, i)))
            most = (double)llm_placement_backend(f->placement, i)->memory;
    return most > 0 && m->row * (double)n_ctx > most;
}

int64_t fit_context_most(const fit_context *f, const llm_session *s) {
    fit_memory m[MOST_MEMORIES];
    int tightest;
    return fit_context_tokens(m, measure(f, s, m), llm_session_n_ctx(s), &tightest);
}

int fit_context_session(const fit_context *f, llm_session **s) {
    fit_memory m[MOST_MEMORIES];
    char text[320], would[48] = "";
    int tightest;
    ggl_error err = {0};
    const int64_t n_ctx = llm_session_n_ctx(*s);
    const int64_t fits = fit_context_tokens(m, measure(f, *s, m), n_ctx, &tightest);
    const int64_t least = n_ctx < LEAST_TOKENS ? n_ctx : LEAST_TOKENS;
    const int64_t n = fits > least ? fits : least;
    if (fits == n_ctx || (f->is_asked && is_refused(f, &m[tightest], n_ctx)))
        return -1;
    fit_context_text(&m[tightest], n_ctx, text, sizeof text);
    if (f->is_asked || n == n_ctx) {
        if (fits > 0)
            snprintf(would, sizeof would, "; -c %" PRId64 " would fit", fits);
        tool_note(f->tool, "%s%s; %s", text, would, advice(&m[tightest]));
        return -1;
    }
    tool_note(f->tool, "%s; so the context is %" PRId64 " tokens (-c N sets another; %s)", text, n,
              advice(&m[tightest]));
    llm_session_free(*s);
    *s = NULL;
    f->params->n_pool = f->params->n_pool > 0 ? n : 0;
    f->params->n_ctx = n;
    if (llm_placement_session(f->placement, s, f->model, f->params, &err) != GGL_OK)
        return tool_error(f->tool, 1, "%s", err.msg);
    return -1;
}

/* --- the hint at --repack-cache ---------------------------------------------------------------------- */

const char *repack_hint(double load_seconds, double repack_seconds, char *buf, size_t size) {
    *buf = '\0';
    if (load_seconds > 3 && repack_seconds > load_seconds / 2)
        snprintf(buf, size,
                 "repacking the weights took %.0f of the %.0f s of loading; --repack-cache "
                 "keeps them in a file for the next time",
                 repack_seconds, load_seconds);
    return buf;
}

void repack_hint_print(const char *tool, const llm_session *s, const llm_session_params *p,
                       double load_seconds, double repack_seconds) {
    char text[192];
    size_t repacked = 0, copied = 0;
    ggl_memory m;
    for (int i = 0; ggl_sched_memory(llm_session_sched(s), i, &m); i++) {
        repacked += m.weights_repacked;
        copied += m.weights_copied;
    }
    if (p->repack_cache || repacked <= copied || isatty(STDERR_FILENO) != 1)
        return;
    if (*repack_hint(load_seconds, repack_seconds, text, sizeof text))
        tool_note(tool, "%s", text);
}
