/* Runs a model that `llm-arch compile` has written as tables in C, on a board without an operating system: without malloc, files and
 * threads. docs/small.md shows how to build it.
 *
 *     #include "plan.h"                                     // written beside plan.c
 *     static SMALL_ALIGNED char ram[PLAN_RAM];
 *
 *     small_begin(&plan, ram);
 *     const float *logits = small_step(&plan, ram, token, 0);
 *     token = small_greedy(logits, PLAN_N_VOCAB);
 *     logits = small_step(&plan, ram, token, 1);
 *
 * Logits have the bits that the CPU of the large engine gives (docs/numeric.md). A number of plans can be in one program; one runs at a
 * time. This header needs C99. */
#ifndef SMALL_H
#define SMALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SMALL_ALIGNED __attribute__((aligned(16)))

struct ggl_type_info; /* a type of elements: ggl/types.h */

/* An operand: where its elements are. Element (i, j, k, l) is i nb[0] + j nb[1] + k nb[2] + l nb[3] bytes after the first. */
typedef struct small_view {
    const void *rom; /* in flash: the tensor; NULL: it is in RAM */
    uint32_t at;     /* the first element: bytes after rom, or from the beginning of RAM */
    const struct ggl_type_info *type;
    int32_t ne[4], nb[4];
} small_view;

/* What stays from token to token: rows of keys or values by position, or a state. */
typedef struct small_store {
    uint32_t at;
    uint32_t page_size; /* bytes of 64 positions */
    int32_t n_pages;    /* position p is in page p / 64 % n_pages */
    int32_t ne[2];      /* elements of a row, and heads */
    uint8_t kind;       /* ggl_store_kind */
    const struct ggl_type_info *type;
} small_store;

/* An operator with its operands. */
typedef struct small_op {
    void (*run)(const struct small_op *op, char *ram);
    void (*kernel)(void);          /* a function of one row, if the operator has several */
    const small_view *const *view; /* [0]: the result; then the sources; NULL: absent */
    const small_store *const *store;
    int32_t n[3]; /* numbers of the operator */
    float f[2];
    double d;
} small_op;

/* What a token is. */
enum {
    SMALL_SILENT = 1,  /* it stands for no text: <s> */
    SMALL_END = 2,     /* a text ends with it */
    SMALL_SPECIAL = 4, /* it is found in a text by its name: <|im_start|> */
    SMALL_USER = 8,    /* so it is even where names of special tokens are plain text */
    SMALL_LEFT = 16,   /* white space before it belongs to it */
    SMALL_RIGHT = 32   /* white space after it */
};

/* Numbers of 1 to 4 bytes each, the lowest byte first. */
typedef struct small_numbers {
    const uint8_t *byte;
    uint8_t width;
} small_numbers;

/* Strings by which a text becomes tokens, in the order of their bytes; no two are equal. */
typedef struct small_keys {
    small_numbers string; /* [n]: which strings of the tokenizer */
    uint32_t n;
    bool unspaced; /* without the space that strings begin with */
} small_keys;

struct small_encoder; /* encoder.h */

/* A tokenizer. */
typedef struct small_words {
    bool (*encode)(struct small_encoder *e, const char *text, size_t n);
    const char *text; /* of all strings: first the tokens, as they appear in a text, then others */
    small_numbers at; /* where each string begins, and where the last one ends */
    const int32_t *other;      /* the tokens of strings from n_vocab on */
    const uint8_t *flags;      /* [n_vocab] */
    small_keys pieces, starts; /* what a text may become; starts: only within some words */
    small_keys special;        /* the tokens with SMALL_SPECIAL */
    const int32_t *byte;       /* [256]: the symbol of each byte; -1: none */
    const float *score;        /* [n_vocab] */
    double unknown_score;      /* of a character that is no piece */
    /* [n_merges]: left and right symbols, by which they are ordered, what they become, and with `ranks` which is joined first; or else the
     * one with the lowest result. Symbols from n_vocab on are no tokens. */
    small_numbers merge;
    uint32_t n_merges;
    bool ranks;
    const struct pretok_program *const *split;     /* [n_split]: what cuts a text into words */
    const struct charsmap *map;                    /* strings that are replaced first; NULL: none */
    int (*strip)(uint32_t c, uint32_t part[4]);    /* NULL: accents stay */
    uint32_t (*lower)(uint32_t c, uint32_t *mark); /* NULL: capital letters stay */
    int32_t n_split, n_vocab;
    int32_t bos, eos, unknown; /* -1: none */
    int32_t dna[3];            /* <dna>, </dna> and <oov> */
    bool add_bos, add_eos, add_space, merge_spaces;
    bool spaced;          /* spaces of a text and of keys stand for U+2581 */
    bool raw;             /* symbols are characters, not bytes */
    bool whole, newlines; /* a word, or one of newlines, that is a token becomes that token */
    bool drop_white;      /* white space only separates words */
} small_words;

typedef struct small_plan {
    const small_op *op;
    uint32_t n_op;
    const struct ggl_type_info *const *type; /* the types in use, and NULL */
    uint32_t stores, ram;                    /* bytes of RAM: where stores begin, and of all */
    uint32_t logits;
    int32_t n_vocab, n_ctx;
    const small_words *words; /* NULL: without a tokenizer */
} small_plan;

/* Begins a new text. ram: plan->ram bytes, at a multiple of 16. */
void small_begin(const small_plan *plan, char *ram);

/* Runs a token at position pos: 0 for the first of a text, then one more each time, below plan->n_ctx. Returns plan->n_vocab
 * logits, which are in `ram` until the next call; NULL: pos or token is out of range. */
const float *small_step(const small_plan *plan, char *ram, int32_t token, int32_t pos);

/* --- text ------------------------------------------------------------------------------------- */

enum {
    SMALL_WITH_ENDS = 1,   /* with the tokens that begin and end texts, as the model learned it */
    SMALL_WITH_SPECIAL = 2 /* names of special tokens in the text become these */
};

/* Turns text[0..n) into at most n_token tokens, the same as llm-tokenize gives. work: memory that is used meanwhile, at a multiple of 16;
 * PLAN_WORK(n) bytes are enough for any text of n bytes, and most need less. Returns how many tokens there are; -1: there are more, or
 * `work` is too small; -2: the plan has no tokenizer. */
int32_t small_encode(const small_plan *plan, const char *text, size_t n, unsigned flags,
                     int32_t *token, int32_t n_token, char *work, size_t work_size);

/* Returns the bytes that a token stands for, and sets *n to their number. They are not always whole characters. first: it is the first of a
 * text, where the space is left out that small_encode puts in front. */
const char *small_text_of(const small_plan *plan, int32_t token, bool first, size_t *n);
/* True if a text ends with this token. */
bool small_is_end(const small_plan *plan, int32_t token);

/* --- the next token --------------------------------------------------------------------------- */

/* Returns the token with the largest logit, of equals the first. */
int32_t small_greedy(const float *logits, int32_t n);

/* The state of random numbers. */
typedef struct small_random {
    uint64_t s[4];
} small_random;
void small_seed(small_random *r, uint64_t seed);
/* Draws a token with the probabilities of the logits divided by the temperature, of the k largest logits; key: [k] numbers of memory. With the same seed it
 * draws as llm-cli --samplers "top_k;temperature" --top-k K --temp T --seed S does. temperature 0: small_greedy. */
int32_t small_draw(small_random *r, const float *logits, int32_t n, int32_t k, double temperature,
                   uint64_t *key);

#ifdef __cplusplus
}
#endif
#endif
