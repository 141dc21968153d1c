#include "whole_tools.h"

#include "common/json_make.h"
#include "talk_impl.h"

/* What members lack: a description of nothing, and parameters of a function that has none. */
static const struct {
    unsigned member;
    const char *name;
} rows[] = {{LLM_TOOL_DESCRIPTION, "description"}, {LLM_TOOL_PARAMETERS, "parameters"}};

static bool is_missing(const json_value *object, const char *name) {
    const json_value *v = llm_json_get(object, name);
    return !v || v->kind == JSON_NULL;
}

static bool make(json_value *out, unsigned member, ggl_arena *arena) {
    const llm_json_member m[] = {
        llm_json_member_of("type", llm_json_of_text("object")),
        llm_json_member_of("properties", (json_value){.kind = JSON_OBJECT})};
    *out = llm_json_of_text("");
    return member == LLM_TOOL_DESCRIPTION || llm_json_make_object(out, arena, m, 2);
}

/* Sets a member. */
static bool set(json_value *object, ggl_arena *arena, const char *name, json_value value) {
    const json_value copy = *object;
    return llm_json_make_with(object, arena, &copy, name, value);
}

/* Adds to a function what it lacks. Null is nothing. */
static bool complete(json_value *function, unsigned members, ggl_arena *arena, bool *is_changed) {
    bool good = true;
    json_value value;
    for (size_t k = 0; k < sizeof rows / sizeof *rows && good; k++) {
        if (!(members & rows[k].member) || !is_missing(function, rows[k].name))
            continue;
        good = make(&value, rows[k].member, arena) && set(function, arena, rows[k].name, value);
        *is_changed = true;
    }
    const json_value *parameters = llm_json_get_kind(function, "parameters", JSON_OBJECT);
    if (!good || !(members & LLM_TOOL_PROPERTIES) || !parameters ||
        !is_missing(parameters, "properties"))
        return good;
    value = *parameters;
    *is_changed = true;
    return set(&value, arena, "properties", (json_value){.kind = JSON_OBJECT}) &&
           set(function, arena, "parameters", value);
}

ggl_status llm_tools_whole(const json_value **out, const json_value *tools, unsigned members,
                           ggl_arena *arena, ggl_error *err) {
    *out = tools;
    if (members == 0 || !tools || tools->kind != JSON_ARRAY || tools->n == 0)
        return GGL_OK;
    json_value *list = ggl_arena_alloc(arena, 1, sizeof *list),
               *item = ggl_arena_alloc(arena, tools->n, sizeof *item);
    bool made = list && item, any = false;
    for (uint32_t i = 0; made && i < tools->n; i++) {
        const json_value *tool = &tools->item[i],
                         *f = llm_json_get_kind(tool, "function", JSON_OBJECT);
        json_value whole = f ? *f : *tool;
        bool is_changed = false;
        item[i] = *tool;
        if (whole.kind != JSON_OBJECT)
            continue;
        made = complete(&whole, members, arena, &is_changed);
        if (made && is_changed && f)
            made = llm_json_make_with(&item[i], arena, tool, "function", whole);
        else if (is_changed)
            item[i] = whole;
        any = any || is_changed;
    }
    if (!made)
        return llm_talk_no_memory(err);
    *list = (json_value){.kind = JSON_ARRAY, .n = tools->n, .item = item};
    *out = any ? list : tools;
    return GGL_OK;
}
