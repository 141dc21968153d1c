#include "reasoning.h"

#include <string.h>

#include "args.h"

const char *const tool_reasoning_choices[] = {"on", "off", "auto", NULL};
const char *const tool_reasoning_formats[] = {TOOL_REASONING_FORMATS, NULL};

static void note_bos(const llm_chat *chat, const char *tool) {
    const ggl_str bos = llm_chat_added_bos(chat);
    if (bos.n > 0)
        tool_note(
            tool,
            "conversations begin with %.*s, which the file demands and the chat template does "
            "not write; --no-chat-bos leaves it out",
            (int)(bos.n < 64 ? bos.n : 64), bos.s);
}

static void note_calls(const llm_chat *chat, const char *tool) {
    if (llm_chat_shows_tools(chat) && !llm_calls_format_has_calls(llm_chat_answers(chat).format))
        tool_note(tool, "the chat template shows tools, but in which form the model writes calls "
                        "is not known: calls will be plain text");
}

int tool_set_template(llm_chat *chat, const char *tool, const template_settings *s) {
    /* Granite and DeepSeek V3.1 have `thinking` */
    static const char on[] = "{\"enable_thinking\": true, \"thinking\": true}",
                      off[] = "{\"enable_thinking\": false, \"thinking\": false}";
    const bool is_off = s->reasoning == TOOL_REASONING_OFF || s->budget == 0;
    ggl_error err = {0};
    ggl_status st = GGL_OK;
    if (is_off || s->is_quiet || s->reasoning == TOOL_REASONING_ON)
        st = llm_chat_set(chat,
                          is_off ? (ggl_str){off, sizeof off - 1} : (ggl_str){on, sizeof on - 1},
                          "--reasoning", &err);
    if (st == GGL_OK && s->variables)
        st = llm_chat_set(chat, (ggl_str){s->variables, strlen(s->variables)},
                          "--chat-template-kwargs", &err);
    if (st != GGL_OK)
        return tool_error(tool, 2, "%s", err.msg);
    if (s->is_quiet)
        return -1;
    llm_chat_leave_bos_out(chat, s->no_bos);
    llm_chat_parse_special(chat, s->parses_special);
    note_bos(chat, tool);
    note_calls(chat, tool);
    return -1;
}
