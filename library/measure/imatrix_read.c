/* Reads files of importance matrices. Everything in them is checked before it is used. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "imatrix_impl.h"
#include "ggl/alloc.h"
#include "ggl/internal/file.h"
#include "ggl/internal/gguf.h"

static ggl_status check_sums(const imatrix_entry *e, ggl_error *err) {
    for (int64_t i = 0; i < e->n_col * e->n_mat; i++)
        if (!(e->sum2[i] >= 0) || !isfinite(e->sum2[i]))
            return ggl_fail(err, GGL_FORMAT,
                            "the sum of column %" PRId64 " of matrix %" PRId64
                            " is %g: a sum of squares is a number that is not negative",
                            i % e->n_col, i / e->n_col, (double)e->sum2[i]);
    return GGL_OK;
}

/* --- GGUF ------------------------------------------------------------------------------------- */

/* Sets *stem to the name without the suffix; false: it has another end. */
static bool without(ggl_str name, const char *suffix, ggl_str *stem) {
    const size_t n = strlen(suffix);
    if (name.n < n || memcmp(name.s + name.n - n, suffix, n) != 0)
        return false;
    *stem = (ggl_str){name.s, name.n - n};
    return true;
}

static ggl_status check_f32(const ggl_gguf_tensor *t, ggl_error *err) {
    if (t->type == GGL_F32 && t->size >= sizeof(float))
        return GGL_OK;
    return ggl_fail(err, GGL_FORMAT, "tensor '%.*s' has %zu bytes of type %s; f32 is expected",
                    (int)t->name.n, t->name.s, t->size, ggl_type_get(t->type)->name);
}

static ggl_status read_counts(imatrix_entry *e, const float *from, ggl_error *err) {
    for (int64_t i = 0; i < e->n_mat; i++) {
        const double c = (double)from[i];
        if (!(c >= 0) || c > (double)IMATRIX_MAX_COUNT)
            return ggl_fail(err, GGL_FORMAT,
                            "the count of matrix %" PRId64 " is %g; 0 to 2^53 is expected", i, c);
        e->count[i] = (int64_t)llround(c);
    }
    return GGL_OK;
}

static ggl_status read_sketch(imatrix_entry *e, const ggl_gguf_tensor *t, ggl_error *err) {
    const int64_t n = t->ne[0] - 1;
    const ggl_status st = check_f32(t, err);
    if (st != GGL_OK)
        return st;
    if (n < 4 || n > GGL_MAX_DIRECTIONS || n % 4 != 0 || t->ne[1] != e->n_col || e->n_mat != 1 ||
        t->size != (size_t)((n + 1) * e->n_col) * sizeof *e->sketch)
        return ggl_fail(err, GGL_FORMAT,
                        "the sketch has sizes %" PRId64 " and %" PRId64
                        "; 5, 9, .. or %d, and the %" PRId64 " columns of one matrix, are expected",
                        n + 1, t->ne[1], GGL_MAX_DIRECTIONS + 1, e->n_col);
    e->sketch = ggl_calloc(t->size, 1);
    if (!e->sketch)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    e->n_sketch = (int)n;
    memcpy(e->sketch, t->data, t->size);
    for (int64_t i = 0; i < (n + 1) * e->n_col; i++)
        if (!isfinite(e->sketch[i]))
            return ggl_fail(err, GGL_FORMAT,
                            "the sketch of column %" PRId64 " has a number that is not finite",
                            i / (n + 1));
    return GGL_OK;
}

/* Reads an entry. sketch: NULL if there is none. */
static ggl_status read_entry_tensors(imatrix *m, ggl_str stem, const ggl_gguf_tensor *sums,
                                     const ggl_gguf_tensor *counts, const ggl_gguf_tensor *sketch,
                                     ggl_error *err) {
    imatrix_entry *e = NULL;
    ggl_status st = check_f32(sums, err);
    if (st == GGL_OK)
        st = check_f32(counts, err);
    if (st != GGL_OK)
        return st;
    const int64_t n = (int64_t)(sums->size / sizeof(float)),
                  n_mat = (int64_t)(counts->size / sizeof(float));
    if (n % n_mat != 0)
        return ggl_fail(err, GGL_FORMAT, "%" PRId64 " sums are not for %" PRId64 " counts", n,
                        n_mat);
    st = llm_imatrix_add_new(m, stem, n / n_mat, n_mat, &e, err);
    if (st == GGL_OK)
        st = read_counts(e, counts->data, err);
    if (st != GGL_OK)
        return st;
    memcpy(e->sum2, sums->data, sums->size);
    st = check_sums(e, err);
    return st == GGL_OK && sketch ? read_sketch(e, sketch, err) : st;
}

/* Returns the tensor with the stem's name and the suffix. NULL if none. */
static const ggl_gguf_tensor *with_suffix(const ggl_gguf *f, ggl_str stem, const char *suffix) {
    char name[1024];
    if (stem.n + strlen(suffix) >= sizeof name)
        return NULL;
    memcpy(name, stem.s, stem.n);
    strcpy(name + stem.n, suffix);
    return ggl_gguf_find_tensor(f, name);
}

static ggl_status read_tensors(imatrix *m, const ggl_gguf *f, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < ggl_gguf_n_tensors(f) && st == GGL_OK; i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i), *other;
        ggl_str stem;
        const bool is_sums = without(t->name, IMATRIX_SUMS, &stem);
        if (!is_sums && !without(t->name, IMATRIX_COUNTS, &stem))
            continue;
        other = with_suffix(f, stem, is_sums ? IMATRIX_COUNTS : IMATRIX_SUMS);
        if (!other)
            st = ggl_fail(err, GGL_FORMAT, "there is no '%.*s%s'", (int)stem.n, stem.s,
                          is_sums ? IMATRIX_COUNTS : IMATRIX_SUMS);
        else if (is_sums)
            st = read_entry_tensors(m, stem, t, other, with_suffix(f, stem, IMATRIX_SKETCH), err);
        if (st != GGL_OK)
            return ggl_within(err, st, "entry '%.*s'", (int)stem.n, stem.s);
    }
    return m->n > 0
               ? GGL_OK
               : ggl_fail(err, GGL_FORMAT,
                          "has no tensor NAME" IMATRIX_SUMS ": it is not an importance matrix");
}

static ggl_status read_datasets(imatrix *m, const ggl_gguf *f, ggl_error *err) {
    const ggl_gguf_value *v = ggl_gguf_find(f, IMATRIX_DATASETS);
    ggl_str s;
    ggl_status st = GGL_OK;
    if (v && v->type != GGL_GGUF_STRING)
        return ggl_fail(err, GGL_FORMAT, "key '%s' has type %s; strings are expected",
                        IMATRIX_DATASETS, ggl_gguf_type_name(v->type));
    for (uint64_t i = 0; v && i < v->n && st == GGL_OK; i++)
        st = ggl_gguf_string(v, i, &s) ? llm_imatrix_add_text(m, s, err) : GGL_OK;
    return st;
}

/* Sets *out to the key's number, if it is there and at least `least`. */
static ggl_status read_number(const ggl_gguf *f, const char *key, int64_t least, int64_t *out,
                              ggl_error *err) {
    int64_t n = 0;
    const int found = ggl_gguf_get_integer(f, key, &n, err);
    if (found < 0)
        return GGL_FORMAT;
    if (found && n == 0) /* as in files that were made by merging files of the old format */
        return GGL_OK;
    if (found && (n < least || n > IMATRIX_MAX_COUNT))
        return ggl_fail(err, GGL_FORMAT, "key '%s' is %" PRId64, key, n);
    *out = found ? n : *out;
    return GGL_OK;
}

static ggl_status read_gguf(imatrix *m, const ggl_gguf *f, ggl_error *err) {
    ggl_str type = {0};
    if (ggl_gguf_get_string(f, "general.type", &type, err) < 0)
        return GGL_FORMAT;
    if (type.s && !ggl_str_is(type, IMATRIX_TYPE))
        return ggl_fail(err, GGL_FORMAT, "general.type is '%.*s', not '" IMATRIX_TYPE "'",
                        (int)type.n, type.s);
    ggl_status st = read_number(f, IMATRIX_CHUNK_SIZE, 1, &m->chunk_size, err);
    m->tells_size = ggl_gguf_find(f, IMATRIX_CHUNK_SIZE) != NULL;
    if (st == GGL_OK)
        st = read_datasets(m, f, err);
    if (st == GGL_OK)
        st = read_tensors(m, f, err);
    llm_imatrix_count_chunks(m); /* a key, if there is one, is exact where counts are rounded */
    return st == GGL_OK ? read_number(f, IMATRIX_CHUNK_COUNT, 0, &m->n_chunks, err) : st;
}

/* --- the old format --------------------------------------------------------------------------- */

typedef struct cursor {
    const unsigned char *at;
    size_t left;
} cursor;

static bool take_i32(cursor *c, int32_t *out) {
    if (c->left < 4)
        return false;
    *out = (int32_t)((uint32_t)c->at[0] | (uint32_t)c->at[1] << 8 | (uint32_t)c->at[2] << 16 |
                     (uint32_t)c->at[3] << 24);
    c->at += 4;
    c->left -= 4;
    return true;
}

static bool take_bytes(cursor *c, int64_t n, const unsigned char **out) {
    if (n < 0 || (uint64_t)n > c->left)
        return false;
    *out = c->at;
    c->at += n;
    c->left -= (size_t)n;
    return true;
}

/* Means times n_call become sums over the rows of n_call chunks. */
static ggl_status read_means(imatrix_entry *e, const unsigned char *from, int32_t n_call,
                             int64_t chunk_size, ggl_error *err) {
    const int64_t n_chunk = n_call > 0 ? n_call : 1; /* 0: by the first programs, for 1 */
    e->count[0] = n_chunk * chunk_size;
    memcpy(e->sum2, from, (size_t)e->n_col * sizeof *e->sum2);
    for (int64_t i = 0; i < e->n_col; i++)
        e->sum2[i] *= (float)chunk_size;
    return check_sums(e, err);
}

static ggl_status read_entry(imatrix *m, cursor *c, ggl_error *err) {
    int32_t len, n_call, n_value;
    const unsigned char *name, *value;
    imatrix_entry *e = NULL;
    if (!take_i32(c, &len) || !take_bytes(c, len, &name))
        return ggl_fail(err, GGL_FORMAT, "the file ends before its name does");
    const ggl_str key = {(const char *)name, (size_t)len};
    const int n = (int)(key.n < 200 ? key.n : 200);
    if (!take_i32(c, &n_call) || !take_i32(c, &n_value) ||
        !take_bytes(c, (int64_t)n_value * 4, &value))
        return ggl_fail(err, GGL_FORMAT, "'%.*s': the file ends before its values do", n, key.s);
    if (n_call < 0 || n_value < 1)
        return ggl_fail(err, GGL_FORMAT, "'%.*s': %" PRId32 " values of %" PRId32 " chunks", n,
                        key.s, n_value, n_call);
    ggl_status st = llm_imatrix_add_new(m, key, n_value, 1, &e, err);
    if (st == GGL_OK)
        st = read_means(e, value, n_call, m->chunk_size, err);
    return st == GGL_OK ? GGL_OK : ggl_within(err, st, "'%.*s'", n, key.s);
}

static ggl_status read_dat(imatrix *m, const void *data, size_t size, ggl_error *err) {
    cursor c = {data, size};
    int32_t n, n_chunk, len;
    const unsigned char *text;
    /* an entry has at least 17 bytes */
    if (!take_i32(&c, &n) || n < 1 || (uint64_t)n > c.left / 17)
        return ggl_fail(err, GGL_FORMAT,
                        "is neither a GGUF file nor an importance matrix of the old format");
    for (int32_t i = 0; i < n; i++) {
        const ggl_status st = read_entry(m, &c, err);
        if (st != GGL_OK)
            return ggl_within(err, st, "entry %" PRId32 " of %" PRId32, i + 1, n);
    }
    llm_imatrix_count_chunks(m);
    if (c.left == 0)
        return GGL_OK;
    if (!take_i32(&c, &n_chunk) || n_chunk < 0)
        return ggl_fail(err, GGL_FORMAT, "the number of chunks, after the entries, is damaged");
    m->n_chunks = n_chunk;
    if (c.left == 0)
        return GGL_OK;
    if (!take_i32(&c, &len) || !take_bytes(&c, len, &text) || c.left > 0)
        return ggl_fail(err, GGL_FORMAT, "the dataset's name, at the end, is damaged");
    return len > 0 ? llm_imatrix_add_text(m, (ggl_str){(const char *)text, (size_t)len}, err)
                   : GGL_OK;
}

/* --- both ------------------------------------------------------------------------------------- */

static bool is_gguf(const void *data, size_t size) {
    return size >= 4 && memcmp(data, "GGUF", 4) == 0;
}

ggl_status llm_imatrix_open_memory(imatrix **out, const void *data, size_t size, const char *name,
                                   int64_t chunk_size, ggl_error *err) {
    ggl_gguf *f = NULL;
    *out = NULL;
    if (is_gguf(data, size)) {
        const ggl_status st = ggl_gguf_open_memory(&f, data, size, name, err);
        if (st != GGL_OK)
            return st; /* it has the name */
    }
    imatrix *m = NULL;
    ggl_status st = llm_imatrix_new(&m, chunk_size, err);
    if (st == GGL_OK)
        st = f ? read_gguf(m, f, err) : read_dat(m, data, size, err);
    ggl_gguf_close(f);
    if (st == GGL_OK) {
        *out = m;
        return GGL_OK;
    }
    llm_imatrix_free(m);
    return ggl_within(err, st, "%s", name);
}

ggl_status llm_imatrix_open(imatrix **out, const char *path, int64_t chunk_size, ggl_error *err) {
    ggl_file_map map;
    *out = NULL;
    ggl_status st = ggl_file_map_open(&map, path, err);
    if (st != GGL_OK)
        return st;
    st = llm_imatrix_open_memory(out, map.data, map.size, path, chunk_size, err);
    ggl_file_map_close(&map);
    return st;
}
