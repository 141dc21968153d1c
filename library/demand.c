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

llm_calls_params llm_demand_params(const llm_context *c, ggl_str tools, ggl_str prompt) {
    const ggl_str text = c->chat ? llm_chat_text(c->chat) : (ggl_str){"", 0};
    return (llm_calls_params){.size = sizeof(llm_calls_params),
                              .format = llm_calls_format(text),
                              .template_text = text,
                              .prompt = prompt,
                              .tools = tools};
}

ggl_status llm_demand_check(const llm_context *c, const char *tools, ggl_error *err) {
    llm_calls *calls;
    const llm_calls_params p = llm_demand_params(c, llm_text_or_empty(tools), (ggl_str){"", 0});
    const ggl_status st = llm_calls_new(&calls, &p, err);
    llm_calls_free(calls);
    return st;
}

ggl_status llm_demand_grammar(llm_grammar **out, const llm_context *c, const char *tools,
                              const char *tool_choice, const int32_t *id, size_t n,
                              ggl_error *err) {
    char *end = NULL;
    size_t n_end;
    *out = NULL;
    if (!tools)
        return ggl_fail(err, GGL_USAGE, "tool_choice '%s' needs tools", tool_choice);
    if (!c->chat)
        return ggl_pass(err, &c->why_no_chat);
    const size_t n_last = n > PROMPT_END ? PROMPT_END : n;
    ggl_status st = llm_detokenize(c->tokenizer, n > PROMPT_END ? id + (n - PROMPT_END) : id,
                                   n_last, true, &end, &n_end, err);
    if (st != GGL_OK)
        return st;
    llm_calls_params p = llm_demand_params(c, llm_text_or_empty(tools), (ggl_str){end, n_end});
    const bool any = strcmp(tool_choice, "required") == 0;
    p.demanded = true;
    st = llm_calls_grammar(out, &p, any ? (ggl_str){"", 0} : llm_text_or_empty(tool_choice), false,
                           err);
    ggl_free(end);
    return st;
}
