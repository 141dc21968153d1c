/* Collects what a descriptor's text says about its keys and optional tensors, for made-up models. */
#ifndef LLM_ARCH_SURVEY_H
#define LLM_ARCH_SURVEY_H

#include "compile/compile.h"

typedef struct toy_value {
    llm_arch_type type;
    double number;
    bool flag;
    const char *string;
} toy_value;

typedef struct toy_key {
    const char *name; /* as in the descriptor */
    bool whole, optional, indexed;
    toy_value value;
    toy_value other[8]; /* what else it is compared with */
    int n_other;
} toy_key;

typedef struct toy_tensor { /* an optional one, without "blk.N." */
    const char *name;
} toy_tensor;

/* The keys and tensors of the text; the same for all variants. */
typedef struct arch_survey {
    const llm_arch *arch;
    ggl_arena *arena;
    toy_key *key;
    toy_tensor *tensor;
    int n_key, n_tensor;
    size_t cap_key, cap_tensor;
    const char **group; /* of optional items: what is turned together */
    int n_group;
    size_t cap_group;
    int n_alternatives;    /* of all keys together */
    const arch_fn *within; /* whose text is looked at; NULL: the file's own statements */
    int64_t work;          /* looking for names: past a bound it is given up */
    bool failed;
} arch_survey;

/* s->arch and s->arena are set. s->failed: out of memory. */
void llm_arch_survey_run(arch_survey *s);
void llm_arch_survey_fini(arch_survey *s);
/* The usual value of a key of that name. */
double llm_arch_survey_usual(const char *name);
/* The group of an optional key: all of a group are turned on and off together. NULL, and s->failed:
 * out of memory. */
const char *llm_arch_survey_group(arch_survey *s, const char *name);
/* A tensor's name without "blk.N.". */
const char *llm_arch_survey_stem(const char *name);

#endif
