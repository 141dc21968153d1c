/* Conversations, shared by the files talk*.c. */
#ifndef LLM_TALK_IMPL_H
#define LLM_TALK_IMPL_H

#include "common/json.h"
#include "llm/internal/talk.h"

typedef struct talk_variable {
    ggl_str name;
    const json_value *value;
} talk_variable;

struct llm_talk {
    ggl_arena arena; /* what it holds besides documents */
    llm_json **doc;  /* [n_docs]: whose values it has */
    size_t n_docs, cap_docs;
    llm_talk_message *message;
    size_t n, cap;
    talk_variable *variable;
    size_t n_variables, cap_variables;
};

ggl_status llm_talk_no_memory(ggl_error *err);
/* Gives the conversation a document, also if it fails. */
GGL_NODISCARD ggl_status llm_talk_hold(llm_talk *t, llm_json *doc, ggl_error *err);
/* Reads a message (talk_message.c). As llm_talk_add_value. */
GGL_NODISCARD ggl_status llm_talk_make_message(llm_talk *t, llm_talk_message *m,
                                               const json_value *v, const llm_part_reader *reader,
                                               ggl_error *err);

/* True for the role of a tool's result. */
bool llm_is_result(ggl_str role);

#endif
