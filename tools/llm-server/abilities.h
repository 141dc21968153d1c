/* What a model does, also one that is not loaded. */
#ifndef LLM_SERVER_ABILITIES_H
#define LLM_SERVER_ABILITIES_H

#include "models.h"

typedef struct abilities {
    bool is_known; /* else all others are false */
    bool writes, has_tools, has_thinking, embeds, ranks;
    bool sees, listens; /* pictures, sounds in messages */
} abilities;

/* By the row's card, so that loading changes nothing, unless the options have a template of their own. s: its server; may be NULL. */
abilities abilities_of(model *m, const server *s);
abilities abilities_of_server(const server *s);
/* Returns the name of another model of the table that answers requests of this kind; NULL: there is none. */
const char *model_other(model *own, ask_kind kind);

#endif
