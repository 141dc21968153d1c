/* Reads GGUF files, versions 2 and 3, little-endian: tensors, and single values of the metadata.
 * Format: the GGUF specification in ggml's docs/gguf.md. All input is checked before it is used.
 *
 *     ggl_gguf *f;
 *     if (ggl_gguf_open(&f, "model.gguf", NULL, &err) != GGL_OK) ...
 *     const ggl_gguf_tensor *t = ggl_gguf_find_tensor(f, "token_embd.weight");
 *
 * Threads: an opened file does not change, so any number of threads may read it at the same time.
 *
 * Tier: versioned (docs/library.md says what that promises). */
#ifndef GGL_GGUF_H
#define GGL_GGUF_H

#include "ggl/str.h"
#include "ggl/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GGL_MAX_DIMS 4

typedef struct ggl_gguf ggl_gguf;

typedef struct ggl_gguf_tensor {
    ggl_str name;
    ggl_type type;
    int n_dims;
    int64_t ne[GGL_MAX_DIMS]; /* innermost first; 1 beyond n_dims */
    int part;                 /* the file of a split model that holds it, from 0 on */
    /* The elements, in the mapping (but see size_in_file): numbers are aligned to their size, blocks are not aligned. NULL
     * if the file was opened with meta_only. */
    const void *data;
    size_t size;     /* bytes */
    uint64_t offset; /* of the data from the start of its file's tensor data, as the file has it */
    size_t
        size_in_file; /* other than `size` if the file's type is I2_S, which becomes GGL_IQ2_BN in memory of its own */
} ggl_gguf_tensor;

typedef struct ggl_gguf_params {
    size_t size; /* sizeof(ggl_gguf_params) */
    /* Read into memory instead of mapping. The memory is then the file's own: whoever opened the file
     * may change tensor data in it, between other uses. */
    bool no_mmap;
    bool populate; /* read every page now (MAP_POPULATE) */
    bool willneed; /* advise the kernel to read ahead */
    bool lock;     /* mlock the data; a failure is no error */
    /* Read metadata and the tensor table only; the file may lack the tensor data. Tensors may have
     * types that ggl_type_get() does not know; their size is 0. */
    bool meta_only;
    /* NULL: the first defect of the file is the error. Otherwise each defect after which reading can
     * go on is passed to this function as a sentence (valid during the call), and opening succeeds:
     * bad or equal names, booleans other than 0 and 1, a wrong alignment, wrong offsets and shapes,
     * overlaps, unknown types, missing data, another number of tensors than a split model tells, parts
     * of a split model that are absent or damaged (their tensors are left out), or a part without the
     * others. Then, of a tensor whose type is unknown or whose shape is wrong, the size is 0; of one
     * whose data is missing or not aligned, `data` is NULL; of equal names, the first one is found.
     * Still an error: whatever makes the rest unreadable, and offsets and sizes that no file can have. */
    void (*defect)(void *ctx, const char *text);
    void *ctx;
} ggl_gguf_params;

/* Opens a file; if it is the first part of a split model ("-00001-of-0000N.gguf"), opens all parts.
 * params may be NULL. On success the caller owns *out; values, strings and tensors stay valid until
 * ggl_gguf_close(). On failure *out is NULL. GGL_IO, GGL_FORMAT, GGL_UNSUPPORTED, GGL_NOMEM. The
 * message begins with the path. */
GGL_API GGL_NODISCARD ggl_status ggl_gguf_open(ggl_gguf **out, const char *path,
                                               const ggl_gguf_params *params, ggl_error *err);
GGL_API void ggl_gguf_close(ggl_gguf *f);

GGL_API size_t ggl_gguf_n_tensors(const ggl_gguf *f);
/* The tensors are one array, in the order of the file. */
GGL_API const ggl_gguf_tensor *ggl_gguf_tensor_at(const ggl_gguf *f, size_t i);
GGL_API const ggl_gguf_tensor *ggl_gguf_find_tensor(const ggl_gguf *f, const char *name);

/* Look a key up and convert its value. Return 1 if *out is set; 0 if the key is absent (*out is
 * unchanged); -1 if it has another type or is an array: err names the key and its type. */
GGL_API int ggl_gguf_get_string(const ggl_gguf *f, const char *key, ggl_str *out, ggl_error *err);
GGL_API int ggl_gguf_get_integer(const ggl_gguf *f, const char *key, int64_t *out, ggl_error *err);
GGL_API int ggl_gguf_get_number(const ggl_gguf *f, const char *key, double *out, ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
