/* What the command line says about reasoning, as variables of the chat template. */
#ifndef TOOLS_REASONING_H
#define TOOLS_REASONING_H

#include "llm/internal/chat.h"

enum { TOOL_REASONING_ON, TOOL_REASONING_OFF, TOOL_REASONING_AUTO };
extern const char *const tool_reasoning_choices[];

/* Forms of answers that reason, as options and requests name them: those of llama.cpp behind TOOL_FORMAT_NONE are as auto. */
#define TOOL_REASONING_FORMATS "auto", "none", "deepseek", "deepseek-legacy"
enum { TOOL_FORMAT_AUTO, TOOL_FORMAT_NONE };
extern const char *const tool_reasoning_formats[];

typedef struct template_settings {
    int reasoning;         /* one of tool_reasoning_choices */
    int64_t budget;        /* 0: no reasoning */
    const char *variables; /* the text of an object; NULL: none */
    bool no_bos;
    bool parses_special; /* in messages, too */
    bool is_quiet;       /* no notes */
} template_settings;

/* Sets the variables of all conversations, and notes on stderr what users should know about the template: the token that is put
 * before conversations, and that calls of tools would not be read. Returns -1, or an exit code after an error. */
int tool_set_template(llm_chat *chat, const char *tool, const template_settings *s);

#endif
