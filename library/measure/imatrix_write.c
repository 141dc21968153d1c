/* Writes files of importance matrices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "imatrix_impl.h"
#include "ggl/alloc.h"
#include "ggl/internal/gguf.h"

static int by_name(const void *a, const void *b) {
    const imatrix_entry *x = *(imatrix_entry *const *)a, *y = *(imatrix_entry *const *)b;
    return strcmp(x->name.s, y->name.s);
}

/* Returns the entries in the order of their names, for ggl_free; NULL: out of memory. */
static const imatrix_entry **in_order(const imatrix *m) {
    const imatrix_entry **e = ggl_calloc(m->n, sizeof(imatrix_entry *));
    for (size_t i = 0; e && i < m->n; i++)
        e[i] = &m->entry[i];
    if (e && m->n > 1)
        qsort(e, m->n, sizeof(imatrix_entry *), by_name);
    return e;
}

static void put_datasets(const imatrix *m, ggl_str *text, ggl_gguf_writer *w) {
    for (size_t i = 0; i < m->n_datasets; i++)
        text[i] = (ggl_str){m->dataset[i], strlen(m->dataset[i])};
    ggl_gguf_put_strings(w, IMATRIX_DATASETS, text, m->n_datasets);
}

/* Adds the tensors of the entry. count: memory for its counts as f32. False: out of memory. */
static bool put_entry(const imatrix_entry *e, float *count, ggl_gguf_writer *w) {
    const size_t size = e->name.n + sizeof IMATRIX_SKETCH;
    char *name = ggl_calloc(size, 1);
    if (!name)
        return false;
    snprintf(name, size, "%s" IMATRIX_SUMS, e->name.s);
    ggl_gguf_put_tensor(w, name, GGL_F32, 2, (const int64_t[]){e->n_col, e->n_mat}, e->sum2);
    for (int64_t i = 0; i < e->n_mat; i++)
        count[i] = (float)e->count[i];
    snprintf(name, size, "%s" IMATRIX_COUNTS, e->name.s);
    ggl_gguf_put_tensor(w, name, GGL_F32, 2, (const int64_t[]){1, e->n_mat}, count);
    if (e->sketch) {
        snprintf(name, size, "%s" IMATRIX_SKETCH, e->name.s);
        ggl_gguf_put_tensor(w, name, GGL_F32, 2, (const int64_t[]){e->n_sketch + 1, e->n_col},
                            e->sketch);
    }
    ggl_free(name);
    return true;
}

static ggl_status write_gguf(const imatrix *m, const imatrix_entry **e, const char *path,
                             ggl_error *err) {
    size_t n_counts = 0;
    for (size_t i = 0; i < m->n; i++)
        n_counts += (size_t)e[i]->n_mat;
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    float *count = ggl_calloc(n_counts, sizeof *count), *at = count;
    ggl_str *text = ggl_calloc(m->n_datasets, sizeof *text);
    bool ok = w && count && text;
    const uint32_t n_chunks = (uint32_t)(m->n_chunks < UINT32_MAX ? m->n_chunks : UINT32_MAX),
                   size = (uint32_t)(m->chunk_size < UINT32_MAX ? m->chunk_size : UINT32_MAX);
    if (ok) {
        ggl_gguf_put_string(w, "general.type", IMATRIX_TYPE, strlen(IMATRIX_TYPE));
        put_datasets(m, text, w);
        ggl_gguf_put(w, IMATRIX_CHUNK_COUNT, GGL_GGUF_U32, false, &n_chunks, 1);
        ggl_gguf_put(w, IMATRIX_CHUNK_SIZE, GGL_GGUF_U32, false, &size, 1);
    }
    for (size_t i = 0; i < m->n && ok; i++) {
        ok = put_entry(e[i], at, w);
        at += e[i]->n_mat;
    }
    const ggl_status st = ok ? ggl_gguf_writer_write(w, path, err)
                             : ggl_fail(err, GGL_NOMEM, "%s: out of memory", path);
    ggl_gguf_writer_free(w);
    ggl_free(count);
    ggl_free(text);
    return st;
}

/* --- the file --------------------------------------------------------------------------------- */

ggl_status llm_imatrix_write(const imatrix *m, const char *path, ggl_error *err) {
    if (m->n == 0)
        return ggl_fail(err, GGL_USAGE, "%s: there is nothing to write: nothing was collected",
                        path);
    const imatrix_entry **e = in_order(m);
    if (!e)
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory", path);
    const ggl_status st = write_gguf(m, e, path, err);
    ggl_free(e);
    return st;
}
