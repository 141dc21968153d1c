#include "paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "ggl/internal/file.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/text.h"
#include "model_path.h"
#include "common/split_name.h"

static bool same(const os_stat *a, const os_stat *b) {
    return ggl_os_is_same(a, b);
}

/* True if a folder that is read contains the file. Ignores .gguf files, which an earlier run
 * wrote. */
static bool folder_has(const char *folder, const os_stat *out) {
    os_folder *d = ggl_os_folder_open(folder);
    bool has = false;
    for (const char *e; d && !has && (e = ggl_os_folder_next(d));) {
        os_stat st;
        has = !ggl_ends_with(e, ".gguf") && ggl_os_folder_stat(d, e, &st) && same(&st, out);
    }
    if (d)
        ggl_os_folder_close(d);
    return has;
}

/* True if the file is a part of the same split model as `path`. */
static bool is_part(const char *path, const os_stat *out) {
    const size_t size = strlen(path) + 1;
    os_stat st;
    char *part = llm_split_n_parts(path) > 1 && ggl_os_stat(path, &st) ? malloc(size) : NULL;
    bool is = false;
    for (int k = 1; part && k <= llm_split_n_parts(path) && !is; k++) {
        llm_split_part_path(part, size, path, k);
        is = ggl_os_stat(part, &st) && same(&st, out);
    }
    free(part);
    return is;
}

/* True if a file is one of the tokenizers, tokenizer.bin and tok512.bin, that are read with a
 * checkpoint of llama2.c next to them. */
static bool is_tokenizer_of(const char *path, const os_stat *out) {
    const char *slash = ggl_os_last_separator(path);
    char *folder = ggl_copy_text_n(path, slash ? (size_t)(slash - path) + 1 : 0);
    os_folder *d =
        folder && !ggl_ends_with(path, ".gguf") ? ggl_os_folder_open(slash ? folder : ".") : NULL;
    bool is = false;
    for (const char *e; d && !is && (e = ggl_os_folder_next(d));) {
        const char *name = e;
        os_stat st;
        const size_t digits = strncmp(name, "tok", 3) == 0 ? strspn(name + 3, "0123456789") : 0;
        is = (strcmp(name, "tokenizer.bin") == 0 ||
              (digits > 0 && strcmp(name + 3 + digits, ".bin") == 0)) &&
             ggl_os_folder_stat(d, name, &st) && same(&st, out);
    }
    if (d)
        ggl_os_folder_close(d);
    free(folder);
    return is;
}

static bool is_read(const char *path, const os_stat *out) {
    os_stat st;
    if (!(strcmp(path, "-") == 0 ? ggl_os_stat_fd(OS_STDIN, &st) : ggl_os_stat(path, &st)))
        return false;
    if (same(&st, out))
        return true;
    return st.kind == OS_FOLDER ? folder_has(path, out)
                                : is_part(path, out) || is_tokenizer_of(path, out);
}

/* Checks that this run does not read an existing file that it will write. */
static int check_existing(const char *tool, const tool_path *p, const tool_path *all, size_t n,
                          const os_stat *out) {
    for (size_t i = 0; i < n; i++) {
        if (!all[i].path || all[i].written)
            continue;
        if (is_read(all[i].path, out))
            return tool_error_about(tool, 2, "%s: %s is also the file of %s; give another one",
                                    p->flag, p->path, all[i].flag);
    }
    return -1;
}

static int check_written(const char *tool, const tool_path *p, const tool_path *all, size_t n) {
    ggl_error err = {0};
    os_stat st;
    if (strcmp(p->path, "-") == 0)
        return tool_error_about(
            tool, 2,
            "%s: a file is written here, not standard output; write ./- for a file of that name",
            p->flag);
    if (strncmp(p->path, "builtin:", 8) == 0 && !ggl_os_has_separator(p->path, strlen(p->path)))
        return tool_error_about(tool, 2,
                                "%s: %s is a built-in model, which cannot be written; a file is "
                                "needed here, such as %s.gguf",
                                p->flag, p->path, p->path + 8);
    if (ggl_os_stat(p->path, &st) && st.kind == OS_FILE) {
        int code = check_existing(tool, p, all, n, &st);
        if (code >= 0)
            return code;
    }
    /* an optional file, too, must not be one that may not be overwritten */
    if (ggl_new_file_check(p->path, &err) != GGL_OK && (!p->optional || err.status == GGL_USAGE))
        return tool_error_about(tool, err.status == GGL_USAGE ? 2 : 1, "%s: %s", p->flag, err.msg);
    return -1;
}

/* True if two written paths are the same file, by name or as links to one file. Devices do not
 * count. */
static bool same_file(const char *a, const char *b) {
    os_stat st_a, st_b;
    if (strcmp(a, b) == 0)
        return strncmp(a, "/dev/", 5) != 0;
    return ggl_os_stat(a, &st_a) && ggl_os_stat(b, &st_b) && st_a.kind == OS_FILE &&
           same(&st_a, &st_b);
}

static int check_read(const char *tool, const tool_path *p) {
    const bool name = p->or_name && !ggl_os_has_separator(p->path, strlen(p->path));
    if (p->model && (strncmp(p->path, "builtin:", 8) == 0 || strncmp(p->path, "hf:", 3) == 0))
        return -1; /* no file; it is looked up where it is opened (load.h) */
    const int code = ggl_os_may_read(p->path) ? model_path_check(tool, p) : -1;
    if (code >= 0 || !p->needed || name || strcmp(p->path, "-") == 0 || ggl_os_may_read(p->path))
        return code;
    return model_path_missing(tool, p, errno);
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
                code = tool_error_about(tool, 2, "%s and %s are the same file: %s", paths[k].flag,
                                        p->flag, p->path);
        if (code >= 0)
            return code;
    }
    return -1;
}

/* --- lists of files --------------------------------------------------------------------------- */

static bool is_file(const char *s, size_t n) {
    os_stat st;
    char *path = ggl_copy_text_n(s, n);
    const bool is = path && *path && ggl_os_stat(path, &st);
    free(path);
    return is;
}

bool tool_is_file_list(const char *s) {
    bool is = false;
    if (!strchr(s, ',') || is_file(s, strlen(s)))
        return false;
    for (size_t n; *s && !is; s += n + (s[n] == ',')) {
        n = strcspn(s, ",");
        is = is_file(s, n);
    }
    return is;
}

bool tool_split_files(arg_list *files) {
    size_t n = 0, most = 0;
    for (size_t k = 0; k < files->n; k++)
        most += strlen(files->s[k]) + 1;
    const char **all = most ? calloc(most, sizeof *all) : NULL;
    if (most && !all)
        return false;
    for (size_t k = 0; k < files->n; k++) {
        char *s = (char *)files->s[k];
        if (!tool_is_file_list(s)) {
            all[n++] = s;
            continue;
        }
        for (size_t length; *s; s += length) { /* the commas become ends */
            length = strcspn(s, ",");
            if (length > 0)
                all[n++] = s;
            if (s[length])
                s[length++] = '\0';
        }
    }
    free(files->s);
    *files = (arg_list){all, n};
    return true;
}
