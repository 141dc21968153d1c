#include "kept.h"

#include <stdlib.h>
#include <string.h>

#include "ggl/alloc.h"
#include "run/session_room.h"

ggl_status llm_kept_init(kept *k, llm_session *s, size_t snapshot_bytes, ggl_error *err) {
    *k = (kept){
        .session = s,
        .n = (int)llm_session_n_slots(s),
        .has_states = llm_session_has_states(s),
        .n_tasks = (size_t)llm_session_n_tasks(s),
        .snapshots = {.most_bytes = snapshot_bytes, .n_tasks = (size_t)llm_session_n_tasks(s)}};
    const size_t n = (size_t)k->n;
    k->share = ggl_calloc(n * k->n_tasks, sizeof *k->share);
    k->slot = ggl_calloc(n, sizeof *k->slot);
    k->order = ggl_calloc(n, sizeof(kept_slot *));
    k->victim = ggl_calloc(n, sizeof *k->victim);
    if (!k->share || !k->slot || !k->order || !k->victim)
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
    ggl_free(k->share);
    ggl_free(k->order);
    ggl_free(k->victim);
    k->slot = NULL;
    llm_snapshots_fini(&k->snapshots);
}

static void forget(kept_slot *s) {
    ggl_free(s->token);
    s->token = NULL;
    s->n = s->n_all = 0;
}

static ggl_status clear(kept *k, int i, ggl_error *err) {
    forget(&k->slot[i]);
    return llm_session_clear(k->session, i, err);
}

/* --- choosing --------------------------------------------------------------------------------- */

/* Chooses a slot to overwrite: an empty one, else the least recently used. */
static int choose_victim(const kept *k) {
    int best = -1;
    for (int i = 0; i < k->n; i++) {
        const kept_slot *s = &k->slot[i], *b = &k->slot[best < 0 ? 0 : best];
        if (s->by)
            continue;
        if (best < 0 || (b->n > 0 && (s->n == 0 || s->last_use < b->last_use)))
            best = i;
    }
    return best;
}

/* The tokens of slot i; *n: their number. */
static const int32_t *tokens(const kept *k, int i, int64_t *n) {
    const kept_slot *s = &k->slot[i];
    *n = s->by ? s->by->n_kept : s->n;
    return s->by ? s->by->token : s->token;
}

/* True if slot i has read the text of q. */
static bool has_read(const kept *k, int i, const seq *q) {
    int64_t n;
    const int32_t *text = llm_session_text(k->session, i, &n);
    return text && n == q->n_text && memcmp(text, q->text, (size_t)n * sizeof *text) == 0;
}

/* True if the tokens of slot i ran with the shares of q. */
static bool has_shares(const kept *k, int i, const seq *q) {
    const seq *by = k->slot[i].by;
    return llm_seq_has_shares(q, by ? llm_seq_shares(by) : k->share + (size_t)i * k->n_tasks);
}

/* Notes that the tokens of slot i ran with these shares. */
static void set_shares(kept *k, int i, const float *share) {
    memcpy(k->share + (size_t)i * k->n_tasks, share, k->n_tasks * sizeof *share);
}

/* How many tokens slot i has in common with q, without its last one. What a slot holds depends on the text that it has read, and
 * snapshots do not say which one that was. */
static int64_t common(const kept *k, int i, const seq *q) {
    int64_t n_slot;
    if (!has_shares(k, i, q))
        return 0;
    if (q->text && (k->has_states || !has_read(k, i, q)))
        return 0;
    const int32_t *token = tokens(k, i, &n_slot);
    return llm_seq_common(q->token, q->n - 1, token, n_slot);
}

int64_t llm_kept_common(const kept *k, const seq *q) {
    int64_t most = 0;
    for (int i = 0; i < k->n; i++) {
        const int64_t n_common = common(k, i, q);
        most = n_common > most ? n_common : most;
    }
    return most;
}

/* Returns how many of the tokens of q, without its last one, slot i can give. */
static int64_t offers(const kept *k, int i, const seq *q) {
    const int64_t n = common(k, i, q), n_past = llm_session_n_past(k->session, i);
    if (!k->has_states && n_past - n > llm_session_cut_limit(k->session))
        return 0; /* a window has moved on */
    if (!k->has_states || n == 0 || n == n_past)
        return n;
    /* the slot's states are those after its last token */
    const snapshot *x = llm_snapshots_find(&k->snapshots, llm_seq_shares(q), q->token, n);
    return x ? x->n : 0;
}

/* Returns the slot not yet tried that can give most tokens; *n is their number. -1: none can give any. */
static int choose_source(const kept *k, const seq *q, int64_t *n) {
    int best = -1;
    *n = 0;
    for (int i = 0; i < k->n; i++) {
        const int64_t offer = k->slot[i].is_tried ? 0 : offers(k, i, q);
        if (offer > *n) {
            *n = offer;
            best = i;
        }
    }
    return best;
}

int64_t llm_kept_parted(const kept *k, const seq *q, int64_t n_prompt) {
    int64_t most = 0;
    for (int i = 0; i < k->n; i++) {
        const kept_slot *s = &k->slot[i];
        const int32_t *token = s->by ? s->by->token : s->token;
        const int64_t n_slot = s->by ? s->by->n : s->n;
        const int64_t n =
            has_shares(k, i, q) ? llm_seq_common(q->token, n_prompt, token, n_slot) : 0;
        if (n > most && n < n_prompt && n < n_slot && n < s->n_prompt)
            most = n;
    }
    return most;
}

int llm_kept_empty(kept *k) {
    const int i = choose_victim(k);
    k->slot[i].id = 0;
    return clear(k, i, NULL) == GGL_OK ? i : -1;
}

static void begin_search(kept *k) {
    for (int i = 0; i < k->n; i++)
        k->slot[i].is_tried = false;
}

int64_t llm_kept_offer(kept *k, const seq *q, int but) {
    int64_t n;
    begin_search(k);
    if (but >= 0)
        k->slot[but].is_tried = true;
    (void)choose_source(k, q, &n);
    return n;
}

int llm_kept_spare(kept *k, const seq *q, int64_t *n) {
    begin_search(k);
    const int source = choose_source(k, q, n);
    if (source >= 0)
        k->slot[source].last_use = ++k->clock;
    return source;
}

/* Chooses the slot for a sequence that takes n tokens from `source`: `want`, if no sequence runs there, or `source`
 * itself, unless it would lose more tokens by this than the slot to overwrite. */
static int choose_slot(const kept *k, int source, int64_t n, int want) {
    if (want >= 0 && !k->slot[want].by)
        return want;
    const int victim = choose_victim(k);
    const kept_slot *s = &k->slot[source];
    return !s->by && s->n - n <= k->slot[victim].n ? source : victim;
}

/* Makes slot `to` hold the first n tokens of slot `from`, which are also the first of q. Returns false if the
 * caches cannot be cut at n, or a backend has failed; `to` is then cleared, unless it is `from` and did not
 * change. */
static bool take(kept *k, const seq *q, int to, int from, int64_t n) {
    const int64_t n_past = llm_session_n_past(k->session, from);
    snapshot *x = NULL;
    if (k->has_states && n < n_past)
        x = llm_snapshots_find(&k->snapshots, llm_seq_shares(q), q->token, n);
    bool is_changed = to != from;
    bool ok = llm_session_share(k->session, to, from, x ? n_past : n, NULL) == GGL_OK;
    if (ok && x) {
        llm_snapshots_use(&k->snapshots, x);
        ok = llm_session_restore(k->session, to, x->data, x->size, NULL) == GGL_OK;
        is_changed = true;
    }
    if (ok)
        forget(&k->slot[to]);
    else if (is_changed)
        (void)clear(k, to, NULL);
    return ok;
}

ggl_status llm_kept_begin(kept *k, seq *q, bool reuse, int want, ggl_error *err) {
    ggl_status st = GGL_OK;
    int64_t n = 0;
    int slot = -1;
    begin_search(k);
    while (reuse && slot < 0) {
        const int from = choose_source(k, q, &n);
        if (from < 0)
            break;
        slot = choose_slot(k, from, n, want);
        if (!take(k, q, slot, from, n))
            slot = -1;
        k->slot[from].is_tried = true;
        k->slot[from].last_use = ++k->clock;
    }
    if (slot < 0) {
        slot = want >= 0 && !k->slot[want].by ? want : choose_victim(k);
        st = clear(k, slot, err);
    }
    if (st != GGL_OK)
        return st;
    q->slot = slot;
    q->n_kept = llm_session_n_past(k->session, slot);
    k->slot[slot].by = q;
    return GGL_OK;
}

ggl_status llm_kept_copy(kept *k, seq *q, const seq *from, ggl_error *err) {
    if (q->slot < 0) {
        q->slot = choose_victim(k);
        forget(&k->slot[q->slot]);
        k->slot[q->slot].by = q;
    }
    const ggl_status st = llm_session_copy(k->session, q->slot, from->slot, err);
    q->n_kept = st == GGL_OK ? from->n_kept : 0;
    return st;
}

void llm_kept_end(kept *k, seq *q) {
    kept_slot *s = &k->slot[q->slot];
    const int64_t n_past = llm_session_n_past(k->session, q->slot);
    if (q->n_kept > n_past)
        q->n_kept = n_past; /* the last run failed */
    s->by = NULL;
    s->last_use = ++k->clock;
    if (llm_seq_go_back(q, q->n_kept, NULL) != GGL_OK || q->n_kept == 0) {
        (void)clear(k, q->slot, NULL);
    } else {
        s->n = q->n_kept;
        set_shares(k, q->slot, llm_seq_shares(q));
    }
    s->token = q->token;
    s->n_all = q->n;
    q->token = NULL;
    q->slot = -1;
}

void llm_kept_give_back(kept *k, seq *q) {
    k->slot[q->slot].by = NULL;
    (void)clear(k, q->slot, NULL);
    llm_seq_drop_snapshot(q);
    q->n_kept = q->n_guess = 0;
    q->at = q->slot = -1;
}

void llm_kept_adopt(kept *k, int slot, int32_t *token, int64_t n) {
    kept_slot *s = &k->slot[slot];
    forget(s);
    if (token) {
        s->token = token;
        s->n = s->n_all = n;
        set_shares(k, slot, llm_session_shares(k->session));
    } else if (llm_session_n_past(k->session, slot) > 0) {
        (void)clear(k, slot, NULL);
    }
    s->id = 0;
    s->n_prompt = n;
    s->last_use = ++k->clock;
}

void llm_kept_take_snapshot(kept *k, const seq *q, int64_t n) {
    llm_snapshots_add(&k->snapshots, k->session, q->slot, llm_seq_shares(q), q->token, n);
}

/* --- clearing --------------------------------------------------------------------------------- */

/* For qsort: the slot that was used longest ago first. */
static int by_use(const void *a, const void *b) {
    const kept_slot *x = *(kept_slot *const *)a, *y = *(kept_slot *const *)b;
    return (x->last_use > y->last_use) - (x->last_use < y->last_use);
}

/* Lists the slots that may be cleared in `victim`, in the order in which they are: those in which no sequence runs and
 * that have at least n_least tokens. Returns their number. */
static int list_victims(kept *k, int64_t n_least, int but) {
    int n = 0;
    for (int i = 0; i < k->n; i++)
        if (!k->slot[i].by && k->slot[i].n >= n_least && i != but)
            k->order[n++] = &k->slot[i];
    qsort(k->order, (size_t)n, sizeof(kept_slot *), by_use);
    for (int i = 0; i < n; i++)
        k->victim[i] = (int)(k->order[i] - k->slot);
    return n;
}

bool llm_kept_drop(kept *k, int but) {
    if (llm_session_lacking(k->session) <= 0)
        return true;
    const int n = llm_session_choose_to_clear(k->session, k->victim, list_victims(k, 1, but));
    for (int i = 0; i < n; i++)
        (void)clear(k, k->victim[i], NULL);
    return n >= 0;
}

int64_t llm_kept_lacking(kept *k) {
    return llm_session_lacking_without(k->session, k->victim, list_victims(k, 1, -1));
}

/* --- texts ------------------------------------------------------------------------------------ */

/* Chooses, in `victim`, slots that are to give up their texts for that of q; those without tokens may have one, too.
 * Returns their number; -1: there is no room. */
static int choose_to_unread(kept *k, const seq *q) {
    return llm_session_choose_to_unread(k->session, q->n_text, k->victim, list_victims(k, 0, -1));
}

bool llm_kept_can_read(kept *k, const seq *q, bool shares) {
    bool can = !q->text;
    for (int i = 0; i < k->n && shares && !can; i++)
        can = has_read(k, i, q);
    return can || choose_to_unread(k, q) >= 0;
}

/* Empties the slot, whose tokens have seen the text that it gives up. */
static ggl_status unread(kept *k, int i) {
    forget(&k->slot[i]);
    return llm_session_unread(k->session, i, NULL);
}

void llm_kept_make_room_to_read(kept *k, const seq *q) {
    (void)unread(k, q->slot);
    const int n = choose_to_unread(k, q);
    for (int i = 0; i < n; i++)
        (void)unread(k, k->victim[i]);
}
