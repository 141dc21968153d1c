/* Writes files of importance matrices. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "imatrix_impl.h"
#include "ggl/alloc.h"
#include "ggl/internal/file.h"
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

/* --- GGUF ------------------------------------------------------------------------------------- */

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

/* --- the old format --------------------------------------------------------------------------- */

static void put(ggl_new_file *f, const void *data, size_t n) {
    if (!ggl_new_file_error(f) && fwrite(data, 1, n, ggl_new_file_stream(f)) != n)
        ggl_new_file_note(f);
}

static void put_i32(ggl_new_file *f, int64_t n) {
    const unsigned char byte[4] = {(unsigned char)n, (unsigned char)(n >> 8),
                                   (unsigned char)(n >> 16), (unsigned char)(n >> 24)};
    put(f, byte, sizeof byte);
}

static int64_t most_rows(const imatrix_entry *e) {
    int64_t most = 0;
    for (int64_t i = 0; i < e->n_mat; i++)
        most = e->count[i] > most ? e->count[i] : most;
    return most;
}

static int64_t count_calls(const imatrix *m, const imatrix_entry *e) {
    const int64_t rows = most_rows(e);
    return rows / m->chunk_size + (rows % m->chunk_size != 0);
}

/* The mean of column k of matrix i, times the calls; infinite if it is too large for f32. */
static float dat_value(const imatrix_entry *e, int64_t i, int64_t k, int64_t n_call) {
    const int64_t count = e->count[i];
    const double mean = count > 0 ? (double)e->sum2[i * e->n_col + k] / (double)count : 1.0,
                 value = mean * (double)n_call;
    return value <= (double)FLT_MAX ? (float)value : INFINITY;
}

static void put_means(ggl_new_file *f, const imatrix_entry *e, int64_t n_call) {
    for (int64_t i = 0; i < e->n_mat; i++)
        for (int64_t k = 0; k < e->n_col; k++) {
            const float value = dat_value(e, i, k, n_call);
            put(f, &value, sizeof value);
        }
}

static bool is_finite(const imatrix *m, const imatrix_entry *e) {
    const int64_t n_call = count_calls(m, e);
    bool finite = true;
    for (int64_t i = 0; i < e->n_mat; i++)
        for (int64_t k = 0; k < e->n_col && n_call > 0; k++)
            finite = finite && isfinite(dat_value(e, i, k, n_call));
    return finite;
}

/* Fails if a number does not fit into the format. */
static ggl_status check_dat(const imatrix *m, ggl_error *err) {
    for (size_t i = 0; i < m->n; i++) {
        const imatrix_entry *e = &m->entry[i];
        if (e->n_col * e->n_mat > INT32_MAX / 4 || e->name.n > INT32_MAX ||
            most_rows(e) / m->chunk_size >= INT32_MAX || !is_finite(m, e))
            return ggl_fail(
                err, GGL_LIMIT,
                "'%s' has numbers that are too large for the old format; use the GGUF format",
                e->name.s);
    }
    return GGL_OK;
}

static ggl_status write_dat(const imatrix *m, const imatrix_entry **e, const char *path,
                            ggl_error *err) {
    ggl_new_file *f = NULL;
    int64_t n = 0;
    ggl_status st = check_dat(m, err);
    if (st != GGL_OK)
        return ggl_within(err, st, "%s", path);
    st = ggl_new_file_open(&f, path, err);
    if (st != GGL_OK)
        return st;
    for (size_t i = 0; i < m->n; i++)
        n += most_rows(e[i]) > 0;
    put_i32(f, n);
    for (size_t i = 0; i < m->n; i++) {
        const int64_t n_call = count_calls(m, e[i]);
        if (n_call == 0)
            continue;
        put_i32(f, (int64_t)e[i]->name.n);
        put(f, e[i]->name.s, e[i]->name.n);
        put_i32(f, n_call);
        put_i32(f, e[i]->n_col * e[i]->n_mat);
        put_means(f, e[i], n_call);
    }
    const char *text = m->n_datasets > 0 ? m->dataset[m->n_datasets - 1] : "";
    put_i32(f, m->n_chunks < INT32_MAX ? m->n_chunks : INT32_MAX);
    put_i32(f, (int64_t)strlen(text));
    put(f, text, strlen(text));
    return ggl_new_file_commit(f, err);
}

/* --- both ------------------------------------------------------------------------------------- */

ggl_status llm_imatrix_write(const imatrix *m, const char *path, imatrix_format format,
                             ggl_error *err) {
    if (m->n == 0)
        return ggl_fail(err, GGL_USAGE, "%s: there is nothing to write: nothing was collected",
                        path);
    const imatrix_entry **e = in_order(m);
    if (!e)
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory", path);
    const ggl_status st =
        format == IMATRIX_GGUF ? write_gguf(m, e, path, err) : write_dat(m, e, path, err);
    ggl_free(e);
    return st;
}
