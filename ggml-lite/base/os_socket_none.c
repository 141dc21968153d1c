/* os_socket.h for systems without a network. */
#include "ggl/internal/os_socket.h"

#include <errno.h>
#include <stddef.h>

bool ggl_os_sockets_begin(void) {
    return false;
}

os_bound ggl_os_try_to_bind(const struct sockaddr *a, socklen_t n) {
    (void)a, (void)n;
    return OS_BIND_FAILED;
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **found) {
    (void)name, (void)service, (void)hints;
    *found = NULL;
    return EAI_FAIL;
}

void freeaddrinfo(struct addrinfo *a) {
    (void)a;
}

int getnameinfo(const struct sockaddr *a, socklen_t n, char *host, socklen_t n_host, char *service,
                socklen_t n_service, int flags) {
    (void)a, (void)n, (void)host, (void)n_host, (void)service, (void)n_service, (void)flags;
    return EAI_FAIL;
}

const char *gai_strerror(int code) {
    (void)code;
    return "this system has no network";
}

/* --- servers ---------------------------------------------------------------------------------- */

os_socket ggl_os_listen(const struct sockaddr *a, socklen_t n, int backlog) {
    (void)a, (void)n, (void)backlog;
    errno = EAFNOSUPPORT;
    return OS_NO_SOCKET;
}

socklen_t ggl_os_unix_address(struct sockaddr_storage *a, const char *path, size_t *most) {
    (void)a, (void)path;
    *most = 0;
    return 0;
}

bool ggl_os_is_left_behind(const struct sockaddr *a, socklen_t n) {
    (void)a, (void)n;
    return false;
}

/* These need a socket, and there is none, so nobody calls them. */
void ggl_os_listen_end(os_socket *s) {
    *s = OS_NO_SOCKET;
}

void ggl_os_socket_close(os_socket s) {
    (void)s;
}

void ggl_os_socket_shut(os_socket s, bool both) {
    (void)s, (void)both;
}

bool ggl_os_socket_send(os_socket s, const void *from, size_t n) {
    (void)s, (void)from, (void)n;
    return false;
}
