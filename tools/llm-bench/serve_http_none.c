/* HTTP in builds without libcurl: every request fails. */
#include "serve_http.h"

ggl_status serve_http_new(serve_http **out, const serve_http_options *o, ggl_error *err) {
    (void)o;
    *out = NULL;
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "this llm-bench was built without libcurl; install it (Debian, Ubuntu: "
                    "libcurl4-openssl-dev), run cmake again, and build");
}

ggl_status serve_http_start(serve_http *http, const serve_call *call, ggl_error *err) {
    (void)http, (void)call;
    return ggl_fail(err, GGL_UNSUPPORTED, "no HTTP");
}

ggl_status serve_http_wait(serve_http *http, int timeout_ms, ggl_error *err) {
    (void)http, (void)timeout_ms;
    return ggl_fail(err, GGL_UNSUPPORTED, "no HTTP");
}

size_t serve_http_n_running(const serve_http *http) {
    (void)http;
    return 0;
}

void serve_http_free(serve_http *http) {
    (void)http;
}
