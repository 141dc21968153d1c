#include "kept.h"

#include "ggl/alloc.h"

ggl_status llm_kept_init(kept *k, llm_session *s, ggl_error *err) {
    *k = (kept){.session = s, .n = (int)llm_session_n_slots(s)};
    k->slot = ggl_calloc((size_t)k->n, sizeof *k->slot);
    if (!k->slot)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a list of %d slots", k->n);
    ggl_status st = GGL_OK;
    for (int i = 0; i < k->n && st == GGL_OK; i++)
        st = llm_session_clear(s, i, err);
    return st;
}

void llm_kept_fini(kept *k) {
    for (int i = 0; i < k->n && k->slot; i++)
        ggl_free(k->slot[i].token);
    ggl_free(k->slot);
    k->slot = NULL;
}

static void forget(kept_slot *s) {
    ggl_free(s->token);
    s->token = NULL;
    s->n = 0;
}

static ggl_status clear(kept *k, int i, ggl_error *err) {
    forget(&k->slot[i]);
    return llm_session_clear(k->session, i, err);
}

/* --- choosing --------------------------------------------------------------------------------- */

/* The slot to lose: an empty one, or else the one that was used longest ago. */
static int choose_victim(const kept *k) {
    int best = -1;
    for (int i = 0; i < k->n; i++) {
        const kept_slot *s = &k->slot[i], *b = &k->slot[best < 0 ? 0 : best];
        if (s->by)
            continue;
        if (best < 0 || (b->n > 0 && (s->n == 0 || s->used < b->used)))
            best = i;
    }
    return best;
}

/* How many of the first `most` tokens of q slot i may offer. */
static int64_t offers(const kept *k, int i, const seq *q, int64_t most) {
    const kept_slot *s = &k->slot[i];
    const int32_t *token = s->by ? s->by->token : s->token;
    const int64_t n = llm_seq_common(q->token, most, token, s->by ? s->by->n_kept : s->n);
    /* states are those after the slot's last token */
    return llm_session_has_states(k->session) && n < llm_session_n_past(k->session, i) ? 0 : n;
}

/* The slot not yet tried that offers most; *n: how many tokens. -1: none offers any. */
static int choose_source(kept *k, const seq *q, int64_t *n) {
    int best = -1;
    *n = 0;
    for (int i = 0; i < k->n; i++) {
        const int64_t offer = k->slot[i].is_tried ? 0 : offers(k, i, q, q->n - 1);
        if (offer > *n) {
            *n = offer;
            best = i;
        }
    }
    return best;
}

/* The slot for a sequence that takes n tokens from `source`: that slot itself if it loses nothing, or less
 * than another one would. */
static int choose_slot(const kept *k, int source, int64_t n) {
    const int victim = choose_victim(k);
    const kept_slot *s = &k->slot[source];
    return !s->by && s->n - n <= k->slot[victim].n ? source : victim;
}

/* Makes slot `to` hold the first n tokens of `from`. False: the caches do not go back so far. */
static bool take(kept *k, int to, int from, int64_t n) {
    const bool ok = llm_session_share(k->session, to, from, n, NULL) == GGL_OK;
    if (ok || llm_session_n_past(k->session, to) != k->slot[to].n)
        forget(&k->slot[to]);
    return ok;
}

ggl_status llm_kept_begin(kept *k, seq *q, bool reuse, ggl_error *err) {
    ggl_status st = GGL_OK;
    int64_t n = 0;
    int slot = -1;
    for (int i = 0; i < k->n; i++)
        k->slot[i].is_tried = false;
    while (reuse && slot < 0) {
        const int from = choose_source(k, q, &n);
        if (from < 0)
            break;
        slot = choose_slot(k, from, n);
        if (!take(k, slot, from, n))
            slot = -1;
        k->slot[from].is_tried = true;
        k->slot[from].used = ++k->time;
    }
    if (slot < 0) {
        slot = choose_victim(k);
        st = clear(k, slot, err);
    }
    if (st != GGL_OK)
        return st;
    q->slot = slot;
    q->n_kept = llm_session_n_past(k->session, slot);
    k->slot[slot].by = q;
    return GGL_OK;
}

void llm_kept_end(kept *k, seq *q) {
    kept_slot *s = &k->slot[q->slot];
    const int64_t n_past = llm_session_n_past(k->session, q->slot);
    if (q->n_kept > n_past)
        q->n_kept = n_past; /* the last run failed */
    s->by = NULL;
    s->used = ++k->time;
    if (llm_seq_go_back(q, q->n_kept, NULL) != GGL_OK || q->n_kept == 0) {
        (void)clear(k, q->slot, NULL);
    } else {
        s->n = q->n_kept;
        s->token = q->token;
        q->token = NULL;
    }
    q->slot = -1;
}

bool llm_kept_drop(kept *k) {
    int oldest = -1;
    for (int i = 0; i < k->n; i++) {
        const kept_slot *s = &k->slot[i];
        if (!s->by && s->n > 0 && (oldest < 0 || s->used < k->slot[oldest].used))
            oldest = i;
    }
    if (oldest >= 0)
        (void)clear(k, oldest, NULL);
    return oldest >= 0;
}
