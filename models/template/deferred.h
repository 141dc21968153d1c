/* Tools that the model is not shown from the beginning, {"defer_loading": true, ..}: it searches for them, and the result of the search names those that were
 * found (llm_talk_message.reference). Their definitions stand there, so that the prompt before it stays as it is. */
#ifndef LLM_TEMPLATE_DEFERRED_H
#define LLM_TEMPLATE_DEFERRED_H

#include "llm/internal/chat.h"
#include "value.h"

/* Which tools are shown from the beginning. Of a list without deferred ones it is the same list; NULL: there are none. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_tools_shown(const json_value **out, const json_value *tools,
                                         ggl_arena *arena, ggl_error *err);

/* The text of tools as a template writes them behind others; *text is NULL if it does not write them in one place. */
typedef ggl_status llm_tools_text(void *ctx, const json_value *tools, char **text, size_t *n,
                                  ggl_error *err);
/* Makes the texts of the messages that name tools, by their index in the conversation: of a tool the first time its definition, else its name. *texts is NULL
 * if none names any. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_deferred_texts(const ggl_str **texts, const llm_talk *t,
                                            const llm_chat_params *p, ggl_arena *arena,
                                            llm_tools_text *write, void *ctx, ggl_error *err);

#endif
