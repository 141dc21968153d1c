/* Writes a conversation in OpenAI's form, which chat templates read, into ask.talk:
 *
 *     talk_writer t = {0};
 *     talk_begin(&t, "user");
 *     talk_text(&t, text, "\n");
 *     talk_end_message(&t);
 *     talk_tools(&t, tools);                 // perhaps: the text of a list
 *     talk_bool(&t, "enable_thinking", true); // perhaps: a variable of the template
 *     st = talk_finish(&t, a, err);           // frees the writer
 *
 * Nothing fails before talk_finish, which reports that memory ran out. */
#ifndef LLM_SERVER_API_TALK_H
#define LLM_SERVER_API_TALK_H

#include "ask.h"
#include "common/json_write.h"

typedef struct talk_writer {
    llm_json_out out;
    size_t n_messages;
    bool is_ended;                       /* the list of messages is complete */
    llm_json_out text, reasoning, calls; /* of the message under way */
    ggl_str name, call_id;
    size_t n_calls;
} talk_writer;

void talk_begin(talk_writer *t, const char *role);
/* Append to the message's text, or reasoning. `between`: what separates it from the text before. */
void talk_text(talk_writer *t, ggl_str s, const char *between);
void talk_reasoning(talk_writer *t, ggl_str s, const char *between);
/* Adds a call of a tool. id.s NULL: it has none. arguments: an object. */
void talk_call(talk_writer *t, ggl_str id, ggl_str name, const json_value *arguments);
/* Says which call the message, of the role tool, answers. Each may be {NULL, 0}. */
void talk_result_of(talk_writer *t, ggl_str call_id, ggl_str name);
void talk_end_message(talk_writer *t);

/* After the last message: variables of the template. */
void talk_tools(talk_writer *t, ggl_str tools);
void talk_bool(talk_writer *t, const char *name, bool value);
void talk_string(talk_writer *t, const char *name, ggl_str value);

/* Sets a->talk. GGL_NOMEM. */
GGL_NODISCARD ggl_status talk_finish(talk_writer *t, ask *a, ggl_error *err);
void talk_free(talk_writer *t); /* in place of talk_finish, after an error */

#endif
