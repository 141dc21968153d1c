/* llm-gguf: shows what is in a GGUF file, checks it, takes it apart and puts it together. Each command
 * is a file <command>.c. See docs/tools.md. */
#include <string.h>

#include "common/hints.h"
#include "common/process.h"
#include "ggl/internal/file.h"
#include "ggl/internal/nearest.h"
#include "tool.h"

static const args_command commands[] = {
    {"show", gguf_show, "prints keys, tensors and sizes; also: llm-gguf FILE"},
    {"check", gguf_check, "finds everything that is wrong with a file"},
    {"diff", gguf_diff, "compares the keys and tensors of two files"},
    {"hash", gguf_hash, "prints a digest of each tensor, or compares with such a list"},
    {"get", gguf_get, "prints the value of one key"},
    {"set", gguf_set, "changes or adds keys"},
    {"unset", gguf_unset, "removes keys"},
    {"extract", gguf_extract, "writes some tensors to another file"},
    {"split", gguf_split, "divides a model into several files"},
    {"merge", gguf_merge, "makes one file of a split model"},
    {0}};

/* A word that is neither a command nor a file. Returns the exit code. */
static int unknown(const char *word) {
    ggl_nearest near = ggl_nearest_to(word);
    for (const args_command *c = commands; c->name; c++)
        ggl_nearest_try(&near, c->name, SIZE_MAX);
    if (near.best)
        return tool_error_about(
            "llm-gguf", 2,
            "there is no command '%s' (did you mean '%s'?), and no file of that name", word,
            near.best);
    return tool_error_about("llm-gguf", 2,
                            "there is no command '%s', and no file of that name; "
                            "--help lists the commands",
                            word);
}

static bool may_be_file(const char *word) {
    return word[0] == '-' || strpbrk(word, "./") || ggl_file_exists(word);
}

/* True for --help and the like, and for flags of other programs, which are answered for the whole
 * tool. */
static bool is_of_tool(const char *word) {
    const size_t n = strcspn(word, "=");
    bool is = arg_find(args_built_in, word, n) != NULL;
    for (const arg_hint *h = gguf_hints; h->names && !is; h++)
        is = arg_is_among(h->names, word, n);
    return is;
}

int main(int argc, char **argv) {
    static const arg_option none[] = {{0}};
    static const args_example examples[] = {
        {"llm-gguf model.gguf", "what is in a model?"},
        {"llm-gguf check model.gguf", "is anything wrong with it?"},
        {"llm-gguf set model.gguf general.name=str:Mine", "changes a key in place"},
        {0}};
    static arg_list arguments;
    const args_spec spec = {"llm-gguf",
                            "COMMAND ..",
                            "Looks into GGUF files, checks and compares them, changes their keys, "
                            "takes them apart and puts them together. No command needs more than "
                            "some 50 MB of memory, however large the file is.",
                            none,
                            &arguments,
                            gguf_hints,
                            .examples = examples,
                            .commands = commands};
    process_begin();
    if (argc < 2)
        return tool_error(
            "llm-gguf", 2,
            "a command or a file is missing, as in: llm-gguf model.gguf; --help lists "
            "the commands");
    const args_command *c = args_find_command(commands, argv[1]);
    int code = 0;
    if (c)
        code = c->run(argc - 1, argv + 1);
    else if (is_of_tool(argv[1]))
        code = args_parse(&spec, argc, argv);
    else if (!may_be_file(argv[1]))
        code = unknown(argv[1]);
    else
        code = gguf_show(argc, argv);
    return tool_finish("llm-gguf", code);
}
