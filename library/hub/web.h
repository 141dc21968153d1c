/* Asks web servers, by running the program curl, so that programs need no library for networks.
 *
 *     const web_request q = {.url = "https://example.org/x", .body = on_body, .ctx = &x};
 *     web_answer a;
 *     if (llm_web_ask(&q, &a, &err) == GGL_OK && a.status == 200)
 *         .. x has received the bytes ..
 *
 * Redirects are followed, from https to https only. Proxies are those of curl's environment variables (https_proxy, no_proxy);
 * the user's .curlrc is not read. The URL and the token do not appear in the list of processes. */
#ifndef HUB_WEB_H
#define HUB_WEB_H

#include <stdbool.h>

#include "watch.h"

enum { WEB_MOST_URL = 4096 }; /* bytes, with the NUL */

struct web_answer;

typedef struct web_request {
    const char *url;
    const char *token; /* sent as "Authorization: Bearer ..", not to other hosts; NULL: none */
    uint64_t offset;   /* more than 0: ask for the bytes from here on */
    const char *
        if_etag; /* with offset: a server whose file has another ETag now sends all of it; NULL: none */
    bool head;  /* ask for the headers only */
    bool hurry; /* give up after a few seconds, because the caller has a fallback */
    /* "ADDRESS:PORT": connect there, whatever the URL's host is, through no proxy, and follow no redirect (web_answer.location). NULL: as above */
    const char *connect_to;
    /* Receives the body of an answer with status 200 or 206, piece by piece; `a` already has the headers. NULL: the body is
     * dropped. Returns false to stop. */
    bool (*body)(void *ctx, const struct web_answer *a, const char *data, size_t n);
    void *ctx;
    const hub_watch *watch; /* stops it */
} web_request;

/* Texts come from the server: any bytes but NUL, cut where they are too long. */
typedef struct web_answer {
    int status;              /* of HTTP, of the last answer if there were redirects */
    int64_t length;          /* Content-Length; -1: not given */
    int64_t retry_after;     /* seconds; -1: not given */
    char etag[128];          /* ETag without its quotes; "": none */
    bool weak;               /* the ETag was W/"..": bytes may differ */
    bool other_part;         /* the body is not what follows request.offset (curl has refused it) */
    char modified[64];       /* Last-Modified; "": none */
    char code[64];           /* X-Error-Code: what a hub says about an error */
    char next[WEB_MOST_URL]; /* the URL of the next page of a list (Link: <..>; rel="next") */
    char location[WEB_MOST_URL]; /* Location; "": none */
    /* of a redirect to where the file is stored: the file's own ETag and size */
    char linked_etag[128]; /* "": none */
    int64_t linked_size;   /* -1: none */
} web_answer;

/* True if a text has control characters, which no URL, token or version may have. */
bool llm_web_has_control(const char *s);

/* Returns GGL_OK if an answer came, whatever its status is, and all of its body. Else *err has the reason, without the URL:
 * GGL_UNSUPPORTED: there is no curl; GGL_IO: no connection, or it broke; GGL_FORMAT: not HTTP, or a redirect that is
 * not followed; GGL_CANCELLED: `body` returned
 * false, or q->watch stops it; GGL_USAGE: the URL or the token has a control character, or is too long. After GGL_IO,
 * a->status is that of the answer that was cut, or 0. */
GGL_NODISCARD ggl_status llm_web_ask(const web_request *q, web_answer *a, ggl_error *err);

/* Writes an error message to *err for an answer whose status is not a success. `what` names what was asked for: "repository
 * user/repo", or a URL. Returns GGL_IO if trying again may help, else another status. */
ggl_status llm_web_refused(const web_answer *a, const char *what, bool has_token, ggl_error *err);

#endif
