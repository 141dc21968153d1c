/* Names for the numbers of a model, as descriptors usually have them: "n_embd" for the key embedding_length, and for a
 * dimension of a tensor an expression of such names, like "n_head*d". */
#ifndef TOOLS_ARCH_NAMES_H
#define TOOLS_ARCH_NAMES_H

#include "ggl/gguf.h"

enum { ARCH_MAX_NAMES = 256, ARCH_EXPR = 192 /* bytes of an expression */ };

typedef struct arch_name {
    char name[64], key[128]; /* the key without "{arch}." */
    const char
        *missing; /* an expression that holds where the file lacks the key; NULL: none does */
    const ggl_gguf_value *value; /* NULL: the file lacks the key */
    bool size;                   /* may be a dimension of any tensor */
    bool whole;                  /* a list that is read as such */
    bool used;                   /* a shape, or a name that a shape uses, has it */
    bool varies;                 /* differs from layer to layer: itself, or what it follows from */
    int n_above;                 /* of a list: how many of its numbers are not 0 */
} arch_name;

typedef struct arch_names {
    const ggl_gguf *f;
    double n_vocab;
    int n_layer; /* layers of the file's tensors, or more if the key says so */
    int n;
    arch_name at[ARCH_MAX_NAMES];
} arch_names;

/* The names that the keys of f give, with the usual ones first. family: general.architecture. */
void arch_names_init(arch_names *m, const ggl_gguf *f, const char *family);
/* The name of that name or of that key; NULL: none. */
arch_name *arch_names_find(arch_names *m, const char *name);
const arch_name *arch_names_of_key(const arch_names *m, const char *key);
/* The value of an expression (names, whole numbers, + - * / and brackets) in a layer, -1: outside of layers. False: a name
 * in it has no value there, or a division leaves a rest. */
bool arch_names_value(const arch_names *m, const char *expr, int layer, double *out);
/* An expression with the names that the file lacks replaced by those that hold instead: "n_kv*d" for "n_kv*dv" of a file without
 * attention.value_length. */
void arch_names_expand(const arch_names *m, const char *expr, char *buf, size_t size);
/* Marks the names in an expression, expanded, and those that they follow from, as used. */
void arch_names_use(arch_names *m, const char *expr);
/* The i-th expression that dimension `dim` of a tensor usually is, best first; NULL: there are no more. stem: its name without
 * "blk.{l}." and ".weight". */
const char *arch_names_usual(const char *stem, int dim, int i);
/* The i-th expression that any dimension may be, "": none at this place; NULL: there are no more. */
const char *arch_names_any(const arch_names *m, int i);

#endif
