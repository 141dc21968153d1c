#include "texts.h"

#include "ggl/alloc.h"

static int hex(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

size_t unescape(char *s, size_t n) {
    static const char from[] = "nrt'\"\\", to[] = "\n\r\t'\"\\";
    size_t m = 0;
    for (size_t i = 0; i < n; i++) {
        const char *e = s[i] == '\\' && i + 1 < n ? memchr(from, s[i + 1], sizeof from - 1) : NULL;
        if (e) {
            s[m++] = to[e - from];
            i++;
        } else if (s[i] == '\\' && i + 3 < n && s[i + 1] == 'x' && hex(s[i + 2]) >= 0 &&
                   hex(s[i + 3]) >= 0) {
            s[m++] = (char)(hex(s[i + 2]) * 16 + hex(s[i + 3]));
            i += 3;
        } else {
            s[m++] = s[i];
        }
    }
    return m;
}

ggl_str *read_texts(const char *const *args, size_t n, bool escape) {
    size_t size = (n + 1) * sizeof(ggl_str);
    for (size_t i = 0; i < n; i++)
        size += strlen(args[i]) + 1;
    ggl_str *texts = ggl_calloc(1, size);
    char *at = (char *)(texts + n + 1);
    for (size_t i = 0; i < n && texts; i++) {
        const size_t length = strlen(args[i]);
        memcpy(at, args[i], length);
        texts[i] = (ggl_str){at, escape ? unescape(at, length) : length};
        at[texts[i].n] = '\0';
        at += length + 1;
    }
    return texts;
}
