/* BERT's WordPiece.
 *
 * Control characters are dropped, accents too if the file says so, and letters become lower case.
 * White space separates words; punctuation marks and Chinese characters are words of their own. A
 * word becomes the longest matching piece that begins a word, then the longest matching pieces that
 * continue one. If none matches at some place, or the word has more than 100 characters, the whole
 * word becomes the unknown token.
 *
 * Files spell pieces in one of two ways: with a mark on pieces that begin a word, "\u2581the"
 * and "ing" (llama.cpp's converter), or on those that continue one, "the" and "##ing" (BERT
 * itself). */
#include <string.h>

#include "automaton.h"
#include "ggl/internal/steps.h"
#include "tokenizer_impl.h"
#include "unicode.h"

enum { MOST_CHARACTERS = 100 };

typedef struct wordpiece {
    automaton first, next; /* used as tries: pieces that begin, and that continue a word */
    bool spaced;           /* U+2581 marks the begin of words; otherwise "##" marks continuations */
    bool lower, strip;
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
    m->lower = !has_capitals(t);
    ggl_status s = llm_tokenizer_flag(file, "tokenizer.ggml.normalizer.lowercase", &m->lower, err);
    m->strip = m->lower;
    return s == GGL_OK
               ? llm_tokenizer_flag(file, "tokenizer.ggml.normalizer.strip_accents", &m->strip, err)
               : s;
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
    ggl_status s = llm_automaton_init(&m->first, err);
    if (s == GGL_OK)
        s = llm_automaton_init(&m->next, err);
    for (int32_t id = 0; id < t->n_vocab && s == GGL_OK; id++) {
        bool begins;
        ggl_str p = piece_of(t, id, &begins);
        if (llm_may_be_spelled(t, id) && t->type[id] != TOKEN_UNUSED)
            s = llm_automaton_add(begins ? &m->first : &m->next, p, id, false, NULL, err);
    }
    return s;
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

static bool wordpiece_adds_space(const llm_tokenizer *t) {
    (void)t;
    return true;
}

/* --- encoding --------------------------------------------------------------------------------- */

typedef struct wordpiece_run {
    const llm_tokenizer *t;
    const wordpiece *m;
    llm_tokens *out;
    ggl_error *err;
    char word[4 * MOST_CHARACTERS];
    /* characters of the word; those after MOST_CHARACTERS are only counted */
    size_t n, n_character;
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

/* Encodes the current word, if any, and empties it. */
static ggl_status end_word(wordpiece_run *r) {
    const size_t n = r->n, n_character = r->n_character, n_out = r->out->n;
    r->n = r->n_character = 0;
    bool fits = n_character <= MOST_CHARACTERS;
    for (size_t i = 0; i < n && fits;) {
        const automaton *pieces = i == 0 ? &r->m->first : &r->m->next;
        int32_t piece = longest_piece(pieces, r->word + i, n - i);
        fits = piece != 0;
        if (!fits)
            break;
        ggl_status s = llm_tokens_append(r->out, pieces->node[piece].id, r->err);
        if (s != GGL_OK)
            return s;
        i += pieces->node[piece].depth;
    }
    if (fits)
        return GGL_OK;
    r->out->n = n_out;
    return llm_tokens_append(r->out, r->t->unknown, r->err);
}

/* Appends a character to the word, up to MOST_CHARACTERS. */
static void add_to_word(wordpiece_run *r, uint32_t c) {
    if (r->n_character++ < MOST_CHARACTERS)
        r->n += llm_unicode_encode(c, r->word + r->n);
}

/* Encodes a character as a word of its own. */
static ggl_status add_alone(wordpiece_run *r, uint32_t c) {
    ggl_status s = end_word(r);
    add_to_word(r, c);
    return s == GGL_OK ? end_word(r) : s;
}

/* Adds a code point after normalization. */
static ggl_status add_part(wordpiece_run *r, uint32_t c) {
    const unsigned properties = llm_unicode_properties(c);
    if (properties & UNICODE_WHITE)
        return end_word(r);
    if ((properties & UNICODE_P) || (c < 128 && (properties & UNICODE_S)))
        return add_alone(r, c);
    add_to_word(r, c);
    return GGL_OK;
}

/* True for the blocks in BERT's own code, which omits U+2B820 to U+2B91F. */
static bool is_chinese(uint32_t c) {
    static const uint32_t blocks[][2] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},
                                         {0x20000, 0x2a6df}, {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f},
                                         {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        if (c >= blocks[i][0] && c <= blocks[i][1])
            return true;
    return false;
}

/* True for control, format, private-use and unassigned characters. */
static bool is_dropped(uint32_t c) {
    if (c == '\t' || c == '\n' || c == '\r')
        return false;
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xfffd || llm_unicode_properties(c) == 0;
}

static ggl_status add_character(wordpiece_run *r, uint32_t c) {
    uint32_t part[UNICODE_MOST_PARTS] = {c}, mark;
    const bool alone = is_chinese(c);
    int n = 1;
    GGL_STEPS(1);
    if (is_dropped(c))
        return GGL_OK;
    if (r->m->strip)
        n = llm_unicode_decompose(c, part);
    ggl_status s = alone ? end_word(r) : GGL_OK;
    for (int i = 0; i < n && s == GGL_OK; i++) {
        if (r->m->strip && (llm_unicode_properties(part[i]) & UNICODE_MN))
            continue;
        mark = 0;
        s = add_part(r, r->m->lower ? llm_unicode_lower(part[i], &mark) : part[i]);
        if (mark && s == GGL_OK)
            s = add_part(r, mark);
    }
    return alone && s == GGL_OK ? end_word(r) : s;
}

static ggl_status wordpiece_encode(const llm_tokenizer *t, const char *text, size_t n, bool goes_on,
                                   llm_tokens *out, ggl_error *err) {
    (void)goes_on;
    wordpiece_run r = {.t = t, .m = t->state, .out = out, .err = err};
    ggl_status s = GGL_OK;
    for (size_t i = 0, len; i < n && s == GGL_OK; i += len) {
        len = llm_utf8_length(text + i, n - i);
        if (len > 1 || (unsigned char)text[i] < 0x80) /* invalid UTF-8 is dropped */
            s = add_character(&r, llm_unicode_decode(text + i, len));
    }
    return s == GGL_OK ? end_word(&r) : s;
}

const llm_tokenizer_kind llm_tokenizer_wordpiece = {
    .name = "wordpiece",
    .init = wordpiece_init,
    .text = wordpiece_text,
    .encode = wordpiece_encode,
    .adds_space = wordpiece_adds_space,
    .free = wordpiece_free,
};
