/* Opens a file that was never written: keys and tensor table of a writer, data wherever it lies. */
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/params.h"
#include "gguf_file.h"

ggl_gguf_memory ggl_gguf_part_memory(const ggl_gguf *f, int part) {
    if (part < 0 || part >= f->n_parts)
        return (ggl_gguf_memory){0};
    const gguf_part *p = &f->parts[part];
    return (ggl_gguf_memory){.data = p->data,
                             .size = p->size,
                             .is_file = p->is_file,
                             .modified = p->modified,
                             .mapped = p->mapped};
}

/* Returns the part that holds all bytes of the tensor; the search begins at `first`, because tensors
 * that follow one another mostly lie in the same part. -1: none does. */
static int part_of(const ggl_gguf *f, const uint8_t *data, size_t size, int first) {
    for (int i = 0; i < f->n_parts; i++) {
        const int k = (first + i) % f->n_parts;
        const gguf_part *p = &f->parts[k];
        const uintptr_t at = (uintptr_t)data - (uintptr_t)p->data;
        if (at <= p->size && size <= p->size - at)
            return k;
    }
    return -1;
}

static ggl_status place_tensors(ggl_gguf *f, const ggl_gguf_writer *w, ggl_error *err) {
    int part = 0;
    for (size_t i = 0; i < f->n_tensors; i++) {
        ggl_gguf_tensor *t = &f->tensors[i];
        t->data = ggl_gguf_writer_data(w, i);
        if (!t->data)
            continue;
        const int found = part_of(f, t->data, t->size, part);
        if (found < 0)
            return ggl_fail(err, GGL_USAGE, "the data of tensor '%s' is in no part",
                            ggl_gguf_show(t->name).s);
        if ((uintptr_t)t->data % ggl_gguf_type_alignment(t->type) != 0)
            return ggl_fail(err, GGL_USAGE, "the data of tensor '%s' is not aligned",
                            ggl_gguf_show(t->name).s);
        t->part = part = found;
    }
    return GGL_OK;
}

static ggl_status add_parts(ggl_gguf *f, const ggl_gguf_composition *c, ggl_error *err) {
    f->parts = ggl_calloc((size_t)c->n_parts, sizeof *f->parts);
    if (!f->parts)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    f->n_parts = c->n_parts;
    for (int i = 0; i < c->n_parts; i++) {
        const ggl_gguf_memory *m = &c->part[i];
        f->parts[i] = (gguf_part){.data = m->data,
                                  .size = m->size,
                                  .is_file = m->is_file,
                                  .mapped = m->mapped,
                                  .modified = m->modified};
        const os_map all = {.data = m->data, .size = m->size};
        f->lock_failed |= c->lock && !ggl_os_map_lock(&all);
    }
    f->parts[0].path = ggl_calloc(strlen(c->name) + 1, 1);
    if (!f->parts[0].path)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    strcpy(f->parts[0].path, c->name);
    return GGL_OK;
}

static ggl_status compose(ggl_gguf *f, const ggl_gguf_writer *w, const ggl_gguf_composition *c,
                          ggl_error *err) {
    const ggl_gguf_params params = {.size = sizeof params, .meta_only = true};
    ggl_status s = add_parts(f, c, err);
    if (s == GGL_OK)
        s = ggl_gguf_writer_head(w, &f->composed, &f->composed_size, err);
    if (s == GGL_OK)
        s = ggl_gguf_head_read(&f->parts[0].head, f->composed, f->composed_size, &params, err);
    if (s == GGL_OK)
        s = ggl_gguf_collect_tensors(f, &params, err);
    return s == GGL_OK ? place_tensors(f, w, err) : s;
}

ggl_status ggl_gguf_compose(ggl_gguf **out, const ggl_gguf_writer *w,
                            const ggl_gguf_composition *composition, ggl_error *err) {
    ggl_gguf_composition c = {.size = sizeof c};
    *out = NULL;
    ggl_status s = GGL_READ_PARAMS(ggl_gguf_composition, &c, composition, err);
    if (s == GGL_OK && (!c.name || c.n_parts < 1))
        s = ggl_fail(err, GGL_USAGE, "a composed file needs a name and at least one part");
    if (s != GGL_OK)
        return s;
    ggl_gguf *f = ggl_calloc(1, sizeof *f);
    s = f ? compose(f, w, &c, err) : ggl_fail(err, GGL_NOMEM, "out of memory");
    if (s != GGL_OK) {
        ggl_gguf_close(f);
        return ggl_within(err, s, "%s", c.name);
    }
    f->release = c.release;
    f->owner = c.owner;
    *out = f;
    return GGL_OK;
}
