/* The options of llm-imatrix. */
#ifndef TOOLS_IMATRIX_OPTIONS_H
#define TOOLS_IMATRIX_OPTIONS_H

#include "common/open_options.h"

#define TOOL "llm-imatrix"

typedef struct options {
    open_options open;
    const char *text, *out, *plot;
    arg_list in; /* as given; may have lists with commas */
    char **file; /* [n_files]: the files that they name */
    size_t n_files;
    int64_t n_ctx, n_chunk, first_chunk, write_every, keep_every, n_sketch;
    bool ctx_given, chunks_given, sketch_given, out_given, output, no_ppl, statistics,
        parse_special;
} options;

/* Returns -1, or an exit code. */
int options_read(options *o, int argc, char **argv);
void options_fini(options *o);

#endif
