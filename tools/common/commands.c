#include "commands.h"

#include <string.h>

#include "args.h"
#include "ggl/internal/file.h"
#include "process.h"

/* Reports a word that is no command, and, where a file may stand, no file either. Returns 2. */
static int unknown(const args_spec *spec, const char *word, bool or_file) {
    const char *near = args_near_command(spec->commands, word);
    char guess[64] = "";
    if (near)
        snprintf(guess, sizeof guess, " (did you mean '%s'?)", near);
    return tool_error_about(spec->tool, 2, "there is no command '%s'%s%s; %s --help lists them",
                            word, guess, or_file ? ", and no file of that name" : "", spec->tool);
}

/* True for --help and the like, and for flags of other programs, which are answered for the whole tool. */
static bool is_of_tool(const args_spec *spec, const char *word) {
    const size_t n = strcspn(word, "=");
    bool is = arg_find(args_built_in, word, n) != NULL;
    for (const arg_hint *h = NULL; !is && (h = arg_next_hint(spec, h));)
        is = arg_is_among(h->names, word, n);
    return is;
}

static int run(const args_spec *spec, int (*on_file)(int argc, char **argv), int argc,
               char **argv) {
    if (argc < 2)
        return tool_error(spec->tool, 2,
                          on_file ? "a command or a file is missing, as in: %s model.gguf; --help "
                                    "lists the commands"
                                  : "a command is missing; usage: %s COMMAND ..; --help lists them",
                          spec->tool);
    const char *word = argv[1];
    const args_command *c = args_find_command(spec->commands, word);
    if (c)
        return c->run(argc - 1, argv + 1);
    if (is_of_tool(spec, word) || (!on_file && *word == '-'))
        return args_parse(spec, argc, argv);
    if (on_file && (*word == '-' || strpbrk(word, "./") || ggl_file_exists(word)))
        return on_file(argc, argv);
    return unknown(spec, word, on_file != NULL);
}

int args_run_command(const args_spec *spec, int (*on_file)(int argc, char **argv), int argc,
                     char **argv) {
    process_begin(&argc, &argv);
    return tool_finish(spec->tool, run(spec, on_file, argc, argv));
}
