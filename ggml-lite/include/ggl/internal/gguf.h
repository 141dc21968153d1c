/* Private calls for GGUF files. They read values of any type, arrays, files in memory and the parts of split
 * models, write files, and make files in memory that are on no disk.
 *
 * Threads: as ggl/gguf.h says. A writer belongs to one thread at a time. */
#ifndef GGL_INTERNAL_GGUF_H
#define GGL_INTERNAL_GGUF_H

#include "ggl/gguf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The type numbers of the file format. */
typedef enum ggl_gguf_type {
    GGL_GGUF_U8 = 0,
    GGL_GGUF_I8,
    GGL_GGUF_U16,
    GGL_GGUF_I16,
    GGL_GGUF_U32,
    GGL_GGUF_I32,
    GGL_GGUF_F32,
    GGL_GGUF_BOOL,
    GGL_GGUF_STRING,
    GGL_GGUF_ARRAY,
    GGL_GGUF_U64,
    GGL_GGUF_I64,
    GGL_GGUF_F64
} ggl_gguf_type;

/* Bytes of a tensor's name that a file is written with. The specification allows one more, which is read, but llama.cpp refuses such files. */
enum { GGL_GGUF_NAME_MAX_WRITTEN = 63 };

typedef struct ggl_gguf_value {
    ggl_str key;
    ggl_gguf_type type; /* of the value, or of an array's elements */
    bool is_array;      /* nested arrays are refused as unsupported */
    uint64_t n;         /* elements; 1 unless an array */
} ggl_gguf_value;

/* Opens a file's bytes in memory, which the caller owns and must keep until ggl_gguf_close. `name`
 * stands for the path in messages. `data` should be aligned to 8 bytes: GGL_UNSUPPORTED if numbers
 * of a tensor are not aligned to their size. */
GGL_NODISCARD ggl_status ggl_gguf_open_memory(ggl_gguf **out, const void *data, size_t size,
                                              const char *name, ggl_error *err);
GGL_INTERNAL_API const char *ggl_gguf_name(const ggl_gguf *f); /* the path */
uint32_t ggl_gguf_version(const ggl_gguf *f);
bool ggl_gguf_lock_failed(const ggl_gguf *f);

/* Identifies a file (all parts of a split model) and its version. Files with equal identities have
 * the same tensors, and the same data at the start, the middle and the end of each tensor. */
typedef struct ggl_gguf_identity {
    uint64_t size;    /* bytes */
    int64_t modified; /* time of the last change, in ns since 1970 */
    /* A digest of each tensor's name, type, shape, place and 192 bytes of its data, and of each
     * part's size and time, and of the keys that ggl_gguf_change has changed. */
    uint64_t tensors;
} ggl_gguf_identity;
/* Sets *out. Returns false, and sets it to zeros, if the file was opened from memory. */
bool ggl_gguf_identify(const ggl_gguf *f, ggl_gguf_identity *out);
/* Returns a digest (FNV-1a) of the keys with their values, and of each tensor's name, type, shape and
 * 192 bytes of its data: the same for every copy of a file, and practically never the same for two
 * models. It detects mistakes, not malice. */
GGL_INTERNAL_API uint64_t ggl_gguf_digest(const ggl_gguf *f);

/* Returns true if part 0, 1, .. is mapped, false if it was read or made in memory. */
bool ggl_gguf_mapped(const ggl_gguf *f, int part);
/* Frees the memory of the whole pages in [data, data + size), a piece of a tensor's data. When they
 * are touched again, the system reads them again. So a file of any size can be read from end to end
 * in little memory. No effect if the file was read into memory, and on any other memory. */
void ggl_gguf_drop(const ggl_gguf *f, const void *data, size_t size);
/* The number of parts, and the host memory that holds part 0, 1, .., which backends may import. */
int ggl_gguf_n_parts(const ggl_gguf *f);
const void *ggl_gguf_part(const ggl_gguf *f, int part, size_t *size);
/* The bytes before the tensor data of a part that has tensors. */
size_t ggl_gguf_data_at(const ggl_gguf *f, int part);

GGL_INTERNAL_API size_t ggl_gguf_n_values(const ggl_gguf *f);
GGL_INTERNAL_API const ggl_gguf_value *ggl_gguf_value_at(const ggl_gguf *f, size_t i);
/* Returns the value of the key, or NULL; takes constant time. */
GGL_INTERNAL_API const ggl_gguf_value *ggl_gguf_find(const ggl_gguf *f, const char *key);
/* Set *out to element i (below n) of a value. Return false if the value has another type.
 * ggl_gguf_number takes all number types (64-bit integers beyond 2^53 are rounded).
 * ggl_gguf_integer and ggl_gguf_unsigned take integer types, and return false if the element does
 * not fit into int64_t or uint64_t. */
GGL_INTERNAL_API bool ggl_gguf_number(const ggl_gguf_value *v, uint64_t i, double *out);
GGL_INTERNAL_API bool ggl_gguf_integer(const ggl_gguf_value *v, uint64_t i, int64_t *out);
GGL_INTERNAL_API bool ggl_gguf_unsigned(const ggl_gguf_value *v, uint64_t i, uint64_t *out);
bool ggl_gguf_bool(const ggl_gguf_value *v, uint64_t i, bool *out);
GGL_INTERNAL_API bool ggl_gguf_string(const ggl_gguf_value *v, uint64_t i, ggl_str *out);

/* True if two values, which may be of two files, have the same type and the same elements, bit for
 * bit. Their keys are not compared. */
bool ggl_gguf_same_value(const ggl_gguf_value *a, const ggl_gguf_value *b);

/* As ggl_gguf_get_integer. */
int ggl_gguf_get_bool(const ggl_gguf *f, const char *key, bool *out, ggl_error *err);

const char *ggl_gguf_type_name(ggl_gguf_type t);

/* Writing. Values and tensors are added in file order; then ggl_gguf_writer_write writes the whole
 * file, to a temporary file in the same folder, which it flushes and renames. Errors are sticky:
 * ggl_gguf_writer_write returns the first. Strings and arrays are copied; tensor data is borrowed
 * until the write. */
typedef struct ggl_gguf_writer ggl_gguf_writer;
GGL_INTERNAL_API ggl_gguf_writer *ggl_gguf_writer_new(void); /* NULL: out of memory */
GGL_INTERNAL_API void ggl_gguf_writer_free(ggl_gguf_writer *w);
GGL_INTERNAL_API void ggl_gguf_put_string(ggl_gguf_writer *w, const char *key, const char *s,
                                          size_t n);
/* Adds numbers or booleans: `data` points to n elements of `type` (bool: one byte each). array
 * false: one value, n is 1. */
GGL_INTERNAL_API void ggl_gguf_put(ggl_gguf_writer *w, const char *key, ggl_gguf_type type,
                                   bool array, const void *data, uint64_t n);
GGL_INTERNAL_API void ggl_gguf_put_strings(ggl_gguf_writer *w, const char *key, const ggl_str *s,
                                           uint64_t n);
/* Adds a copy of a value of an open file. */
GGL_INTERNAL_API void ggl_gguf_put_value(ggl_gguf_writer *w, const ggl_gguf_value *v);
GGL_INTERNAL_API void ggl_gguf_put_tensor(ggl_gguf_writer *w, const char *name, ggl_type type,
                                          int n_dims, const int64_t *ne, const void *data);
/* Adds a tensor whose data is made while the file is written, so that not all data is in memory at
 * once. When the tensor's turn comes, `fill` is called, and passes all its bytes to
 * ggl_gguf_sink_write, in any number of pieces. If it fails, the write ends with its status. */
typedef struct ggl_gguf_sink ggl_gguf_sink;
typedef ggl_status (*ggl_gguf_fill)(void *ctx, ggl_gguf_sink *to, ggl_error *err);
GGL_INTERNAL_API GGL_NODISCARD ggl_status ggl_gguf_sink_write(ggl_gguf_sink *to, const void *data,
                                                              size_t n, ggl_error *err);
GGL_INTERNAL_API void ggl_gguf_put_tensor_later(ggl_gguf_writer *w, const char *name, ggl_type type,
                                                int n_dims, const int64_t *ne, ggl_gguf_fill fill,
                                                void *ctx);
GGL_INTERNAL_API GGL_NODISCARD ggl_status ggl_gguf_writer_write(ggl_gguf_writer *w,
                                                                const char *path, ggl_error *err);
/* Returns the size in bytes of the file that would be written; 0: a call has failed, or the file would
 * be too large. */
GGL_INTERNAL_API uint64_t ggl_gguf_writer_size(const ggl_gguf_writer *w);
/* Writes to memory instead of a file: the caller frees *data with ggl_free. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status ggl_gguf_writer_write_memory(ggl_gguf_writer *w,
                                                                       void **data, size_t *size,
                                                                       ggl_error *err);

/* Memory in which the tensors of a composed file lie. */
typedef struct ggl_gguf_memory {
    const void *data;
    size_t size;
    bool is_file;     /* the bytes are a file's, or were made of one.. */
    int64_t modified; /* ..that was changed at this time, in ns since 1970 */
    bool mapped;      /* the file's pages, to which nobody writes */
} ggl_gguf_memory;

/* Returns that of part 0, 1, .. of a file; all zeros if there is no such part. */
ggl_gguf_memory ggl_gguf_part_memory(const ggl_gguf *f, int part);

typedef struct ggl_gguf_composition {
    size_t size;                 /* sizeof(ggl_gguf_composition) */
    const char *name;            /* stands for the path; copied */
    const ggl_gguf_memory *part; /* the file's parts: [n_parts], at least 1; copied */
    int n_parts;
    bool lock; /* mlock the parts, as in ggl_gguf_params */
    /* ggl_gguf_close calls this once, after which the parts' memory may be freed; NULL: nothing */
    void (*release)(void *owner);
    void *owner;
} ggl_gguf_composition;

/* Opens a file that was never written: the writer's keys, and its tensors where their data lies, in
 * the parts; nothing is copied. Tensors of ggl_gguf_put_tensor_later have no data, as if the file had
 * been opened with meta_only. The writer is not changed. On failure *out is NULL, and release was not
 * called. GGL_USAGE: a tensor's data is in no part, or numbers are not aligned to their size;
 * GGL_LIMIT, GGL_NOMEM. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status ggl_gguf_compose(ggl_gguf **out, const ggl_gguf_writer *w,
                                                           const ggl_gguf_composition *c,
                                                           ggl_error *err);

/* Gives an opened file the writer's keys: each replaces the file's value of that key, or is added after the others. The file
 * on disk stays as it is. Once per file, directly after it was opened: pointers to values become invalid. GGL_USAGE:
 * a key of the file is a list, or the keys were changed before; GGL_LIMIT, GGL_NOMEM, or as the writer. After a failure
 * the file can only be closed. */
GGL_NODISCARD ggl_status ggl_gguf_change(ggl_gguf *f, const ggl_gguf_writer *w, ggl_error *err);
/* True if the value is one of ggl_gguf_change. */
bool ggl_gguf_is_changed(const ggl_gguf_value *v);
/* Returns the bytes that stand for all changes of a file; NULL, of no bytes: there are none. */
const void *ggl_gguf_changes(const ggl_gguf *f, size_t *size);

#ifdef __cplusplus
}
#endif
#endif
