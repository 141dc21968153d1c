/* The options of llm-embed. */
#ifndef TOOLS_EMBED_OPTIONS_H
#define TOOLS_EMBED_OPTIONS_H

#include "common/open_options.h"

#define TOOL "llm-embed"

enum { DUMP_NONE, DUMP_PIXELS, DUMP_ROWS, DUMP_MEL };
enum { FORMAT_JSONL, FORMAT_NPY, FORMAT_TABLE };

typedef struct options {
    open_options open;
    const char *image, *audio;
    int dump; /* one of DUMP_* */
    const char *file, *prompt_name, *task, *rerank, *out;
    arg_list text, tokens, query;
    int64_t n_dims, n_top;
    int format;
    bool format_given, document, no_normalize, truncate, no_parse_special, json_lines, resume;
} options;

/* Returns -1, or an exit code. */
int embed_options_read(options *o, int argc, char **argv);
void embed_options_fini(options *o);

#endif
