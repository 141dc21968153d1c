/* llm-lora: merges LoRA adapters into models, makes them from the difference of two models, shows and
 * converts them. Each command is a file <command>.c. See docs/tools.md. */
#include "common/commands.h"
#include "common/hints.h"
#include "tool.h"

static const args_command commands[] = {
    {"merge", lora_merge, "adds adapters to the weights of a model"},
    {"extract", lora_extract, "makes an adapter of the difference of two models"},
    {"show", lora_show, "prints what an adapter changes"},
    {"convert", lora_convert, "makes an adapter of a folder that PEFT has saved"},
    {"export", lora_export, "writes an adapter as a folder for PEFT"},
    {0}};

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
                            &lora_hints,
                            .examples = examples,
                            .commands = commands};
    return args_run_command(&spec, NULL, argc, argv);
}
