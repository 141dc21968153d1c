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
    if (st == GGL_OK && s->places && dst != src)
        memcpy(s->places + dst * s->n_ctx, s->places + src * s->n_ctx,
               (size_t)n_past * sizeof *s->places);
    if (st != GGL_OK || !s->reads_text)
        return st;
    return llm_session_share_read(s, dst, src, err);
}

ggl_status llm_session_copy(llm_session *s, int dst, int src, ggl_error *err) {
    return llm_session_share(s, dst, src, llm_session_n_past(s, src), err);
}

int64_t llm_session_n_free(const llm_session *s) {
    return s->slots.pages.n_pages == 0 ? INT64_MAX : s->slots.pages.n_unused * GGL_PAGE;
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

/* A saved slot: | header | bytes of its stores |, and, if its tokens read a text or rows, | read_id i32 | bytes of its stores |, and in a session
 * whose tokens have places, | session.places |.
 * It fits only sessions with the same stores. */
typedef struct header {
    char magic[8];
    uint32_t version, states_only;
    int64_t n_past, n_high, size; /* as in slot_state; size: bytes after the header */
    uint64_t shape, sum; /* hashes of the stores' shapes; and of this, with sum 0, and the bytes */
    int32_t type_k, type_v; /* of the KV cache, as ggl_type */
    int64_t n_text;         /* tokens of the text, or rows; 0: none is saved */
} header;

enum {
    VERSION = 7
}; /* 4: words of four codes in pages of quantized rows; 5: sum is of all; 6: n_text */
static const char magic[8] = "ggl-slot";

static uint64_t shape_hash(const llm_session *s) {
    uint64_t h = LLM_DIGEST_START ^ s->adapters ^ (s->places ? sizeof *s->places : 0);
    for (int i = 0; i < ggl_graph_n_stores(s->graph); i++) {
        const ggl_store *st = ggl_graph_store(s->graph, i);
        int64_t words[] = {st->kind, st->type, st->ne[0], st->ne[1],
                           /* a ring's length determines its layout; others may differ */
                           st->ne[2], st->ring ? st->n_pos : 0};
        h = llm_digest(h, words, sizeof words);
    }
    return h;
}

/* What of a slot of the session's own is saved. */
static ggl_slot_part main_part(const llm_session *s) {
    return s->reads_text ? GGL_SLOT_MAIN : GGL_SLOT_ALL;
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

/* Sizes of the parts of a saved slot, in their order. */
typedef struct parts {
    size_t own, text_id, text, places;
} parts;

static size_t size_of(const parts *p) {
    return p->own + p->text_id + p->text + p->places;
}

static parts parts_of(const llm_session *s, const header *h) {
    return (parts){
        .own = ggl_sched_part_size(s->sched, main_part(s), h->n_past, h->states_only != 0),
        .text_id = (size_t)llm_id_words(s, h->n_text) * sizeof *s->read_id,
        .text = h->n_text > 0 ? ggl_sched_part_size(s->sched, GGL_SLOT_TEXT, h->n_text, false) : 0,
        .places = s->places && !h->states_only ? (size_t)h->n_past * sizeof *s->places : 0};
}

static ggl_status save_bytes(llm_session *s, int slot, const header *h, char *bytes,
                             ggl_error *err) {
    const parts p = parts_of(s, h);
    const ggl_status st = ggl_sched_save_part(s->sched, main_part(s), slot, h->n_past,
                                              h->states_only != 0, bytes, err);
    if (p.places)
        memcpy(bytes + p.own + p.text_id + p.text, s->places + slot * s->n_ctx, p.places);
    if (st != GGL_OK || h->n_text == 0)
        return st;
    memcpy(bytes + p.own, llm_read_id(s, slot), p.text_id);
    return ggl_sched_save_part(s->sched, GGL_SLOT_TEXT, llm_text_slot(s, slot), h->n_text, false,
                               bytes + p.own + p.text_id, err);
}

ggl_status llm_slot_save(llm_session *s, int slot, int64_t n_past, bool states_only, void **data,
                         size_t *size, ggl_error *err) {
    *data = NULL;
    ggl_status st = check_own(s, slot, err);
    if (st == GGL_OK)
        st = llm_slots_check_whole(&s->slots, slot, err);
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
    if (!states_only)
        h.n_text = llm_n_read(s, slot);
    const parts p = parts_of(s, &h);
    h.size = (int64_t)size_of(&p);
    char *bytes = ggl_calloc(sizeof h + (size_t)h.size, 1);
    if (!bytes)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a slot of %" PRId64 " bytes", h.size);
    st = save_bytes(s, slot, &h, bytes + sizeof h, err);
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

size_t llm_session_save_size(const llm_session *s, int slot) {
    header h = {.n_past = llm_session_n_past(s, slot)};
    h.n_text = llm_n_read(s, slot);
    const parts p = parts_of(s, &h);
    return sizeof h + size_of(&p);
}

ggl_status llm_session_save(llm_session *s, int slot, bool states_only, void **data, size_t *size,
                            ggl_error *err) {
    return llm_slot_save(s, slot, llm_session_n_past(s, slot), states_only, data, size, err);
}

/* Checks that all pages together have room for n tokens. */
static ggl_status check_pages(const page_pool *p, int64_t n, const char *has, ggl_error *err) {
    return llm_pages_for(p, n) <= p->n_pages
               ? GGL_OK
               : ggl_fail(err, GGL_LIMIT,
                          "the saved slot %s %" PRId64
                          " tokens, but the KV cache has room for %" PRId64 " of these",
                          has, n, p->n_pages * GGL_PAGE);
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
                        "the slot was saved by a session of another model, with other adapters or "
                        "control vectors, or with rows divided otherwise (--split rows)");
    const bool has_text = s->reads_text && h->states_only == 0;
    const bool needs_text = has_text && h->n_past > 0; /* an empty slot may have read nothing */
    if (h->n_text < needs_text || h->n_text > (has_text ? s->n_read : 0))
        return ggl_fail(err, h->n_text > s->n_read ? GGL_LIMIT : GGL_FORMAT,
                        "the saved slot has read a text of %" PRId64
                        " tokens; here a text has %d to %" PRId64,
                        h->n_text, needs_text, has_text ? s->n_read : 0);
    ggl_status st = check_pages(&s->slots.pages, h->states_only ? 0 : h->n_past, "has", err);
    if (st == GGL_OK)
        st = check_pages(&s->slots.read, h->n_text, "has read", err);
    if (st != GGL_OK)
        return st;
    const parts sizes = parts_of(s, h);
    if (h->size < 0 || (uint64_t)h->size != size || size != size_of(&sizes))
        return ggl_fail(err, GGL_FORMAT,
                        "the saved slot has %zu bytes, but its header says %" PRId64, size,
                        h->size);
    if (h->sum != sum_of(h, bytes, size))
        return ggl_fail(err, GGL_FORMAT, "the saved slot is damaged");
    return GGL_OK;
}

/* The text of a saved slot; NULL: it has none. Its tokens need not be aligned. */
static const char *saved_text(const llm_session *s, const header *h, const char *bytes) {
    return h->n_text > 0 ? bytes + parts_of(s, h).own : NULL;
}

static ggl_status read_header(const llm_session *s, header *h, const void *data, size_t size,
                              ggl_error *err) {
    if (!data || size < sizeof *h || memcmp(data, magic, sizeof magic) != 0)
        return ggl_fail(err, GGL_FORMAT, "these bytes are not a saved slot");
    memcpy(h, data, sizeof *h);
    return check_header(s, h, (const char *)data + sizeof *h, size - sizeof *h, err);
}

void llm_slot_renumber(llm_session *s, int slot, const int32_t *was, const int32_t *id, int64_t n) {
    llm_places *p = s->places ? s->places + slot * s->n_ctx : NULL;
    int32_t before = 0; /* `first` of the element before, as it was saved */
    for (int64_t i = 0; p && i < n; i++) {
        const int32_t saved = p[i].first;
        const bool is_row = id[i]<0, goes_on = i> 0 && p[i].added < 0 && p[i - 1].added < 0;
        p[i].added = !s->built.given_added ? 0
                     : is_row              ? id[i]
                     : goes_on             ? (int32_t)((int64_t)p[i - 1].added - 1)
                                           : 0;
        p[i].first = i > 0 && saved == before ? p[i - 1].first
                     : is_row && saved < 0    ? (int32_t)((int64_t)saved + id[i] - was[i])
                                              : 0;
        before = saved;
    }
}

bool llm_slot_is_states(const llm_session *s, const void *data, size_t size, int64_t *n) {
    header h;
    if (read_header(s, &h, data, size, NULL) != GGL_OK || !h.states_only)
        return false;
    *n = h.n_past;
    return true;
}

ggl_status llm_slot_has_text(const llm_session *s, const void *data, size_t size,
                             const int32_t *token, int64_t n, bool *out, ggl_error *err) {
    header h;
    *out = false;
    const ggl_status st = read_header(s, &h, data, size, err);
    if (st != GGL_OK)
        return st;
    const char *text = saved_text(s, &h, (const char *)data + sizeof h);
    *out = llm_id_words(s, h.n_text) == n &&
           (n == 0 || memcmp(text, token, (size_t)n * sizeof *token) == 0);
    return GGL_OK;
}

/* Restores the text that the slot's tokens read. */
static ggl_status restore_text(llm_session *s, int slot, const header *h, const char *text,
                               ggl_error *err) {
    const int to = llm_text_slot(s, slot);
    int32_t *token = llm_read_id(s, slot);
    const size_t size = parts_of(s, h).text_id;
    ggl_status st = llm_slots_begin_restore(&s->slots, to, h->n_text, false, err);
    if (st != GGL_OK)
        return st;
    memcpy(token, text, size);
    if (!llm_session_reads_rows(s))
        st = llm_check_tokens(token, (size_t)h->n_text, s->built.n_vocab, err);
    st = st == GGL_USAGE ? GGL_FORMAT : st;
    if (st == GGL_OK)
        st =
            ggl_sched_restore_part(s->sched, GGL_SLOT_TEXT, to, h->n_text, false, text + size, err);
    llm_slots_end_restore(&s->slots, to, h->n_text, h->n_text, st == GGL_OK);
    if (st != GGL_OK && llm_slots_clear(&s->slots, to, NULL) != GGL_OK)
        return st; /* it has no tokens all the same */
    return st;
}

/* Checks that there is room for the slot's tokens, and for the text that they read. */
static ggl_status check_room(llm_session *s, int slot, const header *h, ggl_error *err) {
    const ggl_status st =
        llm_slots_check_restore(&s->slots, slot, h->n_past, h->states_only != 0, err);
    return st != GGL_OK || h->n_text == 0
               ? st
               : llm_slots_check_restore(&s->slots, llm_text_slot(s, slot), h->n_text, false, err);
}

ggl_status llm_session_restore(llm_session *s, int slot, const void *data, size_t size,
                               ggl_error *err) {
    header h;
    ggl_status st = check_own(s, slot, err);
    if (st == GGL_OK)
        st = llm_slots_check(&s->slots, slot, err);
    if (st == GGL_OK)
        st = read_header(s, &h, data, size, err);
    if (st == GGL_OK)
        st = check_room(s, slot, &h, err);
    if (st != GGL_OK)
        return st;
    const char *bytes = (const char *)data + sizeof h, *text = saved_text(s, &h, bytes);
    const bool states_only = h.states_only != 0;
    const parts p = parts_of(s, &h);
    if (p.places)
        memcpy(s->places + slot * s->n_ctx, bytes + p.own + p.text_id + p.text, p.places);
    st = llm_slots_begin_restore(&s->slots, slot, h.n_past, states_only, err);
    if (st == GGL_OK && text)
        st = restore_text(s, slot, &h, text, err);
    else if (st == GGL_OK && s->reads_text && !states_only)
        st = llm_slots_clear(&s->slots, llm_text_slot(s, slot), err);
    if (st == GGL_OK)
        st =
            ggl_sched_restore_part(s->sched, main_part(s), slot, h.n_past, states_only, bytes, err);
    llm_slots_end_restore(&s->slots, slot, h.n_past,
                          states_only ? s->slots.state[slot].n_high : h.n_high, st == GGL_OK);
    return st;
}
