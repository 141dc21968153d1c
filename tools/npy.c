#include "npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "new_file.h"

static void forget(npy_writer *w) {
    free(w->path);
    free(w->temporary);
    *w = (npy_writer){0};
}

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
    if (fwrite(text, 1, sizeof text, w->file) != sizeof text)
        w->error = errno;
}

bool npy_open(npy_writer *w, const char *path, int64_t n_rows, int64_t n_columns) {
    *w = (npy_writer){0};
    w->path = strdup(path);
    w->temporary = malloc(strlen(path) + 16);
    if (!w->path || !w->temporary) {
        forget(w);
        errno = ENOMEM;
        return false;
    }
    sprintf(w->temporary, "%s.XXXXXX", path);
    int fd = mkstemp(w->temporary);
    w->file = fd < 0 ? NULL : fdopen(fd, "wb");
    if (!w->file) {
        int error = errno;
        forget(w);
        errno = error;
        return false;
    }
    write_header(w, n_rows, n_columns);
    return true;
}

void npy_row(npy_writer *w, const float *row, int64_t n_columns) {
    if (w->error)
        return;
    for (int64_t i = 0; i < n_columns && !w->error; i++) { /* little-endian, whatever the machine */
        uint32_t u;
        memcpy(&u, &row[i], 4);
        unsigned char b[4] = {(unsigned char)u, (unsigned char)(u >> 8), (unsigned char)(u >> 16),
                              (unsigned char)(u >> 24)};
        if (fwrite(b, 1, 4, w->file) != 4)
            w->error = errno;
    }
}

bool npy_close(npy_writer *w) {
    bool ok = new_file_end(w->file, w->temporary, w->path, w->error);
    int error = errno;
    forget(w);
    errno = error;
    return ok;
}

void npy_abort(npy_writer *w) {
    if (!w->file)
        return;
    new_file_abort(w->file, w->temporary);
    forget(w);
}
