/* os_socket.h for systems without a network. */
#include "ggl/internal/os_socket.h"

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
