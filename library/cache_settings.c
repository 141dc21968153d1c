#include "cache_settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/gguf.h"
#include "ggl/internal/os_fs.h"

static bool append(char *text, const char *a, const char *b) {
    const size_t used = strlen(text), room = LLM_CACHE_SETTINGS - used;
    return (size_t)snprintf(text + used, room, "%s%s%s", used ? ", " : "", a, b) < room;
}

/* The file's name without folders: another file of the same name is recognised by its data. */
static bool append_adapter(char *text, const llm_adapter_use *use) {
    char name[300];
    const char *path = ggl_gguf_name(llm_adapter_file(use->adapter)),
               *slash = ggl_os_last_separator(path);
    snprintf(name, sizeof name, "%.200s:%.9g", slash ? slash + 1 : path, use->scale);
    if (llm_adapter_describe(use->adapter).n_directions == 0)
        return append(text, "adapter ", name);
    const size_t n = strlen(name);
    if (use->first > 0 || use->last > 0)
        snprintf(name + n, sizeof name - n, " (layers %" PRId64 " to %" PRId64 ")", use->first,
                 use->last);
    return append(text, "control vector ", name);
}

bool llm_cache_settings(char text[LLM_CACHE_SETTINGS], const llm_adapter_use *use, size_t n,
                        const llm_placement *p) {
    bool fits = true;
    *text = '\0';
    if (llm_placement_params(p)->f16_as_bf16)
        fits = append(text, "f16 as bf16", "");
    for (size_t i = 0; i < n; i++)
        fits = append_adapter(text, &use[i]) && fits;
    for (int i = 0; i < llm_placement_n_backends(p); i++) {
        const ggl_backend *b = llm_placement_backend(p, i);
        if (strcmp(b->alike, "cpu") != 0)
            fits = append(text, "on ", b->description) && fits;
    }
    return fits;
}
