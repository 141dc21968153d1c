#include "texts.h"

#include "ggl/alloc.h"
#include "common/hex.h"

size_t unescape(char *s, size_t n) {
    static const char from[] = "nrt'\"\\", to[] = "\n\r\t'\"\\";
    size_t m = 0;
    for (size_t i = 0; i < n; i++) {
        const char *e = s[i] == '\\' && i + 1 < n ? memchr(from, s[i + 1], sizeof from - 1) : NULL;
        if (e) {
            s[m++] = to[e - from];
            i++;
        } else if (s[i] == '\\' && i + 3 < n && s[i + 1] == 'x' && llm_hex_digit(s[i + 2]) >= 0 &&
                   llm_hex_digit(s[i + 3]) >= 0) {
            s[m++] = (char)(llm_hex_digit(s[i + 2]) * 16 + llm_hex_digit(s[i + 3]));
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
