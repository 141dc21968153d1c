/* os_socket.h for POSIX. */
#include "ggl/internal/os_socket.h"

#include <errno.h>
#include <unistd.h>

bool ggl_os_sockets_begin(void) {
    return true;
}

os_bound ggl_os_try_to_bind(const struct sockaddr *a, socklen_t n) {
#ifdef SOCK_CLOEXEC
    const int fd = socket(a->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
#else
    const int fd = socket(a->sa_family, SOCK_DGRAM, 0);
#endif
    if (fd < 0)
        return errno == EAFNOSUPPORT ? OS_NO_FAMILY : OS_BIND_FAILED;
    const os_bound is = bind(fd, a, n) == 0      ? OS_BOUND
                        : errno == EADDRNOTAVAIL ? OS_NOT_HERE
                                                 : OS_BIND_FAILED;
    close(fd);
    return is;
}
