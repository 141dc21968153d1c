/* The formats of JSON Schema as patterns. */
#ifndef LLM_GRAMMAR_SCHEMA_FORMATS_H
#define LLM_GRAMMAR_SCHEMA_FORMATS_H

#include "ggl/str.h"

enum { SCHEMA_FORMAT_PATTERNS = 5 };

typedef struct schema_format {
    const char *name;
    const char *pattern[SCHEMA_FORMAT_PATTERNS]; /* all must match; none: refused */
} schema_format;

/* NULL: not a format of the standard. */
const schema_format *llm_schema_format(ggl_str name);

#endif
