/* Rules that put the operations of some weights on another backend than their layer. Messages name them as the
 * options of the tools (--place, -ot, --cpu-moe, --n-cpu-moe), or as the members of llm_open_params. */
#ifndef LIBRARY_PLACE_RULES_H
#define LIBRARY_PLACE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ggl/status.h"
#include "ggl/str.h"

struct llm_pattern;

/* Texts in the order given, all borrowed. */
typedef struct place_rule_texts {
    const char *const *s;
    size_t n;
} place_rule_texts;

typedef struct place_rule_options {
    place_rule_texts place;    /* "GLOB=BACKEND" */
    place_rule_texts override; /* "REGEX=BACKEND,..", as llama.cpp's -ot */
    bool cpu_moe;              /* experts of all layers */
    int64_t n_cpu_moe;         /* experts of the first layers */
    bool are_members; /* messages name members of llm_open_params, which has no `override` */
} place_rule_options;

typedef struct place_rule {
    const char *flag; /* for messages: "--place" */
    const char *text; /* the option's value that contains the rule; borrowed */
    size_t n_text;
    ggl_str glob;              /* a shell pattern in `text`; n 0: there is a regular expression */
    struct llm_pattern *regex; /* owned; NULL: there is a shell pattern */
    int64_t n_layers;          /* only weights of these first layers; -1: all weights */
    char backend[512];         /* its name */
    int at;                    /* its index; set by the caller */
    bool optional;             /* need not match any weight */
    bool of_experts;           /* need not match any weight of a model without experts */
    bool used;                 /* true if this rule has decided where some weight goes */
    bool hidden;               /* true if it matched a weight for which an earlier rule decided */
} place_rule;

typedef struct place_rules {
    place_rule *rule;
    size_t n;
    bool has_experts; /* llm_place_rules_find saw weights of experts */
} place_rules;

/* Reads the options, which are borrowed. llm_place_rules_fini frees *r also after an error. GGL_USAGE: a
 * rule is not PATTERN=NAME, or not a regular expression. */
ggl_status llm_place_rules_read(place_rules *r, const place_rule_options *o, ggl_error *err);
void llm_place_rules_fini(place_rules *r);
/* True if there are rules that may name backends other than the CPU. */
bool llm_place_rules_name_backends(const place_rule_options *o);

/* Forgets which rules were used. */
void llm_place_rules_begin(place_rules *r);
/* Returns the rule that decides for the weight, the first that matches; NULL: none. */
const place_rule *llm_place_rules_find(place_rules *r, const char *weight);
/* GGL_USAGE: a rule that is not optional has matched no weight since llm_place_rules_begin. */
ggl_status llm_place_rules_check(const place_rules *r, ggl_error *err);
/* Returns the flag of an optional rule that has matched none; NULL: all have. */
const char *llm_place_rules_unused(const place_rules *r);

#endif
