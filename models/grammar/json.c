/* JSON schemas as grammars. */
#include "ggl/internal/params.h"
#include "grammar.h"
#include "schema.h"
#include "thoughts.h"

ggl_status llm_grammar_from_schema(llm_grammar **out, const char *text, size_t n, const char *name,
                                   ggl_error *err) {
    return llm_grammar_from_schema_with(out, text, n, name, NULL, err);
}

ggl_status llm_grammar_from_schema_with(llm_grammar **out, const char *text, size_t n,
                                        const char *name, const llm_schema_params *params,
                                        ggl_error *err) {
    llm_schema_params own = {.size = sizeof own};
    *out = NULL;
    const ggl_status is_read = GGL_READ_PARAMS(llm_schema_params, &own, params, err);
    if (is_read != GGL_OK)
        return is_read;
    llm_exprs g = {.use = llm_grammar_budget(own.max_steps, own.max_bytes)};
    int32_t root = LLM_EXPR_NONE;
    const ggl_status st = llm_schema_read(&root, &g, text, n, name, &own, err);
    if (st == GGL_OK)
        root = llm_expr_after_thoughts(&g, own.thought, own.n_thoughts, root);
    ggl_status made = st == GGL_OK ? llm_grammar_compile(out, &g, root, err) : st;
    if (st == GGL_OK && made != GGL_OK)
        made = ggl_within(err, made, "%s", name);
    const llm_budget left = {
        .steps = g.use.steps, .max_steps = g.use.max_steps, .max_bytes = g.use.max_bytes};
    llm_exprs_fini(&g);
    if (st == GGL_OK && made == GGL_FORMAT)
        llm_schema_explain(text, n, name, &left, err);
    return made;
}
