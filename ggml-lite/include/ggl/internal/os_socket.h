/* The network: addresses and sockets. It brings the system's own declarations of struct sockaddr and getaddrinfo(), which are alike on all systems. What fails leaves its
 * reason in errno. Any thread may call this. */
#ifndef GGL_INTERNAL_OS_SOCKET_H
#define GGL_INTERNAL_OS_SOCKET_H

#ifdef _WIN32
/* in this order */
#include <winsock2.h>

#include <ws2tcpip.h>
#elif defined __wasi__
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* Declarations of <netdb.h>, which wasi-libc lacks. */
struct addrinfo {
    int ai_flags, ai_family, ai_socktype, ai_protocol;
    socklen_t ai_addrlen;
    struct sockaddr *ai_addr;
    char *ai_canonname;
    struct addrinfo *ai_next;
};
enum { EAI_FAIL = -4, AI_NUMERICSERV = 0x400, NI_NUMERICHOST = 1 };
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **found);
void freeaddrinfo(struct addrinfo *a);
int getnameinfo(const struct sockaddr *a, socklen_t n, char *host, socklen_t n_host, char *service,
                socklen_t n_service, int flags);
const char *gai_strerror(int code);
#else
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Before the first call of the network. */
bool ggl_os_sockets_begin(void);
typedef enum os_bound { OS_BOUND, OS_NOT_HERE, OS_NO_FAMILY, OS_BIND_FAILED } os_bound;
/* Says whether a socket for datagrams can be bound to the address: it cannot if this machine does not have the address (OS_NOT_HERE), or none of its kind. */
os_bound ggl_os_try_to_bind(const struct sockaddr *a, socklen_t n);

/* --- servers ---------------------------------------------------------------------------------- */

/* A socket as the system numbers it; negative: none. Calls do not wait, and other programs do not get it. */
typedef intptr_t os_socket;
enum { OS_NO_SOCKET = -1 };

/* Returns a socket that listens at the address, on which up to `backlog` clients wait to be accepted; an address of IPv6 that means all of the machine's means those
 * of IPv4, too. OS_NO_SOCKET: errno, as EADDRINUSE, EACCES (a port for privileged programs) or EADDRNOTAVAIL. */
os_socket ggl_os_listen(const struct sockaddr *a, socklen_t n, int backlog);
/* Refuses the clients that have not been accepted yet, and those that come later. A thread may wait for the socket meanwhile. Where a system can do this only by closing
 * the socket, *s becomes OS_NO_SOCKET. */
void ggl_os_listen_end(os_socket *s);
void ggl_os_socket_close(os_socket s);
/* Ends what the socket sends, and what it receives if `both` is set. It stays open. */
void ggl_os_socket_shut(os_socket s, bool both);
/* Returns true if all n bytes are on their way at once. */
bool ggl_os_socket_send(os_socket s, const void *from, size_t n);

/* Sets the address of a socket that has a name among files. Returns its size; 0: the path is too long (*most: bytes that are possible), or the system has none (*most: 0). */
socklen_t ggl_os_unix_address(struct sockaddr_storage *a, const char *path, size_t *most);
/* Returns true if the address is of a socket that nobody serves any more. */
bool ggl_os_is_left_behind(const struct sockaddr *a, socklen_t n);

#endif
