/* See alloc_fail.h. The linker's --wrap=f turns calls of f into __wrap_f, and __real_f into f. */
#include "alloc_fail.h"
#include "seed.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

static atomic_long count;
static atomic_size_t bytes;
static atomic_long fail_at; /* the count whose allocation fails; 0: none */
static atomic_bool has_failed;

/* Counts one allocation of n bytes; true if it is the one to fail. */
static bool fails(size_t n_bytes) {
    atomic_fetch_add(&bytes, n_bytes);
    long n = atomic_fetch_add(&count, 1) + 1;
    if (n != atomic_load(&fail_at))
        return false;
    atomic_store(&has_failed, true);
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc(size_t n) {
    return fails(n) ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size) {
    return fails(n * size) ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n) {
    return fails(n) ? NULL : __real_realloc(p, n);
}

#ifndef _WIN32
void *__real_aligned_alloc(size_t align, size_t n);
int __real_posix_memalign(void **out, size_t align, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);
int __wrap_posix_memalign(void **out, size_t align, size_t n);

void *__wrap_aligned_alloc(size_t align, size_t n) {
    return fails(n) ? NULL : __real_aligned_alloc(align, n);
}

int __wrap_posix_memalign(void **out, size_t align, size_t n) {
    return fails(n) ? ENOMEM : __real_posix_memalign(out, align, n);
}
#endif

long alloc_count(void) {
    return atomic_load(&count);
}

size_t alloc_bytes(void) {
    return atomic_load(&bytes);
}

void alloc_fail_at(long k) {
    atomic_store(&has_failed, false);
    atomic_store(&fail_at, k > 0 ? atomic_load(&count) + k : 0);
}

bool alloc_has_failed(void) {
    return atomic_load(&has_failed);
}

long alloc_next(long k) {
    enum { FIRST = 100 }; /* allocations that fail every day */
    const long step = sample_is_all() ? 1 : 4;
    return k + 1 < FIRST    ? k + 1
           : k + 1 == FIRST ? FIRST + (long)sample_turn((uint64_t)step)
                            : k + step;
}

/* On Windows, calls of the system allocate, too, and some may fail without harm: a pool then has fewer threads, an old file's
 * remains stay. */
#ifdef _WIN32
enum { CALLS_ALLOCATE = 1 };
#else
enum { CALLS_ALLOCATE = 0 };
#endif

long alloc_fail_each(bool (*body)(void *arg), void *arg) {
    for (long k = 1;; k = alloc_next(k)) {
        alloc_fail_at(k);
        bool ok = body(arg);
        bool failed = alloc_has_failed();
        alloc_fail_at(0);
        if (ok ? failed && !CALLS_ALLOCATE : !failed)
            return -k;
        if (!failed)
            return k - 1;
    }
}
