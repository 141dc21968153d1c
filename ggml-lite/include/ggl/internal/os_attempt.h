/* An attempt: calls that can be left at once, from any depth, as setjmp() and longjmp() do it; WebAssembly has no such functions.
 * Memory that the calls in between have allocated stays allocated, and their locks stay locked.
 *
 * Threads: an attempt belongs to one. */
#ifndef GGL_INTERNAL_OS_ATTEMPT_H
#define GGL_INTERNAL_OS_ATTEMPT_H

#include <stdbool.h>

#ifdef __wasm__
typedef struct os_attempt {
    int none; /* the machine finds the way back by itself */
} os_attempt;
#else
#include <setjmp.h>

typedef struct os_attempt {
    jmp_buf back;
} os_attempt;
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Calls run(arg). Returns true when that returns, and false when it, or what it called, has abandoned the attempt. */
bool ggl_os_attempt(os_attempt *a, void (*run)(void *arg), void *arg);
/* Only while ggl_os_attempt runs with the same `a`, and no attempt that was begun later still runs. */
__attribute__((noreturn)) void ggl_os_abandon(os_attempt *a);

#ifdef __cplusplus
}
#endif

#endif
