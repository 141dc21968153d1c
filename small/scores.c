/* Pieces that are joined by their scores, as models/text/tokenizer_spm.c does. */
#include "encoder.h"
#include "ggl/internal/alloc.h"

/* The text with each space as the model sees it, cut into characters. */
typedef struct pieces {
    small_encoder *e;
    char *text;
    symbol *sym;
    uint32_t n, n_sym;
    merge_queue queue;
} pieces;

static void add_character(pieces *p, const char *c, size_t n) {
    const uint32_t i = p->n_sym++;
    memcpy(p->text + p->n, c, n);
    p->sym[i] = (symbol){p->n, (uint32_t)n, i > 0 ? i - 1 : NO_SYMBOL, i + 1, -1};
    p->n += (uint32_t)n;
}

/* Queues the join of `left` with its right neighbor, if together they are a piece. */
static bool consider(pieces *p, uint32_t left) {
    if (left == NO_SYMBOL || p->sym[left].next == NO_SYMBOL)
        return true;
    const symbol *a = &p->sym[left];
    const uint32_t n = a->n + p->sym[a->next].n;
    const int32_t id = small_find(p->e->w, &p->e->w->pieces, p->text + a->at, n);
    return id < 0 ||
           llm_merge_queue_push(&p->queue, (join){-(double)p->e->w->score[id], left, n, id});
}

/* Appends the token of a symbol. */
static bool emit(pieces *p, const symbol *s) {
    const char *text = p->text + s->at;
    const int32_t id = s->id >= 0 ? s->id : small_find(p->e->w, &p->e->w->pieces, text, s->n);
    return id >= 0 ? small_append(p->e, id) : small_append_bytes(p->e, text, s->n);
}

static bool join_all(pieces *p) {
    if (p->n_sym == 0)
        return true;
    p->sym[p->n_sym - 1].next = NO_SYMBOL;
    for (uint32_t i = 0; i + 1 < p->n_sym; i++)
        if (!consider(p, i))
            return false;
    while (p->queue.n > 0) {
        const join j = llm_merge_queue_pop(&p->queue);
        if (llm_merge_symbols(p->sym, &j) &&
            (!consider(p, p->sym[j.left].prev) || !consider(p, j.left)))
            return false;
    }
    for (uint32_t i = 0; i != NO_SYMBOL; i = p->sym[i].next)
        if (!emit(p, &p->sym[i]))
            return false;
    return true;
}

bool small_encode_scores(small_encoder *e, const char *text, size_t n) {
    pieces p = {.e = e, .text = ggl_calloc(n + 1, 1), .sym = ggl_calloc(n + 1, sizeof *p.sym)};
    const bool merges = e->w->merge_spaces;
    bool waits = e->w->add_space, started = !merges, is_mark;
    if (!p.text || !p.sym)
        return false;
    if (waits && !merges)
        add_character(&p, " ", 1);
    for (size_t i = 0, len; i < n; i += len) {
        len = small_character(text + i, n - i, &is_mark);
        if (merges && text[i] == ' ') {
            waits |= started;
            continue;
        }
        if (merges && waits)
            add_character(&p, " ", 1);
        add_character(&p, is_mark ? " " : text + i, is_mark ? 1 : len);
        waits = false;
        started = true;
    }
    return join_all(&p);
}
