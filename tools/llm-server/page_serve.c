/* Serves the files of the page. */
#include "admin.h"

#include <string.h>

#include "page.h"
#include "server_impl.h"

static bool reads(const http_request *q) {
    return strcmp(q->method, "GET") == 0 || strcmp(q->method, "HEAD") == 0;
}

/* Programs that look for Ollama ask for "/", most of them with HEAD; browsers say that they accept HTML. */
static bool is_probe(const http_request *q) {
    const char *accepted = q->header(q, "Accept");
    return strcmp(q->path, "/") == 0 && !(accepted && strstr(accepted, "text/html"));
}

static void answer_probe(http_reply *r) {
    static const char text[] =
        "llm-server is running (\"Ollama is running\" is what Ollama's clients expect)\n";
    http_reply_header(r, "Vary", "Accept");
    http_reply_begin(r, 200, "text/plain; charset=utf-8", false);
    http_reply_write(r, text, sizeof text - 1);
    http_reply_end(r);
}

bool page_answers(const server_options *o, const http_request *q) {
    return reads(q) && (is_probe(q) || (!o->no_page && page_find(q->path)));
}

void page_serve(const http_request *q, http_reply *r) {
    const page_file *f = page_find(q->path);
    const char *known = q->header(q, "If-None-Match");
    const bool is_known = known && strcmp(known, f->etag) == 0;
    if (is_probe(q)) {
        answer_probe(r);
        return;
    }
    http_reply_header(r, "Vary", "Accept");
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
