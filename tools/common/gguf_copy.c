#include "gguf_copy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load.h"
#include "process.h"
#include "progress.h"
#include "ggl/internal/file.h"
#include "report.h"

/* --- data ------------------------------------------------------------------------------------- */

ggl_status gguf_stream(const ggl_gguf *f, const ggl_gguf_tensor *t, size_t step, double *done,
                       gguf_piece *piece, void *ctx, ggl_error *err) {
    const char *data = t->data;
    ggl_status s = GGL_OK;
    for (size_t at = 0, n; s == GGL_OK && at < t->size; at += n) {
        n = t->size - at < step ? t->size - at : step;
        s = piece(ctx, data + at, n, err);
        ggl_gguf_drop(f, data + at, n);
        *done += (double)n;
        progress_set(*done);
        if (s == GGL_OK && process_stopped)
            s = ggl_fail(err, GGL_IO, "interrupted");
    }
    return s;
}

typedef struct gguf_copy {
    gguf_copy_job *job;
    const ggl_gguf_tensor *t;
} gguf_copy;

static ggl_status copy_piece(void *ctx, const void *data, size_t n, ggl_error *err) {
    return ggl_gguf_sink_write(ctx, data, n, err);
}

static ggl_status fill(void *ctx, ggl_gguf_sink *to, ggl_error *err) {
    gguf_copy *c = ctx;
    return gguf_stream(c->job->file, c->t, GGUF_STEP, &c->job->done, copy_piece, to, err);
}

bool gguf_copy_begin(gguf_copy_job *j, const ggl_gguf *f) {
    *j = (gguf_copy_job){.file = f};
    j->copies = calloc(ggl_gguf_n_tensors(f) + 1, sizeof *j->copies);
    return j->copies != NULL;
}

void gguf_copy_tensor(gguf_copy_job *j, ggl_gguf_writer *w, const ggl_gguf_tensor *t) {
    gguf_copy *c = &j->copies[j->n++];
    char name[256];
    snprintf(name, sizeof name, "%.*s", (int)t->name.n, t->name.s);
    *c = (gguf_copy){j, t};
    ggl_gguf_put_tensor_later(w, name, t->type, t->n_dims, t->ne, fill, c);
}

void gguf_copy_end(gguf_copy_job *j) {
    free(j->copies);
    *j = (gguf_copy_job){0};
}

/* --- files ------------------------------------------------------------------------------------ */

bool gguf_is_split_key(ggl_str key) {
    return key.n > 6 && memcmp(key.s, "split.", 6) == 0;
}

void gguf_put_keys(ggl_gguf_writer *w, const ggl_gguf *f) {
    for (size_t i = 0; i < ggl_gguf_n_values(f); i++)
        if (!gguf_is_split_key(ggl_gguf_value_at(f, i)->key))
            ggl_gguf_put_value(w, ggl_gguf_value_at(f, i));
}

double gguf_bytes(const ggl_gguf *f) {
    double bytes = 0;
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++)
        bytes += (double)ggl_gguf_tensor_at(f, i)->size;
    return bytes;
}

ggl_gguf *gguf_open(const char *tool, const char *path) {
    ggl_gguf *f;
    ggl_error err = {0};
    if (tool_load_file(&f, path, NULL, false, &err) != GGL_OK)
        tool_error(tool, 1, "%s", err.msg);
    return f;
}

ggl_gguf *gguf_open_file(const char *tool, const char *path) {
    const tool_path p = {.path = path};
    if (strncmp(path, "builtin:", 8) == 0) {
        tool_error(tool, 2, "%s: a file is expected here, not a model that is built in", path);
        return NULL;
    }
    return tool_refuse_converted(tool, &p) < 0 ? gguf_open(tool, path) : NULL;
}

int gguf_write(const char *tool, ggl_gguf_writer *w, gguf_copy_job *j, double bytes,
               const char *path) {
    ggl_error err = {0};
    j->done = 0;
    progress_begin(PROGRESS_BYTES, bytes, "writing %s", path);
    ggl_status s = ggl_gguf_writer_write(w, path, &err);
    progress_end();
    ggl_gguf_writer_free(w);
    if (s == GGL_OK)
        return 0;
    const char *left = ggl_file_exists(path) ? "is as it was" : "was not written";
    if (process_stopped)
        return tool_error(tool, process_stop_code(), "interrupted; %s %s", path, left);
    return tool_error(tool, 1, "%s; %s %s", err.msg, path, left);
}
