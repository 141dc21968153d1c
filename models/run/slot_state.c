#include "slot_state.h"

void llm_slot_begin(slot_state *s, int64_t n) {
    s->n_past += n;
    if (s->n_past > s->n_high)
        s->n_high = s->n_past;
}

void llm_slot_commit(slot_state *s) {
    s->n_done = s->n_past;
}

bool llm_slot_can_go_back(const slot_state *s, const slot_rules *r, int64_t n_past) {
    return s->n_high - n_past <= r->rollback;
}

void llm_slot_abort(slot_state *s, const slot_rules *r) {
    if (s->n_past == s->n_done)
        return;
    s->n_past = s->n_done;
    s->broken = r->has_states || !llm_slot_can_go_back(s, r, s->n_past);
}

void llm_slot_clear(slot_state *s) {
    *s = (slot_state){0};
}

void llm_slot_set(slot_state *s, int64_t n_past, int64_t n_high) {
    *s = (slot_state){.n_past = n_past, .n_done = n_past, .n_high = n_high};
}

void llm_slot_break(slot_state *s, bool rows) {
    s->broken = true;
    if (rows)
        s->n_past = s->n_done = 0;
}
