/* Options of the programs that open a model: those of open_params.def that name the program, in tables for args_parse.
 *
 *     open_options open = open_options_default();
 *     const arg_option own[] = {{NULL, .help = "machine"}, OPEN_ROWS(MACHINE), .., {0}};
 *     arg_option table[OPEN_MOST_ROWS];
 *     open_options_table(table, own, CLI, &open);
 *     .. args_parse ..
 *     int code = open_options_check(TOOL, &open);
 *     if (code < 0)
 *         opening = open_options_opening(&open);   // with what the program needs besides: see library/opening.h
 *     ..
 *     open_options_fini(&open);                    // after the context is closed */
#ifndef TOOLS_OPEN_OPTIONS_H
#define TOOLS_OPEN_OPTIONS_H

#include "adapters.h"
#include "args.h"
#include "cache_types.h"
#include "hub_options.h"
#include "ignore.h"
#include "opening.h"
#include "override_options.h"
#include "tool_bits.h"

typedef struct open_options {
    llm_opening how; /* `path` is -m's; lists are set by open_options_opening */
    char typed[LLM_N_OPEN_PARAMS][LLM_OPEN_TYPED]; /* the flags that were given */
    arg_list place, place_regex;
    hub_options hub;
    tool_ignore ignore;
    tool_overrides overrides;
    tool_adapters adapters;
    const char *template_file, *template_vars; /* beside how.params.chat_template */
    int64_t reasoning_budget;                  /* -1: no limit */
    int64_t n_batch, priority;
    const char *cpu_mask;
    const char *plan; /* NULL: not given; "nodes", or "" */
} open_options;

open_options open_options_default(void);

/* In a table: the rows of open_params.def with this theme. */
#define OPEN_ROWS(theme)                                                                           \
    { .names = "@" #theme }

enum { OPEN_MOST_ROWS = 256 };
/* Copies the table `own`, with the rows of the program (one of tool_bits.h) in place of OPEN_ROWS. */
void open_options_table(arg_option table[OPEN_MOST_ROWS], const arg_option *own, unsigned program,
                        open_options *o);

/* The paths of the options, but for --arch, for tool_check_paths. */
#define OPEN_PATHS(o)                                                                              \
    {"-m", (o)->how.path, .needed = true, .model = true},                                          \
        {"--mmproj", (o)->how.params.mmproj, .needed = true, .model = true},                       \
        {"--chat-template-file", (o)->template_file, .needed = true},                              \
        {"--draft", open_options_draft(o), .needed = true, .model = true},                         \
        {"--trace", open_options_trace(o), .written = true}, {                                     \
        "--repack-cache", open_options_repack_cache(o), .written = true, .optional = true          \
    }
/* The file of the draft, NULL: none; that of a timeline, also of a device "trace:NAME"; and that of --repack-cache, if it has a name. */
const char *open_options_draft(const open_options *o);
const char *open_options_trace(const open_options *o);
const char *open_options_repack_cache(const open_options *o);

/* Checks the options, before anything is opened. finds_eye: an eye may come later, with the model (open_options_get_models, which checks that).
 * Returns -1, or an exit code after a message. */
int open_options_check(const char *tool, open_options *o, bool finds_eye);
/* At most -b tokens are computed at once. */
void open_options_limit_batch(open_options *o);
/* Calls check, which looks at the paths; gets the model that the options of the hub name; and calls it again if there is one now. Returns -1, or
 * an exit code. */
int open_options_get_model(const char *tool, open_options *o, int (*check)(const void *ctx),
                           const void *ctx);
/* Gets the model with its eye, and the draft, unless they are there; is_whole: all options are known, and their eye is checked. */
int open_options_get_models(const char *tool, open_options *o, bool is_whole);
/* True if a chat template was named. */
bool open_options_names_template(const open_options *o);
/* Opens the chat template that was named, or the model's own, for the context, with what was said about it. reasoning: one of
 * tool_reasoning_choices. Returns -1 with the status of llm_chat_new in *st, or an exit code after a message. */
int open_options_open_chat(const char *tool, const open_options *o, llm_context *c, int reasoning,
                           ggl_status *st, ggl_error *err);
/* How the model is opened: with notes of where it runs, with progress, and until a signal comes; its session is the default one.
 * Borrows from o. */
llm_opening open_options_opening(open_options *o);
void open_options_fini(open_options *o);

#endif
