/* Opens the socket that the server listens on. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "http_impl.h"
#include "ggl/internal/os_fs.h"

enum { BACKLOG = 1024 };

static ggl_status cannot_listen(const http_params *p, int error, ggl_error *err) {
    if (error == EADDRINUSE)
        return ggl_fail(err, GGL_IO,
                        "%s port %d is in use by another program; --port sets another one, 0 any "
                        "free one",
                        p->host, p->port);
    if (error == EACCES)
        return ggl_fail(err, GGL_IO,
                        "port %d is for privileged programs only; --port 8080 needs no privilege",
                        p->port);
    if (error == EADDRNOTAVAIL)
        return ggl_fail(
            err, GGL_IO,
            "%s is not an address of this machine; --host 0.0.0.0 listens on all of them", p->host);
    return ggl_fail(err, GGL_IO, "cannot listen on %s port %d: %s", p->host, p->port,
                    strerror(error));
}

/* --- TCP -------------------------------------------------------------------------------------- */

/* Returns a listening socket; -1: see errno. */
static int listen_on(const struct addrinfo *a) {
    const int yes = 1, no = 0;
    const int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (a->ai_family == AF_INET6) /* "::" is for both families */
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* Sets the port, and whether only this machine can connect. */
static void look_at_address(http_server *s) {
    struct sockaddr_storage a = {0};
    socklen_t n = sizeof a;
    if (getsockname(s->listens, (struct sockaddr *)&a, &n) != 0)
        return;
    if (a.ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)&a;
        s->port = ntohs(v4->sin_port);
        s->is_loopback = ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    } else if (a.ss_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&a;
        s->port = ntohs(v6->sin6_port);
        s->is_loopback = IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
    }
}

static ggl_status listen_tcp(http_server *s, ggl_error *err) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    char port[16];
    snprintf(port, sizeof port, "%d", s->p.port);
    const int bad = getaddrinfo(s->p.host, port, &hints, &found);
    if (bad)
        return ggl_fail(err, GGL_IO, "the host \"%s\" is not known: %s", s->p.host,
                        gai_strerror(bad));
    int error = EADDRNOTAVAIL;
    for (const struct addrinfo *a = found; a && s->listens < 0; a = a->ai_next) {
        s->listens = listen_on(a);
        if (s->listens < 0 && error == EADDRNOTAVAIL)
            error = errno;
    }
    freeaddrinfo(found);
    if (s->listens < 0)
        return cannot_listen(&s->p, error, err);
    look_at_address(s);
    return GGL_OK;
}

/* --- Unix sockets ----------------------------------------------------------------------------- */

/* Removes a socket on which nobody listens: its server ended without doing so. */
static ggl_status remove_old(const struct sockaddr_un *a, ggl_error *err) {
    os_stat st;
    if (!ggl_os_stat_link(a->sun_path, &st))
        return GGL_OK;
    if (st.kind != OS_SOCKET)
        return ggl_fail(err, GGL_IO, "%s exists, and is not a socket", a->sun_path);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool is_used =
        fd < 0 || connect(fd, (const struct sockaddr *)a, sizeof *a) == 0 || errno != ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    if (is_used)
        return ggl_fail(err, GGL_IO, "the socket %s is in use by another program", a->sun_path);
    (void)unlink(a->sun_path);
    return GGL_OK;
}

static ggl_status listen_unix(http_server *s, ggl_error *err) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    const size_t n = strlen(s->p.host);
    if (n >= sizeof a.sun_path)
        return ggl_fail(err, GGL_IO,
                        "the socket's path has %zu bytes, at most %zu are possible: %s", n,
                        sizeof a.sun_path - 1, s->p.host);
    memcpy(a.sun_path, s->p.host, n);
    const ggl_status st = remove_old(&a, err);
    if (st != GGL_OK)
        return st;
    s->listens = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->listens < 0 || bind(s->listens, (const struct sockaddr *)&a, sizeof a) != 0)
        return ggl_fail(err, GGL_IO, "cannot make the socket %s: %s", a.sun_path, strerror(errno));
    memcpy(s->unix_path, a.sun_path, n + 1);
    if (listen(s->listens, BACKLOG) != 0)
        return ggl_fail(err, GGL_IO, "cannot listen on %s: %s", a.sun_path, strerror(errno));
    return GGL_OK;
}

ggl_status http_listen(http_server *s, ggl_error *err) {
    return *s->p.host == '/' ? listen_unix(s, err) : listen_tcp(s, err);
}
