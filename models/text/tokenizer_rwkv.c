/* RWKV's "World" tokenizer: at each place of the text, the longest token that begins there.
 *
 * Tokens are byte strings, written in the file like Python's repr without quotes: \xNN, \t, \n,
 * \r, and a backslash before any other character for that character. Control, unknown and
 * unused tokens never result from text. */
#include <inttypes.h>
#include <string.h>

#include "automaton.h"
#include "tokenizer_impl.h"

typedef struct rwkv {
    automaton tokens;
    ggl_str *bytes; /* [n_vocab], the unescaped spellings */
} rwkv;

/* Writes the bytes that `p` spells. False: an invalid escape. */
static bool unescape(ggl_str p, char *out, size_t *n_out) {
    static const char letters[] = "tnr", meant[] = "\t\n\r";
    size_t n = 0;
    for (size_t i = 0; i < p.n; i++) {
        if (p.s[i] != '\\') {
            out[n++] = p.s[i];
            continue;
        }
        if (++i == p.n)
            return false;
        const char *letter = memchr(letters, p.s[i], sizeof letters - 1);
        int byte = p.s[i] == 'x' && p.n - i > 2 ? llm_hex_byte(p.s + i + 1) : -1;
        if (p.s[i] == 'x' && byte < 0)
            return false;
        out[n++] = letter ? meant[letter - letters] : p.s[i] == 'x' ? (char)byte : p.s[i];
        i += p.s[i] == 'x' ? 2 : 0;
    }
    *n_out = n;
    return true;
}

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for the tokenizer");
}

static ggl_status read_token(llm_tokenizer *t, rwkv *m, int32_t id, ggl_error *err) {
    ggl_str p = t->piece[id];
    char *bytes = ggl_arena_alloc(&t->arena, p.n + 1, 1);
    if (!bytes)
        return no_memory(err);
    if (!unescape(p, bytes, &m->bytes[id].n))
        return ggl_fail(err, GGL_FORMAT,
                        "token %" PRId32 " is spelled '%.*s': a backslash must be followed by xNN "
                        "(two hexadecimal digits) or one character",
                        id, (int)(p.n < 64 ? p.n : 64), p.s);
    m->bytes[id].s = bytes;
    return t->type[id] == TOKEN_UNUSED ? GGL_OK
                                       : llm_automaton_add(&m->tokens, m->bytes[id], id, err);
}

/* Requires a token for each byte, unless there is an unknown token. */
static ggl_status need_bytes(llm_tokenizer *t, const rwkv *m, ggl_error *err) {
    int32_t byte[256];
    for (int b = 0; b < 256; b++) {
        int32_t node = m->tokens.child_of_root[b];
        byte[b] = node ? m->tokens.node[node].id : -1;
    }
    return llm_need_bytes(t, byte, err);
}

static ggl_status rwkv_init(llm_tokenizer *t, const ggl_gguf *file, ggl_error *err) {
    (void)file;
    rwkv *m = ggl_arena_alloc(&t->arena, 1, sizeof *m);
    t->state = m;
    if (m)
        m->bytes = ggl_arena_alloc(&t->arena, (size_t)t->n_vocab, sizeof *m->bytes);
    if (!m || !m->bytes)
        return no_memory(err);
    ggl_status s = llm_automaton_init(&m->tokens, true, err);
    for (int32_t id = 0; id < t->n_vocab && s == GGL_OK; id++)
        if (llm_may_be_spelled(t, id))
            s = read_token(t, m, id, err);
    if (s == GGL_OK)
        s = llm_automaton_finish(&m->tokens, err);
    return s == GGL_OK ? need_bytes(t, m, err) : s;
}

static void rwkv_free(llm_tokenizer *t) {
    rwkv *m = t->state; /* is in the arena */
    if (m)
        llm_automaton_fini(&m->tokens);
    t->state = NULL;
}

static ggl_str rwkv_text(llm_tokenizer *t, int32_t id) {
    const rwkv *m = t->state;
    return m->bytes[id].s ? m->bytes[id] : t->piece[id];
}

/* Finds the longest token at each byte from the end of the text backward, then picks from the
 * start. */
static ggl_status rwkv_encode(const llm_tokenizer *t, const char *text, size_t n,
                              const llm_stretch *how, llm_tokens *out, ggl_error *err) {
    (void)how;
    const rwkv *m = t->state;
    int32_t *longest = ggl_calloc(n, sizeof *longest), state = 0; /* automaton nodes; 0: none */
    if (!longest)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a text of %zu bytes", n);
    for (size_t i = n; i-- > 0;) {
        state = llm_automaton_step(&m->tokens, state, (unsigned char)text[i]);
        longest[i] = m->tokens.node[state].found;
    }
    ggl_status s = GGL_OK;
    for (size_t i = 0; i < n && s == GGL_OK;) {
        const automaton_node *token = &m->tokens.node[longest[i]];
        s = llm_tokens_append(out, longest[i] ? token->id : t->unknown, err);
        i += longest[i] ? token->depth : 1;
    }
    ggl_free(longest);
    return s;
}

static bool rwkv_key(const llm_tokenizer *t, int32_t id, bool begins, char *out, size_t *n) {
    const rwkv *m = t->state;
    (void)begins;
    if (!llm_may_be_spelled(t, id) || t->type[id] == TOKEN_UNUSED)
        return false;
    *n = m->bytes[id].n;
    memcpy(out, m->bytes[id].s, *n);
    return *n > 0;
}

static const char *rwkv_tables(const llm_tokenizer *t, llm_tokenizer_tables *out) {
    (void)t;
    *out = (llm_tokenizer_tables){.encode = "longest", .key = rwkv_key};
    return NULL;
}

const llm_tokenizer_kind llm_tokenizer_rwkv = {
    .name = "rwkv",
    .init = rwkv_init,
    .text = rwkv_text,
    .encode = rwkv_encode,
    .free = rwkv_free,
    .tables = rwkv_tables,
};
