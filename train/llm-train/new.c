/* llm-train new: a model that has learned nothing yet, or a part of one. */
#include "new.h"

#include <inttypes.h>
#include <string.h>

#include "common/shell_quote.h"
#include "common/paths.h"
#include "common/report.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/os_fs.h"
#include "llm/train.h"

#define TOOL "llm-train new"

/* Notes that nobody gave the context, which programs then assume. */
static void note_context(const arg_list *set) {
    for (size_t i = 0; i < set->n; i++)
        if (strstr(set->s[i], ".context_length="))
            return;
    tool_note(TOOL, "the model does not say how many tokens it reads at once, which other programs "
                    "may demand: --set .context_length=N");
}

static int make(const char *arch, const char *out, llm_new_model_params *p, const arg_list *set,
                const arg_list *with, const arg_list *init) {
    ggl_error err = {0};
    p->size = sizeof *p;
    p->arch = arch;
    p->key = set->s;
    p->n_keys = set->n;
    p->with = with->s;
    p->n_with = with->n;
    p->init = init->s;
    p->n_init = init->n;
    const ggl_status st = llm_new_model(out, p, &err);
    if (st != GGL_OK)
        return tool_error(TOOL, st == GGL_USAGE || st == GGL_NOT_FOUND ? 2 : 1, "%s", err.msg);
    if (p->from)
        tool_say(
            TOOL,
            "wrote %s; `llm-train -m %s --draft FILE.. -o OUT` lets layers learn that guess ahead",
            out, out);
    else if (!p->tokenizer)
        tool_say(TOOL,
                 "wrote %s; `llm-train -m MODEL --mmproj %s FILE.. -o OUT --mmproj-out EYE` lets "
                 "it learn",
                 out, out);
    else {
        /* the file has the name of its architecture, and not the descriptor */
        const bool is_file = ggl_os_is_file(arch);
        char file[LLM_SHELL_WORD], own[LLM_SHELL_WORD];
        tool_say(TOOL, "wrote %s; `llm-train -m %s%s%s FILE.. -o OUT` lets it learn", out,
                 llm_shell_quote(file, out), is_file ? " --arch " : "",
                 is_file ? llm_shell_quote(own, arch) : "");
    }
    if (!p->from && p->tokenizer)
        note_context(set);
    return 0;
}

int train_new(int argc, char **argv) {
    llm_new_model_params p = {.size = sizeof p};
    const char *out = NULL;
    arg_list given = {0}, set = {0}, with = {0}, init = {0};
    const arg_option table[] = {
        {"-o --output", ARG_STRING, &out, .value = "OUT", .help = "GGUF file to write (required)"},
        {"--tokenizer", ARG_STRING, &p.tokenizer, .value = "FILE",
         .help = "a model, a tokenizer.json (llm-tokenize train makes one), or builtin:stories "
                 "(required without --from, but for models without tokens, such as eyes)"},
        {"--from", ARG_STRING, &p.from, .value = "MODEL",
         .help = "add to this model what ARCH demands and it lacks, such as a layer that guesses "
                 "ahead; all that it has stays as it is"},
        {"--set", ARG_LIST, &set, .value = "KEY=VALUE",
         .help = "a size of the model, such as .block_count=6; .KEY is one of the architecture; "
                 "can be repeated"},
        {"--with", ARG_LIST, &with, .value = "PATTERN",
         .help = "tensors that the architecture may have or lack, such as output.weight; can be "
                 "repeated"},
        {"--init", ARG_LIST, &init, .value = "PATTERN=MEAN[,SIGMA]",
         .help = "how tensors begin: normally distributed, or all MEAN; can be repeated (default: "
                 "norms 1, biases 0, matrices 0 and --sigma)"},
        {"--sigma", ARG_FLOAT, &p.sigma, .value = "X",
         .help = "the spread of matrices (default: 0.02)", .min = 1e-9, .max = 100},
        {"--name", ARG_STRING, &p.name, .value = "NAME",
         .help = "general.architecture (default: the descriptor's first name)"},
        {"-s --seed", ARG_UINT64, &p.seed, .value = "N",
         .help = "the same seed gives the same file (default: 0)"},
        {0}};
    static const args_example examples[] = {
        {"llm-train new my.arch --tokenizer vocab.gguf --set .block_count=4 -o new.gguf",
         "a model of a descriptor of one's own"},
        {0}};
    const args_spec spec = {
        TOOL,
        "ARCH [--tokenizer FILE | --from MODEL] --set KEY=VALUE.. -o OUT [options]",
        "Makes a model that has learned nothing yet: the sizes that are set, "
        "and random weights. ARCH is a descriptor: a file, or the name of a "
        "built-in one (llm-arch list).",
        table,
        &given,
        .examples = examples};
    int code = args_parse(&spec, argc, argv);
    if (code < 0 && given.n != 1)
        code = tool_error(TOOL, 2, "one ARCH is needed: a descriptor, which llm-arch list prints");
    if (code < 0 && p.tokenizer && p.from)
        code = tool_error(TOOL, 2,
                          "--from MODEL has its tokenizer: it cannot be given with "
                          "--tokenizer");
    if (code < 0 && !out)
        code = tool_error(TOOL, 2, "-o OUT is missing, as in: -o new.gguf");
    if (code < 0)
        code = tool_check_paths(
            TOOL, (tool_path[]){{"-o", out, .written = true}, {"ARCH", given.s[0], .model = true}},
            ggl_os_exists(given.s[0]) ? 2 : 1);
    if (code < 0 && (p.from || p.tokenizer))
        code = tool_check_paths(
            TOOL,
            (tool_path[]){{p.from ? "--from" : "--tokenizer", p.from ? p.from : p.tokenizer,
                           .needed = true, .model = true},
                          {"-o", out, .written = true}},
            2);
    if (code < 0)
        code = make(given.s[0], out, &p, &set, &with, &init);
    args_list_fini(&given);
    args_list_fini(&set);
    args_list_fini(&with);
    args_list_fini(&init);
    return code;
}

const args_command train_commands[] = {
    {"new", train_new, "makes a model that has learned nothing yet"},
    {"add-tokens", train_add_tokens, "adds special tokens to a model's vocabulary"},
    {0}};
