/* BPE of a tokenizer.json. A piece is a row of characters; again and again the pair of neighbours that the merges list first becomes one. */
#include <inttypes.h>
#include <string.h>

#include "common/amounts.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/show.h"
#include "ggl/internal/steps.h"
#include "steps_model.h"
#include "unicode.h"

enum { LONG_TEXT = 64 }; /* bytes: a longer one is cut where it can be */

/* --- a word ---------------------------------------------------------------------------------------- */

static bool find_join(const void *context, const symbol *a, const symbol *b, join *j) {
    const step_model_run *r = context;
    const int32_t key[2] = {a->id, b->id};
    const size_t i =
        ggl_index_find(&r->m->by_pair, r->m->merge, (ggl_str){(const char *)key, sizeof key});
    if (i == SIZE_MAX || !llm_step_model_may(r, r->m->merge[i].id))
        return false;
    j->rank = r->m->merge[i].rank;
    j->id = r->m->merge[i].id;
    return true;
}

/* Returns the token of a character, with what the model writes before or behind it; -1: none. */
static int32_t find_character(step_model_run *r, const char *s, size_t n, bool first, bool last,
                              ggl_str *spelled) {
    const step_model *m = r->m;
    const ggl_str prefix = first ? (ggl_str){"", 0} : m->prefix,
                  suffix = last ? m->suffix : (ggl_str){"", 0};
    *spelled = (ggl_str){s, n};
    if (prefix.n == 0 && suffix.n == 0) {
        const uint32_t c = n == 1   ? (unsigned char)s[0]
                           : n == 2 ? llm_unicode_decode(s, 2)
                                    : UINT32_MAX;
        if (c < sizeof m->direct / sizeof *m->direct && (n > 1 || c < 0x80)) {
            const int32_t id = m->direct[c];
            return id >= 0 && llm_step_model_may(r, id) ? id : -1;
        }
        return llm_step_model_find(r, s, n);
    }
    if (!ggl_grow(&r->word, &r->cap_word, prefix.n + n + suffix.n + 1, 1))
        return -2;
    if (prefix.n > 0)
        memcpy(r->word, prefix.s, prefix.n);
    memcpy(r->word + prefix.n, s, n);
    if (suffix.n > 0)
        memcpy(r->word + prefix.n + n, suffix.s, suffix.n);
    *spelled = (ggl_str){r->word, prefix.n + n + suffix.n};
    return llm_step_model_find(r, spelled->s, spelled->n);
}

/* The symbols of a word, as they are made. Each has a byte of its own in `at`, so that their lengths add up. */
typedef struct builder {
    step_model_run *r;
    uint32_t n;
    bool waits; /* an unknown symbol is not added yet */
} builder;

static bool push(builder *b, int32_t id) {
    step_model_run *r = b->r;
    if (b->n == UINT32_MAX / 2 || !ggl_grow(&r->sym, &r->cap_sym, (size_t)b->n + 1, sizeof *r->sym))
        return false;
    r->sym[b->n] = (symbol){.at = b->n, .n = 1, .id = id};
    b->n++;
    return true;
}

static bool push_waiting(builder *b) {
    const bool waits = b->waits;
    b->waits = false;
    return !waits || push(b, b->r->m->unknown);
}

/* Adds a character that is no token. The library adds the bytes of one at once, before an unknown one that waits. */
static ggl_status add_unknown(builder *b, const char *s, size_t n, ggl_str spelled) {
    const step_model *m = b->r->m;
    bool ok = true;
    if (m->byte_fallback && llm_all_bytes(m->byte, spelled.s, spelled.n)) {
        for (size_t i = 0; i < spelled.n && ok; i++)
            ok = push(b, m->byte[(unsigned char)spelled.s[i]]);
    } else if (!m->drops_unknown) {
        if (m->unknown < 0)
            return llm_step_model_no_unknown(b->r, s, n);
        ok = m->fuse_unknown || push_waiting(b);
        b->waits = true;
    } else {
        b->r->out->lost += m->of_bytes ? 1 : n;
    }
    return ok ? GGL_OK : llm_step_no_memory(b->r->err);
}

static ggl_status first_symbols(builder *b, const char *s, size_t n) {
    ggl_status status = GGL_OK;
    for (size_t i = 0, length; i < n && status == GGL_OK; i += length) {
        ggl_str spelled;
        length = llm_utf8_length(s + i, n - i);
        const int32_t id = find_character(b->r, s + i, length, i == 0, i + length == n, &spelled);
        GGL_STEPS(1);
        if (id == -1)
            status = add_unknown(b, s + i, length, spelled);
        else if (id < 0 || !push_waiting(b) || !push(b, id))
            status = llm_step_no_memory(b->r->err);
    }
    return status == GGL_OK && !push_waiting(b) ? llm_step_no_memory(b->r->err) : status;
}

static ggl_status merge_word(step_model_run *r, const char *s, size_t n) {
    builder b = {.r = r};
    ggl_status status = first_symbols(&b, s, n);
    if (status != GGL_OK || b.n == 0)
        return status;
    if (!llm_merge_all(&r->queue, r->sym, b.n, find_join, r))
        return llm_step_no_memory(r->err);
    for (uint32_t i = 0; i != NO_SYMBOL && status == GGL_OK; i = r->sym[i].next)
        status = llm_step_model_put(r, r->sym[i].id);
    return status;
}

static ggl_status add_word(step_model_run *r, const char *s, size_t n) {
    return llm_step_model_remembered(r, s, n, merge_word);
}

/* Returns a character as the key of a pair; 0: it is no token by itself, or no character. */
static uint32_t known_character(const step_model_run *r, const char *s, size_t n, size_t *length) {
    *length = llm_utf8_length(s, n);
    if (*length == 1 && (unsigned char)s[0] >= 0x80)
        return 0;
    const uint32_t c = llm_unicode_decode(s, *length);
    const int32_t id = c < sizeof r->m->direct / sizeof *r->m->direct
                           ? r->m->direct[c]
                           : llm_step_model_find(r, s, *length);
    return id >= 0 && llm_step_model_may(r, id) ? c : 0;
}

/* A long text that no pre-tokenizer has cut. It is cut here between characters that no token has beside each other, so that each part
 * can be remembered. */
static ggl_status add_long(step_model_run *r, const char *s, size_t n) {
    const step_model *m = r->m;
    size_t from = 0, length;
    uint32_t before = 0;
    ggl_status status = GGL_OK;
    for (size_t i = 0; i < n && status == GGL_OK; i += length) {
        const uint32_t c = known_character(r, s + i, n - i, &length), pair[2] = {before, c};
        GGL_STEPS(1);
        if (before && c &&
            ggl_index_find(&m->by_neighbors, m->neighbors,
                           (ggl_str){(const char *)pair, sizeof pair}) == SIZE_MAX) {
            status = add_word(r, s + from, i - from);
            from = i;
        }
        before = c;
    }
    return status == GGL_OK ? add_word(r, s + from, n - from) : status;
}

ggl_status llm_step_bpe(step_model_run *r, const char *s, size_t n) {
    const int32_t whole = r->m->ignore_merges ? llm_step_model_find(r, s, n) : -1;
    if (whole >= 0)
        return llm_step_model_put(r, whole);
    return n > LONG_TEXT && r->m->neighbors ? add_long(r, s, n) : add_word(r, s, n);
}

/* --- reading --------------------------------------------------------------------------------------- */

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for the tokenizer");
}

/* Puts a merge into the table. A pair that is listed twice has its last place, as in the library. */
static void put_merge(step_model *m, llm_merge merge) {
    const int32_t key[2] = {merge.left, merge.right};
    const size_t there =
        ggl_index_find(&m->by_pair, m->merge, (ggl_str){(const char *)key, sizeof key});
    if (there != SIZE_MAX) {
        m->merge[there] = merge;
        return;
    }
    m->merge[m->n_merge] = merge;
    (void)ggl_index_put(&m->by_pair, m->merge, m->n_merge++);
}

/* Returns what two pieces make: their spelling, the second without the prefix of its kind. */
static int32_t join_of(step_model *m, int32_t left, int32_t right, char **buffer, size_t *cap) {
    const ggl_str a = m->piece[left], b = m->piece[right];
    if (b.n < m->prefix.n || !ggl_grow(buffer, cap, a.n + b.n + 1, 1))
        return -1;
    if (a.n > 0)
        memcpy(*buffer, a.s, a.n);
    memcpy(*buffer + a.n, b.s + m->prefix.n, b.n - m->prefix.n);
    return llm_spellings_find(&m->by_piece, m->piece, *buffer, a.n + b.n - m->prefix.n);
}

/* Reads merges as pairs of ids, or as strings "left right" of pieces without spaces. */
static ggl_status read_merge(const step_model *m, const ggl_gguf_value *ids,
                             const ggl_gguf_value *texts, uint64_t i, int64_t pair[2],
                             ggl_error *err) {
    ggl_str s;
    if (ids) {
        for (int k = 0; k < 2; k++)
            if (!ggl_gguf_integer(ids, 2 * i + (uint64_t)k, &pair[k]) || pair[k] < 0 ||
                pair[k] >= m->t->n_vocab)
                return ggl_fail(err, GGL_FORMAT,
                                "tokenizer.ggl.merges: entry %" PRIu64 " is no pair of tokens", i);
        return GGL_OK;
    }
    const char *space =
        ggl_gguf_string(texts, i, &s) && s.n > 2 ? memchr(s.s + 1, ' ', s.n - 2) : NULL;
    if (!space)
        return ggl_fail(err, GGL_FORMAT,
                        "tokenizer.ggml.merges: entry %" PRIu64
                        " is not two pieces with a space between them",
                        i);
    const size_t n = (size_t)(space - s.s);
    pair[0] = llm_spellings_find(&m->by_piece, m->piece, s.s, n);
    pair[1] = llm_spellings_find(&m->by_piece, m->piece, space + 1, s.n - n - 1);
    return GGL_OK;
}

static ggl_status read_merges(step_model *m, llm_tokenizer *t, const ggl_gguf *file,
                              ggl_error *err) {
    const ggl_gguf_value *ids = ggl_gguf_find(file, "tokenizer.ggl.merges"),
                         *texts = ggl_gguf_find(file, "tokenizer.ggml.merges");
    const uint64_t n = ids ? ids->n / 2 : texts ? texts->n : 0;
    if ((ids && (!ids->is_array || ids->n % 2 != 0)) || (!ids && (!texts || !texts->is_array)) ||
        n > INT32_MAX / 4)
        return ggl_fail(err, GGL_FORMAT, "tokenizer.%s.merges is no list of merges",
                        ids ? "ggl" : "ggml");
    m->merge = ggl_arena_alloc(&t->arena, (size_t)n + 1, sizeof *m->merge);
    if (!m->merge)
        return no_memory(err);
    char *buffer = NULL;
    size_t cap = 0;
    ggl_status s =
        ggl_index_init(&m->by_pair, (size_t)n, sizeof *m->merge, 2 * sizeof(int32_t), err);
    for (uint64_t i = 0; i < n && s == GGL_OK; i++) {
        int64_t pair[2] = {-1, -1};
        s = read_merge(m, ids, texts, i, pair, err);
        const bool there = s == GGL_OK && pair[0] >= 0 && pair[1] >= 0 && m->piece[pair[0]].s &&
                           m->piece[pair[1]].s;
        const int32_t id =
            there ? join_of(m, (int32_t)pair[0], (int32_t)pair[1], &buffer, &cap) : -1;
        if (s == GGL_OK && id < 0)
            s = ggl_fail(err, GGL_FORMAT,
                         "merge %" PRIu64 " does not make a token out of two tokens", i);
        if (s == GGL_OK)
            put_merge(m, (llm_merge){(int32_t)pair[0], (int32_t)pair[1], (int32_t)i, id});
    }
    ggl_free(buffer);
    return s;
}

/* Lists the characters that merges bring together: the last of a left piece and the first of a right one. Pieces that are spelled with a
 * prefix or suffix, or that stand for unknown characters or bytes, are not what the text has: then nothing is cut. */
static ggl_status find_neighbors(step_model *m, llm_tokenizer *t, ggl_error *err) {
    if (m->prefix.n > 0 || m->suffix.n > 0)
        return GGL_OK;
    m->neighbors = ggl_arena_alloc(&t->arena, m->n_merge + 1, sizeof *m->neighbors);
    if (!m->neighbors)
        return no_memory(err);
    const ggl_status s = ggl_index_init(&m->by_neighbors, m->n_merge, sizeof *m->neighbors,
                                        sizeof m->neighbors->c, err);
    size_t n = 0;
    for (size_t i = 0; i < m->n_merge && s == GGL_OK; i++) {
        const ggl_str a = m->piece[m->merge[i].left], b = m->piece[m->merge[i].right];
        size_t last = a.n > 0 ? a.n - 1 : 0;
        while (last > 0 && ((unsigned char)a.s[last] & 0xc0) == 0x80)
            last--;
        const size_t n_a = a.n > 0 ? ggl_utf8_length(a.s + last, a.n - last) : 0,
                     n_b = b.n > 0 ? ggl_utf8_length(b.s, b.n) : 0;
        if (n_a == 0 || n_b == 0)
            continue;
        m->neighbors[n] =
            (llm_neighbors){{llm_unicode_decode(a.s + last, n_a), llm_unicode_decode(b.s, n_b)}};
        n += ggl_index_put(&m->by_neighbors, m->neighbors, n) == n;
    }
    return s;
}

static ggl_status read_string(llm_tokenizer *t, const json_value *model, const char *name,
                              ggl_str *out, ggl_error *err) {
    const json_value *x = llm_json_get_kind(model, name, JSON_STRING);
    *out = (ggl_str){"", 0};
    if (x)
        *out = (ggl_str){ggl_arena_strndup(&t->arena, x->s, x->n), x->n};
    return out->s ? GGL_OK : no_memory(err);
}

static bool flag(const json_value *model, const char *name) {
    const json_value *x = llm_json_get_kind(model, name, JSON_BOOL);
    return x && x->flag;
}

ggl_status llm_step_bpe_read(step_model *m, llm_tokenizer *t, const ggl_gguf *file,
                             const json_value *model, ggl_error *err) {
    const json_value *dropout = llm_json_get(model, "dropout"),
                     *unknown = llm_json_get(model, "unk_token");
    if (dropout && dropout->kind == JSON_NUMBER && dropout->number != 0)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "model: a 'dropout' of %g, by which a text becomes other tokens each time, "
                        "is not supported; 0 or null is",
                        dropout->number);
    m->drops_unknown = !unknown || unknown->kind == JSON_NULL;
    m->fuse_unknown = flag(model, "fuse_unk");
    m->ignore_merges = flag(model, "ignore_merges");
    ggl_status s = read_string(t, model, "continuing_subword_prefix", &m->prefix, err);
    if (s == GGL_OK)
        s = read_string(t, model, "end_of_word_suffix", &m->suffix, err);
    for (uint32_t c = 0; c < sizeof m->direct / sizeof *m->direct; c++) {
        char spelled[4];
        m->direct[c] =
            llm_spellings_find(&m->by_piece, m->piece, spelled, llm_unicode_encode(c, spelled));
    }
    if (s == GGL_OK)
        s = read_merges(m, t, file, err);
    return s == GGL_OK ? find_neighbors(m, t, err) : s;
}
