/* A conversation as a value: messages with roles, and variables of chat templates, such as tools. Everybody who has one, be it
 * the body of a request, a file or a struct, reads it into this once; llm_chat_prompt makes prompts of it.
 *
 *     llm_talk *t;
 *     if (llm_talk_new(&t, &err) != GGL_OK ||
 *         llm_talk_add(t, "user", (ggl_str){"Hi", 2}, &err) != GGL_OK ||
 *         llm_chat_prompt(chat, t, &(llm_chat_params){.end = LLM_CHAT_ASKS}, &prompt, &n, &err) != GGL_OK) ...
 *     llm_talk_free(t);
 *
 * What is read always has one form, whatever form it was given in: a content is a text, a call has a function with a name and
 * arguments, and these are an object unless they are the text of none. What a template wants in its place is the template's
 * matter (llm/internal/chat.h).
 *
 * Memory: what a conversation holds goes with it, also that of messages that were removed. Threads: one at a time uses a
 * conversation; any number may read one that nobody changes. */
#ifndef LLM_TALK_H
#define LLM_TALK_H

#include <stdbool.h>

#include "ggl/str.h"
#include "ggl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_talk llm_talk;
struct json_value; /* models/common/json.h */

/* A call of a tool. */
typedef struct llm_talk_call {
    ggl_str id; /* s NULL: it has none */
    ggl_str name;
    const struct json_value *arguments; /* an object, or a text that is none */
} llm_talk_call;

/* A message. Texts and values are valid until the conversation is freed. */
typedef struct llm_talk_message {
    ggl_str role;
    ggl_str content;           /* s NULL: it has none, as beside calls or reasoning */
    ggl_str reasoning;         /* the same */
    ggl_str name, call_id;     /* the same; of the result of a tool: which one, and of which call */
    const llm_talk_call *call; /* [n_calls] */
    size_t n_calls;
    const ggl_str *
        reference; /* [n_references]: tools that are not shown from the beginning, which the result of a search names */
    size_t n_references;
    /* All members, also those that templates alone know, in the order in which they were given; without those that are null or
     * an empty list of calls. */
    const struct json_value *object;
} llm_talk_message;

/* How the contents of messages are read. Without one, parts are texts, and pictures and sounds are refused. */
typedef struct llm_part_reader {
    /* Reads a part of a list into *text, valid until the next call. *stands: it is the mark of a picture or a sound, beside
     * which no line break stands. in_result: the message is the result of a tool. */
    ggl_status (*part)(void *ctx, const struct json_value *part, bool in_result, ggl_str *text,
                       bool *stands, ggl_error *err);
    /* The same for a content that is a text; NULL: it is as it is. */
    ggl_status (*text)(void *ctx, ggl_str given, ggl_str *text, ggl_error *err);
    void *ctx;
} llm_part_reader;

/* An empty conversation. GGL_NOMEM; on failure *out is NULL. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status llm_talk_new(llm_talk **out, ggl_error *err);
/* Reads {"messages": [{"role": "user", "content": "Hi"}, ..], ..}; other names are variables. The text is copied. `name`: the
 * file's, with which messages begin; NULL: it is none. GGL_FORMAT: it is no JSON, has no list of messages, or as llm_talk_add_value, whose statuses it has, too;
 * GGL_LIMIT; GGL_NOMEM. On failure *out is NULL. */
GGL_NODISCARD ggl_status llm_talk_read(llm_talk **out, ggl_str json, const char *name,
                                       const llm_part_reader *reader, ggl_error *err);
/* A conversation with the first n messages of another one, and its variables, of which all must live as long. GGL_NOMEM; on
 * failure *out is NULL. */
GGL_NODISCARD ggl_status llm_talk_copy(llm_talk **out, const llm_talk *of, size_t n,
                                       ggl_error *err);
GGL_INTERNAL_API void llm_talk_free(llm_talk *t);

/* --- messages ----------------------------------------------------------------------------------- */

size_t llm_talk_n(const llm_talk *t);
/* Valid until a message is added or removed. */
GGL_INTERNAL_API const llm_talk_message *llm_talk_at(const llm_talk *t, size_t i);

/* Adds a message at the end, of copies. Bytes of the content that are not UTF-8 become U+FFFD. GGL_LIMIT: it has 4 GiB; GGL_NOMEM. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status llm_talk_add(llm_talk *t, const char *role,
                                                       ggl_str content, ggl_error *err);
/* Adds a message of JSON, which must live as long. reader: NULL: the usual one. The list of parts of a content becomes a text with
 * line breaks between the parts. GGL_FORMAT: it is no object with a "role", and a content, calls or reasoning in a form that is
 * known; as reader->part; GGL_NOMEM. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status llm_talk_add_value(llm_talk *t,
                                                             const struct json_value *message,
                                                             const llm_part_reader *reader,
                                                             ggl_error *err);
/* The same from a text, which is copied. `name`: the text's, for messages. */
GGL_NODISCARD ggl_status llm_talk_add_json(llm_talk *t, ggl_str json, const char *name,
                                           ggl_error *err);
/* Adds a text to the content of the last message. GGL_USAGE: there is none; GGL_LIMIT; GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_talk_append(llm_talk *t, ggl_str text, ggl_error *err);
/* Keeps the first n messages. */
void llm_talk_cut(llm_talk *t, size_t n);
/* Sets the text of the system message, which is the first one; an empty text removes it. GGL_NOMEM;
 * the conversation is then as before. */
GGL_NODISCARD ggl_status llm_talk_set_system(llm_talk *t, ggl_str text, ggl_error *err);

/* Turns: where a conversation can be shortened. Returns the index after the system messages at the
 * start. */
size_t llm_talk_begin(const llm_talk *t);
/* Returns the index of the first message of a user after message i; the number of messages: none. */
size_t llm_talk_next_turn(const llm_talk *t, size_t i);

/* --- variables ---------------------------------------------------------------------------------- */

/* Sets variables from the text of a JSON object, which is copied; a name that is there already gets the new value. `name`: the
 * text's, for messages. GGL_FORMAT: no object, or it has "messages"; GGL_LIMIT: too many; GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_talk_set(llm_talk *t, ggl_str json, const char *name, ggl_error *err);
/* Sets one; name and value must live as long. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status llm_talk_put(llm_talk *t, ggl_str name,
                                                       const struct json_value *value,
                                                       ggl_error *err);
/* Returns a variable, such as "tools"; NULL: it is not set, or null. */
GGL_INTERNAL_API const struct json_value *llm_talk_get(const llm_talk *t, const char *name);
/* Returns the k-th variable's name; s NULL: there are k or fewer. */
ggl_str llm_talk_variable(const llm_talk *t, size_t k, const struct json_value **value);

/* Gets the tools that can be called now: those of "tools", but of those that are deferred, {"defer_loading": true, ..}, only those that results have named.
 * NULL: there are none. Valid until the conversation is freed. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_talk_callable(llm_talk *t, const struct json_value **out,
                                           ggl_error *err);

/* Writes the conversation as JSON, a message on each line. The caller frees *text, of *n bytes and a NUL, by ggl_free.
 * GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_talk_json(const llm_talk *t, char **text, size_t *n, ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
