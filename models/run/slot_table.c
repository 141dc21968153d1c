#include "slot_table.h"

#include <inttypes.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/sched.h"

bool llm_slots_init(slot_table *t, const ggl_graph *g, ggl_sched *sched,
                    const slot_limits *limits) {
    const int64_t n_slots = limits->n_slots;
    const int64_t each = ggl_graph_n_pages(g) ? ggl_graph_find_input(g, "page")->ne[0] : 0;
    const int64_t n_main = ggl_graph_n_pages_of(g, GGL_ROWS_MAIN),
                  n_read = ggl_graph_n_pages_of(g, GGL_ROWS_STAGE);
    size_t size;
    *t = (slot_table){.sched = sched,
                      .limits = *limits,
                      .n_slots = n_slots,
                      .has_states = ggl_sched_has_states(sched),
                      .rollback = ggl_sched_rollback_limit(sched)};
    t->state = ggl_calloc((size_t)n_slots, sizeof *t->state);
    t->n_new = ggl_calloc((size_t)n_slots, sizeof *t->n_new);
    t->n_past = ggl_calloc((size_t)n_slots, sizeof *t->n_past);
    t->ticket = ggl_calloc((size_t)n_slots, sizeof *t->ticket);
    t->page = ggl_size_mul((uint64_t)n_slots, (uint64_t)each, &size)
                  ? ggl_calloc(size, sizeof *t->page)
                  : NULL;
    return t->page && llm_pages_init(&t->pages, t->page, n_main, n_slots, each) &&
           llm_pages_init(&t->read, t->page, n_read, n_slots, each) && t->state && t->n_new &&
           t->n_past && t->ticket;
}

void llm_slots_fini(slot_table *t) {
    llm_pages_fini(&t->pages);
    llm_pages_fini(&t->read);
    ggl_free(t->page);
    ggl_free(t->state);
    ggl_free(t->n_new);
    ggl_free(t->n_past);
    ggl_free(t->ticket);
}

/* Returns the pool of the slot's pages. */
static page_pool *pool_of(slot_table *t, int slot) {
    return slot < t->limits.n_first ? &t->pages : &t->read;
}

/* --- checks ----------------------------------------------------------------------------------- */

ggl_status llm_slots_check(const slot_table *t, int slot, ggl_error *err) {
    if (slot < 0 || slot >= t->n_slots)
        return ggl_fail(err, GGL_USAGE, "slot %d does not exist; there are %" PRId64, slot,
                        t->n_slots);
    if (!t->has_memory)
        return ggl_fail(err, GGL_USAGE,
                        "the session has no memory yet: call llm_session_alloc first");
    if (t->ticket[slot] != 0)
        return ggl_fail(err, GGL_USAGE,
                        "slot %d is in a batch that is not collected yet: call "
                        "llm_session_collect first",
                        slot);
    return GGL_OK;
}

ggl_status llm_slots_check_whole(const slot_table *t, int slot, ggl_error *err) {
    ggl_status st = llm_slots_check(t, slot, err);
    if (st == GGL_OK && t->state[slot].broken)
        return ggl_fail(err, GGL_USAGE,
                        "slot %d is incomplete, because a run or a restore of it failed; clear it, "
                        "or restore a saved one",
                        slot);
    return st;
}

/* True if the cache's rows allow the slot to go back to n_past. Does not consider states. */
static bool can_go_back(const slot_table *t, int slot, int64_t n_past) {
    return t->state[slot].n_high - n_past <= t->rollback;
}

/* Checks that the cache still has the rows that going back to n_past needs. */
static ggl_status check_rows(const slot_table *t, int slot, int64_t n_past, ggl_error *err) {
    const slot_state *at = &t->state[slot];
    if (can_go_back(t, slot, n_past))
        return GGL_OK;
    return ggl_fail(
        err, GGL_UNSUPPORTED,
        "this model's cache is only a window: slot %d has been written up to token %" PRId64
        ", so it can be cut back to %" PRId64 ", not to %" PRId64,
        slot, at->n_high, at->n_high - t->rollback, n_past);
}

ggl_status llm_slots_check_cut(const slot_table *t, int slot, int64_t n_past, ggl_error *err) {
    ggl_status st = llm_slots_check_whole(t, slot, err);
    if (st != GGL_OK)
        return st;
    const slot_state *at = &t->state[slot];
    if (n_past < 0 || n_past > at->n_past)
        return ggl_fail(err, GGL_USAGE,
                        "a sequence of %" PRId64 " tokens cannot be cut to %" PRId64, at->n_past,
                        n_past);
    if (n_past == at->n_past)
        return GGL_OK;
    if (t->has_states)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "this model has states, which combine all tokens and cannot be cut back; "
                        "restore a snapshot, or clear the slot");
    return check_rows(t, slot, n_past, err);
}

ggl_status llm_slots_check_restore(slot_table *t, int slot, int64_t n_past, bool states_only,
                                   ggl_error *err) {
    const page_pool *p = pool_of(t, slot);
    const int64_t n_now = t->state[slot].n_past, n_pages = llm_pages_for(p, n_past);
    if (!states_only && n_pages > llm_pages_available(p, slot))
        return ggl_fail(err, GGL_LIMIT,
                        "the saved slot has %" PRId64
                        " tokens, but the KV cache has room for %" PRId64
                        " more: clear or cut other slots",
                        n_past, llm_pages_available(p, slot) * GGL_PAGE);
    if (states_only && n_past > n_now)
        return ggl_fail(err, GGL_USAGE,
                        "the snapshot is at token %" PRId64 ", but the slot has only %" PRId64,
                        n_past, n_now);
    return states_only ? check_rows(t, slot, n_past, err) : GGL_OK;
}

/* --- pages ------------------------------------------------------------------------------------ */

/* Sets the graph's input "page" if the slots' pages have changed. */
static ggl_status set_pages(slot_table *t, ggl_error *err) {
    const page_pool *p = &t->pages;
    if (p->n_each == 0 || !(p->changed || t->read.changed))
        return GGL_OK;
    const size_t size = (size_t)(p->n_slots * p->n_each) * sizeof *t->page;
    ggl_status st = ggl_sched_set(t->sched, "page", t->page, size, 1, err);
    t->pages.changed = t->read.changed = st != GGL_OK;
    return st;
}

ggl_status llm_slots_ready(slot_table *t, ggl_error *err) {
    const ggl_status st = set_pages(t, err);
    t->has_memory = st == GGL_OK;
    return st;
}

/* Gives back the pages that the slot's tokens do not need. */
static void trim(slot_table *t, int slot) {
    page_pool *p = pool_of(t, slot);
    llm_pages_resize(p, slot, llm_pages_for(p, t->state[slot].n_past));
}

/* --- a batch ---------------------------------------------------------------------------------- */

void llm_slots_begin(slot_table *t) {
    memset(t->n_new, 0, (size_t)t->n_slots * sizeof *t->n_new);
}

int32_t llm_slots_append(slot_table *t, int slot) {
    return (int32_t)(t->state[slot].n_past + t->n_new[slot]++);
}

ggl_status llm_slots_check_room(slot_table *t, int64_t n, ggl_error *err) {
    llm_pages_estimate(&t->pages);
    llm_pages_estimate(&t->read);
    for (int k = 0; k < t->n_slots; k++) {
        const int64_t n_past = t->state[k].n_past;
        const int64_t most = k < t->limits.n_first ? t->limits.n_ctx : t->limits.n_read;
        if (t->n_new[k] > most - n_past)
            return ggl_fail(err, GGL_LIMIT,
                            "%" PRId64 " tokens after %" PRId64
                            " do not fit into the context of %" PRId64,
                            t->n_new[k], n_past, most);
        llm_pages_estimate_append(pool_of(t, k), k, n_past, t->n_new[k]);
    }
    const page_pool *p = llm_pages_lacking(&t->pages) > 0 ? &t->pages : &t->read;
    if (llm_pages_lacking(p) > 0)
        return ggl_fail(err, GGL_LIMIT,
                        "%" PRId64 " tokens need %" PRId64
                        " more pages of the KV cache, of %d tokens each, but %" PRId64
                        " of %" PRId64
                        " are free: clear or cut other slots, or let slots share more tokens",
                        n, p->n_needed, GGL_PAGE, p->n_unused, p->n_pages);
    return GGL_OK;
}

ggl_status llm_slots_take_pages(slot_table *t, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int k = 0; k < t->n_slots && st == GGL_OK; k++) {
        const int64_t n_past = t->state[k].n_past, last = n_past / GGL_PAGE;
        page_pool *p = pool_of(t, k);
        if (t->n_new[k] == 0)
            continue;
        if (llm_pages_is_shared(p, k, n_past)) {
            const int32_t from = t->page[k * p->n_each + last];
            st = ggl_sched_copy_page(t->sched, k, llm_pages_next(p), from, err);
            if (st == GGL_OK)
                llm_pages_replace(p, k, last);
        }
        if (st == GGL_OK)
            llm_pages_resize(p, k, llm_pages_for(p, n_past + t->n_new[k]));
    }
    return st == GGL_OK ? set_pages(t, err) : st;
}

void llm_slots_start(slot_table *t) {
    for (int64_t k = 0; k < t->n_slots; k++) {
        slot_state *s = &t->state[k];
        s->n_past += t->n_new[k];
        s->n_high = s->n_past > s->n_high ? s->n_past : s->n_high;
    }
}

void llm_slots_set_ticket(slot_table *t, uint64_t ticket) {
    for (int64_t k = 0; k < t->n_slots; k++)
        if (t->n_new[k] > 0)
            t->ticket[k] = ticket;
}

void llm_slots_commit(slot_table *t) {
    for (int64_t k = 0; k < t->n_slots; k++)
        t->state[k].n_done = t->state[k].n_past;
}

/* Goes back to n_done after a failure, or marks the slot broken if its states or rings have moved on. */
static void take_back(slot_table *t, int slot) {
    slot_state *s = &t->state[slot];
    if (s->n_past == s->n_done)
        return;
    s->n_past = s->n_done;
    s->broken = t->has_states || !can_go_back(t, slot, s->n_past);
}

void llm_slots_settle(slot_table *t, uint64_t ticket, bool ok) {
    for (int k = 0; k < t->n_slots; k++) {
        if (ticket != 0 && t->ticket[k] != ticket)
            continue;
        t->ticket[k] = 0;
        if (ok)
            t->state[k].n_done = t->state[k].n_past;
        else
            take_back(t, k);
        trim(t, k);
    }
}

/* --- changes of a slot ------------------------------------------------------------------------ */

/* Sets the sequence's length after a cut or a restore. */
static void set_length(slot_table *t, int slot, int64_t n_past, int64_t n_high) {
    t->state[slot] = (slot_state){.n_past = n_past, .n_done = n_past, .n_high = n_high};
}

/* Marks the slot as broken and without tokens while its rows and states are replaced. */
static void empty(slot_table *t, int slot) {
    slot_state *s = &t->state[slot];
    s->broken = true;
    s->n_past = s->n_done = 0;
    trim(t, slot);
}

ggl_status llm_slots_clear(slot_table *t, int slot, ggl_error *err) {
    ggl_status st = llm_slots_check(t, slot, err);
    if (st != GGL_OK)
        return st;
    empty(t, slot);
    st = ggl_sched_clear_slot(t->sched, slot, err);
    if (st == GGL_OK)
        set_length(t, slot, 0, 0);
    return st;
}

ggl_status llm_slots_cut(slot_table *t, int slot, int64_t n_past, ggl_error *err) {
    ggl_status st = llm_slots_check(t, slot, err);
    if (st == GGL_OK && n_past == 0)
        return llm_slots_clear(t, slot, err);
    if (st == GGL_OK)
        st = llm_slots_check_cut(t, slot, n_past, err);
    if (st != GGL_OK)
        return st;
    set_length(t, slot, n_past, t->state[slot].n_high);
    trim(t, slot);
    return GGL_OK;
}

ggl_status llm_slots_share(slot_table *t, int dst, int src, int64_t n_past, ggl_error *err) {
    ggl_status st = llm_slots_check(t, dst, err);
    if (st == GGL_OK)
        st = llm_slots_check_whole(t, src, err);
    if (st == GGL_OK && (dst == src || n_past == 0))
        return llm_slots_cut(t, dst, n_past, err);
    if (st == GGL_OK)
        st = llm_slots_check_cut(t, src, n_past, err);
    if (st != GGL_OK)
        return st;
    empty(t, dst);
    page_pool *p = pool_of(t, dst); /* that of src, too: texts are shared with texts */
    llm_pages_share(p, dst, src, llm_pages_for(p, n_past));
    st = set_pages(t, err);
    if (st == GGL_OK) /* shared pages need no copy, but states and rings do */
        st = ggl_sched_copy_slot(t->sched, dst, src, n_past, err);
    if (st == GGL_OK)
        set_length(t, dst, n_past, t->state[src].n_high);
    trim(t, dst);
    return st;
}

ggl_status llm_slots_begin_restore(slot_table *t, int slot, int64_t n_past, bool states_only,
                                   ggl_error *err) {
    if (states_only) {
        t->state[slot].broken = true;
        return GGL_OK;
    }
    empty(t, slot);
    page_pool *p = pool_of(t, slot);
    llm_pages_resize(p, slot, llm_pages_for(p, n_past));
    return set_pages(t, err);
}

void llm_slots_end_restore(slot_table *t, int slot, int64_t n_past, int64_t n_high, bool ok) {
    if (ok)
        set_length(t, slot, n_past, n_high);
    trim(t, slot);
}
