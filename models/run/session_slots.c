/* Calls for slots: their lengths, and saving and restoring them; slot_table.h has the rest. */
#include <inttypes.h>
#include <string.h>

#include "common/digest.h"
#include "ggl/alloc.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/sched.h"
#include "session_impl.h"

int64_t llm_session_n_past(const llm_session *s, int slot) {
    return slot >= 0 && slot < s->n_slots ? s->slots.state[slot].n_past : 0;
}

/* The slots of the graph that come after the session's own have texts, which no caller names. */
static ggl_status check_own(const llm_session *s, int slot, ggl_error *err) {
    return slot < s->n_slots
               ? GGL_OK
               : ggl_fail(err, GGL_USAGE, "slot %d does not exist; there are %" PRId64, slot,
                          s->n_slots);
}

ggl_status llm_session_clear(llm_session *s, int slot, ggl_error *err) {
    const ggl_status st = check_own(s, slot, err);
    return st == GGL_OK ? llm_slots_clear(&s->slots, slot, err) : st;
}

ggl_status llm_session_cut(llm_session *s, int slot, int64_t n_past, ggl_error *err) {
    const ggl_status st = check_own(s, slot, err);
    return st == GGL_OK ? llm_slots_cut(&s->slots, slot, n_past, err) : st;
}

ggl_status llm_session_share(llm_session *s, int dst, int src, int64_t n_past, ggl_error *err) {
    ggl_status st = check_own(s, dst > src ? dst : src, err);
    if (st == GGL_OK)
        st = llm_slots_share(&s->slots, dst, src, n_past, err);
    if (st != GGL_OK || !s->reads_text)
        return st;
    const int from = (int)s->n_slots + src; /* of the text that they read */
    return llm_slots_share(&s->slots, (int)s->n_slots + dst, from, s->slots.state[from].n_past,
                           err);
}

ggl_status llm_session_copy(llm_session *s, int dst, int src, ggl_error *err) {
    return llm_session_share(s, dst, src, llm_session_n_past(s, src), err);
}

int64_t llm_session_n_free(const llm_session *s) {
    return s->slots.pages.n_each == 0 ? INT64_MAX : s->slots.pages.n_unused * GGL_PAGE;
}

int64_t llm_session_n_needed(const llm_session *s, int slot, int64_t n_new) {
    const int64_t n_past = llm_session_n_past(s, slot);
    return llm_pages_needed(&s->slots.pages, slot, n_past, n_new) * GGL_PAGE;
}

int64_t llm_session_cut_limit(const llm_session *s) {
    return s->slots.rollback;
}

bool llm_session_has_states(const llm_session *s) {
    return s->slots.has_states;
}

/* --- saving and restoring --------------------------------------------------------------------- */

/* A saved slot: | header | bytes of ggl_sched_save_slot |. It fits only sessions with the same
 * stores. */
typedef struct header {
    char magic[8];
    uint32_t version, states_only;
    int64_t n_past, n_high, size; /* as in slot_state; size: bytes after the header */
    uint64_t shape, sum; /* hashes of the stores' shapes; and of this, with sum 0, and the bytes */
    int32_t type_k, type_v; /* of the KV cache, as ggl_type */
} header;

enum { VERSION = 5 }; /* 4: words of four codes in pages of quantized rows; 5: sum is of all */
static const char magic[8] = "ggl-slot";

static uint64_t shape_hash(const llm_session *s) {
    uint64_t h = LLM_DIGEST_START ^ s->adapters;
    for (int i = 0; i < ggl_graph_n_stores(s->graph); i++) {
        const ggl_store *st = ggl_graph_store(s->graph, i);
        int64_t words[] = {st->kind, st->type, st->ne[0], st->ne[1],
                           /* a ring's length determines its layout; others may differ */
                           st->ne[2], st->ring ? st->n_pos : 0};
        h = llm_digest(h, words, sizeof words);
    }
    return h;
}

static uint64_t sum_of(const header *h, const char *bytes, size_t size) {
    header own = *h;
    own.sum = 0;
    return llm_digest(llm_digest(LLM_DIGEST_START, &own, sizeof own), bytes, size);
}

static const char *type_name(int32_t type) {
    const ggl_type_info *t = ggl_type_get(type);
    return t ? t->name : "?";
}

ggl_status llm_slot_save(llm_session *s, int slot, int64_t n_past, bool states_only, void **data,
                         size_t *size, ggl_error *err) {
    *data = NULL;
    if (s->reads_text)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "slots of a model that reads a text before it writes cannot be saved");
    ggl_status st = llm_slots_check_whole(&s->slots, slot, err);
    if (st != GGL_OK)
        return st;
    header h = {.version = VERSION,
                .states_only = states_only,
                .n_past = n_past,
                .n_high =
                    n_past < s->slots.state[slot].n_past ? n_past : s->slots.state[slot].n_high,
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
    h.sum = sum_of(&h, bytes + sizeof h, (size_t)h.size);
    memcpy(bytes, &h, sizeof h);
    *data = bytes;
    *size = sizeof h + (size_t)h.size;
    return GGL_OK;
}

ggl_status llm_session_save(llm_session *s, int slot, bool states_only, void **data, size_t *size,
                            ggl_error *err) {
    return llm_slot_save(s, slot, llm_session_n_past(s, slot), states_only, data, size, err);
}

/* Checks the header against this session, and the bytes against the header. */
static ggl_status check_header(const llm_session *s, const header *h, const char *bytes,
                               size_t size, ggl_error *err) {
    if (h->version != VERSION)
        return ggl_fail(err, GGL_FORMAT,
                        "a saved slot of version %" PRIu32 "; only %d is supported", h->version,
                        VERSION);
    if (h->n_past < 0 || h->n_high < h->n_past || h->n_high > s->n_ctx)
        return ggl_fail(err, GGL_LIMIT,
                        "the saved slot has %" PRId64 " tokens and was written up to %" PRId64
                        ", but the context is %" PRId64,
                        h->n_past, h->n_high, s->n_ctx);
    const ggl_graph_params *p = ggl_graph_get_params(s->graph);
    if (h->type_k != (int32_t)p->type_k || h->type_v != (int32_t)p->type_v)
        return ggl_fail(err, GGL_FORMAT,
                        "the slot was saved with keys of type %s and values of %s; this session's "
                        "types are %s and %s",
                        type_name(h->type_k), type_name(h->type_v), type_name((int32_t)p->type_k),
                        type_name((int32_t)p->type_v));
    if (h->shape != shape_hash(s))
        return ggl_fail(err, GGL_FORMAT,
                        "the slot was saved by a session of another model, or with other "
                        "adapters");
    if (h->size < 0 || (uint64_t)h->size != size ||
        (uint64_t)h->size != ggl_sched_slot_size(s->sched, h->n_past, h->states_only != 0))
        return ggl_fail(err, GGL_FORMAT,
                        "the saved slot has %zu bytes, but its header says %" PRId64, size,
                        h->size);
    if (h->sum != sum_of(h, bytes, size))
        return ggl_fail(err, GGL_FORMAT, "the saved slot is damaged");
    return GGL_OK;
}

ggl_status llm_session_restore(llm_session *s, int slot, const void *data, size_t size,
                               ggl_error *err) {
    header h;
    if (s->reads_text)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "slots of a model that reads a text before it writes cannot be restored");
    ggl_status st = llm_slots_check(&s->slots, slot, err);
    if (st != GGL_OK)
        return st;
    if (!data || size < sizeof h || memcmp(data, magic, sizeof magic) != 0)
        return ggl_fail(err, GGL_FORMAT, "these bytes are not a saved slot");
    memcpy(&h, data, sizeof h);
    const char *bytes = (const char *)data + sizeof h;
    st = check_header(s, &h, bytes, size - sizeof h, err);
    if (st == GGL_OK)
        st = llm_slots_check_restore(&s->slots, slot, h.n_past, h.states_only != 0, err);
    if (st != GGL_OK)
        return st;
    const bool states_only = h.states_only != 0;
    st = llm_slots_begin_restore(&s->slots, slot, h.n_past, states_only, err);
    if (st == GGL_OK)
        st = ggl_sched_restore_slot(s->sched, slot, h.n_past, states_only, bytes, err);
    llm_slots_end_restore(&s->slots, slot, h.n_past,
                          states_only ? s->slots.state[slot].n_high : h.n_high, st == GGL_OK);
    return st;
}
