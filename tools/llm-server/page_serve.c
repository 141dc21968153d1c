/* Serves the files of the page. */
#include "admin.h"

#include <string.h>

#include "page.h"
#include "server_impl.h"

static bool reads(const http_request *q) {
    return strcmp(q->method, "GET") == 0 || strcmp(q->method, "HEAD") == 0;
}

bool page_answers(const server *s, const http_request *q) {
    return !s->o->no_page && reads(q) && page_find(q->path);
}

void page_serve(server *s, const http_request *q, http_reply *r) {
    const page_file *f = page_find(q->path);
    const char *known = q->header(q, "If-None-Match");
    const bool is_known = known && strcmp(known, f->etag) == 0;
    (void)s;
    http_reply_header(r, "ETag", f->etag);
    http_reply_header(r, "Cache-Control", "no-cache"); /* asks each time, and mostly gets 304 */
    http_reply_header(r, "Content-Security-Policy", PAGE_POLICY);
    http_reply_header(r, "X-Content-Type-Options", "nosniff");
    http_reply_header(r, "Referrer-Policy", "no-referrer");
    http_reply_begin(r, is_known ? 304 : 200, f->media_type, false);
    if (!is_known)
        http_reply_write(r, (const char *)f->data, f->size);
    http_reply_end(r);
}
