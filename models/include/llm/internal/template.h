/* Chat templates: renders the Jinja templates that model files carry (tokenizer.chat_template), as
 * Jinja 3.1 does in the environment of Hugging Face's apply_chat_template: trim_blocks and
 * lstrip_blocks are on, nothing is escaped for HTML, `break`, `continue` and `generation` are
 * statements, and tojson, raise_exception and strftime_now are those of that environment.
 * docs/templates.md lists what is supported; anything else is an error that names it and its line.
 *
 *     llm_template *t;
 *     if (llm_template_new(&t, text, size, "chat template", &err) != GGL_OK) ...
 *     ggl_str vars[] = {{json, n}};       // {"messages": [..], "add_generation_prompt": true}
 *     llm_template_params p = {.size = sizeof p, .vars = vars, .n_vars = 1};
 *     if (llm_template_render(t, &p, &prompt, &n_prompt, &err) != GGL_OK) ...
 *     ggl_free(prompt);
 *     llm_template_free(t);
 *
 * A template comes from a file that may be hostile: it reads nothing but its variables, and its
 * time and memory have limits. Values, expressions and calls are nested at most 500 deep; a thread
 * that parses or renders templates needs a stack of 512 KiB for that. */
#ifndef LLM_TEMPLATE_H
#define LLM_TEMPLATE_H

#include "ggl/str.h"
#include "ggl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_template llm_template;

typedef struct llm_template_params {
    size_t size; /* sizeof(llm_template_params): ggl/internal/params.h */
    /* Texts of JSON objects, UTF-8: their names are the template's variables. If two have the same
     * name, the later one counts. A name that is absent is undefined; null is Jinja's none. The
     * variable "now", a string such as "2025-03-09T14:05:06", is also the time for strftime_now;
     * without it, that is the local time of the call. */
    const ggl_str *vars;
    size_t n_vars;
    size_t max_steps; /* 0: 50 million; about one for each operation and 16 bytes of text */
    size_t
        max_memory; /* bytes of all values and text ever made, not only of live ones; 0: 256 MiB */
    bool refuses_bare; /* the message of raise_exception is its text, without the template's name */
} llm_template_params;

/* Parses a template; `name` is for messages ("NAME:LINE: .."), and is copied, as is the text.
 * GGL_FORMAT: not a template; GGL_UNSUPPORTED: a construct that this interpreter lacks; GGL_LIMIT:
 * nested too deeply, or over 4 MiB; GGL_NOMEM. On failure *out is NULL. */
GGL_NODISCARD ggl_status llm_template_new(llm_template **out, const char *text, size_t size,
                                          const char *name, ggl_error *err);
void llm_template_free(llm_template *t);
/* Renders the template to *text, which the caller frees by ggl_free: *size bytes and a NUL. Several
 * threads may render the same template. GGL_USAGE: raise_exception was called (the message is its
 * text); GGL_FORMAT: a variable is no JSON, or an operation does not suit its values;
 * GGL_UNSUPPORTED; GGL_LIMIT: too many steps or too much memory; GGL_NOMEM. On failure *text is
 * NULL. */
GGL_NODISCARD ggl_status llm_template_render(const llm_template *t, const llm_template_params *p,
                                             char **text, size_t *size, ggl_error *err);
/* True if the template's text mentions the variable, such as "tools". */
bool llm_template_mentions(const llm_template *t, const char *variable);

#ifdef __cplusplus
}
#endif
#endif
