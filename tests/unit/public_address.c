/* Which addresses a stranger may let a program ask, and what is asked of them. */
#include "hub/public.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ggl/alloc.h"
#include "hub/hub.h"
#include "test.h"

static bool is_public(const char *text) {
    struct sockaddr_in a = {.sin_family = AF_INET};
    struct sockaddr_in6 b = {.sin6_family = AF_INET6};
    if (inet_pton(AF_INET, text, &a.sin_addr) == 1)
        return llm_public_is((struct sockaddr *)&a);
    CHECK_MSG(inet_pton(AF_INET6, text, &b.sin6_addr) == 1, "%s", text);
    return llm_public_is((struct sockaddr *)&b);
}

TEST(addresses) {
    static const char *const open[] = {
        "1.1.1.1",         "8.8.8.8",       "9.255.255.255",   "11.0.0.0",
        "100.63.255.255",  "100.128.0.0",   "126.255.255.255", "128.0.0.0",
        "169.253.255.255", "169.255.0.0",   "172.15.255.255",  "172.32.0.0",
        "192.167.255.255", "192.169.0.0",   "198.17.255.255",  "198.20.0.0",
        "223.255.255.255", "168.63.129.15", "2600::1",         "2a00:1450:4001::1",
        "2606:4700::1111", "3ffe:ffff::1",  "2003::1"};
    static const char *const shut[] = {"0.0.0.0",
                                       "0.1.2.3",
                                       "10.0.0.1",
                                       "10.255.255.255",
                                       "100.64.0.1",
                                       "100.100.100.200",
                                       "127.0.0.1",
                                       "127.255.255.254",
                                       "169.254.169.254",
                                       "172.16.0.1",
                                       "172.31.255.255",
                                       "192.0.0.192",
                                       "192.0.2.1",
                                       "192.88.99.1",
                                       "192.168.1.1",
                                       "198.18.0.1",
                                       "198.51.100.7",
                                       "203.0.113.9",
                                       "224.0.0.1",
                                       "239.1.1.1",
                                       "240.0.0.1",
                                       "255.255.255.255",
                                       "168.63.129.16",
                                       "::",
                                       "::1",
                                       "::ffff:127.0.0.1",
                                       "::ffff:8.8.8.8",
                                       "::127.0.0.1",
                                       "64:ff9b::7f00:1",
                                       "100::1",
                                       "fc00::1",
                                       "fd00:ec2::254",
                                       "fe80::1",
                                       "fec0::1",
                                       "ff02::1",
                                       "2001::1",
                                       "2001:db8::1",
                                       "2002:7f00:1::",
                                       "3fff::1",
                                       "4000::1",
                                       "1fff::1"};
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        CHECK_MSG(is_public(open[i]), "%s is refused", open[i]);
    for (size_t i = 0; i < sizeof shut / sizeof *shut; i++)
        CHECK_MSG(!is_public(shut[i]), "%s is allowed", shut[i]);
    CHECK(!llm_public_is(&(struct sockaddr){.sa_family = AF_UNIX}));
}

static bool is_own(const char *text) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(80)};
    struct sockaddr_in6 b = {.sin6_family = AF_INET6, .sin6_port = htons(80)};
    if (inet_pton(AF_INET, text, &a.sin_addr) == 1)
        return llm_public_is_own((struct sockaddr *)&a, sizeof a);
    CHECK_MSG(inet_pton(AF_INET6, text, &b.sin6_addr) == 1, "%s", text);
    return llm_public_is_own((struct sockaddr *)&b, sizeof b);
}

/* What this machine has itself, it may reach behind its own firewall, although the address is a public one. */
TEST(addresses_of_this_machine) {
    CHECK(is_own("127.0.0.1"));
    CHECK(!is_own("8.8.8.8"));
    CHECK(!is_own("198.51.100.7"));
    CHECK(!is_own("2600::1"));
    CHECK(llm_public_is_own(&(struct sockaddr){.sa_family = AF_UNIX}, sizeof(struct sockaddr)));
}

/* True if the address is refused with these words, and before anything is asked. */
static bool refuses(const char *url, const char *words) {
    unsigned char *bytes = NULL;
    size_t n = 0;
    ggl_error err = {0};
    const hub_watch watch = {0};
    const ggl_status st = llm_hub_read_public(&bytes, &n, url, 100, &watch, &err);
    return (st != GGL_OK && !bytes && strstr(err.msg, words)) ||
           TEST_SAY("%s: '%s', not '%s'", url, err.msg, words);
}

TEST(hosts_of_ones_own) {
    static const char *const local[] = {"http://127.0.0.1/",
                                        "http://127.1/",
                                        "http://2130706433/",
                                        "http://0x7f000001/",
                                        "http://0177.0.0.1/",
                                        "http://localhost:8080/x.png",
                                        "https://10.0.0.1/",
                                        "http://[::1]/",
                                        "http://[::ffff:127.0.0.1]:80/a",
                                        "http://169.254.169.254/latest/meta-data/",
                                        "http://0/",
                                        "HTTPS://192.168.0.1:443?x",
                                        "http://[fe80::1]/"};
    static const char *const wrong[] = {"file:///etc/passwd",
                                        "ftp://example.org/",
                                        "example.org",
                                        "http://",
                                        "http:///x",
                                        "http://user@127.0.0.1/",
                                        "http://1.1.1.1@127.0.0.1/",
                                        "http://127.0.0.1\\@1.1.1.1/",
                                        "http://%31%32%37.0.0.1/",
                                        "http://1.1.1.1#@127.0.0.1/",
                                        "http://[::1/",
                                        "http://1.1.1.1:/",
                                        "http://1.1.1.1:123456/",
                                        "http://1.1.1.1:80x/",
                                        "http://ex ample.org/",
                                        "gopher://1.1.1.1/"};
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        CHECK(refuses(local[i], "not a public one"));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(refuses(wrong[i], "no address of the form"));
}

/* --- a server on this machine, which these tests allow ------------------------------------------ */

typedef struct site {
    int fd, port;
    pthread_t thread;
    int n_asked;
    char first[200]; /* line of the last request */
} site;

/* Answers by the path: /N is a file of N bytes, /to/URL a redirect there, /loop one to itself, anything else a 404. */
static void answer(site *s, int fd) {
    char line[4096], path[2000], out[4096];
    const ssize_t n = read(fd, line, sizeof line - 1);
    line[n > 0 ? n : 0] = '\0';
    s->n_asked++;
    snprintf(s->first, sizeof s->first, "%.*s", (int)strcspn(line, "\r\n"), line);
    if (sscanf(line, "GET %1999s", path) != 1)
        return;
    if (strncmp(path, "/to/", 4) == 0 || strcmp(path, "/loop") == 0) {
        snprintf(out, sizeof out,
                 "HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 4\r\n\r\nbody",
                 path[1] == 't' ? path + 4 : "/loop");
        (void)!write(fd, out, strlen(out));
    } else if (path[1] >= '0' && path[1] <= '9') {
        const int size = atoi(path + 1);
        snprintf(out, sizeof out, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
        (void)!write(fd, out, strlen(out));
        for (int i = 0; i < size; i++)
            if (write(fd, "x", 1) != 1)
                break;
    } else {
        (void)!write(fd, "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", 38);
    }
}

static void *serve(void *arg) {
    site *s = arg;
    for (int fd; (fd = accept(s->fd, NULL, NULL)) >= 0; close(fd))
        answer(s, fd);
    return NULL;
}

static bool open_site(site *s) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s->fd < 0 || bind(s->fd, (struct sockaddr *)&a, n) != 0 || listen(s->fd, 8) != 0 ||
        getsockname(s->fd, (struct sockaddr *)&a, &n) != 0)
        return false;
    s->port = ntohs(a.sin_port);
    return pthread_create(&s->thread, NULL, serve, s) == 0;
}

static void close_site(site *s) {
    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->fd);
}

static bool is_first(const struct sockaddr *a, socklen_t n) { /* 127.0.0.1, but not 127.0.0.2 */
    return n >= sizeof(struct sockaddr_in) && a->sa_family == AF_INET &&
           ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) == INADDR_LOOPBACK;
}

/* Reads http://127.0.0.1:PORT/PATH; *n: the bytes. */
static ggl_status read_site(const site *s, const char *path, size_t *n, ggl_error *err) {
    char url[2000];
    unsigned char *bytes;
    const hub_watch watch = {0};
    snprintf(url, sizeof url, "http://127.0.0.1:%d/%s", s->port, path);
    const public_request q = {.url = url, .n_most = 1000, .watch = &watch, .allows = is_first};
    *err = (ggl_error){0};
    const ggl_status st = llm_public_read(&bytes, n, &q, err);
    ggl_free(bytes);
    return st;
}

static bool is_public_address(const struct sockaddr *a, socklen_t n) {
    (void)n;
    return llm_public_is(a);
}

static bool always(void *ctx) {
    (void)ctx;
    return true;
}

TEST(what_is_asked) {
    site s = {0};
    ggl_error err = {0};
    size_t n = 0;
    char path[200];
    if (system("curl --version >/dev/null 2>&1") != 0)
        SKIP("the program curl is not installed (Debian: curl)");
    signal(SIGPIPE, SIG_IGN); /* curl leaves when it has seen enough */
    REQUIRE(open_site(&s));
    setenv("http_proxy", "http://127.0.0.1:1", 1); /* which is not used */
    CHECK_OK(read_site(&s, "700", &n, &err), &err);
    CHECK(n == 700);
    CHECK_STR(s.first, "GET /700 HTTP/1.1");
    CHECK_OK(read_site(&s, "1000", &n, &err), &err);
    CHECK(n == 1000);
    CHECK(read_site(&s, "1001", &n, &err) == GGL_LIMIT && n == 0);
    CHECK(read_site(&s, "none", &n, &err) == GGL_NOT_FOUND && strstr(err.msg, "status 404"));
    CHECK_OK(read_site(&s, "to//50", &n, &err), &err); /* within the host */
    CHECK(n == 50);
    snprintf(path, sizeof path, "to/http://127.0.0.1:%d/60", s.port);
    CHECK_OK(read_site(&s, path, &n, &err), &err);
    CHECK(n == 60);
    int before = s.n_asked;
    snprintf(path, sizeof path, "to/http://127.0.0.2:%d/60", s.port);
    CHECK(read_site(&s, path, &n, &err) == GGL_USAGE && strstr(err.msg, "not a public one"));
    CHECK(s.n_asked == before + 1);
    snprintf(path, sizeof path, "to///127.0.0.2:%d/60", s.port); /* without a scheme */
    CHECK(read_site(&s, path, &n, &err) == GGL_USAGE);
    CHECK(read_site(&s, "to/file:///etc/passwd", &n, &err) == GGL_USAGE);
    before = s.n_asked;
    CHECK(read_site(&s, "loop", &n, &err) == GGL_USAGE && strstr(err.msg, "too many redirects"));
    CHECK(s.n_asked == before + 4);
    /* a name: curl connects to the address that was checked */
    unsigned char *bytes;
    const hub_watch watch = {0}, stopped = {.stopped = always};
    snprintf(path, sizeof path, "http://localhost:%d/70", s.port);
    public_request q = {.url = path, .n_most = 1000, .watch = &watch, .allows = is_public_address};
    CHECK(llm_public_read(&bytes, &n, &q, &err) == GGL_USAGE);
    q.watch = &stopped;
    q.allows = is_first;
    snprintf(path, sizeof path, "http://127.0.0.1:%d/70", s.port);
    CHECK(llm_public_read(&bytes, &n, &q, &err) == GGL_CANCELLED && !bytes);
    setenv("PATH", "/none", 1);
    CHECK(read_site(&s, "700", &n, &err) == GGL_UNSUPPORTED && strstr(err.msg, "curl"));
    close_site(&s);
}
