/* The options of conversations, as rows of a table for args_parse. */
#ifndef TOOLS_CHAT_OPTIONS_H
#define TOOLS_CHAT_OPTIONS_H

#include "common/args.h"
#include "common/reasoning.h"

/* How reasoning is shown; the order is that of chat_reasoning_choices, after which those of tool_reasoning_choices follow. */
enum { REASONING_SHOW, REASONING_DIM, REASONING_HIDE, N_REASONING };

struct open_options; /* common/open_options.h */

typedef struct chat_options {
    bool wanted, refused;     /* -cnv, -no-cnv */
    bool single, interactive; /* one turn; typed text is appended to a text without a template */
    bool interactive_first, multiline, no_history, no_wrap, show_timings;
    const char *system, *system_file, *in_prefix, *in_suffix;
    const char *tools; /* file */
    int reasoning, reasoning_format;
    int thinks; /* one of tool_reasoning_choices */
    bool reasoning_given, format_given;
} chat_options;

extern const char *const chat_reasoning_choices[];

#define CHAT_DEFAULTS                                                                              \
    { .reasoning = REASONING_DIM, .thinks = TOOL_REASONING_AUTO }

/* clang-format off */
#define CHAT_OPTIONS(o)                                                                            \
    {"-cnv --conversation", ARG_FLAG, &(o).wanted,                                                 \
     .help = "converse, in the form of the model's chat template; in a pipe, each line is a turn " \
             "(default on a terminal without -p, -f and --tokens)"},                               \
    {"-no-cnv --no-conversation", ARG_FLAG, &(o).refused,                                          \
     .help = "continue a text, even if the model has a chat template"},                            \
    {"-st --single-turn", ARG_FLAG, &(o).single,                                                   \
     .help = "converse for one turn: -p, -f, or all of standard input is the message"},            \
    {"-sys --system-prompt", ARG_STRING, &(o).system, .value = "TEXT", .may_be_empty = true,       \
     .help = "the conversation's system message"},                                                 \
    {"-sysf --system-prompt-file", ARG_STRING, &(o).system_file, .value = "FILE",                  \
     .help = "the same, from a file"},                                                             \
    {"--tools", ARG_STRING, &(o).tools, .value = "FILE",                                           \
     .help = "tools, a JSON list in OpenAI's form; calls of them are printed as lines of JSON"},   \
    {"-rea --reasoning", ARG_CHOICE, &(o).reasoning, .value = "HOW",                                    \
     .choices = chat_reasoning_choices, .given = &(o).reasoning_given,                             \
     .help = "how to print reasoning, such as <think> .. </think>: dim (default) dims it on a terminal and hides it elsewhere; hide hides it; show prints the answer as the model wrote it; on, off and auto (default) let the model reason or not, if the template can"},                                                                 \
    {"--reasoning-format", ARG_CHOICE, &(o).reasoning_format, .value = "HOW",                      \
     .choices = tool_reasoning_formats, .given = &(o).format_given,                                   \
     .help = "for users of llama.cpp: none is --reasoning show"},                                   \
    {"-i --interactive", ARG_FLAG, &(o).interactive,                                               \
     .help = "continue a text without a chat template: when it ends, append what you type, and go on"},           \
    {"-if --interactive-first", ARG_FLAG, &(o).interactive_first,                                  \
     .help = "the same, but wait for input first"},                                                \
    {"--in-prefix", ARG_STRING, &(o).in_prefix, .value = "TEXT", .may_be_empty = true,             \
     .help = "with -i: text to put before what you type"},                                                 \
    {"--in-suffix", ARG_STRING, &(o).in_suffix, .value = "TEXT", .may_be_empty = true,             \
     .help = "with -i: text to put after what you type"},                                                             \
    {"-mli --multiline-input", ARG_FLAG, &(o).multiline,                                           \
     .help = "Enter is a newline; a backslash before it ends the message"},                        \
    {"--no-wrap", ARG_FLAG, &(o).no_wrap, .help = "do not break lines between words; the terminal breaks them anywhere"}, \
    {"--show-timings", ARG_FLAG, &(o).show_timings,                                                \
     .help = "print the speed after each answer of a conversation (/stats prints it once)"},       \
    {"--no-show-timings", ARG_UNFLAG, &(o).show_timings, .help = "do not print it (default)"},              \
    {"--no-history", ARG_FLAG, &(o).no_history,                                                    \
     .help = "do not read or keep the lines that were typed"}
/* clang-format on */

/* Divides what --reasoning has set: how to show reasoning, or whether there is any. */
void chat_options_settle(chat_options *o);
/* Finishes and checks the options. has_text: -p or -f is given; has_ids: --tokens; has_output: -o.
 * Returns -1, or an exit code after an error. */
int chat_options_check(chat_options *o, const struct open_options *open, bool has_text,
                       bool has_ids, bool has_output);
/* Returns the first flag given that only conversations read; NULL if none. */
const char *chat_options_flag(const chat_options *o, const struct open_options *open);
/* Returns a flag that asks for no reasoning, which a text that is continued has not; NULL: none was given. */
const char *chat_options_idle(const chat_options *o, const struct open_options *open);

#endif
