/* What GGUF files may name as their tokenizer and pre-tokenizer: tokenizers.txt, which is compiled
 * in. */
#ifndef LLM_TOKENIZER_TABLE_H
#define LLM_TOKENIZER_TABLE_H

#include "ggl/gguf.h"

enum { TABLE_MAX_SPLITS = 8 };

typedef struct table_model {
    ggl_str kind;                /* models/tokenizer_KIND.c */
    bool add_bos, add_eos;       /* where the file's keys are silent */
    bool always_bos, always_eos; /* whatever they say */
    ggl_str pre;                 /* the pre-tokenizer, whatever the file says; n = 0: as it says */
    bool dna;                    /* letters between <dna> and </dna> are tokens of six */
    bool cls_sep; /* text begins with cls_token_id and ends with seperator_token_id */
    /* Where the file is silent: these ids, if their tokens have the fitting type. -1: none. */
    int32_t bos, eos, unknown;
} table_model;

typedef struct table_pre {
    bool ignore_merges, add_bos;
    bool always_bos;                 /* whatever the file says */
    bool raw;                        /* pieces are spelled as text is, not byte by byte */
    bool spaced;                     /* spaces are U+2581 */
    bool newlines;                   /* a run of newlines that is a token is that token */
    bool drop_white;                 /* white space only divides words */
    ggl_str split[TABLE_MAX_SPLITS]; /* regular expressions, in this order */
    int n_split;
} table_pre;

/* A row by its name. GGL_UNSUPPORTED: there is none; the message says which there are. GGL_FORMAT:
 * tokenizers.txt is wrong (a test reads all of it). */
GGL_NODISCARD ggl_status llm_table_find_model(ggl_str name, table_model *out, ggl_error *err);
GGL_NODISCARD ggl_status llm_table_find_pre(ggl_str name, table_pre *out, ggl_error *err);
/* The k-th name of a model or a pre-tokenizer ("model", "pre"), or spelling of an end of generation
 * ("end"; "unless": pairs). */
bool llm_table_name(const char *what, int k, ggl_str *out);
/* The i-th word after `what` on the k-th line that begins with it; false: there is none. */
bool llm_table_word(const char *what, int k, int i, ggl_str *out);

#endif
