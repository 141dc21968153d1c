#include <math.h>

#include "common/report.h"
#include "drawing_page.h"
#include "ggl/internal/file.h"
#include "ggl/internal/text.h"

ggl_status drawing_write(const drawing *d, FILE *out, ggl_error *err) {
    page_body b = {.d = d};
    ggl_status st = d->failed         ? ggl_fail(err, GGL_NOMEM, "out of memory for the picture")
                    : d->n_blocks > 0 ? graph_body(&b, d, err)
                                      : chart_body(&b, d, err);
    if (st == GGL_OK) {
        const double width = fmax(b.width, d->n_blocks > 0 ? 0 : PAGE_WIDTH),
                     top = page_head(NULL, d, width);
        page_begin(out, d, width, top + b.height + 10);
        b.draw(out, &b, width, top);
        page_end(out);
    }
    if (b.fini)
        b.fini(&b);
    ggl_free(b.state);
    return st;
}

static void note_suffix(const char *tool, const char *flag, const char *path) {
    static const char *const others[] = {".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf", ".html"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (ggl_case_ends_with(path, others[i]))
            tool_note(tool, "%s: %s is an SVG file: a name that ends in .svg opens it everywhere",
                      flag, path);
}

int drawing_save(drawing *d, const char *tool, const char *flag, const char *path) {
    ggl_error err = {0};
    ggl_new_file *f = NULL;
    note_suffix(tool, flag, path);
    ggl_status st = ggl_new_file_open(&f, path, &err);
    if (st == GGL_OK)
        st = drawing_write(d, ggl_new_file_stream(f), &err);
    if (st == GGL_OK)
        st = ggl_new_file_commit(f, &err);
    else
        ggl_new_file_discard(f);
    drawing_fini(d);
    return st == GGL_OK ? 0 : tool_error(tool, 1, "%s: %s", flag, err.msg);
}
