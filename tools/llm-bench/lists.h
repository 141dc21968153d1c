/* Lists of numbers on a command line: "1,2,4", "1-4", "1-9+2", "1-64*2", joined by commas. */
#ifndef TOOLS_BENCH_LISTS_H
#define TOOLS_BENCH_LISTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bench_list {
    int64_t *v; /* free() */
    size_t n;
} bench_list;

/* Adds what s says, each least .. most. NULL, or what is wrong with it. */
const char *bench_list_read(bench_list *list, const char *s, int64_t least, int64_t most);
/* false: out of memory. */
bool bench_list_add(bench_list *list, int64_t x);

#endif
