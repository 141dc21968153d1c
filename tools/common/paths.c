#include "paths.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "args.h"
#include "ggl/file.h"
#include "split_name.h"

static bool same(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool ends_with(const char *s, const char *end) {
    size_t n = strlen(s), n_end = strlen(end);
    return n >= n_end && strcmp(s + n - n_end, end) == 0;
}

/* True if a folder that is read contains the file. Ignores .gguf files, which an earlier run
 * wrote. */
static bool folder_has(const char *folder, const struct stat *out) {
    DIR *d = opendir(folder);
    bool has = false;
    for (struct dirent *e; d && !has && (e = readdir(d));) {
        struct stat st;
        has = !ends_with(e->d_name, ".gguf") && fstatat(dirfd(d), e->d_name, &st, 0) == 0 &&
              same(&st, out);
    }
    if (d)
        closedir(d);
    return has;
}

/* True if the file is a part of the same split model as `path`. */
static bool is_part(const char *path, const struct stat *out) {
    const size_t size = strlen(path) + 1;
    struct stat st;
    char *part = split_n_parts(path) > 1 && stat(path, &st) == 0 ? malloc(size) : NULL;
    bool is = false;
    for (int k = 1; part && k <= split_n_parts(path) && !is; k++) {
        split_part_path(part, size, path, k);
        is = stat(part, &st) == 0 && same(&st, out);
    }
    free(part);
    return is;
}

static bool is_read(const char *path, const struct stat *out) {
    struct stat st;
    if ((strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, &st) : stat(path, &st)) != 0)
        return false;
    return same(&st, out) || (S_ISDIR(st.st_mode) && folder_has(path, out)) || is_part(path, out);
}

/* Checks that this run does not read an existing file that it will write. */
static int check_existing(const char *tool, const tool_path *p, const tool_path *all, size_t n,
                          const struct stat *out) {
    for (size_t i = 0; i < n; i++) {
        if (!all[i].path || all[i].written)
            continue;
        if (is_read(all[i].path, out))
            return tool_error(tool, 2, "%s: %s is also the file of %s; give another one", p->flag,
                              p->path, all[i].flag);
    }
    return -1;
}

static int check_written(const char *tool, const tool_path *p, const tool_path *all, size_t n) {
    ggl_error err = {0};
    struct stat st;
    if (strcmp(p->path, "-") == 0)
        return tool_error(
            tool, 2,
            "%s: a file is written here, not standard output; write ./- for a file of that name",
            p->flag);
    if (stat(p->path, &st) == 0 && S_ISREG(st.st_mode)) {
        int code = check_existing(tool, p, all, n, &st);
        if (code >= 0)
            return code;
    }
    /* an optional file, too, must not be one that may not be overwritten */
    if (ggl_new_file_check(p->path, &err) != GGL_OK && (!p->optional || err.status == GGL_USAGE))
        return tool_error(tool, err.status == GGL_USAGE ? 2 : 1, "%s: %s", p->flag, err.msg);
    return -1;
}

/* True if two written paths are the same file, by name or as links to one file. Devices do not
 * count. */
static bool same_file(const char *a, const char *b) {
    struct stat st_a, st_b;
    if (strcmp(a, b) == 0)
        return strncmp(a, "/dev/", 5) != 0;
    return stat(a, &st_a) == 0 && stat(b, &st_b) == 0 && S_ISREG(st_a.st_mode) &&
           same(&st_a, &st_b);
}

/* Returns the name of a GGUF file in the folder, which the caller frees; NULL: there is none. */
static char *gguf_in(const char *folder) {
    DIR *d = opendir(folder);
    char *name = NULL;
    for (struct dirent *e; d && !name && (e = readdir(d));)
        if (ends_with(e->d_name, ".gguf"))
            name = strdup(e->d_name);
    if (d)
        closedir(d);
    return name;
}

static bool has_file(const char *folder, const char *name) {
    char path[PATH_MAX];
    return (size_t)snprintf(path, sizeof path, "%s/%s", folder, name) < sizeof path &&
           access(path, F_OK) == 0;
}

/* Returns the name of the file to make of a folder: the folder's own. */
static const char *folder_name(const char *folder, char *real) {
    const char *slash = realpath(folder, real) ? strrchr(real, '/') : NULL;
    return slash && slash[1] ? slash + 1 : "model";
}

/* The flag before the path, for a message that says what to type: "-m"; "" if it is an argument. */
static const char *given_by(const tool_path *p) {
    return p->flag[0] == '-' ? p->flag : "";
}

static bool is_folder(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* True if the file has the name of one of those that make a Hugging Face folder. */
static bool is_of_folder(const char *path) {
    static const char *const names[] = {"config.json", "tokenizer.json", "tokenizer_config.json",
                                        "generation_config.json", "model.safetensors.index.json"};
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    bool is = ends_with(path, ".safetensors");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        is |= strcmp(name, names[i]) == 0;
    return is;
}

/* Writes the path of the model in a folder models--ORG--NAME of the Hugging Face cache: snapshots/HASH,
 * of the hash in refs/main, or any. False: it is no such folder, or has no model. */
static bool cached_snapshot(const char *folder, char *path, size_t size) {
    char hash[64] = "";
    snprintf(path, size, "%s/refs/main", folder);
    FILE *f = fopen(path, "r");
    if (f && fgets(hash, sizeof hash, f))
        hash[strcspn(hash, "\r\n")] = '\0';
    if (f)
        fclose(f);
    const int n = snprintf(path, size, "%s/snapshots/%s", folder, hash);
    if (n < 0 || (size_t)n >= size)
        return false;
    if (hash[0] && has_file(path, "config.json"))
        return true;
    snprintf(path, size, "%s/snapshots", folder);
    DIR *d = opendir(path);
    bool found = false;
    for (struct dirent *e; d && !found && (e = readdir(d));)
        found = e->d_name[0] != '.' &&
                (size_t)snprintf(path, size, "%s/snapshots/%s", folder, e->d_name) < size &&
                has_file(path, "config.json");
    if (d)
        closedir(d);
    return found;
}

/* Refuses a folder of the Hugging Face cache, with that of the model in it. Returns -1 for all else. */
static int check_cache(const char *tool, const tool_path *p) {
    char snapshot[PATH_MAX];
    if (!is_folder(p->path) || has_file(p->path, "config.json") ||
        !cached_snapshot(p->path, snapshot, sizeof snapshot))
        return -1;
    return tool_error(tool, 1,
                      "%s: %s is a folder of the Hugging Face cache; the model is in it: %s%s'%s'",
                      p->flag, p->path, given_by(p), *given_by(p) ? " " : "", snapshot);
}

/* Refuses a folder that is no model, and a part of one, with what to do. Returns -1 for all else. */
static int check_model(const char *tool, const tool_path *p) {
    char folder[PATH_MAX] = "", real[PATH_MAX];
    const bool given_folder = is_folder(p->path), safetensors = ends_with(p->path, ".safetensors");
    if (strlen(p->path) >= sizeof folder || (!given_folder && !is_of_folder(p->path)))
        return -1;
    strcpy(folder, p->path);
    char *slash = strrchr(folder, '/');
    if (!given_folder && slash)
        slash[slash == folder] = '\0';
    else if (!given_folder)
        strcpy(folder, ".");
    if (given_folder && has_file(folder, "adapter_config.json"))
        return tool_error(tool, 1,
                          "%s: %s is an adapter of PEFT; this makes a GGUF file of it: llm-lora "
                          "convert '%s' --base MODEL_FOLDER -o '%s.gguf'",
                          p->flag, p->path, folder, folder_name(folder, real));
    const bool converts = has_file(folder, "config.json");
    if (converts && given_folder && !p->no_folder)
        return -1;
    if (converts && !p->no_folder)
        return tool_error(tool, 1, "%s: %s is part of a Hugging Face folder; %s%s'%s' opens it",
                          p->flag, p->path, given_by(p), *given_by(p) ? " " : "", folder);
    if (converts)
        return tool_error(tool, 1,
                          "%s: %s is %s Hugging Face folder; this makes a GGUF file of it: "
                          "llm-convert '%s' -o '%s.gguf'",
                          p->flag, p->path, given_folder ? "a" : "part of a", folder,
                          folder_name(folder, real));
    if (!given_folder && !safetensors)
        return -1;
    if (!given_folder)
        return tool_error(tool, 1,
                          "%s: %s holds only tensors: llm-convert makes a GGUF file of it with the "
                          "config.json and tokenizer.json that belong to it, which are not in this "
                          "folder",
                          p->flag, p->path);
    char *name = gguf_in(folder);
    const int code =
        name
            ? tool_error(tool, 1, "%s: %s is a folder, not a file; there is %s%s'%s/%s'", p->flag,
                         p->path, given_by(p), *given_by(p) ? " " : "", folder, name)
            : tool_error(tool, 1,
                         "%s: %s is a folder without a GGUF file, and without the config.json of a "
                         "Hugging Face folder",
                         p->flag, p->path);
    free(name);
    return code;
}

/* USER/REPO or USER/REPO:QUANT, and not the path of a file in a folder. */
static bool looks_like_repo(const char *s) {
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    const size_t user = strspn(s, letters);
    if (user == 0 || s[0] == '.' || s[user] != '/')
        return false;
    const size_t repo = strspn(s + user + 1, letters);
    const char *end = s + user + 1 + repo;
    const bool is_file = repo >= 5 && strncasecmp(end - 5, ".gguf", 5) == 0;
    return repo > 0 && !is_file && (*end == '\0' || *end == ':');
}

/* The flag that downloads a model which is no file; NULL: its name is neither an address nor one of
 * the Hugging Face Hub. */
static const char *remote_flag(const tool_path *p) {
    if (!p->model || strcmp(p->flag, "-m") != 0)
        return NULL;
    if (strncasecmp(p->path, "https://", 8) == 0 || strncasecmp(p->path, "http://", 7) == 0)
        return "-mu";
    return looks_like_repo(p->path) ? "-hf" : NULL;
}

static int check_read(const char *tool, const tool_path *p) {
    const bool name = p->or_name && !strchr(p->path, '/');
    int code = check_cache(tool, p);
    if (code < 0 && p->model && access(p->path, R_OK) == 0)
        code = check_model(tool, p);
    if (code >= 0)
        return code;
    if (!p->needed || name || strcmp(p->path, "-") == 0 || access(p->path, R_OK) == 0)
        return -1;
    const int error = errno;
    const char *flag = error == ENOENT ? remote_flag(p) : NULL;
    if (flag)
        return tool_error(tool, 1, "%s: %s: %s; did you mean %s %s, which downloads it?", p->flag,
                          p->path, strerror(error), flag, p->path);
    return tool_error(tool, 1, "%s: %s: %s", p->flag, p->path, strerror(error));
}

int tool_check_paths(const char *tool, const tool_path *paths, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const tool_path *p = &paths[i];
        if (!p->path)
            continue;
        if (!p->written) {
            int code = check_read(tool, p);
            if (code >= 0)
                return code;
            continue;
        }
        int code = check_written(tool, p, paths, n);
        for (size_t k = 0; k < i && code < 0; k++)
            if (paths[k].path && paths[k].written && same_file(paths[k].path, p->path))
                code = tool_error(tool, 2, "%s and %s are the same file: %s", paths[k].flag,
                                  p->flag, p->path);
        if (code >= 0)
            return code;
    }
    return -1;
}
