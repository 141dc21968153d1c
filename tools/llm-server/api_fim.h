/* Prompts for filling in the middle: what stands before a gap and after it, with the marks that models for
 * code were trained on. */
#ifndef LLM_SERVER_API_FIM_H
#define LLM_SERVER_API_FIM_H

#include "dialect.h"

typedef struct fim_request {
    ggl_str before, after;   /* the gap */
    ggl_str begun;           /* how the answer begins; may be empty */
    const json_value *extra; /* other files: a list of {"filename", "text"}; NULL: none */
} fim_request;

/* Makes the ask's one prompt, as ids. Other files that do not fit into the context beside the rest are left out, the
 * first ones first. GGL_UNSUPPORTED: the model has no such marks; GGL_USAGE: a file is wrong; GGL_NOMEM. */
GGL_NODISCARD ggl_status fim_prompt(ask *a, const server_facts *facts, const fim_request *q,
                                    ggl_error *err);

#endif
