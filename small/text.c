/* Texts and tokens: special tokens, and pieces that are joined by their scores, as models/text/tokenizer_spm.c does. Tables of flash take the place of
 * indices in memory: tokens sorted by their bytes. A space here is U+2581 there. */
#include "encoder.h"
#include "ggl/internal/alloc.h"
#include "memory.h"
#include "common/utf8.h"

/* --- tables ----------------------------------------------------------------------------------- */

static const char *bytes_of(const small_words *w, int32_t token, size_t *n) {
    *n = w->at[token + 1] - w->at[token];
    return w->text + w->at[token];
}

int32_t small_find(const small_words *w, const char *s, size_t n) {
    for (uint32_t low = 0, high = w->n_sorted; low < high;) {
        const uint32_t middle = low + (high - low) / 2;
        size_t n_this;
        const char *this = bytes_of(w, w->sorted[middle], &n_this);
        const int order = memcmp(this, s, n_this < n ? n_this : n);
        if (order == 0 && n_this == n)
            return w->sorted[middle];
        if (order < 0 || (order == 0 && n_this < n))
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

const char *small_text_of(const small_plan *plan, int32_t token, bool first, size_t *n) {
    const small_words *w = plan->words;
    *n = 0;
    if (!w || token < 0 || token >= w->n_vocab || (w->flags[token] & SMALL_SILENT))
        return "";
    const char *s = bytes_of(w, token, n);
    const bool is_added =
        first && w->add_space && *n > 0 && *s == ' ' && !(w->flags[token] & SMALL_SPECIAL);
    *n -= is_added;
    return s + is_added;
}

bool small_is_end(const small_plan *plan, int32_t token) {
    return plan->words && token >= 0 && token < plan->words->n_vocab &&
           (plan->words->flags[token] & SMALL_END);
}

/* --- tokens ----------------------------------------------------------------------------------- */

bool small_append(small_encoder *e, int32_t token) {
    if (e->n == e->most)
        return false;
    e->token[e->n++] = token;
    return true;
}

bool small_append_bytes(small_encoder *e, const char *s, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (e->w->byte[(unsigned char)s[i]] < 0)
            return small_append(e, e->w->unknown);
    for (size_t i = 0; i < n; i++)
        if (!small_append(e, e->w->byte[(unsigned char)s[i]]))
            return false;
    return true;
}

/* Returns the longest special token that begins at s; -1: none. */
static int32_t special_at(const small_words *w, const char *s, size_t n, bool user_only) {
    int32_t best = -1;
    size_t longest = 0;
    for (uint32_t k = 0; k < w->n_special; k++) {
        const int32_t id = w->special[k];
        size_t n_this;
        const char *this = bytes_of(w, id, &n_this);
        if ((!user_only || (w->flags[id] & SMALL_USER)) && n_this > longest && n_this <= n &&
            memcmp(this, s, n_this) == 0) {
            best = id;
            longest = n_this;
        }
    }
    return best;
}

static bool encode_all(small_encoder *e, const char *text, size_t n, unsigned flags) {
    const small_words *w = e->w;
    size_t start = 0;
    if ((flags & SMALL_WITH_ENDS) && w->add_bos && w->bos >= 0 && !small_append(e, w->bos))
        return false;
    for (size_t i = 0; i <= n;) {
        const int32_t id =
            i < n ? special_at(w, text + i, n - i, !(flags & SMALL_WITH_SPECIAL)) : -1;
        if (i < n && id < 0) {
            i++;
            continue;
        }
        small_use_memory(e->work, e->work_size);
        if (i > start && !w->encode(e, text + start, i - start, false))
            return false;
        if (i == n)
            break;
        if (!small_append(e, id))
            return false;
        i = start = i + (w->at[id + 1] - w->at[id]);
    }
    return !((flags & SMALL_WITH_ENDS) && w->add_eos && w->eos >= 0) || small_append(e, w->eos);
}

int32_t small_encode(const small_plan *plan, const char *text, size_t n, unsigned flags,
                     int32_t *token, int32_t n_token, char *work, size_t work_size) {
    small_encoder e = {
        .w = plan->words, .token = token, .most = n_token, .work = work, .work_size = work_size};
    if (!plan->words)
        return -2;
    return encode_all(&e, text, n, flags) ? e.n : -1;
}

/* --- pieces with scores ----------------------------------------------------------------------- */

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
    const int32_t id = small_find(p->e->w, p->text + a->at, n);
    return id < 0 ||
           llm_merge_queue_push(&p->queue, (join){-(double)p->e->w->score[id], left, n, id});
}

/* Appends the token of a symbol. A space without a token becomes the bytes of U+2581. */
static bool emit(pieces *p, const symbol *s) {
    const char *text = p->text + s->at;
    const int32_t id = s->id >= 0 ? s->id : small_find(p->e->w, text, s->n);
    if (id >= 0)
        return small_append(p->e, id);
    return *text == ' ' ? small_append_bytes(p->e, "\xe2\x96\x81", 3)
                        : small_append_bytes(p->e, text, s->n);
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

bool small_encode_scores(small_encoder *e, const char *text, size_t n, bool goes_on) {
    pieces p = {.e = e, .text = ggl_calloc(n + 1, 1), .sym = ggl_calloc(n + 1, sizeof *p.sym)};
    const bool merges = e->w->merge_spaces;
    bool waits = e->w->add_space && !goes_on, started = !merges || goes_on;
    if (!p.text || !p.sym)
        return false;
    if (waits && !merges)
        add_character(&p, " ", 1);
    for (size_t i = 0, len; i < n; i += len) {
        len = ggl_utf8_length(text + i, n - i);
        len = len > 0 ? len : 1;
        const bool space = text[i] == ' ';
        if (merges && space) {
            waits |= started;
            continue;
        }
        if (merges && waits)
            add_character(&p, " ", 1);
        const bool is_mark = len == 3 && memcmp(text + i, "\xe2\x96\x81", 3) == 0;
        add_character(&p, is_mark ? " " : text + i, is_mark ? 1 : len);
        waits = false;
        started = true;
    }
    return join_all(&p);
}
