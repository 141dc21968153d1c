/* Where results go: lines of JSON, a NumPy array, tables to read, rankings. */
#ifndef TOOLS_EMBED_OUTPUT_H
#define TOOLS_EMBED_OUTPUT_H

#include "batch.h"
#include "ggl/internal/file.h"
#include "labels.h"

typedef struct output output;
struct output {
    /* Takes the next result. GGL_CANCELLED: the reader of standard output has gone. */
    ggl_status (*take)(output *o, const result *r, ggl_error *err);
    /* Called after each batch: what was taken is to be visible. NULL: nothing to do. */
    ggl_status (*flush)(output *o, ggl_error *err);
    /* All results were taken. */
    ggl_status (*end)(output *o, ggl_error *err);
    /* Without `end` before it: leaves nothing, or with --resume what was taken. */
    void (*close)(output *o);
};

/* What a run makes. */
typedef struct output_params {
    const options *o;
    const labels *labels;
    bool scores; /* the rows are a model's scores, not vectors */
    bool lists;  /* a text has a vector for each token */
} output_params;

/* Each makes an output, which is freed by its `close`. */
ggl_status output_json(output **out, const output_params *p, ggl_error *err);
ggl_status output_table(output **out, const output_params *p, ggl_error *err);
/* A row has the similarity to each query, or a reranker's scores, of which the first counts. */
ggl_status output_ranking(output **out, const output_params *p, ggl_error *err);
ggl_status output_npy(output **out, const output_params *p, ggl_error *err);

/* With --resume: how many rows the file of output_npy has, and whether line `at`, one of them, is to be computed again, to be
 * compared with its row. Other outputs: 0. */
size_t output_npy_has(const output *o);
bool output_npy_wants(const output *o, size_t at);

/* --- text, for these -------------------------------------------------------------------------- */

typedef struct text_out {
    FILE *f;
    ggl_new_file *file; /* NULL: standard output */
} text_out;

/* path NULL: standard output. */
ggl_status text_open(text_out *t, const char *path, ggl_error *err);
/* GGL_CANCELLED: standard output takes no more; GGL_IO: the file does not. */
ggl_status text_check(text_out *t, ggl_error *err);
ggl_status text_close(text_out *t, ggl_error *err);
void text_abort(text_out *t);
/* Prints a text in at most `columns` columns: one that is longer ends with "…". Control characters become spaces. Returns how many
 * columns are left. */
int text_cell(const text_out *t, const char *s, size_t n, int columns);

#endif
