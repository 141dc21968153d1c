/* ggl_prefer_huge_pages of ggl/alloc.h, for POSIX. */
#include <stdint.h>
#include <sys/mman.h>

#include "ggl/internal/alloc.h"

/* The usual size of a huge page. Partial ones at both ends stay in small pages. */
#define HUGE_PAGE ((uintptr_t)2 << 20)

void ggl_prefer_huge_pages(void *p, size_t size) {
#ifdef MADV_HUGEPAGE
    uintptr_t first = ((uintptr_t)p + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1),
              end = ((uintptr_t)p + size) & ~(HUGE_PAGE - 1);
    if (end > first)
        (void)madvise((void *)first, end - first, MADV_HUGEPAGE);
#else
    (void)p;
    (void)size;
#endif
}
