/* Which wishes for a text, such as beams and a grammar, exclude each other. One table (job_rules.def) serves the calls of llm.h, llm-cli and
 * llm-server; each row has the name of the member, of the flag and of the request's field. */
#ifndef LIBRARY_JOB_RULES_H
#define LIBRARY_JOB_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "ggl/status.h"

typedef enum llm_job_wish {
#define JOB_WISH(id, ...) LLM_JOB_##id,
#include "job_rules.def"
    LLM_JOB_N_WISHES
} llm_job_wish;

/* Whose words a message has. */
typedef enum llm_job_words {
    LLM_JOB_MEMBERS, /* of llm_generate_params */
    LLM_JOB_FLAGS,   /* of llm-cli */
    LLM_JOB_FIELDS,  /* of requests to llm-server */
    LLM_JOB_N_WORDS
} llm_job_words;

/* The bit of a wish in a set of them, if it is given. */
#define LLM_JOB_ASKS(id, given) ((given) ? UINT32_C(1) << LLM_JOB_##id : 0)

/* Returns the name of a wish: a member, flag or field, as `words` says. NULL: it cannot be asked for there. */
const char *llm_job_word(llm_job_wish wish, llm_job_words words);
/* Checks that all wishes can be had together. On failure *word is what the words call the one that is too many; word may be NULL.
 * GGL_UNSUPPORTED: not of a model that writes by diffusion; GGL_USAGE: not with each other. */
GGL_NODISCARD ggl_status llm_job_check(uint32_t wishes, llm_job_words words, const char **word,
                                       ggl_error *err);
/* Checks that there are as many places for beams, which each take one of the sequences that run at once; n 0 and 1: none is searched.
 * GGL_USAGE: there are not. */
GGL_NODISCARD ggl_status llm_job_check_beams(int64_t n, int64_t n_places, llm_job_words words,
                                             ggl_error *err);

#endif
