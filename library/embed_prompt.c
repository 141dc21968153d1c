/* The prompts of embedding models: texts that are put before queries and documents, as sentence-transformers has them. */
#include <stdio.h>
#include <string.h>

#include "context.h"
#include "embed_task.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/show.h"

#define KEYS         "sentence_transformers."
#define PROMPT       KEYS "prompt."
#define DEFAULT_NAME KEYS "default_prompt"

enum { MOST_NAME = 100, MOST_LISTED = 400 };

/* Names under which the prompt of a kind may be; the kind is the first. */
static const char *const kinds[][4] = {{"query", NULL}, {"document", "passage", "corpus", NULL}};

/* Gets a prompt by its name. 1: it is there; 0: it is not; -1: it is no text, which is reported. */
static int find_named(const llm_context *c, ggl_str name, ggl_str *out, ggl_error *err) {
    char key[sizeof PROMPT + MOST_NAME];
    if (name.n > MOST_NAME)
        return 0;
    snprintf(key, sizeof key, PROMPT "%.*s", (int)name.n, name.s);
    return ggl_gguf_get_string(llm_model_file(c->model), key, out, err);
}

static ggl_status find_default(const llm_context *c, ggl_str *out, ggl_error *err) {
    ggl_str name;
    int found = ggl_gguf_get_string(llm_model_file(c->model), DEFAULT_NAME, &name, err);
    *out = (ggl_str){"", 0};
    if (found <= 0 || name.n == 0)
        return found < 0 ? GGL_FORMAT : GGL_OK;
    found = find_named(c, name, out, err);
    if (found != 0)
        return found < 0 ? GGL_FORMAT : GGL_OK;
    const int n = (int)ggl_utf8_cut(name.s, name.n, MOST_NAME);
    return ggl_fail(err, GGL_FORMAT,
                    "the model's key " DEFAULT_NAME " is '%.*s', but there is no key " PROMPT
                    "%.*s",
                    n, name.s, n, name.s);
}

/* Gets the first prompt of these names, else the default one. */
static ggl_status find_kind(const llm_context *c, const char *const *name, ggl_str *out,
                            ggl_error *err) {
    for (; *name; name++) {
        const int found = find_named(c, (ggl_str){*name, strlen(*name)}, out, err);
        if (found != 0)
            return found < 0 ? GGL_FORMAT : GGL_OK;
    }
    return find_default(c, out, err);
}

/* Says that there is no such prompt, and which there are. */
static ggl_status refuse(const llm_context *c, const char *name, ggl_error *err) {
    char names[MOST_LISTED] = "";
    const size_t head = sizeof PROMPT - 1;
    size_t n, used = 0;
    const char *key;
    for (size_t k = 0; (key = llm_context_key(c, k, &n)); k++)
        if (n > head && memcmp(key, PROMPT, head) == 0 && used + n - head + 3 < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%.*s", used ? ", " : "",
                                     (int)(n - head), key + head);
    return used > 0 ? ggl_fail(err, GGL_NOT_FOUND,
                               "the model has no prompt '%.100s'; its prompts are %s", name, names)
                    : ggl_fail(err, GGL_NOT_FOUND,
                               "the model has no prompt '%.100s': its file has no keys " PROMPT "*",
                               name);
}

static ggl_status find(const llm_context *c, const char *name, ggl_str *out, ggl_error *err) {
    /* an adapter's prompt is for the task of that name */
    const ggl_status st = llm_task_prompt(c, name, out, err);
    if (st != GGL_OK || out->s)
        return st;
    if (!name)
        return find_default(c, out, err);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (strcmp(name, kinds[k][0]) == 0)
            return find_kind(c, kinds[k], out, err);
    const int found = find_named(c, (ggl_str){name, strlen(name)}, out, err);
    return found < 0 ? GGL_FORMAT : found == 0 ? refuse(c, name, err) : GGL_OK;
}

ggl_status llm_embed_prompt(const llm_context *c, const char *name, char **text, size_t *n,
                            ggl_error *err) {
    ggl_str found;
    *text = NULL;
    *n = 0;
    const ggl_status st = find(c, name, &found, err);
    if (st != GGL_OK)
        return st;
    *text = ggl_calloc(found.n + 1, 1);
    if (!*text)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    if (found.n > 0)
        memcpy(*text, found.s, found.n);
    *n = found.n;
    return GGL_OK;
}
