/* The messages of /v1/chat/completions, as a conversation for a template. */
#ifndef LLM_SERVER_API_OPENAI_MESSAGES_H
#define LLM_SERVER_API_OPENAI_MESSAGES_H

#include "api_openai.h"

/* True for a message of the assistant with a content and without calls. */
bool openai_can_continue(const json_value *message);

/* Reads "messages" of the request into ask.talk. Errors name the message. */
ggl_status openai_add_messages(ask *a, ggl_error *err);

#endif
