#include "snapshots.h"

#include <stdlib.h>
#include <string.h>

#include "ggl/internal/alloc.h"

static size_t bytes_of(const snapshots *s, const snapshot *x) {
    return x->size + (size_t)x->n * sizeof *x->token + s->n_tasks * sizeof *x->share;
}

static void drop(snapshots *s, size_t i) {
    snapshot *x = &s->at[i];
    s->bytes -= bytes_of(s, x);
    ggl_free(x->token);
    ggl_free(x->share);
    ggl_free(x->data);
    *x = s->at[--s->n];
}

static void drop_oldest(snapshots *s) {
    size_t oldest = 0;
    for (size_t i = 1; i < s->n; i++)
        if (s->at[i].last_use < s->at[oldest].last_use)
            oldest = i;
    drop(s, oldest);
}

/* True if the snapshot is one of the beginning of token[0 .. n), with these shares. */
static bool fits(const snapshots *s, const snapshot *x, const float *share, const int32_t *token,
                 int64_t n) {
    return x->n <= n && memcmp(x->share, share, s->n_tasks * sizeof *share) == 0 &&
           memcmp(x->token, token, (size_t)x->n * sizeof *token) == 0;
}

snapshot *llm_snapshots_find(const snapshots *s, const float *share, const int32_t *token,
                             int64_t n) {
    snapshot *best = NULL;
    for (size_t i = 0; i < s->n; i++) {
        snapshot *x = &s->at[i];
        if ((!best || x->n > best->n) && fits(s, x, share, token, n))
            best = x;
    }
    return best;
}

void llm_snapshots_use(snapshots *s, snapshot *x) {
    x->last_use = ++s->clock;
}

/* Makes room for a snapshot of n tokens and `size` bytes of data, whose tokens and shares it copies; NULL: there is one already, which is marked as just
 * used, or it cannot be kept. */
static snapshot *make(snapshots *s, const float *share, const int32_t *token, int64_t n,
                      size_t size) {
    snapshot x = {.n = n, .size = size, .last_use = ++s->clock};
    snapshot *same = llm_snapshots_find(s, share, token, n);
    if (same && same->n == n) {
        llm_snapshots_use(s, same);
        return NULL;
    }
    if (n == 0 || bytes_of(s, &x) > s->most_bytes ||
        !ggl_grow(&s->at, &s->cap, s->n + 1, sizeof *s->at))
        return NULL;
    while (s->n > 0 && s->bytes + bytes_of(s, &x) > s->most_bytes)
        drop_oldest(s);
    x.token = ggl_calloc((size_t)n, sizeof *x.token);
    x.share = ggl_calloc(s->n_tasks, sizeof *x.share);
    if (!x.token || !x.share) {
        ggl_free(x.token);
        ggl_free(x.share);
        return NULL;
    }
    memcpy(x.share, share, s->n_tasks * sizeof *share);
    memcpy(x.token, token, (size_t)n * sizeof *token);
    s->bytes += bytes_of(s, &x);
    s->at[s->n] = x;
    return &s->at[s->n++];
}

/* The snapshot that was made last has its data now, whose size may differ from what was expected. */
static void fill(snapshots *s, snapshot *x, void *data, size_t size) {
    s->bytes = s->bytes - x->size + size;
    x->size = size;
    x->data = data;
    if (!data || bytes_of(s, x) > s->most_bytes)
        drop(s, s->n - 1);
    while (s->bytes > s->most_bytes)
        drop_oldest(s);
}

void llm_snapshots_add(snapshots *s, llm_session *session, int slot, const float *share,
                       const int32_t *token, int64_t n) {
    void *data = NULL;
    size_t size = (size_t)ggl_sched_slot_size(llm_session_sched(session), n, true);
    snapshot *x = make(s, share, token, n, size);
    if (!x)
        return;
    if (llm_session_save(session, slot, true, &data, &size, NULL) != GGL_OK)
        data = NULL;
    fill(s, x, data, data ? size : 0);
}

void llm_snapshots_put(snapshots *s, const float *share, const int32_t *token,
                       const llm_prompt_states *x) {
    snapshot *own = make(s, share, token, x->n, x->size);
    if (!own)
        return;
    void *data = ggl_calloc(x->size, 1);
    if (data)
        memcpy(data, x->data, x->size);
    fill(s, own, data, data ? x->size : 0);
}

static int by_tokens(const void *a, const void *b) {
    const int64_t x = ((const llm_prompt_states *)a)->n, y = ((const llm_prompt_states *)b)->n;
    return (x > y) - (x < y);
}

ggl_status llm_snapshots_list(const snapshots *s, const float *share, const int32_t *token,
                              int64_t n, llm_prompt_states **out, size_t *n_out, ggl_error *err) {
    *n_out = 0;
    *out = s->n > 0 ? ggl_calloc(s->n, sizeof **out) : NULL;
    if (s->n > 0 && !*out)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %zu states", s->n);
    for (size_t i = 0; i < s->n; i++) {
        const snapshot *x = &s->at[i];
        if (x->n < n && fits(s, x, share, token, n))
            (*out)[(*n_out)++] = (llm_prompt_states){x->n, x->data, x->size};
    }
    if (*n_out > 0)
        qsort(*out, *n_out, sizeof **out, by_tokens);
    return GGL_OK;
}

void llm_snapshots_fini(snapshots *s) {
    while (s->n > 0)
        drop(s, s->n - 1);
    ggl_free(s->at);
    *s = (snapshots){0};
}
