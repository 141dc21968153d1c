/* Writes GGUF version 3; gguf_file.h shows the layout. Keys are encoded when they are added, the
 * tensor table when the file is written. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "gguf_file.h"

typedef struct writer_tensor {
    ggl_str name; /* must be the first member, for ggl_index */
    ggl_type type;
    int n_dims;
    int64_t ne[GGL_MAX_DIMS];
    const void *data;
    ggl_gguf_fill fill; /* writes the data if `data` is NULL */
    void *ctx;
    size_t size;
} writer_tensor;

struct ggl_gguf_writer {
    ggl_error err;   /* the first failure; after it, calls do nothing */
    ggl_arena names; /* of keys and tensors */
    uint8_t *kv;     /* the keys and values, encoded */
    size_t kv_size, kv_cap;
    ggl_str *keys; /* for finding duplicates */
    size_t n_keys, keys_cap;
    writer_tensor *tensors;
    size_t n_tensors, tensors_cap;
    size_t alignment;
};

ggl_gguf_writer *ggl_gguf_writer_new(void) {
    ggl_gguf_writer *w = ggl_calloc(1, sizeof *w);
    if (w)
        w->alignment = GGUF_DEFAULT_ALIGNMENT;
    return w;
}

void ggl_gguf_writer_free(ggl_gguf_writer *w) {
    if (!w)
        return;
    ggl_arena_fini(&w->names);
    ggl_free(w->kv);
    ggl_free(w->keys);
    ggl_free(w->tensors);
    ggl_free(w);
}

static bool failed(const ggl_gguf_writer *w) {
    return w->err.status != GGL_OK;
}

static void no_memory(ggl_gguf_writer *w) {
    if (!failed(w))
        ggl_fail(&w->err, GGL_NOMEM, "out of memory for the keys and tensors to write");
}

static void kv_put(ggl_gguf_writer *w, const void *data, size_t n) {
    size_t end;
    if (failed(w))
        return;
    if (!ggl_size_add(w->kv_size, n, &end) || !ggl_grow(&w->kv, &w->kv_cap, end, 1)) {
        no_memory(w);
        return;
    }
    if (n > 0)
        memcpy(w->kv + w->kv_size, data, n);
    w->kv_size = end;
}

static void kv_put_u32(ggl_gguf_writer *w, uint32_t v) {
    kv_put(w, &v, sizeof v);
}

static void kv_put_u64(ggl_gguf_writer *w, uint64_t v) {
    kv_put(w, &v, sizeof v);
}

static void kv_put_string(ggl_gguf_writer *w, ggl_str s) {
    kv_put_u64(w, s.n);
    kv_put(w, s.s, s.n);
}

/* Returns a copy of the name that lives as long as the writer. */
static ggl_str keep_name(ggl_gguf_writer *w, ggl_str name) {
    ggl_str copy = {.s = ggl_arena_strndup(&w->names, name.s, name.n), .n = name.n};
    if (!copy.s)
        no_memory(w);
    return copy;
}

/* Encodes the key, the type, and the length of an array: everything before the elements. */
static void kv_begin(ggl_gguf_writer *w, ggl_str key, ggl_gguf_type type, bool array, uint64_t n) {
    if (failed(w) || ggl_gguf_check_name(key, GGUF_KEY_MAX, "key", &w->err) != GGL_OK)
        return;
    if (!array && n != 1) {
        ggl_fail(&w->err, GGL_USAGE, "key '%s' has %" PRIu64 " values, but is not an array",
                 ggl_gguf_show(key).s, n);
        return;
    }
    if (!ggl_grow(&w->keys, &w->keys_cap, w->n_keys + 1, sizeof *w->keys)) {
        no_memory(w);
        return;
    }
    w->keys[w->n_keys++] = keep_name(w, key);
    kv_put_string(w, key);
    if (array) {
        kv_put_u32(w, GGL_GGUF_ARRAY);
        kv_put_u32(w, (uint32_t)type);
        kv_put_u64(w, n);
    } else {
        kv_put_u32(w, (uint32_t)type);
    }
}

/* Sets the writer's alignment to the value of general.alignment, the only key that it uses
 * itself. */
static void take_alignment(ggl_gguf_writer *w, ggl_gguf_type type, bool array, const void *data) {
    uint32_t alignment;
    if (type != GGL_GGUF_U32 || array) {
        ggl_fail(&w->err, GGL_USAGE, "general.alignment must be one u32");
        return;
    }
    memcpy(&alignment, data, sizeof alignment);
    if (ggl_gguf_check_alignment(alignment, &w->err) == GGL_OK)
        w->alignment = alignment;
}

static void put_numbers(ggl_gguf_writer *w, ggl_str key, ggl_gguf_type type, bool array,
                        const void *data, uint64_t n) {
    size_t each = ggl_gguf_type_size(type), size;
    if (failed(w))
        return;
    if (each == 0) {
        ggl_fail(&w->err, GGL_USAGE, "key '%s': type %s is not a number", ggl_gguf_show(key).s,
                 ggl_gguf_type_name(type));
        return;
    }
    if (n > SIZE_MAX || !ggl_size_mul((size_t)n, each, &size)) {
        no_memory(w);
        return;
    }
    for (size_t i = 0; type == GGL_GGUF_BOOL && i < size; i++)
        if (((const uint8_t *)data)[i] > 1) {
            ggl_fail(&w->err, GGL_USAGE, "key '%s': a boolean is %d, 0 or 1 is expected",
                     ggl_gguf_show(key).s, ((const uint8_t *)data)[i]);
            return;
        }
    kv_begin(w, key, type, array, n);
    kv_put(w, data, size);
    if (!failed(w) && key.n == 17 && memcmp(key.s, "general.alignment", 17) == 0)
        take_alignment(w, type, array, data);
}

static ggl_str str_of(const char *s) {
    return (ggl_str){.s = s, .n = strlen(s)};
}

void ggl_gguf_put(ggl_gguf_writer *w, const char *key, ggl_gguf_type type, bool array,
                  const void *data, uint64_t n) {
    put_numbers(w, str_of(key), type, array, data, n);
}

void ggl_gguf_put_string(ggl_gguf_writer *w, const char *key, const char *s, size_t n) {
    kv_begin(w, str_of(key), GGL_GGUF_STRING, false, 1);
    kv_put_string(w, (ggl_str){.s = s, .n = n});
}

void ggl_gguf_put_strings(ggl_gguf_writer *w, const char *key, const ggl_str *s, uint64_t n) {
    kv_begin(w, str_of(key), GGL_GGUF_STRING, true, n);
    for (uint64_t i = 0; i < n && !failed(w); i++)
        kv_put_string(w, s[i]);
}

void ggl_gguf_put_value(ggl_gguf_writer *w, const ggl_gguf_value *v) {
    const gguf_value *x = (const gguf_value *)v;
    if (v->type != GGL_GGUF_STRING) {
        put_numbers(w, v->key, v->type, v->is_array, x->data, v->n);
        return;
    }
    kv_begin(w, v->key, v->type, v->is_array, v->n);
    kv_put(w, x->data, x->size);
}

static ggl_status check_tensor(ggl_str name, ggl_type type, int n_dims, const int64_t *ne,
                               bool has_data, size_t *size, ggl_error *err) {
    if (n_dims < 0 || n_dims > GGL_MAX_DIMS)
        return ggl_fail(err, GGL_USAGE, "tensor '%s' has %d dimensions, 0 to %d are supported",
                        ggl_gguf_show(name).s, n_dims, GGL_MAX_DIMS);
    for (int d = 0; d < n_dims; d++)
        if (ne[d] < 0)
            return ggl_fail(err, GGL_USAGE, "dimension %d of tensor '%s' is %" PRId64, d,
                            ggl_gguf_show(name).s, ne[d]);
    if (!ggl_type_get((int)type))
        return ggl_fail(err, GGL_USAGE, "tensor '%s' has type number %d, which does not exist",
                        ggl_gguf_show(name).s, (int)type);
    ggl_status s = ggl_gguf_check_shape(name, type, n_dims, ne, size, err);
    if (s == GGL_OK && !has_data && *size > 0)
        s = ggl_fail(err, GGL_USAGE, "tensor '%s' has no data", ggl_gguf_show(name).s);
    return s;
}

static void put_tensor(ggl_gguf_writer *w, writer_tensor t, const int64_t *ne) {
    if (failed(w) ||
        ggl_gguf_check_name(t.name, GGL_GGUF_NAME_MAX_WRITTEN, "tensor name", &w->err) != GGL_OK ||
        check_tensor(t.name, t.type, t.n_dims, ne, t.data || t.fill, &t.size, &w->err) != GGL_OK)
        return;
    for (int d = 0; d < t.n_dims; d++)
        t.ne[d] = ne[d];
    t.name = keep_name(w, t.name);
    if (failed(w) || !ggl_grow(&w->tensors, &w->tensors_cap, w->n_tensors + 1, sizeof t)) {
        no_memory(w);
        return;
    }
    w->tensors[w->n_tensors++] = t;
}

void ggl_gguf_put_tensor(ggl_gguf_writer *w, const char *name, ggl_type type, int n_dims,
                         const int64_t *ne, const void *data) {
    writer_tensor t = {.name = str_of(name), .type = type, .n_dims = n_dims, .data = data};
    put_tensor(w, t, ne);
}

void ggl_gguf_put_tensor_later(ggl_gguf_writer *w, const char *name, ggl_type type, int n_dims,
                               const int64_t *ne, ggl_gguf_fill fill, void *ctx) {
    writer_tensor t = {
        .name = str_of(name), .type = type, .n_dims = n_dims, .fill = fill, .ctx = ctx};
    put_tensor(w, t, ne);
}

/* Fails if two of the n elements, which begin with a ggl_str, have the same name. */
static ggl_status check_twice(const void *array, size_t stride, size_t n, const char *what,
                              ggl_error *err) {
    ggl_index x;
    ggl_status s = ggl_index_init(&x, n, stride, GGL_INDEX_STRINGS, err);
    for (size_t i = 0; s == GGL_OK && i < n; i++)
        if (ggl_index_put(&x, array, i) != i) {
            ggl_str name;
            memcpy(&name, (const char *)array + i * stride, sizeof name);
            s = ggl_fail(err, GGL_USAGE, "%s '%s' was put twice", what, ggl_gguf_show(name).s);
        }
    ggl_index_fini(&x);
    return s;
}

/* The positions of the file's parts. */
typedef struct layout {
    size_t data_at; /* bytes before the tensor data, with padding */
    size_t size;    /* of the file */
} layout;

/* Sets *l; false: the file would be too large. The format pads before the data and after every
 * tensor; a file without tensors is not padded. */
static bool layout_of(const ggl_gguf_writer *w, layout *l) {
    size_t at, padded;
    if (!ggl_size_add(GGUF_HEADER, w->kv_size, &at))
        return false;
    for (size_t i = 0; i < w->n_tensors; i++) {
        const writer_tensor *t = &w->tensors[i];
        if (!ggl_size_add(at, 8 + t->name.n + 4 + 8 * (size_t)t->n_dims + 4 + 8, &at))
            return false;
    }
    if (w->n_tensors > 0 && !ggl_size_align(at, w->alignment, &at))
        return false;
    l->data_at = at;
    for (size_t i = 0; i < w->n_tensors; i++)
        if (!ggl_size_align(w->tensors[i].size, w->alignment, &padded) ||
            !ggl_size_add(at, padded, &at))
            return false;
    l->size = at;
    return true;
}

static uint8_t *encode(uint8_t *p, const void *data, size_t n) {
    if (n > 0)
        memcpy(p, data, n);
    return p + n;
}

static uint8_t *encode_u32(uint8_t *p, uint32_t v) {
    return encode(p, &v, sizeof v);
}

static uint8_t *encode_u64(uint8_t *p, uint64_t v) {
    return encode(p, &v, sizeof v);
}

/* Writes bytes [0, data_at) to p, which is all zeros before. */
static void encode_head(const ggl_gguf_writer *w, uint8_t *p) {
    uint64_t offset = 0;
    p = encode(p, "GGUF", 4);
    p = encode_u32(p, 3);
    p = encode_u64(p, w->n_tensors);
    p = encode_u64(p, w->n_keys);
    p = encode(p, w->kv, w->kv_size);
    for (size_t i = 0; i < w->n_tensors; i++) {
        const writer_tensor *t = &w->tensors[i];
        p = encode_u64(p, t->name.n);
        p = encode(p, t->name.s, t->name.n);
        p = encode_u32(p, (uint32_t)t->n_dims);
        for (int d = 0; d < t->n_dims; d++)
            p = encode_u64(p, (uint64_t)t->ne[d]);
        p = encode_u32(p, (uint32_t)t->type);
        p = encode_u64(p, offset);
        offset += (t->size + w->alignment - 1) & ~(w->alignment - 1);
    }
}

/* The destination of the bytes: a file, or memory that is large enough. */
struct ggl_gguf_sink {
    os_new_file *file;
    uint8_t *memory;
    size_t left; /* bytes that the current `fill` still has to write */
};

static ggl_status sink_put(ggl_gguf_sink *to, const void *data, size_t n, ggl_error *err) {
    if (to->file)
        return ggl_os_new_file_write(to->file, data, n, err);
    to->memory = encode(to->memory, data, n);
    return GGL_OK;
}

static ggl_status sink_pad(ggl_gguf_sink *to, size_t n, ggl_error *err) {
    static const uint8_t zeros[4096];
    ggl_status s = GGL_OK;
    for (size_t k; s == GGL_OK && n > 0; n -= k) {
        k = n < sizeof zeros ? n : sizeof zeros;
        s = sink_put(to, zeros, k, err);
    }
    return s;
}

ggl_status ggl_gguf_sink_write(ggl_gguf_sink *to, const void *data, size_t n, ggl_error *err) {
    if (n > to->left)
        return ggl_fail(err, GGL_USAGE, "%zu bytes were written, but only %zu were left", n,
                        to->left);
    to->left -= n;
    return sink_put(to, data, n, err);
}

static ggl_status write_tensor(const writer_tensor *t, ggl_gguf_sink *to, ggl_error *err) {
    if (!t->fill)
        return sink_put(to, t->data, t->size, err);
    to->left = t->size;
    ggl_status s = t->fill(t->ctx, to, err);
    if (s == GGL_OK && to->left > 0)
        s = ggl_fail(err, GGL_USAGE, "%zu of %zu bytes were not written", to->left, t->size);
    return s == GGL_OK ? s : ggl_within(err, s, "tensor '%s'", ggl_gguf_show(t->name).s);
}

static ggl_status write_to(const ggl_gguf_writer *w, const layout *l, ggl_gguf_sink *to,
                           ggl_error *err) {
    uint8_t *head = ggl_calloc(l->data_at, 1);
    if (!head)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a head of %zu bytes", l->data_at);
    encode_head(w, head);
    ggl_status s = sink_put(to, head, l->data_at, err);
    ggl_free(head);
    for (size_t i = 0; s == GGL_OK && i < w->n_tensors; i++) {
        const writer_tensor *t = &w->tensors[i];
        s = write_tensor(t, to, err);
        if (s == GGL_OK)
            s = sink_pad(to, -t->size & (w->alignment - 1), err);
    }
    return s;
}

/* Fails if the reader would refuse the file, because a tensor needs a larger alignment. */
static ggl_status check_alignments(const ggl_gguf_writer *w, ggl_error *err) {
    for (size_t i = 0; i < w->n_tensors; i++) {
        const writer_tensor *t = &w->tensors[i];
        size_t need = ggl_gguf_type_alignment(t->type);
        if (t->size > 0 && w->alignment < need)
            return ggl_fail(
                err, GGL_USAGE, "general.alignment is %zu, but tensor '%s' of type %s needs %zu",
                w->alignment, ggl_gguf_show(t->name).s, ggl_type_get((int)t->type)->name, need);
    }
    return GGL_OK;
}

/* Returns the first failure of earlier calls, or of the checks that need all keys and tensors; sets
 * *l. */
static ggl_status writer_check(const ggl_gguf_writer *w, layout *l, ggl_error *err) {
    if (failed(w))
        return ggl_fail(err, w->err.status, "%s", w->err.msg);
    ggl_status s = check_twice(w->keys, sizeof *w->keys, w->n_keys, "key", err);
    if (s == GGL_OK)
        s = check_twice(w->tensors, sizeof *w->tensors, w->n_tensors, "tensor", err);
    if (s == GGL_OK)
        s = check_alignments(w, err);
    if (s == GGL_OK && !layout_of(w, l))
        s = ggl_fail(err, GGL_LIMIT, "the file would be too large");
    return s;
}

ggl_status ggl_gguf_writer_head(const ggl_gguf_writer *w, uint8_t **data, size_t *size,
                                ggl_error *err) {
    layout l;
    *data = NULL;
    ggl_status s = writer_check(w, &l, err);
    if (s != GGL_OK)
        return s;
    *data = ggl_calloc(l.data_at + 1, 1);
    *size = l.data_at;
    if (!*data)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a head of %zu bytes", l.data_at);
    encode_head(w, *data);
    return GGL_OK;
}

const void *ggl_gguf_writer_data(const ggl_gguf_writer *w, size_t i) {
    return w->tensors[i].data;
}

static ggl_status write_file(const ggl_gguf_writer *w, const char *path, ggl_error *err) {
    layout l;
    os_new_file file;
    ggl_status s = writer_check(w, &l, err);
    if (s == GGL_OK)
        s = ggl_os_new_file_open(&file, path, err);
    if (s != GGL_OK)
        return s;
    s = write_to(w, &l, &(ggl_gguf_sink){.file = &file}, err);
    if (s == GGL_OK)
        return ggl_os_new_file_commit(&file, err);
    ggl_os_new_file_discard(&file);
    return s;
}

ggl_status ggl_gguf_writer_write(ggl_gguf_writer *w, const char *path, ggl_error *err) {
    ggl_status s = write_file(w, path, err);
    return s == GGL_OK ? s : ggl_within(err, s, "%s", path);
}

uint64_t ggl_gguf_writer_size(const ggl_gguf_writer *w) {
    layout l;
    return !failed(w) && layout_of(w, &l) ? l.size : 0;
}

ggl_status ggl_gguf_writer_write_memory(ggl_gguf_writer *w, void **data, size_t *size,
                                        ggl_error *err) {
    layout l;
    *data = NULL;
    *size = 0;
    ggl_status s = writer_check(w, &l, err);
    if (s != GGL_OK)
        return s;
    uint8_t *memory = ggl_calloc(l.size, 1);
    if (!memory)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a file of %zu bytes", l.size);
    s = write_to(w, &l, &(ggl_gguf_sink){.memory = memory}, err);
    if (s != GGL_OK) {
        ggl_free(memory);
        return s;
    }
    *data = memory;
    *size = l.size;
    return GGL_OK;
}
