/* Constrained output in llm-cli: --grammar, --json, --json-schema. */
#ifndef TOOLS_CLI_CONSTRAINT_H
#define TOOLS_CLI_CONSTRAINT_H

#include "common/args.h"
#include "common/grammar_source.h"
#include "llm/internal/generate.h"

typedef grammar_source constraint_options;

/* clang-format off */
#define CONSTRAINT_OPTIONS(o)                                                                      \
    {NULL, .help = "constrained output"},                                                          \
    {"--json", ARG_FLAG, &(o).json, .help = "generate one JSON value"},                            \
    {"-j --json-schema", ARG_STRING, &(o).schema, .value = "SCHEMA",                               \
     .help = "generate JSON that fits a schema: a file, or the schema itself"},                    \
    {"-jf --json-schema-file", ARG_STRING, &(o).schema_file, .value = "FILE",                      \
     .help = "the same from a file"},                                                              \
    {"--grammar", ARG_STRING, &(o).grammar, .value = "GRAMMAR",                                    \
     .help = "generate text of a GBNF grammar: a file, or the grammar itself"},                    \
    {"--grammar-file", ARG_STRING, &(o).grammar_file, .value = "FILE", .help = "the same from a file"}
/* clang-format on */

/* Checks the options against each other. Returns -1, or an exit code after a message. */
int constraint_check(const char *tool, const constraint_options *o);

typedef struct constraint constraint;

/* Reads the grammar; *out is NULL without a grammar. A grammar without a tokenizer (NULL) is an
 * error. Returns -1, or an exit code after a message. */
int constraint_open(constraint **out, const char *tool, const constraint_options *o,
                    const llm_tokenizer *tokenizer);
void constraint_close(constraint *c); /* NULL is fine; before it, free the generator */
/* Before a text of at most n_max tokens (-1: any number): the generator draws by the grammar from now on.
 * c NULL: nothing happens. */
GGL_NODISCARD ggl_status constraint_begin(constraint *c, llm_generator *g, int64_t n_max,
                                          ggl_error *err);
/* True if the text is complete by the grammar, or if there is no grammar. */
bool constraint_is_met(const constraint *c);

#endif
