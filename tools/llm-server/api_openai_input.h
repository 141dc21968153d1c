/* The input of /v1/responses, as messages for a template. */
#ifndef LLM_SERVER_API_OPENAI_INPUT_H
#define LLM_SERVER_API_OPENAI_INPUT_H

#include "api_openai.h"

/* How errors name the k-th item of what the request has named (api_recall.h), which is no item of its "input". */
#define OPENAI_NAMED_ITEM "item %zu of what is named"

/* Reads "instructions" and "input" of the request into the writer. Items that are one turn of the assistant (reasoning, a
 * message, calls) become one message. GGL_USAGE and GGL_UNSUPPORTED name the item. */
ggl_status openai_add_input(ask *a, talk_writer *t, ggl_error *err);
/* True if the last item is a "compaction_trigger": the answer sums up the conversation. */
bool openai_wants_compaction(const ask *a);
/* Returns a member of the last item "configuration_update" that has it; NULL: none. */
const json_value *openai_last_update(const ask *a, const char *name);

#endif
