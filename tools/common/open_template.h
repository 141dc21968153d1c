/* Opens the chat template that a tool's flags name. */
#ifndef TOOLS_OPEN_TEMPLATE_H
#define TOOLS_OPEN_TEMPLATE_H

#include "llm/internal/chat.h"

typedef struct template_choice {
    const char *file; /* "-": stdin; NULL: not given */
    const char *
        name; /* a file if there is one of this name, else a text with {{ or {%, else the name of a template; NULL: not given */
    size_t most; /* bytes of a file, a multiple of 1 MiB */
} template_choice;

/* Opens the template of `file`, else of `name`, else the one in the model's file. Returns -1 with the result of
 * llm_chat_new in *st and *err, or an exit code after a message if a file could not be read. */
int tool_open_template(llm_chat **out, const char *tool, const template_choice *choice,
                       const ggl_gguf *model, const llm_tokenizer *t, ggl_status *st,
                       ggl_error *err);

#endif
