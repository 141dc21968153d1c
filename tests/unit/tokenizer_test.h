/* Tests of tokenizers on vocabularies of their own. One file of a program includes this. */
#ifndef TESTS_TOKENIZER_TEST_H
#define TESTS_TOKENIZER_TEST_H

#include "alloc_fail.h"
#include "steps.h"
#include "tokenizer_file.h"

/* Types of tokens in GGUF files. */
enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER = 4, UNUSED = 5, BYTE = 6, MAX_PIECES = 1024 };

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

/* Opening what `w` writes fails with this status and these words; frees w. */
TEST_UNUSED static void refuse(ggl_gguf_writer *w, ggl_status status, const char *words) {
    llm_tokenizer *t = NULL;
    ggl_error err = {0};
    CHECK_INT(from_writer(&t, w, &err), status);
    CHECK_HAS(err.msg, words);
    CHECK(!t);
    llm_tokenizer_free(t);
}

#endif
