/* llm-bench: measures how fast models and servers run here, what the machine allows, and what
 * takes the time. */
#include "common/process.h"
#include "common/ranks.h"
#include "tool.h"

/* By name; ends with an empty row. */
static const args_command bench_commands[] = {
    {"conform", bench_conform, "compares the operators of backends with the reference"},
    {"make", bench_make, "writes a model with random weights"},
    {"ops", bench_ops, "times the kernels of the CPU"},
    {"serve", bench_serve, "measures a server that speaks OpenAI's API"},
    {0}};

int main(int argc, char **argv) {
    process_begin(&argc, &argv);
    const int rank = tool_join_job("llm-bench");
    if (rank >= 0)
        return rank;
    const args_command *c = argc > 1 ? args_find_command(bench_commands, argv[1]) : NULL;
    return tool_finish("llm-bench",
                       c ? c->run(argc - 1, argv + 1) : bench_measure(argc, argv, bench_commands));
}
