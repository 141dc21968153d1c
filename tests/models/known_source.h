/* A model's keys and tensors with other keys added or in place of its own, and the graph that a descriptor makes of them: for the
 * tests of the table of known keys. */
#ifndef KNOWN_SOURCE_H
#define KNOWN_SOURCE_H

#include "llm/internal/arch.h"

typedef struct value {
    llm_arch_type type;
    bool is_list;    /* of three of them */
    bool absent;     /* not there, whatever the model has */
    bool has_fourth; /* .. and of one that is half as large */
    double number;
    bool flag;
    const char *string;
} value;

typedef struct added {
    char name[128];
    value v;
} added;

typedef struct wrapped {
    llm_arch_source source;
    const llm_arch_source *base;
    const char *family;
    added key[400];
    int n;
} wrapped;

/* With the context length, which the engine knows and conditions compare with. family: what the model's keys begin with. */
void w_init(wrapped *w, const llm_arch_source *base, const char *family);
/* Adds "FAMILY.name"; false: the model has it. */
bool w_add(wrapped *w, const char *name, value v);
value number(double x);

/* The finished graph in *out, the caller's; NULL after an error. */
ggl_status build(const llm_arch *arch, const llm_arch_source *source, ggl_graph **out,
                 ggl_error *err);
/* All that the nodes compute: operators, numbers, what they read, shapes. */
bool same_graph(const ggl_graph *a, const ggl_graph *b);

#endif
