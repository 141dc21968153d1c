/* Which tools are in effect: those of the request, with the changes that its messages make (blocks tool_addition and tool_removal). The model
 * is shown those of the end of the conversation. */
#include "api_anthropic.h"
#include "common/json_make.h"
#include "ggl/internal/index.h"

/* A tool that is in effect, or was. */
typedef struct known_tool {
    ggl_str name; /* the key */
    json_value tool;
    bool is_there;
} known_tool;

/* Tools while they are changed. */
typedef struct toolset {
    ask *a;
    ggl_error *err;
    known_tool *tool; /* [n] */
    size_t n, cap;
    ggl_index names; /* of two tools of a name it has the first one: an error that is found later */
    bool has_changed;
} toolset;

static ggl_status no_memory(const toolset *s) {
    return ggl_fail(s->err, GGL_NOMEM, "out of memory for tools");
}

static ggl_status add(toolset *s, const json_value *tool) {
    const json_value *name = llm_json_get_kind(tool, "name", JSON_STRING);
    if (!ggl_grow(&s->tool, &s->cap, s->n + 1, sizeof *s->tool) ||
        ggl_index_reserve(&s->names, s->tool, s->n + 1, NULL) != GGL_OK)
        return no_memory(s);
    s->tool[s->n] = (known_tool){name ? json_str(name) : (ggl_str){"", 0}, *tool, true};
    (void)ggl_index_put(&s->names, s->tool, s->n++);
    return GGL_OK;
}

/* Puts a tool into effect, in place of one of its name. It is shown, also if it was to be found first. */
static ggl_status put(toolset *s, size_t i, const json_value *tool) {
    json_value shown = *tool;
    if (llm_json_get(tool, "defer_loading") &&
        !llm_json_make_with(&shown, &s->a->arena, tool, "defer_loading", llm_json_of_bool(false)))
        return no_memory(s);
    s->has_changed = true;
    if (i == SIZE_MAX)
        return add(s, &shown);
    s->tool[i].tool = shown;
    s->tool[i].is_there = true;
    return GGL_OK;
}

/* What a change is about: a tool's definition, or the name of one. */
static ggl_status read_change(const toolset *s, const json_value *block, const json_value **name,
                              const json_value **definition) {
    const json_value *tool = llm_json_get_kind(block, "tool", JSON_OBJECT);
    *definition = llm_json_has(tool, "type", "tool_definition")
                      ? llm_json_get_kind(tool, "definition", JSON_OBJECT)
                      : NULL;
    *name = llm_json_get_kind(*definition ? *definition : tool, "name", JSON_STRING);
    if (llm_json_has(tool, "type", "mcp_tool_reference") ||
        llm_json_has(tool, "type", "mcp_toolset_reference"))
        return ggl_fail(s->err, GGL_UNSUPPORTED,
                        "this server asks no MCP servers: give their tools in \"tools\", and carry "
                        "out the calls");
    if (*definition || (*name && llm_json_has(tool, "type", "tool_reference")))
        return GGL_OK;
    return ggl_fail(s->err, GGL_USAGE,
                    "\"tool\" must be {\"type\": \"tool_reference\", \"name\": ..}, or "
                    "{\"type\": \"tool_definition\", \"definition\": {..}}");
}

/* Applies a block, if it is a change. */
static ggl_status change(toolset *s, const json_value *block) {
    const json_value *name, *definition;
    const bool adds = llm_json_has(block, "type", "tool_addition");
    if (!adds && !llm_json_has(block, "type", "tool_removal"))
        return GGL_OK;
    const ggl_status st = read_change(s, block, &name, &definition);
    if (st != GGL_OK)
        return ggl_within(s->err, st, adds ? "tool_addition" : "tool_removal");
    const size_t i = name ? ggl_index_find(&s->names, s->tool, json_str(name)) : SIZE_MAX;
    if (definition)
        return put(s, i, definition);
    if (i == SIZE_MAX)
        return ggl_fail(s->err, GGL_USAGE, "%s: there is no tool \"%.*s\"",
                        adds ? "tool_addition" : "tool_removal", (int)(name->n < 80 ? name->n : 80),
                        name->s);
    if (adds)
        return put(s, i, &s->tool[i].tool);
    s->has_changed = s->has_changed || s->tool[i].is_there;
    s->tool[i].is_there = false;
    return GGL_OK;
}

static ggl_status change_by(toolset *s, const json_value *content) {
    ggl_status st = GGL_OK;
    for (size_t i = 0; content && i < content->n && st == GGL_OK; i++) {
        const json_value *block = &content->item[i];
        if (llm_json_has(block, "type", "compaction"))
            st = change_by(s, llm_json_get_kind(block, "tool_changes", JSON_ARRAY));
        else
            st = change(s, block);
    }
    return st;
}

/* Lists the tools that are in effect. */
static ggl_status make_list(const toolset *s, const json_value **tools) {
    json_value *list = ggl_arena_alloc(&s->a->arena, 1, sizeof *list),
               *item = ggl_arena_alloc(&s->a->arena, s->n + 1, sizeof *item);
    uint32_t n = 0;
    if (!list || !item)
        return no_memory(s);
    for (size_t i = 0; i < s->n; i++)
        if (s->tool[i].is_there)
            item[n++] = s->tool[i].tool;
    *list = (json_value){.kind = JSON_ARRAY, .n = n, .item = item};
    *tools = list;
    return GGL_OK;
}

ggl_status anthropic_tools_in_effect(ask *a, const json_value **tools, ggl_error *err) {
    const json_value *declared = llm_json_get_kind(&a->doc->root, "tools", JSON_ARRAY),
                     *messages = llm_json_get_kind(&a->doc->root, "messages", JSON_ARRAY);
    toolset s = {.a = a, .err = err};
    *tools = llm_json_get(&a->doc->root, "tools");
    ggl_status st = ggl_index_init(&s.names, declared ? declared->n : 0, sizeof *s.tool,
                                   GGL_INDEX_STRINGS, err);
    for (size_t i = 0; declared && i < declared->n && st == GGL_OK; i++)
        st = add(&s, &declared->item[i]);
    for (size_t i = 0; messages && i < messages->n && st == GGL_OK; i++) {
        st = change_by(&s, llm_json_get_kind(&messages->item[i], "content", JSON_ARRAY));
        if (st != GGL_OK)
            (void)ggl_within(err, st, "messages[%zu]", /* the request counts its own */
                             i < a->n_recalled ? i : i - a->n_recalled);
    }
    if (st == GGL_OK && s.has_changed)
        st = make_list(&s, tools);
    ggl_index_fini(&s.names);
    ggl_free(s.tool);
    return st;
}
