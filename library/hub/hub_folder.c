/* Gets the Hugging Face folder of a repository: config.json, the tokenizer's files, the weights as safetensors, and the same of those folders
 * in it that the model has (llm_convert_each_folder). A repository may have gigabytes in others, such as onnx/. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/show.h"
#include "ggl/internal/steps.h"
#include "hub_impl.h"
#include "ggl/backends.h"
#include "llm/internal/convert.h"
#include "llm/internal/load.h"

enum { MOST_INDEX = 100 << 20, MOST_SHOWN = 120 };

/* What is downloaded. A folder's name is its path in the repository, with a slash at its end; "": the top. */
typedef struct picked {
    hub *h;
    hub_set s;
    bool *added; /* of each file of h->list: it is in the set */
    ggl_arena arena;
    const char **folder; /* [n_folder], those in the repository's folder */
    size_t n_folder, cap_folder;
} picked;

/* Adds a file, once. */
static ggl_status add_file(picked *p, const hub_file *f, ggl_error *err) {
    hub_set *s = &p->s;
    bool *added = &p->added[f - p->h->list.file];
    if (*added)
        return GGL_OK;
    if (!ggl_grow(&s->file, &s->cap, s->n + 1, sizeof *s->file))
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    s->file[s->n++] = f;
    *added = true;
    return GGL_OK;
}

/* Returns the file of that name in a folder; NULL: there is none. */
static const hub_file *find_in(const hub_list *l, const char *folder, const char *name) {
    char path[HUB_MOST_PATH];
    const int n = snprintf(path, sizeof path, "%s%s", folder, name);
    return n < (int)sizeof path ? llm_hub_list_find(l, path) : NULL;
}

/* Returns the first file of a folder, by path; l->file + l->n: there is none. */
static const hub_file *first_in(const hub_list *l, const char *folder) {
    size_t from = 0, to = l->n;
    while (from < to) {
        const size_t mid = from + (to - from) / 2;
        if (strcmp(l->file[mid].path, folder) < 0)
            from = mid + 1;
        else
            to = mid;
    }
    return l->file + from;
}

/* Returns the file after f, or f itself, that is in the folder, and is of the kind; NULL: there is none. */
static const hub_file *next_in(const hub_list *l, const char *folder, hub_kind kind,
                               const hub_file *f) {
    const size_t n = strlen(folder);
    for (; f < l->file + l->n && strncmp(f->path, folder, n) == 0; f++)
        if (f->kind == kind && !strchr(f->path + n, '/'))
            return f;
    return NULL;
}

/* True if a folder has weights, or an index of them. */
static bool has_weights(const hub_list *l, const char *folder) {
    return find_in(l, folder, HUB_INDEX) || next_in(l, folder, HUB_WEIGHTS, first_in(l, folder));
}

/* --- the weights ------------------------------------------------------------------------------ */

/* Returns the file that a folder's index names; NULL: it has no such file of weights. */
static const hub_file *named_file(const hub_list *l, const char *folder, const json_value *v) {
    char name[HUB_MOST_PATH];
    if (v->kind != JSON_STRING || v->n >= sizeof name || memchr(v->s, '\0', v->n) ||
        memchr(v->s, '/', v->n))
        return NULL;
    snprintf(name, sizeof name, "%.*s", (int)v->n, v->s);
    const hub_file *f = find_in(l, folder, name);
    return f && f->kind == HUB_WEIGHTS ? f : NULL;
}

/* Adds each file that an index names. */
static ggl_status add_indexed(picked *p, const char *folder, const json_value *map,
                              ggl_error *err) {
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < map->n && st == GGL_OK; i++) {
        const json_value *v = &map->item[i];
        const ggl_str tensor = json_name(map, i);
        const hub_file *f = named_file(&p->h->list, folder, v);
        const bool text = v->kind == JSON_STRING;
        GGL_STEPS(1);
        if (!f)
            return ggl_fail(err, GGL_FORMAT,
                            "tensor '%.*s' is in '%.*s', which is no safetensors file %s "
                            "of the repository",
                            (int)ggl_utf8_cut(tensor.s, tensor.n, MOST_SHOWN), tensor.s,
                            text ? (int)ggl_utf8_cut(v->s, v->n, MOST_SHOWN) : 0, text ? v->s : "",
                            *folder ? "in this folder" : "at the top");
        st = add_file(p, f, err);
    }
    return st;
}

/* Reads a folder's index, which has been downloaded, and adds the files that it names. */
static ggl_status read_index(picked *p, const char *folder, const hub_file *index, ggl_error *err) {
    const hub *h = p->h;
    char *path = llm_hub_join(h->cache, h->folder, index->path);
    llm_json *doc = NULL;
    ggl_status st = path ? llm_json_read(&doc, path, MOST_INDEX, err)
                         : ggl_fail(err, GGL_NOMEM, "out of memory");
    if (st == GGL_OK) {
        const json_value *map = llm_json_get_kind(&doc->root, "weight_map", JSON_OBJECT);
        st = map && map->n > 0
                 ? add_indexed(p, folder, map, err)
                 : ggl_fail(err, GGL_FORMAT, "the object 'weight_map' with tensors is missing");
        if (st == GGL_FORMAT)
            st = ggl_within(err, st, "%s: %s", h->name, index->path);
        llm_json_free(doc);
    }
    free(path);
    return st;
}

/* Reads the numbers of model-00001-of-00003.safetensors. False: the name is another one. */
static bool read_part(const char *path, int *k, int *n) {
    int end = 0;
    return sscanf(path, "model-%5d-of-%5d.safetensors%n", k, n, &end) == 2 && end > 0 &&
           !path[end] && *k >= 1 && *k <= *n;
}

/* Adds all parts of a model without an index. */
static ggl_status add_parts(picked *p, const char *folder, ggl_error *err) {
    const hub_list *l = &p->h->list;
    char name[64];
    int k, n = 0;
    ggl_status st = GGL_OK;
    for (const hub_file *f = first_in(l, folder);
         n == 0 && (f = next_in(l, folder, HUB_WEIGHTS, f)); f++)
        if (!read_part(f->path + strlen(folder), &k, &n))
            n = 0;
    if (n == 0)
        return ggl_fail(err, GGL_NOT_FOUND,
                        "%s has a config.json and safetensors, but no %smodel.safetensors and "
                        "no %s" HUB_INDEX ", which name the weights of a model of text",
                        p->h->name, folder, folder);
    for (k = 1; k <= n && k <= HUB_MOST_PARTS && st == GGL_OK; k++) {
        snprintf(name, sizeof name, "model-%05d-of-%05d.safetensors", k, n);
        const hub_file *f = find_in(l, folder, name);
        st = f ? add_file(p, f, err)
               : ggl_fail(err, GGL_NOT_FOUND, "%s lacks %s%s, part %d of %d of the model",
                          p->h->name, folder, name, k, n);
    }
    return st == GGL_OK && n > HUB_MOST_PARTS ? llm_hub_too_many(p->h, (size_t)n, err) : st;
}

/* Adds a folder's files of weights, which it may lack. An index, if there is one, has been downloaded. */
static ggl_status add_weights(picked *p, const char *folder, ggl_error *err) {
    const hub_list *l = &p->h->list;
    const size_t n_before = p->s.n;
    const hub_file *one = find_in(l, folder, "model.safetensors"),
                   *index = find_in(l, folder, HUB_INDEX);
    if (!has_weights(l, folder))
        return GGL_OK;
    const ggl_status st = index ? read_index(p, folder, index, err)
                          : one ? add_file(p, one, err)
                                : add_parts(p, folder, err);
    const size_t n = p->s.n - n_before;
    return st == GGL_OK && n > HUB_MOST_PARTS ? llm_hub_too_many(p->h, n, err) : st;
}

/* --- the folder ------------------------------------------------------------------------------- */

static ggl_status add_texts(picked *p, const char *folder, ggl_error *err) {
    const hub_list *l = &p->h->list;
    ggl_status st = GGL_OK;
    for (const hub_file *f = first_in(l, folder);
         st == GGL_OK && (f = next_in(l, folder, HUB_TEXT, f)); f++)
        st = add_file(p, f, err);
    const hub_file *index = find_in(l, folder, HUB_INDEX);
    if (st == GGL_OK && index && index->size > MOST_INDEX)
        st = ggl_fail(err, GGL_LIMIT, "%s: %s has more than %d MiB", p->h->name, index->path,
                      MOST_INDEX >> 20);
    return st;
}

/* Adds the texts of a folder in the repository's. Refuses it if it lacks weights that are needed, and wanted. */
static ggl_status add_folder(void *user, const char *name, bool needs_weights, ggl_error *err) {
    picked *p = user;
    const char *folder = ggl_arena_printf(&p->arena, "%s/", name);
    if (!folder || !ggl_grow(&p->folder, &p->cap_folder, p->n_folder + 1, sizeof *p->folder))
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    p->folder[p->n_folder++] = folder;
    if (needs_weights && !p->h->w->no_weights && !has_weights(&p->h->list, folder))
        return ggl_fail(err, GGL_NOT_FOUND,
                        "%s has no safetensors in its folder %s, and the model needs the weights "
                        "of that folder, too; pickles (.bin) are not downloaded",
                        p->h->name, name);
    return add_texts(p, folder, err);
}

static int by_path(const void *a, const void *b) {
    const hub_file *const *f = a, *const *g = b;
    GGL_STEPS(1);
    return strcmp((*f)->path, (*g)->path);
}

/* Removes a file that was downloaded: it has a version beside it. Files that were put there by hand stay. The folder is
 * unfinished from then on, as its other files may be of the earlier version. */
static ggl_status remove_file(hub *h, const char *path, ggl_error *err) {
    char of_version[HUB_MOST_PATH + 16];
    snprintf(of_version, sizeof of_version, "%s.version", path);
    char *file = llm_hub_join(h->cache, h->folder, path),
         *version = llm_hub_join(h->cache, h->folder, of_version);
    ggl_status st = file && version ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory");
    if (st == GGL_OK && ggl_os_exists(version)) {
        st = llm_hub_set_unfinished(h, HUB_CONFIG, err);
        if (st == GGL_OK && ggl_os_remove(file))
            (void)ggl_os_remove(version);
    }
    free(file);
    free(version);
    return st;
}

/* Removes files of a kind that an earlier version of the folder had, and this one has not: they would be read, too. within: also those
 * in folders. */
static ggl_status remove_older(picked *p, hub_kind kind, bool within, ggl_error *err) {
    hub *h = p->h;
    hub_set *s = &p->s;
    ggl_status st = GGL_OK;
    qsort(s->file, s->n, sizeof *s->file, by_path);
    for (size_t i = 0; i < h->cached.n && st == GGL_OK; i++) {
        const hub_file *f = &h->cached.file[i];
        if (f->kind == kind && (within || !llm_hub_is_within(f)) &&
            !bsearch(&f, s->file, s->n, sizeof *s->file, by_path))
            st = remove_file(h, f->path, err);
    }
    return st;
}

/* Checks that the folder of a model whose weights are not there yet can be opened: its architecture, keys
 * and tokenizer. What the weights decide is not checked. */
static ggl_status check_folder(const char *path, const char *arch, ggl_error *err) {
    bool needs_weights = false;
    const llm_load_params load = {.size = sizeof load,
                                  .arch_path = arch,
                                  .open_backend = ggl_backend_open,
                                  .close_backend = ggl_backend_close,
                                  .vocab_only = true,
                                  .needs_weights = &needs_weights};
    ggl_gguf *f;
    const ggl_status st = llm_load(&f, path, NULL, &load, err);
    ggl_gguf_close(f);
    return needs_weights && st != GGL_NOMEM ? GGL_OK : st;
}

/* Checks what has been downloaded before the weights come, if they are missing. */
static ggl_status check_texts(const hub *h, const hub_file *const *weights, size_t n,
                              ggl_error *err) {
    char *folder = llm_hub_join(h->cache, h->folder, NULL);
    bool missing = false;
    for (size_t i = 0; i < n && !missing; i++) {
        char *path = llm_hub_join(h->cache, h->folder, weights[i]->path);
        missing = !path || !ggl_os_exists(path);
        free(path);
    }
    const ggl_status st = !folder   ? ggl_fail(err, GGL_NOMEM, "out of memory")
                          : missing ? check_folder(folder, h->w->arch, err)
                                    : GGL_OK;
    free(folder);
    return st;
}

/* Downloads all but the weights: the texts at the top, and those of the folders that these name, as long as there are more. */
static ggl_status get_texts(picked *p, ggl_error *err) {
    hub *h = p->h;
    char *path = llm_hub_join(h->cache, h->folder, NULL);
    ggl_status st = path ? add_texts(p, "", err) : ggl_fail(err, GGL_NOMEM, "out of memory");
    for (size_t n = 0; st == GGL_OK && n < p->s.n;) {
        n = p->s.n;
        st = llm_hub_fetch(h, p->s.file, n, HUB_CONFIG, err);
        if (st == GGL_OK)
            st = remove_older(p, HUB_TEXT, false, err);
        p->n_folder = 0;
        if (st == GGL_OK)
            st = llm_convert_each_folder(path, h->w->arch, add_folder, p, err);
    }
    free(path);
    return st == GGL_OK ? remove_older(p, HUB_TEXT, true, err) : st;
}

/* Downloads the weights, which are added to the other files in the set. */
static ggl_status get_weights(picked *p, ggl_error *err) {
    const size_t n_texts = p->s.n;
    ggl_status st = add_weights(p, "", err);
    for (size_t k = 0; k < p->n_folder && st == GGL_OK; k++)
        st = add_weights(p, p->folder[k], err);
    const hub_file *const *weights = p->s.file + n_texts;
    const size_t n = p->s.n - n_texts;
    if (st == GGL_OK)
        st = check_texts(p->h, weights, n, err);
    if (st == GGL_OK)
        st = llm_hub_fetch(p->h, weights, n, HUB_CONFIG, err);
    return st == GGL_OK ? remove_older(p, HUB_WEIGHTS, true, err) : st;
}

ggl_status llm_hub_get_folder(hub *h, ggl_error *err) {
    const bool weights = !h->w->no_weights;
    picked p = {.h = h, .added = ggl_calloc(h->list.n + 1, sizeof *p.added)};
    ggl_status st = p.added ? get_texts(&p, err) : ggl_fail(err, GGL_NOMEM, "out of memory");
    if (st == GGL_OK && weights)
        st = get_weights(&p, err);
    if (st == GGL_OK)
        llm_hub_set_finished(h, HUB_CONFIG, weights);
    ggl_free(p.s.file);
    ggl_free(p.folder);
    ggl_free(p.added);
    ggl_arena_fini(&p.arena);
    return st;
}

hub_model llm_hub_folder_model(const hub_list *l, bool in_cache) {
    const hub_file *name = llm_hub_list_find(l, HUB_INDEX);
    const bool counts = in_cache || !llm_hub_list_find(l, HUB_CONFIG);
    hub_model m = {.folder = true};
    for (size_t i = 0; i < l->n; i++) {
        const hub_file *f = &l->file[i];
        const bool within = llm_hub_is_within(f);
        if (f->kind == HUB_GGUF || (within && !counts))
            continue;
        if (f->kind == HUB_WEIGHTS && !name && !within)
            name = f;
        m.size += f->size;
        m.n_files++;
    }
    name = name ? name : llm_hub_list_folder(l);
    m.path = name ? name->path : HUB_CONFIG;
    return m;
}
