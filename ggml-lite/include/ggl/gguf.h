/* GGUF files, versions 2 and 3, little-endian: metadata and tensors; reading and writing.
 * Format: the GGUF specification in ggml's docs/gguf.md. Everything read is checked; nothing read is trusted.
 *
 *     ggl_gguf *f;
 *     if (ggl_gguf_open(&f, "model.gguf", NULL, &err) != GGL_OK) ...
 *     const ggl_gguf_tensor *t = ggl_gguf_find_tensor(f, "token_embd.weight");
 *     const ggl_gguf_value *v = ggl_gguf_find(f, "general.architecture");
 */
#ifndef GGL_GGUF_H
#define GGL_GGUF_H

#include "ggl/str.h"
#include "ggl/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GGL_MAX_DIMS 4

typedef struct ggl_gguf ggl_gguf;

/* the format's own numbers */
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

typedef struct ggl_gguf_value {
    ggl_str key;
    ggl_gguf_type type; /* of the value, or of an array's elements */
    bool is_array;      /* nested arrays are refused as unsupported */
    uint64_t n;         /* elements; 1 unless an array */
} ggl_gguf_value;

typedef struct ggl_gguf_tensor {
    ggl_str name;
    ggl_type type;
    int n_dims;
    int64_t ne[GGL_MAX_DIMS]; /* innermost first; 1 beyond n_dims */
    int part;                 /* which file of a split model holds it */
    /* in the mapping; numbers at multiples of their size, blocks anywhere; NULL in vocab-only opens
     * */
    const void *data;
    size_t size; /* bytes */
} ggl_gguf_tensor;

typedef struct ggl_gguf_params {
    bool no_mmap;  /* read into memory instead of mapping */
    bool populate; /* touch every page now (MAP_POPULATE) */
    bool willneed; /* advise the kernel to read ahead */
    bool lock;     /* mlock the data; failure is reported by ggl_gguf_lock_failed, not an error */
    /* metadata and the tensor table; tensor data need not be there, and is not given. A tensor's
     * type may then be one that ggl_type_get() does not know; its size is 0 */
    bool meta_only;
} ggl_gguf_params;

/* Opens a file; of a split model ("-00001-of-0000N.gguf"), given its first part, all parts. params may be NULL.
 * On success the caller owns *out; values, strings and tensors stay valid until ggl_gguf_close().
 * On failure *out is NULL. GGL_IO, GGL_FORMAT, GGL_UNSUPPORTED, GGL_NOMEM. The message begins with the path. */
GGL_API GGL_NODISCARD ggl_status ggl_gguf_open(ggl_gguf **out, const char *path,
                                               const ggl_gguf_params *params, ggl_error *err);
/* The same from memory, which stays the caller's and must outlive *out, at an address that is a multiple of 8 (GGL_UNSUPPORTED
 * if a tensor's numbers would lie at no multiple of their size). `name` is used in messages. */
GGL_API GGL_NODISCARD ggl_status ggl_gguf_open_memory(ggl_gguf **out, const void *data, size_t size,
                                                      const char *name, ggl_error *err);
GGL_API void ggl_gguf_close(ggl_gguf *f);

GGL_API const char *ggl_gguf_name(const ggl_gguf *f); /* the path */
GGL_API uint32_t ggl_gguf_version(const ggl_gguf *f);
GGL_API bool ggl_gguf_lock_failed(const ggl_gguf *f);

/* What tells this file from any other, and from itself before it was changed: equal ones have the same
 * tensors, and the same data at the beginning, the middle and the end of each. false, and all zeros: it was opened from memory. Of a split model, all parts together. */
typedef struct ggl_gguf_identity {
    uint64_t size;    /* bytes */
    int64_t modified; /* when last, in ns since 1970 */
    /* a digest of names, types, shapes, places and 192 bytes of data of each; and of each part's
     * size and time */
    uint64_t tensors;
} ggl_gguf_identity;
GGL_API bool ggl_gguf_identify(const ggl_gguf *f, ggl_gguf_identity *out);

/* Whether the parts are files' pages, mapped, and not memory. */
GGL_API bool ggl_gguf_mapped(const ggl_gguf *f);
/* The host memory that holds the parts: for backends that import it. */
GGL_API int ggl_gguf_n_parts(const ggl_gguf *f);
GGL_API const void *ggl_gguf_part(const ggl_gguf *f, int part, size_t *size);

GGL_API size_t ggl_gguf_n_values(const ggl_gguf *f);
GGL_API const ggl_gguf_value *ggl_gguf_value_at(const ggl_gguf *f, size_t i);
GGL_API const ggl_gguf_value *ggl_gguf_find(const ggl_gguf *f,
                                            const char *key); /* NULL: absent. Hashed. */
GGL_API size_t ggl_gguf_n_tensors(const ggl_gguf *f);
GGL_API const ggl_gguf_tensor *ggl_gguf_tensor_at(const ggl_gguf *f, size_t i);
GGL_API const ggl_gguf_tensor *ggl_gguf_find_tensor(const ggl_gguf *f, const char *name);

/* Element i (< n) of a value of a fitting type: any number type as double (64-bit integers beyond 2^53 round) or,
 * for the integer types, as int64 (false if it does not fit); strings; booleans (false for any other type). */
GGL_API bool ggl_gguf_number(const ggl_gguf_value *v, uint64_t i, double *out);
GGL_API bool ggl_gguf_integer(const ggl_gguf_value *v, uint64_t i, int64_t *out);
GGL_API bool ggl_gguf_bool(const ggl_gguf_value *v, uint64_t i, bool *out);
GGL_API bool ggl_gguf_string(const ggl_gguf_value *v, uint64_t i, ggl_str *out);

/* Lookup and conversion in one, for keys of a known type. 1: *out set; 0: absent (*out untouched);
 * -1: wrong type or an array, err says which key and what it is. */
GGL_API int ggl_gguf_get_string(const ggl_gguf *f, const char *key, ggl_str *out, ggl_error *err);
GGL_API int ggl_gguf_get_integer(const ggl_gguf *f, const char *key, int64_t *out, ggl_error *err);
GGL_API int ggl_gguf_get_number(const ggl_gguf *f, const char *key, double *out, ggl_error *err);
GGL_API int ggl_gguf_get_bool(const ggl_gguf *f, const char *key, bool *out, ggl_error *err);

GGL_API const char *ggl_gguf_type_name(ggl_gguf_type t);

/* Writing. Values and tensors are added in file order, then the file is written at once: to a temporary file beside
 * the target, flushed, renamed. Errors are sticky: the first is returned by ggl_gguf_writer_write. Strings and arrays
 * are copied, tensor data is borrowed until the write. */
typedef struct ggl_gguf_writer ggl_gguf_writer;
GGL_API ggl_gguf_writer *ggl_gguf_writer_new(void); /* NULL: out of memory */
GGL_API void ggl_gguf_writer_free(ggl_gguf_writer *w);
GGL_API void ggl_gguf_put_string(ggl_gguf_writer *w, const char *key, const char *s, size_t n);
/* Numbers and booleans: `data` points to n elements of `type` (bool: one byte each); n = 1 and !array: a scalar. */
GGL_API void ggl_gguf_put(ggl_gguf_writer *w, const char *key, ggl_gguf_type type, bool array,
                          const void *data, uint64_t n);
GGL_API void ggl_gguf_put_strings(ggl_gguf_writer *w, const char *key, const ggl_str *s,
                                  uint64_t n);
GGL_API void ggl_gguf_put_value(ggl_gguf_writer *w,
                                const ggl_gguf_value *v); /* of an open file; copied */
GGL_API void ggl_gguf_put_tensor(ggl_gguf_writer *w, const char *name, ggl_type type, int n_dims,
                                 const int64_t *ne, const void *data);
/* The same for data that is made while the file is written, so that not all of it is in memory at once: `fill` is called in
 * the tensor's turn and gives all of its bytes to ggl_gguf_sink_write, in as many pieces as it likes. Its failure ends the
 * write and is returned. */
typedef struct ggl_gguf_sink ggl_gguf_sink;
typedef ggl_status (*ggl_gguf_fill)(void *ctx, ggl_gguf_sink *to, ggl_error *err);
GGL_API GGL_NODISCARD ggl_status ggl_gguf_sink_write(ggl_gguf_sink *to, const void *data, size_t n,
                                                     ggl_error *err);
GGL_API void ggl_gguf_put_tensor_later(ggl_gguf_writer *w, const char *name, ggl_type type,
                                       int n_dims, const int64_t *ne, ggl_gguf_fill fill,
                                       void *ctx);
GGL_API GGL_NODISCARD ggl_status ggl_gguf_writer_write(ggl_gguf_writer *w, const char *path,
                                                       ggl_error *err);
/* Into memory instead: *data is the caller's, freed with ggl_free. */
GGL_API GGL_NODISCARD ggl_status ggl_gguf_writer_write_memory(ggl_gguf_writer *w, void **data,
                                                              size_t *size, ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
