/* The table of tokenizers and pre-tokenizers that GGUF files may name: tokenizers.txt, which is
 * compiled in. */
#ifndef LLM_TOKENIZER_TABLE_H
#define LLM_TOKENIZER_TABLE_H

#include "ggl/gguf.h"

enum { TABLE_MAX_SPLITS = 8 };

typedef struct table_model {
    ggl_str kind;                /* tokenizer_KIND.c */
    bool add_bos, add_eos;       /* unless the file's keys say otherwise */
    bool always_bos, always_eos; /* regardless of the file's keys */
    ggl_str pre;                 /* replaces the file's pre-tokenizer; n = 0: use the file's */
    bool dna;                    /* groups of six letters between <dna> and </dna> are tokens */
    /* The text begins with cls_token_id and ends with seperator_token_id. */
    bool cls_sep;
    /* Defaults for absent keys, if these tokens have the expected type. -1: none. */
    int32_t bos, eos, unknown;
} table_model;

typedef struct table_pre {
    bool ignore_merges, add_bos;
    bool always_bos;                 /* regardless of the file */
    bool raw;                        /* pieces are spelled like text, not byte by byte */
    bool spaced;                     /* spaces are U+2581 */
    bool newlines;                   /* a run of newlines that is a token becomes that token */
    bool drop_white;                 /* white space only separates words */
    ggl_str split[TABLE_MAX_SPLITS]; /* regular expressions, in the order in which they apply */
    int n_split;
} table_pre;

/* Finds a row by name. Fails with GGL_UNSUPPORTED (no such row; the message lists those known)
 * or GGL_FORMAT (an error in tokenizers.txt itself, which a test would find). */
GGL_NODISCARD ggl_status llm_table_find_model(ggl_str name, table_model *out, ggl_error *err);
GGL_NODISCARD ggl_status llm_table_find_pre(ggl_str name, table_pre *out, ggl_error *err);
/* Returns the expression of a pattern line. False: there is no such pattern. */
bool llm_table_find_pattern(ggl_str name, ggl_str *out);
/* Returns the first name of a model whose kind is this one; n 0: there is none. */
ggl_str llm_table_model_of_kind(const char *kind);
/* Returns the k-th name of a model ("model") or pre-tokenizer ("pre"), or the k-th word of the
 * "end" or "unless" lines. False: past the end. */
bool llm_table_name(const char *what, int k, ggl_str *out);
/* Returns the i-th word after `what` on the k-th line that begins with it. False: none. */
bool llm_table_word(const char *what, int k, int i, ggl_str *out);

#endif
