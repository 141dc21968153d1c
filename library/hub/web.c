#include "web.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/text.h"
#include "ggl/version.h"
#include "ggl/internal/os_child.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_stream.h"

enum {
    MOST_TOKEN = 4096,
    MOST_LINE = WEB_MOST_URL + 64, /* of a header; the rest of a longer one is dropped */
    MOST_HEADERS = 1 << 20,        /* bytes of all headers, also those of redirects */
    PIECE = 1 << 16
};

/* --- the program ------------------------------------------------------------------------------ */

bool llm_web_has_control(const char *s) {
    for (; *s; s++)
        if ((unsigned char)*s < 32 || *s == 127)
            return true;
    return false;
}

/* Appends name = "value" to curl's configuration, whose strings know these two escapes. */
static void put_setting(FILE *to, const char *name, const char *head, const char *value) {
    fprintf(to, "%s = \"%s", name, head);
    for (; *value; value++)
        fprintf(to, *value == '"' || *value == '\\' ? "\\%c" : "%c", *value);
    fputs("\"\n", to);
}

/* Passes the URL and the token to curl on its standard input, so that they do not show in the list of processes. A curl that has ended already shows when
 * its answer is read. False: out of memory. */
static bool configure(os_child *c, const web_request *q) {
    os_memory_stream m;
    if (!ggl_os_memory_stream_open(&m))
        return false;
    put_setting(m.to, "url", "", q->url);
    if (q->token)
        put_setting(m.to, "header", "Authorization: Bearer ", q->token);
    if (q->offset > 0 && q->if_etag) {
        char quoted[sizeof((web_answer *)0)->etag + 2];
        snprintf(quoted, sizeof quoted, "\"%s\"", q->if_etag);
        put_setting(m.to, "header", "If-Range: ", quoted);
    }
    const bool good = ggl_os_memory_stream_close(&m);
    if (good)
        ggl_os_child_tell(c, m.text, m.n);
    free(m.text);
    return good;
}

static int start_curl(os_child *c, const web_request *q) {
    char offset[24], agent[64], connect[128];
    const bool secure = ggl_case_compare_n(q->url, "https:", 6) == 0;
    const char *argv[40];
    size_t n = 0;
    snprintf(agent, sizeof agent, "ggml-lite/%s", ggl_version());
    const char *const always[] = {"curl", "-q", "-sS", "-N", "-g", "--max-redirs", "5",
                                  "--suppress-connect-headers", "-A", agent, "--proto",
                                  "=https,http", "-K", "-",
                                  /* a connection on which nothing comes for a minute is dead */
                                  "--speed-limit", "1", "--speed-time", "60"};
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        argv[n++] = always[i];
    if (q->connect_to) {
        snprintf(connect, sizeof connect, "::%s", q->connect_to);
        argv[n++] = "--connect-to";
        argv[n++] = connect;
        argv[n++] = "--noproxy";
        argv[n++] = "*";
    } else {
        argv[n++] = "-L";
    }
    argv[n++] = "--proto-redir";
    argv[n++] = secure ? "=https" : "=https,http";
    argv[n++] = "--connect-timeout";
    argv[n++] = q->hurry ? "4" : "20";
    if (q->hurry) {
        argv[n++] = "--max-time";
        argv[n++] = "10";
    }
    if (q->offset > 0) {
        snprintf(offset, sizeof offset, "%llu", (unsigned long long)q->offset);
        argv[n++] = "-C";
        argv[n++] = offset;
    }
    argv[n++] = q->head ? "-I" : "-i";
    argv[n] = NULL;
    return ggl_os_child_start(c, argv);
}

/* --- the answer ------------------------------------------------------------------------------- */

typedef struct reader {
    const web_request *q;
    web_answer *a;
    bool in_body, moves; /* moves: this block of headers has a Location */
    bool begun;          /* the block's first line was read */
    bool broken, stopped;
    size_t n_headers, n_line;
    char line[MOST_LINE];
    char data[PIECE];
} reader;

/* Begins a new block of headers; what the redirect before it reported about the stored file stays. */
static void begin_block(reader *r, int status) {
    web_answer *a = r->a;
    a->status = status;
    a->length = a->retry_after = -1;
    a->etag[0] = a->modified[0] = a->code[0] = a->next[0] = a->location[0] = '\0';
    a->weak = false;
    r->moves = false;
    r->begun = true;
}

static int64_t number_of(const char *s) {
    char *end;
    errno = 0;
    const long long v = strtoll(s, &end, 10);
    return errno || end == s || *end || v < 0 ? -1 : v;
}

/* Copies an entity tag without W/ and quotes. */
static void copy_etag(char *to, size_t size, const char *s) {
    s += strncmp(s, "W/", 2) == 0 ? 2 : 0;
    s += *s == '"';
    snprintf(to, size, "%.*s", (int)strcspn(s, "\""), s);
}

/* Finds the link to the next page in "<URL>; rel="next", <URL>; rel="last"". */
static void read_link(web_answer *a, const char *s) {
    while ((s = strchr(s, '<'))) {
        const char *end = strchr(s, '>');
        if (!end)
            return;
        const size_t n = (size_t)(end - s - 1), n_rest = strcspn(end, "<");
        char rest[64];
        snprintf(rest, sizeof rest, "%.*s", (int)(n_rest < 63 ? n_rest : 63), end);
        if (strstr(rest, "rel=\"next\"") && n < sizeof a->next) {
            memcpy(a->next, s + 1, n);
            a->next[n] = '\0';
            return;
        }
        s = end;
    }
}

static void read_header(reader *r, const char *name, const char *value) {
    web_answer *a = r->a;
    if (ggl_case_compare(name, "Content-Length") == 0)
        a->length = number_of(value);
    else if (ggl_case_compare(name, "Retry-After") == 0)
        a->retry_after = number_of(value);
    else if (ggl_case_compare(name, "ETag") == 0) {
        copy_etag(a->etag, sizeof a->etag, value);
        a->weak = strncmp(value, "W/", 2) == 0;
    } else if (ggl_case_compare(name, "Last-Modified") == 0)
        snprintf(a->modified, sizeof a->modified, "%.*s", (int)sizeof a->modified - 1, value);
    else if (ggl_case_compare(name, "X-Linked-ETag") == 0)
        copy_etag(a->linked_etag, sizeof a->linked_etag, value);
    else if (ggl_case_compare(name, "X-Linked-Size") == 0)
        a->linked_size = number_of(value);
    else if (ggl_case_compare(name, "X-Error-Code") == 0)
        snprintf(a->code, sizeof a->code, "%.*s", (int)sizeof a->code - 1, value);
    else if (ggl_case_compare(name, "Link") == 0)
        read_link(a, value);
    else if (ggl_case_compare(name, "Location") == 0) {
        snprintf(a->location, sizeof a->location, "%s", value);
        r->moves = !r->q->connect_to;
    }
}

/* Reads the line of a header. */
static void end_line(reader *r) {
    char *line = r->line, *colon;
    size_t n = r->n_line;
    const int status_class = r->a->status / 100;
    while (n > 0 && (line[n - 1] == '\r' || line[n - 1] == ' '))
        n--;
    line[n] = '\0';
    r->n_line = 0;
    if (!r->begun) {
        const char *space = strchr(line, ' ');
        const int64_t status = space ? strtol(space, NULL, 10) : 0;
        r->broken = strncmp(line, "HTTP/", 5) != 0 || status < 100 || status > 999;
        if (!r->broken)
            begin_block(r, (int)status);
    } else if (n == 0) { /* another block comes after a redirect and after "100 Continue" */
        r->in_body = status_class != 1 && !(status_class == 3 && r->moves);
        r->begun = false;
    } else if ((colon = strchr(line, ':'))) {
        *colon++ = '\0';
        read_header(r, line, colon + strspn(colon, " \t"));
    }
}

/* Processes the bytes that curl has written. Returns false if no more are wanted. */
static bool take(reader *r, const char *data, size_t n) {
    size_t i = 0;
    for (; i < n && !r->in_body && !r->broken; i++) {
        if (++r->n_headers > MOST_HEADERS)
            r->broken = true;
        if (data[i] == '\n')
            end_line(r);
        else if (r->n_line < sizeof r->line - 1 && data[i])
            r->line[r->n_line++] = data[i];
    }
    const bool wanted = r->a->status == 200 || r->a->status == 206;
    if (!r->broken && r->in_body && i < n && wanted && r->q->body)
        r->stopped = !r->q->body(r->q->ctx, r->a, data + i, n - i);
    return !r->broken && !r->stopped;
}

/* Reads until the answer ends, or is no more wanted; asks several times a second whether it still is. */
static void read_answer(reader *r, int fd) {
    for (;;) {
        const int n_ready = ggl_os_child_wait(fd, 100);
        r->stopped |= llm_watch_stopped(r->q->watch);
        if (r->stopped)
            return;
        if (n_ready == 0 || (n_ready < 0 && errno == EINTR))
            continue;
        const int64_t n = ggl_os_read(fd, r->data, sizeof r->data);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 || !take(r, r->data, (size_t)n))
            return;
    }
}

/* Reads the first line of curl's messages, without "curl: (6) ". */
static void read_message(int fd, char *text, size_t size) {
    size_t n = 0;
    int64_t got = 1;
    char rest[256];
    while (n + 1 < size && (got = ggl_os_read(fd, text + n, size - 1 - n)) > 0)
        n += (size_t)got;
    while (got > 0) /* so that curl can end */
        got = ggl_os_read(fd, rest, sizeof rest);
    text[n] = '\0';
    text[strcspn(text, "\n")] = '\0';
    const char *s = strncmp(text, "curl: (", 7) == 0 ? strstr(text, ") ") : NULL;
    if (s)
        memmove(text, s + 2, strlen(s + 2) + 1);
}

static ggl_status no_curl(ggl_error *err) {
    return ggl_fail(
        err, GGL_UNSUPPORTED,
        "the program curl, which downloads models, is not installed (Debian, Ubuntu: apt "
        "install curl)");
}

/* Checks the URL and the token. */
static ggl_status check_request(const web_request *q, ggl_error *err) {
    if (strlen(q->url) >= WEB_MOST_URL || llm_web_has_control(q->url))
        return ggl_fail(err, GGL_USAGE, "a URL has control characters, or %d bytes or more",
                        WEB_MOST_URL);
    if (q->token && (strlen(q->token) >= MOST_TOKEN || llm_web_has_control(q->token)))
        return ggl_fail(err, GGL_USAGE, "the token has control characters, or %d bytes or more",
                        MOST_TOKEN);
    return GGL_OK;
}

static ggl_status no_programs(ggl_error *err) {
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "this build cannot start curl, which downloads models: download the file by "
                    "other means, and give its path (-m FILE)");
}

/* Sets *err from curl's exit code and message. */
static ggl_status judge(const reader *r, int code, const char *message, ggl_error *err) {
    enum { PROTOCOL_REFUSED = 1, TOO_MANY_REDIRECTS = 47, NO_PROGRAM = 127, RANGE_ERROR = 33 };
    const int status = r->a->status;
    if (r->stopped || llm_watch_stopped(r->q->watch))
        return ggl_fail(err, GGL_CANCELLED, "stopped");
    if (r->broken)
        return ggl_fail(err, GGL_FORMAT, "the answer is not HTTP");
    if (code == NO_PROGRAM && status == 0)
        return no_curl(err);
    if (code == PROTOCOL_REFUSED && status / 100 == 3)
        return ggl_fail(err, GGL_FORMAT,
                        "a redirect to a protocol that is not allowed was refused (%s)", message);
    if (code == TOO_MANY_REDIRECTS)
        return ggl_fail(err, GGL_FORMAT, "there are too many redirects");
    r->a->other_part = code == RANGE_ERROR;
    if (status == 0 || (code != 0 && status < 400))
        return ggl_fail(err, GGL_IO, "%s", *message ? message : "curl ended without an answer");
    return GGL_OK;
}

static ggl_status run(reader *r, ggl_error *err) {
    os_child c;
    char message[512] = "";
    int code = start_curl(&c, r->q);
    if (code)
        return code == ENOENT ? no_curl(err)
               : code == ENOSYS
                   ? no_programs(err)
                   : ggl_fail(err, GGL_IO, "curl could not be run: %s", strerror(code));
    const bool told = configure(&c, r->q);
    if (told)
        read_answer(r, c.out);
    ggl_os_close(c.out);
    c.out = -1;
    if (!told || r->stopped || r->broken) /* it may wait for the server */
        ggl_os_child_stop(&c);
    if (told)
        read_message(c.error, message, sizeof message);
    code = ggl_os_child_end(&c);
    if (!told)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    return judge(r, code, message, err);
}

ggl_status llm_web_ask(const web_request *q, web_answer *a, ggl_error *err) {
    *a = (web_answer){.length = -1, .retry_after = -1, .linked_size = -1};
    ggl_status st = check_request(q, err);
    if (st != GGL_OK)
        return st;
    reader *r = calloc(1, sizeof *r);
    if (!r)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    r->q = q;
    r->a = a;
    st = run(r, err);
    free(r);
    return st;
}

ggl_status llm_web_refused(const web_answer *a, const char *what, bool has_token, ggl_error *err) {
    const bool gated = strcmp(a->code, "GatedRepo") == 0;
    if (a->status == 404)
        return ggl_fail(err, GGL_NOT_FOUND, "%s does not exist (status 404)", what);
    if (a->status == 401 || a->status == 403)
        return ggl_fail(err, GGL_NOT_FOUND, "%s %s (status %d); %s", what,
                        gated ? "is open only to users who were granted access"
                              : "does not exist, or is private or gated",
                        a->status,
                        has_token ? "the token was not accepted, or its user has no access"
                                  : "if it exists, ask for access on its page, and give a token, "
                                    "for example by the environment variable HF_TOKEN");
    if (a->status == 429 && a->retry_after > 0)
        return ggl_fail(err, GGL_LIMIT,
                        "%s: too many requests (status 429); try again in %" PRId64 " seconds",
                        what, a->retry_after);
    if (a->status == 429)
        return ggl_fail(err, GGL_LIMIT,
                        "%s: too many requests (status 429); try again in a few minutes", what);
    if (a->status >= 500)
        return ggl_fail(err, GGL_IO, "%s: the server has a problem (status %d)", what, a->status);
    return ggl_fail(err, GGL_FORMAT, "%s: the server answered with status %d", what, a->status);
}
