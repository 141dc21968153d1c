/* Two-dimensional float32 .npy files: written row by row, read as a whole. Format: NumPy's NEP 1; versions 1.0 to 3.0 are read,
 * 1.0 is written. */
#ifndef TOOLS_NPY_H
#define TOOLS_NPY_H

#include <stdint.h>

#include "ggl/file.h"

typedef struct npy_writer {
    ggl_new_file *file; /* NULL: nothing is open */
} npy_writer;

/* GGL_IO and the like, as ggl_new_file_open. */
ggl_status npy_open(npy_writer *w, const char *path, int64_t n_rows, int64_t n_columns,
                    ggl_error *err);
void npy_row(npy_writer *w, const float *row, int64_t n_columns);
/* The file appears under its name. GGL_IO: something could not be written, and it is not there. */
ggl_status npy_close(npy_writer *w, ggl_error *err);
/* Gives up: nothing is left. Of no effect after npy_close. */
void npy_abort(npy_writer *w);

typedef struct npy_array {
    float *data;               /* [n_rows][n_columns] */
    int64_t n_rows, n_columns; /* at least 1 */
} npy_array;

/* GGL_FORMAT: no .npy file, of another type or shape, or not complete. GGL_IO, GGL_NOMEM. The message begins with the path; on
 * failure *a is all zeros. */
ggl_status npy_read(npy_array *a, const char *path, ggl_error *err);
void npy_fini(npy_array *a);

#endif
