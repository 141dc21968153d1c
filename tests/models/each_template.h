/* The chat templates that tests go through: those that are built in, and published ones in the folder GGL_SHARED. */
#ifndef LLM_TEST_EACH_TEMPLATE_H
#define LLM_TEST_EACH_TEMPLATE_H

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "common/text_file.h"
#include "ggl/internal/alloc.h"
#include "llm/internal/chat.h"
#include "test.h"

typedef void template_fn(void *ctx, const char *name, ggl_str text);

/* Each step-th one that is built in. */
static inline void each_built_in(int step, template_fn *fn, void *ctx) {
    ggl_str name, text;
    for (int k = 0; llm_chat_named(k, &name, &text); k += step) {
        char own_name[64];
        snprintf(own_name, sizeof own_name, "%.*s", (int)name.n, name.s);
        fn(ctx, own_name, text);
    }
}

/* That of a file: NAME.jinja, or the member "template" of NAME.json. */
static inline void template_of_file(const char *path, const char *name, template_fn *fn,
                                    void *ctx) {
    ggl_error err = {0};
    char *text = NULL;
    llm_json *doc = NULL;
    size_t n = strlen(name);
    if (n > 6 && strcmp(name + n - 6, ".jinja") == 0) {
        REQUIRE_OK(llm_read_text_file(path, 1 << 22, &text, &n, &err), &err);
        fn(ctx, name, (ggl_str){text, n});
        ggl_free(text);
    } else if (n > 5 && strcmp(name + n - 5, ".json") == 0 &&
               llm_json_read(&doc, path, 1 << 24, &err) == GGL_OK) {
        const json_value *v = llm_json_get_kind(&doc->root, "template", JSON_STRING);
        if (v)
            fn(ctx, name, json_str(v));
        llm_json_free(doc);
    }
}

/* Those of a folder, and of the folders in it if `deep`. */
static inline void templates_of_folder(const char *folder, bool deep, template_fn *fn, void *ctx) {
    DIR *d = opendir(folder);
    for (const struct dirent *e; d && (e = readdir(d));) {
        char path[8192];
        const int n = snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        REQUIRE(n > 0 && (size_t)n < sizeof path);
        if (deep && e->d_name[0] != '.')
            templates_of_folder(path, false, fn, ctx);
        template_of_file(path, e->d_name, fn, ctx);
    }
    if (d)
        closedir(d);
}

static inline bool has_published_templates(void) {
    const char *shared = getenv("GGL_SHARED");
    char path[4096];
    snprintf(path, sizeof path, "%s/chat/llama-3.json", shared ? shared : "");
    return shared && access(path, R_OK) == 0;
}

/* Each published one, which must be there. */
static inline void each_published(template_fn *fn, void *ctx) {
    const char *shared = getenv("GGL_SHARED");
    char folder[4096];
    snprintf(folder, sizeof folder, "%s/chat", shared);
    templates_of_folder(folder, false, fn, ctx);
    snprintf(folder, sizeof folder, "%s/found", shared);
    templates_of_folder(folder, true, fn, ctx);
}

#endif
