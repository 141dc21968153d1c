/* Gets the Hugging Face folder of a repository: config.json, the tokenizer's files, and the weights as safetensors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/show.h"
#include "ggl/internal/steps.h"
#include "hub_impl.h"
#include "ggl/backends.h"
#include "llm/internal/load.h"

enum { MOST_INDEX = 100 << 20, MOST_SHOWN = 120 };

/* --- the weights ------------------------------------------------------------------------------ */

static ggl_status add_file(hub_set *s, const hub_file *f, ggl_error *err) {
    if (!ggl_grow(&s->file, &s->cap, s->n + 1, sizeof *s->file))
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    s->file[s->n++] = f;
    return GGL_OK;
}

/* Returns the file that an index names; NULL: the repository has no such file of weights. */
static const hub_file *named_file(const hub_list *l, const json_value *v) {
    char path[HUB_MOST_PATH];
    if (v->kind != JSON_STRING || v->n >= sizeof path || memchr(v->s, '\0', v->n))
        return NULL;
    snprintf(path, sizeof path, "%.*s", (int)v->n, v->s);
    const hub_file *f = llm_hub_list_find(l, path);
    return f && f->kind == HUB_WEIGHTS ? f : NULL;
}

/* Adds each file that an index names, once. `added` has a flag for each file of the list. */
static ggl_status add_indexed(const hub_list *l, const json_value *map, hub_set *s, bool *added,
                              ggl_error *err) {
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < map->n && st == GGL_OK; i++) {
        const json_value *v = &map->item[i];
        const ggl_str tensor = json_name(map, i);
        const hub_file *f = named_file(l, v);
        const bool text = v->kind == JSON_STRING;
        GGL_STEPS(1);
        if (!f)
            return ggl_fail(err, GGL_FORMAT,
                            "tensor '%.*s' is in '%.*s', which is no safetensors file at the top "
                            "of the repository",
                            (int)ggl_utf8_cut(tensor.s, tensor.n, MOST_SHOWN), tensor.s,
                            text ? (int)ggl_utf8_cut(v->s, v->n, MOST_SHOWN) : 0, text ? v->s : "");
        if (!added[f - l->file])
            st = add_file(s, f, err);
        added[f - l->file] = true;
    }
    return st;
}

/* Reads the index, which has been downloaded, and adds the files that it names. */
static ggl_status read_index(const hub *h, hub_set *s, ggl_error *err) {
    char *path = llm_hub_join(h->cache, h->folder, HUB_INDEX);
    bool *added = ggl_calloc(h->list.n + 1, sizeof *added);
    llm_json *doc = NULL;
    ggl_status st = path && added ? llm_json_read(&doc, path, MOST_INDEX, err)
                                  : ggl_fail(err, GGL_NOMEM, "out of memory");
    if (st == GGL_OK) {
        const json_value *map = llm_json_get_kind(&doc->root, "weight_map", JSON_OBJECT);
        st = map && map->n > 0
                 ? add_indexed(&h->list, map, s, added, err)
                 : ggl_fail(err, GGL_FORMAT, "the object 'weight_map' with tensors is missing");
        if (st == GGL_FORMAT)
            st = ggl_within(err, st, "%s: " HUB_INDEX, h->name);
        llm_json_free(doc);
    }
    ggl_free(added);
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
static ggl_status add_parts(const hub *h, hub_set *s, ggl_error *err) {
    char name[64];
    int k, n = 0;
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < h->list.n && n == 0; i++)
        if (!read_part(h->list.file[i].path, &k, &n))
            n = 0;
    if (n == 0)
        return ggl_fail(err, GGL_NOT_FOUND,
                        "%s has a config.json and safetensors, but no model.safetensors and "
                        "no " HUB_INDEX ", which name the weights of a model of text",
                        h->name);
    for (k = 1; k <= n && k <= HUB_MOST_PARTS && st == GGL_OK; k++) {
        snprintf(name, sizeof name, "model-%05d-of-%05d.safetensors", k, n);
        const hub_file *f = llm_hub_list_find(&h->list, name);
        st = f ? add_file(s, f, err)
               : ggl_fail(err, GGL_NOT_FOUND, "%s lacks %s, part %d of %d of the model", h->name,
                          name, k, n);
    }
    return st == GGL_OK && n > HUB_MOST_PARTS ? llm_hub_too_many(h, (size_t)n, err) : st;
}

/* Adds the files of weights to the set. An index, if there is one, has been downloaded. */
static ggl_status add_weights(const hub *h, hub_set *s, ggl_error *err) {
    const size_t n_before = s->n;
    const hub_file *one = llm_hub_list_find(&h->list, "model.safetensors");
    const ggl_status st = llm_hub_list_find(&h->list, HUB_INDEX) ? read_index(h, s, err)
                          : one                                  ? add_file(s, one, err)
                                                                 : add_parts(h, s, err);
    const size_t n = s->n - n_before;
    return st == GGL_OK && n > HUB_MOST_PARTS ? llm_hub_too_many(h, n, err) : st;
}

/* --- the folder ------------------------------------------------------------------------------- */

static ggl_status add_texts(const hub *h, hub_set *s, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < h->list.n && st == GGL_OK; i++)
        if (h->list.file[i].kind == HUB_TEXT)
            st = add_file(s, &h->list.file[i], err);
    const hub_file *index = llm_hub_list_find(&h->list, HUB_INDEX);
    if (st == GGL_OK && index && index->size > MOST_INDEX)
        st = ggl_fail(err, GGL_LIMIT, "%s: " HUB_INDEX " has more than %d MiB", h->name,
                      MOST_INDEX >> 20);
    return st;
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

/* Removes files of a kind that an earlier version of the folder had, and this one has not: they would be read, too. */
static ggl_status remove_older(hub *h, const hub_set *s, hub_kind kind, ggl_error *err) {
    ggl_status st = GGL_OK;
    qsort(s->file, s->n, sizeof *s->file, by_path);
    for (size_t i = 0; i < h->cached.n && st == GGL_OK; i++) {
        const hub_file *f = &h->cached.file[i];
        if (f->kind == kind && !bsearch(&f, s->file, s->n, sizeof *s->file, by_path))
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

/* Downloads all but the weights. */
static ggl_status get_texts(hub *h, const hub_set *s, ggl_error *err) {
    const ggl_status st = llm_hub_fetch(h, s->file, s->n, HUB_CONFIG, err);
    return st == GGL_OK ? remove_older(h, s, HUB_TEXT, err) : st;
}

/* Downloads the weights, which are added to the other files in the set. */
static ggl_status get_weights(hub *h, hub_set *s, ggl_error *err) {
    const size_t n_texts = s->n;
    ggl_status st = add_weights(h, s, err);
    if (st == GGL_OK)
        st = check_texts(h, s->file + n_texts, s->n - n_texts, err);
    if (st == GGL_OK)
        st = llm_hub_fetch(h, s->file + n_texts, s->n - n_texts, HUB_CONFIG, err);
    return st == GGL_OK ? remove_older(h, s, HUB_WEIGHTS, err) : st;
}

ggl_status llm_hub_get_folder(hub *h, ggl_error *err) {
    hub_set s = {0};
    const bool weights = !h->w->no_weights;
    ggl_status st = add_texts(h, &s, err);
    if (st == GGL_OK)
        st = get_texts(h, &s, err);
    if (st == GGL_OK && weights)
        st = get_weights(h, &s, err);
    if (st == GGL_OK)
        llm_hub_set_finished(h, HUB_CONFIG, weights);
    ggl_free(s.file);
    return st;
}

hub_model llm_hub_folder_model(const hub_list *l) {
    const hub_file *name = llm_hub_list_find(l, HUB_INDEX);
    hub_model m = {.folder = true};
    for (size_t i = 0; i < l->n; i++) {
        const hub_file *f = &l->file[i];
        if (f->kind == HUB_GGUF)
            continue;
        if (f->kind == HUB_WEIGHTS && !name)
            name = f;
        m.size += f->size;
        m.n_files++;
    }
    m.path = name ? name->path : HUB_CONFIG;
    return m;
}
