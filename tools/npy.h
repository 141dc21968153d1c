/* Writes a two-dimensional float32 .npy file, row by row. Format: NumPy's NEP 1, version 1.0. */
#ifndef TOOLS_NPY_H
#define TOOLS_NPY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct npy_writer {
    FILE *file;
    char *path, *temporary; /* written under another name, renamed when it is whole */
    int error;              /* the first errno */
} npy_writer;

/* False: errno says why. Then nothing is left behind. */
bool npy_open(npy_writer *w, const char *path, int64_t n_rows, int64_t n_columns);
void npy_row(npy_writer *w, const float *row, int64_t n_columns);
/* Flushes and renames; false: errno says what failed first, and the temporary file is gone. */
bool npy_close(npy_writer *w);
/* Gives up: removes the temporary file. */
void npy_abort(npy_writer *w);

#endif
