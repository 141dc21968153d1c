/* Checks of JSON schemas: texts that fit and texts that do not, and messages of schemas that are refused. */
#ifndef SCHEMA_ROWS_H
#define SCHEMA_ROWS_H

#include "llm/internal/grammar.h"
#include "test.h"

/* The schema's grammar; NULL, and a failed check, if it is refused. */
static inline llm_grammar *compile(const char *schema) {
    ggl_error err = {0};
    llm_grammar *g;
    CHECK_OK(llm_grammar_from_schema(&g, schema, strlen(schema), "s", &err), &err);
    return g;
}

static inline bool fits(const llm_grammar *g, const char *text) {
    ggl_error err = {0};
    llm_matcher *m = NULL;
    size_t n = 0;
    bool all = false;
    if (CHECK_OK(llm_matcher_new(&m, g, NULL, &err), &err) &&
        CHECK_OK(llm_matcher_accept_bytes(m, text, strlen(text), &n, &err), &err))
        all = n == strlen(text) && llm_matcher_is_complete(m);
    llm_matcher_free(m);
    return all;
}

/* A schema with texts, valid ones up to NULL, then others up to NULL. */
typedef struct row {
    const char *schema, *texts[24];
} row;

static inline void check_texts(const llm_grammar *g, const row *r) {
    bool valid = true;
    for (size_t k = 0; g && (valid || r->texts[k]); k++) {
        const char *text = r->texts[k];
        if (text)
            CHECK_MSG(fits(g, text) == valid, "%s: '%s' should %sfit", r->schema, text,
                      valid ? "" : "not ");
        else
            valid = false;
    }
}

static inline void check_rows(const row *r, size_t n) {
    for (size_t i = 0; i < n; i++) {
        llm_grammar *g = compile(r[i].schema);
        check_texts(g, &r[i]);
        llm_grammar_free(g);
    }
}
#define CHECK_ROWS(rows) check_rows(rows, sizeof rows / sizeof *rows)

/* A schema that is refused, and a part of the message. */
typedef struct refusal {
    const char *schema;
    ggl_status status;
    const char *message;
} refusal;

static inline void check_refusals(const refusal *r, size_t n) {
    for (size_t i = 0; i < n; i++) {
        ggl_error err = {0};
        llm_grammar *g;
        const ggl_status st =
            llm_grammar_from_schema(&g, r[i].schema, strlen(r[i].schema), "s", &err);
        CHECK_MSG(st == r[i].status && strstr(err.msg, r[i].message) && !g,
                  "%s: status %d, '%s', not '%s'", r[i].schema, (int)st, err.msg, r[i].message);
        llm_grammar_free(g);
    }
}
#define CHECK_REFUSALS(rows) check_refusals(rows, sizeof rows / sizeof *rows)

#endif
