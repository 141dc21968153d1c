/* Kept sequences in files: a slot is saved, restored or erased between two steps. */
#include <inttypes.h>
#include <string.h>

#include "engine_impl.h"
#include "ggl/alloc.h"
#include "run/session_room.h"

/* Collects all batches, so that the session's slots may be changed, and checks that no sequence runs in this one. */
static ggl_status begin(llm_engine *e, int slot, ggl_error *err) {
    if (e->is_busy)
        return ggl_fail(err, GGL_USAGE, "a callback of the engine cannot change its slots");
    if (slot < 0 || slot >= e->kept.n)
        return ggl_fail(err, GGL_USAGE, "slot %d does not exist; there are slots 0 to %d", slot,
                        e->kept.n - 1);
    e->is_busy = true;
    const ggl_status st = llm_engine_collect_all(e, err);
    llm_engine_end_all(e);
    e->is_busy = false;
    if (st == GGL_OK && e->kept.slot[slot].by)
        return ggl_fail(err, GGL_USAGE, "a sequence runs in slot %d; try again when it has ended",
                        slot);
    return st;
}

ggl_status llm_engine_save_slot(llm_engine *e, int slot, llm_prompt_cache *c, const char *path,
                                int64_t *n, ggl_error *err) {
    *n = 0;
    ggl_status st = begin(e, slot, err);
    if (st != GGL_OK)
        return st;
    const kept_slot *s = &e->kept.slot[slot];
    if (s->n == 0)
        return ggl_fail(err, GGL_USAGE, "slot %d is empty", slot);
    if (memcmp(e->kept.share + (size_t)slot * e->kept.n_tasks, llm_session_shares(e->p.session),
               e->kept.n_tasks * sizeof(float)) != 0)
        return ggl_fail(
            err, GGL_UNSUPPORTED,
            "slot %d was computed with other scales of adapters than those of the start, "
            "and is not saved",
            slot);
    llm_prompt_states *states = NULL;
    size_t n_states;
    st = llm_snapshots_list(&e->kept.snapshots, llm_session_shares(e->p.session), s->token, s->n,
                            &states, &n_states, err);
    if (st != GGL_OK)
        return st;
    llm_prompt_cache_put_states(c, states, n_states);
    st = llm_prompt_cache_save(c, path, s->token, (size_t)s->n, err);
    llm_prompt_cache_put_states(c, NULL, 0);
    ggl_free(states);
    *n = st == GGL_OK ? s->n : 0;
    return st;
}

/* States of a file, from which prompts may go on. */
static void take_states(void *ctx, const int32_t *id, const llm_prompt_states *x) {
    llm_engine *e = ctx;
    llm_snapshots_put(&e->kept.snapshots, llm_session_shares(e->p.session), id, x);
}

/* Makes room for a sequence of n tokens, which is to replace that of a slot: clears this one first, then kept sequences
 * of other slots. False: that would not suffice, and nothing was cleared. */
static bool make_room(llm_engine *e, int slot, int64_t n) {
    kept_slot *s = &e->kept.slot[slot];
    const uint64_t last_use = s->last_use;
    llm_session_estimate(e->p.session);
    llm_session_estimate_pages(e->p.session, (n + GGL_PAGE - 1) / GGL_PAGE);
    s->last_use = 0;
    const bool ok = llm_kept_drop(&e->kept, -1);
    s->last_use = last_use;
    return ok;
}

ggl_status llm_engine_restore_slot(llm_engine *e, int slot, llm_prompt_cache *c, const char *path,
                                   int64_t *n, ggl_error *err) {
    int32_t *id;
    size_t n_id, n_all;
    *n = 0;
    ggl_status st = begin(e, slot, err);
    if (st != GGL_OK)
        return st;
    if (e->kept.has_states)
        llm_prompt_cache_take_states(c, take_states, e);
    st = llm_prompt_cache_restore(c, path, &id, &n_id, &n_all, err);
    if (st == GGL_LIMIT && n_id > 0 && make_room(e, slot, (int64_t)n_id))
        st = llm_prompt_cache_restore(c, path, &id, &n_id, &n_all, err);
    if (st == GGL_OK || llm_session_n_past(e->p.session, slot) != e->kept.slot[slot].n)
        llm_kept_adopt(&e->kept, slot, id, (int64_t)n_id);
    llm_prompt_cache_take_states(c, NULL, NULL);
    *n = st == GGL_OK ? (int64_t)n_id : 0;
    return st;
}

ggl_status llm_engine_adopt(llm_engine *e, int slot, const int32_t *id, size_t n, ggl_error *err) {
    const ggl_status st = begin(e, slot, err);
    if (st != GGL_OK)
        return st;
    const int64_t n_past = llm_session_n_past(e->p.session, slot);
    if ((int64_t)n != n_past)
        return ggl_fail(err, GGL_USAGE, "the slot holds %" PRId64 " tokens, but %zu are given",
                        n_past, n);
    int32_t *copy = n > 0 ? ggl_calloc(n, sizeof *copy) : NULL;
    if (copy)
        memcpy(copy, id, n * sizeof *copy);
    llm_kept_adopt(&e->kept, slot, copy, n_past);
    if (n > 0 && !copy)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %zu tokens", n);
    if (copy && e->kept.has_states) /* prompts start there, too, when the slot has gone on */
        llm_snapshots_add(&e->kept.snapshots, e->p.session, slot, llm_session_shares(e->p.session),
                          copy, n_past);
    return GGL_OK;
}

ggl_status llm_engine_erase_slot(llm_engine *e, int slot, int64_t *n, ggl_error *err) {
    *n = 0;
    const ggl_status st = begin(e, slot, err);
    if (st != GGL_OK)
        return st;
    *n = e->kept.slot[slot].n;
    llm_kept_adopt(&e->kept, slot, NULL, 0);
    return GGL_OK;
}
