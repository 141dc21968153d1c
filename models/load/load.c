/* Opens files and folders as GGUF files: see llm/load.h. */
#include "llm/load.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ggl/alloc.h"
#include "ggl/params.h"
#include "load_impl.h"

enum { ALIGNMENT = 64 }; /* of a made tensor, in bytes: a line of the cache */

static void free_loaded(void *owner) {
    loaded *l = owner;
    if (!l)
        return;
    llm_converter_free(l->converter);
    ggl_free(l->tensor);
    ggl_free(l->block);
    ggl_free(l);
}

bool llm_load_converts(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* --- the tensors and their places ------------------------------------------------------------- */

/* Returns the numbers where the folder's files have them, if they are the tensor's, and aligned. */
static const void *in_place(const load_tensor *t) {
    const st_tensor *from = NULL;
    const void *data = llm_recipe_in_place(t->recipe, &from);
    return data && from->type == (int)t->type->type && (uintptr_t)data % t->type->size == 0 ? data
                                                                                            : NULL;
}

static ggl_status list_tensors(loaded *l, ggl_error *err) {
    llm_converter *c = l->converter;
    l->n = c->conv.n_tensor;
    l->tensor = ggl_calloc(l->n + 1, sizeof *l->tensor);
    if (!l->tensor)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %zu tensors", l->n);
    for (size_t i = 0; i < l->n; i++) {
        const converted_tensor *x = &c->conv.tensor[i];
        load_tensor *t = &l->tensor[i];
        t->name = x->name;
        t->n_dims = x->n_dims;
        t->ne = x->ne;
        t->recipe = x->recipe;
        t->type = ggl_type_get((int)llm_converter_type(c, x));
        t->size = ggl_row_size(t->type->type, llm_recipe_count(x->recipe));
        t->data = in_place(t);
    }
    return GGL_OK;
}

/* Gives each tensor that must be made a place in new memory. */
static ggl_status place_made(loaded *l, ggl_error *err) {
    const long page = sysconf(_SC_PAGESIZE);
    const size_t align = page > ALIGNMENT ? (size_t)page : ALIGNMENT;
    size_t size = 0, at = 0;
    bool fits = true;
    for (size_t i = 0; i < l->n; i++)
        fits = fits && (l->tensor[i].data || (ggl_size_add(size, l->tensor[i].size, &size) &&
                                              ggl_size_align(size, ALIGNMENT, &size)));
    fits = fits && ggl_size_align(size, align, &size);
    size_t block;
    if (fits && ggl_size_add(size, align, &block))
        l->block = ggl_calloc(block, 1);
    if (!l->block)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %zu bytes of tensors that are made",
                        size);
    l->memory = (char *)l->block + (align - (uintptr_t)l->block % align);
    l->memory_size = size;
    for (size_t i = 0; i < l->n; i++) {
        load_tensor *t = &l->tensor[i];
        if (t->data)
            continue;
        t->data = t->to = l->memory + at;
        at += (t->size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    return GGL_OK;
}

/* --- the file --------------------------------------------------------------------------------- */

/* The writer's callback for tensors without data, which is never called. */
static ggl_status no_data(void *ctx, ggl_gguf_sink *to, ggl_error *err) {
    (void)ctx;
    (void)to;
    return ggl_fail(err, GGL_USAGE, "a tensor without data cannot be written");
}

static void put_tensors(const loaded *l, ggl_gguf_writer *w) {
    for (size_t i = 0; i < l->n; i++) {
        const load_tensor *t = &l->tensor[i];
        if (l->gguf.meta_only)
            ggl_gguf_put_tensor_later(w, t->name, t->type->type, t->n_dims, t->ne, no_data, NULL);
        else
            ggl_gguf_put_tensor(w, t->name, t->type->type, t->n_dims, t->ne, t->data);
    }
}

/* Composes the file, which then owns l. Its parts are the folder's files and the made tensors. */
static ggl_status compose(ggl_gguf **out, loaded *l, const ggl_gguf_writer *w, const char *name,
                          ggl_error *err) {
    const llm_safetensors *st = l->converter->source;
    const int n_file = st ? st->n_file : 0;
    ggl_gguf_memory *part = ggl_calloc((size_t)n_file + 1, sizeof *part);
    if (!part)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    for (int i = 0; i < n_file; i++)
        part[i] = (ggl_gguf_memory){.data = st->map[i].data,
                                    .size = st->map[i].size,
                                    .is_file = true,
                                    .mapped = st->map[i].mapped,
                                    .modified = st->map[i].modified};
    part[n_file] = (ggl_gguf_memory){.data = l->memory, .size = l->memory_size};
    const bool more = l->memory_size > 0 || n_file == 0;
    const ggl_gguf_composition c = {.size = sizeof c,
                                    .name = name,
                                    .part = part,
                                    .n_parts = n_file + more,
                                    .lock = l->gguf.lock && !l->gguf.meta_only,
                                    .release = free_loaded,
                                    .owner = l};
    const ggl_status s = ggl_gguf_compose(out, w, &c, err);
    ggl_free(part);
    return s;
}

static ggl_status open_file(ggl_gguf **out, loaded *l, const char *name, ggl_error *err) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_status s = w ? list_tensors(l, err) : ggl_fail(err, GGL_NOMEM, "out of memory");
    if (s == GGL_OK)
        s = llm_converter_put_keys(l->converter, w, err);
    if (s == GGL_OK && !l->gguf.meta_only)
        s = place_made(l, err);
    if (s == GGL_OK && !l->gguf.meta_only)
        s = llm_load_make(l, err);
    if (s == GGL_OK) {
        put_tensors(l, w);
        s = compose(out, l, w, name, err);
    }
    ggl_gguf_writer_free(w);
    return s;
}

/* --- the folder ------------------------------------------------------------------------------- */

static void tell_notes(const loaded *l) {
    char line[512];
    const char *end;
    for (const char *s = llm_converter_notes(l->converter); l->params.note && *s; s = end + 1) {
        end = strchr(s, '\n');
        snprintf(line, sizeof line, "%.*s", (int)(end - s), s);
        l->params.note(l->params.ctx, line);
    }
}

static ggl_status open_converter(loaded *l, const char *path, ggl_error *err) {
    llm_convert_params p = llm_convert_default();
    ggl_status s = GGL_OK;
    if (l->params.open_backend && l->params.close_backend)
        s = l->params.open_backend(&l->backend, "reference", NULL, err);
    if (s != GGL_OK)
        return s;
    p.arch_path = l->params.arch_path;
    p.arch_class = l->params.arch_class;
    p.backend = l->backend;
    p.vocab_only = l->params.vocab_only;
    p.how = (ggl_file_how){.no_mmap = l->gguf.no_mmap,
                           .populate = l->gguf.populate && !l->gguf.meta_only,
                           .willneed = l->gguf.willneed && !l->gguf.meta_only};
    s = llm_converter_open(&l->converter, path, &p, err);
    if (s == GGL_OK)
        tell_notes(l);
    return s;
}

/* Returns the path without '/' at its end, to be freed. */
static char *name_of(const char *path) {
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    char *name = ggl_calloc(n + 1, 1);
    if (name)
        memcpy(name, path, n);
    return name;
}

static ggl_status load_folder(ggl_gguf **out, loaded *l, const char *path, ggl_error *err) {
    char *name = name_of(path);
    ggl_status s = name ? open_converter(l, name, err) : ggl_fail(err, GGL_NOMEM, "out of memory");
    if (s == GGL_OK && (s = open_file(out, l, name, err)) != GGL_OK &&
        strncmp(err->msg, name, strlen(name)) != 0)
        s = ggl_within(err, s, "%s", name);
    ggl_free(name);
    if (l->backend)
        l->params.close_backend(l->backend);
    return s;
}

ggl_status llm_load(ggl_gguf **out, const char *path, const ggl_gguf_params *gguf,
                    const llm_load_params *params, ggl_error *err) {
    ggl_error own;
    err = err ? err : &own;
    *out = NULL;
    if (!llm_load_converts(path))
        return ggl_gguf_open(out, path, gguf, err);
    loaded *l = ggl_calloc(1, sizeof *l);
    if (!l)
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory", path);
    l->params.size = sizeof l->params;
    l->gguf.size = sizeof l->gguf;
    ggl_status s = GGL_READ_PARAMS(llm_load_params, &l->params, params, err);
    if (s == GGL_OK)
        s = GGL_READ_PARAMS(ggl_gguf_params, &l->gguf, gguf, err);
    if (s == GGL_OK)
        s = load_folder(out, l, path, err);
    if (s != GGL_OK)
        free_loaded(l);
    return s;
}
