/* os_socket.h for POSIX. */
#include "ggl/internal/os_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#ifdef MSG_NOSIGNAL
enum { QUIETLY = MSG_NOSIGNAL };
#else
enum { QUIETLY = 0 };
#endif

bool ggl_os_sockets_begin(void) {
    return true;
}

/* Returns a socket that no other program gets. */
static int open_socket(int family, int kind) {
#ifdef SOCK_CLOEXEC /* at once: another thread may start a program meanwhile */
    return socket(family, kind | SOCK_CLOEXEC, 0);
#else
    const int fd = socket(family, kind, 0);
    if (fd >= 0)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
#endif
}

static int close_for(int fd) { /* keeps errno, and returns -1 */
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

os_bound ggl_os_try_to_bind(const struct sockaddr *a, socklen_t n) {
    const int fd = open_socket(a->sa_family, SOCK_DGRAM);
    if (fd < 0)
        return errno == EAFNOSUPPORT ? OS_NO_FAMILY : OS_BIND_FAILED;
    const os_bound is = bind(fd, a, n) == 0      ? OS_BOUND
                        : errno == EADDRNOTAVAIL ? OS_NOT_HERE
                                                 : OS_BIND_FAILED;
    close(fd);
    return is;
}

os_socket ggl_os_listen(const struct sockaddr *a, socklen_t n, int backlog) {
    const int yes = 1, no = 0, fd = open_socket(a->sa_family, SOCK_STREAM);
    if (fd < 0)
        return OS_NO_SOCKET;
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    if (a->sa_family != AF_UNIX)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (a->sa_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    return bind(fd, a, n) == 0 && listen(fd, backlog) == 0 ? fd : close_for(fd);
}

/* Some systems shut no socket that listens (macOS). */
void ggl_os_listen_end(os_socket *s) {
    if (shutdown((int)*s, SHUT_RDWR) == 0)
        return;
    close((int)*s);
    *s = OS_NO_SOCKET;
}

void ggl_os_socket_close(os_socket s) {
    close((int)s);
}

void ggl_os_socket_shut(os_socket s, bool both) {
    (void)shutdown((int)s, both ? SHUT_RDWR : SHUT_WR);
}

bool ggl_os_socket_send(os_socket s, const void *from, size_t n) {
    return send((int)s, from, n, QUIETLY) == (ssize_t)n;
}

socklen_t ggl_os_unix_address(struct sockaddr_storage *a, const char *path, size_t *most) {
    struct sockaddr_un u = {.sun_family = AF_UNIX};
    const size_t n = strlen(path);
    *most = sizeof u.sun_path - 1;
    if (n > *most)
        return 0;
    memcpy(u.sun_path, path, n);
    memcpy(a, &u, sizeof u);
    return sizeof u;
}

bool ggl_os_is_left_behind(const struct sockaddr *a, socklen_t n) {
    const int fd = open_socket(a->sa_family, SOCK_STREAM);
    if (fd < 0)
        return false;
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    const bool is = connect(fd, a, n) != 0 && errno == ECONNREFUSED;
    close(fd);
    return is;
}
