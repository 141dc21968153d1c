/* What the parts of the GGUF reader and writer share. Private to ggml-lite.
 *
 *   | "GGUF" | version u32 | n_tensors u64 | n_keys u64 |
 *   | n_keys times:     key string | type u32 | value |
 *   | n_tensors times:  name string | n_dims u32 | ne u64 x n_dims | type u32 | offset u64 |
 *   | zeros up to a multiple of general.alignment |
 *   | tensor data, each at its offset from here, a multiple of the alignment |
 *
 *   string:  | n u64 | n bytes |        array value:  | element type u32 | n u64 | n elements |
 *
 * Format: ggml's docs/gguf.md; versions 2 and 3 differ in nothing a little-endian file shows.
 *
 * read.c   bytes -> gguf_head: all checks        value.c  looking up, converting
 * open.c   files, split models -> ggl_gguf       write.c  the way back */
#ifndef GGL_GGUF_FILE_H
#define GGL_GGUF_FILE_H

#include "base/os_file.h"
#include "ggl/gguf.h"
#include "ggl/index.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error                                                                                             \
    "GGUF data is little-endian and used in place: a big-endian machine needs a converting loader"
#endif

enum {
    GGUF_DEFAULT_ALIGNMENT = 32,
    GGUF_NAME_MAX = 64,                    /* bytes of a tensor's name, by the specification */
    GGUF_KEY_MAX = 65535,                  /* bytes of a key, by the specification */
    GGUF_HEADER = 24,                      /* magic, version, two counts */
    GGUF_KEY_LEAST = 8 + 1 + 4 + 1,        /* bytes: the shortest key with the shortest value */
    GGUF_TENSOR_LEAST = 8 + 1 + 4 + 4 + 8, /* bytes: the shortest entry of the tensor table */
};

/* A key with its value. The public part is first: a pointer to it is cast back. */
typedef struct gguf_value {
    ggl_gguf_value pub;
    const uint8_t *data; /* the elements as they stand in the file, unaligned */
    size_t size;         /* bytes of all elements */
    size_t *starts;      /* of an array of strings: where each begins in data; else NULL */
} gguf_value;

/* All that stands before the tensor data. Points into the file's bytes. */
typedef struct gguf_head {
    uint32_t version;
    gguf_value *values;
    size_t n_values;
    ggl_index by_key;
    ggl_gguf_tensor *tensors;
    size_t n_tensors;
} gguf_head;

typedef struct gguf_part {
    char *path;
    os_map map; /* empty if the bytes are the caller's */
    const uint8_t *data;
    size_t size;
    gguf_head head;
} gguf_part;

struct ggl_gguf {
    gguf_part *parts; /* the values are those of the first */
    int n_parts;
    ggl_gguf_tensor *tensors; /* of all parts, in order */
    size_t n_tensors;
    ggl_index by_name;
    bool lock_failed;
};

/* Reads and checks everything before the tensor data, and that the data is there (unless
 * meta_only). On failure *h is empty. Messages do not name the file yet. */
ggl_status ggl_gguf_head_read(gguf_head *h, const uint8_t *data, size_t size, bool meta_only,
                              ggl_error *err);
void ggl_gguf_head_fini(gguf_head *h);

const ggl_gguf_value *ggl_gguf_head_find(const gguf_head *h, const char *key);
/* As ggl_gguf_get_integer. */
int ggl_gguf_head_get_integer(const gguf_head *h, const char *key, int64_t *out, ggl_error *err);

/* Bytes of one element; 0 for strings, arrays, and what is no type. */
size_t ggl_gguf_type_size(ggl_gguf_type t);

/* What reader and writer ask of a key or a tensor's name, and of its shape (size in bytes ->
 * *size). */
ggl_status ggl_gguf_check_name(ggl_str name, size_t max, const char *what, ggl_error *err);
ggl_status ggl_gguf_check_shape(ggl_str name, ggl_type type, int n_dims, const int64_t *ne,
                                size_t *size, ggl_error *err);
ggl_status ggl_gguf_check_alignment(uint64_t alignment, ggl_error *err);
/* What a tensor's address must be a multiple of: plain numbers are read as such, blocks of quantized
 * types as bytes. 1 for what is no type. */
size_t ggl_gguf_type_alignment(ggl_type type);

/* A string of a file, fit for a message: unprintable bytes as \xNN, cut when long.
 * `ggl_gguf_show(name).s` lives until the end of the full expression. */
typedef struct gguf_text {
    char s[160];
} gguf_text;
gguf_text ggl_gguf_show(ggl_str s);

#endif
