#include "peft_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "folder_name.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/text.h"
#include "shell_quote.h"

static bool has(const char *folder, const char *name) {
    char path[OS_MOST_PATH];
    return (size_t)snprintf(path, sizeof path, "%s/%s", folder, name) < sizeof path &&
           ggl_os_exists(path);
}

/* Writes the path of the folder: `path` itself, or that of a file with weights. False: it is none of PEFT. */
static bool find_folder(const char *path, char folder[OS_MOST_PATH]) {
    const bool is_weights = (ggl_ends_with(path, ".safetensors") || ggl_ends_with(path, ".bin")) &&
                            !ggl_os_is_folder(path);
    size_t n = strlen(path);
    while (is_weights && n > 0 && !ggl_os_separates(path[n - 1]))
        n--;
    n -= is_weights && n > 1; /* the separator */
    snprintf(folder, OS_MOST_PATH, "%.*s", n ? (int)n : 1, n ? path : ".");
    return has(folder, "adapter_config.json");
}

ggl_status llm_peft_refuse(const char *path, ggl_error *err) {
    char folder[OS_MOST_PATH], name[OS_MOST_PATH], in[LLM_SHELL_WORD], out[LLM_SHELL_WORD];
    if (!find_folder(path, folder))
        return GGL_OK;
    char *real = ggl_os_real_path(folder);
    ggl_str own = real ? llm_folder_name(real) : (ggl_str){"", 0};
    if (own.n == 0)
        own = (ggl_str){"adapter", 7};
    snprintf(name, sizeof name, "%.*s.gguf", (int)own.n, own.s);
    free(real);
    return ggl_fail(err, GGL_FORMAT,
                    "%s is %s adapter of PEFT; this makes a GGUF file of it: llm-lora convert %s "
                    "--base MODEL_FOLDER -o %s",
                    path, strcmp(path, folder) == 0 ? "an" : "part of an",
                    llm_shell_quote(in, folder), llm_shell_quote(out, name));
}

ggl_status llm_peft_refuse_folder(const char *path, ggl_error *err) {
    char word[LLM_SHELL_WORD];
    const ggl_status st = llm_peft_refuse(path, err);
    if (st != GGL_OK || !ggl_os_is_folder(path))
        return st;
    if (has(path, "config.json"))
        return ggl_fail(err, GGL_FORMAT,
                        "%s is a whole model, not an adapter; this makes an adapter of how it "
                        "differs from another one: llm-lora extract BASE %s -o adapter.gguf",
                        path, llm_shell_quote(word, path));
    return ggl_fail(err, GGL_FORMAT, "%s is a folder, not an adapter's file", path);
}
