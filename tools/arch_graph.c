#include "arch_tool.h"
int arch_graph(int argc, char **argv) { (void)argc; return tool_error(argv[0], 1, "not there yet"); }
