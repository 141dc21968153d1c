/* Internals of tokenizers, shared by tokenizer.c (vocabulary, special tokens, begin and end) and
 * the kinds (tokenizer_KIND.c, which split text into pieces). A new kind needs a file, an entry
 * of KINDS in tokenizer.c and a model line in tokenizers.txt. */
#ifndef LLM_TOKENIZER_IMPL_H
#define LLM_TOKENIZER_IMPL_H

#include "ggl/internal/alloc.h"
#include "ggl/internal/index.h"
#include "llm/internal/tokenizer.h"
#include "special_tokens.h"
#include "tokenizer_table.h"
#include "word_memory.h"

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

enum { STRIP_LEFT = 1, STRIP_RIGHT = 2 }; /* white space on that side belongs to the token */

/* A pair of symbols and the symbol it becomes. left and right are the key. Symbols from n_vocab on are no tokens. */
typedef struct llm_merge {
    int32_t left, right, rank, id;
} llm_merge;

/* What text becomes tokens by, for who writes it elsewhere; owned by the tokenizer. */
struct pretok_program;
struct charsmap;
typedef struct llm_tokenizer_tables {
    const char *encode; /* the rules: a function small_encode_ENCODE of small/ */
    /* Writes the bytes by which a text becomes token id, at most as many as its piece has; false: it does not become this one. With
     * has_starts, begins asks for pieces that begin words, or else for those that continue them. NULL: nothing is looked up. Of equal keys the
     * first counts. */
    bool (*key)(const llm_tokenizer *t, int32_t id, bool begins, char *out, size_t *n);
    bool has_starts;
    bool spaced;                                         /* spaces of a text are U+2581 in keys */
    double (*score)(const llm_tokenizer *t, int32_t id); /* a float; NULL: there are none */
    double unknown_score;
    const int32_t *byte; /* [256]: symbols; -1: none. NULL: bytes have none */
    bool add_space, merge_spaces;
    bool strip, lower;          /* folding (fold.h) */
    const struct charsmap *map; /* NULL: none */
    const llm_merge *merge;
    size_t n_merges;
    const struct pretok_program *const *split;
    int n_split;
    bool raw, whole, newlines, drop_white; /* table_pre.raw, .ignore_merges and so on */
    const struct dna *dna;                 /* tokenizer_dna.h; NULL: none */
} llm_tokenizer_tables;

/* How a text between special tokens is encoded. */
typedef struct llm_stretch {
    bool goes_on;       /* no space is put before it */
    word_memory *words; /* of the whole text */
} llm_stretch;

/* A text between marks of pictures, for kinds that find special tokens themselves. */
typedef struct llm_parts {
    const char *text;
    size_t n, offset; /* offset: of its first byte in the whole text */
    const llm_spans
        *given;   /* stretches of the whole text that have no special tokens; NULL: none */
    bool special; /* it may have special tokens */
    bool goes_on; /* no space is put before it */
    bool at_zero; /* it begins the whole text, which does not go on */
    llm_tokens *out;
    ggl_error *err;
} llm_parts;

typedef struct llm_tokenizer_kind {
    const char *name; /* its name in tokenizers.txt */
    /* Reads the kind's own keys and sets t->state. Vocabulary and special ids have been read.
     * t->add_bos may be changed; the file's key, if any, overrides it. */
    ggl_status (*init)(llm_tokenizer *t, const ggl_gguf *file, ggl_error *err);
    /* Returns the text of a token that is neither control nor user-defined. Text that differs
     * from the piece is allocated in t->arena. s NULL: out of memory. */
    ggl_str (*text)(llm_tokenizer *t, int32_t id);
    /* Appends the ids of text between special tokens; n > 0. */
    ggl_status (*encode)(const llm_tokenizer *t, const char *text, size_t n, const llm_stretch *how,
                         llm_tokens *out, ggl_error *err);
    /* Instead of encode: appends the ids of a text with its special tokens. */
    ggl_status (*parts)(const llm_tokenizer *t, const llm_parts *p);
    /* Writes the text of ids, which the caller frees with ggl_free; NULL: that of each, one after the other. */
    ggl_status (*decode)(const llm_tokenizer *t, const int32_t *id, size_t n, bool special,
                         char **text, size_t *size, ggl_error *err);
    /* True if encode puts a space before text that does not go on; NULL: never. */
    bool (*adds_space)(const llm_tokenizer *t);
    void (*free)(llm_tokenizer *t); /* frees t->state, which may be NULL */
    /* Sets *out and returns NULL; or returns why these tables are not all that text becomes tokens by. */
    const char *(*tables)(const llm_tokenizer *t, llm_tokenizer_tables *out);
} llm_tokenizer_kind;

extern const llm_tokenizer_kind llm_tokenizer_spm, llm_tokenizer_bpe, llm_tokenizer_rwkv,
    llm_tokenizer_unigram, llm_tokenizer_plamo2, llm_tokenizer_wordpiece, llm_tokenizer_steps;

/* A part of two texts side by side: a token, or all of one of the texts. */
enum { PAIR_FIRST = -1, PAIR_SECOND = -2 };
typedef struct pair_part {
    int32_t id; /* below 0: of these two */
    int32_t type;
} pair_part;

struct llm_tokenizer {
    const llm_tokenizer_kind *kind;
    const llm_marks *marks; /* NULL: none */
    void *state;            /* the kind's own */
    ggl_arena arena;
    int32_t n_vocab;
    ggl_str *piece;            /* [n_vocab], spelled as in the file */
    ggl_str *text;             /* [n_vocab], as it appears in text */
    uint8_t *type;             /* [n_vocab], TOKEN_* */
    bool *eog;                 /* [n_vocab] */
    uint8_t *strip;            /* [n_vocab], STRIP_* */
    bool has_types;            /* the file has token_type; otherwise all are TOKEN_NORMAL */
    int32_t bos, eos, unknown; /* -1: none */
    bool add_bos, add_eos;
    bool composes; /* texts are put into NFC */
    int32_t *before,
        *after; /* what texts begin and end with instead, from tokenizer.ggl.before and .after; NULL: bos and eos */
    size_t n_before, n_after;
    /* How two texts are read side by side (pair.c): by a text, by parts [n_pair], or, with n 0 and NULL, one after the other. */
    ggl_str pair_form;
    pair_part *pair;
    size_t n_pair;
    table_model model;             /* the model's row in tokenizers.txt */
    special_tokens special;        /* control, user-defined and unknown tokens */
    struct remembered *remembered; /* NULL: nothing is */
    bool is_beside;                /* another one owns everything but `remembered` */
};

/* --- tokenizer_pieces.c: shared by several kinds ---------------------------------------------- */

/* Makes an empty index of ids by their spelling strings[id]. Of equal spellings the first
 * counts. */
GGL_NODISCARD ggl_status llm_spellings_init(ggl_index *x, size_t n, ggl_error *err);
/* Returns an id, or -1. */
int32_t llm_spellings_find(const ggl_index *x, const ggl_str *strings, const char *s, size_t n);

/* Reads a flag of the file, a truth value or the number 0 or 1. *out is unchanged if the key is
 * absent. */
GGL_NODISCARD ggl_status llm_tokenizer_flag(const ggl_gguf *file, const char *key, bool *out,
                                            ggl_error *err);
/* Returns the length of the valid UTF-8 character at s[0..n), n > 0, or 1 for an invalid byte. */
size_t llm_utf8_length(const char *s, size_t n);

extern const char llm_space[3]; /* U+2581, which replaces spaces in pieces */

/* Returns the byte that two hexadecimal digits spell, or -1. */
int llm_hex_byte(const char *s);

/* Reads tokenizer.ggml.scores as [n_vocab] into the arena. Fails if one is NaN. */
GGL_NODISCARD ggl_status llm_read_scores(llm_tokenizer *t, const ggl_gguf *file, float **out,
                                         ggl_error *err);
/* Finds the token "<0xNN>" of each byte; -1: none. If the file has no types, these tokens get
 * type TOKEN_BYTE. */
GGL_NODISCARD ggl_status llm_read_byte_tokens(llm_tokenizer *t, int32_t byte[256], ggl_error *err);
/* Fails with GGL_FORMAT if a byte has no token and there is no unknown token. If the unknown
 * token is needed, it is not treated as a control token, whatever the file says, because text
 * may become it. */
GGL_NODISCARD ggl_status llm_need_bytes(llm_tokenizer *t, const int32_t byte[256], ggl_error *err);
/* Calls the three functions above, for kinds that add up scores. Also fails if a score is
 * infinite. */
GGL_NODISCARD ggl_status llm_read_scored_pieces(llm_tokenizer *t, const ggl_gguf *file,
                                                float **score, int32_t byte[256], ggl_error *err);
/* True if all of these bytes have tokens. */
bool llm_all_bytes(const int32_t byte[256], const char *s, size_t n);
/* Appends the bytes' tokens, or the unknown token if a byte has none. */
GGL_NODISCARD ggl_status llm_append_bytes(const llm_tokenizer *t, const int32_t byte[256],
                                          const char *s, size_t n, llm_tokens *out, ggl_error *err);
/* True if text may become this token: not control, unknown or byte, and not empty. */
bool llm_may_be_spelled(const llm_tokenizer *t, int32_t id);
/* The `text` function of several kinds: the piece with spaces for U+2581, or a byte token's
 * byte. */
ggl_str llm_spaced_text(llm_tokenizer *t, int32_t id);

#endif
