#include "process.h"

#include <signal.h>
#include <stdlib.h>
#include <stdatomic.h>
#include <string.h>

#include "ggl/internal/file.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_process.h"
#include "ggl/internal/os_terminal.h"

/* --- standard streams and signals ------------------------------------------------------------- */

volatile sig_atomic_t process_stopped;
static volatile sig_atomic_t waits, erases, n_spared;
static void (*volatile hook_stops)(void), (*volatile hook_ends)(void);

static void on_stop(int number) {
    if (waits && !process_stopped) {
        process_stopped = number;
        if (hook_stops)
            hook_stops();
        return;
    }
    if (number == SIGINT && n_spared > 0) {
        n_spared--;
        return;
    }
    if (hook_ends)
        hook_ends();
    if (erases)
        (void)!ggl_os_write(OS_STDERR, "\r\033[K", 4);
    ggl_new_file_remove_all();
    ggl_os_end_by(number);
}

/* Appends s to buf; bytes that are not printable become question marks. */
static size_t append(char *buf, size_t size, size_t n, const char *s) {
    for (; *s && n < size; s++)
        buf[n++] = (unsigned char)*s < ' ' || *s == 0x7f ? '?' : *s;
    return n;
}

/* A page could not be read. If it is a mapped file's, says which one; the likely reason is that somebody has overwritten a model. Calls
 * async-signal-safe functions only. */
static void on_lost_page(const void *address) {
    static atomic_flag is_said = ATOMIC_FLAG_INIT;
    static const char why[] = " was changed or cut off while it was in use, or cannot be read any "
                              "more; start the program again\n";
    const char *file = ggl_file_at(address, NULL);
    char text[OS_MOST_PATH + 256];
    if (!file)
        return;
    if (atomic_flag_test_and_set(&is_said)) /* another thread has come upon it, too */
        ggl_os_wait_for_end();
    if (hook_ends)
        hook_ends();
    if (erases)
        (void)!ggl_os_write(OS_STDERR, "\r\033[K", 4);
    size_t n = append(text, OS_MOST_PATH, 0, ggl_os_program_name());
    n = append(text, OS_MOST_PATH, n, ": ");
    n = append(text, OS_MOST_PATH, n, file);
    memcpy(text + n, why, sizeof why - 1);
    (void)!ggl_os_write(OS_STDERR, text, n + sizeof why - 1);
    ggl_new_file_remove_all();
    ggl_os_exit_now(1);
}

bool process_is_stopped(void *unused) {
    (void)unused;
    return process_stopped != 0;
}

void process_spare(int n) {
    n_spared = n;
}

int process_spared(void) {
    return n_spared;
}

bool process_go_on(void) {
    if (process_stopped == SIGINT)
        process_stopped = 0;
    return process_stopped == 0;
}

void process_set_hooks(void (*stops)(void), void (*ends)(void)) {
    hook_stops = stops;
    hook_ends = ends;
}

void process_set_erases(bool does) {
    erases = does;
}

int process_stop_code(void) {
    return 128 + process_stopped;
}

static bool is_bare; /* it has no arguments */

bool process_was_clicked(void) {
    return is_bare && ggl_os_terminal_is_own();
}

static char **typed;

const char *process_typed(int i) {
    return typed ? typed[i] : NULL;
}

void process_begin(int *argc, char ***argv) {
    ggl_os_take_arguments(argc, argv);
    is_bare = *argc == 1;
    typed = *argv;
    ggl_os_begin_streams();
    ggl_os_on_stop(on_stop);
    ggl_os_on_lost_page(on_lost_page);
}

void process_wait_for_stop(void) {
    waits = 1;
}
