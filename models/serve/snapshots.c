#include "snapshots.h"

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

snapshot *llm_snapshots_find(const snapshots *s, const float *share, const int32_t *token,
                             int64_t n) {
    snapshot *best = NULL;
    for (size_t i = 0; i < s->n; i++) {
        snapshot *x = &s->at[i];
        if (x->n <= n && (!best || x->n > best->n) &&
            memcmp(x->share, share, s->n_tasks * sizeof *share) == 0 &&
            memcmp(x->token, token, (size_t)x->n * sizeof *token) == 0)
            best = x;
    }
    return best;
}

void llm_snapshots_use(snapshots *s, snapshot *x) {
    x->last_use = ++s->clock;
}

void llm_snapshots_add(snapshots *s, llm_session *session, int slot, const float *share,
                       const int32_t *token, int64_t n) {
    snapshot *same = llm_snapshots_find(s, share, token, n);
    if (same && same->n == n) {
        llm_snapshots_use(s, same);
        return;
    }
    const size_t size = (size_t)n * sizeof *token + s->n_tasks * sizeof *share +
                        (size_t)ggl_sched_slot_size(llm_session_sched(session), n, true);
    if (n == 0 || size > s->most_bytes || !ggl_grow(&s->at, &s->cap, s->n + 1, sizeof *s->at))
        return;
    while (s->n > 0 && s->bytes + size > s->most_bytes)
        drop_oldest(s);
    snapshot x = {.n = n, .last_use = ++s->clock};
    x.token = ggl_calloc((size_t)n, sizeof *x.token);
    x.share = ggl_calloc(s->n_tasks, sizeof *x.share);
    if (!x.token || !x.share ||
        llm_session_save(session, slot, true, &x.data, &x.size, NULL) != GGL_OK ||
        bytes_of(s, &x) > s->most_bytes) {
        ggl_free(x.token);
        ggl_free(x.share);
        ggl_free(x.data);
        return;
    }
    memcpy(x.share, share, s->n_tasks * sizeof *share);
    memcpy(x.token, token, (size_t)n * sizeof *token);
    s->bytes += bytes_of(s, &x);
    s->at[s->n++] = x;
    while (s->bytes > s->most_bytes)
        drop_oldest(s);
}

void llm_snapshots_fini(snapshots *s) {
    while (s->n > 0)
        drop(s, s->n - 1);
    ggl_free(s->at);
    *s = (snapshots){0};
}
