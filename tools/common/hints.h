/* For each tool: flags of llama.cpp's tool of that purpose that it does not have, with the answer to each. cli_hints and server_hints
 * also have flags and commands of ollama, and names that are usual for Hugging Face's models. */
#ifndef TOOLS_HINTS_H
#define TOOLS_HINTS_H

#include "args.h"

extern const arg_hints cli_hints, bench_hints, embed_hints, gguf_hints, imatrix_hints, lora_hints,
    perplexity_hints, quantize_hints, server_hints, tokenize_hints, train_hints, transcribe_hints,
    convert_hints;

#endif
