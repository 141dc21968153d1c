/* Puts messages of forms that are not OpenAI's together, in ask.talk:
 *
 *     talk_writer t;
 *     if (talk_start(&t, a, err) != GGL_OK) ..
 *     talk_begin(&t, "user");
 *     talk_text(&t, text, "\n");
 *     talk_end_message(&t);
 *     talk_bool(&t, "enable_thinking", true); // a variable of the template
 *     st = talk_finish(&t, err);              // frees the writer
 *
 * Text, reasoning and calls of a message are collected until it ends. Only talk_finish fails: it gives the first error. */
#ifndef LLM_SERVER_API_TALK_H
#define LLM_SERVER_API_TALK_H

#include "ask.h"
#include "common/json_make.h"
#include "common/json_write.h"
#include "llm/internal/talk.h"

/* What asks the model for a summary of the conversation, and what stands before a summary that it has written. */
#define TALK_WISH                                                                                  \
    "Sum up this conversation for someone who will continue it and sees nothing else of it: the "  \
    "task, what was done and found, decisions, names of files and places in them, and what "       \
    "remains to be done. Write only the summary."
#define TALK_SUMMARY "Summary of the conversation before this point:\n\n"

typedef struct talk_writer {
    ask *a;
    ggl_status status;
    ggl_error err;
    size_t n_messages; /* that were begun */
    /* Of the current message: */
    const char *role;
    llm_json_out text, reasoning;
    json_value *call; /* [n_calls] */
    size_t n_calls, cap_calls;
    json_value *reference; /* [n_references]: names of tools that a search has found */
    size_t n_references, cap_references;
} talk_writer;

/* Begins a conversation without messages. GGL_NOMEM. */
GGL_NODISCARD ggl_status talk_start(talk_writer *t, ask *a, ggl_error *err);
void talk_begin(talk_writer *t, const char *role);
/* Append to the message's text, or reasoning. `between` separates it from the text before, if there is any. */
typedef void talk_adder(talk_writer *t, ggl_str s, const char *between);
talk_adder talk_text, talk_reasoning;
/* Adds a call of a tool. id.s NULL: it has none. arguments: an object, or the text of one; NULL: none. */
void talk_call(talk_writer *t, ggl_str id, ggl_str name, const json_value *arguments);
/* Adds the name of a tool that a search has found. */
void talk_reference(talk_writer *t, ggl_str name);
void talk_end_message(talk_writer *t);
/* The same for a message that may answer a call, the one of this id and function. Each may be {NULL, 0}. */
void talk_end_result(talk_writer *t, ggl_str call_id, ggl_str name);
/* Adds a whole message that has nothing but a text. */
void talk_message(talk_writer *t, const char *role, ggl_str text);

/* Variables of the template; those of ask.tools are set by talk_finish. Names and strings must live as long as the ask. */
void talk_bool(talk_writer *t, const char *name, bool value);
void talk_string(talk_writer *t, const char *name, ggl_str value);
void talk_value(talk_writer *t, ggl_str name, const json_value *value);

/* Sets the tools, which the model is shown unless ask.tool_choice says that it is not, and frees the writer. ask.tools are then those that it can call
 * now: of deferred ones, those that were found. */
GGL_NODISCARD ggl_status talk_finish(talk_writer *t, ggl_error *err);
void talk_free(talk_writer *t); /* in place of talk_finish, after an error */

#endif
