/* Calls of tools that an answer must or may have. */
#ifndef LIBRARY_DEMAND_H
#define LIBRARY_DEMAND_H

#include "common/json.h"
#include "context.h"
#include "llm/internal/calls.h"

/* The text of s; NULL: an empty text. */
ggl_str llm_text_or_empty(const char *s);
/* The parameters for calls in the format of the context's template. prompt: its end is read; tools: NULL: none. */
llm_calls_params llm_demand_params(const llm_context *c, const json_value *tools, ggl_str prompt);
/* Reads the text of tools, a JSON array; NULL or empty: *doc is NULL. GGL_FORMAT: it is none, or an element is no tool. To be freed with
 * llm_json_free. */
ggl_status llm_demand_read(llm_json **doc, const char *tools, ggl_error *err);

/* True if a tool_choice demands a call: "required", or the name of a tool. NULL, "auto" and "none" do not. */
bool llm_demands_call(const char *tool_choice);
/* Makes a grammar of answers that call a tool after the prompt id[0 .. n). tools: a JSON array, unless c->asked has some. Statuses of
 * llm_calls_grammar; GGL_USAGE also if there are no tools. */
ggl_status llm_demand_grammar(llm_grammar **out, const llm_context *c, const char *tools,
                              const char *tool_choice, const int32_t *id, size_t n, ggl_error *err);

#endif
