/* Members of tools that a request may leave out, and without which some chat templates refuse it. */
#ifndef LLM_TEMPLATE_WHOLE_TOOLS_H
#define LLM_TEMPLATE_WHOLE_TOOLS_H

#include "common/json.h"
#include "ggl/internal/alloc.h"
#include "ggl/status.h"

enum {
    LLM_TOOL_DESCRIPTION = 1,
    LLM_TOOL_PARAMETERS = 2,
    LLM_TOOL_PROPERTIES = 4 /* of parameters */
};

/* Gives tools the members that they lack. members: those that are wanted. *out is the same list if none is added. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_tools_whole(const json_value **out, const json_value *tools,
                                         unsigned members, ggl_arena *arena, ggl_error *err);

#endif
