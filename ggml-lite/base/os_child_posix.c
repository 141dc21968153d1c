/* os_child.h for POSIX. */
#include "ggl/internal/os_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void close_fd(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Makes a pipe, of which the child gets one end; all other descriptors close in it. */
static bool make_pipe(int fd[2]) {
#ifdef __linux__ /* at once: another thread may start a program meanwhile */
    const bool made = pipe2(fd, O_CLOEXEC) == 0;
#else
    const bool made = pipe(fd) == 0 && fcntl(fd[0], F_SETFD, FD_CLOEXEC) == 0 &&
                      fcntl(fd[1], F_SETFD, FD_CLOEXEC) == 0;
#endif
    if (!made)
        fd[0] = fd[1] = -1;
    return made;
}

int ggl_os_child_start(os_child *c, const char *const argv[]) {
    int in[2] = {-1, -1}, out[2] = {-1, -1}, error[2] = {-1, -1};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t how;
    sigset_t none;
    pid_t pid = -1;
    *c = (os_child){-1, -1, -1, -1};
    int code = posix_spawn_file_actions_init(&actions);
    if (code)
        return code;
    code = posix_spawnattr_init(&how);
    if (code) {
        posix_spawn_file_actions_destroy(&actions);
        return code;
    }
    sigemptyset(&none); /* this thread may hold signals back, which are to end the child */
    code = posix_spawnattr_setsigmask(&how, &none);
    if (!code)
        code = posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK);
    if (!code && (!make_pipe(in) || !make_pipe(out) || !make_pipe(error)))
        code = errno;
    if (!code)
        code = posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    if (!code)
        code = posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    if (!code)
        code = posix_spawn_file_actions_adddup2(&actions, error[1], 2);
    if (!code)
        code = posix_spawnp(&pid, argv[0], &actions, &how, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&how);
    close_fd(&in[0]);
    close_fd(&out[1]);
    close_fd(&error[1]);
    if (code) {
        close_fd(&in[1]);
        close_fd(&out[0]);
        close_fd(&error[0]);
    }
    *c = (os_child){in[1], out[0], error[0], pid};
    return code;
}

/* The signal of a broken pipe would end the program that calls the library. It is held back in this thread, and taken away unless it was
 * waiting before. */
typedef struct no_sigpipe {
    sigset_t before;
    bool waits;
} no_sigpipe;

static sigset_t only_sigpipe(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    return set;
}

static no_sigpipe hold_sigpipe(void) {
    no_sigpipe h;
    sigset_t waiting;
    const sigset_t set = only_sigpipe();
    sigemptyset(&waiting);
    (void)sigpending(&waiting);
    h.waits = sigismember(&waiting, SIGPIPE) == 1;
    (void)pthread_sigmask(SIG_BLOCK, &set, &h.before);
    return h;
}

static void release_sigpipe(const no_sigpipe *h) {
    sigset_t waiting;
    const sigset_t set = only_sigpipe();
    int number;
    sigemptyset(&waiting);
    (void)sigpending(&waiting);
    if (!h->waits && sigismember(&waiting, SIGPIPE) == 1)
        (void)sigwait(&set, &number);
    (void)pthread_sigmask(SIG_SETMASK, &h->before, NULL);
}

void ggl_os_child_tell(os_child *c, const void *data, size_t n) {
    const char *p = data;
    const no_sigpipe held = hold_sigpipe();
    while (n > 0) {
        const ssize_t done = write(c->in, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            break;
        p += done;
        n -= (size_t)done;
    }
    close_fd(&c->in);
    release_sigpipe(&held);
}

int ggl_os_child_wait(int pipe, int ms) {
    struct pollfd ready = {.fd = pipe, .events = POLLIN};
    return poll(&ready, 1, ms);
}

void ggl_os_child_stop(os_child *c) {
    kill((pid_t)c->process, SIGTERM);
}

int ggl_os_child_end(os_child *c) {
    int status;
    close_fd(&c->in);
    close_fd(&c->out);
    close_fd(&c->error);
    while (waitpid((pid_t)c->process, &status, 0) < 0)
        if (errno != EINTR)
            return errno == ECHILD ? 0 : -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The shell starts the program and ends, so that nobody has to wait for it. xdg-open ends at once where it finds no browser
 * or no display: within a second, a failure is told from a browser that runs. */
bool ggl_os_open_page(const char *address) {
#ifdef __APPLE__
    static const char line[] = "open \"$1\"";
#else
    static const char line[] = "command -v xdg-open >/dev/null || exit 1\n"
                               "xdg-open \"$1\" </dev/null >/dev/null 2>&1 &\n"
                               "sleep 1\n"
                               "kill -0 $! 2>/dev/null || wait $!";
#endif
    os_child c;
    const char *const argv[] = {"sh", "-c", line, "sh", address, NULL};
    return ggl_os_child_start(&c, argv) == 0 && ggl_os_child_end(&c) == 0;
}
