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

static void answer_text(http_reply *r, int status, const char *text) {
    http_reply_header(r, "Vary", "Accept, Accept-Encoding");
    http_reply_begin(r, status, "text/plain; charset=utf-8", false);
    http_reply_write(r, text, strlen(text));
    http_reply_end(r);
}

/* Files that are stored with an encoding are sent so to all clients that do not refuse it; without the header, they do not. */
static bool is_refused(const http_request *q, const page_file *f) {
    const char *accepted = q->header(q, "Accept-Encoding");
    return f->encoding && accepted && !strstr(accepted, f->encoding) && !strchr(accepted, '*');
}

bool page_answers(const server_options *o, const http_request *q) {
    return reads(q) && (is_probe(q) || (!o->no_page && page_find(q->path)));
}

void page_serve(const http_request *q, http_reply *r) {
    const page_file *f = page_find(q->path);
    const char *known = q->header(q, "If-None-Match");
    const bool is_known = known && strcmp(known, f->etag) == 0;
    if (is_probe(q)) {
        answer_text(
            r, 200,
            "llm-server is running (\"Ollama is running\" is what Ollama's clients expect)\n");
        return;
    }
    if (is_refused(q, f)) {
        answer_text(r, 406,
                    "this file is stored with gzip, which the request does not accept (curl: "
                    "--compressed)\n");
        return;
    }
    http_reply_header(r, "Vary", "Accept, Accept-Encoding");
    if (f->encoding)
        http_reply_header(r, "Content-Encoding", f->encoding);
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
