/* Addresses that strangers give: who asks a server to fetch a picture must not reach by it what only the server reaches. So a name is resolved
 * here, all of its addresses must be public, and curl is told which of them to connect to, whatever it would make of the name; each redirect
 * is taken as a new address. */
#include "public.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/text.h"
#include "hub.h"
#include "web.h"
#include "ggl/internal/os_socket.h"

enum { MOST_REDIRECTS = 3, MOST_HOST = 256, MOST_ENDPOINT = 80 };

/* --- addresses -------------------------------------------------------------------------------- */

typedef struct net4 {
    uint32_t begin;
    int bits;
} net4;

/* Of IPv4, what is not one host of the internet (the registry of special addresses of the IANA), and a service of Azure for its own machines. */
static const net4 special4[] = {
    {0x00000000, 8},  {0x0a000000, 8},  {0x64400000, 10}, {0x7f000000, 8},  {0xa9fe0000, 16},
    {0xac100000, 12}, {0xc0000000, 24}, {0xc0000200, 24}, {0xc01fc400, 24}, {0xc034c100, 24},
    {0xc0586300, 24}, {0xc0a80000, 16}, {0xc0af3000, 24}, {0xc6120000, 15}, {0xc6336400, 24},
    {0xcb007100, 24}, {0xe0000000, 3},  {0xa83f8110, 32}};

static bool is_public4(uint32_t a) {
    for (size_t i = 0; i < sizeof special4 / sizeof *special4; i++)
        if ((a ^ special4[i].begin) >> (32 - special4[i].bits) == 0)
            return false;
    return true;
}

typedef struct net6 {
    uint8_t begin[6];
    int bits;
} net6;

/* Within 2000::/3, which alone has hosts of the internet: protocols' own addresses (Teredo is one of them), documentation, and 6to4. */
static const net6 special6[] = {{{0x20, 0x01, 0x00}, 23},
                                {{0x20, 0x01, 0x0d, 0xb8}, 32},
                                {{0x20, 0x02}, 16},
                                {{0x3f, 0xff, 0x00}, 20},
                                {{0x26, 0x20, 0x00, 0x4f, 0x80, 0x00}, 48}};

static bool is_within(const uint8_t *a, const net6 *n) {
    for (int bit = 0; bit < n->bits; bit++)
        if ((a[bit / 8] ^ n->begin[bit / 8]) >> (7 - bit % 8) & 1)
            return false;
    return true;
}

static bool is_public6(const uint8_t a[16]) {
    for (size_t i = 0; i < sizeof special6 / sizeof *special6; i++)
        if (is_within(a, &special6[i]))
            return false;
    return a[0] >> 5 == 1;
}

bool llm_public_is(const struct sockaddr *a) {
    if (a->sa_family == AF_INET)
        return is_public4(ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr));
    return a->sa_family == AF_INET6 &&
           is_public6(((const struct sockaddr_in6 *)(const void *)a)->sin6_addr.s6_addr);
}

bool llm_public_is_own(const struct sockaddr *a, socklen_t n) {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } to = {0};
    if ((a->sa_family != AF_INET && a->sa_family != AF_INET6) || (size_t)n > sizeof to)
        return true;
    memcpy(&to, a, n);
    if (a->sa_family == AF_INET)
        to.v4.sin_port = 0;
    else
        to.v6.sin6_port = 0;
    const os_bound is =
        ggl_os_try_to_bind(&to.any, n); /* without a family, nothing can be asked there, either */
    return is != OS_NOT_HERE && is != OS_NO_FAMILY;
}

/* --- URLs ------------------------------------------------------------------------------------- */

/* A URL's parts. */
typedef struct place {
    bool secure;
    char host[MOST_HOST]; /* without brackets */
    char port[6];
    size_t n_origin; /* bytes of the URL before its path */
} place;

static ggl_status no_address(ggl_error *err) {
    return ggl_fail(
        err, GGL_USAGE,
        "it is no address of the form https://HOST/PATH, with a plain name or number as HOST");
}

/* Splits a URL. A host has letters, digits, '-' and '.', or is an IPv6 address in brackets: all else, such as users, is refused. */
static ggl_status split(place *p, const char *url, ggl_error *err) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
    static const char digits[] = "0123456789";
    const bool has_tls = ggl_case_compare_n(url, "https://", 8) == 0;
    if (!has_tls && ggl_case_compare_n(url, "http://", 7) != 0)
        return no_address(err);
    const char *s = url + 7 + has_tls;
    const bool in_brackets = *s == '[';
    s += in_brackets;
    const size_t n = strspn(s, in_brackets ? "0123456789abcdefABCDEF:." : plain);
    if (n == 0 || n >= MOST_HOST || (in_brackets && s[n] != ']'))
        return no_address(err);
    snprintf(p->host, sizeof p->host, "%.*s", (int)n, s);
    s += n + in_brackets;
    p->secure = has_tls;
    snprintf(p->port, sizeof p->port, "%s", has_tls ? "443" : "80");
    if (*s == ':') {
        const size_t n_port = strspn(++s, digits);
        if (n_port == 0 || n_port > 5)
            return no_address(err);
        snprintf(p->port, sizeof p->port, "%.*s", (int)n_port, s);
        s += n_port;
    }
    p->n_origin = (size_t)(s - url);
    return *s && *s != '/' && *s != '?' ? no_address(err) : GGL_OK;
}

/* Finds the address to connect to: "[ADDRESS]:PORT". */
static ggl_status resolve(const place *p, const public_request *q, char endpoint[MOST_ENDPOINT],
                          ggl_error *err) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    char text[INET6_ADDRSTRLEN];
    if (!ggl_os_sockets_begin() || getaddrinfo(p->host, p->port, &hints, &list) != 0)
        return ggl_fail(err, GGL_NOT_FOUND, "there is no host of that name");
    ggl_status st = list ? GGL_OK : ggl_fail(err, GGL_NOT_FOUND, "there is no host of that name");
    for (const struct addrinfo *a = list; a && st == GGL_OK; a = a->ai_next)
        if (!q->allows(a->ai_addr, a->ai_addrlen))
            st = ggl_fail(
                err, GGL_USAGE,
                "its host is not a public one: this server's own machine and networks are not "
                "asked");
    if (st == GGL_OK && getnameinfo(list->ai_addr, list->ai_addrlen, text, sizeof text, NULL, 0,
                                    NI_NUMERICHOST) != 0)
        st = ggl_fail(err, GGL_IO, "its host has no address");
    if (st == GGL_OK)
        snprintf(endpoint, MOST_ENDPOINT, list->ai_family == AF_INET6 ? "[%s]:%s" : "%s:%s", text,
                 p->port);
    if (list)
        freeaddrinfo(list);
    return st;
}

/* --- reading ---------------------------------------------------------------------------------- */

typedef struct public_bytes {
    unsigned char *s;
    size_t n, cap, n_most;
    bool too_long, failed;
} public_bytes;

static bool on_body(void *ctx, const web_answer *a, const char *data, size_t n) {
    public_bytes *b = ctx;
    b->too_long = n > b->n_most - b->n || (a->length >= 0 && (uint64_t)a->length > b->n_most);
    if (b->too_long)
        return false;
    b->failed = !ggl_grow(&b->s, &b->cap, b->n + n, 1);
    if (b->failed)
        return false;
    memcpy(b->s + b->n, data, n);
    b->n += n;
    return true;
}

/* Asks once. *url becomes where a redirect leads to, or "". */
static ggl_status ask(const public_request *q, char url[WEB_MOST_URL], web_answer *a,
                      public_bytes *b, ggl_error *err) {
    place p;
    char endpoint[MOST_ENDPOINT], next[WEB_MOST_URL];
    ggl_status st = split(&p, url, err);
    if (st == GGL_OK)
        st = resolve(&p, q, endpoint, err);
    if (st != GGL_OK)
        return st;
    const web_request w = {.url = url,
                           .hurry = true,
                           .connect_to = endpoint,
                           .body = on_body,
                           .ctx = b,
                           .watch = q->watch};
    st = llm_web_ask(&w, a, err);
    if (b->too_long)
        return ggl_fail(err, GGL_LIMIT, "it has more than %zu bytes", b->n_most);
    if (b->failed)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    if (st != GGL_OK)
        return st;
    const bool moves = a->status / 100 == 3 && *a->location;
    if (!moves && a->status != 200)
        return ggl_fail(err, GGL_NOT_FOUND, "its host answers with status %d", a->status);
    if (!moves) {
        *url = '\0';
        return GGL_OK;
    }
    const int n = a->location[0] == '/' && a->location[1] != '/'
                      ? snprintf(next, sizeof next, "%.*s%s", (int)p.n_origin, url, a->location)
                      : snprintf(next, sizeof next, "%s", a->location);
    if (n >= (int)sizeof next)
        return no_address(err);
    if (p.secure && ggl_case_compare_n(next, "https://", 8) != 0)
        return ggl_fail(err, GGL_USAGE,
                        "it leads from https to another address that is not of https");
    snprintf(url, WEB_MOST_URL, "%s", next);
    return GGL_OK;
}

ggl_status llm_public_read(unsigned char **bytes, size_t *n, const public_request *q,
                           ggl_error *err) {
    public_bytes b = {.n_most = q->n_most};
    char *url = malloc(WEB_MOST_URL);
    web_answer *a = malloc(sizeof *a);
    ggl_status st = url && a ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory");
    *bytes = NULL;
    *n = 0;
    if (st == GGL_OK && snprintf(url, WEB_MOST_URL, "%s", q->url) >= WEB_MOST_URL)
        st = no_address(err);
    for (int i = 0; st == GGL_OK && *url; i++)
        st = i > MOST_REDIRECTS ? ggl_fail(err, GGL_USAGE, "there are too many redirects")
                                : ask(q, url, a, &b, err);
    free(url);
    free(a);
    if (st == GGL_OK) {
        *bytes = b.s;
        *n = b.n;
        return st;
    }
    ggl_free(b.s);
    return st;
}

static bool is_elsewhere(const struct sockaddr *a, socklen_t n) {
    return llm_public_is(a) && !llm_public_is_own(a, n);
}

ggl_status llm_hub_read_public(unsigned char **bytes, size_t *n, const char *url, size_t n_most,
                               const hub_watch *watch, ggl_error *err) {
    const public_request q = {.url = url, .n_most = n_most, .watch = watch, .allows = is_elsewhere};
    return llm_public_read(bytes, n, &q, err);
}
