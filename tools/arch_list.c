/* llm-arch list: the descriptors there are. */
#include <string.h>

#include "arch_tool.h"

#define TOOL "llm-arch list"

static int print_builtin(const char *name, const char *text, size_t n) {
    llm_arch *arch;
    ggl_error err = {0};
    if (llm_arch_parse(&arch, text, n, name, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    printf("%-18s %4d lines  ", name, llm_arch_n_lines(arch));
    const char *family;
    for (int i = 0; (family = llm_arch_family(arch, i)); i++)
        printf("%s%s", i ? ", " : "", family);
    if (text[0] == '#') { /* its first comment says what it is */
        const char *end = memchr(text, '\n', n);
        printf("   %.*s", (int)((end ? end : text + n) - text), text);
    }
    putchar('\n');
    llm_arch_free(arch);
    return -1;
}

int arch_list(int argc, char **argv) {
    arg_list none = {0};
    int code = arch_args(TOOL, "", "Lists the built-in descriptors: file, lines, and which values of general.architecture it reads.",
                         NULL, 0, 0, argc, argv, &none);
    const char *name, *text;
    size_t n;
    for (int k = 0; code < 0 && llm_arch_builtin(k, &name, &text, &n); k++)
        code = print_builtin(name, text, n);
    args_list_fini(&none);
    return code < 0 ? 0 : code;
}
