/* Work that several threads of the host share. */
#ifndef VULKAN_THREADS_H
#define VULKAN_THREADS_H

#include <stdint.h>

/* Calls f(ctx) in this thread, and in as many others as there are processors for n pieces of work and as can be
 * started. Each call takes pieces until none is left. Returns when all have returned. */
void ggl_vk_in_threads(void *(*f)(void *), void *ctx, int64_t n);

#endif
