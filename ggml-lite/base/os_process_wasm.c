/* os_process.h for WebAssembly: WASI has arguments, variables, random bytes and an end; no signals, and no other processes. */
#include "ggl/internal/os_process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

enum { PAGE = 65536 }; /* bytes of a page of WebAssembly's memory */

static const char *program = "";

long ggl_os_pid(void) {
    return 1;
}

bool ggl_os_program_path(char *out, size_t size) {
    return program[0] == '/' && snprintf(out, size, "%s", program) < (int)size;
}

const char *ggl_os_program_name(void) {
    const char *slash = strrchr(program, '/');
    return slash ? slash + 1 : program;
}

const char *ggl_os_home(void) {
    return getenv("HOME");
}

/* Relative paths begin in PWD, which whoever runs the program sets; WASI knows no current folder. */
void ggl_os_take_arguments(int *argc, char ***argv) {
    const char *folder = getenv("PWD");
    if (*argc > 0)
        program = (*argv)[0];
    if (folder)
        (void)!chdir(folder);
}

char **ggl_os_environment(void) {
    return environ;
}

void ggl_os_exit_now(int code) {
    _Exit(code);
}

/* Memory never shrinks. */
int64_t ggl_os_peak_memory(void) {
    return (int64_t)__builtin_wasm_memory_size(0) * PAGE;
}

bool ggl_os_random(void *to, size_t n) {
    enum { MOST = 256 }; /* of a call */
    for (size_t at = 0; at < n; at += MOST)
        if (getentropy((char *)to + at, n - at < MOST ? n - at : MOST) != 0)
            return false;
    return true;
}

/* --- the machine ------------------------------------------------------------------------------ */

size_t ggl_os_page_size(void) {
    return PAGE;
}

size_t ggl_os_last_cache(void) {
    return 0;
}

uint64_t ggl_os_memory(void) {
    return 0;
}

/* cmake/wasm.cmake limits a memory to 4 or 16 GiB, by the bits of addresses. Whether the machine has so much is not known. */
uint64_t ggl_os_memory_left(void) {
    const uint64_t most = (uint64_t)1 << (sizeof(void *) == 8 ? 34 : 32);
    return most - (uint64_t)__builtin_wasm_memory_size(0) * PAGE;
}

uint64_t ggl_os_limit_addresses(void) {
    return UINT64_MAX;
}

/* --- how it ends ------------------------------------------------------------------------------ */

void ggl_os_begin_streams(void) {}

void ggl_os_on_stop(void (*stop)(int number)) {
    (void)stop;
}

void ggl_os_hold_stops(bool holds) {
    (void)holds;
}

void ggl_os_end_by(int number) {
    ggl_os_exit_now(128 + number);
}

void ggl_os_on_lost_page(void (*lost)(const void *address)) {
    (void)lost;
}

void ggl_os_wait_for_end(void) {
    abort(); /* nobody would end it */
}

void ggl_os_signals_hold(os_signals *s) {
    *s = (os_signals){0};
}

void ggl_os_signals_release(const os_signals *s) {
    (void)s;
}

bool ggl_os_set_cpus(const uint64_t *set, size_t n) {
    (void)set, (void)n;
    errno = ENOSYS;
    return false;
}

bool ggl_os_set_priority(int priority) {
    (void)priority;
    errno = ENOSYS;
    return false;
}

uint64_t ggl_os_allow_files(uint64_t n) {
    (void)n;
    return UINT64_MAX;
}

uint64_t ggl_os_heap(void) {
    return 0;
}

/* Nothing can ring while the only thread waits. */
os_bell *ggl_os_bell_new(void) {
    errno = ENOSYS;
    return NULL;
}

void ggl_os_bell_free(os_bell *b) {
    (void)b;
}

void ggl_os_bell_ring(os_bell *b) {
    (void)b;
}

void ggl_os_bell_wait(os_bell *b, int ms) {
    (void)b, (void)ms;
}
