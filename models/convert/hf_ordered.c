/* Byte-level BPE whose merges are not written down: they follow from the order of the tokens, each of which joins two earlier ones. And
 * vocabulary.json and vocabulary.txt, the list of all tokens that CTranslate2's converters write. */
#include <inttypes.h>
#include <string.h>

#include "ggl/internal/steps.h"
#include "ggl/internal/text.h"
#include "hf_tokenizer_impl.h"
#include "text/byte_spelling.h"

/* --- merges ----------------------------------------------------------------------------------- */

/* Two parts that make an earlier token. */
typedef struct joint {
    int64_t token;
    size_t from, to;
} joint;

typedef struct merging {
    const ggl_str *token; /* the bytes of the file's tokens */
    int64_t n;
    ggl_index by_bytes;
    /* the token that is taken apart: a part that begins at byte i ends at end[i] (0: none begins there) and follows one that begins at before[i] */
    ggl_str whole;
    int64_t id;
    size_t n_parts;
    size_t *end, *before;
    /* a heap with the earliest token on top, and of equal ones the leftmost. Some joints are no longer there: their parts have been joined with others. */
    joint *joints;
    size_t n_joints;
} merging;

/* Returns the token of these bytes, if it is before the one that is taken apart; else n. */
static int64_t earlier(const merging *m, size_t from, size_t to) {
    GGL_STEPS(to - from);
    const size_t id =
        ggl_index_find(&m->by_bytes, m->token, (ggl_str){m->whole.s + from, to - from});
    return id != SIZE_MAX && (int64_t)id < m->id ? (int64_t)id : m->n;
}

static bool is_first(const joint *a, const joint *b) {
    return a->token != b->token ? a->token < b->token : a->from < b->from;
}

/* Adds the joint of the part that begins at `from` and the next one, if there is a token for it. */
static void look_up(merging *m, size_t from) {
    const size_t mid = m->end[from];
    if (mid == m->whole.n)
        return;
    const joint x = {earlier(m, from, m->end[mid]), from, m->end[mid]};
    if (x.token == m->n)
        return;
    size_t i = m->n_joints++;
    for (; i > 0 && is_first(&x, &m->joints[(i - 1) / 2]); i = (i - 1) / 2, GGL_STEPS(1))
        m->joints[i] = m->joints[(i - 1) / 2];
    m->joints[i] = x;
}

static joint take_first(merging *m) {
    const joint top = m->joints[0], x = m->joints[--m->n_joints];
    size_t i = 0;
    for (size_t k; (k = 2 * i + 1) < m->n_joints; i = k) {
        k += k + 1 < m->n_joints && is_first(&m->joints[k + 1], &m->joints[k]);
        if (!is_first(&m->joints[k], &x))
            break;
        m->joints[i] = m->joints[k];
        GGL_STEPS(1);
    }
    m->joints[i] = x;
    return top;
}

static void join(merging *m, const joint *x) {
    m->n_parts--;
    m->end[m->end[x->from]] = 0;
    m->end[x->from] = x->to;
    m->before[x->to] = x->from;
    if (x->from > 0)
        look_up(m, m->before[x->from]);
    look_up(m, x->from);
}

/* Cuts a token's bytes by the merges of the tokens before it: the earliest token first. True: two tokens remain, which its own merge
 * joins. */
static bool take_apart(merging *m, int64_t id) {
    m->whole = m->token[id];
    m->id = id;
    m->n_parts = m->whole.n;
    m->n_joints = 0;
    for (size_t k = 0; k < m->whole.n; k++) {
        m->end[k] = k + 1;
        m->before[k + 1] = k;
    }
    for (size_t k = 0; k < m->whole.n; k++)
        look_up(m, k);
    while (m->n_joints > 0 && m->n_parts > 2) {
        GGL_STEPS(1);
        const joint x = take_first(m);
        const size_t mid = m->end[x.from];
        if (mid > 0 && mid < x.to && m->end[mid] == x.to)
            join(m, &x);
    }
    return m->n_parts == 2 && earlier(m, 0, m->end[0]) < m->n &&
           earlier(m, m->end[0], m->whole.n) < m->n;
}

/* Writes the spelling of n bytes, at most 2 n bytes; returns their number. */
static size_t spell(const char *s, size_t n, char *out) {
    size_t used = 0;
    for (size_t i = 0; i < n; i++)
        used += llm_spell_byte((unsigned char)s[i], out + used);
    return used;
}

static ggl_status add_merge(llm_hf_tokenizer *t, const merging *m, ggl_error *err) {
    const size_t n = m->whole.n, left = m->end[0];
    char *text = ggl_arena_alloc(&t->arena, 2 * n + 1, 1);
    if (!text)
        return llm_hf_no_memory(err);
    size_t used = spell(m->whole.s, left, text);
    text[used++] = ' ';
    used += spell(m->whole.s + left, n - left, text + used);
    t->merge[t->n_merge++] = (ggl_str){text, used};
    return GGL_OK;
}

/* Makes the merges of tokens 0 .. m->n - 1. *n_left: tokens that no merge makes; *n_again: those with the bytes of an earlier one. */
static ggl_status make_merges(llm_hf_tokenizer *t, merging *m, int64_t *n_left, int64_t *n_again,
                              ggl_error *err) {
    size_t longest = 1;
    ggl_status s =
        ggl_index_init(&m->by_bytes, (size_t)m->n, sizeof *m->token, GGL_INDEX_STRINGS, err);
    for (int64_t id = 0; s == GGL_OK && id < m->n; id++)
        longest = m->token[id].n > longest ? m->token[id].n : longest;
    m->end = ggl_arena_alloc(&t->arena, longest + 1, sizeof *m->end);
    m->before = ggl_arena_alloc(&t->arena, longest + 1, sizeof *m->before);
    m->joints = ggl_arena_alloc(&t->arena, 3 * longest, sizeof *m->joints); /* two for each join */
    t->merge = ggl_arena_alloc(&t->arena, (size_t)m->n + 1, sizeof *t->merge);
    if (s == GGL_OK && (!m->end || !m->before || !m->joints || !t->merge))
        s = llm_hf_no_memory(err);
    for (int64_t id = 0; s == GGL_OK && id < m->n; id++) {
        const bool again = ggl_index_put(&m->by_bytes, m->token, (size_t)id) != (size_t)id;
        *n_again += again && m->token[id].n > 0;
        if (again || m->token[id].n < 2)
            continue;
        if (take_apart(m, id))
            s = add_merge(t, m, err);
        else
            ++*n_left;
    }
    ggl_index_fini(&m->by_bytes);
    return s;
}

char *llm_hf_spell(llm_hf_tokenizer *t, ggl_str bytes) {
    char *text = ggl_arena_alloc(&t->arena, 2 * bytes.n + 1, 1);
    if (text)
        spell(bytes.s, bytes.n, text); /* ends in a NUL of the arena's */
    return text;
}

static ggl_status note(llm_hf_tokenizer *t, int64_t n, const char *what, ggl_error *err) {
    return n == 0 || llm_hf_note(t, ggl_arena_printf(
                                        &t->arena, "%" PRId64 " of the file's tokens %s", n, what))
               ? GGL_OK
               : llm_hf_no_memory(err);
}

ggl_status llm_hf_merges_by_order(llm_hf_tokenizer *t, const ggl_str *token, int64_t n,
                                  ggl_error *err) {
    merging m = {.token = token, .n = n};
    int64_t n_left = 0, n_again = 0;
    ggl_status s = make_merges(t, &m, &n_left, &n_again, err);
    if (s == GGL_OK)
        s = note(t, n_again, "are the same as an earlier one: no text becomes them", err);
    return s == GGL_OK
               ? note(t, n_left, "are not made of two earlier ones: no text becomes them", err)
               : s;
}

/* --- a list of tokens --------------------------------------------------------------------------- */

/* The byte that a character of a spelling stands for; -1: none. */
typedef int byte_of[0x144];

static void fill_bytes(byte_of byte) {
    for (int c = 0; c < 0x144; c++)
        byte[c] = -1;
    for (unsigned b = 0; b < 256; b++) {
        char text[2];
        const size_t n = llm_spell_byte(b, text);
        byte[n == 1 ? (unsigned char)text[0]
                    : ((unsigned char)text[0] & 0x1f) << 6 | ((unsigned char)text[1] & 0x3f)] =
            (int)b;
    }
}

/* Sets *out to the bytes of a spelling, in the arena. */
static ggl_status unspell(llm_hf_tokenizer *t, const byte_of byte, ggl_str s, ggl_str *out,
                          ggl_error *err) {
    char *to = ggl_arena_alloc(&t->arena, s.n + 1, 1);
    size_t n = 0;
    if (!to)
        return llm_hf_no_memory(err);
    for (size_t i = 0; i < s.n; i++) {
        const unsigned char a = (unsigned char)s.s[i];
        unsigned c = a;
        if (a >= 0x80 && i + 1 < s.n)
            c = (unsigned)(a & 0x1f) << 6 | ((unsigned char)s.s[++i] & 0x3f);
        if ((a >= 0x80 && (a & 0xfc) != 0xc4 && (a & 0xfc) != 0xc0) || c >= 0x144 || byte[c] < 0)
            return ggl_fail(err, GGL_FORMAT,
                            "token '%.*s' is not spelled as those of byte-level BPE are",
                            llm_hf_shown(s), s.s);
        to[n++] = (char)byte[c];
    }
    *out = (ggl_str){to, n};
    return GGL_OK;
}

/* Reads the vocabulary that the folder has into t->piece. t->n stays 0 if it has none. */
static ggl_status read_list(llm_hf_tokenizer *t, int64_t n, const char **name, ggl_error *err) {
    size_t size = 0, at = 0, count = 0;
    ggl_status s = llm_hf_read_optional(t, *name = "vocabulary.json", &t->vocab, err);
    if (s == GGL_OK && !t->vocab)
        s = llm_hf_read_text(t, *name = "vocabulary.txt", &t->merges_text, &size, err);
    if (s != GGL_OK || (!t->vocab && !t->merges_text))
        return s;
    const json_value *list = t->vocab && t->vocab->root.kind == JSON_ARRAY ? &t->vocab->root : NULL;
    if (t->vocab && !list)
        return ggl_fail(err, GGL_FORMAT, "it is no list of tokens");
    for (size_t i = 0; i < size; i++)
        count += t->merges_text[i] == '\n' || i + 1 == size;
    count = list ? list->n : count;
    if ((int64_t)count != n)
        return ggl_fail(err, GGL_SHAPE, "it has %zu tokens, but the model has rows for %lld", count,
                        (long long)n);
    t->n = t->n_ids = n;
    t->piece = ggl_arena_alloc(&t->arena, count + 1, sizeof *t->piece);
    t->type = ggl_arena_alloc(&t->arena, count + 1, sizeof *t->type);
    if (!t->piece || !t->type)
        return llm_hf_no_memory(err);
    for (size_t k = 0; k < count; k++) {
        if (list && list->item[k].kind != JSON_STRING)
            return ggl_fail(err, GGL_FORMAT, "token %zu is no string", k);
        const char *end = list ? NULL : memchr(t->merges_text + at, '\n', size - at);
        const size_t to = end ? (size_t)(end - t->merges_text) : size;
        t->piece[k] = list ? json_str(&list->item[k]) : (ggl_str){t->merges_text + at, to - at};
        at = to + 1;
    }
    return GGL_OK;
}

/* Tokens from <|endoftext|> on are special; those before it are of texts. */
static ggl_status read_tokens(llm_hf_tokenizer *t, ggl_error *err) {
    byte_of byte;
    int64_t end = 0;
    fill_bytes(byte);
    while (end < t->n && !ggl_str_is(t->piece[end], "<|endoftext|>"))
        end++;
    if (end == t->n)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "it lacks <|endoftext|>, which divides the tokens of texts from the "
                        "special ones; add the tokenizer.json of the original model");
    ggl_str *token = ggl_arena_alloc(&t->arena, (size_t)end + 1, sizeof *token);
    ggl_status s = token ? GGL_OK : llm_hf_no_memory(err);
    for (int64_t id = 0; id < t->n && s == GGL_OK; id++) {
        t->type[id] = id < end ? LLM_TOKEN_NORMAL : LLM_TOKEN_CONTROL;
        if (id < end)
            s = unspell(t, byte, t->piece[id], &token[id], err);
    }
    if (s == GGL_OK)
        s = llm_hf_merges_by_order(t, token, end, err);
    t->bytes = true;
    t->pre = (ggl_str){"gpt-2", 5};
    for (int k = 0; k < N_ID; k++)
        t->id[k] = -1;
    t->id[BOS] = t->id[EOS] = end;
    t->add_space = t->lower = t->strip = -1;
    return s;
}

ggl_status llm_hf_tokenizer_open_ordered(llm_hf_tokenizer **out, const char *folder, int64_t n,
                                         ggl_error *err) {
    const char *name = "";
    *out = NULL;
    llm_hf_tokenizer *t = ggl_calloc(1, sizeof *t);
    if (!t)
        return llm_hf_no_memory(err);
    t->folder = folder;
    ggl_status s = read_list(t, n, &name, err);
    if (s == GGL_OK && t->n > 0)
        s = read_tokens(t, err);
    if (s == GGL_OK && t->n > 0) {
        *out = t;
        return GGL_OK;
    }
    llm_hf_tokenizer_free(t);
    return s == GGL_OK || s == GGL_NOMEM ? s : ggl_within(err, s, "%s/%s", folder, name);
}
