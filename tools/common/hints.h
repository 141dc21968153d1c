/* For each tool: flags of llama.cpp's tool of that purpose, with what to do here instead. server_hints also has flags of
 * ollama. */
#ifndef TOOLS_HINTS_H
#define TOOLS_HINTS_H

#include "args.h"

extern const arg_hint cli_hints[], bench_hints[], perplexity_hints[], quantize_hints[],
    server_hints[];

#endif
