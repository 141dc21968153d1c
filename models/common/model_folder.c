#include "model_folder.h"

#include <stdio.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/text.h"
#include "model_name.h"
#include "peft_folder.h"
#include "split_name.h"

enum { MOST_NAME = 256 }; /* bytes of a file's name, and its end */

bool llm_is_folder(const char *path) {
    return ggl_os_is_folder(path);
}

bool llm_folder_has(const char *folder, const char *name) {
    char path[OS_MOST_PATH];
    return (size_t)snprintf(path, sizeof path, "%s/%s", folder, name) < sizeof path &&
           ggl_os_exists(path);
}

bool llm_folder_is_model(const char *folder) {
    bool gguf = false, safetensors = false;
    os_folder *d = ggl_os_folder_open(folder);
    for (const char *e; d && (e = ggl_os_folder_next(d));) {
        gguf |= ggl_ends_with(e, ".gguf");
        safetensors |= ggl_ends_with(e, ".safetensors");
    }
    if (d)
        ggl_os_folder_close(d);
    return (llm_folder_has(folder, "config.json") || llm_folder_has(folder, "modules.json")) &&
           (safetensors || !gguf);
}

/* The GGUF files of a folder that a person may mean. */
typedef struct gguf_files {
    char *first, *part,
        *aside; /* the first by name: of a complete model; of a split model that lacks parts; a projector
                                   or an importance matrix. NULL: none */
    size_t n;    /* complete models */
    bool failed; /* out of memory */
} gguf_files;

static void keep_first(gguf_files *f, char **kept, const char *name) {
    const size_t size = strlen(name) + 1;
    if (*kept && strcmp(*kept, name) <= 0)
        return;
    ggl_free(*kept);
    *kept = ggl_calloc(size, 1);
    if (*kept)
        memcpy(*kept, name, size);
    f->failed |= !*kept;
}

/* Returns the first part that the split model of a file in the folder lacks; 0: none, or the file is
 * whole. The search ends at that part, so a name cannot make it longer than the folder is. */
static int lacks_part(const char *folder, const char *name) {
    const int n = llm_split_n_parts(name);
    char part[MOST_NAME];
    for (int k = 1; k <= n && n > 1; k++) {
        llm_split_part_path(part, sizeof part, name, k);
        if (!llm_folder_has(folder, part))
            return k;
    }
    return 0;
}

static gguf_files gguf_in(const char *folder) {
    gguf_files f = {0};
    os_folder *d = ggl_os_folder_open(folder);
    for (const char *e; d && (e = ggl_os_folder_next(d));) {
        if (!ggl_ends_with(e, ".gguf"))
            continue;
        const bool aside = llm_model_name_is_aside(e);
        const bool model = !aside && llm_split_is_first(e) && !lacks_part(folder, e);
        keep_first(&f, aside ? &f.aside : model ? &f.first : &f.part, e);
        f.n += model;
    }
    if (d)
        ggl_os_folder_close(d);
    return f;
}

ggl_status llm_folder_refuse_params(const char *folder, ggl_error *err) {
    if (!llm_folder_has(folder, "params.json") || llm_folder_has(folder, "config.json") ||
        llm_folder_has(folder, "modules.json"))
        return GGL_OK;
    return ggl_fail(err, GGL_IO,
                    "%s has params.json in place of config.json: weights in the form of their "
                    "authors (consolidated.safetensors, consolidated.00.pth) are not read; the "
                    "same model as transformers reads it, with config.json and model.safetensors, "
                    "or a GGUF file is needed",
                    folder);
}

static ggl_status refuse(const char *folder, const gguf_files *f, ggl_error *err) {
    char part[MOST_NAME];
    if (f->failed)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    if (f->first)
        return ggl_fail(err, GGL_IO, "%s is a folder, not a file", folder);
    if (f->part) {
        const int lacks = lacks_part(folder, f->part);
        llm_split_part_path(part, sizeof part, f->part, lacks);
        return ggl_fail(
            err, GGL_IO,
            "%s is a folder with only a part of a split model; %s, part %d of %d, is missing",
            folder, part, lacks, llm_split_n_parts(f->part));
    }
    if (f->aside)
        return ggl_fail(err, GGL_IO,
                        "%s is a folder without a model; its %s is a projector or an importance "
                        "matrix by its name",
                        folder, f->aside);
    ggl_status st = llm_peft_refuse(folder, err);
    if (st == GGL_OK)
        st = llm_folder_refuse_params(folder, err);
    if (st != GGL_OK)
        return st;
    return ggl_fail(err, GGL_IO,
                    "%s is a folder without a GGUF file, and without the config.json of a Hugging "
                    "Face folder",
                    folder);
}

ggl_status llm_folder_refuse(const char *folder, char **meant, size_t *n, ggl_error *err) {
    const gguf_files f = gguf_in(folder);
    const ggl_status st = refuse(folder, &f, err);
    *meant = f.first;
    *n = f.n;
    ggl_free(f.part);
    ggl_free(f.aside);
    return st;
}
