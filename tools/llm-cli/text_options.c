#include "text_options.h"

bool constraint_is_given(const constraint_options *o) {
    return o->json || o->schema || o->schema_file || o->grammar || o->grammar_file;
}

int constraint_check(const char *tool, const constraint_options *o) {
    const int n = o->json + (o->schema != NULL) + (o->schema_file != NULL) + (o->grammar != NULL) +
                  (o->grammar_file != NULL);
    if (n > 1)
        return tool_error(tool, 2,
                          "--json, --json-schema, --json-schema-file, --grammar and --grammar-file "
                          "cannot be used together");
    return -1;
}
