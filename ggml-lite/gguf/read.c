/* Reads everything before the tensor data of a GGUF file. Nothing is trusted: every length is
 * compared with the remaining bytes before it is used, and every count before memory for it is
 * allocated. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/types.h"
#include "gguf_file.h"
#include "packed.h"

/* The position in the file's bytes. Keeps the first failure; all later reads return zeros. */
typedef struct reader {
    const uint8_t *data;
    size_t size, at;
    ggl_status status;
    ggl_error *err;
    const ggl_gguf_params *params;
} reader;

ggl_status ggl_gguf_defect(const ggl_gguf_params *p, const char *where, ggl_status s,
                           ggl_error *err) {
    if (s == GGL_OK || s == GGL_NOMEM || !p->defect)
        return s;
    if (where)
        ggl_within(err, s, "%s", where);
    p->defect(p->ctx, err->msg);
    *err = (ggl_error){0};
    return GGL_OK;
}

/* The same for a reader, which leaves the file's name to its caller. Not for failures of reader_take,
 * after which the position is unknown. */
static ggl_status defect(reader *r, ggl_status s) {
    return r->status == GGL_OK ? ggl_gguf_defect(r->params, NULL, s, r->err) : s;
}

/* Returns the next n bytes, or NULL if fewer remain. `what` names what they are part of. */
static const uint8_t *reader_take(reader *r, uint64_t n, const char *what) {
    if (r->status != GGL_OK)
        return NULL;
    if (n > r->size - r->at) {
        r->status = ggl_fail(r->err, GGL_FORMAT,
                             "the file is truncated or damaged: %s needs %" PRIu64
                             " bytes from byte %zu on, the file has %zu",
                             what, n, r->at, r->size);
        return NULL;
    }
    const uint8_t *p = r->data + r->at;
    r->at += (size_t)n;
    return p;
}

static uint32_t reader_u32(reader *r, const char *what) {
    uint32_t v = 0;
    const uint8_t *p = reader_take(r, sizeof v, what);
    if (p)
        memcpy(&v, p, sizeof v);
    return v;
}

static uint64_t reader_u64(reader *r, const char *what) {
    uint64_t v = 0;
    const uint8_t *p = reader_take(r, sizeof v, what);
    if (p)
        memcpy(&v, p, sizeof v);
    return v;
}

static ggl_str reader_string(reader *r, const char *what) {
    uint64_t n = reader_u64(r, what);
    const uint8_t *p = reader_take(r, n, what);
    return (ggl_str){.s = p ? (const char *)p : "", .n = p ? (size_t)n : 0};
}

ggl_status ggl_gguf_check_name(ggl_str name, size_t max, const char *what, ggl_error *err) {
    if (name.n == 0)
        return ggl_fail(err, GGL_FORMAT, "the %s is empty", what);
    if (name.n > max)
        return ggl_fail(err, GGL_FORMAT, "the %s '%s' has %zu bytes, at most %zu are allowed", what,
                        ggl_gguf_show(name).s, name.n, max);
    if (memchr(name.s, 0, name.n))
        return ggl_fail(err, GGL_FORMAT, "the %s '%s' holds a zero byte", what,
                        ggl_gguf_show(name).s);
    return GGL_OK;
}

ggl_status ggl_gguf_check_shape(ggl_str name, ggl_type type, int n_dims, const int64_t *ne,
                                size_t *size, ggl_error *err) {
    const ggl_type_info *info = ggl_type_get((int)type);
    int64_t row = n_dims > 0 ? ne[0] : 1;
    if (row % info->block != 0)
        return ggl_fail(err, GGL_FORMAT,
                        "tensor '%s' has rows of %" PRId64
                        " elements, which are not whole blocks of %" PRId64
                        ", as its type %s needs",
                        ggl_gguf_show(name).s, row, info->block, info->name);
    /* strides must fit, too, even if a dimension is 0 */
    int64_t n = row;
    size_t stride;
    bool fits = ggl_row_size_checked(type, row > 0 ? row : info->block, &stride);
    for (int d = 1; fits && d < n_dims; d++) {
        fits = ggl_size_mul(stride, ne[d] > 0 ? (uint64_t)ne[d] : 1, &stride) &&
               stride <= SIZE_MAX / (sizeof stride > 4 ? 64 : 2);
        n = fits ? n * ne[d] : 0; /* no type has more than 8 elements in a byte, so n < 2^61 */
    }
    if (!fits)
        return ggl_fail(err, GGL_FORMAT,
                        "tensor '%s' is too large: the product of its dimensions overflows",
                        ggl_gguf_show(name).s);
    *size = n > 0 ? ggl_bytes_before(info, row, n) : 0;
    return GGL_OK;
}

ggl_status ggl_gguf_check_alignment(uint64_t alignment, ggl_error *err) {
    if (alignment == 0 || (alignment & (alignment - 1)) != 0)
        return ggl_fail(err, GGL_FORMAT,
                        "general.alignment is %" PRIu64 ", a power of two is expected", alignment);
    return GGL_OK;
}

size_t ggl_gguf_type_alignment(ggl_type type) {
    const ggl_type_info *info = ggl_type_get((int)type);
    return info && !info->quantized ? info->size : 1;
}

/* Reads the elements of a value with a type of fixed size; checks that booleans are 0 or 1. */
static ggl_status read_numbers(reader *r, gguf_value *v) {
    size_t each = ggl_gguf_type_size(v->pub.type);
    if (v->pub.n > (r->size - r->at) / each)
        return ggl_fail(r->err, GGL_FORMAT,
                        "the file is truncated or damaged: %" PRIu64
                        " elements of %zu bytes do not fit"
                        " into the %zu bytes that remain from byte %zu on",
                        v->pub.n, each, r->size - r->at, r->at);
    v->size = (size_t)v->pub.n * each;
    v->data = reader_take(r, v->size, "the value");
    if (v->pub.type == GGL_GGUF_BOOL)
        for (size_t i = 0; i < v->size; i++)
            if (v->data[i] > 1)
                return ggl_gguf_defect(
                    r->params, ggl_gguf_show(v->pub.key).s,
                    ggl_fail(r->err, GGL_FORMAT, "a boolean is %d, 0 or 1 is expected", v->data[i]),
                    r->err);
    return r->status;
}

static ggl_status read_strings(reader *r, gguf_value *v) {
    /* a string has at least 8 bytes, its length */
    if (v->pub.is_array && v->pub.n > (r->size - r->at) / 8)
        return ggl_fail(r->err, GGL_FORMAT,
                        "the file is truncated or damaged: %" PRIu64
                        " strings do not fit into the %zu"
                        " bytes that remain from byte %zu on",
                        v->pub.n, r->size - r->at, r->at);
    size_t n = (size_t)v->pub.n, begin = r->at;
    if (v->pub.is_array) {
        v->starts = ggl_calloc(n, sizeof *v->starts);
        if (!v->starts)
            return ggl_fail(r->err, GGL_NOMEM, "out of memory for %zu strings", n);
    }
    for (size_t i = 0; i < n && r->status == GGL_OK; i++) {
        if (v->starts)
            v->starts[i] = r->at - begin;
        reader_string(r, "the string");
        if (r->status != GGL_OK && v->starts)
            return ggl_within(r->err, r->status, "string %zu of %zu", i + 1, n);
    }
    v->data = r->data + begin;
    v->size = r->at - begin;
    return r->status;
}

/* Reads the type and the value that follow a key. */
static ggl_status read_value(reader *r, gguf_value *v) {
    uint32_t type = reader_u32(r, "the value's type");
    v->pub.n = 1;
    if (type == GGL_GGUF_ARRAY) {
        v->pub.is_array = true;
        type = reader_u32(r, "the type of the array's elements");
        v->pub.n = reader_u64(r, "the array's length");
        if (r->status == GGL_OK && type == GGL_GGUF_ARRAY)
            return ggl_fail(r->err, GGL_UNSUPPORTED, "arrays of arrays are not supported");
    }
    if (r->status != GGL_OK)
        return r->status;
    if (type > GGL_GGUF_F64)
        return ggl_fail(r->err, GGL_FORMAT, "%s type %" PRIu32 ", the largest known is %d",
                        v->pub.is_array ? "its elements have" : "its value has", type,
                        GGL_GGUF_F64);
    v->pub.type = (ggl_gguf_type)type;
    return type == GGL_GGUF_STRING ? read_strings(r, v) : read_numbers(r, v);
}

static ggl_status read_key(reader *r, gguf_value *v) {
    v->pub.key = reader_string(r, "the key");
    if (r->status != GGL_OK)
        return r->status;
    ggl_status s = defect(r, ggl_gguf_check_name(v->pub.key, GGUF_KEY_MAX, "key", r->err));
    if (s != GGL_OK)
        return s;
    s = read_value(r, v);
    return s == GGL_OK ? s : ggl_within(r->err, s, "'%s'", ggl_gguf_show(v->pub.key).s);
}

static ggl_status read_keys(reader *r, gguf_head *h) {
    ggl_status s =
        ggl_index_init(&h->by_key, h->n_values, sizeof *h->values, GGL_INDEX_STRINGS, r->err);
    if (s != GGL_OK)
        return s;
    h->values = ggl_calloc(h->n_values, sizeof *h->values);
    if (!h->values)
        return ggl_fail(r->err, GGL_NOMEM, "out of memory for %zu keys", h->n_values);
    for (size_t i = 0; i < h->n_values; i++) {
        s = read_key(r, &h->values[i]);
        if (s == GGL_OK) {
            size_t first = ggl_index_put(&h->by_key, h->values, i);
            if (first != i)
                s = defect(r, ggl_fail(r->err, GGL_FORMAT, "'%s' is already key %zu",
                                       ggl_gguf_show(h->values[i].pub.key).s, first + 1));
        }
        if (s != GGL_OK)
            return ggl_within(r->err, s, "key %zu of %zu", i + 1, h->n_values);
    }
    return GGL_OK;
}

/* The place of a tensor's data, from the start of the data section, and its type's number in the file. */
typedef struct range {
    uint64_t at;
    size_t size, i_tensor;
    int number;
} range;

static ggl_status read_dims(reader *r, ggl_gguf_tensor *t) {
    for (int d = 0; d < GGL_MAX_DIMS; d++)
        t->ne[d] = 1;
    uint32_t n_dims = reader_u32(r, "the number of dimensions");
    if (n_dims > GGL_MAX_DIMS)
        return ggl_fail(r->err, GGL_FORMAT,
                        "tensor '%s' has %" PRIu32 " dimensions, at most %d are supported",
                        ggl_gguf_show(t->name).s, n_dims, GGL_MAX_DIMS);
    t->n_dims = (int)n_dims;
    for (int d = 0; d < t->n_dims; d++) {
        uint64_t ne = reader_u64(r, "a dimension");
        if (ne > INT64_MAX)
            return ggl_fail(r->err, GGL_FORMAT,
                            "dimension %d of tensor '%s' is %" PRIu64 ", which is out of range", d,
                            ggl_gguf_show(t->name).s, ne);
        t->ne[d] = (int64_t)ne;
    }
    return r->status;
}

/* Sets the tensor's type and size to what it becomes, and *in_file to the bytes that it has in the file. */
static ggl_status i2_s_shape(ggl_gguf_tensor *t, size_t *in_file, ggl_error *err) {
    const int64_t row = t->n_dims > 0 ? t->ne[0] : 1;
    t->type = GGL_IQ2_BN;
    if (row % GGUF_I2_S_BLOCK != 0)
        return ggl_fail(err, GGL_FORMAT,
                        "tensor '%s' has rows of %" PRId64
                        " elements, which are not whole blocks of %d, as its type I2_S needs",
                        ggl_gguf_show(t->name).s, row, GGUF_I2_S_BLOCK);
    const ggl_status s = ggl_gguf_check_shape(t->name, t->type, t->n_dims, t->ne, &t->size, err);
    if (s != GGL_OK)
        return s;
    const size_t n_rows = row > 0 ? t->size / ggl_row_size(t->type, row) : 0;
    *in_file = t->size > 0 ? n_rows * (size_t)(row / 4) + GGUF_I2_S_TAIL : 0;
    return GGL_OK;
}

/* Reads a tensor's type. A type that this library does not read is a defect, unless meta_only is
 * set: then the tensor has the size 0. */
static ggl_status read_type(reader *r, ggl_gguf_tensor *t, range *x) {
    const bool meta_only = r->params->meta_only && !r->params->defect;
    uint32_t type = reader_u32(r, "the type");
    if (r->status != GGL_OK)
        return r->status;
    const char *foreign = type <= INT_MAX ? ggl_type_foreign_name((int)type) : NULL;
    t->type = (ggl_type)type;
    x->number = type <= INT_MAX ? (int)type : -1;
    if (type == GGUF_I2_S)
        return defect(r, i2_s_shape(t, &x->size, r->err));
    if (type <= INT_MAX && ggl_type_get((int)type)) {
        const ggl_status s =
            ggl_gguf_check_shape(t->name, t->type, t->n_dims, t->ne, &t->size, r->err);
        x->size = t->size;
        return defect(r, s);
    }
    if (meta_only && type <= INT_MAX)
        return GGL_OK;
    if (foreign)
        return defect(r, ggl_fail(r->err, GGL_UNSUPPORTED,
                                  "tensor '%s' has type %s, which this build does not read%s",
                                  ggl_gguf_show(t->name).s, foreign, ggl_type_advice((int)type)));
    return defect(r, ggl_fail(r->err, GGL_UNSUPPORTED,
                              "tensor '%s' has type number %" PRIu32
                              ", which this build does not know",
                              ggl_gguf_show(t->name).s, type));
}

static ggl_status read_tensor(reader *r, ggl_gguf_tensor *t, range *x, uint64_t alignment) {
    t->name = reader_string(r, "the tensor's name");
    if (r->status != GGL_OK)
        return r->status;
    ggl_status s = defect(r, ggl_gguf_check_name(t->name, GGUF_NAME_MAX, "tensor name", r->err));
    if (s == GGL_OK)
        s = read_dims(r, t);
    if (s == GGL_OK)
        s = read_type(r, t, x);
    if (s != GGL_OK)
        return s;
    x->at = t->offset = reader_u64(r, "the offset");
    t->size_in_file = x->size;
    if (x->at % alignment != 0)
        s = defect(r, ggl_fail(r->err, GGL_FORMAT,
                               "tensor '%s' has offset %" PRIu64
                               ", which is not a multiple of the alignment %" PRIu64,
                               ggl_gguf_show(t->name).s, x->at, alignment));
    if (s != GGL_OK)
        return s;
    /* r->size is below SIZE_MAX / 2, too, so sums of two of them do not overflow */
    if (x->at > SIZE_MAX / 2 || x->size > SIZE_MAX / 2)
        return ggl_fail(r->err, GGL_FORMAT,
                        "tensor '%s' has %zu bytes at offset %" PRIu64
                        ", beyond the end of any file",
                        ggl_gguf_show(t->name).s, x->size, x->at);
    return r->status;
}

static ggl_status read_tensors(reader *r, gguf_head *h, range *ranges, uint64_t alignment) {
    for (size_t i = 0; i < h->n_tensors; i++) {
        ranges[i].i_tensor = i;
        ggl_status s = read_tensor(r, &h->tensors[i], &ranges[i], alignment);
        if (s != GGL_OK)
            return ggl_within(r->err, s, "tensor %zu of %zu", i + 1, h->n_tensors);
    }
    return GGL_OK;
}

static int range_order(const void *a, const void *b) {
    const range *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    if (x->size != y->size) /* an empty tensor may be where another one begins */
        return x->size < y->size ? -1 : 1;
    return (x->i_tensor > y->i_tensor) - (x->i_tensor < y->i_tensor);
}

/* Most files have them in order already. */
static void sort_ranges(range *ranges, size_t n) {
    bool sorted = true;
    for (size_t i = 1; i < n && sorted; i++)
        sorted = range_order(&ranges[i - 1], &ranges[i]) < 0;
    if (!sorted)
        qsort(ranges, n, sizeof *ranges, range_order);
}

/* Fails if the number of a tensor's type has other meanings, and the bytes up to the next tensor, or the file's end, are not those
 * of the type and less than an alignment of padding. Of other types, check_overlap and place_data find too few bytes, and files may
 * have holes. If the last tensor has too few, the file is truncated. */
static ggl_status check_room(reader *r, const gguf_head *h, const range *ranges,
                             uint64_t alignment) {
    const uint64_t data_at = (r->at + alignment - 1) & ~(alignment - 1),
                   end = r->size > data_at ? r->size - data_at : 0;
    uint64_t next = end, at = UINT64_MAX;
    bool is_last = true;
    ggl_status s = GGL_OK;
    for (size_t i = h->n_tensors; i-- > 0 && s == GGL_OK;) {
        const ggl_gguf_tensor *t = &h->tensors[ranges[i].i_tensor];
        if (ranges[i].at < at) {
            next = is_last && at == UINT64_MAX ? end : at;
            is_last = at == UINT64_MAX;
            at = ranges[i].at;
        }
        const char *others = ggl_type_other_uses(ranges[i].number);
        const size_t size = ranges[i].size;
        const bool less = next < at || next - at < size;
        if (size == 0 || !others || (less ? is_last : next - at - size < alignment))
            continue;
        s = defect(
            r,
            ggl_fail(r->err, GGL_FORMAT,
                     "tensor '%s' has type number %d, %s, of which its shape needs %zu bytes, but "
                     "%" PRIu64 " are there: other programs use this number for %s",
                     ggl_gguf_show(t->name).s, ranges[i].number,
                     ranges[i].number == GGUF_I2_S ? "i2_s" : ggl_type_get(ranges[i].number)->name,
                     size, next - at, others));
    }
    return s;
}

/* Fails if two of the sorted ranges overlap. */
static ggl_status check_overlap(reader *r, const gguf_head *h, const range *ranges) {
    ggl_status s = GGL_OK;
    const range *last = NULL; /* the last one that is not empty; it has the highest end */
    for (size_t i = 0; i < h->n_tensors && s == GGL_OK; i++) {
        const range *x = &ranges[i];
        if (x->size == 0)
            continue;
        if (last && x->at < last->at + last->size)
            s = defect(r,
                       ggl_fail(r->err, GGL_FORMAT,
                                "the data of tensor '%s' (%zu bytes at offset %" PRIu64
                                ") overlaps that of tensor '%s' (%zu bytes at offset %" PRIu64 ")",
                                ggl_gguf_show(h->tensors[x->i_tensor].name).s, x->size, x->at,
                                ggl_gguf_show(h->tensors[last->i_tensor].name).s, last->size,
                                last->at));
        if (!last || x->at + x->size > last->at + last->size)
            last = x;
    }
    return s;
}

/* Sets t->data to the data at byte `at`. Fails if the address is not aligned as the type needs. */
static ggl_status place_tensor(const reader *r, ggl_gguf_tensor *t, uint64_t at,
                               uint64_t alignment) {
    size_t need = ggl_gguf_type_alignment(t->type);
    const uint8_t *data = r->data + at;
    if (t->size == 0 || (uintptr_t)data % need == 0) {
        t->data = data;
        return GGL_OK;
    }
    if (at % need == 0)
        return ggl_fail(r->err, GGL_UNSUPPORTED,
                        "the bytes begin at an address that is not a multiple of %zu, which tensor "
                        "'%s' of type %s needs",
                        need, ggl_gguf_show(t->name).s, ggl_type_get((int)t->type)->name);
    return ggl_fail(r->err, GGL_UNSUPPORTED,
                    "tensor '%s' of type %s is at byte %" PRIu64
                    ", which is not a multiple of %zu: general.alignment is %" PRIu64
                    "; convert the model again with the usual alignment of %d",
                    ggl_gguf_show(t->name).s, ggl_type_get((int)t->type)->name, at, need, alignment,
                    GGUF_DEFAULT_ALIGNMENT);
}

/* Sets every tensor's data; fails if the file does not have all of it. */
static ggl_status place_data(reader *r, gguf_head *h, const range *ranges, uint64_t alignment) {
    if (h->n_tensors == 0)
        return GGL_OK;
    uint64_t data_at = (r->at + alignment - 1) & ~(alignment - 1); /* alignment < 2^32, at < 2^63 */
    h->data_at = (size_t)data_at;
    uint64_t need = data_at;
    const range *first = NULL; /* the first tensor in the table whose data is incomplete */
    for (size_t i = 0; i < h->n_tensors; i++) {
        uint64_t end = ranges[i].at + ranges[i].size; /* each below 2^63 */
        if (end > UINT64_MAX - data_at)
            return ggl_fail(r->err, GGL_FORMAT, "tensor '%s' ends beyond the end of any file",
                            ggl_gguf_show(h->tensors[ranges[i].i_tensor].name).s);
        end += data_at;
        if (end > need)
            need = end;
        if (end > r->size && (!first || ranges[i].i_tensor < first->i_tensor))
            first = &ranges[i];
    }
    ggl_status s = GGL_OK;
    if (first)
        s = ggl_fail(r->err, GGL_FORMAT,
                     "the file is truncated: it needs %" PRIu64 " bytes, the file has %zu: %" PRIu64
                     " %s missing, from tensor '%s' on",
                     need, r->size, need - r->size, need - r->size == 1 ? "is" : "are",
                     ggl_gguf_show(h->tensors[first->i_tensor].name).s);
    s = defect(r, s);
    for (size_t i = 0; i < h->n_tensors && s == GGL_OK; i++) /* ends beyond the file: no data */
        if (data_at + ranges[i].at + ranges[i].size <= r->size)
            s = defect(r, place_tensor(r, &h->tensors[ranges[i].i_tensor], data_at + ranges[i].at,
                                       alignment));
    return s;
}

static ggl_status alignment_of(const gguf_head *h, uint64_t *alignment, ggl_error *err) {
    const ggl_gguf_value *v = ggl_gguf_head_find(h, "general.alignment");
    int64_t x = GGUF_DEFAULT_ALIGNMENT;
    if (v && (v->type != GGL_GGUF_U32 || v->is_array))
        return ggl_fail(err, GGL_FORMAT, "general.alignment is %s%s, u32 is expected",
                        v->is_array ? "an array of " : "", ggl_gguf_type_name(v->type));
    if (v)
        (void)ggl_gguf_integer(v, 0, &x);
    ggl_status s = ggl_gguf_check_alignment((uint64_t)x, err);
    if (s == GGL_OK)
        *alignment = (uint64_t)x;
    return s;
}

static ggl_status read_tensor_table(reader *r, gguf_head *h) {
    uint64_t alignment = GGUF_DEFAULT_ALIGNMENT;
    ggl_status s = defect(r, alignment_of(h, &alignment, r->err));
    if (s != GGL_OK)
        return s;
    h->tensors = ggl_calloc(h->n_tensors, sizeof *h->tensors);
    range *ranges = ggl_calloc(h->n_tensors, sizeof *ranges);
    if (!h->tensors || !ranges)
        s = ggl_fail(r->err, GGL_NOMEM, "out of memory for %zu tensors", h->n_tensors);
    if (s == GGL_OK)
        s = read_tensors(r, h, ranges, alignment);
    if (s == GGL_OK)
        sort_ranges(ranges, h->n_tensors);
    if (s == GGL_OK && !r->params->meta_only)
        s = check_room(r, h, ranges, alignment);
    if (s == GGL_OK &&
        !r->params->meta_only) /* before overlaps: a truncated file is reported as truncated */
        s = place_data(r, h, ranges, alignment);
    if (s == GGL_OK)
        s = check_overlap(r, h, ranges);
    for (size_t i = 0; i < h->n_tensors && s == GGL_OK; i++)
        if (ranges[i].number == GGUF_I2_S)
            s = ggl_gguf_i2_s_convert(h, &h->tensors[ranges[i].i_tensor], r->err);
    ggl_free(ranges);
    return s;
}

static ggl_status read_magic(reader *r) {
    if (memcmp(r->data, "GGUF", r->size < 4 ? r->size : 4) != 0) {
        const char *text = ggl_gguf_foreign_format(r->data, r->size);
        ggl_str begin = {.s = (const char *)r->data, .n = r->size < 4 ? r->size : 4};
        return ggl_fail(r->err, GGL_FORMAT, "starts with '%s'%s%s%s, so it is not a GGUF file",
                        ggl_gguf_show(begin).s, text ? " (" : "", text ? text : "",
                        text ? ")" : "");
    }
    reader_take(r, 4, "the header");
    return r->status;
}

static ggl_status read_version(reader *r, uint32_t *version) {
    uint32_t v = reader_u32(r, "the header");
    if (r->status != GGL_OK)
        return r->status;
    if ((v & 0xffff) == 0 && v >> 24 != 0)
        return ggl_fail(r->err, GGL_UNSUPPORTED,
                        "is a big-endian GGUF file; only little-endian ones are supported");
    if (v != 2 && v != 3)
        return ggl_fail(r->err, GGL_UNSUPPORTED,
                        "has GGUF version %" PRIu32 "; 2 and 3 are supported%s", v,
                        v == 1 ? ": convert the model again" : "");
    *version = v;
    return GGL_OK;
}

/* Fails if n things of at least `least` bytes each do not fit into the remaining bytes. */
static ggl_status check_count(const reader *r, uint64_t n, size_t least, const char *what) {
    size_t most = (r->size - r->at) / least;
    if (n > most)
        return ggl_fail(r->err, GGL_FORMAT,
                        "the file is truncated or damaged: its header counts %" PRIu64
                        " %s, but the %zu bytes after it hold at most %zu",
                        n, what, r->size - r->at, most);
    return GGL_OK;
}

static ggl_status read_head(reader *r, gguf_head *h) {
    ggl_status s = read_magic(r);
    if (s == GGL_OK)
        s = read_version(r, &h->version);
    if (s != GGL_OK)
        return s;
    uint64_t n_tensors = reader_u64(r, "the header");
    uint64_t n_keys = reader_u64(r, "the header");
    s = r->status;
    if (s == GGL_OK)
        s = check_count(r, n_keys, GGUF_KEY_LEAST, "keys");
    if (s == GGL_OK)
        s = check_count(r, n_tensors, GGUF_TENSOR_LEAST, "tensors");
    if (s != GGL_OK)
        return s;
    h->n_values = (size_t)n_keys;
    h->n_tensors = (size_t)n_tensors;
    s = read_keys(r, h);
    return s == GGL_OK ? read_tensor_table(r, h) : s;
}

ggl_status ggl_gguf_head_read(gguf_head *h, const uint8_t *data, size_t size,
                              const ggl_gguf_params *p, ggl_error *err) {
    *h = (gguf_head){0};
    reader r = {.data = data, .size = size, .err = err, .params = p};
    ggl_status s = size > SIZE_MAX / 2 ? ggl_fail(err, GGL_LIMIT, "%zu bytes are too many", size)
                                       : read_head(&r, h);
    if (s != GGL_OK)
        ggl_gguf_head_fini(h);
    return s;
}

void ggl_gguf_head_fini(gguf_head *h) {
    for (size_t i = 0; h->values && i < h->n_values; i++)
        ggl_free(h->values[i].starts);
    for (size_t i = 0; i < h->n_made; i++)
        ggl_free(h->made[i]);
    ggl_free(h->made);
    ggl_free(h->values);
    ggl_free(h->tensors);
    ggl_index_fini(&h->by_key);
    *h = (gguf_head){0};
}
