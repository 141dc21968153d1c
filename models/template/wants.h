/* What a chat template wants of conversations beyond their usual form, and what it shows of them. It is found out by small
 * conversations, once, when the template is opened. */
#ifndef LLM_TEMPLATE_WANTS_H
#define LLM_TEMPLATE_WANTS_H

#include "llm/internal/chat.h"
#include "systems.h"

typedef enum wants_tools {
    WANTS_NO_TOOLS,   /* it shows none, wherever they are */
    WANTS_VARIABLE,   /* as the variable "tools", or "functions" */
    WANTS_TOOLS_TEXT, /* as the member "tools" of the first system message: the text of a list, */
    WANTS_TOOLS_LIST  /* or the list */
} wants_tools;

typedef struct llm_wants {
    bool parts;          /* a content is a list of parts, not a text */
    bool null_content;   /* an empty content beside calls is null */
    bool text_arguments; /* arguments of calls are the text of an object */
    bool developer;      /* it knows this role, whose messages are otherwise the system's */
    bool short_ids; /* ids of calls have nine letters and digits, as Mistral's templates check */
    llm_shown_systems systems;
    wants_tools tools;
    unsigned tool_members; /* that tools must have: LLM_TOOL_DESCRIPTION .. */
    unsigned efforts;      /* of reasoning, which it refuses: bits of a table's rows (wants.c) */
    unsigned reasoning; /* the names of reasoning that it reads: bits of a table's rows (wants.c) */
} llm_wants;

/* Finds out whether words, with a space between two, appear in this order in what the template makes of a conversation of JSON, given as
 * *w says. GGL_NOMEM. */
typedef ggl_status llm_wants_shows(void *ctx, const llm_wants *w, const char *json,
                                   const char *words, bool *shown, ggl_error *err);
/* Finds them. text: the template's. */
GGL_NODISCARD ggl_status llm_wants_find(llm_wants *w, const llm_template *t, ggl_str text,
                                        llm_wants_shows *shows, void *ctx, ggl_error *err);

/* Returns the effort of reasoning in place of one that the template refuses, the nearest that it takes; NULL: it takes this one, or none. */
const char *llm_wants_effort(const llm_wants *w, const json_value *asked);

/* A message of the list. Templates may change the list, so it is known by its value. */
typedef struct llm_shown_message {
    const tv_dict *value;
    size_t at; /* its index in the conversation; SIZE_MAX: it has none */
} llm_shown_message;

/* Makes the list of messages that the template wants. */
typedef struct llm_wanted {
    const llm_talk *talk;
    const llm_chat_params *p;
    const json_value *tools; /* that are shown from the beginning; NULL: none */
    const ggl_str *found;    /* texts at the end of messages, by their index; NULL: none */
    /* Are set: */
    const llm_shown_message *shown; /* [n_shown] */
    size_t n_shown;
    llm_chat_changes changes;
} llm_wanted;
tv llm_wants_messages(tv_heap *h, const llm_wants *w, llm_wanted *x);

#endif
