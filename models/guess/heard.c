#include "heard.h"

#include <string.h>

#include "ggl/internal/alloc.h"

enum { MUCH = 1 << 18 }; /* numbers of rows whose memory is given back */

/* What was heard of one slot: the tokens at positions first to first + n - 1, and their rows. */
typedef struct heard_slot {
    int64_t first, n;
    int32_t *token;
    float *row; /* [n][n_row] */
    size_t cap_token, cap_row;
} heard_slot;

struct llm_heard {
    llm_session *session;
    heard_slot *slot; /* [n_slots] */
    int64_t n_slots, n_row;
};

/* Notes a row. What was heard of later positions belonged to a text that was cut there. */
static void hear(void *ctx, int slot, int64_t pos, int32_t token, const float *row) {
    const llm_heard *h = ctx;
    heard_slot *s = &h->slot[slot];
    if (pos < s->first || pos > s->first + s->n) {
        s->first = pos;
        s->n = 0;
    }
    const size_t i = (size_t)(pos - s->first), n_row = (size_t)h->n_row;
    s->n = (int64_t)i;
    if (!ggl_grow(&s->token, &s->cap_token, i + 1, sizeof *s->token) ||
        !ggl_grow(&s->row, &s->cap_row, (i + 1) * n_row, sizeof *s->row))
        return; /* guesses are worse without it */
    s->token[i] = token;
    memcpy(s->row + i * n_row, row, n_row * sizeof *row);
    s->n++;
}

const float *llm_heard_row(const llm_heard *h, int slot, int64_t pos, int32_t token) {
    const heard_slot *s = &h->slot[slot];
    const int64_t i = pos - s->first;
    return i >= 0 && i < s->n && s->token[i] == token ? s->row + i * h->n_row : NULL;
}

int64_t llm_heard_n_row(const llm_heard *h) {
    return h->n_row;
}

void llm_heard_drop(llm_heard *h, int slot, int64_t pos) {
    heard_slot *s = &h->slot[slot];
    const int64_t n = pos - s->first;
    if (n < s->n / 2 || n <= 0 || !s->row) /* so that each row is moved only a few times */
        return;
    const size_t left = (size_t)(s->n > n ? s->n - n : 0), n_row = (size_t)h->n_row;
    if (left == 0 && s->cap_row > MUCH) { /* those of a long prompt */
        ggl_free(s->token);
        ggl_free(s->row);
        *s = (heard_slot){.first = pos};
        return;
    }
    memmove(s->token, s->token + n, left * sizeof *s->token);
    memmove(s->row, s->row + (size_t)n * n_row, left * n_row * sizeof *s->row);
    s->first += n;
    s->n = (int64_t)left;
}

ggl_status llm_heard_new(llm_heard **out, llm_session *session, ggl_error *err) {
    *out = NULL;
    if (!llm_session_tells(session))
        return ggl_fail(err, GGL_USAGE,
                        "the session tells no rows: it was made without llm_session_params.rows");
    llm_heard *h = ggl_calloc(1, sizeof *h);
    heard_slot *slot = ggl_calloc((size_t)llm_session_n_slots(session), sizeof *slot);
    if (!h || !slot) {
        ggl_free(h);
        ggl_free(slot);
        return ggl_fail(err, GGL_NOMEM, "out of memory for a guesser");
    }
    *h = (llm_heard){.session = session,
                     .slot = slot,
                     .n_slots = llm_session_n_slots(session),
                     .n_row = llm_session_n_row(session)};
    llm_session_hear(session, hear, h);
    *out = h;
    return GGL_OK;
}

void llm_heard_follow(llm_heard *h, llm_session *session) {
    llm_session_hear(h->session, NULL, NULL);
    for (int64_t i = 0; i < h->n_slots; i++)
        h->slot[i].n = 0;
    h->session = session;
    llm_session_hear(session, hear, h);
}

void llm_heard_pause(llm_heard *h, bool is_paused) {
    for (int64_t i = 0; i < h->n_slots && is_paused; i++) {
        ggl_free(h->slot[i].token);
        ggl_free(h->slot[i].row);
        h->slot[i] = (heard_slot){0};
    }
    llm_session_hear(h->session, is_paused ? NULL : hear, h);
}

void llm_heard_free(llm_heard *h) {
    if (!h)
        return;
    llm_session_hear(h->session, NULL, NULL);
    for (int64_t i = 0; i < h->n_slots; i++) {
        ggl_free(h->slot[i].token);
        ggl_free(h->slot[i].row);
    }
    ggl_free(h->slot);
    ggl_free(h);
}
