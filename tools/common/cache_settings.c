#include "cache_settings.h"
#include "ggl/internal/gguf.h"

#include <stdio.h>
#include <string.h>

static void append(char *text, size_t size, const char *a, const char *b) {
    const size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s%s", used ? ", " : "", a, b);
}

/* The file's name without folders: another file of the same name is recognised by its data. */
static void append_adapter(char *text, size_t size, const llm_adapter_use *use) {
    char name[300];
    const char *path = ggl_gguf_name(llm_adapter_file(use->adapter)), *slash = strrchr(path, '/');
    snprintf(name, sizeof name, "%.200s:%.9g", slash ? slash + 1 : path, use->scale);
    append(text, size, "--lora ", name);
}

void cache_settings(char *text, size_t size, bool f16_as_bf16, const tool_adapters *adapters,
                    const llm_placement *p) {
    *text = '\0';
    if (f16_as_bf16)
        append(text, size, "--f16-as-bf16", "");
    for (size_t i = 0; i < adapters->n; i++)
        append_adapter(text, size, &adapters->use[i]);
    for (int i = 0; i < llm_placement_n_backends(p); i++) {
        const ggl_backend *b = llm_placement_backend(p, i);
        if (strncmp(b->name, "cpu", 3) != 0)
            append(text, size, "on ", b->description);
    }
}
