/* System and developer messages where a chat template does not show them: their texts stand in messages that it shows. */
#ifndef LLM_TEMPLATE_SYSTEMS_H
#define LLM_TEMPLATE_SYSTEMS_H

#include "llm/internal/chat.h"
#include "value.h"

/* What a template does not show of them. */
typedef struct llm_shown_systems {
    bool not_one;    /* none at all */
    bool only_one;   /* one at the beginning, but not several */
    bool only_first; /* none behind other messages */
    bool no_call;    /* no call of a tool */
    bool no_result;  /* no result of a tool */
    bool one_user;   /* no two messages of the user that follow each other */
} llm_shown_systems;

/* A message as the template gets it. */
typedef struct llm_placed {
    llm_talk_message m;
    size_t at;     /* its index in the conversation */
    tv_text whole; /* its content with other texts; n 0: m.content */
} llm_placed;

typedef struct llm_places {
    llm_placed *item; /* [n] */
    size_t n;
    llm_chat_changes changes;
} llm_places;

/* Chooses the messages that p asks for. found: texts that stand at the end of messages, by their index in the conversation; NULL: there are none. Where system messages stand is decided by what comes before and directly after them, so that
 * a conversation that goes on keeps its beginning. */
llm_places llm_place_systems(tv_heap *h, const llm_shown_systems *shown, const llm_talk *t,
                             const llm_chat_params *p, const ggl_str *found);

#endif
