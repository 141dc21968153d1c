/* Changes keys of an opened file, in memory only. */
#include <string.h>

#include "ggl/alloc.h"
#include "gguf_file.h"

/* Fails if a value would replace a list. */
static ggl_status check_lists(const gguf_head *head, const gguf_head *with, ggl_error *err) {
    for (size_t i = 0; i < with->n_values; i++) {
        const size_t k = ggl_index_find(&head->by_key, head->values, with->values[i].pub.key);
        if (k != SIZE_MAX && head->values[k].pub.is_array)
            return ggl_fail(err, GGL_USAGE,
                            "key '%s' is a list, and only keys with one value can be changed",
                            ggl_gguf_show(with->values[i].pub.key).s);
    }
    return GGL_OK;
}

/* Puts the values of `with` in the place of those of the same key, or after all others. */
static ggl_status join(gguf_head *head, const gguf_head *with, ggl_error *err) {
    const size_t most = head->n_values + with->n_values;
    ggl_index index;
    gguf_value *v = ggl_calloc(most + 1, sizeof *v);
    if (!v)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %zu keys", most);
    const ggl_status s = ggl_index_init(&index, most, sizeof *v, GGL_INDEX_STRINGS, err);
    if (s != GGL_OK) {
        ggl_free(v);
        return s;
    }
    size_t n = head->n_values;
    if (n > 0)
        memcpy(v, head->values, n * sizeof *v);
    for (size_t i = 0; i < n; i++)
        (void)ggl_index_put(&index, v, i);
    for (size_t i = 0; i < with->n_values; i++) {
        v[n] = with->values[i];
        const size_t at = ggl_index_put(&index, v, n);
        n += at == n;
        v[at] = with->values[i]; /* whose key is the same */
        v[at].is_changed = true;
    }
    ggl_free(head->values);
    ggl_index_fini(&head->by_key);
    head->values = v;
    head->n_values = n;
    head->by_key = index;
    return GGL_OK;
}

static ggl_status change(ggl_gguf *f, const ggl_gguf_writer *w, ggl_error *err) {
    const ggl_gguf_params params = {.size = sizeof params, .meta_only = true};
    gguf_head *head = &f->parts[0].head, with = {0};
    ggl_status s = f->changes ? ggl_fail(err, GGL_USAGE, "keys can be changed only once")
                              : ggl_gguf_writer_head(w, &f->changes, &f->changes_size, err);
    if (s != GGL_OK)
        return s;
    s = ggl_gguf_head_read(&with, f->changes, f->changes_size, &params, err);
    if (s == GGL_OK)
        s = check_lists(head, &with, err);
    if (s == GGL_OK)
        s = join(head, &with, err);
    if (s == GGL_OK)
        for (size_t i = 0; i < with.n_values; i++)
            with.values[i].starts = NULL; /* they belong to the file now */
    ggl_gguf_head_fini(&with);
    return s;
}

ggl_status ggl_gguf_change(ggl_gguf *f, const ggl_gguf_writer *w, ggl_error *err) {
    const ggl_status s = change(f, w, err);
    return s == GGL_OK ? s : ggl_within(err, s, "%s", ggl_gguf_name(f));
}

bool ggl_gguf_is_changed(const ggl_gguf_value *v) {
    return ((const gguf_value *)v)->is_changed;
}

const void *ggl_gguf_changes(const ggl_gguf *f, size_t *size) {
    *size = f->changes_size;
    return f->changes;
}
