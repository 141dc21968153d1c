/* Writes a conversation in OpenAI's form, which chat templates read, into ask.talk:
 *
 *     talk_writer t = {0};
 *     talk_begin(&t, "user");
 *     talk_text(&t, text, "\n");
 *     talk_end_message(&t);
 *     talk_tools(&t, tools);                  // optional: the text of a list
 *     talk_bool(&t, "enable_thinking", true); // optional: a variable of the template
 *     st = talk_finish(&t, a, err);           // frees the writer
 *
 * Text, reasoning and calls of a message are collected until it ends. Only talk_finish fails, if memory has run out. */
#ifndef LLM_SERVER_API_TALK_H
#define LLM_SERVER_API_TALK_H

#include "ask.h"
#include "common/json_write.h"

typedef struct talk_writer {
    llm_json_out out;
    size_t n_messages;
    bool is_ended; /* the list of messages is complete */
    llm_json_out text, reasoning,
        calls; /* of the current message, as far as they are not written */
    size_t n_calls;
} talk_writer;

void talk_begin(talk_writer *t, const char *role);
/* Writes a string of the message at once: before its content. */
void talk_member(talk_writer *t, const char *name, ggl_str value);
/* Append to the message's text, or reasoning. `between` separates it from the text before, if there is any. */
typedef void talk_adder(talk_writer *t, ggl_str s, const char *between);
talk_adder talk_text, talk_reasoning;
/* Adds a call of a tool. id.s NULL: it has none. Arguments that are the text of an object are written as an object, which is
 * what templates expect; without arguments (NULL, null or an empty text) the object is empty. */
void talk_call(talk_writer *t, ggl_str id, ggl_str name, const json_value *arguments);
/* Write the reasoning or the calls now, also if there are none: before the content. */
void talk_put_reasoning(talk_writer *t);
void talk_put_calls(talk_writer *t);
/* Writes the content, then reasoning and calls that are left, and ends the message. */
void talk_end_message(talk_writer *t);
/* The same for a message that may answer a call, the one of this id and function. Each may be {NULL, 0}. */
void talk_end_result(talk_writer *t, ggl_str call_id, ggl_str name);
/* Writes a whole message that has nothing but a text. */
void talk_message(talk_writer *t, const char *role, ggl_str text);

/* After the last message: variables of the template. */
void talk_tools(talk_writer *t, ggl_str tools);
void talk_bool(talk_writer *t, const char *name, bool value);
void talk_string(talk_writer *t, const char *name, ggl_str value);
void talk_value(talk_writer *t, ggl_str name, const json_value *value);

/* Sets a->talk. GGL_NOMEM. */
GGL_NODISCARD ggl_status talk_finish(talk_writer *t, ask *a, ggl_error *err);
void talk_free(talk_writer *t); /* in place of talk_finish, after an error */

#endif
