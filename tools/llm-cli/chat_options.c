#include "chat_options.h"

#include "common/open_options.h"

const char *const chat_reasoning_choices[] = {"show", "dim", "hide", "on", "off", "auto", NULL};

/* True after chat_options_settle and before it: --reasoning off. */
static bool chat_options_without(const chat_options *o) {
    return o->thinks == TOOL_REASONING_OFF || o->reasoning == N_REASONING + TOOL_REASONING_OFF;
}

const char *chat_options_idle(const chat_options *o, const open_options *open) {
    return o->reasoning_given && chat_options_without(o) ? "--reasoning off"
           : open->reasoning_budget == 0                 ? "--reasoning-budget 0"
                                                         : NULL;
}

const char *chat_options_flag(const chat_options *o, const open_options *open) {
    const struct {
        bool given;
        const char *flag;
    } row[] = {{o->system, "-sys"},
               {o->system_file, "-sysf"},
               {open->how.params.chat_template, "--chat-template"},
               {open->template_file, "--chat-template-file"},
               {open->template_vars, "--chat-template-kwargs"},
               {o->tools, "--tools"},
               {o->reasoning_given && !chat_options_without(o), "--reasoning"},
               {o->format_given, "--reasoning-format"},
               {open->how.params.no_chat_bos, "--no-chat-bos"},
               {open->reasoning_budget > 0, "--reasoning-budget"}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (row[i].given)
            return row[i].flag;
    return NULL;
}

void chat_options_settle(chat_options *o) {
    if (o->reasoning < N_REASONING)
        return;
    o->thinks = o->reasoning - N_REASONING;
    o->reasoning = REASONING_DIM;
}

int chat_options_check(chat_options *o, const open_options *open, bool has_text, bool has_ids,
                       bool has_output) {
    static const char tool[] = "llm-cli";
    const bool talks = o->wanted || o->single;
    chat_options_settle(o);
    if (o->reasoning_format == TOOL_FORMAT_NONE)
        o->reasoning = REASONING_SHOW;
    o->interactive |= o->interactive_first;
    if (talks && o->refused)
        return tool_error(tool, 2, "-cnv and -st cannot be used together with -no-cnv");
    if (talks && o->interactive)
        return tool_error(tool, 2, "-i appends to a text; -cnv and -st converse: choose one");
    if (talks && has_ids)
        return tool_error(tool, 2,
                          "--tokens gives a text to continue; a conversation cannot use it");
    if (o->interactive && has_output)
        return tool_error(tool, 2, "-o cannot be used together with -i, which reads more text");
    if (o->system && o->system_file)
        return tool_error(tool, 2, "-sys and -sysf cannot be used together");
    if ((o->in_prefix || o->in_suffix) && !o->interactive)
        return tool_error(tool, 2, "--in-prefix and --in-suffix are for -i");
    const char *flag = chat_options_flag(o, open);
    if (flag && (o->refused || o->interactive))
        return tool_error(tool, 2, "%s is for conversations, not for -i and -no-cnv", flag);
    if (flag && !talks && (has_text || has_ids))
        return tool_error(tool, 2,
                          "%s is for conversations: with -st, -p is the message of one turn; "
                          "with -cnv, of the first",
                          flag);
    return -1;
}
