/* The command line of llm-cli, with the names and defaults of llama.cpp. */
#ifndef TOOLS_CLI_OPTIONS_H
#define TOOLS_CLI_OPTIONS_H

#include "chat_options.h"
#include "common/diffusion_options.h"
#include "common/open_options.h"
#include "common/sampling_options.h"
#include "saved_prompt.h"
#include "text_options.h"

typedef struct cli_options {
    open_options open;
    arg_list image, audio, choose;
    const char *prompt, *prompt_file, *tokens, *encode_tokens, *answer_begin, *logits;
    int64_t n_predict, n_keep;
    int on_full; /* 1: shift */
    int64_t seed;
    sampling_options sampling;
    stops_options stops;
    constraint_options constraint;
    const char *output, *color; /* color: one of tool_color_choices, "" or NULL */
    saved_prompt_options saved_prompt;
    chat_options chat;
    diffusion_options diffusion;
    int64_t n_beams;
    double length_penalty;
    bool early_stopping;
    bool choose_per_token, choose_with_end;
    bool diffusion_visual;
    bool json_output, shift, full_given, list_devices, watch, display_prompt, escape, ignore_eos,
        no_special;
} cli_options;

/* Reads the command line. Returns -1, or an exit code. */
int cli_options_read(cli_options *o, int argc, char **argv);
void cli_options_fini(cli_options *o);
/* Checks that what is asked of a text can be had together (library/job_rules.h). diffuses: by a model that writes by diffusion. Returns
 * -1, or an exit code after a message. */
int cli_options_check_job(const cli_options *o, bool diffuses);
/* Changes a setting while the program runs: argv[1] is the flag, argv[2] the value. Possible are those for
 * sampling without the lists, -n, --reasoning and --on-full. Without a value, the setting is printed on
 * stderr; without a flag, all are. Returns -1, or an exit code after an error; *o may then be changed. */
int cli_options_set(cli_options *o, int argc, char **argv);

#endif
