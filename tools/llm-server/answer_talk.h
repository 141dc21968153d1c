/* Calls of tools in conversations, as a chat template takes them. */
#ifndef LLM_SERVER_ANSWER_TALK_H
#define LLM_SERVER_ANSWER_TALK_H

#include "common/json_write.h"
#include "llm/internal/chat.h"

/* The readers of requests write arguments of calls as objects, and an empty content beside calls as "", which most templates
 * take. Some take arguments only as text, and some show calls only where the content is null. Finds out by
 * rendering a small conversation, and writes the talk to *out as the template takes it. *out stays empty if the talk can
 * be used as it is. To be freed with ggl_free(out->s). GGL_NOMEM. */
ggl_status answer_fit_talk(const llm_chat *chat, ggl_str talk, llm_json_out *out, ggl_error *err);

#endif
