/* llm-arch compile: writes a model as tables in C, for boards without an operating system. */
#include <inttypes.h>
#include <string.h>

#include "common/cache_types.h"
#include "common/load.h"
#include "common/paths.h"
#include "llm/small.h"
#include "tool.h"

#define TOOL "llm-arch compile"

static void print_note(void *user, const char *text) {
    (void)user;
    tool_note(NULL, "%s", text);
}

static int write_plan(const char *model, const char *path, const llm_small_params *p) {
    ggl_error err = {0};
    llm_small_result r = {.size = sizeof r};
    const ggl_status st = llm_write_small(model, path, p, &r, &err);
    if (st != GGL_OK)
        return tool_error(TOOL, st == GGL_USAGE ? 2 : 1, "%s%s",
                          strncmp(err.msg, "type: ", 6) == 0 ? "--" : "", err.msg);
    if (tool_is_quiet())
        return 0;
    printf("%s, and its header %.*s.h: %" PRId64 " operators, a context of %" PRId64 " tokens\n"
           "flash   %9zu bytes of weights, %zu of the tokenizer, besides tables and code\n"
           "RAM     %9zu bytes, %zu of them for the context, besides a stack\n",
           path, (int)strlen(path) - 2, path, r.n_ops, r.n_ctx, r.weights, r.words, r.ram, r.cache);
    return 0;
}

int arch_compile(int argc, char **argv) {
    arg_list files = {0};
    const char *out = NULL;
    int64_t n_ctx = 0;
    int type_k = 0, type_v = 0, type = 0;
    llm_small_params p = {.size = sizeof p, .note = print_note};
    const arg_option options[] = {
        {"-o --output", ARG_STRING, &out, .value = "FILE",
         .help = "the C file to write, whose name ends with .c; a header with the same name is "
                 "written beside it"},
        {"-c --ctx-size", ARG_INT, &n_ctx, .value = "N",
         .help = "tokens of a text (default: those of the model's training)", .max = 1 << 20},
        {"-ctk --cache-type-k", ARG_CHOICE, &type_k, .value = "TYPE",
         .help = "type of the keys in the cache (default f16)", .choices = tool_cache_types},
        {"-ctv --cache-type-v", ARG_CHOICE, &type_v, .value = "TYPE",
         .help = "type of the values in the cache (default f16)", .choices = tool_cache_types},
        LOAD_TYPE_OPTION(type),
        {0}};
    static const args_example examples[] = {
        {"llm-arch compile builtin:stories -c 64 -o plan.c",
         "writes a model for a board, with a context of 64 tokens"},
        {0}};
    const args_spec spec = {TOOL,
                            "MODEL -o FILE.c [options]",
                            "Writes a model as tables in C, which the runtime in small/ runs on a "
                            "board without an operating\nsystem: docs/small.md.",
                            options,
                            &files,
                            NULL,
                            .examples = examples};
    int code = arch_args(&spec, 1, 1, argc, argv);
    if (code >= 0)
        return code;
    if (!out)
        code = tool_error(TOOL, 2, "-o FILE.c is missing: the C file to write");
    const tool_path paths[] = {{"MODEL", files.s[0], .written = false},
                               {"-o", out, .written = true}};
    if (code < 0)
        code = tool_check_paths(TOOL, paths, 2);
    p.n_ctx = n_ctx;
    p.cache_type_k = tool_cache_types[type_k];
    p.cache_type_v = tool_cache_types[type_v];
    p.type = type > 0 ? tool_load_types()[type] : NULL;
    if (code < 0)
        code = write_plan(files.s[0], out, &p);
    args_list_fini(&files);
    return code;
}
