/* Reads schemas: the compiler from end to end, and properties as arguments. */
#include "schema_impl.h"

#include <string.h>

#include "ggl/internal/text.h"

/* --- the whole -------------------------------------------------------------------------------- */

/* White space between tokens: nothing, one space, or a line break with indentation. */
static int32_t make_space(llm_exprs *g) {
    enum { MOST_INDENT = 64 };
    const llm_char_range blank[] = {{' ', ' '}, {'\t', '\t'}};
    const int32_t newline = llm_expr_seq2(g, llm_expr_optional(g, llm_expr_range(g, '\r', '\r')),
                                          llm_expr_range(g, '\n', '\n'));
    const int32_t indent = llm_expr_repeat(g, llm_expr_class(g, blank, 2, false), 0, MOST_INDENT);
    return llm_expr_optional(
        g, llm_expr_alt2(g, llm_expr_range(g, ' ', ' '), llm_expr_seq2(g, newline, indent)));
}

static void begin(schema *s) {
    llm_exprs *g = s->g;
    s->always = (json_value){.kind = JSON_BOOL, .flag = true};
    s->never = (json_value){.kind = JSON_BOOL};
    const bool compact = s->params.compact;
    const int32_t after =
        compact ? llm_expr_optional(g, llm_expr_range(g, ' ', ' ')) : make_space(g);
    s->space = compact ? LLM_EXPR_EMPTY : after;
    s->comma = llm_expr_seq3(g, s->space, llm_expr_range(g, ',', ','), after);
    s->colon = llm_expr_seq3(g, s->space, llm_expr_range(g, ':', ':'), after);
    s->universe[TYPE_NULL] = llm_expr_text(g, (ggl_str){"null", 4});
    s->universe[TYPE_BOOL] = llm_expr_alt2(g, llm_expr_text(g, (ggl_str){"true", 4}),
                                           llm_expr_text(g, (ggl_str){"false", 5}));
    llm_schema_begin_numbers(s);
    llm_schema_begin_strings(s);
}

static int draft_of(const json_value *root) {
    static const struct {
        const char *mark;
        int draft;
    } row[] = {
        {"draft-03", 4}, {"draft-04", 4}, {"draft-06", 6}, {"draft-07", 7}, {"2019-09", 2019}};
    const json_value *v = llm_json_get_kind(root, "$schema", JSON_STRING);
    for (size_t i = 0; v && i < sizeof row / sizeof *row; i++)
        if (ggl_find_bytes(v->s, v->n, row[i].mark, strlen(row[i].mark)))
            return row[i].draft;
    return 2020;
}

static void fini(schema *s) {
    llm_budget_give_back(&s->g->use, s->arena.used, 1);
    ggl_free(s->encoded);
    ggl_free(s->resource);
    ggl_free(s->anchor);
    ggl_free(s->bucket);
    ggl_free(s->queue);
    ggl_arena_fini(&s->arena);
    llm_json_free(s->doc);
}

/* Sets the status to what the pool has, if it failed. */
static void settle(schema *s) {
    if (s->status == GGL_OK && s->g->use.is_exceeded) {
        s->status = llm_budget_fail(&s->g->use, "the schema", s->err);
        (void)ggl_within(s->err, s->status, "%s", s->name);
    }
    if (s->status == GGL_OK && s->g->status != GGL_OK)
        s->status = ggl_fail(s->err, s->g->status, "%s: the grammar becomes too large", s->name);
}

/* Reads the document and compiles it, as far as it goes, into *root and rules of s->g. */
static void compile(schema *s, const char *text, size_t n, int32_t *root) {
    *root = LLM_EXPR_NONE;
    s->status = llm_json_parse(&s->doc, text, n, s->name, s->err);
    if (s->status != GGL_OK)
        return;
    s->bucket = ggl_calloc(SCHEMA_BUCKETS, sizeof *s->bucket);
    s->draft = draft_of(&s->doc->root);
    if (!s->bucket)
        llm_schema_fail(s, GGL_NOMEM, NULL, NULL, "out of memory");
    begin(s);
    if (s->status == GGL_OK && llm_schema_index(s)) {
        *root = llm_schema_values(s, &(literal){.node = &s->doc->root}, 1);
        llm_schema_build_rules(s);
    }
    settle(s);
}

ggl_status llm_schema_read(int32_t *out, llm_exprs *g, const char *text, size_t n, const char *name,
                           const llm_schema_params *params, ggl_error *err) {
    schema s = {.g = g, .name = name, .params = *params, .err = err};
    compile(&s, text, n, out);
    fini(&s);
    return s.status;
}

/* --- properties as arguments ------------------------------------------------------------------- */

static bool same_name(ggl_str a, ggl_str b) {
    return a.n == b.n && (a.n == 0 || memcmp(a.s, b.s, a.n) == 0);
}

static bool is_in_list(schema *s, const json_value *list, ggl_str name) {
    llm_exprs_count(s->g, 1 + (list ? list->n / 16 : 0));
    for (uint32_t i = 0; list && i < list->n; i++)
        if (list->item[i].kind == JSON_STRING && same_name(json_str(&list->item[i]), name))
            return true;
    return false;
}

static bool is_in_table(schema *s, const json_value *table, ggl_str name) {
    llm_exprs_count(s->g, 1 + (table ? table->n / 16 : 0));
    for (uint32_t i = 0; table && i < table->n; i++)
        if (same_name(json_name(table, i), name))
            return true;
    return false;
}

/* Finds the schema with the properties: the root, or what its "$ref" leads to. NULL: the status is set. */
static const json_value *find_properties(schema *s) {
    enum { MOST_REFS = 8 };
    static const char *const others[] = {"$dynamicRef",
                                         "$recursiveRef",
                                         "allOf",
                                         "anyOf",
                                         "oneOf",
                                         "not",
                                         "if",
                                         "enum",
                                         "const",
                                         "dependentSchemas",
                                         "dependencies",
                                         "dependentRequired",
                                         "minProperties",
                                         "maxProperties",
                                         "propertyNames",
                                         "patternProperties"};
    const json_value *node = &s->doc->root, *ref;
    for (int i = 0; i < MOST_REFS && (ref = llm_json_get_kind(node, "$ref", JSON_STRING)); i++) {
        if (llm_json_get(node, "properties"))
            break;
        node = llm_schema_target(s, node, json_str(ref));
        if (!node)
            return NULL;
    }
    const json_value *type = llm_json_get(node, "type");
    const char *word = llm_json_get(node, "$ref") ? "$ref" : NULL;
    if (type && !llm_json_is(type, "object") &&
        !(type->kind == JSON_ARRAY && is_in_list(s, type, (ggl_str){"object", 6})))
        word = "type";
    for (size_t i = 0; i < sizeof others / sizeof *others && !word; i++)
        word = llm_json_get(node, others[i]) ? others[i] : NULL;
    if (word)
        llm_schema_fail(s, GGL_UNSUPPORTED, node, word,
                        "arguments that are not written as JSON must be described by 'properties' "
                        "and 'required' alone");
    return word ? NULL : node;
}

static void read_argument(schema *s, const json_value *node, llm_schema_argument *a) {
    static const json_value types[] = {{.kind = JSON_STRING, .n = 5, .s = "array"},
                                       {.kind = JSON_STRING, .n = 6, .s = "object"}};
    static const json_value members[] = {{.kind = JSON_ARRAY, .n = 2, .item = types},
                                         {.kind = JSON_STRING, .n = 4, .s = "type"}};
    static const json_value shape = {.kind = JSON_OBJECT, .n = 1, .item = members};
    const literal lit[] = {{.node = node}, {.node = &shape}};
    a->text = llm_schema_scalars(s, lit[0], TYPE_STRING);
    a->quoted = llm_schema_string(s, a->text);
    a->scalars = LLM_EXPR_NONE;
    for (schema_type t = 0; t < TYPE_STRING; t++)
        a->scalars = llm_expr_alt2(s->g, a->scalars, llm_schema_scalars(s, lit[0], t));
    a->shapes = llm_schema_values(s, lit, 2);
}

static void read_arguments(schema *s, llm_schema_argument **out, size_t *n) {
    const json_value *node = find_properties(s);
    const json_value *required = llm_json_get_kind(node, "required", JSON_ARRAY),
                     *table = node ? llm_schema_table(s, node, "properties") : NULL;
    size_t n_bytes = 0;
    for (uint32_t i = 0;
         required && i < required->n && s->g->status == GGL_OK && s->status == GGL_OK; i++) {
        const json_value *name = &required->item[i];
        if (name->kind == JSON_STRING && !is_in_table(s, table, json_str(name)))
            llm_schema_fail(s, GGL_UNSUPPORTED, node, "required",
                            "'%.*s' is not one of the 'properties'",
                            (int)(name->n < 100 ? name->n : 100), name->s);
    }
    for (uint32_t i = 0; table && i < table->n; i++)
        n_bytes += json_name(table, i).n;
    if (!table || s->status != GGL_OK)
        return;
    llm_schema_argument *a = ggl_calloc(table->n * sizeof *a + n_bytes + 1, 1);
    if (!a) {
        llm_schema_fail(s, GGL_NOMEM, NULL, NULL, "out of memory");
        return;
    }
    char *at = (char *)(a + table->n);
    for (uint32_t i = 0; i < table->n && s->g->status == GGL_OK && s->status == GGL_OK; i++) {
        const ggl_str name = json_name(table, i);
        if (name.n > 0)
            memcpy(at, name.s, name.n);
        a[i].name = (ggl_str){at, name.n};
        at += name.n;
        a[i].required = is_in_list(s, required, name);
        read_argument(s, &table->item[i], &a[i]);
    }
    llm_schema_build_rules(s);
    *out = a;
    *n = table->n;
}

ggl_status llm_schema_read_arguments(llm_schema_argument **argument, size_t *n_arguments,
                                     llm_exprs *g, const char *text, size_t n, const char *name,
                                     ggl_error *err) {
    int32_t root;
    schema s = {.g = g,
                .name = name,
                .params = {.size = sizeof s.params, .compact = true},
                .hides_less = true,
                .err = err};
    *argument = NULL;
    *n_arguments = 0;
    compile(&s, text, n, &root);
    if (s.status == GGL_OK) {
        read_arguments(&s, argument, n_arguments);
        settle(&s);
    }
    fini(&s);
    if (s.status != GGL_OK) {
        ggl_free(*argument);
        *argument = NULL;
        *n_arguments = 0;
    }
    return s.status;
}

void llm_schema_explain(const char *text, size_t n, const char *name, const llm_budget *use,
                        ggl_error *err) {
    llm_exprs g = {.use = *use};
    schema s = {.g = &g, .name = name};
    int32_t root;
    compile(&s, text, n, &root);
    if (s.status == GGL_OK)
        llm_schema_blame_empty(&s, err);
    fini(&s);
    llm_exprs_fini(&g);
}

int32_t llm_schema_any(llm_exprs *g) {
    int32_t e = LLM_EXPR_NONE;
    const llm_schema_params usual = {.size = sizeof usual};
    if (llm_schema_read(&e, g, "true", 4, "JSON", &usual, NULL) != GGL_OK && g->status == GGL_OK)
        g->status = GGL_NOMEM;
    return e;
}
