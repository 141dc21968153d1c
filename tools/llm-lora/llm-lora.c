/* llm-lora: merges LoRA adapters into models, makes them from the difference of two models, shows and
 * converts them. Each command is a file <command>.c. See docs/tools.md. */
#include "common/hints.h"
#include "common/process.h"
#include "ggl/internal/nearest.h"
#include "tool.h"

static const args_command commands[] = {
    {"merge", lora_merge, "adds adapters to the weights of a model"},
    {"extract", lora_extract, "makes an adapter of the difference of two models"},
    {"show", lora_show, "prints what an adapter changes"},
    {"convert", lora_convert, "makes an adapter of a folder that PEFT has saved"},
    {0}};

static int unknown(const char *word) {
    ggl_nearest near = ggl_nearest_to(word);
    for (const args_command *c = commands; c->name; c++)
        ggl_nearest_try(&near, c->name, SIZE_MAX);
    if (near.best)
        return tool_error_about(
            "llm-lora", 2,
            "there is no command '%s' (did you mean '%s'?); llm-lora --help lists them", word,
            near.best);
    return tool_error_about("llm-lora", 2, "there is no command '%s'; llm-lora --help lists them",
                            word);
}

int main(int argc, char **argv) {
    static const arg_option none[] = {{0}};
    static const args_example examples[] = {
        {"llm-lora merge model.gguf style.gguf=0.5 -o merged.gguf",
         "a model with an adapter in its weights"},
        {"llm-lora extract base.gguf tuned.gguf -o tuned-lora.gguf --rank 32",
         "the difference of two models as an adapter"},
        {0}};
    const args_spec spec = {"llm-lora",
                            "COMMAND ..",
                            "Tools for LoRA adapters (docs/adapters.md).",
                            none,
                            NULL,
                            lora_hints,
                            .examples = examples,
                            .commands = commands};
    process_begin();
    if (argc < 2)
        return tool_error("llm-lora", 2,
                          "a command is missing; usage: llm-lora COMMAND ..; --help lists them");
    const args_command *c = args_find_command(commands, argv[1]);
    const int code = c                   ? c->run(argc - 1, argv + 1)
                     : argv[1][0] == '-' ? args_parse(&spec, argc, argv)
                                         : unknown(argv[1]);
    return tool_finish("llm-lora", code);
}
