/* Inside of a tokenizer: what tokenizer.c (vocabulary, special tokens, begin and end) shares with
 * the kinds (tokenizer_<kind>.c: how running text is cut into pieces). A new kind is a file, an
 * entry of KINDS in tokenizer.c and a model line of tokenizers.txt. */
#ifndef LLM_TOKENIZER_IMPL_H
#define LLM_TOKENIZER_IMPL_H

#include "ggl/alloc.h"
#include "ggl/index.h"
#include "llm/tokenizer.h"
#include "special_tokens.h"
#include "tokenizer_table.h"

/* tokenizer.ggml.token_type */
enum {
    TOKEN_UNDEFINED = 0,
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN = 2,
    TOKEN_CONTROL = 3,
    TOKEN_USER_DEFINED = 4,
    TOKEN_UNUSED = 5,
    TOKEN_BYTE = 6
};

enum { STRIP_LEFT = 1, STRIP_RIGHT = 2 }; /* white space there belongs to the token */

typedef struct llm_tokenizer_kind {
    const char *name; /* as tokenizers.txt calls it */
    /* Reads the kind's own keys, sets t->state. Vocabulary and special ids are read already;
     * t->add_bos is what the file's key, if it has one, will override. */
    ggl_status (*init)(llm_tokenizer *t, const ggl_gguf *file, ggl_error *err);
    /* Running text of one token that is neither control nor user-defined. Bytes that are not the
     * piece's own go into t->arena. s == NULL: out of memory. */
    ggl_str (*text)(llm_tokenizer *t, int32_t id);
    /* Appends the ids of a stretch between special tokens; n > 0. */
    ggl_status (*encode)(const llm_tokenizer *t, const char *text, size_t n, llm_tokens *out,
                         ggl_error *err);
    /* Whether encode puts a space before a stretch. */
    bool (*adds_space)(const llm_tokenizer *t);
    void (*free)(llm_tokenizer *t); /* t->state; may be NULL inside */
} llm_tokenizer_kind;

extern const llm_tokenizer_kind llm_tokenizer_spm, llm_tokenizer_bpe, llm_tokenizer_rwkv,
    llm_tokenizer_unigram, llm_tokenizer_plamo2, llm_tokenizer_wordpiece;

struct llm_tokenizer {
    const llm_tokenizer_kind *kind;
    void *state; /* the kind's */
    ggl_arena arena;
    int32_t n_vocab;
    ggl_str *piece;            /* [n_vocab], as the file spells them */
    ggl_str *text;             /* [n_vocab], running text */
    uint8_t *type;             /* [n_vocab], TOKEN_* */
    bool *eog;                 /* [n_vocab] */
    uint8_t *strip;            /* [n_vocab], STRIP_* */
    bool has_types;            /* the file has token_type; without it all are TOKEN_NORMAL */
    int32_t bos, eos, unknown; /* -1: none */
    bool add_bos, add_eos;
    table_model model;      /* what tokenizers.txt says of the model's name */
    special_tokens special; /* control, user-defined and unknown tokens */
};

/* An empty index of ids by their spelling in strings[id]; of equal ones the first that is put
 * counts. */
GGL_NODISCARD ggl_status llm_spellings_init(ggl_index *x, size_t n, ggl_error *err);
/* -1: none. */
int32_t llm_spellings_find(const ggl_index *x, const ggl_str *strings, const char *s, size_t n);

/* A true or false of the file, which may be 0 or 1 of some number type; unchanged if there is none. */
GGL_NODISCARD ggl_status llm_tokenizer_flag(const ggl_gguf *file, const char *key, bool *out,
                                            ggl_error *err);
ggl_status llm_tokens_append(llm_tokens *out, int32_t id, ggl_error *err);
/* Length of the valid UTF-8 character at s[0..n), n > 0; 1 for a byte that begins none. */
size_t llm_utf8_length(const char *s, size_t n);

/* ---- tokenizer_pieces.c: what several kinds share ---- */

extern const char llm_space[3]; /* U+2581, which stands for a space in pieces */

/* The byte of two hexadecimal digits; -1: these are none. */
int llm_hex_byte(const char *s);

/* tokenizer.ggml.scores as [n_vocab], in the arena; none of them is NaN. */
GGL_NODISCARD ggl_status llm_read_scores(llm_tokenizer *t, const ggl_gguf *file, float **out,
                                         ggl_error *err);
/* The token "<0xNN>" of each byte, -1: none. A file without types gets those of these tokens. */
GGL_NODISCARD ggl_status llm_read_byte_tokens(llm_tokenizer *t, int32_t byte[256], ggl_error *err);
/* GGL_FORMAT: a byte has no token, and there is no unknown token, either. Where the unknown token is
 * needed, it is not a control token, whatever the file says: text may become it. */
GGL_NODISCARD ggl_status llm_need_bytes(llm_tokenizer *t, const int32_t byte[256], ggl_error *err);
/* All three, for kinds that add scores up: none of these is infinite either. */
GGL_NODISCARD ggl_status llm_read_scored_pieces(llm_tokenizer *t, const ggl_gguf *file,
                                                float **score, int32_t byte[256], ggl_error *err);
/* Whether all of these bytes have tokens. */
bool llm_all_bytes(const int32_t byte[256], const char *s, size_t n);
/* The bytes' tokens, or, where one is missing, the unknown token. */
GGL_NODISCARD ggl_status llm_append_bytes(const llm_tokenizer *t, const int32_t byte[256],
                                          const char *s, size_t n, llm_tokens *out, ggl_error *err);
/* Whether running text may become this token: no control, unknown or byte token, and not empty. */
bool llm_may_be_spelled(const llm_tokenizer *t, int32_t id);
/* A kind's `text`: the piece with U+2581 as spaces; a byte token's byte. */
ggl_str llm_spaced_text(llm_tokenizer *t, int32_t id);

#endif
