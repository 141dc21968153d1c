/* ggl_prefer_huge_pages of ggl/alloc.h: WebAssembly has none, and on Windows they take a privilege that few users have. */
#include "ggl/internal/alloc.h"

void ggl_prefer_huge_pages(void *p, size_t size) {
    (void)p, (void)size;
}
