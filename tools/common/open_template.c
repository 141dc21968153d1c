#include "open_template.h"

#include <stdlib.h>
#include <string.h>

#include "ggl/internal/os_fs.h"
#include "input.h"

/* True for the text of a template. A text without braces is rather a name that is written wrong. */
static bool is_text(const char *s) {
    return strstr(s, "{{") || strstr(s, "{%");
}

int tool_open_template(llm_chat **out, const char *tool, const template_choice *choice,
                       const ggl_gguf *model, const llm_tokenizer *t, ggl_status *st,
                       ggl_error *err) {
    const char *name = choice->file ? choice->file : choice->name;
    llm_chat_template with = {.name = name};
    char *text = NULL;
    *out = NULL;
    if (name && (choice->file || ggl_os_exists(name))) {
        text = tool_read_text(tool, name, choice->most, &with.text.n);
        with.text.s = text;
        if (!text)
            return 1;
    } else if (name && is_text(name)) {
        with = (llm_chat_template){"--chat-template", {name, strlen(name)}};
    }
    *st = llm_chat_new(out, model, t, name ? &with : NULL, err);
    free(text);
    return -1;
}
