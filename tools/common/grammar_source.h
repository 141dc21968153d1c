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
#include <stddef.h>

#include "llm/internal/grammar.h"

/* At most one of them is given. */
typedef struct grammar_source {
    const char *grammar, *schema;           /* the text itself, a file, or "-" for stdin */
    const char *grammar_file, *schema_file; /* a file, or "-" */
    bool json;                              /* any JSON value */
} grammar_source;

/* The text that a source names. */
typedef struct grammar_text {
    const char *text;
    const char *name; /* for messages */
    bool is_schema;
    char *read; /* `text`, if it was read from a file; freed by free */
} grammar_text;
/* Returns -1, or an exit code after an error message: the file cannot be read. */
int grammar_find(grammar_text *out, const char *tool, const grammar_source *s);

/* Notes of what is made of a schema: the first few are printed, the others counted. */
typedef struct grammar_notes {
    const char *tool;
    size_t n;
} grammar_notes;
void grammar_note(void *notes, const char *text);
void grammar_notes_end(const grammar_notes *n); /* prints how many more there are */

/* Makes the grammar. A value of `grammar` is the grammar itself if it contains "::="; a value of
 * `schema` is the schema itself if it begins with '{', or is true or false. compact: JSON has little
 * white space (llm_schema_params). Names in a schema that have no effect are noted on stderr.
 * Returns -1, or an exit code after an error message: 1: a file cannot be read, or memory is short;
 * 2: the grammar or schema is refused. */
int grammar_read(llm_grammar **out, const char *tool, const grammar_source *s, bool compact);

#endif
