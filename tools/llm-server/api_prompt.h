/* Prompts that are no conversation: texts, lists of ids and texts, and objects with pictures or sounds. */
#ifndef LLM_SERVER_API_PROMPT_H
#define LLM_SERVER_API_PROMPT_H

#include "dialect.h"

/* Reads a field whose value is one prompt, or a list of them. A prompt is
 *   - a string,
 *   - a list of ids, or of ids and strings: a list with a number is one prompt, any other one is several,
 *   - {"prompt_string": a string, "multimodal_data": [base64 ..]}, where <__media__> stands for a picture or a sound,
 *   - {"content": [part ..]}, with OpenAI's parts of a message.
 * Errors begin with the field's name. GGL_USAGE, GGL_LIMIT, GGL_NOMEM. */
GGL_NODISCARD ggl_status prompt_read_all(ask *a, const json_value *v, const char *name,
                                         const server_facts *facts, ggl_error *err);
/* Sets a prompt to ids, which are copied into the ask's arena. GGL_NOMEM. */
GGL_NODISCARD ggl_status prompt_of_ids(ask *a, ask_prompt *p, const int32_t *id, size_t n,
                                       ggl_error *err);

#endif
