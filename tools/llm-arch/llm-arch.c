/* llm-arch: commands for authors of descriptors. Each command is a file <command>.c. */
#include "common/commands.h"
#include "common/ranks.h"
#include "tool.h"

static const args_command commands[] = {
    {"check", arch_check, "checks a descriptor, by itself or with a model"},
    {"verify", arch_verify, "compares a model, node by node, with double precision"},
    {"doctor", arch_doctor,
     "tries variants of a descriptor, and finds the one that fits the weights"},
    {"graph", arch_graph, "prints the graph as text, DOT or SVG"},
    {"show", arch_show, "prints a model's hyperparameters, tensors, parameters and bytes"},
    {"diff", arch_diff, "compares two descriptors' graphs, or two models' keys and tensors"},
    {"init", arch_init, "starts a descriptor from a model's keys and tensors"},
    {"compile", arch_compile, "writes a model as tables in C, for boards without a system"},
    {"embed", arch_embed, "writes a descriptor into a model"},
    {"list", arch_list, "prints the built-in descriptors"},
    {0}};

int main(int argc, char **argv) {
    static const arg_option none[] = {{0}};
    static const args_example examples[] = {
        {"llm-arch show model.gguf", "what is in a model, and which line reads it?"},
        {"llm-arch check my.arch model.gguf",
         "does a descriptor run a model as the reference does?"},
        {"llm-arch graph my.arch --format svg -o my.svg", "draws the graph of a descriptor"},
        {0}};
    const args_spec spec = {"llm-arch",
                            "COMMAND ..",
                            "Tools for writing architecture descriptors (docs/architectures.md).",
                            none,
                            NULL,
                            NULL,
                            .examples = examples,
                            .commands = commands};
    const int rank = tool_join_job("llm-arch");
    return rank >= 0 ? rank : args_run_command(&spec, NULL, argc, argv);
}
