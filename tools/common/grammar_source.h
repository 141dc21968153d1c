/* --grammar, --json-schema and --json: where the tools read a grammar from.
 *
 *     grammar_source s = {.schema = "person.json"};
 *     llm_grammar *g;
 *     int code = grammar_read(&g, TOOL, &s, false);
 *     if (code >= 0)
 *         return code; */
#ifndef TOOLS_GRAMMAR_SOURCE_H
#define TOOLS_GRAMMAR_SOURCE_H

#include <stdbool.h>

#include "llm/internal/grammar.h"

/* At most one of them is given. */
typedef struct grammar_source {
    const char *grammar, *schema;           /* the text itself, a file, or "-" for stdin */
    const char *grammar_file, *schema_file; /* a file, or "-" */
    bool json;                              /* any JSON value */
} grammar_source;

/* Makes the grammar. A value of `grammar` is the grammar itself if it contains "::="; a value of
 * `schema` is the schema itself if it begins with '{', or is true or false. compact: JSON has little
 * white space (llm_schema_params). Names in a schema that have no effect are noted on stderr.
 * Returns -1, or an exit code after an error message: 1: a file cannot be read, or memory is short;
 * 2: the grammar or schema is refused. */
int grammar_read(llm_grammar **out, const char *tool, const grammar_source *s, bool compact);

#endif
