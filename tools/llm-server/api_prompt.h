/* Prompts that are lists of ids and texts. */
#ifndef LLM_SERVER_API_PROMPT_H
#define LLM_SERVER_API_PROMPT_H

#include "dialect.h"

/* True for a list with a number: it is one prompt, any other list is several. */
bool prompt_is_list(const json_value *v);
/* Sets a prompt to the ids of a list, and of the texts in it. GGL_USAGE: an element is neither, or no token. */
GGL_NODISCARD ggl_status prompt_of_list(ask *a, const json_value *v, const server_facts *facts,
                                        ask_prompt *p, ggl_error *err);
/* Sets a prompt to ids, which are copied into the ask's arena. GGL_NOMEM. */
GGL_NODISCARD ggl_status prompt_of_ids(ask *a, ask_prompt *p, const int32_t *id, size_t n,
                                       ggl_error *err);

#endif
