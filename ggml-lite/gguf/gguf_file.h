/* Types and functions that the GGUF reader and writer share. Private to ggml-lite.
 *
 *   | "GGUF" | version u32 | n_tensors u64 | n_keys u64 |
 *   | n_keys times:     key string | type u32 | value |
 *   | n_tensors times:  name string | n_dims u32 | ne u64 x n_dims | type u32 | offset u64 |
 *   | zeros up to a multiple of general.alignment |
 *   | data of each tensor, at its offset from here, a multiple of the alignment |
 *
 *   string:  | n u64 | n bytes |        array value:  | element type u32 | n u64 | n elements |
 *
 * Format: ggml's docs/gguf.md. For little-endian files, versions 2 and 3 are the same.
 *
 * read.c   checks bytes, makes a gguf_head       value.c  finds keys, converts values
 * open.c   opens files and split models          write.c  writes files
 * foreign.c  names files of other formats
 * unwritten.c  opens what was never written
 * change.c   changes keys of an opened file */
#ifndef GGL_GGUF_FILE_H
#define GGL_GGUF_FILE_H

#include "base/os_file.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/index.h"

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

/* A key with its value. The public part is the first member: a pointer to it is cast back. */
typedef struct gguf_value {
    ggl_gguf_value pub;
    const uint8_t *data; /* the elements in the file's bytes, unaligned */
    size_t size;         /* bytes of all elements */
    size_t *starts;      /* array of strings: the offset of each in data; else NULL */
    bool is_changed;     /* by ggl_gguf_change */
} gguf_value;

/* Everything before the tensor data. Points into the file's bytes. */
typedef struct gguf_head {
    uint32_t version;
    gguf_value *values;
    size_t n_values;
    ggl_index by_key;
    ggl_gguf_tensor *tensors;
    size_t n_tensors;
    size_t data_at; /* of the tensor data; 0 if there are no tensors, or none are read */
    void **made; /* [n_made]: data of tensors that have another type than in the file (packed.h) */
    size_t n_made, cap_made;
} gguf_head;

typedef struct gguf_part {
    char *path;
    os_map map; /* empty if the caller owns the bytes */
    const uint8_t *data;
    size_t size;
    bool is_file, mapped; /* ggl_gguf_memory */
    int64_t modified;
    gguf_head head;
} gguf_part;

struct ggl_gguf {
    gguf_part *parts; /* keys and values are those of the first part */
    int n_parts;
    ggl_gguf_tensor *tensors; /* of all parts, in order */
    size_t n_tensors;
    ggl_index by_name;
    bool lock_failed;
    /* the bytes of the keys that ggl_gguf_change has changed; NULL: none */
    uint8_t *changes;
    size_t changes_size;
    /* of a composed file: the bytes before the tensor data, and the owner of the parts */
    uint8_t *composed;
    size_t composed_size;
    void (*release)(void *owner);
    void *owner;
};

/* Reads and checks everything before the tensor data, and checks that the file has all data (unless
 * p->meta_only). On failure *h is empty. Messages do not name the file; the caller adds it. */
ggl_status ggl_gguf_head_read(gguf_head *h, const uint8_t *data, size_t size,
                              const ggl_gguf_params *p, ggl_error *err);
/* If the caller of ggl_gguf_open collects defects, passes the message in *err to it, with "where: "
 * before it (NULL: nothing), and returns GGL_OK. Otherwise, and if s is GGL_OK, returns s. */
ggl_status ggl_gguf_defect(const ggl_gguf_params *p, const char *where, ggl_status s,
                           ggl_error *err);
void ggl_gguf_head_fini(gguf_head *h);
/* Joins the tensor tables of all parts; fails if a name occurs twice. */
ggl_status ggl_gguf_collect_tensors(ggl_gguf *f, const ggl_gguf_params *p, ggl_error *err);

/* Encodes everything before the tensor data to new memory; *data has room for one more byte. */
ggl_status ggl_gguf_writer_head(const ggl_gguf_writer *w, uint8_t **data, size_t *size,
                                ggl_error *err);
/* Returns the data of the i-th tensor; NULL: it is made later. */
const void *ggl_gguf_writer_data(const ggl_gguf_writer *w, size_t i);

const ggl_gguf_value *ggl_gguf_head_find(const gguf_head *h, const char *key);
/* Like ggl_gguf_get_integer, but the message does not name the file. */
int ggl_gguf_head_get_integer(const gguf_head *h, const char *key, int64_t *out, ggl_error *err);

/* Returns what a file is that does not begin with "GGUF", or NULL if that is unknown. */
const char *ggl_gguf_foreign_format(const uint8_t *data, size_t size);

/* Returns the bytes of one element; 0 for strings, arrays and unknown types. */
size_t ggl_gguf_type_size(ggl_gguf_type t);

/* Checks that reader and writer share: of the name of a key or a tensor (`what`, at most max
 * bytes), of a tensor's shape (*size: its bytes), and of general.alignment. */
ggl_status ggl_gguf_check_name(ggl_str name, size_t max, const char *what, ggl_error *err);
ggl_status ggl_gguf_check_shape(ggl_str name, ggl_type type, int n_dims, const int64_t *ne,
                                size_t *size, ggl_error *err);
ggl_status ggl_gguf_check_alignment(uint64_t alignment, ggl_error *err);
/* Returns the alignment that a tensor's data needs: the size of a number, or 1 for quantized types,
 * whose blocks are read as bytes, and for unknown types. */
size_t ggl_gguf_type_alignment(ggl_type type);

/* A string of a file for a message: unprintable bytes as \xNN, cut when long. ggl_gguf_show(name).s
 * is valid until the end of the full expression. */
typedef struct gguf_text {
    char s[160];
} gguf_text;
gguf_text ggl_gguf_show(ggl_str s);

#endif
