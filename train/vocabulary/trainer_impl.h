/* Between the files that train tokenizers. */
#ifndef LLM_TRAINER_IMPL_H
#define LLM_TRAINER_IMPL_H

#include "ggl/internal/index.h"
#include "llm/internal/tokenizer_trainer.h"
#include "text/pretok.h"
#include "text/special_tokens.h"
#include "text/tokenizer_table.h"

/* tokenizer.ggml.token_type */
enum { TRAINED_NORMAL = 1, TRAINED_UNKNOWN = 2, TRAINED_CONTROL = 3, TRAINED_BYTE = 6 };

/* Roles of special tokens. */
enum { TRAIN_UNKNOWN, TRAIN_BOS, TRAIN_EOS, TRAIN_PAD, TRAIN_N_ROLES };

/* A word that the texts have `count` times. The key is the first member. */
typedef struct train_word {
    ggl_str s;
    int64_t count;
} train_word;

typedef struct train_words {
    ggl_arena arena; /* their bytes */
    train_word *w;   /* [n], in the order in which the texts have them first */
    size_t n, cap;
    ggl_index by_text;
} train_words;

/* A token as files have it. The key is the first member. */
typedef struct train_token {
    ggl_str s;
    float score;  /* of SPM and UNIGRAM */
    int32_t type; /* TRAINED_* */
    uint32_t
        n; /* its bytes (BPE) or characters; 0: a special token, or one of the bytes of SPM and UNIGRAM */
} train_token;

/* The pair of tokens that becomes a token. */
typedef struct train_merge {
    int32_t left, right, id;
} train_merge;

struct llm_tokenizer_trainer {
    ggl_arena arena;
    llm_vocabulary_params p; /* its strings are in the arena, its defaults resolved */
    ggl_str pre_name;        /* of BPE: tokenizer.ggml.pre */
    table_pre pre;
    const pretok_program *split[TABLE_MAX_SPLITS];
    int n_split;
    ggl_str *special; /* [n_special], in the order of their ids */
    size_t n_special;
    int32_t role[TRAIN_N_ROLES]; /* ids; -1: none */
    special_tokens in_text;
    train_words words;
    uint64_t n_texts, n_bytes, n_tokens;
    bool is_trained;

    train_token *token; /* [n] */
    size_t n, cap;
    ggl_index by_text;
    int32_t n_base;     /* bytes and characters */
    int32_t first_byte; /* the id of byte 0, of those that have a token each; -1: none */
    train_merge *merge;
    size_t n_merge, cap_merge;
};

/* The words as numbers of symbols: of bytes, or of the characters that get tokens, in the order of their code points. */
typedef struct train_text {
    uint32_t *code; /* [n_symbols]: bytes or code points; that of the space stands for U+2581 */
    int64_t *count; /* [n_symbols]: how often the texts have each */
    int32_t *token; /* [n_symbols]: its token, which llm_vocabulary_add_base sets */
    size_t n_symbols;
    /* Words one after the other, as numbers from 1 on, of code[number - 1]; a 0 ends each. Words are cut at characters
     * without a token. */
    uint32_t *at; /* [n_at] */
    size_t n_at, cap_at;
    int64_t *weight; /* [n_words]: how often the texts have each */
    size_t n_words, cap_weight;
    uint64_t n_rest; /* tokens of the bytes of other characters, or unknown ones */
} train_text;

/* ends.c */
ggl_status llm_vocabulary_no_memory(ggl_error *err);
/* Reports progress; returns false to end. */
bool llm_vocabulary_go_on(const llm_tokenizer_trainer *t, const char *what, size_t done,
                          size_t total);
ggl_status llm_vocabulary_cancelled(ggl_error *err);

/* words.c */
GGL_NODISCARD ggl_status llm_vocabulary_words_init(train_words *x, ggl_error *err);
void llm_vocabulary_words_fini(train_words *x);

/* symbols.c: turns the words into symbols. GGL_LIMIT: there are 2^32 or more. On failure x can be freed. */
GGL_NODISCARD ggl_status llm_vocabulary_read_symbols(const llm_tokenizer_trainer *t, train_text *x,
                                                     ggl_error *err);
void llm_vocabulary_text_fini(train_text *x);

/* tokens.c: adds a token, whose text is copied, and returns its id; -1: out of memory. */
int32_t llm_vocabulary_add_token(llm_tokenizer_trainer *t, train_token token);
/* Returns the token with this spelling; -1: none. */
int32_t llm_vocabulary_find_token(const llm_tokenizer_trainer *t, ggl_str s);
/* Adds special tokens, bytes and characters. GGL_USAGE: they are more than n_vocab, or a special token is spelled like one
 * of the others; GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_vocabulary_add_base(llm_tokenizer_trainer *t, train_text *x,
                                                 ggl_error *err);
/* Writes a character as pieces spell it, where U+2581 stands for a space; returns its bytes. */
size_t llm_vocabulary_spell(uint32_t code, char out[4]);

/* merges.c: adds the tokens of merges until there are n_vocab. */
GGL_NODISCARD ggl_status llm_vocabulary_merges(llm_tokenizer_trainer *t, const train_text *x,
                                               ggl_error *err);

/* unigram.c */
GGL_NODISCARD ggl_status llm_vocabulary_unigram(llm_tokenizer_trainer *t, const train_text *x,
                                                ggl_error *err);

#endif
