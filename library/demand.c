#include "demand.h"

#include <string.h>

#include "ggl/internal/pass.h"

enum { PROMPT_END = 64 }; /* tokens of the prompt in which an answer may have begun */

ggl_str llm_text_or_empty(const char *s) {
    return s ? (ggl_str){s, strlen(s)} : (ggl_str){"", 0};
}

bool llm_demands_call(const char *tool_choice) {
    return tool_choice && strcmp(tool_choice, "auto") != 0 && strcmp(tool_choice, "none") != 0;
}

llm_calls_params llm_demand_params(const llm_context *c, const json_value *tools, ggl_str prompt) {
    llm_calls_params p = {.size = sizeof p};
    if (c->chat)
        p = llm_chat_answers(c->chat);
    p.prompt = prompt;
    p.tools = tools;
    return p;
}

ggl_status llm_demand_read(llm_json **doc, const char *tools, ggl_error *err) {
    *doc = NULL;
    if (!tools || !*tools)
        return GGL_OK;
    const ggl_status st = llm_json_parse(doc, tools, strlen(tools), "tools", err);
    return st == GGL_OK ? llm_calls_check_tools(&(*doc)->root, err) : st;
}

/* Makes the grammar for the end of a prompt. */
static ggl_status make(llm_grammar **out, const llm_context *c, const json_value *tools,
                       const char *tool_choice, ggl_str end, ggl_error *err) {
    llm_calls_params p = llm_demand_params(c, tools, end);
    const bool any = strcmp(tool_choice, "required") == 0;
    p.demanded = true;
    return llm_calls_grammar(out, &p, any ? (ggl_str){"", 0} : llm_text_or_empty(tool_choice),
                             c->asked && c->asked->one_call, err);
}

ggl_status llm_demand_grammar(llm_grammar **out, const llm_context *c, const char *tools,
                              const char *tool_choice, const int32_t *id, size_t n,
                              ggl_error *err) {
    const json_value *given = c->asked ? c->asked->tools : NULL;
    llm_json *doc = NULL;
    char *end = NULL;
    size_t n_end;
    *out = NULL;
    if (!tools && !given)
        return ggl_fail(err, GGL_USAGE, "tool_choice '%s' needs tools", tool_choice);
    if (!c->chat)
        return ggl_pass(err, &c->why_no_chat);
    const size_t n_last = n > PROMPT_END ? PROMPT_END : n;
    ggl_status st = llm_detokenize(c->tokenizer, n > PROMPT_END ? id + (n - PROMPT_END) : id,
                                   n_last, true, &end, &n_end, err);
    if (st == GGL_OK && !given)
        st = llm_demand_read(&doc, tools, err);
    if (st == GGL_OK)
        st = make(out, c, doc ? &doc->root : given, tool_choice, (ggl_str){end, n_end}, err);
    llm_json_free(doc);
    ggl_free(end);
    return st;
}
