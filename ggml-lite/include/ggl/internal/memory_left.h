/* How much memory this process can still take.
 *
 * Threads: any number may call these functions at the same time. */
#ifndef GGL_INTERNAL_MEMORY_LEFT_H
#define GGL_INTERNAL_MEMORY_LEFT_H

#include <stddef.h>

/* Returns the number of bytes that this process can still take: the smallest of the memory that the system has available, and
 * what the limits of the process's control groups leave (v1; v2, also that beyond which the system slows processes down,
 * memory.high). Returns 0 if nothing is known. Pages that only cache files count as available. root is "", or in tests a folder
 * that contains proc and sys. The environment variable GGL_MEMORY_LEFT, in bytes, replaces the measurement; tests set it. */
size_t ggl_memory_left(const char *root);

/* Returns how many bytes of addresses the limit of the process (ulimit -v) leaves. Mapped files have taken theirs. 0: there is
 * no limit. */
size_t ggl_memory_left_addresses(void);

#endif
