/* How much memory this process can still take. */
#ifndef TOOLS_MEMORY_LEFT_H
#define TOOLS_MEMORY_LEFT_H

#include <stddef.h>

/* Returns the least of what the system has available, what the process's control groups (v1 and v2) and its limit
 * of addresses (ulimit -v) leave. 0: not known. Pages that only cache files count as available. root: "", or for tests a
 * folder that has proc and sys; then there is no limit of addresses. The environment variable GGL_MEMORY_LEFT, in bytes, replaces
 * what is measured; tests set it. */
size_t memory_left(const char *root);

#endif
