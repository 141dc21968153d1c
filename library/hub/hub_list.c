#include "hub_list.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "convert/pickle.h"
#include "file_digest.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/show.h"
#include "ggl/internal/steps.h"
#include "ggl/internal/text.h"
#include "common/model_name.h"
#include "common/split_name.h"

enum { MOST_FILES = 100000, MOST_DEPTH = 8, MOST_NAME = 255 };

/* --- names ------------------------------------------------------------------------------------ */

/* True for the UTF-8 of a character that ends lines or turns the direction of text, so that a name shows as another one: U+200E,
 * 200F, 2028 .. 202E and 2066 .. 2069. */
static bool misleads(const char *s, size_t n) {
    const unsigned char *c = (const unsigned char *)s;
    if (n != 3 || c[0] != 0xe2)
        return false;
    return (c[1] == 0x80 && (c[2] == 0x8e || c[2] == 0x8f || (c[2] >= 0xa8 && c[2] <= 0xae))) ||
           (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9);
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* True for the names that speech models in ggml's older format have. Other models have had such names, too, so these files are only
 * chosen where no others are. */
static bool is_older(const char *path) {
    return strncmp(base_name(path), "ggml-", 5) == 0 && ggl_case_ends_with(path, ".bin");
}

hub_kind llm_hub_kind_of(const char *path) {
    if (ggl_case_ends_with(path, ".gguf") || is_older(path))
        return HUB_GGUF;
    const char *slash = strchr(path, '/'), *name = slash ? slash + 1 : path;
    if (path[0] == '.' || name[0] == '.' || strchr(name, '/'))
        return HUB_OTHER;
    if (llm_model_name_of_folder(name))
        return HUB_TEXT;
    if (ggl_ends_with(name, ".safetensors"))
        return HUB_WEIGHTS;
    return !slash && llm_pickle_is_name(path) ? HUB_PICKLE : HUB_OTHER;
}

bool llm_hub_is_within(const hub_file *f) {
    return f->kind != HUB_GGUF && strchr(f->path, '/');
}

/* True for a name that a download gives to a file of its own (fetch.h, hub_fetch.c). */
static bool is_ours(const char *part, size_t n) {
    static const char *const ends[] = {".part", ".unfinished", ".version"};
    bool is = false;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t n_end = strlen(ends[i]);
        is |= n >= n_end && ggl_case_compare_n(part + n - n_end, ends[i], n_end) == 0;
    }
    return is;
}

bool llm_hub_is_path(const char *path) {
    const size_t n = strlen(path);
    const hub_kind kind = llm_hub_kind_of(path);
    if (n >= HUB_MOST_PATH || kind == HUB_OTHER || kind == HUB_PICKLE)
        return false;
    for (size_t i = 0, len; i < n; i += len) {
        len = ggl_utf8_length(path + i, n - i);
        if (len == 0 || (unsigned char)path[i] < 32 || path[i] == 127 || path[i] == '\\' ||
            misleads(path + i, len))
            return false;
    }
    for (const char *part = path;; part++) {
        const size_t len = strcspn(part, "/");
        if (len == 0 || len > MOST_NAME || *part == '.' || is_ours(part, len))
            return false;
        part += len;
        if (!*part)
            return true;
    }
}

bool llm_hub_is_repo(const char *name) {
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    const size_t n_user = strspn(name, allowed), n = strlen(name);
    if (n_user == 0 || name[n_user] != '/' || n > 200 || strstr(name, ".."))
        return false;
    const char *repo = name + n_user + 1;
    return *repo && strspn(repo, allowed) == strlen(repo) && !strchr(".-", *name) && *repo != '.';
}

/* --- lists ------------------------------------------------------------------------------------ */

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory");
}

/* Adds a file with its own copies of the strings. */
static ggl_status add(hub_list *l, hub_file f, ggl_error *err) {
    if (l->n == MOST_FILES)
        return ggl_fail(err, GGL_LIMIT, "there are more than %d model files", MOST_FILES);
    if (!ggl_grow(&l->file, &l->cap, l->n + 1, sizeof *l->file))
        return no_memory(err);
    f.path = ggl_arena_strndup(&l->arena, f.path, strlen(f.path));
    f.version = ggl_arena_strndup(&l->arena, f.version, strlen(f.version));
    if (!f.path || !f.version)
        return no_memory(err);
    l->file[l->n++] = f;
    return GGL_OK;
}

/* Copies a string of a document; "": it has a NUL, or does not fit. */
static const char *copy(char *buf, size_t size, const json_value *v) {
    *buf = '\0';
    if (v && v->n < size && !memchr(v->s, '\0', v->n))
        snprintf(buf, size, "%.*s", (int)v->n, v->s);
    return buf;
}

/* Reads an object's size, which is that of the large file if it is stored as one. */
static bool read_size(const json_value *entry, const json_value *lfs, uint64_t *size) {
    bool negative = false;
    const json_value *v = llm_json_get_kind(lfs, "size", JSON_NUMBER);
    if (!v)
        v = llm_json_get_kind(entry, "size", JSON_NUMBER);
    return v && llm_json_integer(v, size, &negative) && !negative && *size <= INT64_MAX;
}

/* Keeps the name of a file that is not taken, for a message, if it is the first one. */
static void keep_name(hub_list *l, const char **kept, const json_value *name) {
    if (!*kept)
        *kept = ggl_arena_strndup(&l->arena, name->s, name->n < 200 ? name->n : 200);
}

static ggl_status add_entry(hub_list *l, const json_value *entry, ggl_error *err) {
    char path[HUB_MOST_PATH], oid[FILE_DIGEST], version[FILE_DIGEST + 8];
    const json_value *type = llm_json_get(entry, "type");
    const json_value *name = llm_json_get_kind(entry, "path", JSON_STRING);
    const json_value *lfs = llm_json_get_kind(entry, "lfs", JSON_OBJECT);
    if (!llm_json_is(type, "file") || !name)
        return GGL_OK;
    const hub_kind kind = llm_hub_kind_of(copy(path, sizeof path, name));
    if (!llm_hub_is_path(path)) {
        if (kind == HUB_PICKLE)
            keep_name(l, &l->pickle, name);
        else if (name->n >= 5 && ggl_case_compare_n(name->s + name->n - 5, ".gguf", 5) == 0)
            keep_name(l, &l->unsafe, name); /* not in `path` if it is too long */
        else if (kind == HUB_WEIGHTS && !strchr(path, '/'))
            keep_name(l, &l->unsafe, name);
        return GGL_OK;
    }
    hub_file f = {.kind = kind, .path = path, .version = version};
    if (!read_size(entry, lfs, &f.size))
        return ggl_fail(err, GGL_FORMAT, "file %s has no valid size", path);
    copy(oid, sizeof oid, llm_json_get_kind(lfs, "oid", JSON_STRING));
    if (lfs && !llm_file_digest_is_sha256(oid))
        return ggl_fail(err, GGL_FORMAT, "file %s has no valid SHA-256: '%s'", path, oid);
    if (!lfs)
        copy(oid, sizeof oid, llm_json_get_kind(entry, "oid", JSON_STRING));
    snprintf(version, sizeof version, "%s%s", lfs ? "" : "git-", oid);
    if (!lfs && !llm_file_digest_is_git(version))
        *version = '\0';
    return add(l, f, err);
}

ggl_status llm_hub_list_add_json(hub_list *l, const char *text, size_t n, const char *name,
                                 ggl_error *err) {
    llm_json *doc;
    ggl_status st = llm_json_parse(&doc, text, n, name, err);
    if (st != GGL_OK)
        return st;
    if (doc->root.kind != JSON_ARRAY)
        st = ggl_fail(err, GGL_FORMAT, "%s: expected a list of files, found %s", name,
                      llm_json_kind_text(doc->root.kind));
    for (uint32_t i = 0; st == GGL_OK && i < doc->root.n; i++)
        st = add_entry(l, &doc->root.item[i], err);
    llm_json_free(doc);
    return st;
}

/* Adds the files of FOLDER/BELOW; below is "" or ends with a slash. */
static ggl_status add_below(hub_list *l, const char *folder, const char *below, int depth,
                            ggl_error *err) {
    ggl_status st = GGL_OK;
    char path[HUB_MOST_PATH], *full = NULL;
    const size_t size = strlen(folder) + HUB_MOST_PATH + 2;
    if (!(full = malloc(size)))
        return no_memory(err);
    snprintf(full, size, "%s/%s", folder, below);
    os_folder *d = ggl_os_folder_open(full);
    for (const char *e; d && st == GGL_OK && (e = ggl_os_folder_next(d));) {
        os_stat info;
        const int n = snprintf(path, sizeof path - 1, "%s%s", below, e);
        if (e[0] == '.' || n >= (int)sizeof path - 1)
            continue;
        snprintf(full, size, "%s/%s", folder, path);
        if (!ggl_os_stat(full, &info))
            continue;
        if (info.kind == OS_FOLDER && depth < MOST_DEPTH)
            st = add_below(l, folder, strcat(path, "/"), depth + 1, err);
        else if (info.kind == OS_FILE && llm_hub_is_path(path))
            st = add(l, (hub_file){llm_hub_kind_of(path), path, (uint64_t)info.size, ""}, err);
    }
    if (d)
        ggl_os_folder_close(d);
    free(full);
    return st;
}

ggl_status llm_hub_list_add_folder(hub_list *l, const char *folder, ggl_error *err) {
    return add_below(l, folder, "", 0, err);
}

static int compare(const void *a, const void *b) {
    GGL_STEPS(1);
    return strcmp(((const hub_file *)a)->path, ((const hub_file *)b)->path);
}

void llm_hub_list_sort(hub_list *l) {
    size_t n = 0;
    if (l->n > 0)
        qsort(l->file, l->n, sizeof *l->file, compare);
    for (size_t i = 0; i < l->n; i++)
        if (n == 0 || strcmp(l->file[n - 1].path, l->file[i].path) != 0)
            l->file[n++] = l->file[i];
    l->n = n;
}

void llm_hub_list_fini(hub_list *l) {
    ggl_free(l->file);
    ggl_arena_fini(&l->arena);
    *l = (hub_list){0};
}

const hub_file *llm_hub_list_find(const hub_list *l, const char *path) {
    const hub_file key = {.path = path};
    return l->n ? bsearch(&key, l->file, l->n, sizeof key, compare) : NULL;
}

const hub_file *llm_hub_list_folder(const hub_list *l) {
    const hub_file *config = llm_hub_list_find(l, HUB_CONFIG);
    if (!l->no_weights && !llm_hub_list_has_weights(l))
        return NULL;
    return config ? config : llm_hub_list_find(l, HUB_MODULES);
}

bool llm_hub_list_has_weights(const hub_list *l) {
    bool config = false, modules = false, within = false;
    for (size_t i = 0; i < l->n; i++) {
        const hub_file *f = &l->file[i];
        if (f->kind == HUB_WEIGHTS && !llm_hub_is_within(f))
            return true;
        config |= strcmp(f->path, HUB_CONFIG) == 0;
        modules |= strcmp(f->path, HUB_MODULES) == 0;
        within |= f->kind == HUB_WEIGHTS;
    }
    return within && modules && !config;
}

size_t llm_hub_list_n_gguf(const hub_list *l) {
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        n += l->file[i].kind == HUB_GGUF;
    return n;
}

/* --- which one is meant ----------------------------------------------------------------------- */

/* True if the file can be chosen without its name. */
static bool is_model(const hub_file *f, bool older) {
    return f->kind == HUB_GGUF && is_older(f->path) == older && llm_split_is_first(f->path) &&
           !llm_model_name_is_aside(f->path);
}

/* True if the path names this quantization: "x-Q4_K_M.gguf" and "Q4_K_M/x.gguf" have Q4_K_M, but not Q4_K. */
static bool has_quant(const char *path, const char *quant) {
    const size_t n = strlen(quant);
    for (const char *s = path; (s = ggl_case_find(s, quant)); s++)
        if ((s == path || strchr("-._/", s[-1])) && strchr("-./", s[n]))
            return true;
    return false;
}

static const hub_file *with_quant(const hub_list *l, const char *quant, bool older,
                                  size_t *n_others) {
    const hub_file *best = NULL;
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        const hub_file *f = &l->file[i];
        if (!is_model(f, older) || !has_quant(f->path, quant))
            continue;
        n++;
        if (!best || strlen(base_name(f->path)) < strlen(base_name(best->path)))
            best = f;
    }
    *n_others = n > 0 ? n - 1 : 0;
    return best;
}

/* A name may leave out the folders, and the case of letters does not matter if nothing fits exactly. */
static const hub_file *with_name(const hub_list *l, const char *name) {
    const hub_file *exact = llm_hub_list_find(l, name), *near = NULL;
    for (size_t i = 0; !exact && i < l->n; i++) {
        const char *path = l->file[i].path;
        if (!near &&
            (ggl_case_compare(path, name) == 0 || ggl_case_compare(base_name(path), name) == 0))
            near = &l->file[i];
    }
    return exact ? exact : near;
}

/* The first part of the split model that a file belongs to; NULL: it is not there. */
static const hub_file *first_part(const hub_list *l, const hub_file *f) {
    char path[HUB_MOST_PATH];
    if (!f || llm_split_is_first(f->path))
        return f;
    llm_split_part_path(path, sizeof path, f->path, 1);
    return llm_hub_list_find(l, path);
}

/* Chooses a file without its name. */
static const hub_file *any_model(const hub_list *l, bool older, size_t *n_others) {
    static const char *const defaults[] = {"Q4_K_M", "Q8_0"};
    const hub_file *f = NULL;
    for (size_t i = 0; !f && i < sizeof defaults / sizeof *defaults; i++)
        f = with_quant(l, defaults[i], older, n_others);
    for (size_t i = 0; !f && i < l->n; i++)
        f = is_model(&l->file[i], older) ? &l->file[i] : NULL;
    return f;
}

const hub_file *llm_hub_list_eye(const hub_list *l, const hub_file *model) {
    enum { ELSEWHERE = 1000 };
    const size_t n_folder = (size_t)(base_name(model->path) - model->path);
    const hub_file *best = NULL;
    int best_rank = INT_MAX;
    for (size_t i = 0; i < l->n; i++) {
        const hub_file *f = &l->file[i];
        int rank = llm_model_name_eye_rank(f->path);
        if (f->kind != HUB_GGUF || !llm_split_is_first(f->path) || rank < 0)
            continue;
        const bool is_beside = (size_t)(base_name(f->path) - f->path) == n_folder &&
                               memcmp(f->path, model->path, n_folder) == 0;
        rank += is_beside ? 0 : ELSEWHERE;
        if (rank < best_rank) {
            best = f;
            best_rank = rank;
        }
    }
    return best;
}

const hub_file *llm_hub_list_choose(const hub_list *l, const hub_wish *wish, size_t *n_others) {
    const hub_file *f = NULL;
    *n_others = 0;
    if (wish->file) {
        f = with_name(l, wish->file);
        return f && f->kind != HUB_GGUF ? llm_hub_list_folder(l) : first_part(l, f);
    }
    if (wish->quant) {
        f = with_quant(l, wish->quant, false, n_others);
        return f ? f : with_quant(l, wish->quant, true, n_others);
    }
    f = any_model(l, false, n_others);
    f = f ? f : llm_hub_list_folder(l);
    return f ? f : any_model(l, true, n_others);
}
