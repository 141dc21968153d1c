/* Reads what is at addresses that strangers give. */
#ifndef HUB_PUBLIC_H
#define HUB_PUBLIC_H

#include <stddef.h>

#include "ggl/internal/os_socket.h"
#include "watch.h"

/* True for an address of the internet that is one host's: not of this machine, a local network, a link, a group, documentation, or a tunnel whose other
 * end may be one of these, nor of a cloud's own services. */
bool llm_public_is(const struct sockaddr *a);
/* True for an address that this machine has itself, or if nobody knows. Of a public one, services that a firewall hides from the internet answer
 * to the machine. It is told by whether a socket can be bound to it. */
bool llm_public_is_own(const struct sockaddr *a, socklen_t n);

typedef struct public_request {
    const char *url;
    size_t n_most;
    const hub_watch *watch;
    bool (*allows)(const struct sockaddr *a, socklen_t n); /* of the hub's, or a test's */
} public_request;

/* As llm_hub_read_public. */
GGL_NODISCARD ggl_status llm_public_read(unsigned char **bytes, size_t *n, const public_request *q,
                                         ggl_error *err);

#endif
