/* Conversations as prompts: the chat template of a model file, with the variables that the file's
 * tokenizer gives it.
 *
 *     llm_chat *chat;
 *     if (llm_chat_new(&chat, file, tokenizer, NULL, &err) != GGL_OK) ...  // GGL_NOT_FOUND: none
 *     ggl_str talk = ..;   // {"messages": [{"role": "user", "content": "Hi"}],
 *                          //  "add_generation_prompt": true}
 *     if (llm_chat_prompt(chat, &talk, 1, NULL, &text, &n, &err) != GGL_OK) ...
 *     llm_tokenize(tokenizer, text, n, LLM_TOKENIZE_SPECIAL, &ids, &err);
 *     ggl_free(text);
 *     llm_chat_free(chat);
 *
 * Threads: an opened llm_chat does not change, so any number of threads may use it at the same
 * time. */
#ifndef LLM_CHAT_H
#define LLM_CHAT_H

#include "llm/internal/template.h"
#include "llm/internal/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_chat llm_chat;

/* A template to use in place of the file's. */
typedef struct llm_chat_template {
    /* For messages; with text.s NULL: the file's template of this name, such as "tool_use"
     * (tokenizer.chat_template.tool_use), or else the built-in one, such as "chatml". */
    const char *name;
    ggl_str text;
} llm_chat_template;

/* Gets the k-th built-in template: its name, and its text. They are for files without a template, and
 * render plain conversations. False: there are k or fewer. */
bool llm_chat_named(int k, ggl_str *name, ggl_str *text);

/* Parses a template. file and t are needed during the call only; both may be NULL if `with` has a
 * text, or names a built-in template. with NULL: the file's template (tokenizer.chat_template). GGL_NOT_FOUND: the file has no
 * such template; else as llm_template_new. On failure *out is NULL. */
GGL_NODISCARD ggl_status llm_chat_new(llm_chat **out, const ggl_gguf *file, const llm_tokenizer *t,
                                      const llm_chat_template *with, ggl_error *err);
void llm_chat_free(llm_chat *c);
const llm_template *llm_chat_get_template(const llm_chat *c);
/* Returns the template's text, for llm_calls_params. Valid until llm_chat_free. */
ggl_str llm_chat_text(const llm_chat *c);

/* Sets variables for all conversations, the text of a JSON object; later ones, and those of llm_chat_prompt, have
 * priority. name: their source, for messages. Not while another thread uses c. GGL_FORMAT: not an object; GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_chat_set(llm_chat *c, ggl_str vars, const char *name, ggl_error *err);
/* Returns the token's text that is put before prompts because the file demands it (add_bos_token) and the template does not
 * write it; empty: nothing is. Hugging Face's apply_chat_template leaves it out, llama.cpp adds it. */
ggl_str llm_chat_added_bos(const llm_chat *c);
/* leave true: nothing but the template decides, as with Hugging Face. Not while another thread uses c. */
void llm_chat_leave_bos_out(llm_chat *c, bool leave);

/* Renders a conversation: vars are texts of JSON objects, as in llm_template_params. Unless they or llm_chat_set
 * say otherwise, tools and documents are none, add_generation_prompt is false, enable_thinking is true, and bos_token,
 * eos_token, unk_token, pad_token, sep_token, cls_token and mask_token are those of the tokenizer;
 * tokens that it lacks are undefined. For templates that read them, `functions` is the text of tools, and `datetime` the date.
 * The text has all special tokens that the prompt needs, bos
 * included, as the file demands it: tokenize it with LLM_TOKENIZE_SPECIAL alone. name: the source of vars, such as a
 * file, with which messages begin; NULL: "variables" for those about the JSON, else nothing. Statuses
 * of llm_template_render; GGL_FORMAT also if there is no "messages" but the template reads it. */
GGL_NODISCARD ggl_status llm_chat_prompt(const llm_chat *c, const ggl_str *vars, size_t n_vars,
                                         const char *name, char **text, size_t *size,
                                         ggl_error *err);
/* Calls each() for every name of a JSON object that the template does not read, which may be a typing
 * error. Names that conversations often have anyway (tools, documents, add_generation_prompt, now, and
 * those of tokens) are passed over. The name is valid during the call. GGL_FORMAT: vars is no object. */
GGL_NODISCARD ggl_status llm_chat_unread(const llm_chat *c, ggl_str vars,
                                         void (*each)(void *arg, ggl_str name), void *arg,
                                         ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
