/* Names for the numbers of a model, as descriptors usually have them: "n_embd" for the key
 * embedding_length. For a dimension of a tensor an expression of such names, like "n_head*d". */
#ifndef TOOLS_ARCH_NAMES_H
#define TOOLS_ARCH_NAMES_H

#include "ggl/internal/gguf.h"

enum { ARCH_MAX_NAMES = 256, ARCH_EXPR = 192 /* bytes of an expression */ };

typedef struct arch_name {
    char name[64], key[128]; /* the key is without "{arch}." */
    /* an expression for the value if the file lacks the key; NULL: none */
    const char *missing;
    const ggl_gguf_value *value; /* NULL: the file lacks the key */
    bool size;                   /* may be a dimension of any tensor */
    bool whole;                  /* a list that is read as a whole */
    bool used;                   /* a shape uses it, or a name that a shape uses */
    /* the value, or one that it is computed from, differs between layers */
    bool varies;
    int n_above; /* for a list: how many numbers are not 0 */
} arch_name;

typedef struct arch_names {
    const ggl_gguf *f;
    double n_vocab;
    int n_layer; /* layers that the file's tensors have, or the key's number if that is larger */
    int n;
    arch_name at[ARCH_MAX_NAMES];
} arch_names;

/* Makes the names for the keys of f, the usual ones first. family: general.architecture. */
void arch_names_init(arch_names *m, const ggl_gguf *f, const char *family);
/* True for a word of the language, a number of the engine, and the names that llm-arch init writes of itself. */
bool arch_names_is_taken(const char *word);
/* Returns the entry with that name, or key; NULL: none. */
arch_name *arch_names_find(arch_names *m, const char *name);
const arch_name *arch_names_of_key(const arch_names *m, const char *key);
/* Computes an expression (names, whole numbers, + - * / and brackets) in a layer; -1: outside of
 * layers. False: a name in it has no value there, or a division has a remainder. */
bool arch_names_value(const arch_names *m, const char *expr, int layer, double *out);
/* Writes an expression, with names that the file lacks replaced by their defaults: "n_kv*d" for
 * "n_kv*dv" in a file without attention.value_length. */
void arch_names_expand(const arch_names *m, const char *expr, char *buf, size_t size);
/* Marks as used the names in an expression, after expansion, and those that they are computed from. */
void arch_names_use(arch_names *m, const char *expr);
/* Returns the i-th usual expression for dimension `dim` of a tensor, best first; NULL: no more.
 * stem: the tensor's name without "blk.{l}." and ".weight". */
const char *arch_names_usual(const char *stem, int dim, int i);
/* Returns the i-th expression that may be any dimension; "" for an unused index, NULL after the
 * last. */
const char *arch_names_any(const arch_names *m, int i);

#endif
