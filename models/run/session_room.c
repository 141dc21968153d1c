/* Estimates of the room in the KV cache (session_room.h). */
#include "session_room.h"

#include "session_impl.h"

void llm_session_estimate(llm_session *s) {
    llm_pages_estimate(&s->slots.pages);
}

void llm_session_estimate_append(llm_session *s, int slot, int64_t n_new) {
    llm_pages_estimate_append(&s->slots.pages, slot, s->slots.state[slot].n_past, n_new);
}

void llm_session_undo_append(llm_session *s, int slot, int64_t n_new) {
    llm_pages_undo_append(&s->slots.pages, slot, s->slots.state[slot].n_past, n_new);
}

void llm_session_estimate_pages(llm_session *s, int64_t n_pages) {
    s->slots.pages.n_needed += s->slots.pages.n_pages > 0 ? n_pages : 0;
}

int64_t llm_session_lacking(const llm_session *s) {
    return llm_pages_lacking(&s->slots.pages);
}

int64_t llm_session_lacking_without(llm_session *s, const int *slot, int n) {
    return llm_pages_lacking_without(&s->slots.pages, slot, n);
}

int llm_session_choose_to_clear(llm_session *s, int *slot, int n) {
    return llm_pages_choose_to_clear(&s->slots.pages, slot, n);
}

int64_t llm_session_room_to_read(const llm_session *s) {
    return s->slots.read.n_pages == 0 ? INT64_MAX : s->slots.read.n_pages * GGL_PAGE;
}

int llm_session_choose_to_unread(llm_session *s, int64_t n_text, int *slot, int n) {
    page_pool *p = &s->slots.read;
    llm_pages_estimate(p);
    p->n_needed += llm_pages_for(p, n_text);
    for (int i = 0; i < n; i++)
        slot[i] = llm_text_slot(s, slot[i]);
    const int n_chosen = llm_pages_choose_to_clear(p, slot, n);
    for (int i = 0; i < n_chosen; i++)
        slot[i] -= llm_text_slot(s, 0);
    return n_chosen;
}

int64_t llm_session_n_shared(const llm_session *s, int slot) {
    if (slot < 0 || slot >= s->n_slots)
        return 0;
    return llm_pages_n_shared(&s->slots.pages, slot, s->slots.state[slot].n_past);
}

int64_t llm_session_n_cached(llm_session *s) {
    for (int k = 0; k < s->n_slots; k++)
        s->slots.n_past[k] = s->slots.state[k].n_past;
    return llm_pages_n_cached(&s->slots.pages, s->slots.n_past);
}
