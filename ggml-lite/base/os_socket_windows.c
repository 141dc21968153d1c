/* os_socket.h for Windows. */
#include "ggl/internal/os_socket.h"

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
