/* Headers that a proxy before this server may read in another way than the library does, so that one client's bytes
 * become the request of another: such requests are refused, and their connection is closed. The library hides some
 * of them: values end at a NUL, lines that begin with white space continue the one before, and lines may end with a
 * line feed alone. */
#include <string.h>

#include "ggl/internal/text.h"
#include "http_impl.h"

static size_t count(const http_reply *r, const char *name) {
    size_t n = 0;
    for (size_t i = 0; i < r->n_headers; i++)
        n += ggl_case_compare(r->header[i].name, name) == 0;
    return n;
}

/* True if the header has this value, or is absent. */
static bool is_only(const http_reply *r, const char *name, const char *value) {
    const char *given = r->q.header(&r->q, name);
    return !given || ggl_case_compare(given, value) == 0;
}

static bool is_token(const char *name) {
    static const char others[] = "!#$%&'*+-.^_`|~0123456789"
                                 "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return *name && !name[strspn(name, others)];
}

static bool has_control(const char *value) {
    for (const unsigned char *c = (const unsigned char *)value; *c; c++)
        if ((*c < ' ' && *c != '\t') || *c == 0x7f)
            return true;
    return false;
}

/* Returns what makes it ambiguous where the request ends, or for whom it is. */
static const char *check_frame(const http_reply *r, bool is_old) {
    const size_t n_hosts = count(r, "Host"), n_codings = count(r, "Transfer-Encoding"),
                 n_lengths = count(r, "Content-Length");
    for (size_t i = 0; i < r->n_headers; i++)
        if (!is_token(r->header[i].name) || has_control(r->header[i].value))
            return "a header has a character that is not allowed in it";
    if (n_hosts > 1)
        return "the request has several Host headers";
    if (n_hosts == 0 && !is_old)
        return "the request has no Host header, which HTTP/1.1 needs";
    if (n_lengths > 1)
        return "the request has several Content-Length headers";
    if (n_codings > 0 && n_lengths > 0)
        return "the request has both Content-Length and Transfer-Encoding; send one of them";
    return n_codings > 0 && is_old ? "HTTP/1.0 has no Transfer-Encoding" : NULL;
}

const char *http_check(const http_reply *r, const char *version, int *status) {
    const char *why = check_frame(r, strcmp(version, "HTTP/1.0") == 0);
    *status = 400;
    if (why)
        return why;
    *status = 501;
    if (count(r, "Transfer-Encoding") > 1 || !is_only(r, "Transfer-Encoding", "chunked"))
        return "the only Transfer-Encoding that this server reads is chunked";
    *status = 415;
    if (count(r, "Content-Encoding") > 1 || !is_only(r, "Content-Encoding", "identity"))
        return "the body must be sent without a Content-Encoding";
    *status = 417;
    if (count(r, "Expect") > 1 || !is_only(r, "Expect", "100-continue"))
        return "the only Expect that this server knows is 100-continue";
    return NULL;
}
