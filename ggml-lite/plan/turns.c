/* The order in which the elements of the batch pass through a loop, and where they find their states.
 *
 * A chunk runs forward again from the state before its first element. If the elements of each slot lie side by side, as those of the
 * trainer do, that is one state: all other slots of the chunk begin in it, with zeros. If not, the batch runs forward from its
 * beginning for each chunk, which takes longer, but no more memory. */
#include "ggl/internal/turns.h"

static bool is_side_by_side(const int32_t *slot, int64_t n) {
    for (int64_t i = 1; i < n; i++)
        for (int64_t k = 0; slot[i] != slot[i - 1] && k < i; k++)
            if (slot[k] == slot[i])
                return false;
    return true;
}

void ggl_turns_begin(ggl_turns *t, const ggl_body *body, const int32_t *slot, int64_t n,
                     int64_t n_max) {
    *t = (ggl_turns){.turn = -1, .n = n, .end = n, .chunk = body->chunk, .slot = slot};
    if (t->chunk == 0)
        return;
    t->kept = t->chunk < n_max ? t->chunk : n_max;
    t->own = ggl_turns_n_arrays(t->chunk, n_max);
    t->first = (n - 1) / t->chunk * t->chunk;
    t->side_by_side = slot && is_side_by_side(slot, n);
}

int64_t ggl_turns_n_arrays(int64_t chunk, int64_t n_max) {
    return (chunk < n_max ? chunk : n_max) + (n_max - 1) / chunk;
}

int64_t ggl_turns_n_forward(int64_t chunk, int64_t n) {
    return n + (chunk > 0 ? (n - 1) / chunk * chunk : 0);
}

/* True if another element of this element's slot lies on the side to which `step`, 1 or -1, leads. */
static bool has_neighbour(const ggl_turns *t, int step) {
    for (int64_t i = t->turn + step; i >= 0 && i < t->n; i += step) {
        if (t->slot[i] == t->slot[t->turn])
            return true;
        if (t->side_by_side)
            return false;
    }
    return false;
}

/* Returns the array of the state before element i, which has this slot. */
static int64_t array_before(const ggl_turns *t, int64_t i, int64_t slot) {
    if (t->backward)
        return slot;
    if (!t->side_by_side)
        return t->own + slot;
    return i % t->chunk > 0 ? i % t->chunk : t->kept + i / t->chunk - 1;
}

/* Moves on in a loop over chunks. Returns false at its end. */
static bool next_of_chunks(ggl_turns *t) {
    if (!t->backward && t->turn + 1 < t->end) {
        t->turn++;
    } else if (!t->backward) { /* the states of the chunk are there */
        t->backward = true;
    } else if (t->turn > t->first) {
        t->turn--;
    } else if (t->first == 0) {
        return false;
    } else {
        t->backward = false;
        t->end = t->first;
        t->first -= t->chunk;
        t->turn = t->side_by_side ? t->first : 0;
    }
    return true;
}

bool ggl_turns_next(ggl_turns *t) {
    if (t->n < 1)
        return false;
    if (t->chunk == 0)
        return ++t->turn < t->n;
    if (!next_of_chunks(t))
        return false;
    const int step = t->backward ? -1 : 1;
    t->in_chunk = t->turn % t->chunk;
    if (t->slot) {
        const int64_t slot = t->slot[t->turn];
        t->from = has_neighbour(t, -step) ? array_before(t, t->turn, slot) : -1;
        t->to = has_neighbour(t, step) ? array_before(t, t->turn + 1, slot) : -1;
    }
    return true;
}
