/* Tests of tokenizers on vocabularies of their own. One file of a program includes this. */
#ifndef TESTS_TOKENIZER_TEST_H
#define TESTS_TOKENIZER_TEST_H

#include "alloc_fail.h"
#include "steps.h"
#include "tokenizer_file.h"

/* Types of tokens in GGUF files. */
enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER = 4, UNUSED = 5, BYTE = 6 };
enum { MAX_PIECES = 1024, MAX_PIECE = 64 };

/* --- vocabularies ------------------------------------------------------------------------------ */

typedef struct vocab {
    const char *model, *pre; /* pre NULL: no such key */
    ggl_str piece[MAX_PIECES], merge[MAX_PIECES];
    float score[MAX_PIECES];
    int32_t type[MAX_PIECES];
    size_t n, n_merge;
    char text[MAX_PIECES][MAX_PIECE], merge_text[MAX_PIECES][MAX_PIECE];
} vocab;

/* Adds a piece, cut to MAX_PIECE; returns its id. */
TEST_UNUSED static int32_t add(vocab *v, const char *s, float score, int32_t type) {
    snprintf(v->text[v->n], MAX_PIECE, "%s", s);
    v->piece[v->n] = (ggl_str){v->text[v->n], strlen(v->text[v->n])};
    v->score[v->n] = score;
    v->type[v->n] = type;
    return (int32_t)v->n++;
}

/* Adds normal pieces of a list that ends with NULL. */
TEST_UNUSED static void add_all(vocab *v, float score, const char *const *s) {
    for (; *s; s++)
        add(v, *s, score, NORMAL);
}
#define ADD_ALL(v, score, ...) add_all(v, score, (const char *const[]){__VA_ARGS__, NULL})

TEST_UNUSED static void add_merge(vocab *v, const char *left, const char *right) {
    char *s = v->merge_text[v->n_merge];
    snprintf(s, MAX_PIECE, "%s %s", left, right);
    v->merge[v->n_merge++] = (ggl_str){s, strlen(s)};
}

/* Adds 256 pieces for bytes, by a format such as "<0x%02X>". */
TEST_UNUSED static void add_bytes(vocab *v, const char *format, int32_t type) {
    for (unsigned b = 0; b < 256; b++) {
        char s[8];
        snprintf(s, sizeof s, format, b);
        add(v, s, 0, type);
    }
}

/* A writer with the vocabulary's arrays; keys may be added. */
TEST_UNUSED static ggl_gguf_writer *write_vocab(const vocab *v) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_gguf_put_string(w, "tokenizer.ggml.model", v->model, strlen(v->model));
    if (v->pre)
        ggl_gguf_put_string(w, "tokenizer.ggml.pre", v->pre, strlen(v->pre));
    ggl_gguf_put_strings(w, "tokenizer.ggml.tokens", v->piece, v->n);
    ggl_gguf_put_strings(w, "tokenizer.ggml.merges", v->merge, v->n_merge);
    ggl_gguf_put(w, "tokenizer.ggml.scores", GGL_GGUF_F32, true, v->score, v->n);
    ggl_gguf_put(w, "tokenizer.ggml.token_type", GGL_GGUF_I32, true, v->type, v->n);
    return w;
}

/* The tokenizer of what `w` writes; NULL: a check failed. Frees w. */
TEST_UNUSED static llm_tokenizer *opened(ggl_gguf_writer *w) {
    llm_tokenizer *t;
    ggl_error err = {0};
    CHECK_OK(from_writer(&t, w, &err), &err);
    return t;
}

TEST_UNUSED static llm_tokenizer *from_vocab(const vocab *v) {
    return opened(write_vocab(v));
}

/* --- tokenizing -------------------------------------------------------------------------------- */

/* The tokenizer of a reference file; NULL: there is no such file. */
TEST_UNUSED static llm_tokenizer *from_shared(const char *name) {
    const char *path = test_shared(name);
    const ggl_gguf_params params = {.size = sizeof params, .meta_only = true};
    ggl_error err = {0};
    ggl_gguf *file;
    llm_tokenizer *t = NULL;
    if (!path || !CHECK_OK(ggl_gguf_open(&file, path, &params, &err), &err))
        return NULL;
    CHECK_OK(llm_tokenizer_new(&t, file, &err), &err);
    ggl_gguf_close(file);
    return t;
}

/* Pieces from the k-th on, with '|' between them; valid until the next call. */
TEST_UNUSED static const char *pieces_from(const llm_tokenizer *t, const llm_tokens *list,
                                           size_t k) {
    static char out[8192];
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = k; i < list->n; i++) {
        ggl_str p = llm_token_piece(t, list->id[i]);
        used += (size_t)snprintf(out + used, sizeof out - used, "%s%.*s", i > k ? "|" : "",
                                 (int)p.n, p.s);
    }
    return out;
}

/* The pieces of a text. */
TEST_UNUSED static const char *pieces(const llm_tokenizer *t, const char *text, unsigned flags) {
    llm_tokens list = {0};
    CHECK_OK(llm_tokenize(t, text, strlen(text), flags, &list, NULL), NULL);
    const char *out = pieces_from(t, &list, 0);
    llm_tokens_fini(&list);
    return out;
}

/* The pieces of a text that goes on after another one. */
TEST_UNUSED static const char *pieces_after(const llm_tokenizer *t, const char *before,
                                            const char *text, unsigned flags) {
    llm_tokens list = {0};
    CHECK_OK(llm_tokenize(t, before, strlen(before), flags, &list, NULL), NULL);
    const size_t n = list.n;
    CHECK_OK(llm_tokenize(t, text, strlen(text), flags | LLM_TOKENIZE_GOES_ON, &list, NULL), NULL);
    const char *out = pieces_from(t, &list, n);
    llm_tokens_fini(&list);
    return out;
}

/* The text comes back from its ids. */
TEST_UNUSED static bool round_trip(const llm_tokenizer *t, const char *text, size_t n,
                                   unsigned flags) {
    llm_tokens list = {0};
    char *back = NULL;
    size_t size = 0;
    ggl_error err = {0};
    CHECK_OK(llm_tokenize(t, text, n, flags, &list, &err), &err);
    CHECK_OK(llm_detokenize(t, list.id, list.n, false, &back, &size, &err), &err);
    bool same = back && size == n && memcmp(text, back, n) == 0 && back[n] == '\0';
    ggl_free(back);
    llm_tokens_fini(&list);
    return CHECK_MSG(same, "'%.*s' does not come back", (int)n, text);
}

/* Text to ids and back; valid until the next call. */
TEST_UNUSED static const char *there_and_back(const llm_tokenizer *t, const char *text,
                                              unsigned flags) {
    static char out[1024];
    llm_tokens list = {0};
    char *back = NULL;
    size_t size = 0;
    CHECK_OK(llm_tokenize(t, text, strlen(text), flags, &list, NULL), NULL);
    CHECK_OK(llm_detokenize(t, list.id, list.n, false, &back, &size, NULL), NULL);
    snprintf(out, sizeof out, "%s", back ? back : "");
    ggl_free(back);
    llm_tokens_fini(&list);
    return out;
}

TEST_UNUSED static size_t put_utf8(uint32_t u, char *s) {
    const size_t n = u < 0x80 ? 1 : u < 0x800 ? 2 : u < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; u >>= 6)
        s[i] = (char)(0x80 | (u & 0x3f));
    s[0] = (char)(n == 1 ? u : ((0xf00 >> n & 0xff) | u));
    return n;
}

/* Steps to tokenize a text; its tokens, whose number goes to *n_ids, are at most one more than its bytes. */
TEST_UNUSED static uint64_t steps_of(const llm_tokenizer *t, const char *text, size_t n,
                                     size_t *n_ids) {
    llm_tokens list = {0};
    ggl_n_steps = 0;
    CHECK_OK(llm_tokenize(t, text, n, LLM_TOKENIZE_SPECIAL, &list, NULL), NULL);
    CHECK(list.n <= n + 1); /* llama puts a space in front */
    if (n_ids)
        *n_ids = list.n;
    llm_tokens_fini(&list);
    return ggl_n_steps;
}

/* Opening what `w` writes fails with this status and these words; frees w. */
TEST_UNUSED static void refuse(ggl_gguf_writer *w, ggl_status status, const char *words) {
    llm_tokenizer *t = NULL;
    ggl_error err = {0};
    CHECK_INT(from_writer(&t, w, &err), status);
    CHECK_HAS(err.msg, words);
    CHECK(!t);
    llm_tokenizer_free(t);
}

TEST_UNUSED static bool new_tokenize_detokenize(void *file) {
    static const char text[] =
        "<s>some text the Caf\xc3\xa9, 1234567 \xe4\xb8\xad abab\nab\xe6\x97\xa5\xff </s> ab "
        "abab abab ab abab abab ab";
    llm_tokenizer *t;
    if (llm_tokenizer_new(&t, file, NULL) != GGL_OK)
        return false;
    llm_tokens list = {0};
    char *back = NULL;
    size_t size;
    bool ok = llm_tokenize(t, text, sizeof text - 1, LLM_TOKENIZE_BOS | LLM_TOKENIZE_SPECIAL, &list,
                           NULL) == GGL_OK &&
              llm_detokenize(t, list.id, list.n, true, &back, &size, NULL) == GGL_OK;
    ggl_free(back);
    llm_tokens_fini(&list);
    llm_tokenizer_free(t);
    return ok;
}

/* Each allocation of opening what `w` writes, and of using it, fails in turn. Frees w. */
TEST_UNUSED static void fail_each_allocation(ggl_gguf_writer *w, int least) {
    void *data;
    size_t size;
    ggl_gguf *file;
    ggl_error err = {0};
    REQUIRE_OK(ggl_gguf_writer_write_memory(w, &data, &size, &err), &err);
    ggl_gguf_writer_free(w);
    REQUIRE_OK(ggl_gguf_open_memory(&file, data, size, "memory", &err), &err);
    CHECK(alloc_fail_each(new_tokenize_detokenize, file) > least);
    ggl_gguf_close(file);
    ggl_free(data);
}

#endif
