/* os_parts.h for Linux: mremap() moves filled pages over those of the file. Elsewhere no file can be claimed. */
#include "os_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ggl/alloc.h"
#include "ggl/internal/os_process.h"

struct os_parts {
    const char *data;
    size_t size;
    int fd;
    bool is_claimed;
    atomic_bool is_direct; /* reads go past the cache of files */
    os_parts *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list and is_claimed */
static os_parts *first;

bool ggl_os_parts_add(const void *data, size_t size, int fd) {
    os_parts *f = ggl_calloc(1, sizeof *f);
    if (!f)
        return false;
    f->data = data;
    f->size = size;
    f->fd = fd;
    pthread_mutex_lock(&lock);
    f->next = first;
    first = f;
    pthread_mutex_unlock(&lock);
    return true;
}

/* Returns where the list has the file around `data`, or its end. The lock is held. */
static os_parts **find(const void *data) {
    const char *p = data;
    os_parts **f = &first;
    while (*f && (p < (*f)->data || p >= (*f)->data + (*f)->size))
        f = &(*f)->next;
    return f;
}

void ggl_os_parts_remove(const void *data) {
    pthread_mutex_lock(&lock);
    os_parts **at = find(data), *f = *at;
    if (f)
        *at = f->next;
    pthread_mutex_unlock(&lock);
    if (f)
        close(f->fd);
    ggl_free(f);
}

void ggl_os_parts_drop(void *pages, size_t size) {
    pthread_mutex_lock(
        &lock); /* nobody claims the file meanwhile: parts in private memory would become zeros */
    const os_parts *f = *find(pages);
    if (!f || !f->is_claimed)
        (void)madvise(pages, size, MADV_DONTNEED); /* fails for locked pages, which stay */
    pthread_mutex_unlock(&lock);
}

void ggl_os_parts_alone(const void *at, size_t size, bool alone) {
    const uintptr_t from = (uintptr_t)at - (uintptr_t)at % ggl_os_page_size();
    (void)madvise((void *)from, (uintptr_t)at + size - from, alone ? MADV_RANDOM : MADV_NORMAL);
}

void ggl_os_parts_release(os_parts *f) {
    pthread_mutex_lock(&lock);
    f->is_claimed = false;
    pthread_mutex_unlock(&lock);
}

#if defined MREMAP_FIXED && defined O_DIRECT

/* Bytes of a huge page: memory whose address has the same remainder is moved as such. */
#define HUGE_PAGE ((uintptr_t)2 << 20)

os_parts *ggl_os_parts_claim(const void *data) {
    pthread_mutex_lock(&lock);
    os_parts *f = *find(data);
    /* locked pages refuse to be dropped, and are in memory anyway */
    const bool can =
        f && !f->is_claimed && madvise((void *)(uintptr_t)f->data, 1, MADV_DONTNEED) == 0;
    if (can)
        f->is_claimed = true;
    pthread_mutex_unlock(&lock);
    if (!can)
        return NULL;
    const int flags = fcntl(f->fd, F_GETFL);
    f->is_direct = flags >= 0 && fcntl(f->fd, F_SETFL, flags | O_DIRECT) == 0;
    return f;
}

/* The file system takes O_DIRECT, but not for these reads. */
static bool give_up_direct(os_parts *f) {
    const int flags = fcntl(f->fd, F_GETFL);
    f->is_direct = false;
    return flags >= 0 && fcntl(f->fd, F_SETFL, flags & ~O_DIRECT) == 0;
}

/* Reads the file from `offset` on. The pages of its end may be longer than the file; that rest stays zero. */
static bool read_all(os_parts *f, char *to, size_t size, size_t offset) {
    const size_t end = offset + size < f->size ? size : f->size - offset;
    for (size_t at = 0; at < end;) {
        const bool was_direct = f->is_direct; /* another thread may give that up meanwhile */
        const ssize_t got = pread(f->fd, to + at, size - at, (off_t)(offset + at));
        if (got > 0)
            at += (size_t)got;
        else if (got == 0 ||
                 (errno != EINTR && !(errno == EINVAL && was_direct && give_up_direct(f))))
            return false;
    }
    if (!f->is_direct)
        (void)posix_fadvise(f->fd, (off_t)offset, (off_t)size, POSIX_FADV_DONTNEED);
    return true;
}

/* Returns new memory whose address leaves the same remainder of a huge page as `at`; NULL if there is none. */
static char *memory_like(const void *at, size_t size) {
    char *all =
        mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        return NULL;
    const size_t skip = ((uintptr_t)at - (uintptr_t)all) & (HUGE_PAGE - 1);
    if (skip > 0)
        munmap(all, skip);
    munmap(all + skip + size, HUGE_PAGE - skip);
    (void)madvise(all + skip, size, MADV_HUGEPAGE);
    return all + skip;
}

bool ggl_os_part_fill(os_parts *f, const void *at, size_t size) {
    char *memory = memory_like(at, size);
    if (!memory)
        return false;
    const bool ok = read_all(f, memory, size, (size_t)((const char *)at - f->data)) &&
                    mprotect(memory, size, PROT_READ) == 0 &&
                    mremap(memory, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, at) != MAP_FAILED;
    if (!ok)
        munmap(memory, size);
    return ok;
}

void ggl_os_part_empty(os_parts *f, const void *at, size_t size) {
    const off_t offset = (off_t)((const char *)at - f->data);
    /* If this fails, the private memory stays, with the same bytes. */
    if (mmap((void *)(uintptr_t)at, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, f->fd, offset) !=
        MAP_FAILED)
        (void)posix_fadvise(f->fd, offset, (off_t)size, POSIX_FADV_DONTNEED);
}

#else

os_parts *ggl_os_parts_claim(const void *data) {
    (void)data;
    return NULL;
}

bool ggl_os_part_fill(os_parts *f, const void *at, size_t size) {
    (void)f, (void)at, (void)size;
    return false;
}

void ggl_os_part_empty(os_parts *f, const void *at, size_t size) {
    (void)f, (void)at, (void)size;
}

#endif
