/* Hands out ranges of a line and takes them back: what plans a plan's arena. Best fit, neighbours
 * merge. */
#ifndef GGL_OFFSETS_H
#define GGL_OFFSETS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct offsets {
    struct gap {
        size_t at, size;
    } * gap; /* free ranges below end, ascending, never adjacent */
    size_t n, cap;
    size_t end; /* the most that was ever in use */
} offsets;

/* Ranges begin at multiples of 64. False: out of memory, or past SIZE_MAX. */
bool ggl_offsets_take(offsets *o, size_t size, size_t *at);
bool ggl_offsets_give(offsets *o, size_t at, size_t size);
void ggl_offsets_fini(offsets *o);

#endif
