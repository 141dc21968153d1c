/* Opens the socket that the server listens on. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "http_impl.h"
#include "ggl/internal/os_fs.h"

enum { BACKLOG = 1024 };

static ggl_status cannot_listen(const http_params *p, int error, ggl_error *err) {
    if (error == EADDRINUSE)
        return ggl_fail(err, GGL_IO,
                        "%s port %d is in use by another program; --port sets another one, 0 any "
                        "free one",
                        p->host, p->port);
    if (error == EACCES && p->port >= 1024) /* Windows keeps some */
        return ggl_fail(
            err, GGL_IO,
            "the system keeps port %d for itself; --port sets another one, 0 any free one",
            p->port);
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

/* Sets the port, and whether only this machine can connect. */
static void look_at_address(http_server *s) {
    struct sockaddr_storage a = {0};
    socklen_t n = sizeof a;
    if (getsockname((int)s->listens, (struct sockaddr *)&a, &n) != 0)
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
        s->listens = ggl_os_listen(a->ai_addr, (socklen_t)a->ai_addrlen, BACKLOG);
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
static ggl_status remove_old(const char *path, const struct sockaddr *a, socklen_t n,
                             ggl_error *err) {
    os_stat st;
    if (!ggl_os_stat_link(path, &st))
        return GGL_OK;
    if (st.kind != OS_SOCKET)
        return ggl_fail(err, GGL_IO, "%s exists, and is not a socket", path);
    if (!ggl_os_is_left_behind(a, n))
        return ggl_fail(err, GGL_IO, "the socket %s is in use by another program", path);
    (void)ggl_os_remove(path);
    return GGL_OK;
}

static ggl_status listen_unix(http_server *s, ggl_error *err) {
    const char *path = s->p.host;
    struct sockaddr_storage a = {0};
    size_t most;
    const socklen_t n = ggl_os_unix_address(&a, path, &most);
    if (n == 0 && most == 0)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "--host %s: llm-server has no sockets with the names of files on this "
                        "system; --host 127.0.0.1 is an address for this machine alone",
                        path);
    if (!ggl_os_is_absolute(path))
        return ggl_fail(err, GGL_USAGE,
                        "--host %s: the path of a socket must begin with '/'; an address of the "
                        "network has no '/'",
                        path);
    if (n == 0)
        return ggl_fail(err, GGL_IO,
                        "the socket's path has %zu bytes, at most %zu are possible: %s",
                        strlen(path), most, path);
    const ggl_status st = remove_old(path, (const struct sockaddr *)&a, n, err);
    if (st != GGL_OK)
        return st;
    s->listens = ggl_os_listen((const struct sockaddr *)&a, n, BACKLOG);
    if (s->listens < 0)
        return ggl_fail(err, GGL_IO, "cannot make the socket %s: %s", path, strerror(errno));
    s->has_name = true;
    return GGL_OK;
}

void http_unlisten(http_server *s) {
    if (s->has_name)
        (void)ggl_os_remove(s->p.host);
    s->has_name = false;
}

ggl_status http_listen(http_server *s, ggl_error *err) {
    if (!ggl_os_sockets_begin())
        return ggl_fail(err, GGL_IO, "this system has no network");
    const bool is_path = ggl_os_has_separator(s->p.host, strlen(s->p.host));
    return is_path ? listen_unix(s, err) : listen_tcp(s, err);
}
