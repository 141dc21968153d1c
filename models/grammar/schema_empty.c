/* Which part of a schema is at fault if no value is valid under it. Runs only for the message, so that
 * it may compile parts again. */
#include "schema_impl.h"
#include "translate.h"

enum { MOST_STEPS = 32 };

typedef struct path {
    const json_value
        *node[MOST_STEPS]; /* from the root on, each the reason for the one before it */
    size_t n;
} path;

/* True if it is certain that no value is valid under the schema. */
static bool is_empty(schema *s, const json_value *node) {
    const llm_budget *use = &s->g->use;
    llm_bx_pool pool = {.use = {.max_steps = use->max_steps, .max_bytes = use->max_bytes}};
    int32_t start = LLM_BX_NONE;
    const int32_t e = llm_schema_values(s, &(literal){.node = node}, 1);
    llm_schema_build_rules(s);
    if (s->status != GGL_OK || s->g->status != GGL_OK)
        return false;
    pool.use.steps = use->steps;
    const bool translated = llm_translate(&pool, s->g, e, NULL, &start, NULL) == GGL_OK;
    s->g->use.steps = pool.use.steps;
    llm_bx_pool_fini(&pool);
    return translated && start == LLM_BX_NONE;
}

/* Adds the schema to the path if it is empty, and was not there before. */
static bool blame(schema *s, path *p, const json_value *node) {
    for (size_t i = 0; i < p->n; i++)
        if (p->node[i] == node)
            return false;
    if (!node || p->n == MOST_STEPS || !is_empty(s, node))
        return false;
    p->node[p->n++] = node;
    return true;
}

static const json_value *find(const json_value *object, ggl_str name) {
    for (uint32_t i = 0; object && i < object->n; i++)
        if (json_name(object, i).n == name.n && memcmp(json_name(object, i).s, name.s, name.n) == 0)
            return &object->item[i];
    return NULL;
}

/* Objects: a property that must be there. */
static bool blame_property(schema *s, path *p, const json_value *node) {
    const json_value *required = llm_json_get_kind(node, "required", JSON_ARRAY);
    const json_value *properties = llm_json_get_kind(node, "properties", JSON_OBJECT);
    for (uint32_t i = 0; required && i < required->n; i++)
        if (required->item[i].kind == JSON_STRING &&
            blame(s, p, find(properties, json_str(&required->item[i]))))
            return true;
    return false;
}

/* Arrays: an item that must be there. */
static bool blame_item(schema *s, path *p, const json_value *node) {
    const json_value *least = llm_json_get_kind(node, "minItems", JSON_NUMBER);
    const json_value *first = llm_json_get_kind(node, "prefixItems", JSON_ARRAY);
    const double n = least ? least->number : 0;
    for (uint32_t i = 0; first && i < first->n && i < n; i++)
        if (blame(s, p, &first->item[i]))
            return true;
    return n > (first ? first->n : 0) && blame(s, p, llm_json_get_kind(node, "items", JSON_OBJECT));
}

/* Goes on to a part that every value of the schema needs, and that is empty. False if none. */
static bool step(schema *s, path *p, const json_value *node) {
    const json_value *ref = llm_json_get_kind(node, "$ref", JSON_STRING);
    const json_value *all = llm_json_get_kind(node, "allOf", JSON_ARRAY);
    const json_value *type = llm_json_get_kind(node, "type", JSON_STRING);
    if (ref && blame(s, p, llm_schema_target(s, node, json_str(ref))))
        return true;
    for (uint32_t i = 0; all && i < all->n; i++)
        if (blame(s, p, &all->item[i]))
            return true;
    return type && ((ggl_str_is(json_str(type), "object") && blame_property(s, p, node)) ||
                    (ggl_str_is(json_str(type), "array") && blame_item(s, p, node)));
}

/* Returns a name that is required, but excluded by additionalProperties; NULL if none. */
static const json_value *excluded_name(const json_value *node) {
    const json_value *required = llm_json_get_kind(node, "required", JSON_ARRAY);
    const json_value *properties = llm_json_get_kind(node, "properties", JSON_OBJECT);
    const json_value *others = llm_json_get_kind(node, "additionalProperties", JSON_BOOL);
    if (!required || !others || others->flag || llm_json_get(node, "patternProperties"))
        return NULL;
    for (uint32_t i = 0; i < required->n; i++)
        if (required->item[i].kind == JSON_STRING &&
            !find(properties, json_str(&required->item[i])))
            return &required->item[i];
    return NULL;
}

void llm_schema_blame_empty(schema *s, ggl_error *err) {
    path p = {0};
    const json_value *node = &s->doc->root;
    if (!blame(s, &p, node))
        return;
    while (step(s, &p, node))
        node = p.node[p.n - 1];
    if (s->status != GGL_OK)
        return;
    s->err = err;
    const json_value *name = excluded_name(node);
    if (name)
        llm_schema_fail(s, GGL_FORMAT, node, NULL,
                        "no JSON value is valid under this schema: '%.*s' is required, but not one "
                        "of the properties, and additionalProperties is false",
                        (int)(name->n < 100 ? name->n : 100), name->s);
    else
        llm_schema_fail(s, GGL_FORMAT, node, NULL, "no JSON value is valid under this schema");
}
