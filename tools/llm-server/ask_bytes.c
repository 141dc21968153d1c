#include "ask.h"

size_t ask_doc_bytes(ggl_str body) {
    enum { VALUE_BYTES = 24 };
    size_t n_marks = body.n > 0;
    for (size_t i = 0; i < body.n; i++)
        n_marks += body.s[i] == ',' || body.s[i] == ':' || body.s[i] == '[' || body.s[i] == '{';
    return body.n + n_marks * VALUE_BYTES;
}

size_t ask_reading_bytes(size_t n, size_t n_image) {
    enum { IMAGE_BYTES = 2 };
    return (n - n_image) * ASK_TEXT_BYTES + n_image * IMAGE_BYTES;
}

size_t ask_digit_bytes(ggl_str body) {
    enum { LONG = 1024 };
    size_t n = 0, n_run = 0;
    for (size_t i = 0; i <= body.n; i++) {
        const char c = i < body.n ? body.s[i] : '"';
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '/' && c <= '9') ||
            c == '+' || c == '=' || c == '\\') {
            n_run++;
            continue;
        }
        n += n_run >= LONG ? n_run : 0;
        n_run = 0;
    }
    return n;
}
