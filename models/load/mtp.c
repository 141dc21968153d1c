#include "llm/internal/mtp.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/text.h"

enum { MOST_NAME = 256 };

static bool lacks_first_layer(const ggl_gguf *f) {
    bool has_layers = false;
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const ggl_str name = ggl_gguf_tensor_at(f, i)->name;
        if (ggl_str_begins_with(name, "blk.0."))
            return false;
        has_layers = has_layers || ggl_str_begins_with(name, "blk.");
    }
    return has_layers;
}

bool llm_mtp_is(const char *path) {
    const ggl_gguf_params how = {.size = sizeof how, .meta_only = true};
    ggl_gguf *f = NULL;
    ggl_error ignored;
    const bool is = ggl_gguf_open(&f, path, &how, &ignored) == GGL_OK && lacks_first_layer(f);
    ggl_gguf_close(f);
    return is;
}

/* --- joining ---------------------------------------------------------------------------------- */

/* Both files, which the joined one owns. */
typedef struct mtp_pair {
    ggl_gguf *model, *layers;
} mtp_pair;

static void close_pair(void *owner) {
    mtp_pair *p = owner;
    ggl_gguf_close(p->model);
    ggl_gguf_close(p->layers);
    ggl_free(p);
}

/* Checks that sizes which both files tell are the same. */
static ggl_status check_sizes(const mtp_pair *p, ggl_str arch, ggl_error *err) {
    static const char *const sizes[] = {"embedding_length", "vocab_size", "attention.head_count"};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        char key[MOST_NAME];
        snprintf(key, sizeof key, "%.*s.%s", (int)arch.n, arch.s, sizes[k]);
        int64_t a, b;
        if (ggl_gguf_get_integer(p->model, key, &a, NULL) == 1 &&
            ggl_gguf_get_integer(p->layers, key, &b, NULL) == 1 && a != b)
            return ggl_fail(err, GGL_UNSUPPORTED,
                            "%s has layers that guess for another model: its %s is %" PRId64
                            ", and that of %s is %" PRId64,
                            ggl_gguf_name(p->layers), key, b, ggl_gguf_name(p->model), a);
    }
    return GGL_OK;
}

static ggl_status check_architecture(const mtp_pair *p, ggl_str *arch, ggl_error *err) {
    ggl_str of;
    if (ggl_gguf_get_string(p->model, "general.architecture", arch, err) != 1 ||
        ggl_gguf_get_string(p->layers, "general.architecture", &of, err) != 1)
        return ggl_fail(err, GGL_FORMAT, "%s and %s: both need the key general.architecture",
                        ggl_gguf_name(p->model), ggl_gguf_name(p->layers));
    if (of.n == arch->n && memcmp(of.s, arch->s, of.n) == 0)
        return check_sizes(p, of, err);
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "%s has layers that guess for a model of the architecture %.*s, and %s is of "
                    "%.*s",
                    ggl_gguf_name(p->layers), (int)of.n, of.s, ggl_gguf_name(p->model),
                    (int)arch->n, arch->s);
}

/* Puts the model's keys, and in the place of those of its architecture the other file's, whose number of layers counts. */
static void put_keys(const mtp_pair *p, ggl_str arch, ggl_gguf_writer *w) {
    char prefix[MOST_NAME];
    snprintf(prefix, sizeof prefix, "%.*s.", (int)arch.n, arch.s);
    for (size_t i = 0; i < ggl_gguf_n_values(p->model); i++) {
        const ggl_gguf_value *v = ggl_gguf_value_at(p->model, i);
        if (!ggl_str_begins_with(v->key, prefix))
            ggl_gguf_put_value(w, v);
    }
    for (size_t i = 0; i < ggl_gguf_n_values(p->layers); i++) {
        const ggl_gguf_value *v = ggl_gguf_value_at(p->layers, i);
        if (ggl_str_begins_with(v->key, prefix))
            ggl_gguf_put_value(w, v);
    }
}

static ggl_status put_tensors(const ggl_gguf *f, const ggl_gguf *unless_in, ggl_gguf_writer *w,
                              size_t *n, ggl_error *err) {
    *n = 0;
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
        char name[MOST_NAME];
        if (t->name.n >= sizeof name)
            return ggl_fail(err, GGL_LIMIT, "%s: the name of tensor %zu has %zu bytes",
                            ggl_gguf_name(f), i, t->name.n);
        memcpy(name, t->name.s, t->name.n);
        name[t->name.n] = 0;
        if (unless_in && ggl_gguf_find_tensor(unless_in, name))
            continue;
        ggl_gguf_put_tensor(w, name, t->type, t->n_dims, t->ne, t->data);
        ++*n;
    }
    return GGL_OK;
}

static ggl_status compose(ggl_gguf **out, mtp_pair *p, const ggl_gguf_params *how,
                          const ggl_gguf_writer *w, ggl_error *err) {
    const int n_model = ggl_gguf_n_parts(p->model), n = n_model + ggl_gguf_n_parts(p->layers);
    ggl_gguf_memory *part = ggl_calloc((size_t)n, sizeof *part);
    if (!part)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    for (int i = 0; i < n; i++)
        part[i] = i < n_model ? ggl_gguf_part_memory(p->model, i)
                              : ggl_gguf_part_memory(p->layers, i - n_model);
    const ggl_gguf_composition c = {.size = sizeof c,
                                    .name = ggl_gguf_name(p->model),
                                    .part = part,
                                    .n_parts = n,
                                    .lock = how && how->lock, /* and say if that fails */
                                    .release = close_pair,
                                    .owner = p};
    const ggl_status s = ggl_gguf_compose(out, w, &c, err);
    ggl_free(part);
    return s;
}

static ggl_status join(ggl_gguf **out, mtp_pair *p, const ggl_gguf_params *how, ggl_error *err) {
    ggl_str arch;
    size_t n;
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_status s =
        w ? check_architecture(p, &arch, err) : ggl_fail(err, GGL_NOMEM, "out of memory");
    if (s == GGL_OK) {
        put_keys(p, arch, w);
        s = put_tensors(p->model, NULL, w, &n, err);
    }
    if (s == GGL_OK)
        s = put_tensors(p->layers, p->model, w, &n, err);
    if (s == GGL_OK && n == 0)
        s = ggl_fail(err, GGL_UNSUPPORTED, "%s has all that %s has: its own layers guess",
                     ggl_gguf_name(p->model), ggl_gguf_name(p->layers));
    if (s == GGL_OK)
        s = compose(out, p, how, w, err);
    ggl_gguf_writer_free(w);
    return s;
}

ggl_status llm_mtp_join(ggl_gguf **file, const char *path, const ggl_gguf_params *gguf,
                        ggl_error *err) {
    mtp_pair *p = ggl_calloc(1, sizeof *p);
    if (!p)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    p->model = *file;
    ggl_status s = ggl_gguf_open(&p->layers, path, gguf, err);
    if (s == GGL_OK)
        s = join(file, p, gguf, err);
    if (s == GGL_OK)
        return GGL_OK;
    *file = p->model;
    ggl_gguf_close(p->layers);
    ggl_free(p);
    return s;
}
