/* An allocator of offsets, which plans a program's arena: best fit; adjacent free ranges merge. No
 * memory is touched. */
#ifndef GGL_OFFSETS_H
#define GGL_OFFSETS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct offsets {
    struct gap {
        size_t at, size;
    } * gap; /* free ranges below end, ascending, never adjacent */
    size_t n, cap;
    size_t end; /* the size that the arena must have: the highest end of any range so far */
} offsets;

/* Takes a free range of `size` bytes and sets *at to its start, a multiple of 64. Returns false if
 * out of memory, or if the range would end past SIZE_MAX. */
bool ggl_offsets_take(offsets *o, size_t size, size_t *at);
/* Gives the range back that ggl_offsets_take returned for this size. Returns false if out of
 * memory. */
bool ggl_offsets_give(offsets *o, size_t at, size_t size);
void ggl_offsets_fini(offsets *o);

#endif
