#include "options.h"

#include <inttypes.h>
#include <string.h>

#include "common/color.h"
#include "common/hints.h"
#include "common/paths.h"
#include "ggl/internal/nearest.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/show.h"
#include "job_rules.h"

static const char *const on_full_choices[] = {"stop", "shift", NULL};

static const cli_options defaults = {
    .n_predict = -1,
    .seed = -1,
    .display_prompt = true,
    .diffusion = DIFFUSION_DEFAULTS,
    .n_beams = 1,
    .length_penalty = 1,
    .escape = true,
    .chat = CHAT_DEFAULTS,
};

/* Copies the rows that may change while the program runs. */
static void keep_settings(const arg_option *all, arg_option *kept) {
    static const char *const also[] = {"--n-predict", "--reasoning", "--on-full"};
    size_t n = 0;
    bool samples = false;
    for (; all->names || all->help; all++) {
        bool keeps = samples && all->names && all->kind != ARG_LIST;
        if (!all->names)
            samples = strcmp(all->help, "sampling") == 0;
        for (size_t i = 0; all->names && i < sizeof also / sizeof *also; i++)
            keeps |= strstr(all->names, also[i]) && !strstr(all->names, "--reasoning-");
        if (keeps)
            kept[n++] = *all;
    }
    kept[n] = (arg_option){0};
}

static void print_setting(const arg_option *a) {
    const char *name = strstr(a->names, "--") + 2;
    fprintf(stderr, "  %.*s = ", (int)strcspn(name, " "), name);
    if (a->kind == ARG_INT)
        fprintf(stderr, "%" PRId64 "\n", *(const int64_t *)a->out);
    else if (a->kind == ARG_FLOAT)
        fprintf(stderr, "%.15g\n", *(const double *)a->out);
    else if (a->kind == ARG_CHOICE)
        fprintf(stderr, "%s\n", a->choices[*(const int *)a->out]);
    else
        ggl_fprint(stderr, "%s\n", *(const char **)a->out ? *(const char **)a->out : "default");
}

/* Refuses the name of a setting that does not exist. */
static int no_setting(const arg_option *kept, const char *name) {
    ggl_nearest near = ggl_nearest_to(name);
    const char *names, *known;
    size_t n, n_best = 0;
    for (const arg_option *a = kept; a->names; a++)
        for (names = a->names; arg_next_name(&names, &known, &n);) {
            const char *before = near.best, *word = known + strspn(known, "-");
            ggl_nearest_try(&near, word, n - (size_t)(word - known));
            n_best = near.best == before ? n_best : n - (size_t)(word - known);
        }
    return tool_error("llm-cli", 2, "there is no setting '%s'%s%.*s%s; /set lists them", name,
                      near.best ? "; did you mean '" : "", (int)n_best, near.best ? near.best : "",
                      near.best ? "'" : "");
}

/* For cli_options_set. kept: those rows of `all` that may change. */
static int change_setting(const arg_option *all, const arg_option *kept, int argc, char **argv) {
    const args_spec spec = {"llm-cli", "NAME VALUE", "Changes a setting.", kept,
                            NULL,      NULL,         .examples = NULL};
    const arg_option *found = argc > 1 ? args_find(kept, argv[1]) : NULL;
    if (argc > 1 && !found && args_find(all, argv[1]))
        return tool_error("llm-cli", 2,
                          "%s cannot be changed in a conversation; /set lists what can", argv[1]);
    if (argc > 1 && !found)
        return no_setting(kept, argv[1] + strspn(argv[1], "-"));
    if (argc > 2)
        return args_parse(&spec, argc, argv);
    if (found)
        print_setting(found);
    for (const arg_option *a = kept; argc == 1 && a->names; a++)
        print_setting(a);
    return -1;
}

static int parse(cli_options *o, int argc, char **argv, bool only_settings) {
    const arg_option own[] = {
        {NULL, .help = "model and prompt"},
        {"-m --model", ARG_STRING, &o->open.how.path, .value = "FILE",
         .help = "a GGUF file or a Hugging Face folder (default: the built-in model, which tells "
                 "stories; builtin:chat: the one that answers; with --image, builtin:shapes, which "
                 "sees coloured shapes)"},
        HUB_OPTIONS(o->open.hub),
        {"-p --prompt", ARG_STRING, &o->prompt, .value = "TEXT", .may_be_empty = true,
         .help = "the text to continue (default: standard input, if it is piped)"},
        {"-f --file", ARG_STRING, &o->prompt_file, .value = "FILE",
         .help = "read the prompt from FILE; one newline at its end is left out"},
        OPEN_ROWS(SEES),
        {"--image", ARG_LIST, &o->image, .value = "FILE",
         .help = "show a picture: where the prompt has <__media__>, else before it; repeatable, "
                 "or a,b for several. In a conversation: /image FILE"},
        {"--audio", ARG_LIST, &o->audio, .value = "FILE",
         .help = "play a sound, as --image shows a picture; repeatable. In a conversation: /audio "
                 "FILE"},
        {"--tokens", ARG_STRING, &o->tokens, .value = "IDS",
         .help = "the prompt as ids: 1,2,3; no BOS is added"},
        {"--encode-tokens", ARG_STRING, &o->encode_tokens, .value = "IDS",
         .help = "of a model that reads a text and writes another (T5): the ids of the text to "
                 "read; the "
                 "prompt is then the beginning of what it writes"},
        {"--answer-begin", ARG_STRING, &o->answer_begin, .value = "TEXT",
         .help =
             "of a model that reads a text and writes another: what it writes begins with TEXT, "
             "which is not printed; the token of a language, for those that translate (mBART)"},
        {"-n --n-predict --predict", ARG_INT, &o->n_predict, .value = "N",
         .help = "tokens to generate (default -1: until the text ends, or the context is full)",
         .min = -1, .max = INT32_MAX},
        OPEN_ROWS(CONTEXT),
        {"--on-full", ARG_CHOICE, &o->on_full, .value = "HOW", .choices = on_full_choices,
         .given = &o->full_given,
         .help = "when the context is full: stop (default), or shift: keep the first --keep "
                 "tokens, drop the older half of the others, and go on; in a conversation, shift "
                 "(default) leaves out the oldest messages"},
        {"--context-shift", ARG_FLAG, &o->shift, .given = &o->full_given,
         .help = "the same as --on-full shift"},
        {"--no-context-shift", ARG_UNFLAG, &o->shift, .given = &o->full_given,
         .help = "the same as --on-full stop"},
        {"--keep", ARG_INT, &o->n_keep, .value = "N",
         .help = "tokens of the prompt that a shift keeps; -1: all (default 0)", .min = -1,
         .max = INT32_MAX},
        OPEN_ROWS(MODEL),
        {"-e --escape", ARG_FLAG, &o->escape,
         .help = "resolve \\n, \\t, \\xHH .. in -p, -r, --stop and --dry-sequence-breaker as in C "
                 "(default)"},
        {"--no-escape", ARG_UNFLAG, &o->escape, .help = "leave these escapes as they are typed"},
        {"--no-parse-special", ARG_FLAG, &o->no_special,
         .help = "treat text that spells a control token as text"},
        {"--beams", ARG_INT, &o->n_beams, .value = "N",
         .help =
             "write the likeliest text that a search of N beams finds (models that translate or "
             "summarize); default 1: draw one token after the other",
         .min = 1, .max = 64},
        {"--length-penalty", ARG_FLOAT, &o->length_penalty, .value = "X",
         .help = "with --beams: a text's score is the sum of its log-probabilities / length ^ X "
                 "(default 1)",
         .min = -10, .max = 10},
        {"--early-stopping", ARG_FLAG, &o->early_stopping,
         .help = "with --beams: end as soon as N texts have ended"},
        {"--choose", ARG_LIST, &o->choose, .value = "TEXT",
         .help = "write nothing, but print how probable TEXT is after the prompt, or with -st as "
                 "the answer, in comparison with the other --choose: probability, "
                 "log-probability and text, the likeliest first"},
        {"--choose-per-token", ARG_FLAG, &o->choose_per_token,
         .help = "with --choose: compare log-probabilities divided by the number of tokens"},
        {"--choose-with-end", ARG_FLAG, &o->choose_with_end,
         .help = "with --choose: the text has to end after TEXT (without the flag only if one "
                 "TEXT begins another)"},
        DIFFUSION_OPTIONS(o->diffusion),
        {"--diffusion-visual", ARG_FLAG, &o->diffusion_visual,
         .help = "on a terminal: show the text while it unmasks"},
        {"--no-display-prompt", ARG_UNFLAG, &o->display_prompt,
         .help = "print only the generated text"},
        {"--ignore-eos", ARG_FLAG, &o->ignore_eos, .help = "do not stop at the model's end token"},
        STOPS_OPTIONS(o->stops),
        {"-o --output", ARG_STRING, &o->output, .value = "FILE",
         .help = "write the text to FILE instead of standard output"},
        {"--json-output", ARG_FLAG, &o->json_output,
         .help = "instead of the text, write one line of JSON: text, ids, log-probabilities, "
                 "settings, timings"},
        {"-co --color", ARG_MAYBE, &o->color, .value = "WHEN", .choices = tool_color_choices,
         .help = "print the prompt in colour: auto (default: on a terminal, unless NO_COLOR is "
                 "set), always or never"},
        {NULL, .help = "conversation"},
        OPEN_ROWS(CHAT),
        CHAT_OPTIONS(o->chat),
        CONSTRAINT_OPTIONS(o->constraint),
        {NULL, .help = "sampling"},
#define SAMPLING o->sampling
#include "common/sampling_options.def"
        {"-s --seed", ARG_INT, &o->seed, .value = "N",
         .help = "the same seed gives the same text (default -1: a different one each time)",
         .min = -1, .max = 9007199254740992.0},
        {NULL, .help = "speed"},
        OPEN_ROWS(SPEED),
        SAVED_PROMPT_OPTIONS(o->saved_prompt),
        {NULL, .help = "machine"},
        OPEN_ROWS(MACHINE),
        {NULL, .help = "where it runs"},
        {"--list-devices", ARG_FLAG, &o->list_devices,
         .help = "print the devices that --device accepts, and exit"},
        OPEN_ROWS(PLACE),
        {NULL, .help = "inspection"},
        OPEN_ROWS(PLAN),
        {"--watch", ARG_FLAG, &o->watch,
         .help = "with --arch: check the file and run the prompt again whenever it changes"},
        {"--logits", ARG_STRING, &o->logits, .value = "FILE",
         .help = "write the prompt's logits as .npy, float32 [n_tokens, n_vocab]"},
        {0}};
    static const args_example examples[] = {
        {"llm-cli -p \"Once upon a time\" -n 64", "continues a text with the built-in model"},
        {"llm-cli -m model.gguf", "chats with a model; /help lists the commands"},
        {"llm-cli -hf Qwen/Qwen3-0.6B-GGUF -st -p \"What is a monad?\"",
         "downloads a model once, and asks it one question"},
        {"llm-cli -m model.gguf -f notes.txt -n 200 --temp 0 -q",
         "continues a file with the likeliest tokens, and prints nothing but the text"},
        {"llm-cli -m model.gguf -p \"A user:\" --json-schema user.json",
         "answers in JSON that fits a schema"},
        {"llm-cli -m model.gguf --plan",
         "prints what would run where, and the memory that it takes"},
        {0}};
    arg_option options[OPEN_MOST_ROWS], kept[OPEN_MOST_ROWS];
    open_options_table(options, own, CLI, &o->open);
    const args_spec spec = {
        "llm-cli",
        "[-m FILE | -hf USER/REPO] [-p TEXT] [options]",
        "Chats with a model, or continues a prompt. The text is printed to standard output, "
        "everything else to standard error.",
        options,
        NULL,
        &cli_hints,
        .examples = examples};
    if (!only_settings)
        return args_parse(&spec, argc, argv);
    keep_settings(options, kept);
    return change_setting(options, kept, argc, argv);
}

/* Programs that start in the same second get unlike seeds, too. */
static void set_seed(cli_options *o) {
    const int64_t now = ggl_os_time(), second = 1000000000;
    if (o->seed < 0)
        o->seed = (now / second * 1000003 + now % second) & INT32_MAX;
}

int cli_options_set(cli_options *o, int argc, char **argv) {
    sampling_options *s = &o->sampling;
    const sampling_options before = *s;
    const int code = parse(o, argc, argv, true);
    if (s->names != before.names) /* two forms of one setting: the new one counts */
        s->letters = NULL;
    else if (s->letters != before.letters)
        s->names = NULL;
    if (code >= 0 || sampling_options_check("llm-cli", &o->sampling, o->escape) >= 0)
        return 2;
    o->shift = o->full_given ? o->on_full == 1 : o->shift;
    set_seed(o);
    return -1;
}

int cli_options_check_job(const cli_options *o, bool diffuses) {
    const constraint_options *form = &o->constraint;
    const llm_open_params *p = &o->open.how.params;
    ggl_error err = {0};
    const uint32_t wishes =
        LLM_JOB_ASKS(DIFFUSION, diffuses) | LLM_JOB_ASKS(BEAMS, o->n_beams > 1) |
        LLM_JOB_ASKS(GRAMMAR, form->grammar || form->grammar_file) |
        LLM_JOB_ASKS(SCHEMA, form->json || form->schema || form->schema_file) |
        LLM_JOB_ASKS(BIAS, o->sampling.biases.n > 0) |
        LLM_JOB_ASKS(PROMPT_LOGITS, o->logits && o->n_predict != 0) |
        LLM_JOB_ASKS(SHIFT, o->shift || o->on_full == 1) | LLM_JOB_ASKS(LOOKUP, p->lookup) |
        LLM_JOB_ASKS(DRAFT, p->draft || o->open.hub.repo_draft) |
        LLM_JOB_ASKS(PROMPT_CACHE, o->saved_prompt.path) | LLM_JOB_ASKS(RECORD, o->json_output) |
        LLM_JOB_ASKS(WATCH, o->watch) | LLM_JOB_ASKS(CONVERSATION, o->chat.wanted) |
        LLM_JOB_ASKS(INTERACTIVE, o->chat.interactive) | LLM_JOB_ASKS(CHOICE, o->choose.n > 0);
    return llm_job_check(wishes, LLM_JOB_FLAGS, NULL, &err) == GGL_OK
               ? -1
               : tool_error("llm-cli", 2, "%s", err.msg);
}

/* Checks that nothing is asked of a text beside the choice. Returns -1, or an exit code after a message. */
static int check_choice(const cli_options *o) {
    const struct {
        bool given;
        const char *flag;
    } beside[] = {{o->tokens, "--tokens"},
                  {o->encode_tokens, "--encode-tokens"},
                  {o->answer_begin, "--answer-begin"},
                  {o->ignore_eos, "--ignore-eos"},
                  {o->no_special, "--no-parse-special"},
                  {o->chat.tools, "--tools"},
                  {o->chat.system_file, "-sysf"},
                  {o->image.n > 0, "--image"},
                  {o->audio.n > 0, "--audio"},
                  {o->logits, "--logits"}};
    if (o->choose.n == 0) {
        const char *idle = o->choose_per_token  ? "--choose-per-token"
                           : o->choose_with_end ? "--choose-with-end"
                                                : NULL;
        return idle ? tool_error("llm-cli", 2, "%s says how labels are compared: --choose LABEL",
                                 idle)
                    : -1;
    }
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
        if (beside[i].given)
            return tool_error("llm-cli", 2, "--choose and %s cannot be used together",
                              beside[i].flag);
    return -1;
}

int cli_options_read(cli_options *o, int argc, char **argv) {
    *o = defaults;
    o->sampling = sampling_defaults;
    o->open = open_options_default();
    int code = parse(o, argc, argv, false);
    if (code >= 0)
        return code;
    if (!tool_split_files(&o->image) || !tool_split_files(&o->audio))
        return tool_error("llm-cli", 1, "out of memory");
    if ((o->prompt != NULL) + (o->prompt_file != NULL) + (o->tokens != NULL) > 1)
        return tool_error("llm-cli", 2, "-p, -f and --tokens cannot be used together");
    const bool has_text = o->prompt || o->prompt_file;
    if ((code = chat_options_check(&o->chat, &o->open, has_text, o->tokens != NULL, o->output)) >=
        0)
        return code;
    if ((code = cli_options_check_job(o, false)) >= 0 || (code = check_choice(o)) >= 0)
        return code;
    const bool only_text = o->logits || o->watch || o->saved_prompt.path || o->n_beams > 1;
    if (only_text && (o->chat.wanted || o->chat.single || o->chat.interactive))
        return tool_error("llm-cli", 2,
                          "--logits, --watch, --prompt-cache and --beams are for texts, not for "
                          "-cnv, -st and -i");
    if (o->n_beams <= 1 && (o->early_stopping || o->length_penalty != 1))
        return tool_error("llm-cli", 2, "%s needs --beams",
                          o->early_stopping ? "--early-stopping" : "--length-penalty");
    if (o->answer_begin && (o->tokens || o->encode_tokens))
        return tool_error("llm-cli", 2,
                          "--answer-begin needs the text to read from -p or -f; with "
                          "--encode-tokens, --tokens is the beginning of what the model writes");
    if (o->json_output && o->chat.interactive)
        return tool_error("llm-cli", 2, "--json-output and -i cannot be used together");
    if (o->watch && (!o->open.how.params.arch || !(o->prompt || o->prompt_file || o->tokens)))
        return tool_error("llm-cli", 2,
                          "--watch needs --arch FILE, and the prompt from -p, -f or --tokens");
    code = constraint_check("llm-cli", &o->constraint);
    if (code < 0)
        code = sampling_options_check("llm-cli", &o->sampling, o->escape);
    if (code >= 0)
        return code;
    o->shift = o->shift || o->on_full == 1;
    if (o->n_keep != 0 && !o->shift && !o->chat.wanted && !o->chat.single)
        return tool_error("llm-cli", 2, "--keep needs --on-full shift: nothing else drops tokens");
    code = open_options_check("llm-cli", &o->open, true);
    if (code < 0)
        code = saved_prompt_check("llm-cli", &o->saved_prompt);
    if (code >= 0)
        return code;
    open_options_limit_batch(&o->open);
    set_seed(o);
    o->open.how.shadow_seed = (uint64_t)o->seed;
    return -1;
}

void cli_options_fini(cli_options *o) {
    args_list_fini(&o->image);
    args_list_fini(&o->audio);
    args_list_fini(&o->choose);
    sampling_options_fini(&o->sampling);
    args_list_fini(&o->stops.reverse);
    args_list_fini(&o->stops.stop);
    open_options_fini(&o->open);
}
