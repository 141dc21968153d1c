/* Lists of numbers on a command line: "1,2,4", "1-4", "1-9+2", "1-64*2", joined by commas. */
#ifndef TOOLS_BENCH_LISTS_H
#define TOOLS_BENCH_LISTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bench_list {
    int64_t *v; /* free with free() */
    size_t n;
} bench_list;

/* Adds the numbers of the text, each from least to most. Returns NULL, or an error text. */
const char *bench_list_read(bench_list *list, const char *s, int64_t least, int64_t most);
/* Returns false if out of memory. */
bool bench_list_add(bench_list *list, int64_t x);

#endif
