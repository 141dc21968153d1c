/* ggl_prefer_huge_pages of ggl/alloc.h: large pages take a privilege on Windows that few users have. */
#include "ggl/internal/alloc.h"

void ggl_prefer_huge_pages(void *p, size_t size) {
    (void)p, (void)size;
}
