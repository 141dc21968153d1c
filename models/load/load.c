/* Opens files and folders as GGUF files: see llm/internal/load.h. */
#include "llm/internal/load.h"

#include <stdio.h>
#include <string.h>

#include "common/model_folder.h"
#include "convert/hf_tokenizer.h"
#include "convert/pickle.h"
#include "ggl/internal/os_fs.h"
#include "ggl/alloc.h"
#include "ggl/internal/params.h"
#include "load_impl.h"
#include "quant/keys.h"
#include "ggl/internal/os_process.h"

enum { ALIGNMENT = 64 }; /* of a made tensor, in bytes: a line of the cache */

/* Frees all but the made tensors. */
static void free_sources(loaded *l) {
    llm_converter_free(l->converter);
    l->converter = NULL;
    ggl_gguf_close(l->plain);
    l->plain = NULL;
    llm_quant_plan_fini(&l->plan);
    ggl_free(l->tensor);
    l->tensor = NULL;
}

static void free_loaded(void *owner) {
    loaded *l = owner;
    if (!l)
        return;
    free_sources(l);
    ggl_free(l->block);
    ggl_free(l);
}

bool llm_load_converts(const char *path) {
    return llm_is_folder(path) || llm_converter_is_file(path) || llm_pickle_is(path);
}

bool llm_load_is_tokenizer(const char *path) {
    return llm_hf_tokenizer_is_file(path);
}

/* --- the tensors and their places ------------------------------------------------------------- */

/* Returns the numbers where the folder's files have them, if they are the tensor's, and aligned. */
static const void *in_place(const load_tensor *t) {
    const st_tensor *from = NULL;
    const void *data = llm_recipe_in_place(t->recipe, &from);
    const size_t align = t->type->quantized ? 1 : t->type->size;
    return data && from->type == (int)t->type->type && (uintptr_t)data % align == 0 ? data : NULL;
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
        t->type = t->source = ggl_type_get((int)llm_converter_type(c, x));
        t->count = llm_recipe_count(x->recipe);
        t->size = ggl_row_size(t->type->type, t->count);
        t->data = in_place(t);
    }
    return GGL_OK;
}

/* Gives each tensor that must be made a place in new memory. */
static ggl_status place_made(loaded *l, ggl_error *err) {
    const size_t page = ggl_os_page_size();
    const size_t align = page > ALIGNMENT ? page : ALIGNMENT;
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

static void put_tensors(const loaded *l, ggl_gguf_writer *w, bool meta_only) {
    for (size_t i = 0; i < l->n; i++) {
        const load_tensor *t = &l->tensor[i];
        if (meta_only)
            ggl_gguf_put_tensor_later(w, t->name, t->type->type, t->n_dims, t->ne, no_data, NULL);
        else
            ggl_gguf_put_tensor(w, t->name, t->type->type, t->n_dims, t->ne, t->data);
    }
}

/* Sets part[0], .. to the memory of the sources, and returns how many there are. */
static int source_parts(const loaded *l, ggl_gguf_memory *part) {
    const llm_safetensors *st = l->converter ? l->converter->source : NULL;
    int n = 0;
    for (; st && n < st->n_file; n++)
        part[n] = (ggl_gguf_memory){.data = st->map[n].data,
                                    .size = st->map[n].size,
                                    .is_file = true,
                                    .mapped = st->map[n].mapped,
                                    .modified = st->map[n].modified};
    for (; !st && l->plain && n < ggl_gguf_n_parts(l->plain); n++)
        part[n] = ggl_gguf_part_memory(l->plain, n);
    return n;
}

/* Returns the memory of the made tensors; if it replaces the sources, as a file that is as old. */
static ggl_gguf_memory made_part(const loaded *l, const ggl_gguf_memory *source, int n) {
    ggl_gguf_memory made = {.data = l->memory, .size = l->memory_size};
    for (int i = 0; i < n && l->copied; i++) {
        made.is_file = made.is_file || source[i].is_file;
        made.modified = source[i].modified > made.modified ? source[i].modified : made.modified;
    }
    return made;
}

/* Composes the file, which then owns l. Its parts are the source's files and the made tensors. */
static ggl_status compose(ggl_gguf **out, loaded *l, const ggl_gguf_writer *w, const char *name,
                          ggl_error *err) {
    const llm_safetensors *st = l->converter ? l->converter->source : NULL;
    const size_t most =
        (st ? (size_t)st->n_file : 0) + (l->plain ? (size_t)ggl_gguf_n_parts(l->plain) : 0) + 1;
    ggl_gguf_memory *part = ggl_calloc(most, sizeof *part);
    if (!part)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    int n = source_parts(l, part);
    const ggl_gguf_memory made = made_part(l, part, n);
    n = l->copied ? 0 : n;
    if (made.size > 0 || n == 0)
        part[n++] = made;
    const ggl_gguf_composition c = {.size = sizeof c,
                                    .name = name,
                                    .part = part,
                                    .n_parts = n,
                                    .lock = l->gguf.lock && !l->gguf.meta_only,
                                    .release = free_loaded,
                                    .owner = l};
    const ggl_status s = ggl_gguf_compose(out, w, &c, err);
    ggl_free(part);
    if (s == GGL_OK && l->copied)
        free_sources(l);
    return s;
}

/* Opens the converted file without data, for the choice of types. */
static ggl_status open_plain(loaded *l, const char *name, ggl_error *err) {
    const ggl_gguf_memory nothing = {.size = 0};
    const ggl_gguf_composition c = {.size = sizeof c, .name = name, .part = &nothing, .n_parts = 1};
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_status s = w ? llm_converter_put_keys(l->converter, w, err)
                     : ggl_fail(err, GGL_NOMEM, "out of memory");
    if (s == GGL_OK) {
        put_tensors(l, w, true);
        s = ggl_gguf_compose(&l->plain, w, &c, err);
    }
    ggl_gguf_writer_free(w);
    return s;
}

/* Chooses types and puts the keys. */
static ggl_status put_keys(loaded *l, ggl_gguf_writer *w, const char *name, ggl_error *err) {
    if (!l->quantizes)
        return llm_converter_put_keys(l->converter, w, err);
    ggl_status s = l->plain ? GGL_OK : open_plain(l, name, err);
    if (s == GGL_OK)
        s = llm_load_plan(l, err);
    if (s == GGL_OK)
        s = llm_quant_put_keys(w, l->plain, &l->choice, l->plan.n_layer, NULL, 0, err);
    return s;
}

static ggl_status open_file(ggl_gguf **out, loaded *l, const char *name, ggl_error *err) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_status s = w ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory");
    if (s == GGL_OK && l->converter)
        s = list_tensors(l, err);
    if (s == GGL_OK)
        s = put_keys(l, w, name, err);
    if (s == GGL_OK && !l->gguf.meta_only)
        s = place_made(l, err);
    if (s == GGL_OK && !l->gguf.meta_only)
        s = llm_load_make(l, err);
    if (s == GGL_OK) {
        put_tensors(l, w, l->gguf.meta_only);
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
    p.type = l->convert_type;
    p.vocab_only = l->params.vocab_only;
    p.target = l->params.target;
    p.eye = l->params.eye;
    p.senses = l->params.ear ? LLM_CONVERT_EAR : LLM_CONVERT_FIRST_SENSE;
    p.needs_weights = l->params.needs_weights;
    p.how = (ggl_file_how){.no_mmap = l->gguf.no_mmap,
                           .populate = l->gguf.populate && !l->gguf.meta_only,
                           .willneed = l->gguf.willneed && !l->gguf.meta_only};
    s = llm_converter_open(&l->converter, path, &p, err);
    if (s == GGL_OK)
        tell_notes(l);
    return s;
}

/* Returns the path without separators at its end, to be freed. */
static char *name_of(const char *path) {
    size_t n = strlen(path);
    while (n > 1 && ggl_os_separates(path[n - 1]))
        n--;
    char *name = ggl_calloc(n + 1, 1);
    if (name)
        memcpy(name, path, n);
    return name;
}

/* Puts the path before an error that does not begin with it. */
static ggl_status name_error(ggl_status s, const char *name, ggl_error *err) {
    return s == GGL_OK || strncmp(err->msg, name, strlen(name)) == 0
               ? s
               : ggl_within(err, s, "%s", name);
}

/* Refuses a folder that has nothing to convert, and proposes a GGUF file that is in it. */
static ggl_status check_folder(const loaded *l, const char *name, ggl_error *err) {
    char *meant, more[64] = "";
    size_t n;
    if (l->params.vocab_only || !llm_is_folder(name) || llm_folder_is_model(name))
        return GGL_OK;
    const ggl_status s = llm_folder_refuse(name, &meant, &n, err);
    if (n > 1)
        snprintf(more, sizeof more, " (the first of %zu)", n);
    if (meant)
        (void)ggl_fail(err, s, "%s; did you mean %s/%s%s?", err->msg, name, meant, more);
    ggl_free(meant);
    return s;
}

static ggl_status load_folder(ggl_gguf **out, loaded *l, const char *path, ggl_error *err) {
    char *name = name_of(path);
    ggl_status s = name ? check_folder(l, name, err) : ggl_fail(err, GGL_NOMEM, "out of memory");
    if (s == GGL_OK)
        s = open_converter(l, name, err);
    if (s == GGL_OK)
        s = name_error(open_file(out, l, name, err), name, err);
    ggl_free(name);
    if (l->backend)
        l->params.close_backend(l->backend);
    return s;
}

/* --- a tokenizer alone ------------------------------------------------------------------------ */

static ggl_status compose_tokenizer(ggl_gguf **out, const llm_hf_tokenizer *t, const char *path,
                                    ggl_error *err) {
    const ggl_gguf_memory nothing = {.size = 0};
    const ggl_gguf_composition c = {.size = sizeof c, .name = path, .part = &nothing, .n_parts = 1};
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    if (!w)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    llm_hf_tokenizer_put(t, w);
    const ggl_status s = ggl_gguf_compose(out, w, &c, err);
    ggl_gguf_writer_free(w);
    return s;
}

/* Opens a tokenizer.json as a file of its keys. */
static ggl_status load_tokenizer(ggl_gguf **out, const loaded *l, const char *path,
                                 ggl_error *err) {
    llm_hf_tokenizer *t = NULL;
    const char *note;
    ggl_status s = llm_hf_tokenizer_open_file(&t, path, err);
    for (int k = 0; s == GGL_OK && l->params.note && (note = llm_hf_tokenizer_note(t, k)); k++)
        l->params.note(l->params.ctx, note);
    if (s == GGL_OK)
        s = name_error(compose_tokenizer(out, t, path, err), path, err);
    llm_hf_tokenizer_free(t);
    return s;
}

/* --- what is public --------------------------------------------------------------------------- */

static ggl_status new_loaded(loaded **out, const ggl_gguf_params *gguf,
                             const llm_load_params *params, ggl_error *err) {
    loaded *l = *out = ggl_calloc(1, sizeof *l);
    if (!l)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    l->params.size = sizeof l->params;
    l->gguf.size = sizeof l->gguf;
    const ggl_status s = GGL_READ_PARAMS(llm_load_params, &l->params, params, err);
    return s == GGL_OK ? GGL_READ_PARAMS(ggl_gguf_params, &l->gguf, gguf, err) : s;
}

/* Quantizes l->plain, a file; or hands it over as it is. */
static ggl_status finish_file(ggl_gguf **out, loaded *l, ggl_error *err) {
    if (l->quantizes) {
        const char *name = ggl_gguf_name(l->plain);
        ggl_status s = open_file(out, l, name, err); /* closes l->plain if it succeeds */
        return s == GGL_OK ? s : name_error(s, name, err);
    }
    *out = l->plain;
    l->plain = NULL;
    free_loaded(l);
    return GGL_OK;
}

ggl_status llm_load(ggl_gguf **out, const char *path, const ggl_gguf_params *gguf,
                    const llm_load_params *params, ggl_error *err) {
    ggl_error own;
    loaded *l;
    err = err ? err : &own;
    *out = NULL;
    const bool converts = llm_load_converts(path);
    ggl_status s = new_loaded(&l, gguf, params, err);
    if (s == GGL_OK)
        s = llm_load_read_type(l, converts, err);
    const bool alone = s == GGL_OK && l->params.vocab_only && llm_load_is_tokenizer(path);
    if (s == GGL_OK && alone)
        s = load_tokenizer(out, l, path, err);
    else if (s == GGL_OK && converts)
        s = load_folder(out, l, path, err);
    else if (s == GGL_OK)
        s = ggl_gguf_open(&l->plain, path, &l->gguf, err);
    if (s == GGL_OK && !converts && !alone)
        s = finish_file(out, l, err);
    if (s != GGL_OK || alone)
        free_loaded(l);
    return s;
}

ggl_status llm_load_memory(ggl_gguf **out, const void *data, size_t size, const char *name,
                           const llm_load_params *params, ggl_error *err) {
    ggl_error own;
    loaded *l;
    err = err ? err : &own;
    *out = NULL;
    ggl_status s = new_loaded(&l, NULL, params, err);
    if (s == GGL_OK)
        s = llm_load_read_type(l, false, err);
    if (s == GGL_OK)
        s = ggl_gguf_open_memory(&l->plain, data, size, name, err);
    if (s == GGL_OK)
        s = finish_file(out, l, err);
    if (s != GGL_OK)
        free_loaded(l);
    return s;
}
