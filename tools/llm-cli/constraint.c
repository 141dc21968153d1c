#include "constraint.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/input.h"
#include "ggl/alloc.h"

enum { MOST_GRAMMAR = 16 << 20 }; /* bytes of a file */

struct constraint {
    llm_grammar *grammar;
    llm_vocab *vocab;
    llm_matcher *matcher;
};

int constraint_check(const char *tool, const constraint_options *o) {
    const int n = o->json + (o->schema != NULL) + (o->schema_file != NULL) + (o->grammar != NULL) +
                  (o->grammar_file != NULL);
    if (n > 1)
        return tool_error(tool, 2,
                          "--json, --json-schema, --json-schema-file, --grammar and --grammar-file "
                          "exclude each other");
    return -1;
}

/* Where a grammar or a schema is. */
typedef struct source {
    const char *file, *text; /* one of them */
    const char *flag;
    bool is_schema;
} source;

/* A value of --grammar or --json-schema is the text itself if it looks like one, else a file. */
static source find_source(const constraint_options *o) {
    if (o->grammar_file)
        return (source){.file = o->grammar_file, .flag = "--grammar-file"};
    if (o->schema_file)
        return (source){.file = o->schema_file, .flag = "--json-schema-file", .is_schema = true};
    if (o->schema) {
        const char *first = o->schema + strspn(o->schema, " \t\r\n");
        const bool is_text = *first == '{' || strcmp(first, "true") == 0;
        return (source){is_text ? NULL : o->schema, o->schema, "--json-schema", true};
    }
    const bool is_text = strstr(o->grammar, "::=") != NULL;
    return (source){is_text ? NULL : o->grammar, o->grammar, "--grammar", false};
}

static int read_grammar(llm_grammar **out, const char *tool, const constraint_options *o) {
    ggl_error err = {0};
    if (o->json)
        return llm_grammar_json(out, &err) == GGL_OK ? -1 : tool_error(tool, 1, "%s", err.msg);
    const source s = find_source(o);
    char *read = NULL;
    size_t n = s.file ? 0 : strlen(s.text);
    if (s.file) {
        read = tool_read_at_most(tool, s.file, MOST_GRAMMAR, &n);
        if (!read)
            return 1;
    }
    const char *text = read ? read : s.text, *name = s.file ? s.file : s.flag;
    const ggl_status st = s.is_schema ? llm_grammar_from_schema(out, text, n, name, &err)
                                      : llm_grammar_from_gbnf(out, text, n, name, &err);
    free(read);
    return st == GGL_OK ? -1 : tool_error(tool, 2, "%s", err.msg);
}

int constraint_open(constraint **out, const char *tool, const constraint_options *o,
                    const llm_tokenizer *tokenizer) {
    ggl_error err = {0};
    *out = NULL;
    if (!o->json && !o->schema && !o->schema_file && !o->grammar && !o->grammar_file)
        return -1;
    if (!tokenizer)
        return tool_error(tool, 1,
                          "a grammar is about text, but this model's file has no tokenizer that "
                          "could write it");
    constraint *c = ggl_calloc(1, sizeof *c);
    if (!c)
        return tool_error(tool, 1, "out of memory");
    int code = read_grammar(&c->grammar, tool, o);
    if (code < 0 && (llm_vocab_new(&c->vocab, tokenizer, &err) != GGL_OK ||
                     llm_matcher_new(&c->matcher, c->grammar, c->vocab, &err) != GGL_OK))
        code = tool_error(tool, 1, "%s", err.msg);
    if (code >= 0)
        constraint_close(c);
    else
        *out = c;
    return code;
}

void constraint_close(constraint *c) {
    if (!c)
        return;
    llm_matcher_free(c->matcher);
    llm_vocab_free(c->vocab);
    llm_grammar_free(c->grammar);
    ggl_free(c);
}

ggl_status constraint_begin(constraint *c, llm_generator *g, int64_t n_max, ggl_error *err) {
    if (!c)
        return GGL_OK;
    llm_matcher_reset(c->matcher);
    return llm_generator_constrain(g, c->matcher, n_max, err);
}

bool constraint_is_met(const constraint *c) {
    return !c || llm_matcher_is_complete(c->matcher);
}
