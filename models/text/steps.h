/* A tokenizer as a tokenizer.json describes it: steps, in the format and with the meaning of the library `tokenizers` 0.23.
 *
 *     text --added tokens--> stretches --normalizer--> other texts --normalized added tokens--> stretches
 *          --pre_tokenizer--> pieces --model--> ids                             ids --decoder--> text
 *
 * The key tokenizer.ggl.steps has that file without its vocabulary and its merges, which are in tokenizer.ggml.* and, where these cannot
 * have them, in tokenizer.ggl.*. Each step is a row of a table with a function that reads its members and one that runs it, so a step
 * that no table has is refused by its name. */
#ifndef LLM_TEXT_STEPS_H
#define LLM_TEXT_STEPS_H

#include "best_path.h"
#include "charsmap.h"
#include "common/json.h"
#include "merge_queue.h"
#include "pretok.h"
#include "tokenizer_impl.h"
#include "word_memory.h"

/* --- texts -------------------------------------------------------------------------------------- */

/* A text that a step writes. */
typedef struct step_text {
    char *s;
    size_t n, cap;
    size_t most; /* a longer one is refused; 0: none is */
    size_t
        zero; /* so many bytes stand for the first character of the whole text (Metaspace's "first" asks for that) */
} step_text;

/* Steps of a file that nobody checked could make a small text huge. */
enum { STEP_GROWTH = 256, STEP_ROOM = 1 << 16 };
/* The longest text that a text of n bytes may become. */
size_t llm_step_most(size_t n);
/* Appends bytes; of_zero: they stand for the first character of the whole text. False: out of memory, or too long. */
bool llm_step_put(step_text *t, const char *s, size_t n, bool of_zero);
bool llm_step_put_char(step_text *t, uint32_t c, bool of_zero);

/* Joins two strings, which may have any bytes. s NULL: out of memory. */
ggl_str llm_step_joined(ggl_arena *arena, ggl_str a, ggl_str b);

/* A part of a text. */
typedef struct step_piece {
    const char *s;
    size_t n;
    size_t zero;
    bool at_zero; /* it begins the whole text, before the steps */
    bool
        begins; /* it begins what is encoded, after a prompt of its own: no space is put in front */
} step_piece;

/* --- steps -------------------------------------------------------------------------------------- */

typedef enum step_behavior {
    STEP_REMOVED,
    STEP_ISOLATED,
    STEP_MERGED_WITH_PREVIOUS,
    STEP_MERGED_WITH_NEXT,
    STEP_CONTIGUOUS
} step_behavior;

struct step_kind;
/* A step with its members, as far as its kind has them. */
typedef struct step {
    const struct step_kind *kind;
    ggl_str text, by;              /* a string to look for, what takes its place */
    const pretok_program *pattern; /* NULL: none */
    charsmap map;
    step_behavior behavior;
    bool flag[4];
    uint32_t c;
    size_t length[2];
} step;

typedef struct step_list {
    step *item;
    size_t n;
} step_list;

/* What reads steps; messages begin with `where`, such as "normalizer". */
typedef struct step_reader {
    ggl_arena *arena;
    const char *where;
    ggl_error *err;
} step_reader;

typedef ggl_status step_read_fn(step_reader *r, const json_value *v, step *out);

struct step_line;
struct step_cutter;
struct step_strings;
typedef ggl_status step_normalize_fn(const step *s, pretok_finder *finder,
                                     const struct step_line *in, step_text *out, bool *same,
                                     ggl_error *err);
typedef ggl_status step_cut_fn(struct step_cutter *c, size_t at, const step_piece *p);
typedef ggl_status step_decode_fn(const step *s, pretok_finder *finder, struct step_strings *list,
                                  ggl_error *err);

struct step_kind {
    const char *type;
    step_read_fn *read; /* NULL: it has no members */
    /* one of them, as the list is */
    step_normalize_fn *normalize;
    step_cut_fn *cut;
    step_decode_fn *decode;
};

/* Reads a step, or those of a Sequence, whose list is called `list`. v NULL, or null: there are none. */
GGL_NODISCARD ggl_status llm_steps_read(step_list *out, step_reader *r, const json_value *v,
                                        const char *list, const struct step_kind *kinds,
                                        size_t n_kinds);

/* True if one of the steps has this type. */
bool llm_steps_have(const step_list *list, const char *type);

/* Members of a step. A member that is missing or has another type is an error, unless there is a fallback. */
GGL_NODISCARD ggl_status llm_step_flag(step_reader *r, const json_value *v, const char *name,
                                       const bool *fallback, bool *out);
GGL_NODISCARD ggl_status llm_step_string(step_reader *r, const json_value *v, const char *name,
                                         ggl_str *out);
GGL_NODISCARD ggl_status llm_step_char(step_reader *r, const json_value *v, const char *name,
                                       uint32_t *out);
GGL_NODISCARD ggl_status llm_step_length(step_reader *r, const json_value *v, const char *name,
                                         size_t *out);
/* "pattern": {"String": ..} or {"Regex": ..}. may_be_empty: it may match no character. */
GGL_NODISCARD ggl_status llm_step_pattern(step_reader *r, const json_value *v, bool may_be_empty,
                                          step *out);
/* Fails because a text could not be written. */
ggl_status llm_step_no_memory(ggl_error *err);

/* --- what runs them ------------------------------------------------------------------------------ */

/* Memory of a run, which one thread uses. */
typedef struct step_memory {
    pretok_finder **finder; /* one for each step that has a pattern, by its place in the list */
    size_t n;
} step_memory;
void llm_step_memory_fini(step_memory *m);
/* NULL: out of memory. */
pretok_finder *llm_step_finder(step_memory *m, size_t at);

/* steps_normalize.c: a normalizer writes `out`, which is empty, from `in`; or sets *same, and `in` is the result. */
typedef struct step_line {
    const char *s;
    size_t n, zero;
    bool no_prefix; /* the text goes on: Prepend does nothing */
} step_line;
GGL_NODISCARD ggl_status llm_steps_read_normalizer(step_list *out, step_reader *r,
                                                   const json_value *v);
/* Runs all of them. *out is `in`, or one of the two texts, whose memory is kept for the next call. */
GGL_NODISCARD ggl_status llm_steps_normalize(const step_list *list, step_memory *m,
                                             const step_line *in, step_text text[2], step_line *out,
                                             ggl_error *err);

/* steps_cut.c: a pre-tokenizer hands pieces to the next one, and the last one to `piece`. */
typedef struct step_cutter {
    const step_list *list;
    step_memory *memory;
    step_text *text; /* [list->n], of the steps that write */
    ggl_status (*piece)(void *context, const char *s, size_t n);
    void *context;
    ggl_error *err;
} step_cutter;
GGL_NODISCARD ggl_status llm_steps_read_cutter(step_list *out, step_reader *r, const json_value *v);
GGL_NODISCARD ggl_status llm_steps_cut(step_cutter *c, size_t at, const step_piece *p);

/* steps_decode.c: a decoder changes a list of strings. */
typedef struct step_strings {
    ggl_arena arena;
    ggl_str *item;
    size_t n, cap;
    size_t most; /* bytes of all strings that a step may write */
} step_strings;
GGL_NODISCARD ggl_status llm_steps_read_decoder(step_list *out, step_reader *r,
                                                const json_value *v);
/* Leaves one string. has_decoder: the file has one, if only an empty Sequence; without one, spaces stand between tokens. */
GGL_NODISCARD ggl_status llm_steps_decode(const step_list *list, step_memory *m, bool has_decoder,
                                          step_strings *strings, ggl_error *err);
/* As BERT's own decoder: strings that begin with ## continue words. */
GGL_NODISCARD ggl_status llm_steps_decode_words(step_strings *strings, ggl_error *err);
/* True if the first token of a text loses a space in front. */
bool llm_steps_drop_space(const step_list *list, bool has_decoder);
/* Adds a string, which is borrowed; forgets all; frees. */
bool llm_step_strings_add(step_strings *list, ggl_str s);
/* Copies the only string, if there is one, to memory that the caller frees with ggl_free. */
GGL_NODISCARD ggl_status llm_step_strings_take(const step_strings *list, char **text, size_t *size,
                                               ggl_error *err);
void llm_step_strings_clear(step_strings *list);
void llm_step_strings_fini(step_strings *list);

/* Two characters that a merge brings together. */
typedef struct llm_neighbors {
    uint32_t c[2];
} llm_neighbors;

/* steps_model.c: the ids of a piece. */
struct step_model_kind;
typedef struct step_model {
    const struct step_model_kind *kind;
    const llm_tokenizer *t;
    ggl_str *piece; /* [t->n_vocab], as the model has them; s NULL: the id is none of the model's */
    ggl_index by_piece;
    int32_t unknown; /* -1: none */
    ggl_str prefix, suffix;
    bool fuse_unknown, byte_fallback, ignore_merges;
    bool drops_unknown; /* BPE: there is no unk_token, so that unknown characters become nothing */
    bool of_bytes;      /* ByteLevel has made a character of each byte of the text */
    size_t most_characters;
    int32_t byte[256];     /* tokens "<0xNN>", with byte_fallback; -1: none */
    int32_t direct[0x180]; /* BPE: the piece of one character, by code point; -1: none */
    llm_merge *merge;
    size_t n_merge;
    ggl_index by_pair;
    llm_neighbors *neighbors; /* NULL: not known */
    ggl_index by_neighbors;
    automaton begins,
        continues; /* Unigram, WordPiece: pieces, and those that continue a word, without the prefix */
    double *score, unknown_score; /* Unigram */
} step_model;
/* in_model: [t->n_vocab], whether an id is one of the model's; its pieces are spelled as t->piece, or in `piece`, if that has text. */
GGL_NODISCARD ggl_status llm_step_model_read(step_model *m, llm_tokenizer *t, const ggl_gguf *file,
                                             const json_value *model, ggl_error *err);
void llm_step_model_fini(step_model *m);

/* Memory of a run. special: pieces may become control tokens. */
typedef struct step_model_run {
    const step_model *m;
    bool special;
    llm_tokens *out;
    ggl_error *err;
    symbol *sym;
    size_t cap_sym;
    merge_queue queue;
    char *word; /* a character with its prefix or suffix */
    size_t cap_word;
    best_path path;
    char *run; /* Unigram: unknown characters that are not emitted yet */
    size_t n_run, cap_run;
    word_memory words;
} step_model_run;
GGL_NODISCARD ggl_status llm_step_model_piece(step_model_run *r, const char *s,
                                              size_t n); /* n > 0 */
void llm_step_model_run_fini(step_model_run *r);

/* steps_added.c: tokens that are found in texts before the model sees them. */
typedef struct step_added {
    int32_t id;
    bool single_word, lstrip, rstrip, normalized, special;
} step_added;
typedef struct step_added_list {
    step_added *item;
    size_t n;
    automaton raw, normalized; /* of places in the list */
    bool has_raw, has_normalized;
    automaton
        control; /* special tokens that are normalized, as they are spelled; for texts of which parts are only text */
    bool has_control;
} step_added_list;
typedef struct step_match {
    size_t from, to;
    int32_t id;
} step_match;
/* Finds tokens of an automaton of places. No byte of `given` (NULL: none) is in a special token; offset: of s in their text. special: the
 * text may have special tokens. The caller frees *out with ggl_free. */
GGL_NODISCARD ggl_status llm_step_added_find(const step_added_list *list, const automaton *tokens,
                                             const char *s, size_t n, bool special,
                                             const llm_spans *given, size_t offset,
                                             step_match **out, size_t *n_out, ggl_error *err);

#endif
