/* llm-arch list: lists descriptors. */
#include <stdio.h>
#include <string.h>

#include "tool.h"

#define TOOL "llm-arch list"

/* Prints the first sentence of the descriptor's first comment, which says what it is. */
static void print_about(const char *text, size_t n) {
    char about[400];
    size_t used = 0;
    const char *end = text + n;
    for (const char *s = text; s < end && *s == '#';) {
        const char *stop = memchr(s, '\n', (size_t)(end - s));
        stop = stop ? stop : end;
        if (stop - s > 2)
            used += (size_t)snprintf(about + used, sizeof about - used, "%.*s ",
                                     (int)(stop - s - 2), s + 2);
        used = used < sizeof about ? used : sizeof about - 1;
        s = stop + 1;
    }
    char *stop = used ? strstr(about, ". ") : NULL;
    if (stop)
        stop[1] = '\0';
    if (used) {
        printf("  ");
        tool_print_wrapped(about, 2, 2);
    }
}

static int print_builtin(const char *name, const char *text, size_t n) {
    llm_arch *arch;
    ggl_error err = {0};
    if (llm_arch_parse(&arch, text, n, name, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    const int at = printf("%-18s %4d lines  ", name, llm_arch_n_lines(arch));
    char families[80 * 64] = "";
    const char *family;
    for (int i = 0, used = 0; (family = llm_arch_family(arch, i)) && used < (int)sizeof families;
         i++)
        used += snprintf(families + used, sizeof families - (size_t)used, "%s%s", i ? ", " : "",
                         family);
    tool_print_wrapped(families, at, at);
    print_about(text, n);
    llm_arch_free(arch);
    return -1;
}

int arch_list(int argc, char **argv) {
    arg_list none = {0};
    static const args_example examples[] = {{"llm-arch list", "prints the built-in descriptors"},
                                            {0}};
    const args_spec spec = {TOOL,
                            "",
                            "Lists the built-in descriptors: file, lines, and the values of "
                            "general.architecture that each reads.",
                            NULL,
                            &none,
                            NULL,
                            .examples = examples};
    int code = arch_args(&spec, 0, 0, argc, argv);
    const char *name, *text;
    size_t n;
    for (int k = 0; code < 0 && llm_arch_builtin(k, &name, &text, &n); k++)
        code = print_builtin(name, text, n);
    args_list_fini(&none);
    return code < 0 ? 0 : code;
}
