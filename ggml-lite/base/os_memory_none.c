/* Large memory (ggl/internal/alloc.h): WebAssembly has no huge pages, and on Windows they take a privilege that few users have, and large memory is
 * given back by free. */
#include "ggl/internal/alloc.h"

void *ggl_pages_calloc(size_t size) {
    return ggl_aligned_calloc(64, size);
}

void ggl_pages_free(void *p, size_t size) {
    (void)size;
    ggl_aligned_free(p);
}

void ggl_prefer_huge_pages(void *p, size_t size) {
    (void)p, (void)size;
}
