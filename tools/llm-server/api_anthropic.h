/* What the files of Anthropic's API share. */
#ifndef LLM_SERVER_API_ANTHROPIC_H
#define LLM_SERVER_API_ANTHROPIC_H

#include "dialect.h"

/* What a request says besides the ask: ask.own. */
typedef struct anthropic_ask {
    ggl_arena *arena; /* the ask's */
    const json_value *system, *messages;
    const json_value *tools; /* NULL: none that the model is shown */
    const json_value *edits; /* of "context_management"; NULL: none */
    ggl_str applied; /* those that were applied, as the answer says it; s NULL: none were wanted */
    bool has_thinking, thinks;
    bool thinks_after_tools; /* it thinks if the last message has results of tools */
    bool compacts;           /* the answer sums up the conversation, */
    ggl_str instructions;    /* as these say; n 0: as usual */
    bool hides_thinking;     /* the answer's thinking blocks are empty */
    ggl_str effort;          /* s NULL: not given */
} anthropic_ask;

/* Reads the fields of /v1/messages. */
ggl_status anthropic_read(ask *a, const server_facts *facts, const char **param, ggl_error *err);
/* Reads those of /v1/messages/count_tokens: of the same fields, those that make the prompt. */
ggl_status anthropic_read_count(ask *a, const server_facts *facts, const char **param,
                                ggl_error *err);
extern const field anthropic_count_fields[];
/* Finds the tools of the request with the changes that its messages make; *tools: any value, or NULL. (api_anthropic_changes.c) */
ggl_status anthropic_tools_in_effect(ask *a, const json_value **tools, ggl_error *err);
/* Puts messages that have been edited in place of the request's. (api_anthropic_edits.c) */
ggl_status anthropic_edit(ask *a, const server_facts *facts, const char **param, ggl_error *err);
/* Fills ask.talk from system, messages and tools. (api_anthropic_talk.c) */
ggl_status anthropic_talk(ask *a, const char **param, ggl_error *err);
/* True for a tool of Anthropic's own, which is not described in the request: the model is not shown it. Of these,
 * a->ignored.strict leaves out only the search of the web, which coding agents always add. */
bool anthropic_is_left_out(const ask *a, const json_value *v);
/* Reads the list of tools into ask.tools, in OpenAI's form; GGL_UNSUPPORTED: a tool of Anthropic's own that is not left out. */
ggl_status anthropic_tools(ask *a, const json_value *v, const server_facts *facts, ggl_error *err);

#endif
