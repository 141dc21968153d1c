/* BERT's WordPiece.
 *
 * The text becomes words (bert_words.h). A word becomes the longest matching piece that begins a word, then the longest matching pieces
 * that continue one. If none matches at some place, or the word has more than 100 characters, the whole word becomes the unknown token.
 *
 * Files spell pieces in one of two ways: with a mark on pieces that begin a word, "\u2581the"
 * and "ing" (llama.cpp's converter), or on those that continue one, "the" and "##ing" (BERT
 * itself). */
#include <string.h>

#include "automaton.h"
#include "bert_words.h"
#include "steps.h"
#include "tokenizer_impl.h"

typedef struct wordpiece {
    automaton first, next; /* used as tries: pieces that begin, and that continue a word */
    bool spaced;           /* U+2581 marks the begin of words; otherwise "##" marks continuations */
    folding fold;
} wordpiece;

static bool begins_with(ggl_str s, const char *with, size_t n) {
    return s.n >= n && memcmp(s.s, with, n) == 0;
}

/* Returns the text of a piece, without mark; *begins: the piece begins a word. */
static ggl_str piece_of(const llm_tokenizer *t, int32_t id, bool *begins) {
    const wordpiece *m = t->state;
    ggl_str p = t->piece[id];
    const size_t n = m->spaced ? sizeof llm_space : 2;
    const bool marked = begins_with(p, m->spaced ? llm_space : "##", n);
    *begins = marked == m->spaced;
    return marked ? (ggl_str){p.s + n, p.n - n} : p;
}

/* --- building --------------------------------------------------------------------------------- */

/* True if more than 1 % of the pieces have capital letters. Then, unless the file says
 * otherwise, text is not converted to lower case, because these pieces could never be used. */
static bool has_capitals(const llm_tokenizer *t) {
    int64_t n = 0;
    for (int32_t id = 0; id < t->n_vocab; id++) {
        bool capital = false;
        for (size_t i = 0; i < t->piece[id].n && t->type[id] == TOKEN_NORMAL; i++)
            capital = capital || (t->piece[id].s[i] >= 'A' && t->piece[id].s[i] <= 'Z');
        n += capital && t->piece[id].s[0] != '[';
    }
    return n * 100 > t->n_vocab;
}

static ggl_status read_flags(const llm_tokenizer *t, wordpiece *m, const ggl_gguf *file,
                             ggl_error *err) {
    bool lower = !has_capitals(t), strip;
    ggl_status s = llm_tokenizer_flag(file, "tokenizer.ggml.normalizer.lowercase", &lower, err);
    strip = lower;
    if (s == GGL_OK)
        s = llm_tokenizer_flag(file, "tokenizer.ggml.normalizer.strip_accents", &strip, err);
    m->fold = (folding){strip ? llm_fold_strip : NULL, lower ? llm_unicode_lower : NULL};
    return s;
}

/* Finds the unknown token, which words without matching pieces become. Files give it the type of
 * a control token. */
static ggl_status find_unknown(llm_tokenizer *t, ggl_error *err) {
    for (int32_t id = 0; id < t->n_vocab && t->unknown < 0; id++)
        if (t->piece[id].n == 5 && memcmp(t->piece[id].s, "[UNK]", 5) == 0)
            t->unknown = id;
    if (t->unknown < 0)
        return ggl_fail(err, GGL_FORMAT,
                        "there is no unknown token: tokenizer.ggml.unknown_token_id is missing, "
                        "and no token is named [UNK]");
    t->type[t->unknown] = TOKEN_UNKNOWN;
    return GGL_OK;
}

static ggl_status add_pieces(llm_tokenizer *t, wordpiece *m, ggl_error *err) {
    int64_t n_spaced = 0, n_hashed = 0;
    for (int32_t id = 0; id < t->n_vocab; id++) {
        n_spaced += begins_with(t->piece[id], llm_space, sizeof llm_space);
        n_hashed += begins_with(t->piece[id], "##", 2);
    }
    m->spaced = n_spaced > n_hashed;
    ggl_status s = llm_automaton_init(&m->first, false, err);
    if (s == GGL_OK)
        s = llm_automaton_init(&m->next, false, err);
    for (int32_t id = 0; id < t->n_vocab && s == GGL_OK; id++) {
        bool begins;
        ggl_str p = piece_of(t, id, &begins);
        if (llm_may_be_spelled(t, id) && t->type[id] != TOKEN_UNUSED)
            s = llm_automaton_add(begins ? &m->first : &m->next, p, id, err);
    }
    if (s == GGL_OK)
        s = llm_automaton_finish(&m->first, err);
    return s == GGL_OK ? llm_automaton_finish(&m->next, err) : s;
}

static ggl_status wordpiece_init(llm_tokenizer *t, const ggl_gguf *file, ggl_error *err) {
    wordpiece *m = ggl_arena_alloc(&t->arena, 1, sizeof *m);
    t->state = m;
    if (!m)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the tokenizer");
    ggl_status s = read_flags(t, m, file, err);
    if (s == GGL_OK)
        s = find_unknown(t, err);
    return s == GGL_OK ? add_pieces(t, m, err) : s;
}

static void wordpiece_free(llm_tokenizer *t) {
    wordpiece *m = t->state; /* is in the arena */
    if (m) {
        llm_automaton_fini(&m->first);
        llm_automaton_fini(&m->next);
    }
    t->state = NULL;
}

/* Puts a space before pieces that begin a word, except for . , ! and ? */
static ggl_str wordpiece_text(llm_tokenizer *t, int32_t id) {
    bool begins;
    ggl_str p = piece_of(t, id, &begins);
    if (!begins || (p.n == 1 && memchr(".,!?", p.s[0], 4)))
        return p;
    char *text = ggl_arena_alloc(&t->arena, p.n + 1, 1);
    if (text) {
        text[0] = ' ';
        memcpy(text + 1, p.s, p.n);
    }
    return (ggl_str){text, p.n + 1};
}

/* The library's decoder, which also removes the spaces before some signs and in contractions. */
static ggl_status wordpiece_decode(const llm_tokenizer *t, const int32_t *id, size_t n,
                                   bool special, char **text, size_t *size, ggl_error *err) {
    step_strings list = {0};
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) {
        const bool known = id[i] >= 0 && id[i] < t->n_vocab;
        if (!known ||
            (!special && (t->type[id[i]] == TOKEN_CONTROL || t->type[id[i]] == TOKEN_UNKNOWN)))
            continue;
        bool begins;
        ggl_str p = t->type[id[i]] == TOKEN_NORMAL ? piece_of(t, id[i], &begins) : t->piece[id[i]];
        if (t->type[id[i]] == TOKEN_NORMAL && !begins)
            p = llm_step_joined(&list.arena, (ggl_str){"##", 2}, p);
        ok = p.s && llm_step_strings_add(&list, p);
    }
    ggl_status s = ok ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for a text");
    if (s == GGL_OK)
        s = llm_steps_decode_words(&list, err);
    if (s == GGL_OK)
        s = llm_step_strings_take(&list, text, size, err);
    llm_step_strings_fini(&list);
    return s;
}

static bool wordpiece_adds_space(const llm_tokenizer *t) {
    (void)t;
    return true;
}

/* --- encoding --------------------------------------------------------------------------------- */

typedef struct wordpiece_run {
    const llm_tokenizer *t;
    llm_tokens *out;
    ggl_status status;
    ggl_error *err;
} wordpiece_run;

/* Returns the node of the longest piece at the start of s[0..n), or 0. */
static int32_t longest_piece(const automaton *pieces, const char *s, size_t n) {
    int32_t node = 0, longest = 0;
    for (size_t i = 0; i < n; i++) {
        node = llm_automaton_child(pieces, node, (unsigned char)s[i]);
        if (node == 0)
            break;
        if (pieces->node[node].id >= 0)
            longest = node;
    }
    return longest;
}

/* Appends the tokens of a word; false: out of memory. */
static bool encode_word(void *context, const char *s, size_t n, bool is_long) {
    wordpiece_run *r = context;
    const wordpiece *m = r->t->state;
    const size_t n_out = r->out->n;
    bool fits = !is_long;
    for (size_t i = 0; i < n && fits;) {
        const automaton *pieces = i == 0 ? &m->first : &m->next;
        int32_t piece = longest_piece(pieces, s + i, n - i);
        fits = piece != 0;
        if (!fits)
            break;
        r->status = llm_tokens_append(r->out, pieces->node[piece].id, r->err);
        if (r->status != GGL_OK)
            return false;
        i += pieces->node[piece].depth;
    }
    if (fits)
        return true;
    r->out->n = n_out;
    r->status = llm_tokens_append(r->out, r->t->unknown, r->err);
    return r->status == GGL_OK;
}

static ggl_status wordpiece_encode(const llm_tokenizer *t, const char *text, size_t n,
                                   const llm_stretch *how, llm_tokens *out, ggl_error *err) {
    (void)how;
    const wordpiece *m = t->state;
    wordpiece_run r = {.t = t, .out = out, .err = err};
    bert_words words = {.fold = m->fold, .word = encode_word, .context = &r};
    (void)llm_bert_words(&words, text, n);
    return r.status;
}

/* The runtime has two lists: pieces that continue words, and those that begin them. Words have no spaces. */
static bool wordpiece_key(const llm_tokenizer *t, int32_t id, bool begins, char *out, size_t *n) {
    bool this_begins;
    const ggl_str p = piece_of(t, id, &this_begins);
    if (!llm_may_be_spelled(t, id) || t->type[id] == TOKEN_UNUSED || this_begins != begins ||
        p.n == 0 || memchr(p.s, ' ', p.n))
        return false;
    memcpy(out, p.s, p.n);
    *n = p.n;
    return true;
}

static const char *wordpiece_tables(const llm_tokenizer *t, llm_tokenizer_tables *out) {
    const wordpiece *m = t->state;
    *out = (llm_tokenizer_tables){.encode = "wordpiece",
                                  .key = wordpiece_key,
                                  .has_starts = true,
                                  .add_space = true,
                                  .strip = m->fold.strip != NULL,
                                  .lower = m->fold.lower != NULL};
    return NULL;
}

const llm_tokenizer_kind llm_tokenizer_wordpiece = {
    .name = "wordpiece",
    .init = wordpiece_init,
    .text = wordpiece_text,
    .encode = wordpiece_encode,
    .decode = wordpiece_decode,
    .adds_space = wordpiece_adds_space,
    .free = wordpiece_free,
    .tables = wordpiece_tables,
};
