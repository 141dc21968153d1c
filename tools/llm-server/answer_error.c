/* Errors as replies. */
#include "server.h"

static const char *retry_after(int status) {
    return status == 429 ? "1" : status == 503 ? "5" : NULL;
}

api_error answer_error_of(const api_error *e, http_reply *r) {
    api_error own = *e;
    own.request_id = http_reply_find_header(r, "request-id");
    return own;
}

void answer_error(const dialect *d, const api_error *e, http_reply *r) {
    llm_json_out out = {0};
    const api_error own = answer_error_of(e, r);
    d->error(&own, false, &out);
    if (retry_after(e->status))
        http_reply_header(r, "Retry-After", retry_after(e->status));
    http_reply_begin(r, e->status, "application/json", false);
    if (out.n > 0 && !out.failed)
        http_reply_write(r, out.s, out.n);
    http_reply_end(r);
    ggl_free(out.s);
}

api_error api_error_of(ggl_status st, const ggl_error *err, const char *param) {
    static const struct {
        int status;
        const char *type;
    } known[GGL_STATUS_COUNT] = {
        [GGL_USAGE] = {400, "invalid_request"},   [GGL_FORMAT] = {400, "invalid_request"},
        [GGL_LIMIT] = {400, "invalid_request"},   [GGL_SHAPE] = {400, "invalid_request"},
        [GGL_UNSUPPORTED] = {400, "unsupported"}, [GGL_NOT_FOUND] = {404, "not_found"},
        [GGL_NOMEM] = {503, "overloaded"},        [GGL_CANCELLED] = {503, "overloaded"},
        [GGL_DEVICE] = {503, "server_error"}, /* such as a rank that is lost */
    };
    const bool is_known = st > GGL_OK && st < GGL_STATUS_COUNT && known[st].type;
    return (api_error){.status = is_known ? known[st].status : 500,
                       .type = is_known ? known[st].type : "server_error",
                       .message = err && err->msg[0] ? err->msg : ggl_status_text(st),
                       .param = param};
}

void answer_unread(const dialect *d, const ask *a, ggl_status st, const ggl_error *err,
                   const char *param, http_reply *r) {
    api_error e = api_error_of(st, err, param);
    e.code = a ? a->code : NULL;
    answer_error(d, &e, r);
}

void answer_failed(const dialect *d, ggl_status st, const ggl_error *err, const char *param,
                   http_reply *r) {
    const api_error e = api_error_of(st, err, param);
    answer_error(d, &e, r);
}
