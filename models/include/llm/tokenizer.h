/* Tokenizers as GGUF files declare them in their tokenizer.* keys: text to ids and back.
 *
 *     llm_tokenizer *t;
 *     if (llm_tokenizer_new(&t, gguf, &err) != GGL_OK) ...
 *     llm_tokens ids = {0};
 *     llm_tokenize(t, text, n, LLM_TOKENIZE_SPECIAL | LLM_TOKENIZE_BOS, &ids, &err);
 */
#ifndef LLM_TOKENIZER_H
#define LLM_TOKENIZER_H

#include "ggl/gguf.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_tokenizer llm_tokenizer;

/* A growing list of ids; zero it before the first use, llm_tokens_fini frees it. */
typedef struct llm_tokens {
    int32_t *id;
    size_t n, cap;
} llm_tokens;
GGL_API void llm_tokens_fini(llm_tokens *t);

enum {
    LLM_TOKENIZE_BOS = 1, /* begin (and end) as the file's add_bos_token / add_eos_token keys say */
    LLM_TOKENIZE_SPECIAL =
        2 /* text such as "</s>" that spells a control token becomes that token */
};

/* Reads the tokenizer.* keys; borrows nothing from `file` after it returns.
 * GGL_UNSUPPORTED: its model or pre-tokenizer is one that is not known, the message names it;
 * GGL_NOT_FOUND: the file has none; GGL_FORMAT: its arrays do not fit together. Then *out is NULL.
 */
GGL_API GGL_NODISCARD ggl_status llm_tokenizer_new(llm_tokenizer **out, const ggl_gguf *file,
                                                   ggl_error *err);
GGL_API void llm_tokenizer_free(llm_tokenizer *t);

/* Appends the ids of text[0..n) to *out. Text need not be valid UTF-8: stray bytes become byte
 * tokens, U+FFFD or nothing, as the kind has it. Near-linear time in n. GGL_NOMEM; GGL_LIMIT: more
 * than 2^30 - 1 bytes. Reentrant: the
 * tokenizer is not changed. */
GGL_API GGL_NODISCARD ggl_status llm_tokenize(const llm_tokenizer *t, const char *text, size_t n,
                                              unsigned flags, llm_tokens *out, ggl_error *err);

/* Which kind of tokenizer it is, as docs/tokenizers.md calls them: "spm", "bpe", "wordpiece",
 * "unigram", "rwkv", "plamo2". */
GGL_API const char *llm_tokenizer_kind_name(const llm_tokenizer *t);
/* Number of ids. */
GGL_API int32_t llm_tokenizer_n_vocab(const llm_tokenizer *t);
/* -1: the file names none. */
GGL_API int32_t llm_tokenizer_bos(const llm_tokenizer *t);
GGL_API int32_t llm_tokenizer_eos(const llm_tokenizer *t);
/* Whether generation ends with this token (eos and the like). */
GGL_API bool llm_tokenizer_is_eog(const llm_tokenizer *t, int32_t id);
GGL_API bool llm_tokenizer_is_control(const llm_tokenizer *t, int32_t id);

/* The piece as the file spells it (spaces as U+2581 where the model does so); "" for an id out of
 * range. */
GGL_API ggl_str llm_token_piece(const llm_tokenizer *t, int32_t id);
/* The bytes the token stands for in running text (a byte token gives one byte, a control token none
 * unless `special`). Valid until the tokenizer is freed. */
GGL_API ggl_str llm_token_text(const llm_tokenizer *t, int32_t id, bool special);

/* Text of n ids, as a whole: the space that the tokenizer put before the text is taken off again
 * (only if the first id begins the text). *text is the caller's (ggl_free), NUL-terminated beside
 * its length. */
GGL_API GGL_NODISCARD ggl_status llm_detokenize(const llm_tokenizer *t, const int32_t *id, size_t n,
                                                bool special, char **text, size_t *size,
                                                ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
