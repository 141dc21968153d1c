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
    memcpy(p->text + p->n, c, n);
    p->sym[p->n_sym++] = (symbol){.at = p->n, .n = (uint32_t)n, .id = -1};
    p->n += (uint32_t)n;
}

/* Two symbols can be joined if together they are a piece. */
static bool find_piece(const void *context, const symbol *a, const symbol *b, join *j) {
    const pieces *p = context;
    (void)b;
    j->id = small_find(p->e->w, &p->e->w->pieces, p->text + a->at, j->n);
    if (j->id < 0)
        return false;
    j->rank = -(double)p->e->w->score[j->id];
    return true;
}

/* Appends the token of a symbol. */
static bool emit(pieces *p, const symbol *s) {
    const char *text = p->text + s->at;
    const int32_t id = s->id >= 0 ? s->id : small_find(p->e->w, &p->e->w->pieces, text, s->n);
    return id >= 0 ? small_append(p->e, id) : small_append_bytes(p->e, text, s->n);
}

static bool join_all(pieces *p) {
    if (!llm_merge_all(&p->queue, p->sym, p->n_sym, find_piece, p))
        return false;
    for (uint32_t i = p->n_sym > 0 ? 0 : NO_SYMBOL; i != NO_SYMBOL; i = p->sym[i].next)
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
