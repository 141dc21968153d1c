/* llm-bench: measures how fast models and servers run here, what the machine allows, and what
 * takes the time. */
#include <string.h>

#include "common/process.h"
#include "tool.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"conform", bench_conform},
    {"make", bench_make},
    {"ops", bench_ops},
    {"serve", bench_serve},
};

int main(int argc, char **argv) {
    process_begin();
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return tool_finish("llm-bench", commands[i].run(argc - 1, argv + 1));
    return tool_finish("llm-bench", bench_measure(argc, argv));
}
