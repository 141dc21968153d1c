/* The options of llm-cli for stop texts and grammars, as rows of a table for args_parse. */
#ifndef TOOLS_CLI_TEXT_OPTIONS_H
#define TOOLS_CLI_TEXT_OPTIONS_H

#include "common/args.h"
#include "common/grammar_source.h"

typedef struct stops_options {
    arg_list reverse, stop; /* -r, --stop */
} stops_options;

#define STOPS_OPTIONS(o)                                                                           \
    {"-r --reverse-prompt", ARG_LIST, &(o).reverse, .value = "TEXT",                               \
     .help = "end the text after TEXT was generated; repeatable"},                                 \
    {                                                                                              \
        "--stop", ARG_LIST, &(o).stop, .value = "TEXT",                                            \
                                       .help = "the same, but TEXT itself is not printed"          \
    }

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

/* True if a grammar or schema is given. */
bool constraint_is_given(const constraint_options *o);
/* Checks the options against each other. Returns -1, or an exit code after a message. */
int constraint_check(const char *tool, const constraint_options *o);

#endif
