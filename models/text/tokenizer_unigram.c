/* SentencePiece's unigram kind (Kudo 2018), used by T5 and related models.
 *
 * The text is normalized: accents are dropped and letters become lower case if the file says so
 * (ALBERT's do), strings of the file's map are replaced, spaces become U+2581, and runs of spaces
 * become one if the file says so. Then it is split into the pieces whose scores,
 * logarithms of probabilities, have the highest sum. A character that is not a piece becomes the
 * tokens of its bytes, if the vocabulary has them. Otherwise it costs 10 more than the worst
 * piece, and a run of such characters becomes one unknown token.
 *
 * Marian's models have a SentencePiece model for the text to read, and tokens that also serve for
 * the text to write. Their files have the pieces of the former in keys of their own: a text is cut
 * into these, and each piece, or run of unknown characters, becomes the token that is spelled like
 * it. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "best_path.h"
#include "charsmap.h"
#include "fold.h"
#include "ggl/internal/gguf.h"
#include "tokenizer_impl.h"

#define PENALTY       10 /* a character that is not a piece costs that much more than the worst piece */
#define SOURCE_PIECES "tokenizer.ggml.source_pieces"
#define SOURCE_SCORES "tokenizer.ggml.source_scores"

typedef struct unigram {
    automaton pieces; /* their numbers are ids, or those of the source's pieces */
    double *score, unknown;
    int32_t *token;        /* of each piece of the source, -1: none. NULL: there is no source */
    ggl_index by_spelling; /* with a source: the tokens that text may become */
    int32_t byte[256];     /* token of each byte, -1: none */
    charsmap map;
    bool add_space_prefix, merge_spaces;
    folding fold;
} unigram;

/* --- building --------------------------------------------------------------------------------- */

static ggl_status read_flags(unigram *m, const ggl_gguf *file, ggl_error *err) {
    ggl_status s =
        llm_tokenizer_flag(file, "tokenizer.ggml.add_space_prefix", &m->add_space_prefix, err);
    if (s == GGL_OK)
        s = llm_tokenizer_flag(file, "tokenizer.ggml.remove_extra_whitespaces", &m->merge_spaces,
                               err);
    bool lower = false, strip = false;
    if (s == GGL_OK)
        s = llm_tokenizer_flag(file, "tokenizer.ggml.normalizer.lowercase", &lower, err);
    if (s == GGL_OK)
        s = llm_tokenizer_flag(file, "tokenizer.ggml.normalizer.strip_accents", &strip, err);
    m->fold = (folding){strip ? llm_fold_strip : NULL, lower ? llm_unicode_lower : NULL};
    return s;
}

/* Adds the pieces. User-defined ones have probability 1; unused ones never result from text. */
static ggl_status add_pieces(llm_tokenizer *t, unigram *m, const float *score, ggl_error *err) {
    double worst = 0;
    ggl_status s = llm_automaton_init(&m->pieces, false, err);
    for (int32_t id = 0; id < t->n_vocab && s == GGL_OK; id++) {
        if (!llm_may_be_spelled(t, id) || t->type[id] == TOKEN_UNUSED)
            continue;
        m->score[id] = t->type[id] == TOKEN_USER_DEFINED ? 0 : (double)score[id];
        worst = m->score[id] < worst ? m->score[id] : worst;
        s = llm_automaton_add(&m->pieces, t->piece[id], id, err);
    }
    m->unknown = worst - PENALTY;
    if (s == GGL_OK)
        s = llm_automaton_finish(&m->pieces, err);
    return s == GGL_OK ? llm_best_path_check(&m->pieces, err) : s;
}

/* Finds the keys of the source. *n is 0 if the file has none. */
static ggl_status find_source(const llm_tokenizer *t, const ggl_gguf *file,
                              const ggl_gguf_value *v[2], int32_t *n, ggl_error *err) {
    *n = 0;
    v[0] = ggl_gguf_find(file, SOURCE_PIECES);
    v[1] = ggl_gguf_find(file, SOURCE_SCORES);
    if (!v[0] && !v[1])
        return GGL_OK;
    if (!v[0] || !v[1])
        return ggl_fail(err, GGL_FORMAT, "%s is missing, but %s is there",
                        v[0] ? SOURCE_SCORES : SOURCE_PIECES, v[0] ? SOURCE_PIECES : SOURCE_SCORES);
    if (!v[0]->is_array || v[0]->type != GGL_GGUF_STRING || v[0]->n == 0 || v[0]->n > INT32_MAX)
        return ggl_fail(err, GGL_FORMAT, SOURCE_PIECES " is not an array of 1 to %d strings",
                        INT32_MAX);
    if (!v[1]->is_array || v[1]->n != v[0]->n)
        return ggl_fail(err, GGL_FORMAT,
                        SOURCE_SCORES " has %" PRIu64 " entries, for %" PRIu64 " pieces", v[1]->n,
                        v[0]->n);
    if (t->unknown < 0)
        return ggl_fail(err, GGL_FORMAT,
                        "there is no unknown token, which pieces of " SOURCE_PIECES
                        " without a token become");
    *n = (int32_t)v[0]->n;
    return GGL_OK;
}

static ggl_status index_tokens(const llm_tokenizer *t, unigram *m, ggl_error *err) {
    ggl_status s = llm_spellings_init(&m->by_spelling, (size_t)t->n_vocab, err);
    for (int32_t id = 0; id < t->n_vocab && s == GGL_OK; id++)
        if (llm_may_be_spelled(t, id))
            (void)ggl_index_put(&m->by_spelling, t->piece, (size_t)id);
    return s;
}

/* Reads the source's pieces; n > 0. */
static ggl_status read_source(llm_tokenizer *t, unigram *m, const ggl_gguf_value *const v[2],
                              int32_t n, ggl_error *err) {
    double worst = 0;
    ggl_str piece;
    m->token = ggl_arena_alloc(&t->arena, (size_t)n, sizeof *m->token);
    m->score = ggl_arena_alloc(&t->arena, (size_t)n, sizeof *m->score);
    if (!m->token || !m->score)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the tokenizer");
    t->type[t->unknown] = TOKEN_UNKNOWN;
    ggl_status s = index_tokens(t, m, err);
    if (s == GGL_OK)
        s = llm_automaton_init(&m->pieces, false, err);
    for (int32_t i = 0; i < n && s == GGL_OK; i++) {
        if (!ggl_gguf_string(v[0], (uint64_t)i, &piece))
            return ggl_fail(err, GGL_FORMAT, SOURCE_PIECES ": entry %" PRId32 " is unreadable", i);
        if (!ggl_gguf_number(v[1], (uint64_t)i, &m->score[i]) || !isfinite(m->score[i]))
            return ggl_fail(err, GGL_FORMAT, SOURCE_SCORES " of piece %" PRId32 " is not a number",
                            i);
        worst = m->score[i] < worst ? m->score[i] : worst;
        m->token[i] = llm_spellings_find(&m->by_spelling, t->piece, piece.s, piece.n);
        if (piece.n > 0)
            s = llm_automaton_add(&m->pieces, piece, i, err);
    }
    m->unknown = worst - PENALTY;
    if (s == GGL_OK)
        s = llm_automaton_finish(&m->pieces, err);
    return s == GGL_OK ? llm_best_path_check(&m->pieces, err) : s;
}

/* Reads the pieces into which a text is cut: those of the source, or the tokens. */
static ggl_status read_pieces(llm_tokenizer *t, unigram *m, const ggl_gguf *file, ggl_error *err) {
    const ggl_gguf_value *v[2];
    int32_t n;
    float *score;
    ggl_status s = find_source(t, file, v, &n, err);
    if (s != GGL_OK)
        return s;
    if (n > 0)
        return read_source(t, m, v, n, err);
    m->score = ggl_arena_alloc(&t->arena, (size_t)t->n_vocab, sizeof *m->score);
    if (!m->score)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the tokenizer");
    s = llm_read_scored_pieces(t, file, &score, m->byte, err);
    return s == GGL_OK ? add_pieces(t, m, score, err) : s;
}

static ggl_status unigram_init(llm_tokenizer *t, const ggl_gguf *file, ggl_error *err) {
    unigram *m = ggl_arena_alloc(&t->arena, 1, sizeof *m);
    t->state = m;
    if (!m)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the tokenizer");
    ggl_status s = read_flags(m, file, err);
    if (s == GGL_OK)
        s = llm_charsmap_read(&m->map, &t->arena, file, err);
    return s == GGL_OK ? read_pieces(t, m, file, err) : s;
}

static void unigram_free(llm_tokenizer *t) {
    unigram *m = t->state; /* is in the arena */
    if (m) {
        llm_automaton_fini(&m->pieces);
        ggl_index_fini(&m->by_spelling);
    }
    t->state = NULL;
}

static bool unigram_adds_space(const llm_tokenizer *t) {
    return ((const unigram *)t->state)->add_space_prefix;
}

/* --- encoding --------------------------------------------------------------------------------- */

typedef struct unigram_run {
    const llm_tokenizer *t;
    const unigram *m;
    best_path path;
    llm_tokens *out;
    ggl_error *err;
    bool started; /* a character was added, and before it the prefix space; or the text goes on */
    bool space_waits;   /* with merge_spaces: a space to add before the next character */
    bool after_unknown; /* the last token was the unknown one */
    char *run;          /* with a source: unknown characters that are not emitted yet */
    size_t n_run, cap_run;
} unigram_run;

/* Appends a token; -1: the unknown one. */
static ggl_status append(unigram_run *r, int32_t id) {
    return llm_tokens_append(r->out, id >= 0 ? id : r->t->unknown, r->err);
}

/* Emits the waiting run of unknown characters. */
static ggl_status end_run(unigram_run *r) {
    const size_t n = r->n_run;
    r->n_run = 0;
    return n > 0 ? append(r, llm_spellings_find(&r->m->by_spelling, r->t->piece, r->run, n))
                 : GGL_OK;
}

/* With a source: emits its piece `id`, or lets the unknown character s[0..n) wait. */
static ggl_status emit_source(unigram_run *r, int32_t id, const char *s, size_t n) {
    if (id >= 0) {
        const ggl_status status = end_run(r);
        return status == GGL_OK ? append(r, r->m->token[id]) : status;
    }
    if (!ggl_grow(&r->run, &r->cap_run, r->n_run + n, 1))
        return ggl_fail(r->err, GGL_NOMEM, "out of memory for a text");
    memcpy(r->run + r->n_run, s, n);
    r->n_run += n;
    return GGL_OK;
}

static ggl_status emit(void *context, int32_t id, const char *s, size_t n) {
    unigram_run *r = context;
    if (r->m->token)
        return emit_source(r, id, s, n);
    bool unknown = id < 0 && !llm_all_bytes(r->m->byte, s, n), again = unknown && r->after_unknown;
    r->after_unknown = unknown;
    if (id >= 0)
        return llm_tokens_append(r->out, id, r->err);
    return again ? GGL_OK : llm_append_bytes(r->t, r->m->byte, s, n, r->out, r->err);
}

static ggl_status add_space(unigram_run *r) {
    return llm_best_path_add(&r->path, llm_space, sizeof llm_space, r->err);
}

/* Adds a character of the normalized text. */
static ggl_status add_character(unigram_run *r, const char *c, size_t n) {
    const bool space = c[0] == ' ';
    ggl_status s = GGL_OK;
    if (space && r->m->merge_spaces) {
        r->space_waits = r->started;
        return GGL_OK;
    }
    if (!r->started ? r->m->add_space_prefix : r->space_waits)
        s = add_space(r);
    r->started = true;
    r->space_waits = false;
    if (s == GGL_OK)
        s = space ? add_space(r) : llm_best_path_add(&r->path, c, n, r->err);
    return s;
}

static ggl_status encode_folded(const llm_tokenizer *t, const char *text, size_t n, bool goes_on,
                                llm_tokens *out, ggl_error *err) {
    static const char replacement_character[] = "\xef\xbf\xbd";
    const unigram *m = t->state;
    unigram_run r = {.t = t, .m = m, .out = out, .err = err, .started = goes_on};
    r.path = (best_path){.tokens = &m->pieces,
                         .score = m->score,
                         .unknown = m->unknown,
                         .emit = emit,
                         .context = &r};
    ggl_status s = GGL_OK;
    for (size_t i = 0; i < n && s == GGL_OK;) {
        ggl_str c;
        size_t used;
        s = llm_charsmap_find(&m->map, text + i, n - i, &used, &c, err);
        if (s == GGL_OK && used == 0) {
            used = llm_utf8_length(text + i, n - i);
            c = (ggl_str){text + i, used};
            if (used == 1 && (unsigned char)text[i] >= 0x80)
                c = (ggl_str){replacement_character, 3};
        }
        for (size_t k = 0, len; s == GGL_OK && k < c.n; k += len) {
            len = llm_utf8_length(c.s + k, c.n - k);
            s = add_character(&r, c.s + k, len);
        }
        i += used;
    }
    if (s == GGL_OK)
        s = llm_best_path_end(&r.path);
    if (s == GGL_OK)
        s = end_run(&r);
    llm_best_path_fini(&r.path);
    ggl_free(r.run);
    return s;
}

static ggl_status unigram_encode(const llm_tokenizer *t, const char *text, size_t n,
                                 const llm_stretch *how, llm_tokens *out, ggl_error *err) {
    const unigram *m = t->state;
    char *folded = NULL;
    size_t n_folded, cap = 0;
    if (!m->fold.lower && !m->fold.strip)
        return encode_folded(t, text, n, how->goes_on, out, err);
    const ggl_status s = llm_fold_text(&m->fold, text, n, &folded, &n_folded, &cap)
                             ? encode_folded(t, folded, n_folded, how->goes_on, out, err)
                             : ggl_fail(err, GGL_NOMEM, "out of memory for a text");
    ggl_free(folded);
    return s;
}

static bool unigram_key(const llm_tokenizer *t, int32_t id, bool begins, char *out, size_t *n) {
    (void)begins;
    if (!llm_may_be_spelled(t, id) || t->type[id] == TOKEN_UNUSED)
        return false;
    *n = t->piece[id].n;
    memcpy(out, t->piece[id].s, *n);
    return true;
}

static double unigram_score(const llm_tokenizer *t, int32_t id) {
    return ((const unigram *)t->state)->score[id];
}

static const char *unigram_tables(const llm_tokenizer *t, llm_tokenizer_tables *out) {
    const unigram *m = t->state;
    *out = (llm_tokenizer_tables){.encode = "best",
                                  .key = unigram_key,
                                  .spaced = true,
                                  .score = unigram_score,
                                  .unknown_score = m->unknown,
                                  .byte = m->byte,
                                  .map = m->map.n_unit > 0 ? &m->map : NULL,
                                  .add_space = m->add_space_prefix,
                                  .merge_spaces = m->merge_spaces,
                                  .strip = m->fold.strip != NULL,
                                  .lower = m->fold.lower != NULL};
    return m->token ? SOURCE_PIECES
               " is there, which only models that read a text before they write have"
                    : NULL;
}

const llm_tokenizer_kind llm_tokenizer_unigram = {
    .name = "unigram",
    .init = unigram_init,
    .text = llm_spaced_text,
    .encode = unigram_encode,
    .adds_space = unigram_adds_space,
    .free = unigram_free,
    .tables = unigram_tables,
};
