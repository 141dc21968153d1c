/* The options of llm-embed. */
#ifndef TOOLS_EMBED_OPTIONS_H
#define TOOLS_EMBED_OPTIONS_H

#include "common/adapters.h"
#include "common/args.h"
#include "common/eye_options.h"
#include "common/hub_options.h"
#include "common/ignore.h"
#include "common/override_options.h"
#include "common/placement_options.h"

#define TOOL "llm-embed"

enum { DUMP_NONE, DUMP_PIXELS, DUMP_ROWS, DUMP_MEL };
enum { FORMAT_JSONL, FORMAT_NPY, FORMAT_TABLE };

typedef struct options {
    tool_ignore ignore;
    tool_overrides overrides;
    tool_adapters adapters;
    hub_options hub;
    int type; /* --type */
    const char *mmproj, *image, *audio;
    int64_t image_min_tokens, image_max_tokens;
    int dump; /* one of DUMP_* */
    const char *model, *arch, *mask, *file, *prompt_name, *task, *rerank, *out;
    arg_list text, tokens, query;
    placement_options placement;
    int64_t n_ctx, n_batch, n_ubatch, n_threads, n_dims, n_top;
    int type_k, type_v, format, pooling;
    bool no_mmap, f16_as_bf16, format_given, pooling_given, document, no_normalize, truncate,
        types_given, resume;
} options;

/* Returns -1, or an exit code. */
int embed_options_read(options *o, int argc, char **argv);
/* The name of --pooling; NULL: as the file says. */
const char *embed_options_pooling(const options *o);
void embed_options_fini(options *o);

#endif
