/* llm-train add-tokens: a model with more special tokens. */
#include <inttypes.h>
#include <stdio.h>

#include "common/paths.h"
#include "common/report.h"
#include "ggl/internal/os_fs.h"
#include "llm/train.h"
#include "new.h"

#define TOOL "llm-train add-tokens"

static int make(const char *out, llm_new_model_params *p) {
    ggl_error err = {0};
    int32_t first = 0;
    p->first_special = &first;
    const ggl_status st = llm_new_model(out, p, &err);
    if (st != GGL_OK)
        return tool_error(TOOL, st == GGL_USAGE ? 2 : 1, "%s", err.msg);
    for (size_t i = 0; i < p->n_special; i++)
        printf("%6" PRId64 "  \"%s\"\n", (int64_t)first + (int64_t)i, p->special[i]);
    tool_say(TOOL,
             "wrote %s; `llm-gguf set` names the token that ends an answer "
             "(tokenizer.ggml.eos_token_id), and adds a chat template",
             out);
    return 0;
}

int train_add_tokens(int argc, char **argv) {
    llm_new_model_params p = {.size = sizeof p};
    const char *out = NULL;
    arg_list given = {0}, special = {0};
    const arg_option table[] = {
        {"-o --output", ARG_STRING, &out, .value = "OUT", .help = "GGUF file to write (required)"},
        {"--special", ARG_LIST, &special, .value = "TOKEN",
         .help = "a special token, such as '<|user|>' (required); can be repeated, and the tokens "
                 "get their ids in this order"},
        {"--arch", ARG_STRING, &p.arch, .value = "FILE|NAME",
         .help = "the descriptor (default: by the model's file)"},
        {"-s --seed", ARG_UINT64, &p.seed, .value = "N",
         .help = "the same seed gives the same file (default: 0)"},
        {0}};
    static const args_example examples[] = {
        {"llm-train add-tokens base.gguf --special '<|user|>' --special '<|assistant|>' --special "
         "'<|end|>' -o start.gguf",
         "a base model gets the tokens of a chat template, to learn it"},
        {0}};
    const args_spec spec = {TOOL,
                            "MODEL --special TOKEN.. -o OUT [options]",
                            "Adds special tokens to a model's vocabulary: their rows in the "
                            "embedding and the output begin at random, with the mean and spread of "
                            "the others. MODEL is "
                            "a GGUF file, a Hugging Face folder, or builtin:stories.",
                            table,
                            &given,
                            .examples = examples};
    int code = args_parse(&spec, argc, argv);
    if (code < 0 && given.n != 1)
        code = tool_error(TOOL, 2, "one MODEL is needed, as in: model.gguf");
    if (code < 0 && special.n == 0)
        code = tool_error(TOOL, 2, "--special TOKEN is missing, as in: --special '<|user|>'");
    if (code < 0 && !out)
        code = tool_error(TOOL, 2, "-o OUT is missing, as in: -o new.gguf");
    if (code < 0)
        code = tool_check_paths(TOOL,
                                (tool_path[]){{"MODEL", given.s[0], .needed = true, .model = true},
                                              {"-o", out, .written = true},
                                              {"--arch", p.arch, .needed = true}},
                                p.arch && ggl_os_exists(p.arch) ? 3 : 2);
    if (code < 0) {
        p.from = given.s[0];
        p.special = special.s;
        p.n_special = special.n;
        code = make(out, &p);
    }
    args_list_fini(&given);
    args_list_fini(&special);
    return code;
}
