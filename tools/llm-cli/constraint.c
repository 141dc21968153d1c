#include "constraint.h"

#include "ggl/alloc.h"

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
                          "cannot be used together");
    return -1;
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
    int code = grammar_read(&c->grammar, tool, o, true);
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
