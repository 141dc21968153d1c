/* llm-arch: commands for authors of descriptors. Each command is a file <command>.c. */
#include <string.h>

#include "common/process.h"
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
    {"embed", arch_embed, "writes a descriptor into a model"},
    {"list", arch_list, "prints the built-in descriptors"},
    {0}};
#define N_COMMANDS (sizeof commands / sizeof *commands - 1)

static size_t edits(const char *name, size_t i_command) {
    const char *command = commands[i_command].name;
    return args_distance(name, strlen(name), command, strlen(command));
}

static int unknown(const char *name) {
    size_t best = 0;
    for (size_t i = 1; i < N_COMMANDS; i++)
        if (edits(name, i) < edits(name, best))
            best = i;
    if (edits(name, best) > strlen(name) / 3 + 1) /* not a likely misspelling */
        return tool_error_about("llm-arch", 2,
                                "there is no command '%s'; llm-arch --help lists them", name);
    return tool_error_about(
        "llm-arch", 2, "there is no command '%s' (did you mean '%s'?); llm-arch --help lists them",
        name, commands[best].name);
}

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
    process_begin();
    if (argc < 2)
        return tool_error("llm-arch", 2,
                          "a command is missing; usage: llm-arch COMMAND ..; --help lists them");
    const args_command *c = args_find_command(commands, argv[1]);
    if (c)
        return tool_finish("llm-arch", c->run(argc - 1, argv + 1));
    return argv[1][0] == '-' ? args_parse(&spec, argc, argv) : unknown(argv[1]);
}
