/* Byte-level byte-pair encoding (Sennrich et al. 2016, as in GPT-2).
 *
 * The vocabulary's strings use an alphabet of 256 printable characters, one per byte. The text is
 * split into words by the rules that tokenizer.ggml.pre names (pretok.h). A word starts as a list
 * of the symbols of its bytes. Then neighbors are joined repeatedly: of all neighbors that
 * tokenizer.ggml.merges lists, the pair listed first, and among equal pairs the leftmost.
 *
 * Some vocabularies ("raw") are spelled like text: their symbols are characters, spaces may be
 * U+2581, and a character that is not a piece becomes the tokens <0xNN> of its bytes.
 *
 * Symbols are numbers. Ids below n_vocab are tokens; larger ones are strings that only merges
 * mention (some published files have such merges). Control and unknown tokens never result from
 * text, so text cannot forge them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/gguf.h"
#include "ggl/internal/show.h"
#include "byte_spelling.h"
#include "fold.h"
#include "merge_queue.h"
#include "pretok.h"
#include "tokenizer_dna.h"
#include "tokenizer_impl.h"
#include "unicode.h"

typedef struct bpe {
    const pretok_program *split[TABLE_MAX_SPLITS];
    int n_split;
    table_pre pre;
    dna dna;
    bool has_dna;
    folding fold;      /* to lower case, or none */
    ggl_index piece;   /* pieces that may result from text */
    size_t longest;    /* bytes of the longest of them */
    int32_t byte[256]; /* symbol of each byte; raw: its token, or -1 */
    llm_merge *merges;
    size_t n_merge;
    ggl_index by_pair; /* merges by left and right */
} bpe;

/* --- the alphabet ----------------------------------------------------------------------------- */

/* Returns the byte that a character stands for, or -1. */
static int character_to_byte(uint32_t c) {
    if (c < 0x100)
        return llm_byte_is_printable(c) ? (int)c : -1;
    c -= 0x100;
    return c <= 0x20 ? (int)c : c <= 0x42 ? (int)(c - 0x21 + 0x7f) : c == 0x43 ? 0xad : -1;
}

/* Writes the bytes that a piece spells; false: a character of it stands for no byte. */
static bool spelled_bytes(ggl_str p, char *out, size_t *n) {
    *n = 0;
    for (size_t i = 0; i < p.n;) {
        const unsigned char *u = (const unsigned char *)p.s + i;
        size_t len = llm_utf8_length(p.s + i, p.n - i);
        int b = len == 1 && u[0] < 0x80 ? character_to_byte(u[0])
                : len == 2              ? character_to_byte((u[0] & 0x1fu) << 6 | (u[1] & 0x3fu))
                                        : -1;
        if (b < 0)
            return false;
        out[(*n)++] = (char)b;
        i += len;
    }
    return true;
}

/* Returns the bytes that a piece spells, or the piece itself if a character stands for no byte. */
static ggl_str byte_level_text(llm_tokenizer *t, int32_t id) {
    ggl_str p = t->piece[id];
    char *out = ggl_arena_alloc(&t->arena, p.n + 1, 1);
    size_t n = 0;
    return out && !spelled_bytes(p, out, &n) ? p : (ggl_str){out, n};
}

static ggl_str bpe_text(llm_tokenizer *t, int32_t id) {
    const table_pre *pre = &((const bpe *)t->state)->pre;
    if (((const bpe *)t->state)->has_dna && llm_dna_text(t->piece[id]).n < t->piece[id].n)
        return llm_dna_text(t->piece[id]);
    if (!pre->raw)
        return byte_level_text(t, id);
    return pre->spaced || t->type[id] == TOKEN_BYTE ? llm_spaced_text(t, id) : t->piece[id];
}

/* --- building --------------------------------------------------------------------------------- */

/* All strings with a symbol number, while merges are read. */
typedef struct symbols {
    ggl_str *s; /* [n]: the vocabulary, then strings that are not tokens */
    size_t n, cap, n_vocab;
    ggl_index extra; /* index of the latter */
    char *joined;    /* buffer for a pair's joined string */
    size_t cap_joined;
} symbols;

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for the tokenizer");
}

/* Returns the number of a string, which gets a new one if necessary. -1: out of memory. */
static int32_t symbol_of(llm_tokenizer *t, const bpe *m, symbols *y, const char *s, size_t n) {
    int32_t id = llm_spellings_find(&m->piece, t->piece, s, n);
    if (id < 0)
        id = llm_spellings_find(&y->extra, y->s, s, n);
    if (id >= 0)
        return id;
    char *copy = ggl_arena_strndup(&t->arena, s, n);
    if (!copy || y->n >= INT32_MAX ||
        (y->n == y->cap && !ggl_grow(&y->s, &y->cap, y->n + 1, sizeof *y->s)) ||
        ggl_index_reserve(&y->extra, y->s, y->extra.n + 1, NULL) != GGL_OK)
        return -1;
    y->s[y->n] = (ggl_str){copy, n};
    ggl_index_put(&y->extra, y->s, y->n);
    return (int32_t)y->n++;
}

/* Returns the merge of a pair, or NULL. */
static const llm_merge *find_merge(const bpe *m, int32_t left, int32_t right) {
    const int32_t key[2] = {left, right};
    size_t i = ggl_index_find(&m->by_pair, m->merges, (ggl_str){(const char *)key, sizeof key});
    return i == SIZE_MAX ? NULL : &m->merges[i];
}

/* Reads entry i, "left right". The first space that is not the first byte separates the two. */
static ggl_status read_merge(llm_tokenizer *t, bpe *m, symbols *y, ggl_str s, int32_t i,
                             ggl_error *err) {
    const char *space = s.n > 2 ? memchr(s.s + 1, ' ', s.n - 2) : NULL;
    if (!space)
        return ggl_fail(err, GGL_FORMAT,
                        "tokenizer.ggml.merges: entry %" PRId32
                        " is '%.*s', not two pieces with a space "
                        "between them",
                        i, (int)(s.n < 64 ? s.n : 64), s.s);
    size_t n_left = (size_t)(space - s.s), n_right = s.n - n_left - 1;
    if (n_left + n_right > y->cap_joined &&
        !ggl_grow(&y->joined, &y->cap_joined, n_left + n_right, 1))
        return no_memory(err);
    memcpy(y->joined, s.s, n_left);
    memcpy(y->joined + n_left, space + 1, n_right);
    int32_t left = symbol_of(t, m, y, s.s, n_left), right = symbol_of(t, m, y, space + 1, n_right);
    int32_t id = symbol_of(t, m, y, y->joined, n_left + n_right);
    if (left < 0 || right < 0 || id < 0)
        return no_memory(err);
    m->merges[m->n_merge] = (llm_merge){left, right, i, id};
    m->n_merge += ggl_index_put(&m->by_pair, m->merges, m->n_merge) == m->n_merge;
    return GGL_OK;
}

static ggl_status read_merges(llm_tokenizer *t, bpe *m, symbols *y, const ggl_gguf *file,
                              ggl_error *err) {
    const ggl_gguf_value *v = ggl_gguf_find(file, "tokenizer.ggml.merges");
    if (!v)
        return ggl_fail(err, GGL_FORMAT, "tokenizer.ggml.merges is missing");
    if (!v->is_array || (v->type != GGL_GGUF_STRING && v->n > 0))
        return ggl_fail(err, GGL_FORMAT, "tokenizer.ggml.merges is %s%s, not an array of strings",
                        v->is_array ? "an array of " : "", ggl_gguf_type_name(v->type));
    if (v->n > INT32_MAX / 4)
        return ggl_fail(err, GGL_LIMIT,
                        "tokenizer.ggml.merges has %" PRIu64 " entries, at most %d are supported",
                        v->n, INT32_MAX / 4);
    m->merges = ggl_arena_alloc(&t->arena, (size_t)v->n, sizeof *m->merges);
    if (!m->merges)
        return no_memory(err);
    ggl_status s =
        ggl_index_init(&m->by_pair, (size_t)v->n, sizeof *m->merges, 2 * sizeof(int32_t), err);
    for (uint64_t i = 0; i < v->n && s == GGL_OK; i++) {
        ggl_str pair;
        if (!ggl_gguf_string(v, i, &pair))
            return ggl_fail(err, GGL_FORMAT,
                            "tokenizer.ggml.merges: entry %" PRIu64 " is unreadable", i);
        s = read_merge(t, m, y, pair, (int32_t)i, err);
    }
    return s;
}

static ggl_status read_symbols(llm_tokenizer *t, bpe *m, const ggl_gguf *file, ggl_error *err) {
    symbols y = {.n = (size_t)t->n_vocab, .n_vocab = (size_t)t->n_vocab};
    ggl_status s = llm_spellings_init(&y.extra, 512, err);
    if (s != GGL_OK)
        return s;
    if (!ggl_grow(&y.s, &y.cap, y.n, sizeof *y.s)) {
        ggl_index_fini(&y.extra);
        return no_memory(err);
    }
    memcpy(y.s, t->piece, y.n * sizeof *y.s);
    for (unsigned b = 0; b < 256 && s == GGL_OK && !m->pre.raw; b++) {
        char c[2];
        m->byte[b] = symbol_of(t, m, &y, c, llm_spell_byte(b, c));
        s = m->byte[b] < 0 ? no_memory(err) : GGL_OK;
    }
    if (s == GGL_OK)
        s = read_merges(t, m, &y, file, err);
    ggl_free(y.s);
    ggl_index_fini(&y.extra);
    ggl_free(y.joined);
    return s;
}

static ggl_status read_pre(llm_tokenizer *t, bpe *m, const ggl_gguf *file, ggl_error *err) {
    ggl_str name = {"default", 7};
    if (ggl_gguf_get_string(file, "tokenizer.ggml.pre", &name, err) < 0)
        return GGL_FORMAT;
    ggl_status s = llm_table_find_pre(t->model.pre.n > 0 ? t->model.pre : name, &m->pre, err);
    bool lower = false;
    if (s == GGL_OK && m->pre.drop_white)
        s = llm_tokenizer_flag(file, "tokenizer.ggml.normalizer.lowercase", &lower, err);
    m->fold.lower = lower ? llm_unicode_lower : NULL;
    t->add_bos = t->add_bos || m->pre.add_bos;
    t->model.always_bos = t->model.always_bos || m->pre.always_bos;
    for (; s == GGL_OK && m->n_split < m->pre.n_split; m->n_split++)
        s = llm_pretok_compile(&m->split[m->n_split], &t->arena, m->pre.split[m->n_split], err);
    return s;
}

/* For raw vocabularies: completes the byte tokens, after llm_read_byte_tokens. */
static ggl_status find_raw_bytes(llm_tokenizer *t, bpe *m, ggl_error *err) {
    /* some files give byte tokens no type */
    for (unsigned b = 0; b < 256; b++) {
        char spelled[8];
        snprintf(spelled, sizeof spelled, "<0x%02X>", b);
        if (m->byte[b] < 0)
            m->byte[b] = llm_spellings_find(&m->piece, t->piece, spelled, 6);
    }
    return t->unknown >= 0 ? llm_need_bytes(t, m->byte, err) : GGL_OK;
}

/* True if text may become this token. */
static bool is_piece(const llm_tokenizer *t, int32_t id) {
    return t->type[id] != TOKEN_CONTROL && t->type[id] != TOKEN_UNKNOWN && t->piece[id].n > 0 &&
           !(((const bpe *)t->state)->pre.raw && t->type[id] == TOKEN_BYTE);
}

static ggl_status bpe_init(llm_tokenizer *t, const ggl_gguf *file, ggl_error *err) {
    bpe *m = ggl_arena_alloc(&t->arena, 1, sizeof *m);
    t->state = m;
    if (!m)
        return no_memory(err);
    ggl_status s = llm_spellings_init(&m->piece, (size_t)t->n_vocab, err);
    if (s == GGL_OK)
        s = read_pre(t, m, file, err);
    /* must come first: it finds out which tokens are bytes */
    if (s == GGL_OK && m->pre.raw)
        s = llm_read_byte_tokens(t, m->byte, err);
    if (s != GGL_OK)
        return s;
    for (int32_t id = 0; id < t->n_vocab; id++) {
        if (!is_piece(t, id))
            continue;
        ggl_index_put(&m->piece, t->piece, (size_t)id);
        m->longest = t->piece[id].n > m->longest ? t->piece[id].n : m->longest;
    }
    m->has_dna = t->model.dna && llm_dna_find(&m->dna, t, &m->piece);
    if (m->pre.raw)
        s = find_raw_bytes(t, m, err);
    return s == GGL_OK ? read_symbols(t, m, file, err) : s;
}

static void bpe_free(llm_tokenizer *t) {
    bpe *m = t->state; /* is in the arena */
    if (m) {
        ggl_index_fini(&m->piece);
        ggl_index_fini(&m->by_pair);
    }
    t->state = NULL;
}

/* --- encoding --------------------------------------------------------------------------------- */

typedef struct bpe_run {
    const llm_tokenizer *t;
    const bpe *m;
    llm_tokens *out;
    ggl_error *err;
    symbol *sym;
    size_t cap_sym;
    merge_queue queue;
    char *spelled;
    size_t cap_spelled;
    word_memory *words;
} bpe_run;

/* Two symbols can be joined if the merges list them. */
static bool find_join(const void *context, const symbol *a, const symbol *b, join *j) {
    const llm_merge *e = find_merge(((const bpe_run *)context)->m, a->id, b->id);
    if (!e)
        return false;
    j->rank = e->rank;
    j->id = e->id;
    return true;
}

/* Appends a symbol's token. A symbol that is not a token becomes the tokens of its bytes,
 * without those that lack one; in raw vocabularies it becomes the unknown token if any byte
 * lacks one. */
static ggl_status emit_symbol(bpe_run *r, const symbol *s, const char *word) {
    if (s->id >= 0 && s->id < r->t->n_vocab)
        return llm_tokens_append(r->out, s->id, r->err);
    if (r->m->pre.raw && r->t->unknown >= 0)
        return llm_append_bytes(r->t, r->m->byte, word + s->at, s->n, r->out, r->err);
    ggl_status status = GGL_OK;
    for (uint32_t i = 0; i < s->n && status == GGL_OK; i++) {
        int32_t id = r->m->byte[(unsigned char)word[s->at + i]];
        if (id >= 0 && id < r->t->n_vocab)
            status = llm_tokens_append(r->out, id, r->err);
        else
            r->out->lost++;
    }
    return status;
}

/* Returns the token that equals the whole word, or -1. */
static int32_t whole_word(bpe_run *r, const char *word, size_t n) {
    size_t used = 0;
    if (n > r->m->longest)
        return -1;
    if (r->m->pre.raw)
        return llm_spellings_find(&r->m->piece, r->t->piece, word, n);
    for (size_t i = 0; i < n; i++)
        used += llm_spell_byte((unsigned char)word[i], r->spelled + used);
    return llm_spellings_find(&r->m->piece, r->t->piece, r->spelled, used);
}

/* Splits a word of n > 0 bytes into its initial symbols; returns their number. */
static uint32_t first_symbols(bpe_run *r, const char *word, size_t n) {
    uint32_t count = 0;
    for (size_t i = 0, len; i < n; i += len, count++) {
        len = r->m->pre.raw ? llm_utf8_length(word + i, n - i) : 1;
        int32_t id = r->m->pre.raw ? llm_spellings_find(&r->m->piece, r->t->piece, word + i, len)
                                   : r->m->byte[(unsigned char)word[i]];
        r->sym[count] = (symbol){.at = (uint32_t)i, .n = (uint32_t)len, .id = id};
    }
    return count;
}

/* True if a word that is a token becomes that token regardless of merges. */
static bool may_be_whole(const bpe *m, const char *word, size_t n) {
    bool newlines = m->pre.newlines;
    for (size_t i = 0; i < n && newlines; i++)
        newlines = word[i] == '\n';
    return m->pre.ignore_merges || newlines;
}

static bool is_white(const char *word, size_t n) {
    size_t len = ggl_utf8_length(word, n);
    return len > 0 && (llm_unicode_properties(llm_unicode_decode(word, len)) & UNICODE_WHITE);
}

static ggl_status merge_word(bpe_run *r, const char *word, size_t n) {
    if (r->m->pre.drop_white && is_white(word, n)) /* all of the word is white space */
        return GGL_OK;
    int32_t whole = may_be_whole(r->m, word, n) ? whole_word(r, word, n) : -1;
    if (whole >= 0)
        return llm_tokens_append(r->out, whole, r->err);
    if (n > r->cap_sym && !ggl_grow(&r->sym, &r->cap_sym, n, sizeof *r->sym))
        return GGL_NOMEM;
    const uint32_t count = first_symbols(r, word, n);
    if (!llm_merge_all(&r->queue, r->sym, count, find_join, r))
        return GGL_NOMEM;
    ggl_status s = GGL_OK;
    for (uint32_t i = 0; i != NO_SYMBOL && s == GGL_OK; i = r->sym[i].next)
        s = emit_symbol(r, &r->sym[i], word);
    return s;
}

static ggl_status encode_word(void *context, const char *word, size_t n) {
    bpe_run *r = context;
    const size_t first = r->out->n, lost = r->out->lost;
    uint64_t key;
    const int known = llm_word_recall(r->words, word, n, r->out, &key);
    if (known)
        return known < 0 ? GGL_NOMEM : GGL_OK;
    const ggl_status s = merge_word(r, word, n);
    const bool lossless = s == GGL_OK && r->out->lost == lost;
    return lossless && !llm_word_note(r->words, word, n, key, r->out, first) ? GGL_NOMEM : s;
}

/* Replaces spaces by U+2581; n bytes become at most 3 n. Returns the new length. */
static size_t put_marks(const char *text, size_t n, char *out) {
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        const bool space = text[i] == ' ';
        memcpy(out + used, space ? llm_space : text + i, space ? sizeof llm_space : 1);
        used += space ? sizeof llm_space : 1;
    }
    return used;
}

static ggl_status encode_plain(const llm_tokenizer *t, const char *text, size_t n,
                               const llm_stretch *how, llm_tokens *out, ggl_error *err) {
    bpe_run r = {.t = t, .m = t->state, .out = out, .err = err, .words = how->words};
    char *changed = NULL; /* the changed text, if it needs changes */
    size_t cap = 0;
    ggl_status s = GGL_OK;
    if (r.m->pre.spaced) {
        changed = ggl_calloc(n, 3);
        if (!changed)
            return ggl_fail(err, GGL_NOMEM, "out of memory for a text of %zu bytes", n);
        n = put_marks(text, n, changed);
        text = changed;
    } else if (r.m->fold.lower) {
        if (!llm_fold_text(&r.m->fold, text, n, &changed, &n, &cap))
            s = ggl_fail(err, GGL_NOMEM, "out of memory for a text of %zu bytes", n);
        text = changed;
    }
    if (s == GGL_OK && r.m->pre.ignore_merges &&
        !ggl_grow(&r.spelled, &r.cap_spelled, 2 * r.m->longest + 2, 1))
        s = ggl_fail(err, GGL_NOMEM, "out of memory for a text of %zu bytes", n);
    if (s == GGL_OK)
        s = llm_pretok_split(r.m->split, r.m->n_split, text, n, encode_word, &r, err);
    ggl_free(r.sym);
    llm_merge_queue_fini(&r.queue);
    ggl_free(r.spelled);
    ggl_free(changed);
    return s;
}

static ggl_status bpe_encode(const llm_tokenizer *t, const char *text, size_t n,
                             const llm_stretch *how, llm_tokens *out, ggl_error *err) {
    const bpe *m = t->state;
    return m->has_dna ? llm_dna_encode(&m->dna, t, &m->piece, text, n, encode_plain, how, out, err)
                      : encode_plain(t, text, n, how, out, err);
}

/* The runtime has two lists: pieces, and with `dna` its groups of letters. */
static bool bpe_key(const llm_tokenizer *t, int32_t id, bool begins, char *out, size_t *n) {
    const bpe *m = t->state;
    const ggl_str p = t->piece[id], letters = llm_dna_text(p);
    const bool is_group = letters.n < p.n;
    if (!is_piece(t, id) || (begins && !is_group))
        return false;
    if (!begins && !m->pre.raw)
        return spelled_bytes(p, out, n);
    *n = begins ? letters.n : p.n;
    memcpy(out, p.s, *n);
    return true;
}

static const char *bpe_tables(const llm_tokenizer *t, llm_tokenizer_tables *out) {
    const bpe *m = t->state;
    const bool looks_up = m->pre.raw || m->pre.ignore_merges || m->pre.newlines;
    *out = (llm_tokenizer_tables){.encode = m->has_dna ? "dna" : "merges",
                                  .key = looks_up || m->has_dna ? bpe_key : NULL,
                                  .has_starts = m->has_dna,
                                  .spaced = m->pre.spaced,
                                  .byte = m->byte,
                                  .lower = m->fold.lower != NULL,
                                  .merge = m->merges,
                                  .n_merges = m->n_merge,
                                  .split = m->split,
                                  .n_split = m->n_split,
                                  .raw = m->pre.raw,
                                  .whole = m->pre.ignore_merges,
                                  .newlines = m->pre.newlines,
                                  .drop_white = m->pre.drop_white,
                                  .dna = m->has_dna ? &m->dna : NULL};
    for (int k = 0; k < m->n_split && m->pre.spaced; k++)
        if (llm_pretok_tells_apart(m->split[k], ' ', 0x2581))
            return "the pre-tokenizer of tokenizer.ggml.pre treats spaces and U+2581 differently";
    return NULL;
}

const llm_tokenizer_kind llm_tokenizer_bpe = {
    .name = "bpe",
    .init = bpe_init,
    .text = bpe_text,
    .encode = bpe_encode,
    .free = bpe_free,
    .tables = bpe_tables,
};
