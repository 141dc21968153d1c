#include "whole_tools.h"

#include "common/json_make.h"
#include "talk_impl.h"

/* What stands in place of a member: a description of nothing, and parameters of a function without any. */
static bool make(json_value *out, int k, ggl_arena *arena) {
    if (k == 0) {
        *out = llm_json_of_text("");
        return true;
    }
    const llm_json_member m[] = {
        llm_json_member_of("type", llm_json_of_text("object")),
        llm_json_member_of("properties", (json_value){.kind = JSON_OBJECT})};
    return llm_json_make_object(out, arena, m, sizeof m / sizeof *m);
}

/* Adds to a function what it lacks. Null is nothing. */
static bool complete(json_value *function, unsigned members, ggl_arena *arena, bool *is_changed) {
    static const char *const names[LLM_N_TOOL_MEMBERS] = {"description", "parameters"};
    bool good = true;
    for (int k = 0; k < LLM_N_TOOL_MEMBERS && good; k++) {
        const json_value *has = llm_json_get(function, names[k]), copy = *function;
        json_value value;
        if (!(members >> k & 1) || (has && has->kind != JSON_NULL))
            continue;
        good =
            make(&value, k, arena) && llm_json_make_with(function, arena, &copy, names[k], value);
        *is_changed = true;
    }
    return good;
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
