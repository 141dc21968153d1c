#include "model_path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "common/folder_name.h"
#include "ggl/alloc.h"
#include "ggl/internal/nearest.h"
#include "ggl/internal/text.h"
#include "common/model_folder.h"
#include "common/model_name.h"
#include "ggl/internal/os_fs.h"
#include "common/peft_folder.h"
#include "common/shell_quote.h"
#include "common/split_name.h"
#include "llm/internal/convert.h"

/* The flag before the path, with a blank, for a message that says what to type: "-m "; "" if the path
 * is an argument. */
static const char *given_by(const tool_path *p, char *text, size_t size) {
    const bool is_flag = p->flag[0] == '-';
    snprintf(text, size, "%s%s", is_flag ? p->flag : "", is_flag ? " " : "");
    return text;
}

/* Writes the folder of a path and returns its name in there. False: the path is too long. */
static bool split_path(const char *path, char folder[OS_MOST_PATH], const char **name) {
    const char *slash = ggl_os_last_separator(path);
    const size_t n = slash ? (size_t)(slash - path) : 1;
    *name = slash ? slash + 1 : path;
    if (n >= OS_MOST_PATH)
        return false;
    memcpy(folder, slash ? path : ".", n);
    folder[n] = '\0';
    if (n == 0)
        strcpy(folder, "/");
    return true;
}

/* Writes the path of a file in a folder, "./" left out. */
static const char *join(char path[OS_MOST_PATH], const char *folder, const char *name) {
    const bool here = strcmp(folder, ".") == 0;
    const bool slash = !here && !ggl_os_separates(folder[strlen(folder) - 1]);
    snprintf(path, OS_MOST_PATH, "%.*s%s%s", here ? 0 : OS_MOST_PATH, folder, slash ? "/" : "",
             name);
    return path;
}

/* --- folders ---------------------------------------------------------------------------------- */

/* Refuses a folder without the weights of a Hugging Face folder. */
static int refuse_folder(const char *tool, const tool_path *p) {
    char path[OS_MOST_PATH], word[LLM_SHELL_WORD], flag[64], more[64] = "", *meant;
    size_t n;
    ggl_error err;
    (void)llm_folder_refuse(p->path, &meant, &n, &err);
    if (n > 1)
        snprintf(more, sizeof more, " (the first of %zu)", n);
    if (meant)
        tool_error_about(tool, 1, "%s: %s; did you mean %s%s%s?", p->flag, err.msg,
                         given_by(p, flag, sizeof flag),
                         llm_shell_quote(word, join(path, p->path, meant)), more);
    else
        tool_error_about(tool, 1, "%s: %s", p->flag, err.msg);
    ggl_free(meant);
    return 1;
}

/* Writes the name of the file to make of a model: FOLDER.gguf, NAME.gguf of NAME.bin, or that of the
 * repository in the Hugging Face cache. */
static const char *new_name(const char *path, char *name, size_t size) {
    char *real = ggl_os_real_path(path);
    ggl_str own = {"", 0};
    if (real)
        own = llm_folder_name(real);
    if (own.n == 0)
        own = (ggl_str){"model", 5};
    const bool bin = !llm_is_folder(path) && own.n > 4 && memcmp(own.s + own.n - 4, ".bin", 4) == 0;
    snprintf(name, size, "%.*s.gguf", (int)(bin ? own.n - 4 : own.n), own.s);
    free(real);
    return name;
}

const char *model_path_convert(const char *path, char *command, size_t size) {
    char name[OS_MOST_PATH], in[LLM_SHELL_WORD], out[LLM_SHELL_WORD];
    new_name(path, name, sizeof name);
    snprintf(command, size, "llm-convert %s -o %s", llm_shell_quote(in, path),
             llm_shell_quote(out, name));
    return command;
}

int model_path_refuse(const char *tool, const tool_path *p, const char *kind, const char *whole) {
    char command[MODEL_PATH_COMMAND];
    return tool_error_about(tool, 1, "%s%s%s is %s; this makes a GGUF file of it: %s%s%s",
                            p->flag ? p->flag : "", p->flag ? ": " : "", p->path, kind,
                            model_path_convert(whole, command, sizeof command), p->also ? "; " : "",
                            p->also ? p->also : "");
}

/* Writes the path of the model in a folder models--ORG--NAME of the Hugging Face cache: snapshots/HASH,
 * of the hash in refs/main, or any. False: it is no such folder, or has no model. */
static bool cached_snapshot(const char *folder, char *path, size_t size) {
    char hash[64] = "";
    snprintf(path, size, "%s/refs/main", folder);
    FILE *f = ggl_os_fopen(path, "r");
    if (f && fgets(hash, sizeof hash, f))
        hash[strcspn(hash, "\r\n")] = '\0';
    if (f)
        fclose(f);
    const int n = snprintf(path, size, "%s/snapshots/%s", folder, hash);
    if (n < 0 || (size_t)n >= size)
        return false;
    if (hash[0] && llm_folder_has(path, "config.json"))
        return true;
    snprintf(path, size, "%s/snapshots", folder);
    os_folder *d = ggl_os_folder_open(path);
    bool found = false;
    for (const char *e; d && !found && (e = ggl_os_folder_next(d));)
        found = e[0] != '.' && (size_t)snprintf(path, size, "%s/snapshots/%s", folder, e) < size &&
                llm_folder_has(path, "config.json");
    if (d)
        ggl_os_folder_close(d);
    return found;
}

/* True if a folder has a whole model. An adapter may stand beside it, as in those of Granite Speech. */
static bool is_whole(const char *folder) {
    return llm_folder_has(folder, "config.json") &&
           (llm_folder_has(folder, "model.safetensors") ||
            llm_folder_has(folder, "model.safetensors.index.json"));
}

/* Refuses a folder of the Hugging Face cache, with that of the model in it, and a PEFT adapter. Returns
 * -1 for all else. */
static int check_folder(const char *tool, const tool_path *p) {
    char path[OS_MOST_PATH], in[LLM_SHELL_WORD], flag[64];
    if (!llm_folder_has(p->path, "config.json") && cached_snapshot(p->path, path, sizeof path))
        return tool_error_about(
            tool, 1, "%s: %s is a folder of the Hugging Face cache; the model is in it: %s%s",
            p->flag, p->path, given_by(p, flag, sizeof flag), llm_shell_quote(in, path));
    ggl_error err = {0};
    if (p->model && !is_whole(p->path) && llm_peft_refuse(p->path, &err) != GGL_OK)
        return tool_error_about(tool, 1, "%s: %s", p->flag, err.msg);
    return -1;
}

/* Refuses a file of a folder. Returns -1 for all else. */
static int check_part(const char *tool, const tool_path *p) {
    char folder[OS_MOST_PATH], whole[OS_MOST_PATH], word[LLM_SHELL_WORD], flag[64];
    const char *name;
    ggl_error err = {0};
    if (!split_path(p->path, folder, &name) ||
        (!llm_model_name_of_folder(name) && !ggl_ends_with(name, ".safetensors")))
        return -1;
    if (llm_convert_is_part(folder, whole, sizeof whole)) /* such as 2_Dense/config.json */
        snprintf(folder, sizeof folder, "%s", whole);
    if (llm_folder_has(folder, "config.json") && p->no_folder)
        return model_path_refuse(tool, p, "part of a Hugging Face folder", folder);
    if (llm_folder_has(folder, "config.json"))
        return tool_error_about(tool, 1, "%s: %s is part of a Hugging Face folder; %s%s opens it",
                                p->flag, p->path, given_by(p, flag, sizeof flag),
                                llm_shell_quote(word, folder));
    if (!ggl_ends_with(p->path, ".safetensors"))
        return -1;
    if (p->model && llm_peft_refuse(p->path, &err) != GGL_OK)
        return tool_error_about(tool, 1, "%s: %s", p->flag, err.msg);
    return tool_error_about(
        tool, 1,
        "%s: %s holds only tensors: llm-convert makes a GGUF file of it with the "
        "config.json and tokenizer.json that belong to it, which are not in this "
        "folder",
        p->flag, p->path);
}

int model_path_check(const char *tool, const tool_path *p) {
    const bool folder = llm_is_folder(p->path);
    const int code = folder ? check_folder(tool, p) : -1;
    if (code >= 0 || !p->model || strlen(p->path) >= OS_MOST_PATH)
        return code;
    if (!folder)
        return check_part(tool, p);
    if (!llm_folder_is_model(p->path))
        return refuse_folder(tool, p);
    return p->no_folder ? model_path_refuse(tool, p, "a Hugging Face folder", p->path) : -1;
}

/* --- files that are not there ----------------------------------------------------------------- */

bool model_path_is_repo(const char *s) {
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    const size_t user = strspn(s, letters);
    char folder[OS_MOST_PATH];
    const char *name;
    if (user == 0 || s[0] == '.' || s[user] != '/')
        return false;
    if (split_path(s, folder, &name) && llm_is_folder(folder))
        return false;
    const size_t repo = strspn(s + user + 1, letters);
    const char *end = s + user + 1 + repo;
    const bool is_file = repo >= 5 && ggl_case_compare_n(end - 5, ".gguf", 5) == 0;
    return repo > 0 && !is_file && (*end == '\0' || *end == ':');
}

/* True for the address of a repository's page, https://huggingface.co/USER/REPO, which -hf takes, too. */
static bool is_page_of_repo(const char *url) {
    static const char *const hosts[] = {"https://huggingface.co/", "https://hf.co/"};
    for (size_t k = 0; k < sizeof hosts / sizeof *hosts; k++) {
        const size_t n = strlen(hosts[k]);
        const char *slash = ggl_case_compare_n(url, hosts[k], n) == 0 ? strchr(url + n, '/') : NULL;
        if (slash && slash[1] && !slash[1 + strcspn(slash + 1, "/?#")])
            return true;
    }
    return false;
}

/* The flag that downloads a model which is no file; NULL: its name is neither an address nor one of
 * the Hugging Face Hub. */
static const char *remote_flag(const tool_path *p) {
    if (!p->model || strcmp(p->flag, "-m") != 0)
        return NULL;
    if (is_page_of_repo(p->path))
        return "-hf";
    if (ggl_case_compare_n(p->path, "https://", 8) == 0 ||
        ggl_case_compare_n(p->path, "http://", 7) == 0)
        return "-mu";
    return model_path_is_repo(p->path) ? "-hf" : NULL;
}

/* True for -m llama3.2, as ollama names models. */
static bool is_model_name(const tool_path *p) {
    return p->model && strcmp(p->flag, "-m") == 0 &&
           !ggl_os_has_separator(p->path, strlen(p->path)) && !strstr(p->path, ".gguf");
}

/* Returns how many changes of a name are a typing error: fewer of nope.gguf than of a name without an ending, since an
 * ending is seldom mistyped. */
static ggl_nearest nearest_to_file(const char *name) {
    char stem[256];
    const char *dot = strrchr(name, '.');
    snprintf(stem, sizeof stem, "%.*s", (int)(dot ? dot - name : 255), name);
    return (ggl_nearest){name, NULL, ggl_nearest_to(stem).distance};
}

/* Returns the name in the folder that is nearest to one that is not there, which the caller frees;
 * NULL if none is near. A name without its ending counts as the same. */
static char *nearest_in(const char *folder, const char *name) {
    ggl_nearest near = nearest_to_file(name);
    const size_t n = strlen(name);
    char *best = NULL;
    os_folder *d = n > 0 ? ggl_os_folder_open(folder) : NULL;
    for (const char *e; d && near.distance > 0 && (e = ggl_os_folder_next(d));) {
        if (e[0] == '.')
            continue;
        near.best = NULL;
        ggl_nearest_try(&near, e, SIZE_MAX);
        if (strncmp(e, name, n) == 0 && e[n] == '.') {
            near.best = e;
            near.distance = 0;
        }
        if (!near.best)
            continue;
        free(best);
        best = ggl_copy_text(e);
    }
    if (d)
        ggl_os_folder_close(d);
    return best;
}

bool model_path_near(const char *path, char near[OS_MOST_PATH]) {
    char folder[OS_MOST_PATH];
    const char *name;
    char *best = split_path(path, folder, &name) ? nearest_in(folder, name) : NULL;
    if (best)
        join(near, folder, best);
    free(best);
    return best != NULL;
}

/* Reports a part of a split model that is not there. Returns -1 if the path is no such part. */
static int missing_part(const char *tool, const tool_path *p) {
    const int n = llm_split_n_parts(p->path);
    char part[OS_MOST_PATH];
    int there = 0;
    for (int k = 1; k <= n && strlen(p->path) < sizeof part; k++) {
        llm_split_part_path(part, sizeof part, p->path, k);
        there += ggl_os_exists(part);
    }
    if (n < 2 || there == 0)
        return -1;
    return tool_error_about(
        tool, 1, "%s: %s is missing: the model has %d parts, of which %d %s in this folder",
        p->flag, p->path, n, there, there == 1 ? "is" : "are");
}

/* Writes what stands before the path: the flag, but not FILE, which names no argument. Returns to. */
static const char *label(const tool_path *p, char *to, size_t size) {
    const bool is_name = strcmp(p->flag, "FILE") != 0;
    snprintf(to, size, "%s%s", is_name ? p->flag : "", is_name ? ": " : "");
    return to;
}

int model_path_missing(const char *tool, const tool_path *p, int error) {
    char folder[OS_MOST_PATH], path[OS_MOST_PATH], word[LLM_SHELL_WORD], flag[64], before[64];
    const char *name, *remote = error == ENOENT ? remote_flag(p) : NULL;
    if (remote)
        return tool_error_about(tool, 1, "%s%s: %s; did you mean %s %s, which downloads it?",
                                label(p, before, sizeof before), p->path, strerror(error), remote,
                                llm_shell_quote(word, p->path));
    if (error != ENOENT || !split_path(p->path, folder, &name))
        return tool_error_about(tool, 1, "%s%s: %s", label(p, before, sizeof before), p->path,
                                strerror(error));
    if (!llm_is_folder(folder))
        return tool_error_about(tool, 1, "%s%s: %s; there is no folder %s",
                                label(p, before, sizeof before), p->path, strerror(error), folder);
    if (missing_part(tool, p) >= 0)
        return 1;
    char *near = nearest_in(folder, name);
    if (near)
        tool_error_about(tool, 1, "%s%s: %s; did you mean %s%s?", label(p, before, sizeof before),
                         p->path, strerror(error), given_by(p, flag, sizeof flag),
                         llm_shell_quote(word, join(path, folder, near)));
    else
        tool_error_about(tool, 1, "%s%s: %s%s", label(p, before, sizeof before), p->path,
                         strerror(error),
                         is_model_name(p) ? "; -hf USER/REPO downloads a model" : "");
    free(near);
    return 1;
}
