/* The options -hf, -mu and the like: they name a model on the Hugging Face Hub, or a URL, which library/hub downloads.
 *
 *     hub_options hub = {0};
 *     const arg_option options[] = {.., HUB_OPTIONS(hub), {0}};
 *     ..
 *     int code = tool_hub_get(TOOL, &hub, &model);   // model: the variable of -m
 *     ..
 *     tool_hub_fini(&hub);                      // after the last use of model */
#ifndef TOOLS_HUB_OPTIONS_H
#define TOOLS_HUB_OPTIONS_H

#include "args.h"
#include "ggl/status.h"

typedef struct hub_options {
    const char *repo, *file, *token, *url;
    const char *repo_draft; /* of the model that guesses; of --hf-repo-draft */
    const char *arch; /* the file of --arch, which the tool sets before tool_hub_get; NULL: none */
    bool offline, list, cache_list;
    bool
        no_weights; /* the tool needs only the tokenizer: of a Hugging Face folder, get no weights */
    char *path
        [2]; /* of the model and of the draft model; set by tool_hub_get and tool_hub_get_draft */
    bool no_eye;
    ggl_error
        why_no_eye; /* set by tool_hub_get_seeing: why that of a folder is not opened; msg "": nothing such */
    bool eye_came; /* set by tool_hub_get_seeing: the eye was not asked for */
    char *eye;     /* of the model, in a repository that has one; set by tool_hub_get_seeing */
} hub_options;

/* True if the tool only prints a list, and so needs neither model nor text. */
static inline bool tool_hub_only_lists(const hub_options *o) {
    return o->list || o->cache_list;
}

/* clang-format off */
/* Rows of an option table, for a hub_options. */
#define HUB_OPTIONS(o)                                                                             \
    {"-hf -hfr --hf-repo", ARG_STRING, &(o).repo, .value = "USER/REPO[:QUANT]",                    \
     .help = "a model from the Hugging Face Hub: downloaded once, then taken from a cache (default QUANT: Q4_K_M, else Q8_0, else the first GGUF file, else the safetensors)"},                                                   \
    {"-hff --hf-file", ARG_STRING, &(o).file, .value = "FILE",                                     \
     .help = "with -hf: use this file of the repository"},                                             \
    {"--hf-list", ARG_FLAG, &(o).list, .help = "with -hf: print the repository's models, and exit"}, \
    {"-cl --cache-list", ARG_FLAG, &(o).cache_list, .help = "print the models that were downloaded, and exit"}, \
    {"-hft --hf-token", ARG_STRING, &(o).token, .value = "TOKEN",                                  \
     .help = "the access token for private and gated repositories (default: the environment variable HF_TOKEN)"},     \
    {"-mu --model-url", ARG_STRING, &(o).url, .value = "URL",                                      \
     .help = "a GGUF file to download into the cache"},                                            \
    {"--offline", ARG_FLAG, &(o).offline, .help = "use only models that are in the cache; never use the network"}
/* clang-format on */

/* Gets the model that the options name, and sets *model to the path of its GGUF file or Hugging Face folder; without such options
 * *model does not change. It is downloaded if it is not in the cache, or if the repository has another version now. Without a network, what is in
 * the cache is used, with a note. Returns -1, or an exit code: 0 after --hf-list and --cache-list; 2 after an error in the options, such as a *model that -m has set
 * already; 1 after another error; 128 + the number of a signal. */
int tool_hub_get(const char *tool, hub_options *o, const char **model);
/* The same for a model that may see: if the repository or the folder has an eye, or the built-in model, *eye becomes its path or name, unless it is set
 * already, or --no-mmproj is given. */
int tool_hub_get_seeing(const char *tool, hub_options *o, const char **model, const char **eye);
/* llm_eye_of. */
const char *tool_eye_of(const char *model, ggl_error *why);
/* Does the same for the draft model of -hfd. */
int tool_hub_get_draft(const char *tool, hub_options *o, const char **draft);
void tool_hub_fini(hub_options *o);

#endif
