/* The input of /v1/responses, as messages for a template. */
#ifndef LLM_SERVER_API_OPENAI_INPUT_H
#define LLM_SERVER_API_OPENAI_INPUT_H

#include "api_openai.h"

enum { OPENAI_WHERE = 96 };

/* Writes how errors name the i-th item of a list: "input[1]", or the id of one that was kept and is in no list of the request
 * (api_recall.h). */
void openai_name_item(const ask *a, const json_value *item, size_t i, bool was_kept,
                      char where[OPENAI_WHERE]);

/* Reads "instructions" and the list that ask.talk_name names ("input") into the writer. Items that are one turn of the assistant (reasoning, a
 * message, calls) become one message. GGL_USAGE and GGL_UNSUPPORTED name the item. */
ggl_status openai_add_input(ask *a, talk_writer *t, ggl_error *err);
/* True if the last item is a "compaction_trigger": the answer sums up the conversation. */
bool openai_wants_compaction(const ask *a);
/* Returns a member of the last item "configuration_update" that has it; NULL: none. */
const json_value *openai_last_update(const ask *a, const char *name);

#endif
