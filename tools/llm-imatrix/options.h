/* The options of llm-imatrix. */
#ifndef TOOLS_IMATRIX_OPTIONS_H
#define TOOLS_IMATRIX_OPTIONS_H

#include "common/adapters.h"
#include "common/args.h"
#include "common/hub_options.h"
#include "common/ignore.h"
#include "common/override_options.h"
#include "common/placement_options.h"

#define TOOL "llm-imatrix"

enum { FORMAT_GGUF, FORMAT_DAT };

typedef struct options {
    tool_ignore ignore;
    tool_overrides overrides;
    tool_adapters adapters;
    hub_options hub;
    const char *model, *text, *arch, *mask, *out, *plot;
    arg_list in; /* as given; may have lists with commas */
    char **file; /* [n_files]: the files that they name */
    size_t n_files;
    placement_options placement;
    int64_t n_ctx, n_chunk, first_chunk, n_batch, n_ubatch, n_threads, write_every, keep_every,
        n_sketch;
    int type_k, type_v, format;
    bool types_given;
    bool no_mmap, f16_as_bf16, ctx_given, chunks_given, sketch_given, out_given, output, no_ppl,
        statistics, parse_special;
} options;

/* Returns -1, or an exit code. */
int options_read(options *o, int argc, char **argv);
void options_fini(options *o);

#endif
