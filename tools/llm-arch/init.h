/* What the files of llm-arch init share: a model's tensors as declarations, by the parts of the descriptor that they belong to. */
#ifndef TOOLS_ARCH_INIT_H
#define TOOLS_ARCH_INIT_H

#include "ggl/internal/index.h"
#include "names.h"

#define NONE SIZE_MAX
enum { MOST_PARTS = 8, MOST_NAME = 64 /* bytes of a name in the language */ };

typedef struct layers { /* a set of layers, without padding: the key of a table */
    int64_t n;
    uint64_t mix; /* of their numbers: differs where the sets do */
    int64_t first, last;
} layers;
enum { LAYERS_KEY = 16 };                 /* bytes: n and mix */
enum { MOST_WORDS = 4 + 2 * MOST_PARTS }; /* that the graph uses: results, stages and their rows */

typedef struct decl {
    struct {            /* a table's key, so without padding */
        char name[128]; /* "blk.{l}.attn_q.weight", then zeros */
        int64_t ne[GGL_MAX_DIMS], n_dims;
    } key;
    size_t head, tail; /* its tensors: first and last in the chain `next` */
    size_t other;      /* the next declaration with this name, or NONE */
    layers in;         /* n = 0: outside of layers */
    size_t n_tensors;
    bool gone, open; /* merged into the first of its name; its shape contains a guess */
    char shape[192];
} decl;

typedef struct named {
    ggl_str name;
    size_t first, last; /* in the chain `other` */
    char as[MOST_NAME]; /* what the descriptor calls it */
} named;

typedef struct group { /* declarations for the same layers */
    layers in;
    size_t head, tail;
    arch_name
        *list; /* its layers are those where this is above 0, or is 0; NULL: no list says them */
    size_t within; /* the group whose condition this one's stands in, or NONE */
    bool above, is_around, printed;
} group;

/* The declarations of one part of the descriptor: of a stage, or of what is outside of stages. */
typedef struct init {
    const ggl_gguf *f;
    const char *arch;
    arch_names *names; /* the numbers, which all parts share */
    int n_layer; /* of this part's tensors, or the key's number if that is larger and there is one part */
    char prefix
        [32]; /* of the names of its tensors: "enc."; empty: of those that no other part has */
    const struct init *part; /* all parts, the one outside of stages first */
    int n_parts;
    int indent;
    char stage[MOST_NAME],
        rows[MOST_NAME]; /* what the stage and the rows that enter it are called */
    bool over_rows;
    bool has_stages; /* besides, or instead of, what is outside of them */
    size_t *next;    /* [tensor]: the next tensor of its declaration, or NONE */
    size_t *along;   /* [declaration]: the next declaration of its group, or NONE */
    decl *decl;
    named *name;
    group *group;
    size_t n_decl, n_name, n_group;
    layers all;
    char order[132];       /* "d > n_rot" where a shape has d - n_rot */
    const char *embedding; /* the matrix with a row for each token */
    bool whole, normed;    /* it is there, and output_norm, too */
    ggl_index by_shape, by_name, by_layers, by_word;
    ggl_str *word; /* what declarations are called */
    size_t n_word;
} init;

/* --- init_tensors.c: the parts, and what their tensors declare ------------------------------- */

/* True if a descriptor's string can hold the prefix, and a name can be made of it. */
bool init_is_plain(const char *s, size_t n);
/* True if a descriptor's string can hold it: strings have no escapes, and what a terminal must not see is written as one. */
bool init_fits_string(const char *s);
/* Returns the part's tensor of that name; NULL: none. */
const ggl_gguf_tensor *init_find_own(const init *in, const char *name);
/* Returns the part's declarations of that name ("blk.{l}." for all layers); NULL: none. */
const named *init_find_named(const init *in, const char *name);
/* Writes a dimension as the declaration has it, but a number for a guess. */
void init_dim_text(const init *in, const decl *d, int dim, char *buf, size_t size);
/* Returns the layer of tensor i, -1 if it is outside of layers, and the rest of its name. */
int init_layer_of(const init *in, size_t i, ggl_str *rest);
/* Writes "attn_q" for "blk.{l}.attn_q.weight"; returns true if a declaration must give the name
 * with `from`. */
bool init_stem_of(const char *full, char *stem, size_t size);
/* Makes the declarations. False: out of memory. */
bool init_collect(init *in);
/* Writes the shapes of all declarations, merges those that one shape fits, and groups them by their layers. */
void init_name_shapes(init *in);
/* Return what reads the patches of a picture, and the first convolution over rows by its name; NULL: the part has none. */
const named *init_find_patches(const init *in);
const named *init_find_convolution(const init *in);
/* True if the part reads such rows, so that it reads no tokens. */
bool init_reads_rows(const init *in);
/* Finds the parts by the prefixes of names before "blk.". Those that are too many stay with the part outside of stages. */
void init_find_parts(init *in);
/* Frees what init_collect made. */
void init_finish(init *in);

/* --- init_rows.c: the rows that enter stages ------------------------------------------------- */

/* Chooses what a stage is called, and the rows that enter it. */
void init_name_stage(init *in);
/* Writes the input that a stage over rows reads, and in the stage, how a row of it becomes x. */
void init_print_input(const init *in);
void init_print_x(const init *in);

/* --- init_lines.c: the lines that names, weights and kinds of layers become ------------------- */

/* Finds the parts that almost all models have: the row of a token, and the output after the last layer. Between
 * embeddings of another width than the layers and the last norm is a matrix, which is left to write. */
void init_find_ends(init *in);
/* True if the file has a key about rotation. */
bool init_has_rope(const init *in);
/* Returns the number of tokens for which the output has scores, if these are not all; else 0. */
int64_t init_n_scores(const init *in);
/* Keeps the words that the last lines assign to: a model of stages alone gives `rows`, say. */
void init_keep_words(init *in);
/* Chooses what all declarations are called: first those that other lines name, such as output, then those whose stem
 * is a name. */
void init_name_weights(init *in);
/* Returns what the part, or else the descriptor, calls the tensor of that stem; if it has none, the stem. */
const char *init_called(const init *in, const char *stem);
/* Writes a name that nothing outside of stages has: `wanted`, or it with a number. */
void init_own_word(init *in, const char *wanted, char *buf, size_t size);
/* True if there is more in the part's layers than comments. */
bool init_has_layer_lines(const init *in);
/* Returns the norm that the file's key of its epsilon tells of. */
const char *init_norm_of(const init *in);
/* The declarations of all layers, or those outside of layers. */
void init_print_groups(const init *in, bool outside);
/* The kinds of layers in group `within` (NONE: in all), each under its condition; two that make up all layers as `if` and `else`. */
void init_print_kinds(init *in, size_t within, int indent);
/* Writes the last line. An output of some tokens is taken for that of the last ones. of: what it is computed from. */
void init_print_logits(const init *in, const char *of, bool normed);
/* Writes the last norm of something. */
void init_print_normed(const init *in, const char *of);
/* Writes the numbers: those that differ by layer, or the others. */
void init_print_names(const init *in, bool in_layers);
/* Prints the keys of the file that no name reads. rope: the descriptor calls rope_scaled, which
 * reads its own keys. */
void init_print_rest(const init *in, bool rope);
/* True if keys of the file begin with the architecture's name. */
bool init_has_own_keys(const init *in);
/* Writes the line of the rotation, n_rot numbers of each head, and the keys that it reads. */
void init_print_rope(const init *in, const char *n_rot);
/* Writes the output that a model lacks whose output is its embedding. */
void init_print_tied(const init *in);
/* The name of how many numbers of a head turn; NULL: none that could in each layer. */
const char *init_rotated(init *in);
/* Writes a name of letters, digits and '_' for a stem. Returns whether it is the stem itself. */
bool init_word_of(const char *stem, const char *end, char *word, size_t size);

#endif
