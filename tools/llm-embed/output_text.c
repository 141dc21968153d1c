#include <errno.h>
#include <string.h>

#include "common/char_width.h"
#include "ggl/internal/file.h"
#include "output.h"

ggl_status text_open(text_out *t, const char *path, ggl_error *err) {
    *t = (text_out){.f = stdout};
    const ggl_status st = path ? ggl_new_file_open(&t->file, path, err) : GGL_OK;
    if (t->file)
        t->f = ggl_new_file_stream(t->file);
    return st;
}

ggl_status text_check(text_out *t, ggl_error *err) {
    if (!ferror(t->f))
        return GGL_OK;
    if (!t->file) {
        tool_output_lost(errno);
        return ggl_fail(err, GGL_CANCELLED, "standard output takes no more");
    }
    ggl_new_file_note(t->file);
    ggl_new_file *file = t->file;
    t->file = NULL;
    return ggl_new_file_commit(file, err);
}

ggl_status text_close(text_out *t, ggl_error *err) {
    ggl_new_file *file = t->file;
    t->file = NULL;
    return file ? ggl_new_file_commit(file, err) : GGL_OK;
}

void text_abort(text_out *t) {
    ggl_new_file_discard(t->file);
    t->file = NULL;
}

int text_cell(const text_out *t, const char *s, size_t n, int columns) {
    enum { DOTS = 1 };
    size_t used = 0, fits = 0;
    int width = 0, fits_width = 0;
    uint32_t c;
    while (used < n && width <= columns) {
        if (width <= columns - DOTS) {
            fits = used;
            fits_width = width;
        }
        used += char_read(s + used, n - used, &c);
        width += char_width(c);
    }
    const bool is_cut = width > columns;
    const size_t end = is_cut ? fits : n;
    for (size_t i = 0; i < end;) {
        const size_t bytes = char_read(s + i, end - i, &c);
        char utf8[4];
        const bool is_control = c < 0x20 || (c >= 0x7f && c < 0xa0);
        (void)fwrite(utf8, 1, char_write(is_control ? ' ' : c, utf8), t->f);
        i += bytes;
    }
    if (is_cut)
        fputs("…", t->f);
    return columns - (is_cut ? fits_width + DOTS : width);
}
