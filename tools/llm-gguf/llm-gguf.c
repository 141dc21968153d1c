/* llm-gguf: shows what is in a GGUF file, checks it, takes it apart and puts it together. Each command
 * is a file <command>.c. See docs/tools.md. */
#include "common/commands.h"
#include "common/hints.h"
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
                            &gguf_hints,
                            .examples = examples,
                            .commands = commands};
    return args_run_command(&spec, gguf_show, argc, argv);
}
