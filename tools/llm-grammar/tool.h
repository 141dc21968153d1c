/* llm-grammar, between its files. */
#ifndef TOOLS_GRAMMAR_TOOL_H
#define TOOLS_GRAMMAR_TOOL_H

#include "common/args.h"
#include "llm/internal/grammar.h"

#define GRAMMAR_TOOL "llm-grammar"

enum { GRAMMAR_MOST_TEXT = 256 << 20 }; /* bytes */

/* llm-grammar --bench: judges the instances of the schemas in the files and folders, and times what
 * that takes. `model`: a GGUF file with the vocabulary for masks, NULL: no masks. Returns the tool's
 * exit code: 1 if an instance is misjudged. */
int grammar_bench(const arg_list *paths, const char *model, bool verbose);

#endif
