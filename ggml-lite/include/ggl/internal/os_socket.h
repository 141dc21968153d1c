/* Addresses of the network. It brings the system's own declarations of struct sockaddr and getaddrinfo(), which are alike on all systems. Any thread may call this. */
#ifndef GGL_INTERNAL_OS_SOCKET_H
#define GGL_INTERNAL_OS_SOCKET_H

#ifdef _WIN32
/* in this order */
#include <winsock2.h>

#include <ws2tcpip.h>
#else
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#endif
#include <stdbool.h>

/* Before the first call of the network. */
bool ggl_os_sockets_begin(void);
typedef enum os_bound { OS_BOUND, OS_NOT_HERE, OS_NO_FAMILY, OS_BIND_FAILED } os_bound;
/* Says whether a socket for datagrams can be bound to the address: it cannot if this machine does not have the address (OS_NOT_HERE), or none of its kind. */
os_bound ggl_os_try_to_bind(const struct sockaddr *a, socklen_t n);

#endif
