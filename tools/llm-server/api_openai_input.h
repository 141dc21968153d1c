/* The input of /v1/responses, as messages for a template. */
#ifndef LLM_SERVER_API_OPENAI_INPUT_H
#define LLM_SERVER_API_OPENAI_INPUT_H

#include "api_openai.h"

/* Reads "instructions" and "input" of the request into the writer. Items that are one turn of the assistant (reasoning, a
 * message, calls) become one message. GGL_USAGE and GGL_UNSUPPORTED name the item. */
ggl_status openai_add_input(ask *a, talk_writer *t, ggl_error *err);

#endif
