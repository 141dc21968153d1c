/* Tokenizers declared by the tokenizer.* keys of GGUF files: text to ids and back.
 *
 *     llm_tokenizer *t;
 *     if (llm_tokenizer_new(&t, gguf, &err) != GGL_OK) ...
 *     llm_tokens ids = {0};
 *     llm_tokenize(t, text, n, LLM_TOKENIZE_SPECIAL | LLM_TOKENIZE_BOS, &ids, &err);
 *
 * Threads: a tokenizer does not change, so any number may use it at the same time; a list of ids
 * belongs to one at a time. */
#ifndef LLM_TOKENIZER_H
#define LLM_TOKENIZER_H

#include "ggl/alloc.h"
#include "ggl/gguf.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_tokenizer llm_tokenizer;

/* A growing list of ids. Zero it before the first use; free it with llm_tokens_fini. */
typedef struct llm_tokens {
    int32_t *id;
    size_t n, cap;
    size_t lost; /* bytes of the texts that are left out: a byte-level BPE has no token for them */
} llm_tokens;
GGL_INTERNAL_API void llm_tokens_fini(llm_tokens *t);

enum {
    /* Add bos and eos as the file's add_bos_token and add_eos_token keys say. */
    LLM_TOKENIZE_BOS = 1,
    /* text that spells a control token, such as "</s>", becomes that token */
    LLM_TOKENIZE_SPECIAL = 2,
    /* The text goes on after what *out has: unless that ends with a special token, it gets no space in front
     * (add_space_prefix), so that the two together come back as they were. */
    LLM_TOKENIZE_GOES_ON = 4
};

/* Reads the tokenizer.* keys; does not need `file` afterwards. Fails with GGL_UNSUPPORTED
 * (unknown model or pre-tokenizer; the message names it), GGL_NOT_FOUND (no tokenizer),
 * GGL_FORMAT (its arrays do not fit together) or GGL_NOMEM. *out is NULL on failure. */
GGL_NODISCARD ggl_status llm_tokenizer_new(llm_tokenizer **out, const ggl_gguf *file,
                                           ggl_error *err);
/* Makes one with the tables of t, which outlives it, and with marks and a memory of its own. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_tokenizer_beside(llm_tokenizer **out, const llm_tokenizer *t,
                                              ggl_error *err);
void llm_tokenizer_free(llm_tokenizer *t);

/* Appends one token. GGL_NOMEM. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status llm_tokens_append(llm_tokens *out, int32_t id,
                                                            ggl_error *err);

/* Marks in a text stand for other tokens, such as the rows of a picture, where special tokens are read (LLM_TOKENIZE_SPECIAL). The text
 * between two marks is tokenized alone. */
typedef struct llm_marks {
    /* Finds the first mark in text[*at .. n), and sets *at and *size to where it is; false: there is none. */
    bool (*find)(void *ctx, const char *text, size_t n, size_t *at, size_t *size);
    /* Appends what the mark stands for. */
    ggl_status (*append)(void *ctx, const llm_tokenizer *t, const char *mark, llm_tokens *out,
                         ggl_error *err);
    void *ctx;
    int64_t most;     /* of a text: with more, the result is GGL_LIMIT; 0: any number */
    const char *what; /* with `most`: what a mark stands for, "picture" */
} llm_marks;
/* Call before the tokenizer is used; marks is borrowed. NULL: none. */
void llm_tokenizer_set_marks(llm_tokenizer *t, const llm_marks *marks);

/* Has the tokenizer remember what texts became, in at most `most` bytes: for programs whose prompts mostly begin as those before. Call
 * before it is used. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_tokenizer_remember(llm_tokenizer *t, size_t most, ggl_error *err);
/* Returns the bytes that it has remembered. Any thread. */
size_t llm_tokenizer_remembered(const llm_tokenizer *t);

/* Stretches of a text: sorted, and apart from each other. Zero it before the first use; free it with llm_spans_fini. */
typedef struct llm_span {
    size_t from, to; /* bytes; to: behind the last one */
} llm_span;
typedef struct llm_spans {
    llm_span *at;
    size_t n, cap;
} llm_spans;
static inline void llm_spans_fini(llm_spans *s) {
    ggl_free(s->at);
    s->at = NULL;
    s->n = s->cap = 0;
}

/* Appends the ids of text[0..n) to *out, in nearly linear time. The text need not be valid
 * UTF-8: depending on the kind, stray bytes become byte tokens, U+FFFD or nothing. given: stretches that have no control tokens: neither is one that
 * has a byte of a stretch. They are what users and tools wrote in a prompt; without a control token there, the ids are the same without them. NULL: there
 * are none. Thread-safe: does not change the tokenizer. Fails with GGL_NOMEM or GGL_LIMIT (more than 2^30 - 1 bytes). */
GGL_INTERNAL_API GGL_NODISCARD ggl_status llm_tokenize_given(const llm_tokenizer *t,
                                                             const llm_spans *given,
                                                             const char *text, size_t n,
                                                             unsigned flags, llm_tokens *out,
                                                             ggl_error *err);
static inline GGL_NODISCARD ggl_status llm_tokenize(const llm_tokenizer *t, const char *text,
                                                    size_t n, unsigned flags, llm_tokens *out,
                                                    ggl_error *why) {
    return llm_tokenize_given(t, NULL, text, n, flags, out, why);
}
/* The same with other marks than those of llm_tokenizer_set_marks. NULL: none. */
GGL_NODISCARD ggl_status llm_tokenize_marked(const llm_tokenizer *t, const llm_marks *marks,
                                             const llm_spans *given, const char *text, size_t n,
                                             unsigned flags, llm_tokens *out, ggl_error *err);

/* Appends the ids of a query and a document, as a reranker reads them, and to *type (NULL: not wanted), which goes with *out, their types
 * (llm_batch.type). If the file has the key tokenizer.chat_template.rerank: those of this text, in which {query} and {document} stand for
 * the two. If it has tokenizer.ggl.pair: as that and tokenizer.ggl.pair_types say. Else one after the
 * other, each as the tokenizer begins and ends texts, but the second without the token that begins a text. Where the end is
 * no separator ([CLS] a [SEP] b [SEP], by wordpieces or that name), two ends are between them (<s> a </s></s> b </s>), and all types
 * are 0; else those of the second text and its end are 1. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status llm_tokenize_pair(const llm_tokenizer *t, ggl_str query,
                                                            ggl_str document, llm_tokens *out,
                                                            llm_tokens *type, ggl_error *err);

/* Returns the largest type in tokenizer.ggl.pair_types; 0: the file has none. */
int32_t llm_tokenizer_most_pair_type(const llm_tokenizer *t);

/* Cuts a pair that llm_tokenize_pair has made of this query to at most n_max tokens, at the end of its document: what
 * follows the document stays. type: of llm_tokenize_pair, cut likewise; or NULL. GGL_LIMIT: the query leaves no room for a document. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status llm_cut_pair(const llm_tokenizer *t, ggl_str query,
                                                       llm_tokens *pair, llm_tokens *type,
                                                       size_t n_max, ggl_error *err);

/* Returns the kind, as docs/tokenizers.md calls it: "spm", "bpe", "wordpiece", "unigram", "rwkv"
 * or "plamo2". */
const char *llm_tokenizer_kind_name(const llm_tokenizer *t);
/* Number of ids. */
GGL_INTERNAL_API int32_t llm_tokenizer_n_vocab(const llm_tokenizer *t);
/* Return the token's id, or -1 if the file does not name one. */
GGL_INTERNAL_API int32_t llm_tokenizer_bos(const llm_tokenizer *t);
GGL_INTERNAL_API int32_t llm_tokenizer_eos(const llm_tokenizer *t);
/* True if generation ends with this token (eos and similar ones). */
GGL_INTERNAL_API bool llm_tokenizer_is_eog(const llm_tokenizer *t, int32_t id);
GGL_INTERNAL_API bool llm_tokenizer_is_control(const llm_tokenizer *t, int32_t id);

/* Returns the piece as spelled in the file (with spaces as U+2581 if the model uses that); "" if
 * the id is out of range. */
GGL_INTERNAL_API ggl_str llm_token_piece(const llm_tokenizer *t, int32_t id);
/* Returns the bytes that the token stands for in text: one byte for a byte token, none for a
 * control token unless `special`. Valid until the tokenizer is freed. */
ggl_str llm_token_text(const llm_tokenizer *t, int32_t id, bool special);
/* The same for the next token of a text: without the space that the tokenizer puts before a text, if the token is the
 * first that stands for text. *has_begun: false before the text; set once such a token has come. */
ggl_str llm_token_next_text(const llm_tokenizer *t, int32_t id, bool special, bool *has_begun);

/* Converts n ids to text, and removes the space that the tokenizer puts before a text, provided
 * that the first id begins the text. *text is NUL-terminated besides having a length; the caller
 * frees it with ggl_free. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status llm_detokenize(const llm_tokenizer *t, const int32_t *id,
                                                         size_t n, bool special, char **text,
                                                         size_t *size, ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
