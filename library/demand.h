/* Calls of tools that an answer must or may have. */
#ifndef LIBRARY_DEMAND_H
#define LIBRARY_DEMAND_H

#include "context.h"
#include "llm/internal/calls.h"

/* The text of s; NULL: an empty text. */
ggl_str llm_text_or_empty(const char *s);
/* The parameters for calls in the format of the context's template. prompt: its end is read. */
llm_calls_params llm_demand_params(const llm_context *c, ggl_str tools, ggl_str prompt);

/* True if a tool_choice demands a call: "required", or the name of a tool. NULL, "auto" and "none" do not. */
bool llm_demands_call(const char *tool_choice);
/* Checks the text of tools. GGL_FORMAT: it is no JSON array of tools. */
ggl_status llm_demand_check(const llm_context *c, const char *tools, ggl_error *err);
/* Makes a grammar of answers that call a tool after the prompt id[0 .. n). tools: a JSON array. Statuses of llm_calls_grammar;
 * GGL_USAGE also if there are no tools. */
ggl_status llm_demand_grammar(llm_grammar **out, const llm_context *c, const char *tools,
                              const char *tool_choice, const int32_t *id, size_t n, ggl_error *err);

#endif
