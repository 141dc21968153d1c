/* Which web sites may use the server through a visitor's browser. */
#include <stdio.h>
#include <string.h>

#include "ggl/internal/text.h"
#include "http_impl.h"

/* Copies the name or address of "name:port" or "[address]:port"; false: it is neither. */
static bool host_name(const char *host, char *name, size_t size) {
    const bool in_brackets = *host == '[';
    const char *begin = host + in_brackets;
    const size_t n = strcspn(begin, in_brackets ? "]" : ":");
    const char *rest = begin + n;
    if (n == 0 || n >= size || (in_brackets && *rest++ != ']'))
        return false;
    if (*rest && (*rest != ':' || rest[1 + strspn(rest + 1, "0123456789")]))
        return false;
    memcpy(name, begin, n);
    name[n] = '\0';
    return true;
}

/* True for an address, localhost and its subdomains: no site can make these mean this machine. */
static bool host_is_safe(const char *host) {
    static const char local[] = "localhost";
    char name[256];
    struct in6_addr address;
    if (!host_name(host, name, sizeof name))
        return false;
    if (inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1)
        return true;
    const size_t n = strlen(name), n_local = sizeof local - 1;
    return n >= n_local && ggl_case_compare(name + n - n_local, local) == 0 &&
           (n == n_local || name[n - n_local - 1] == '.');
}

const char *http_after_scheme(const char *uri) {
    if (ggl_case_compare_n(uri, "http://", 7) == 0)
        return uri + 7;
    return ggl_case_compare_n(uri, "https://", 8) == 0 ? uri + 8 : NULL;
}

/* True for a page that this machine serves, on any port. */
static bool origin_is_local(const char *origin) {
    static const char *const local[] = {"localhost", "127.0.0.1", "::1"};
    const char *host = http_after_scheme(origin);
    char name[256];
    for (size_t i = 0; host && i < sizeof local / sizeof *local; i++)
        if (host_name(host, name, sizeof name) && ggl_case_compare(name, local[i]) == 0)
            return true;
    return false;
}

bool http_origin_is_allowed(const http_params *p, const char *origin) {
    for (size_t i = 0; i < p->n_origins; i++)
        if (strcmp(p->origins[i], "*") == 0 || ggl_case_compare(p->origins[i], origin) == 0 ||
            (strcmp(p->origins[i], "localhost") == 0 && origin_is_local(origin)))
            return true;
    return false;
}

/* True if an allowed origin has this host. */
static bool host_is_listed(const http_params *p, const char *host) {
    for (size_t i = 0; i < p->n_origins; i++) {
        const char *listed = http_after_scheme(p->origins[i]);
        if (strcmp(p->origins[i], "*") == 0 || (listed && ggl_case_compare(listed, host) == 0))
            return true;
    }
    return false;
}

const char *http_guard(const http_server *s, const char *host, const char *origin, char *buf,
                       size_t size) {
    const http_params *p = &s->p;
    if (s->is_loopback && host && !host_is_safe(host) && !host_is_listed(p, host)) {
        snprintf(buf, size,
                 "the host name \"%.100s\" is not allowed on a local address; use 127.0.0.1 or "
                 "localhost, or start the server with --cors http://%.100s",
                 host, host);
        return buf;
    }
    if (!origin || http_origin_is_allowed(p, origin))
        return NULL;
    const char *from = http_after_scheme(origin);
    if (from && host && ggl_case_compare(from, host) == 0)
        return NULL;
    snprintf(buf, size,
             "the web site \"%.100s\" is not allowed to use this server; --cors %.100s allows it",
             origin, origin);
    return buf;
}
