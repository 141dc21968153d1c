/* The tokenizer of a speech model in ggml's format before GGUF. The file has each token's bytes, in the order of the ids, and neither
 * merges nor the special tokens. */
#include <inttypes.h>
#include <string.h>

#include "hf_tokenizer_impl.h"
#include "legacy.h"
#include "text/byte_spelling.h"

/* The languages in the order of their tokens. */
static const char languages[] =
    "en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th "
    "ur hr bg lt "
    "la mi ml cy sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr pa si km sn "
    "yo so af oc "
    "ka be tg sd gu am yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt haw ln ha ba jw su yue ";

/* --- merges ----------------------------------------------------------------------------------- */

typedef struct merging {
    const ggl_str *token; /* the bytes of the file's tokens */
    int64_t n;
    ggl_index by_bytes;
    /* the token that is taken apart: its parts, part i from start[i] to start[i + 1] */
    ggl_str whole;
    int64_t id;
    int n_parts;
    size_t *start;
    int64_t *joined; /* the token that parts i and i + 1 make; n: none before this one */
} merging;

/* Returns the token of these bytes, if it is before the one that is taken apart; else n. */
static int64_t earlier(const merging *m, size_t from, size_t to) {
    const size_t id =
        ggl_index_find(&m->by_bytes, m->token, (ggl_str){m->whole.s + from, to - from});
    return id != SIZE_MAX && (int64_t)id < m->id ? (int64_t)id : m->n;
}

static void look_up(merging *m, int i) {
    if (i >= 0 && i + 1 < m->n_parts)
        m->joined[i] = earlier(m, m->start[i], m->start[i + 2]);
}

/* Joins parts i and i + 1. */
static void join(merging *m, int i) {
    m->n_parts--;
    for (int k = i + 1; k <= m->n_parts; k++)
        m->start[k] = m->start[k + 1];
    for (int k = i + 1; k + 1 < m->n_parts; k++)
        m->joined[k] = m->joined[k + 1];
    look_up(m, i - 1);
    look_up(m, i);
}

/* Cuts a token's bytes by the merges of the tokens before it: the earliest token first. True: two tokens remain, which its own merge
 * joins. */
static bool take_apart(merging *m, int64_t id) {
    m->whole = m->token[id];
    m->id = id;
    m->n_parts = (int)m->whole.n;
    for (size_t k = 0; k <= m->whole.n; k++)
        m->start[k] = k;
    for (int i = 0; i + 1 < m->n_parts; i++)
        look_up(m, i);
    for (int best = 0; best >= 0 && m->n_parts > 2;) {
        best = -1;
        for (int i = 0; i + 1 < m->n_parts; i++)
            if (m->joined[i] < (best < 0 ? m->n : m->joined[best]))
                best = i;
        if (best >= 0)
            join(m, best);
    }
    return m->n_parts == 2 && earlier(m, 0, m->start[1]) < m->n &&
           earlier(m, m->start[1], m->whole.n) < m->n;
}

/* Writes the spelling of n bytes, at most 2 n bytes; returns their number. */
static size_t spell(const char *s, size_t n, char *out) {
    size_t used = 0;
    for (size_t i = 0; i < n; i++)
        used += llm_spell_byte((unsigned char)s[i], out + used);
    return used;
}

static ggl_status add_merge(llm_hf_tokenizer *t, const merging *m, ggl_error *err) {
    const size_t n = m->whole.n, left = m->start[1];
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
    m->start = ggl_arena_alloc(&t->arena, longest + 1, sizeof *m->start);
    m->joined = ggl_arena_alloc(&t->arena, longest + 1, sizeof *m->joined);
    t->merge = ggl_arena_alloc(&t->arena, (size_t)m->n + 1, sizeof *t->merge);
    if (s == GGL_OK && (!m->start || !m->joined || !t->merge))
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

/* --- tokens ----------------------------------------------------------------------------------- */

static ggl_status put(llm_hf_tokenizer *t, int64_t id, char *text, int32_t type, ggl_error *err) {
    if (!text)
        return llm_hf_no_memory(err);
    t->piece[id] = (ggl_str){text, strlen(text)};
    t->type[id] = type;
    return GGL_OK;
}

/* Names the special tokens, whatever texts the file has for them. */
static ggl_status name_specials(llm_hf_tokenizer *t, const legacy_specials *of, ggl_error *err) {
    static const char *const first[] = {"endoftext", "startoftranscript"};
    static const char *const tasks[] = {"translate",   "transcribe", "startoflm",
                                        "startofprev", "nospeech",   "notimestamps"};
    ggl_arena *a = &t->arena;
    int64_t id = of->end;
    const char *code = languages;
    ggl_status s = GGL_OK;
    for (size_t k = 0; s == GGL_OK && k < sizeof first / sizeof *first; k++)
        s = put(t, id++, ggl_arena_printf(a, "<|%s|>", first[k]), LLM_TOKEN_CONTROL, err);
    for (int64_t k = 0; s == GGL_OK && k < of->languages; k++) {
        const char *end = strchr(code, ' ');
        s = put(t, id++, ggl_arena_printf(a, "<|%.*s|>", (int)(end - code), code),
                LLM_TOKEN_CONTROL, err);
        code = end + 1;
    }
    for (size_t k = 0; s == GGL_OK && k < sizeof tasks / sizeof *tasks; k++)
        s = put(t, id++, ggl_arena_printf(a, "<|%s|>", tasks[k]), LLM_TOKEN_CONTROL, err);
    for (int k = 0; s == GGL_OK && k < LEGACY_TIMESTAMPS; k++) /* 50 in a second */
        s = put(t, id++, ggl_arena_printf(a, "<|%d.%02d|>", k / 50, k % 50 * 2), LLM_TOKEN_CONTROL,
                err);
    return s;
}

/* Spells the file's tokens; ids that lack one get an unused token. */
static ggl_status spell_tokens(llm_hf_tokenizer *t, const merging *m, int64_t end, ggl_error *err) {
    ggl_status s = GGL_OK;
    for (int64_t id = 0; s == GGL_OK && id < end; id++) {
        if (id >= m->n) {
            s = put(t, id, ggl_arena_printf(&t->arena, "[PAD%" PRId64 "]", id), LLM_TOKEN_UNUSED,
                    err);
            continue;
        }
        char *text = ggl_arena_alloc(&t->arena, 2 * m->token[id].n + 1, 1);
        if (text)
            spell(m->token[id].s, m->token[id].n, text); /* ends in a NUL of the arena's */
        s = put(t, id, text, LLM_TOKEN_NORMAL, err);
    }
    return s;
}

static ggl_status note(llm_hf_tokenizer *t, int64_t n, const char *what, ggl_error *err) {
    return n == 0 || llm_hf_note(t, ggl_arena_printf(
                                        &t->arena, "%" PRId64 " of the file's tokens %s", n, what))
               ? GGL_OK
               : llm_hf_no_memory(err);
}

static ggl_status read_all(llm_hf_tokenizer *t, const void *data, int64_t n, ggl_error *err) {
    legacy_specials specials;
    ggl_str *token;
    merging m = {0};
    int64_t n_left = 0, n_again = 0;
    if (!llm_legacy_find_specials(n, &specials))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "the file does not name the special tokens, and the ids that they have "
                        "among %" PRId64 " tokens (n_vocab) are not known, only for up to 51866; "
                        "--no-tokenizer leaves the tokenizer out",
                        n);
    ggl_status s = llm_legacy_tokens(data, &t->arena, &token, &m.n, err);
    if (s != GGL_OK)
        return s;
    m.token = token;
    m.n = m.n < specials.end ? m.n : specials.end;
    t->bytes = true;
    t->n = t->n_ids = n;
    t->pre = (ggl_str){"gpt-2", 5};
    t->piece = ggl_arena_alloc(&t->arena, (size_t)n, sizeof *t->piece);
    t->type = ggl_arena_alloc(&t->arena, (size_t)n, sizeof *t->type);
    s = t->piece && t->type ? spell_tokens(t, &m, specials.end, err) : llm_hf_no_memory(err);
    if (s == GGL_OK)
        s = name_specials(t, &specials, err);
    if (s == GGL_OK)
        s = make_merges(t, &m, &n_left, &n_again, err);
    if (s == GGL_OK)
        s = note(t, n_again, "are the same as an earlier one: no text becomes them", err);
    if (s == GGL_OK)
        s = note(t, n_left, "are not two earlier ones: no text becomes them", err);
    for (int k = 0; k < N_ID; k++)
        t->id[k] = -1;
    t->id[BOS] = t->id[EOS] = specials.end;
    t->add_space = t->lower = t->strip = -1;
    return s;
}

ggl_status llm_hf_tokenizer_open_legacy(llm_hf_tokenizer **out, const void *data, int64_t n,
                                        ggl_error *err) {
    *out = NULL;
    llm_hf_tokenizer *t = ggl_calloc(1, sizeof *t);
    if (!t)
        return llm_hf_no_memory(err);
    const ggl_status s = read_all(t, data, n, err);
    if (s == GGL_OK)
        *out = t;
    else
        llm_hf_tokenizer_free(t);
    return s;
}
