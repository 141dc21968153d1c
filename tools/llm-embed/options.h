/* The options of llm-embed. */
#ifndef TOOLS_EMBED_OPTIONS_H
#define TOOLS_EMBED_OPTIONS_H

#include "common/eye_options.h"
#include "common/run_options.h"

#define TOOL "llm-embed"

enum { DUMP_NONE, DUMP_PIXELS, DUMP_ROWS, DUMP_MEL };
enum { FORMAT_JSONL, FORMAT_NPY, FORMAT_TABLE };

typedef struct options {
    run_options run;
    const char *mmproj, *image, *audio;
    int64_t image_min_tokens, image_max_tokens;
    int dump; /* one of DUMP_* */
    const char *file, *prompt_name, *task, *rerank, *out;
    arg_list text, tokens, query;
    int64_t n_ctx, n_dims, n_top;
    int format, pooling;
    bool format_given, pooling_given, document, no_normalize, truncate, resume;
} options;

/* Returns -1, or an exit code. */
int embed_options_read(options *o, int argc, char **argv);
/* The name of --pooling; NULL: as the file says. */
const char *embed_options_pooling(const options *o);
void embed_options_fini(options *o);

#endif
