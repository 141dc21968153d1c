/* Prompts for filling in the middle: what stands before a gap and after it, with the marks that models for
 * code were trained on. */
#ifndef LLM_SERVER_API_FIM_H
#define LLM_SERVER_API_FIM_H

#include "dialect.h"

/* Makes the ask's one prompt, as ids: the text before the gap, the text after it, and how the answer begins
 * (may be empty). GGL_UNSUPPORTED: the tokenizer has no such marks; GGL_NOMEM. */
GGL_NODISCARD ggl_status fim_prompt(ask *a, const server_facts *facts, ggl_str before,
                                    ggl_str after, ggl_str begun, ggl_error *err);

/* Sets a prompt to ids, which are copied into the ask's arena. GGL_NOMEM. */
GGL_NODISCARD ggl_status ids_prompt(ask *a, ask_prompt *p, const int32_t *id, size_t n,
                                    ggl_error *err);

#endif
