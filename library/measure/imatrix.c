#include "imatrix.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "imatrix_impl.h"
#include "ggl/internal/alloc.h"

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for an importance matrix");
}

ggl_status llm_imatrix_new(imatrix **out, int64_t chunk_size, ggl_error *err) {
    imatrix *m = *out = ggl_calloc(1, sizeof *m);
    if (!m)
        return no_memory(err);
    m->chunk_size = chunk_size > 0 ? chunk_size : IMATRIX_CHUNK;
    const ggl_status st = ggl_index_init(&m->by_name, 0, sizeof *m->entry, GGL_INDEX_STRINGS, err);
    if (st != GGL_OK) {
        llm_imatrix_free(m);
        *out = NULL;
    }
    return st;
}

static void entry_fini(imatrix_entry *e) {
    ggl_free((char *)(uintptr_t)e->name.s);
    ggl_free(e->sum2);
    ggl_free(e->count);
    ggl_free(e->sketch);
}

void llm_imatrix_free(imatrix *m) {
    if (!m)
        return;
    for (size_t i = 0; i < m->n; i++)
        entry_fini(&m->entry[i]);
    for (size_t i = 0; i < m->n_datasets; i++)
        ggl_free(m->dataset[i]);
    ggl_index_fini(&m->by_name);
    ggl_free(m->entry);
    ggl_free(m->dataset);
    ggl_free(m);
}

/* --- reading ---------------------------------------------------------------------------------- */

size_t llm_imatrix_n(const imatrix *m) {
    return m->n;
}

const imatrix_entry *llm_imatrix_at(const imatrix *m, size_t i) {
    return &m->entry[i];
}

static imatrix_entry *find(const imatrix *m, ggl_str name) {
    const size_t i = ggl_index_find(&m->by_name, m->entry, name);
    return i == SIZE_MAX ? NULL : &m->entry[i];
}

const imatrix_entry *llm_imatrix_find(const imatrix *m, const char *name) {
    return find(m, (ggl_str){name, strlen(name)});
}

size_t llm_imatrix_n_datasets(const imatrix *m) {
    return m->n_datasets;
}

const char *llm_imatrix_dataset(const imatrix *m, size_t i) {
    return i < m->n_datasets ? m->dataset[i] : NULL;
}

int64_t llm_imatrix_chunk_size(const imatrix *m) {
    return m->chunk_size;
}

bool llm_imatrix_tells_chunk_size(const imatrix *m) {
    return m->tells_size;
}

int64_t llm_imatrix_n_chunks(const imatrix *m) {
    return m->n_chunks;
}

bool llm_imatrix_fits(const imatrix_entry *e, int64_t n_col, int64_t n_mat) {
    const int64_t n = e->n_col * e->n_mat;
    return n_col > 0 && n_mat > 0 && n % n_col == 0 && n / n_col == n_mat && e->n_col % n_col == 0;
}

void llm_imatrix_mean(const imatrix_entry *e, int64_t n_col, int64_t i_mat, float *out) {
    const float *sum = e->sum2 + i_mat * n_col;
    const int64_t count = e->count[i_mat * n_col / e->n_col];
    for (int64_t i = 0; i < n_col; i++)
        out[i] = count > 0 ? (float)((double)sum[i] / (double)count) : 1;
}

/* --- adding ----------------------------------------------------------------------------------- */

static char *copy_text(ggl_str s) {
    char *copy = ggl_calloc(s.n + 1, 1);
    if (copy && s.n > 0)
        memcpy(copy, s.s, s.n);
    return copy;
}

ggl_status llm_imatrix_add_new(imatrix *m, ggl_str name, int64_t n_col, int64_t n_mat,
                               imatrix_entry **out, ggl_error *err) {
    if (name.n == 0 || memchr(name.s, 0, name.n))
        return ggl_fail(err, GGL_FORMAT, "the weight's name is empty or has a zero byte");
    if (n_col < 1 || n_mat < 1 || n_col > IMATRIX_MAX_VALUES / n_mat)
        return ggl_fail(err, GGL_LIMIT, "%" PRId64 " matrices of %" PRId64 " columns", n_mat,
                        n_col);
    if (find(m, name))
        return ggl_fail(err, GGL_FORMAT, "there are two entries of this name");
    imatrix_entry e = {.n_col = n_col, .n_mat = n_mat};
    e.name = (ggl_str){copy_text(name), name.n};
    e.sum2 = ggl_calloc((size_t)(n_col * n_mat), sizeof *e.sum2);
    e.count = ggl_calloc((size_t)n_mat, sizeof *e.count);
    if (!e.name.s || !e.sum2 || !e.count ||
        !ggl_grow(&m->entry, &m->cap, m->n + 1, sizeof *m->entry) ||
        ggl_index_reserve(&m->by_name, m->entry, m->n + 1, err) != GGL_OK) {
        entry_fini(&e);
        return no_memory(err);
    }
    m->entry[m->n] = e;
    *out = &m->entry[ggl_index_put(&m->by_name, m->entry, m->n)];
    m->n++;
    return GGL_OK;
}

ggl_status llm_imatrix_add(imatrix *m, const char *name, int64_t n_col, int64_t n_mat,
                           imatrix_entry **out, ggl_error *err) {
    const ggl_str key = {name, strlen(name)};
    *out = find(m, key);
    if (!*out)
        return llm_imatrix_add_new(m, key, n_col, n_mat, out, err);
    if ((*out)->n_col == n_col && (*out)->n_mat == n_mat)
        return GGL_OK;
    return ggl_fail(err, GGL_USAGE,
                    "'%s' has %" PRId64 " columns and %" PRId64 " matrices, not %" PRId64
                    " and %" PRId64,
                    name, (*out)->n_col, (*out)->n_mat, n_col, n_mat);
}

static bool has_rows(const imatrix_entry *e) {
    for (int64_t i = 0; i < e->n_mat; i++)
        if (e->count[i] > 0)
            return true;
    return false;
}

/* Leaves the first n directions of the entry. */
static void shorten(imatrix_entry *e, int n) {
    const int was = e->n_sketch;
    for (int64_t i = 0; i < e->n_col; i++) {
        float *to = e->sketch + i * (n + 1), last = e->sketch[i * (was + 1) + was];
        memmove(to, e->sketch + i * (was + 1), (size_t)n * sizeof *to);
        to[n] = last;
    }
    e->n_sketch = n;
}

ggl_status llm_imatrix_add_sketch(imatrix_entry *e, int n, ggl_error *err) {
    if (e->n_mat == 1 && n > 0 && !e->sketch && !has_rows(e)) {
        e->sketch = ggl_calloc((size_t)e->n_col * (size_t)(n + 1), sizeof *e->sketch);
        if (!e->sketch)
            return no_memory(err);
        e->n_sketch = n;
    } else if (e->n_mat == 1 && e->n_sketch > n && n > 0) {
        shorten(e, n);
    } else if (n == 0 || e->n_mat != 1) {
        ggl_free(e->sketch);
        e->sketch = NULL;
        e->n_sketch = 0;
    }
    return GGL_OK;
}

ggl_status llm_imatrix_add_text(imatrix *m, ggl_str name, ggl_error *err) {
    char *copy = copy_text(name);
    if (!copy || !ggl_grow(&m->dataset, &m->cap_datasets, m->n_datasets + 1, sizeof *m->dataset)) {
        ggl_free(copy);
        return no_memory(err);
    }
    m->dataset[m->n_datasets++] = copy;
    return GGL_OK;
}

ggl_status llm_imatrix_add_dataset(imatrix *m, const char *name, ggl_error *err) {
    return llm_imatrix_add_text(m, (ggl_str){name, strlen(name)}, err);
}

void llm_imatrix_count_chunks(imatrix *m) {
    int64_t most = 0;
    for (size_t i = 0; i < m->n; i++)
        for (int64_t k = 0; k < m->entry[i].n_mat; k++)
            most = m->entry[i].count[k] > most ? m->entry[i].count[k] : most;
    m->n_chunks = most / m->chunk_size;
}

/* --- merging ---------------------------------------------------------------------------------- */

/* Gives the entry a count for each of n matrices, all the same. */
static ggl_status divide(imatrix_entry *e, int64_t n, ggl_error *err) {
    int64_t *count = ggl_calloc((size_t)n, sizeof *count);
    if (!count)
        return no_memory(err);
    for (int64_t i = 0; i < n; i++)
        count[i] = e->count[0];
    ggl_free(e->count);
    e->count = count;
    e->n_col /= n;
    e->n_mat = n;
    return GGL_OK;
}

/* Adds the directions of column i that both have. */
static void add_sketch(imatrix_entry *e, const imatrix_entry *from, int64_t i) {
    const float *x = from->sketch + i * (from->n_sketch + 1);
    float *to = e->sketch + i * (e->n_sketch + 1);
    for (int d = 0; d < e->n_sketch; d++)
        to[d] += x[d];
    to[e->n_sketch] += x[from->n_sketch];
}

static ggl_status merge_entry(imatrix *into, const imatrix_entry *from, ggl_error *err) {
    imatrix_entry *e = find(into, from->name);
    ggl_status st = GGL_OK;
    if (!e)
        st = llm_imatrix_add_new(into, from->name, from->n_col, from->n_mat, &e, err);
    else if (e->n_col * e->n_mat != from->n_col * from->n_mat ||
             (e->n_mat != from->n_mat && e->n_mat != 1 && from->n_mat != 1))
        return ggl_fail(err, GGL_USAGE,
                        "%" PRId64 " matrices of %" PRId64 " columns, but %" PRId64 " of %" PRId64
                        " in what it is merged with: the two were made from different models",
                        from->n_mat, from->n_col, e->n_mat, e->n_col);
    else if (e->n_mat < from->n_mat)
        st = divide(e, from->n_mat, err);
    if (st == GGL_OK && (has_rows(from) || from->sketch || e->n_mat != 1))
        st = llm_imatrix_add_sketch(e, from->n_sketch, err);
    if (st != GGL_OK)
        return st;
    for (int64_t i = 0; from->sketch && e->sketch && i < e->n_col; i++)
        add_sketch(e, from, i);
    for (int64_t i = 0; i < e->n_col * (e->n_sketch + 1) && e->sketch; i++)
        if (!isfinite(e->sketch[i]))
            return ggl_fail(err, GGL_USAGE, "the sketch of column %" PRId64 " becomes infinite",
                            i / (e->n_sketch + 1));
    for (int64_t i = 0; i < e->n_mat; i++) {
        e->count[i] += from->count[from->n_mat == 1 ? 0 : i];
        if (e->count[i] > IMATRIX_MAX_COUNT)
            return ggl_fail(err, GGL_USAGE, "the count becomes larger than 2^53");
    }
    for (int64_t i = 0; i < e->n_col * e->n_mat; i++) {
        e->sum2[i] += from->sum2[i];
        if (!isfinite(e->sum2[i]))
            return ggl_fail(err, GGL_USAGE, "the sum of column %" PRId64 " becomes infinite",
                            i % e->n_col);
    }
    return GGL_OK;
}

ggl_status llm_imatrix_merge(imatrix *into, const imatrix *from, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < from->n && st == GGL_OK; i++) {
        st = merge_entry(into, &from->entry[i], err);
        if (st != GGL_OK)
            return ggl_within(err, st, "'%s'", from->entry[i].name.s);
    }
    for (size_t i = 0; i < from->n_datasets && st == GGL_OK; i++)
        st = llm_imatrix_add_dataset(into, from->dataset[i], err);
    llm_imatrix_count_chunks(into);
    return st;
}
