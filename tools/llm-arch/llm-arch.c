/* llm-arch: commands for authors of descriptors. Each command is a file <command>.c. */
#include <string.h>

#include "common/process.h"
#include "tool.h"

static const struct {
    const char *name;
    arch_command *run;
    const char *text;
} commands[] = {
    {"check", arch_check, "checks a descriptor, by itself or with a model"},
    {"verify", arch_verify, "compares a model, node by node, with double precision"},
    {"doctor", arch_doctor, "finds the reading of an architecture that the weights agree with"},
    {"graph", arch_graph, "prints the graph as text, DOT or SVG"},
    {"show", arch_show, "prints a model's hyperparameters, tensors, parameters and bytes"},
    {"diff", arch_diff, "compares two descriptors' graphs, or two models' keys and tensors"},
    {"init", arch_init, "starts a descriptor from a model's keys and tensors"},
    {"embed", arch_embed, "writes a descriptor into a model"},
    {"list", arch_list, "prints the built-in descriptors"},
};
#define N_COMMANDS (sizeof commands / sizeof *commands)

static void print_help(FILE *out) {
    fprintf(out, "usage: llm-arch COMMAND ..\nTools for writing architecture descriptors "
                 "(docs/architectures.md).\n\n");
    for (size_t i = 0; i < N_COMMANDS; i++)
        fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].text);
    fprintf(out, "\nFor the arguments of a command: llm-arch COMMAND --help\n");
}

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
        return tool_error("llm-arch", 2, "there is no command '%s'; llm-arch --help lists them",
                          name);
    return tool_error("llm-arch", 2,
                      "there is no command '%s' (did you mean '%s'?); llm-arch --help lists them",
                      name, commands[best].name);
}

int main(int argc, char **argv) {
    process_begin();
    if (argc < 2) {
        print_help(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help(stdout);
        return tool_finish("llm-arch", 0);
    }
    if (strcmp(argv[1], "--version") == 0) {
        static const arg_option none[] = {{0}};
        const args_spec spec = {"llm-arch", "COMMAND ..", "", none, NULL, NULL};
        return args_parse(&spec, argc, argv);
    }
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return tool_finish("llm-arch", commands[i].run(argc - 1, argv + 1));
    return unknown(argv[1]);
}
