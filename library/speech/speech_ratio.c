#include "speech_ratio.h"

#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/show.h"
#include "word_split.h"
#include "zlib_size.h"

static const char unknown[] = "\xef\xbf\xbd"; /* U+FFFD */

/* The bytes that one U+FFFD stands for: a character that breaks off, or a byte that begins none. */
static size_t broken(const char *s, size_t n) {
    const unsigned char lead = (unsigned char)s[0];
    const size_t whole = lead >= 0xf0 && lead < 0xf5   ? 4
                         : lead >= 0xe0 && lead < 0xf0 ? 3
                         : lead >= 0xc2 && lead < 0xe0 ? 2
                                                       : 1;
    const unsigned char least = lead == 0xe0   ? 0xa0
                                : lead == 0xf0 ? 0x90
                                               : 0x80,
                        most = lead == 0xed   ? 0x9f
                               : lead == 0xf4 ? 0x8f
                                              : 0xbf;
    size_t k = 1;
    while (k < whole && k < n && (unsigned char)s[k] >= (k == 1 ? least : 0x80) &&
           (unsigned char)s[k] <= (k == 1 ? most : 0xbf))
        k++;
    return k;
}

/* Appends a text's bytes, mended, to to[*n_to ..], which has room for three times as many. */
static void append_mended(char *to, size_t *n_to, const char *s, size_t n) {
    for (size_t at = 0; at < n;) {
        const size_t len = ggl_utf8_length(s + at, n - at);
        memcpy(to + *n_to, len ? s + at : unknown, len ? len : 3);
        *n_to += len ? len : 3;
        at += len ? len : broken(s + at, n - at);
    }
}

ggl_status llm_speech_ratio(const speech_tokens *t, const int32_t *id, size_t n, double *ratio,
                            ggl_error *err) {
    size_t n_all = 0, n_text = 0, size = 0;
    *ratio = 0;
    for (size_t k = 0; k < n; k++)
        n_all += speech_is_time(t, id[k]) ? 0 : llm_token_text(t->tokenizer, id[k], false).n;
    char *all = ggl_calloc(4 * n_all + 1, 1), *text = all ? all + n_all : NULL;
    if (!all)
        return ggl_fail(err, GGL_NOMEM, "out of memory for what is heard");
    n_all = 0;
    for (size_t k = 0; k < n; k++) {
        const ggl_str s = speech_is_time(t, id[k]) ? (ggl_str){"", 0}
                                                   : llm_token_text(t->tokenizer, id[k], false);
        memcpy(all + n_all, s.s, s.n);
        n_all += s.n;
    }
    append_mended(text, &n_text, all, n_all);
    const char *s = text;
    llm_word_trim(&s, &n_text);
    const ggl_status st = llm_zlib_size(s, n_text, &size, err);
    *ratio = st == GGL_OK ? (double)n_text / (double)size : 0;
    ggl_free(all);
    return st;
}
