/* The messages of /v1/chat/completions, as JSON for a template. */
#ifndef LLM_SERVER_API_OPENAI_MESSAGES_H
#define LLM_SERVER_API_OPENAI_MESSAGES_H

#include "api_openai.h"

/* Reads "messages" of the request and writes `{"messages":[..]`, an object to be continued: developers become
 * systems, functions tools, and contents texts. GGL_USAGE and GGL_UNSUPPORTED name the message. */
ggl_status openai_put_messages(ask *a, llm_json_out *out, ggl_error *err);

#endif
