/* A program that links the models' library: it parses every built-in descriptor. */
#include <stdio.h>

#include "llm/arch.h"

int main(void) {
    const char *name, *text;
    size_t size;
    int n = 0;
    for (; llm_arch_builtin(n, &name, &text, &size); n++) {
        ggl_error err;
        llm_arch *arch;
        if (llm_arch_parse(&arch, text, size, name, &err) != GGL_OK) {
            fprintf(stderr, "%s\n", err.msg);
            return 1;
        }
        llm_arch_free(arch);
    }
    printf("%d descriptors\n", n);
    return n < 2;
}
