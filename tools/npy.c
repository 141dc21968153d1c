#include "npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The header is padded with spaces so that the data begin at a multiple of 64. */
static void write_header(npy_writer *w, int64_t n_rows, int64_t n_columns) {
    char text[128];
    memset(text, ' ', sizeof text);
    memcpy(text, "\x93NUMPY\x01\x00", 8);
    text[8] = (char)(sizeof text - 10);
    text[9] = 0;
    int n =
        snprintf(text + 10, sizeof text - 10,
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (%" PRId64 ", %" PRId64 "), }",
                 n_rows, n_columns);
    text[10 + n] = ' '; /* in place of snprintf's NUL */
    text[sizeof text - 1] = '\n';
    (void)fwrite(text, 1, sizeof text, ggl_new_file_stream(w->file));
    ggl_new_file_note(w->file);
}

ggl_status npy_open(npy_writer *w, const char *path, int64_t n_rows, int64_t n_columns,
                    ggl_error *err) {
    ggl_status s = ggl_new_file_open(&w->file, path, err);
    if (s == GGL_OK)
        write_header(w, n_rows, n_columns);
    return s;
}

void npy_row(npy_writer *w, const float *row, int64_t n_columns) {
    FILE *f = ggl_new_file_stream(w->file);
    /* little-endian, whatever the machine */
    for (int64_t i = 0; i < n_columns && !ggl_new_file_error(w->file); i++) {
        uint32_t u;
        memcpy(&u, &row[i], 4);
        unsigned char b[4] = {(unsigned char)u, (unsigned char)(u >> 8), (unsigned char)(u >> 16),
                              (unsigned char)(u >> 24)};
        if (fwrite(b, 1, 4, f) != 4)
            ggl_new_file_note(w->file);
    }
}

ggl_status npy_close(npy_writer *w, ggl_error *err) {
    ggl_status s = ggl_new_file_commit(w->file, err);
    w->file = NULL;
    return s;
}

void npy_abort(npy_writer *w) {
    ggl_new_file_discard(w->file);
    w->file = NULL;
}
