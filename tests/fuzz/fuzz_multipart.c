/* Forms with files: the first line is the media type, the rest the body. Parts lie in the body, in order. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "llm-server/multipart.h"

static void must(bool ok) {
    if (!ok)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char type[200], boundary[MULTIPART_BOUNDARY + 1];
    multipart_part part[4];
    size_t n = 0;
    ggl_error err = {0};
    const uint8_t *line = size ? memchr(data, '\n', size) : NULL;
    const size_t n_type = line ? (size_t)(line - data) : 0;
    if (!line || n_type >= sizeof type)
        return 0;
    memcpy(type, data, n_type);
    type[n_type] = '\0';
    if (multipart_boundary(type, boundary, &err) != GGL_OK) {
        must(err.status == GGL_FORMAT && *err.msg);
        return 0;
    }
    const ggl_str body = {(const char *)line + 1, size - n_type - 1};
    const ggl_status st = multipart_read(part, 4, &n, boundary, body, &err);
    must(n <= 4 && (st == GGL_OK || (err.status == st && *err.msg)));
    const char *at = body.s;
    for (size_t i = 0; i < n; i++) {
        must(part[i].name.s >= at && part[i].data.s >= part[i].name.s + part[i].name.n);
        at = part[i].data.s + part[i].data.n;
        must(at <= body.s + body.n);
    }
    return 0;
}

bool fuzz_seed(int k, uint8_t **data, size_t *size) {
    static const char *const seed[] = {
        "multipart/form-data; boundary=b\n--b\r\nContent-Disposition: form-data; name=\"model\"\r\n"
        "\r\nm\r\n--b\r\nContent-Disposition: form-data; name=file; filename=\"a.wav\"\r\n"
        "Content-Type: audio/wav\r\nContent-Transfer-Encoding: binary\r\n\r\nRIFF\r\n--b--\r\n",
        "multipart/form-data; x=y; boundary=\"a b\"\nabc\r\n--a b \r\n\r\n--a b--"};
    if (k >= (int)(sizeof seed / sizeof *seed))
        return false;
    *size = strlen(seed[k]);
    *data = malloc(*size);
    must(*data != NULL);
    memcpy(*data, seed[k], *size);
    return true;
}
