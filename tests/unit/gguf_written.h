/* What the tests gguf_write*.c share. */
#ifndef TESTS_GGUF_WRITTEN_H
#define TESTS_GGUF_WRITTEN_H

#include "ggl/internal/gguf.h"
#include "ggl/internal/os_fs.h"

/* Returns how many names the folder has. */
static inline int files_in(const char *path) {
    os_folder *folder = ggl_os_folder_open(path);
    int n = 0;
    while (folder && ggl_os_folder_next(folder))
        n++;
    ggl_os_folder_close(folder);
    return n;
}

/* Returns a writer with one key. */
static inline ggl_gguf_writer *small_writer(void) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_gguf_put_string(w, "k", "value", 5);
    return w;
}

#endif
