/* Collects what a descriptor's text says about its keys and optional tensors, for made-up
 * models. */
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
    toy_value other[8]; /* other values that it is compared with */
    int n_other;
} toy_key;

typedef struct toy_tensor { /* an optional tensor; the name has no "blk.N." */
    const char *name;
} toy_tensor;

/* The keys and tensors that a text mentions; the same for all variants. */
typedef struct arch_survey {
    const llm_arch *arch;
    ggl_arena *arena;
    toy_key *key;
    toy_tensor *tensor;
    int n_key, n_tensor;
    size_t cap_key, cap_tensor;
    const char **group; /* groups of optional items that are toggled together */
    int n_group;
    size_t cap_group;
    int n_alternatives;    /* values in `other` of all keys together */
    const arch_fn *within; /* the function being surveyed; NULL: top level */
    int64_t work;          /* steps of tracing; gives up past a limit */
    bool failed;
} arch_survey;

/* Surveys s->arch, allocating from s->arena; the caller sets both. s->failed: out of memory. */
void llm_arch_survey_run(arch_survey *s);
void llm_arch_survey_fini(arch_survey *s);
/* Returns the usual value of a key with this name. */
double llm_arch_survey_usual(const char *name);
/* Returns the group of an optional key; keys of a group are present or absent together. NULL,
 * and s->failed: out of memory. */
const char *llm_arch_survey_group(arch_survey *s, const char *name);
/* Returns a tensor's name without "blk.N.". */
const char *llm_arch_survey_stem(const char *name);

#endif
