/* The rows of --models. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/input.h"
#include "common/model_name.h"
#include "common/split_name.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/text.h"
#include "llm/internal/convert.h"
#include "llm/internal/load.h"
#include "presets.h"

#define TOOL "llm-server"

enum { MOST_PRESETS = 4 << 20, MOST_PATH = 4096 };

/* --- folders ------------------------------------------------------------------------------------ */

typedef struct folder {
    models *table;
    int argc;
    char **argv;
    size_t n_found;
} folder;

static bool has_end(const char *name, const char *end) {
    const size_t n = strlen(name), n_end = strlen(end);
    return n > n_end && strcmp(name + n - n_end, end) == 0;
}

/* True for files that go with a model: a projector, an importance matrix, a draft. */
static bool is_aside(const char *name) {
    static const char *const words[] = {"draft", "mtp", "eagle"};
    if (llm_model_name_is_aside(name))
        return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (const char *s = ggl_case_find(name, words[i]); s; s = ggl_case_find(s + 1, words[i])) {
            const char after = s[strlen(words[i])];
            if ((s == name || strchr("-_.", s[-1])) &&
                (!after || strchr("-_.3", after))) /* "eagle3", too */
                return true;
        }
    return false;
}

/* Writes the model's name: the file's, without what all files have. */
static void name_file(char *buf, size_t size, const char *name) {
    static const char part[] = "-00001-of-00001";
    size_t n = strlen(name) - strlen(".gguf");
    if (llm_split_n_parts(name) > 1 && n > sizeof part - 1)
        n -= sizeof part - 1;
    snprintf(buf, size, "%.*s", (int)n, name);
}

/* Offers a file or folder. eye: the path of its eye; NULL: none. */
static int offer(folder *f, const char *path, const char *name, const char *eye) {
    ggl_error err = {0};
    model_card card;
    char model_flag[MOST_PATH + 8], eye_flag[MOST_PATH + 16];
    const char *flag[2] = {model_flag, eye_flag};
    snprintf(model_flag, sizeof model_flag, "-m=%s", path);
    snprintf(eye_flag, sizeof eye_flag, "--mmproj=%s", eye ? eye : "");
    int code = -1;
    const ggl_status st = llm_load_converts(path) ? GGL_OK : model_card_read(&card, path, &err);
    if (models_find_exactly(f->table, name)) {
        tool_note(TOOL, "--models: %s is left out, because another model has the name %s", path,
                  name);
    } else if (st != GGL_OK) {
        tool_note(TOOL, "--models: left out: %s", err.msg);
    } else {
        code = models_list_add(f->table, TOOL, name, f->argc, f->argv, flag, eye ? 2 : 1,
                               eye ? ROW_EYE_CAME : 0);
        f->n_found++;
    }
    return code;
}

static bool is_visible(const char *name) {
    return name[0] != '.';
}

static bool is_model_file(const char *path, const char *name) {
    return has_end(name, ".gguf") && llm_split_is_first(name) && !is_aside(name) &&
           ggl_os_is_file(path);
}

static int read_folder(folder *f, const char *path, const char *prefix);

/* True if models get the eyes that lie beside them. */
static bool wants_eyes(const folder *f) {
    const server_options *o = models_options(f->table);
    return !o->open.hub.no_eye && !o->open.how.params.mmproj;
}

/* True for a folder of the Hugging Face Hub. */
static bool has_config(const char *path) {
    char file[MOST_PATH + 16];
    snprintf(file, sizeof file, "%s/config.json", path);
    return ggl_os_exists(file);
}

/* name: of the entry; prefix: of the folder within the one of --models, or "". */
static int read_entry(folder *f, const char *path, const char *name, const char *prefix) {
    char called[512], file[400];
    if (is_model_file(path, name)) {
        name_file(file, sizeof file, name);
        snprintf(called, sizeof called, "%s%s%s", prefix, *prefix ? "/" : "", file);
        return offer(f, path, called, NULL);
    }
    if (*prefix || !ggl_os_is_folder(path))
        return -1;
    if (!has_config(path))
        return read_folder(f, path, name);
    return offer(f, path, name, wants_eyes(f) && llm_convert_finds_eye(path, NULL) ? path : NULL);
}

/* Returns the only model file of a folder; -1: none or several. */
static int64_t only_file(const char *path, char **entry, int64_t n) {
    char full[MOST_PATH];
    int64_t only = -1;
    for (int64_t i = 0; i < n; i++) {
        snprintf(full, sizeof full, "%s/%s", path, entry[i]);
        if (!is_model_file(full, entry[i]))
            continue;
        if (only >= 0)
            return -1;
        only = i;
    }
    return only;
}

/* Finds the eye of a folder's only model. Returns NULL: there is none, or none is wanted. */
static const char *find_eye(const folder *f, const char *path, char **entry, int64_t n,
                            char full[MOST_PATH]) {
    int64_t best = -1;
    int best_rank = 0;
    for (int64_t i = 0; i < n && wants_eyes(f); i++) {
        const int rank = llm_model_name_eye_rank(entry[i]);
        if (rank < 0 || !has_end(entry[i], ".gguf") || (best >= 0 && rank >= best_rank))
            continue;
        best = i;
        best_rank = rank;
    }
    if (best < 0)
        return NULL;
    snprintf(full, MOST_PATH, "%s/%s", path, entry[best]);
    return full;
}

/* A folder within the folder, with files of one model, gives the model its name, and its eye. */
static int read_folder(folder *f, const char *path, const char *prefix) {
    char **entry;
    char full[MOST_PATH], of_eye[MOST_PATH];
    int code = -1;
    const int64_t n = ggl_os_folder_list(path, is_visible, &entry);
    if (n < 0)
        return tool_error_about(TOOL, 1, "--models %s: the folder cannot be read", path);
    const int64_t only = *prefix ? only_file(path, entry, n) : -1;
    for (int64_t i = 0; i < n && code < 0; i++) {
        const int size = snprintf(full, sizeof full, "%s/%s", path, entry[i]);
        if (size >= (int)sizeof full)
            continue;
        if (only >= 0)
            code = i == only ? offer(f, full, prefix, find_eye(f, path, entry, n, of_eye)) : -1;
        else
            code = read_entry(f, full, entry[i], prefix);
    }
    for (int64_t i = 0; i < n; i++)
        free(entry[i]);
    free(entry);
    return code;
}

/* --- both --------------------------------------------------------------------------------------- */

static int read_presets(models *t, const char *path, int argc, char **argv) {
    size_t size = 0;
    char *text = tool_read_raw_text(TOOL, path, MOST_PRESETS, &size);
    if (!text)
        return 1;
    int code = -1;
    if (memchr(text, '\0', size))
        code = tool_error_about(
            TOOL, 2, "--models %s is neither a folder nor a text; -m %s serves a single model",
            path, path);
    else
        code = presets_read(t, path, text, argc, argv);
    free(text);
    return code;
}

int models_list(models *t, int argc, char **argv) {
    const char *path = models_options(t)->models;
    int code;
    bool is_folder = false;
    models_set_reader(t, models_list, argc, argv);
    if (ggl_os_is_folder(path)) {
        is_folder = true;
        folder f = {.table = t, .argc = argc, .argv = argv};
        char own[MOST_PATH];
        snprintf(own, sizeof own, "%s", path);
        for (size_t n = strlen(own); n > 1 && ggl_os_separates(own[n - 1]); n--)
            own[n - 1] = '\0';
        code = read_folder(&f, own, "");
    } else {
        code = read_presets(t, path, argc, argv);
    }
    if (code < 0 && models_get_list(t)->n == 0 && !is_folder) /* a folder may be filled later */
        return tool_error_about(TOOL, 1, "--models %s: there is no model in it", path);
    return code;
}
