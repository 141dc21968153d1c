/* Collects the defects that opening a GGUF file reports (ggl_gguf_params.defect). */
#ifndef TESTS_GGUF_FOUND_H
#define TESTS_GGUF_FOUND_H

#include <stdio.h>
#include <string.h>

typedef struct gguf_found {
    char text[4096]; /* a line for each */
    int n;
} gguf_found;

static inline void gguf_on_defect(void *ctx, const char *text) {
    gguf_found *f = ctx;
    const size_t n = strlen(f->text);
    f->n++;
    snprintf(f->text + n, sizeof f->text - n, "%s\n", text);
}

#endif
