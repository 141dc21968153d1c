/* SentencePiece's BPE kind (Kudo & Richardson 2018).
 *
 * Spaces become U+2581. The text starts as a list of characters. Then neighbors are joined
 * repeatedly: of all neighbors that together spell a piece, the pair with the highest score, and
 * among equals the leftmost. A character that remains alone and is not a piece becomes its bytes'
 * tokens, or the unknown token.
 *
 * Two characters that are adjacent in no piece can never be joined. So the text is split there
 * into independent segments, mostly words, each with its own small queue. Control, unknown and
 * byte tokens never result from text, so text cannot forge them. */
#include <string.h>

#include "merge_queue.h"
#include "tokenizer_impl.h"

enum { PAIR_BITS = 20 };

typedef struct spm {
    ggl_index piece;   /* pieces that may result from text */
    size_t longest;    /* bytes of the longest of them */
    float *score;      /* [n_vocab] */
    int32_t byte[256]; /* token of each byte, -1: none */
    bool add_space_prefix, merge_spaces;
    /* A bit for the hash of each two characters that are adjacent in some piece. A collision
     * costs only time. */
    uint64_t pair[(1 << PAIR_BITS) / 64];
} spm;

/* --- building --------------------------------------------------------------------------------- */

static unsigned pair_hash(const char *a, size_t n_a, const char *b, size_t n_b) {
    uint64_t h = 0;
    for (size_t i = 0; i < n_a; i++)
        h = h << 8 | (unsigned char)a[i];
    uint64_t k = 0;
    for (size_t i = 0; i < n_b; i++)
        k = k << 8 | (unsigned char)b[i];
    h = (h << 32 | k) * 0x9e3779b97f4a7c15;
    return (unsigned)(h >> (64 - PAIR_BITS));
}

static bool pair_known(const spm *m, unsigned h) {
    return m->pair[h / 64] >> (h % 64) & 1;
}

/* Sets the bits for all adjacent characters of a piece. */
static void add_pairs(spm *m, ggl_str p) {
    size_t prev = 0, n_prev = 0;
    for (size_t i = 0; i < p.n;) {
        size_t n = llm_utf8_length(p.s + i, p.n - i);
        if (n_prev > 0) {
            unsigned h = pair_hash(p.s + prev, n_prev, p.s + i, n);
            m->pair[h / 64] |= 1ull << (h % 64);
        }
        prev = i;
        n_prev = n;
        i += n;
    }
}

static ggl_status spm_init(llm_tokenizer *t, const ggl_gguf *file, ggl_error *err) {
    spm *m = ggl_arena_alloc(&t->arena, 1, sizeof *m);
    t->state = m;
    if (!m)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the tokenizer");
    m->add_space_prefix = true;
    ggl_status s =
        llm_tokenizer_flag(file, "tokenizer.ggml.add_space_prefix", &m->add_space_prefix, err);
    if (s == GGL_OK)
        s = llm_tokenizer_flag(file, "tokenizer.ggml.remove_extra_whitespaces", &m->merge_spaces,
                               err);
    if (s == GGL_OK)
        s = llm_spellings_init(&m->piece, (size_t)t->n_vocab, err);
    if (s == GGL_OK)
        s = llm_read_scores(t, file, &m->score, err);
    if (s == GGL_OK)
        s = llm_read_byte_tokens(t, m->byte, err);
    if (s == GGL_OK)
        s = llm_need_bytes(t, m->byte, err);
    for (int32_t id = 0; s == GGL_OK && id < t->n_vocab; id++) {
        if (!llm_may_be_spelled(t, id))
            continue;
        ggl_index_put(&m->piece, t->piece, (size_t)id);
        add_pairs(m, t->piece[id]);
        m->longest = t->piece[id].n > m->longest ? t->piece[id].n : m->longest;
    }
    return s;
}

static void spm_free(llm_tokenizer *t) {
    spm *m = t->state; /* is in the arena */
    if (m)
        ggl_index_fini(&m->piece);
    t->state = NULL;
}

static bool spm_adds_space(const llm_tokenizer *t) {
    return ((const spm *)t->state)->add_space_prefix;
}

/* --- encoding --------------------------------------------------------------------------------- */

typedef struct spm_run {
    const llm_tokenizer *t;
    const spm *m;
    llm_tokens *out;
    ggl_error *err;
    char *text; /* the segment, with spaces replaced */
    size_t n, cap;
    symbol *sym;
    size_t n_sym, cap_sym;
    merge_queue queue;
    word_memory *words;
} spm_run;

static ggl_status run_no_memory(spm_run *r) {
    return ggl_fail(r->err, GGL_NOMEM, "out of memory for a text of %zu bytes", r->n);
}

/* Two symbols can be joined if together they are a piece. */
static bool find_piece(const void *context, const symbol *a, const symbol *b, join *j) {
    const spm_run *r = context;
    (void)b;
    if (j->n > r->m->longest)
        return false;
    j->id = llm_spellings_find(&r->m->piece, r->t->piece, r->text + a->at, j->n);
    if (j->id < 0)
        return false;
    j->rank = -(double)r->m->score[j->id];
    return true;
}

/* Appends the token of a symbol that was never joined: its piece, else the tokens of its bytes,
 * else the unknown token. */
static ggl_status emit_single(spm_run *r, const symbol *s) {
    int32_t id = llm_spellings_find(&r->m->piece, r->t->piece, r->text + s->at, s->n);
    return id >= 0 ? llm_tokens_append(r->out, id, r->err)
                   : llm_append_bytes(r->t, r->m->byte, r->text + s->at, s->n, r->out, r->err);
}

static ggl_status merge_segment(spm_run *r) {
    ggl_status s = GGL_OK;
    if (!llm_merge_all(&r->queue, r->sym, (uint32_t)r->n_sym, find_piece, r))
        return run_no_memory(r);
    for (uint32_t i = 0; i != NO_SYMBOL && s == GGL_OK; i = r->sym[i].next)
        s = r->sym[i].id >= 0 ? llm_tokens_append(r->out, r->sym[i].id, r->err)
                              : emit_single(r, &r->sym[i]);
    return s;
}

/* Encodes the current segment and empties it. */
static ggl_status flush_segment(spm_run *r) {
    const size_t first = r->out->n;
    uint64_t key = 0;
    const int known = r->n_sym > 0 ? llm_word_recall(r->words, r->text, r->n, r->out, &key) : 1;
    ggl_status s = known < 0 ? run_no_memory(r) : GGL_OK;
    if (known == 0)
        s = merge_segment(r);
    if (known == 0 && s == GGL_OK && !llm_word_note(r->words, r->text, r->n, key, r->out, first))
        s = run_no_memory(r);
    r->n = r->n_sym = 0;
    return s;
}

/* Adds a character to the segment. If it can never be joined with the last one, encodes the
 * segment first. */
static ggl_status add_character(spm_run *r, const char *c, size_t n) {
    if (r->n_sym > 0) {
        const symbol *last = &r->sym[r->n_sym - 1];
        if (!pair_known(r->m, pair_hash(r->text + last->at, last->n, c, n))) {
            ggl_status s = flush_segment(r);
            if (s != GGL_OK)
                return s;
        }
    }
    if ((r->n + n > r->cap && !ggl_grow(&r->text, &r->cap, r->n + n, 1)) ||
        (r->n_sym == r->cap_sym && !ggl_grow(&r->sym, &r->cap_sym, r->n_sym + 1, sizeof *r->sym)))
        return run_no_memory(r);
    memcpy(r->text + r->n, c, n);
    r->sym[r->n_sym++] = (symbol){.at = (uint32_t)r->n, .n = (uint32_t)n, .id = -1};
    r->n += n;
    return GGL_OK;
}

static ggl_status spm_encode(const llm_tokenizer *t, const char *text, size_t n,
                             const llm_stretch *how, llm_tokens *out, ggl_error *err) {
    /* indices have 32 bits, and a space becomes 3 bytes */
    if (n > UINT32_MAX / 4)
        return ggl_fail(err, GGL_LIMIT, "a text of %zu bytes is too long, at most %u are supported",
                        n, UINT32_MAX / 4);
    spm_run r = {.t = t, .m = t->state, .out = out, .err = err, .words = how->words};
    const bool merges = r.m->merge_spaces;
    /* with merge_spaces, spaces wait for the next character, and so does that before the text */
    bool waits = r.m->add_space_prefix && !how->goes_on, started = !merges || how->goes_on;
    ggl_status s = GGL_OK;
    if (waits && !merges)
        s = add_character(&r, llm_space, 3);
    for (size_t i = 0; i < n && s == GGL_OK;) {
        size_t len = llm_utf8_length(text + i, n - i);
        const bool space = text[i] == ' ';
        if (merges && space) {
            waits |= started;
        } else {
            if (merges && waits)
                s = add_character(&r, llm_space, 3);
            if (s == GGL_OK)
                s = space ? add_character(&r, llm_space, 3) : add_character(&r, text + i, len);
            waits = false;
            started = true;
        }
        i += len;
    }
    if (s == GGL_OK)
        s = flush_segment(&r);
    ggl_free(r.text);
    ggl_free(r.sym);
    llm_merge_queue_fini(&r.queue);
    return s;
}

static bool spm_key(const llm_tokenizer *t, int32_t id, bool begins, char *out, size_t *n) {
    (void)begins;
    *n = t->piece[id].n;
    if (!llm_may_be_spelled(t, id))
        return false;
    memcpy(out, t->piece[id].s, *n);
    return true;
}

static double spm_score(const llm_tokenizer *t, int32_t id) {
    return (double)((const spm *)t->state)->score[id];
}

static const char *spm_tables(const llm_tokenizer *t, llm_tokenizer_tables *out) {
    const spm *m = t->state;
    *out = (llm_tokenizer_tables){.encode = "scores",
                                  .key = spm_key,
                                  .spaced = true,
                                  .score = spm_score,
                                  .byte = m->byte,
                                  .add_space = m->add_space_prefix,
                                  .merge_spaces = m->merge_spaces};
    return NULL;
}

const llm_tokenizer_kind llm_tokenizer_spm = {
    .name = "spm",
    .init = spm_init,
    .text = llm_spaced_text,
    .encode = spm_encode,
    .adds_space = spm_adds_space,
    .free = spm_free,
    .tables = spm_tables,
};
