/* os_socket.h for Windows. */
#include "ggl/internal/os_socket.h"

#include <errno.h>

bool ggl_os_sockets_begin(void) {
    WSADATA found;
    return WSAStartup(MAKEWORD(2, 2), &found) == 0; /* counted: more calls do no harm */
}

os_bound ggl_os_try_to_bind(const struct sockaddr *a, socklen_t n) {
    const SOCKET s = socket(a->sa_family, SOCK_DGRAM, 0);
    if (s == INVALID_SOCKET)
        return WSAGetLastError() == WSAEAFNOSUPPORT ? OS_NO_FAMILY : OS_BIND_FAILED;
    const os_bound is = bind(s, a, n) == 0                      ? OS_BOUND
                        : WSAGetLastError() == WSAEADDRNOTAVAIL ? OS_NOT_HERE
                                                                : OS_BIND_FAILED;
    closesocket(s);
    return is;
}

/* Sets errno to what the last call of the network says, and returns OS_NO_SOCKET. */
static os_socket failed(void) {
    static const struct {
        int theirs, ours;
    } of[] = {
        {WSAEADDRINUSE, EADDRINUSE},     {WSAEACCES, EACCES}, {WSAEADDRNOTAVAIL, EADDRNOTAVAIL},
        {WSAEAFNOSUPPORT, EAFNOSUPPORT}, {WSAEMFILE, EMFILE}, {WSAENOBUFS, ENOMEM}};
    const int error = WSAGetLastError();
    errno = EIO;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (of[i].theirs == error)
            errno = of[i].ours;
    return OS_NO_SOCKET;
}

static bool prepare(SOCKET s, int family) {
    u_long yes = 1;
    const DWORD no = 0, alone = 1;
    if (ioctlsocket(s, FIONBIO, &yes) != 0)
        return false;
    (void)SetHandleInformation((HANDLE)s, HANDLE_FLAG_INHERIT, 0);
    /* without it, another program could listen at the same address */
    (void)setsockopt(s, SOL_SOCKET, SO_EXCLUSIVEADDRUSE, (const char *)&alone, sizeof alone);
    if (family == AF_INET6)
        (void)setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, (const char *)&no, sizeof no);
    return true;
}

os_socket ggl_os_listen(const struct sockaddr *a, socklen_t n, int backlog) {
    const SOCKET s = socket(a->sa_family, SOCK_STREAM, 0);
    if (s == INVALID_SOCKET)
        return failed();
    if (prepare(s, a->sa_family) && bind(s, a, n) == 0 && listen(s, backlog) == 0)
        return (os_socket)s;
    (void)failed();
    closesocket(s);
    return OS_NO_SOCKET;
}

/* A socket that listens cannot be shut here: clients would wait until it is closed. */
void ggl_os_listen_end(os_socket *s) {
    closesocket((SOCKET)*s);
    *s = OS_NO_SOCKET;
}

void ggl_os_socket_close(os_socket s) {
    closesocket((SOCKET)s);
}

void ggl_os_socket_shut(os_socket s, bool both) {
    (void)shutdown((SOCKET)s, both ? SD_BOTH : SD_SEND);
}

bool ggl_os_socket_send(os_socket s, const void *from, size_t n) {
    return n <= INT32_MAX && send((SOCKET)s, from, (int)n, 0) == (int)n;
}

socklen_t ggl_os_unix_address(struct sockaddr_storage *a, const char *path, size_t *most) {
    (void)a;
    (void)path;
    *most = 0; /* Windows 10 has them, but wine 8, which runs the tests, does not */
    return 0;
}

bool ggl_os_is_left_behind(const struct sockaddr *a, socklen_t n) {
    (void)a;
    (void)n;
    return false;
}
