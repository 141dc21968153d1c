/* Float32 .npy files: written row by row, read as a whole if they have two dimensions. The format is
 * NumPy's NEP 1; reads versions 1.0 to 3.0, writes 1.0. */
#ifndef TOOLS_NPY_H
#define TOOLS_NPY_H

#include <stdint.h>

#include "ggl/internal/file.h"

typedef struct npy_writer {
    ggl_new_file *file; /* NULL: no file is open */
} npy_writer;

/* Fails as ggl_new_file_open does. */
ggl_status npy_open(npy_writer *w, const char *path, int64_t n_rows, int64_t n_columns,
                    ggl_error *err);
/* The same for an array of n dimensions, at most 8; shape[0] varies slowest, as in NumPy. */
ggl_status npy_open_shape(npy_writer *w, const char *path, const int64_t *shape, int n,
                          ggl_error *err);
void npy_row(npy_writer *w, const float *row, int64_t n_columns);
/* Completes the file, which then appears under its name. GGL_IO: a write failed, and there is no
 * file. */
ggl_status npy_close(npy_writer *w, ggl_error *err);
/* Discards the file. No effect after npy_close. */
void npy_abort(npy_writer *w);

/* For arrays that grow: the bytes of the header, 128 for every shape of two dimensions that a file can have, and a row's bytes. */
enum { NPY_HEADER = 256 };
size_t npy_header(char out[NPY_HEADER], const int64_t *shape, int n);
/* False: a write failed. */
bool npy_put_row(FILE *f, const float *row, int64_t n_columns);

typedef struct npy_shape {
    int64_t n_rows, n_columns; /* n_rows may be 0 */
    size_t begin;              /* where the data begin */
    size_t size;               /* of the file */
} npy_shape;

/* Reads only the header of an array of two dimensions, which may have fewer data than it says, or more. Fails as npy_read. */
ggl_status npy_look(npy_shape *out, const char *path, ggl_error *err);

typedef struct npy_array {
    float *data;               /* [n_rows][n_columns] */
    int64_t n_rows, n_columns; /* at least 1 */
} npy_array;

/* Reads a file. Fails with GGL_FORMAT (not a .npy file, another type or shape, or incomplete),
 * GGL_IO or GGL_NOMEM. The message begins with the path; *a is all zeros on failure. */
ggl_status npy_read(npy_array *a, const char *path, ggl_error *err);
void npy_fini(npy_array *a);

#endif
