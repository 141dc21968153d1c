/* Slots: clear, copy, cut back, save and restore. */
#include <inttypes.h>
#include <string.h>

#include "ggl/alloc.h"
#include "session_impl.h"

static ggl_status check_slot(const llm_session *s, int slot, ggl_error *err) {
    if (slot < 0 || slot >= s->n_slots)
        return ggl_fail(err, GGL_USAGE, "slot %d; there are %" PRId64, slot, s->n_slots);
    return GGL_OK;
}

int64_t llm_session_n_past(const llm_session *s, int slot) {
    return slot >= 0 && slot < s->n_slots ? s->n_past[slot] : 0;
}

ggl_status llm_session_clear(llm_session *s, int slot, ggl_error *err) {
    ggl_status st = check_slot(s, slot, err);
    if (st == GGL_OK)
        st = ggl_sched_clear_slot(s->sched, slot, err);
    if (st == GGL_OK)
        s->n_past[slot] = 0;
    return st;
}

ggl_status llm_session_copy(llm_session *s, int dst, int src, ggl_error *err) {
    ggl_status st = check_slot(s, dst, err);
    if (st == GGL_OK)
        st = check_slot(s, src, err);
    if (st == GGL_OK)
        st = ggl_sched_copy_slot(s->sched, dst, src, err);
    if (st == GGL_OK)
        s->n_past[dst] = s->n_past[src];
    return st;
}

ggl_status llm_session_cut(llm_session *s, int slot, int64_t n_past, ggl_error *err) {
    ggl_status st = check_slot(s, slot, err);
    if (st != GGL_OK)
        return st;
    int64_t back = s->n_past[slot] - n_past, limit = ggl_sched_rollback_limit(s->sched);
    if (n_past < 0 || back < 0)
        return ggl_fail(err, GGL_USAGE,
                        "a sequence of %" PRId64 " tokens cannot be cut to %" PRId64,
                        s->n_past[slot], n_past);
    if (n_past == 0)
        return llm_session_clear(s, slot, err);
    if (back > 0 && ggl_sched_has_states(s->sched))
        return ggl_fail(
            err, GGL_UNSUPPORTED,
            "this model keeps states, which sum up all tokens and cannot be cut back; restore a "
            "snapshot, or begin anew");
    if (back > limit)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "this model keeps only a window of rows; at most %" PRId64
                        " tokens can be cut, not "
                        "%" PRId64,
                        limit, back);
    s->n_past[slot] = n_past;
    return GGL_OK;
}

/* --- bytes ------------------------------------------------------------------------------------ */

/* | header | what ggl_sched_save_slot writes |; the session that reads it must keep the same
 * things. */
typedef struct header {
    char magic[8];
    uint32_t version, states_only;
    int64_t n_past, size;
    uint64_t shape, sum;    /* of the stores' shapes, and of the bytes */
    int32_t type_k, type_v; /* of the cache: ggl_type */
} header;

enum { VERSION = 2 };
static const char magic[8] = "ggl-slot";

/* FNV-1a, on 8 bytes at a time: against damage, not malice. */
static uint64_t hash(uint64_t h, const void *data, size_t n) {
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = 0;
        memcpy(&word, p + i, n - i < 8 ? n - i : 8);
        h = (h ^ word) * 0x100000001b3u;
        h ^= h >> 29;
    }
    return h;
}

static uint64_t shape_hash(const llm_session *s) {
    uint64_t h = 0xcbf29ce484222325u;
    for (int i = 0; i < ggl_graph_n_stores(s->graph); i++) {
        const ggl_store *st = ggl_graph_store(s->graph, i);
        int64_t words[] = {
            st->kind,  st->type,
            st->ne[0], st->ne[1],
            st->ne[2], st->n_pos < s->n_ctx ? st->n_pos : 0}; /* a ring's length is its layout */
        h = hash(h, words, sizeof words);
    }
    return h;
}

static const char *type_name(int32_t type) {
    const ggl_type_info *t = ggl_type_get(type);
    return t ? t->name : "?";
}

ggl_status llm_session_save(llm_session *s, int slot, bool states_only, void **data, size_t *size,
                            ggl_error *err) {
    *data = NULL;
    ggl_status st = check_slot(s, slot, err);
    if (st != GGL_OK)
        return st;
    header h = {.version = VERSION,
                .states_only = states_only,
                .n_past = s->n_past[slot],
                .shape = shape_hash(s),
                .type_k = (int32_t)ggl_graph_get_params(s->graph)->type_k,
                .type_v = (int32_t)ggl_graph_get_params(s->graph)->type_v};
    memcpy(h.magic, magic, sizeof magic);
    h.size = (int64_t)ggl_sched_slot_size(s->sched, h.n_past, states_only);
    char *bytes = ggl_calloc(sizeof h + (size_t)h.size, 1);
    if (!bytes)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a slot of %" PRId64 " bytes", h.size);
    st = ggl_sched_save_slot(s->sched, slot, h.n_past, states_only, bytes + sizeof h, err);
    if (st != GGL_OK) {
        ggl_free(bytes);
        return st;
    }
    h.sum = hash(0, bytes + sizeof h, (size_t)h.size);
    memcpy(bytes, &h, sizeof h);
    *data = bytes;
    *size = sizeof h + (size_t)h.size;
    return GGL_OK;
}

ggl_status llm_session_restore(llm_session *s, int slot, const void *data, size_t size,
                               ggl_error *err) {
    header h;
    ggl_status st = check_slot(s, slot, err);
    if (st != GGL_OK)
        return st;
    if (size < sizeof h || memcmp(data, magic, sizeof magic) != 0)
        return ggl_fail(err, GGL_FORMAT, "these bytes are no saved slot");
    memcpy(&h, data, sizeof h);
    if (h.version != VERSION)
        return ggl_fail(err, GGL_FORMAT, "a saved slot of version %" PRIu32 "; %d is known",
                        h.version, VERSION);
    if (h.n_past < 0 || h.n_past > s->n_ctx)
        return ggl_fail(err, GGL_LIMIT,
                        "the saved slot has %" PRId64 " tokens, the context %" PRId64, h.n_past,
                        s->n_ctx);
    const ggl_graph_params *p = ggl_graph_get_params(s->graph);
    if (h.type_k != (int32_t)p->type_k || h.type_v != (int32_t)p->type_v)
        return ggl_fail(err, GGL_FORMAT,
                        "the slot was saved with keys of type %s and values of %s; this session "
                        "has %s and %s",
                        type_name(h.type_k), type_name(h.type_v), type_name((int32_t)p->type_k),
                        type_name((int32_t)p->type_v));
    if (h.shape != shape_hash(s))
        return ggl_fail(err, GGL_FORMAT, "the slot was saved by a session of another model");
    if (h.size < 0 || (uint64_t)h.size != size - sizeof h ||
        (uint64_t)h.size != ggl_sched_slot_size(s->sched, h.n_past, h.states_only != 0))
        return ggl_fail(err, GGL_FORMAT, "the saved slot has %zu bytes, its header says %" PRId64,
                        size - sizeof h, h.size);
    const char *bytes = (const char *)data + sizeof h;
    if (h.sum != hash(0, bytes, (size_t)h.size))
        return ggl_fail(err, GGL_FORMAT, "the saved slot is damaged");
    if (h.states_only && h.n_past > s->n_past[slot])
        return ggl_fail(err, GGL_USAGE,
                        "a snapshot at token %" PRId64 " of a slot that has only %" PRId64,
                        h.n_past, s->n_past[slot]);
    int64_t limit = ggl_sched_rollback_limit(s->sched);
    if (h.states_only && s->n_past[slot] - h.n_past > limit)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "a snapshot %" PRId64 " tokens back; only %" PRId64 " are kept",
                        s->n_past[slot] - h.n_past, limit);
    st = ggl_sched_restore_slot(s->sched, slot, h.n_past, h.states_only != 0, bytes, err);
    if (st == GGL_OK)
        s->n_past[slot] = h.n_past;
    return st;
}
