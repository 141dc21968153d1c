/* Large memory (ggl/internal/alloc.h), for POSIX. */
#include <stdint.h>
#include <sys/mman.h>

#include "ggl/internal/alloc.h"

/* Less than that is not worth pages of its own. */
enum { LARGE = 1 << 20 };

void *ggl_pages_calloc(size_t size) {
    if (size < LARGE)
        return ggl_aligned_calloc(64, size);
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void ggl_pages_free(void *p, size_t size) {
    if (size < LARGE)
        ggl_aligned_free(p);
    else if (p)
        (void)munmap(p, size);
}

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
