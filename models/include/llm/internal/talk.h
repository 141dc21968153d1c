/* A conversation: messages with roles, and further variables of its chat template. It is read and
 * written as the JSON that llm_chat_prompt takes.
 *
 *     llm_talk *t;
 *     if (llm_talk_new(&t, &err) != GGL_OK ||
 *         llm_talk_add(t, "user", (ggl_str){"Hi", 2}, &err) != GGL_OK) ...
 *     if (llm_talk_json(t, 0, &json, &n, &err) != GGL_OK) ...
 *     const ggl_str vars[] = {{json, n}, {"{\"add_generation_prompt\": true}", 31}};
 *     llm_chat_prompt(chat, vars, 2, NULL, &prompt, &n_prompt, &err);
 *
 * Threads: a conversation belongs to one thread at a time. */
#ifndef LLM_TALK_H
#define LLM_TALK_H

#include "ggl/str.h"
#include "ggl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_talk llm_talk;

/* An empty conversation. GGL_NOMEM; on failure *out is NULL. */
GGL_NODISCARD ggl_status llm_talk_new(llm_talk **out, ggl_error *err);
/* Reads {"messages": [{"role": "user", "content": "Hi"}, ..], ..}. All names are kept, also those of
 * messages (tool_calls, ..). `name`: the text's, for messages. GGL_FORMAT: it is no JSON, or a message is
 * no object with a "role" and a content: a string or a list, or none beside "tool_calls"; GGL_LIMIT;
 * GGL_NOMEM. On failure *out is NULL. */
GGL_NODISCARD ggl_status llm_talk_read(llm_talk **out, ggl_str json, const char *name,
                                       ggl_error *err);
void llm_talk_free(llm_talk *t);

/* The number of messages, and what they say. The content is {NULL, 0} if it is no string. Strings
 * are valid until the message is removed. */
size_t llm_talk_n(const llm_talk *t);
ggl_str llm_talk_role(const llm_talk *t, size_t i);
ggl_str llm_talk_content(const llm_talk *t, size_t i);
/* The calls of tools in a message, each as a line of JSON, {"name": .., "arguments": ..}, with a newline
 * after it; {NULL, 0} if none. */
ggl_str llm_talk_calls(const llm_talk *t, size_t i);

/* Adds a message at the end. Bytes of the content that are not UTF-8 become U+FFFD. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_talk_add(llm_talk *t, const char *role, ggl_str content,
                                      ggl_error *err);
/* The same from the text of a JSON object with a "role", such as one with tool_calls. GGL_FORMAT: it is
 * none. `name`: the text's, for messages. */
GGL_NODISCARD ggl_status llm_talk_add_json(llm_talk *t, ggl_str json, const char *name,
                                           ggl_error *err);
/* Keeps the first n messages. */
void llm_talk_cut(llm_talk *t, size_t n);
/* Sets the text of the system message, which is the first one; an empty text removes it. GGL_NOMEM;
 * the conversation is then as before. */
GGL_NODISCARD ggl_status llm_talk_set_system(llm_talk *t, ggl_str text, ggl_error *err);
/* Sets variables besides the messages, from the text of a JSON object; a name that is there already gets
 * the new value. `name`: the text's, for messages. GGL_FORMAT: no object, or it has "messages". */
GGL_NODISCARD ggl_status llm_talk_set(llm_talk *t, ggl_str json, const char *name, ggl_error *err);

/* Turns: where a conversation can be shortened. Returns the index after the system messages at the
 * start. */
size_t llm_talk_begin(const llm_talk *t);
/* Returns the index of the first message of a user after message i; the number of messages: none. */
size_t llm_talk_next_turn(const llm_talk *t, size_t i);

/* Writes the conversation as JSON, a message on each line: the variables, the system messages at the
 * start, and those from index `first` on (0: all). The caller frees *text, of *n bytes and a NUL, by
 * ggl_free. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_talk_json(const llm_talk *t, size_t first, char **text, size_t *n,
                                       ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
