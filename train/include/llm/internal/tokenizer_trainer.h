/* Trains tokenizers: counts the words of texts, learns pieces from them, and writes the keys of a GGUF file or a
 * tokenizer.json.
 *
 *     llm_vocabulary_params p = {.size = sizeof p, .kind = LLM_VOCABULARY_BPE, .n_vocab = 8192};
 *     llm_tokenizer_trainer *t;
 *     if (llm_tokenizer_trainer_new(&t, &p, &err) == GGL_OK &&
 *         llm_tokenizer_trainer_add(t, texts, n_texts, &err) == GGL_OK &&     // any number of times
 *         llm_tokenizer_trainer_train(t, &err) == GGL_OK &&
 *         llm_tokenizer_trainer_write(t, "tokenizer.json", &err) == GGL_OK) ..
 *     llm_tokenizer_trainer_free(t);
 *
 * The same texts in the same order give the same bytes, for any number of threads. docs/tokenizers.md says what is learned.
 *
 * Threads: a trainer belongs to one thread at a time; it starts threads of its own. */
#ifndef LLM_TOKENIZER_TRAINER_H
#define LLM_TOKENIZER_TRAINER_H

#include "ggl/internal/gguf.h"
#include "llm/internal/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kinds of docs/tokenizers.md that can be trained. */
typedef enum llm_vocabulary_kind {
    LLM_VOCABULARY_BPE, /* byte-level byte-pair encoding, within the words of a pre-tokenizer */
    LLM_VOCABULARY_SPM, /* byte-pair encoding over characters, as SentencePiece's; others become bytes */
    LLM_VOCABULARY_UNIGRAM /* SentencePiece's unigram: pieces with probabilities */
} llm_vocabulary_kind;

typedef struct llm_vocabulary_params {
    size_t size; /* sizeof(llm_vocabulary_params): ggl/internal/params.h */
    llm_vocabulary_kind kind;
    int32_t n_vocab; /* tokens in all */
    /* What cuts texts into words, beyond which no piece goes: a name of tokenizer.ggml.pre. NULL: the kind's own, which
     * docs/tokenizers.md tells. Of BPE, one for bytes; it becomes part of the tokenizer. */
    const char *pre;
    /* Special tokens by their roles. NULL: the kind's own; "": none. */
    const char *unknown, *bos, *eos, *pad;
    const char *const *special; /* [n_special] more of them */
    size_t n_special;
    bool add_bos, add_eos; /* texts begin or end with these tokens */
    int64_t min_count;     /* of a pair, or of a seed of unigram; 0: 2 */
    int32_t max_length;    /* of a piece: bytes of BPE (0: 256), characters of the others (0: 16) */
    /* The share of the texts' characters that have tokens of their own; 0: 0.9995. Not of BPE. */
    double coverage;
    bool
        no_byte_fallback; /* of UNIGRAM: characters without a token become the unknown one, not their bytes */
    bool no_space_prefix; /* no space is put before a text; not of BPE */
    int32_t n_seed;       /* pieces with which UNIGRAM begins; 0: a million */
    int n_threads;        /* 0: one */
    /* Called in the caller's thread: what is being done, and how much of it. False ends it with GGL_CANCELLED. May be
     * NULL. */
    bool (*progress)(void *ctx, const char *what, size_t done, size_t total);
    void *ctx;
} llm_vocabulary_params;

/* What has been trained, and of what. */
typedef struct llm_vocabulary_result {
    int32_t n_vocab;   /* tokens; fewer than wanted if the texts have no more pieces */
    int32_t n_special; /* of these: special tokens, */
    int32_t n_base;    /* bytes and characters */
    size_t n_merges;   /* of BPE and SPM */
    uint64_t n_texts, n_bytes, n_words; /* of the texts; the words that differ */
    uint64_t n_tokens; /* that the words of the texts become, without special tokens */
} llm_vocabulary_result;

typedef struct llm_tokenizer_trainer llm_tokenizer_trainer;

/* *out is NULL on failure. GGL_USAGE: a parameter is wrong, and err says which; GGL_UNSUPPORTED: no such pre-tokenizer;
 * GGL_NOMEM. Strings of params are copied. */
GGL_NODISCARD ggl_status llm_tokenizer_trainer_new(llm_tokenizer_trainer **out,
                                                   const llm_vocabulary_params *params,
                                                   ggl_error *err);
void llm_tokenizer_trainer_free(llm_tokenizer_trainer *t);

/* Counts the words of n texts, which may hold any bytes. Spellings of special tokens divide texts, and are not counted.
 * GGL_LIMIT: more than 2^31 words that differ; GGL_CANCELLED, GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_tokenizer_trainer_add(llm_tokenizer_trainer *t, const ggl_str *text,
                                                   size_t n, ggl_error *err);
/* Learns the vocabulary, once. GGL_USAGE: there was no text, or n_vocab has no room for special tokens, bytes and
 * characters; GGL_LIMIT: the words are too long together (2^32 characters); GGL_CANCELLED, GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_tokenizer_trainer_train(llm_tokenizer_trainer *t, ggl_error *err);

/* The following need a trained vocabulary. */
llm_vocabulary_result llm_tokenizer_trainer_result(const llm_tokenizer_trainer *t);
/* Puts the tokenizer.* keys. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_tokenizer_trainer_put(const llm_tokenizer_trainer *t,
                                                   ggl_gguf_writer *w, ggl_error *err);
/* Make the text of a tokenizer.json, and of a tokenizer_config.json, which names the special tokens and is optional. The
 * caller frees *text with ggl_free. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_tokenizer_trainer_json(const llm_tokenizer_trainer *t, char **text,
                                                    size_t *n, ggl_error *err);
GGL_NODISCARD ggl_status llm_tokenizer_trainer_config(const llm_tokenizer_trainer *t, char **text,
                                                      size_t *n, ggl_error *err);
/* Writes a file that is there only when it is complete: GGUF with the keys alone if `path` ends with ".gguf"; else a
 * tokenizer.json; if `path` is a folder, a tokenizer.json and a tokenizer_config.json in it. GGL_IO, GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_tokenizer_trainer_write(const llm_tokenizer_trainer *t,
                                                     const char *path, ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
