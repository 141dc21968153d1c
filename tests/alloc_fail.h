/* Counts allocations, and fails the k-th, in all threads together. For programs that ggl_test(..
 * COUNT_ALLOCATIONS) links: the linker sends their malloc, calloc, realloc, aligned_alloc and
 * posix_memalign here first. What libc itself allocates (strdup, fopen, threads' stacks) is not
 * seen. */
#ifndef ALLOC_FAIL_H
#define ALLOC_FAIL_H

#include <stdbool.h>
#include <stddef.h>

/* Allocations requested since the program began, including those that failed. */
long alloc_count(void);
/* Their bytes, of all together: no less than was ever in use at once. */
size_t alloc_bytes(void);

/* The k-th allocation from now on fails, once (k = 1: the next); 0: none will. */
void alloc_fail_at(long k);

/* Whether it has failed by now. */
bool alloc_has_failed(void);

/* The allocation to fail after the k-th: the next one, but of those after the first hundred one in four each day, another one
 * tomorrow; all if GGL_TEST_LONG is set. */
long alloc_next(long k);

/* Runs `body(arg)`, which must clean up after itself, with its k-th allocation failing, for k = 1 and those that alloc_next
 * says, until it gets by without a failure. body returns whether it succeeded. Returns the number of its allocations, up to
 * three too many, or -k if body claims success although its k-th allocation failed, or
 * fails although none did. Leaks are the address sanitizer's to find. */
long alloc_fail_each(bool (*body)(void *arg), void *arg);

/* Instructions that a backend tries when it is opened, and does without if there is no memory for that: a mask for bodies that open one. */
#define ALLOC_TRIED "avx512bf16,amx,sve,smmla,sme"

/* For tests whose body opens a backend. */
#ifdef __GLIBC__
#define ALLOC_SKIP_OPENING()
#else
#define ALLOC_SKIP_OPENING()                                                                       \
    SKIP("CPU_ALLOC of this C library is counted, and without its sets a backend opens, too")
#endif

#endif
