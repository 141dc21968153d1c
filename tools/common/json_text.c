#include "json_text.h"

#include <stdint.h>
#include <string.h>

#include "char_width.h"
#include "ggl/internal/show.h"

/* Reads four hexadecimal digits at s[0..n); -1: none. */
static int32_t read_hex4(const char *s, size_t n) {
    int32_t value = 0;
    for (size_t i = 0; i < 4; i++) {
        char c = i < n ? s[i] : 0, lower = (char)(c | 0x20);
        if (c >= '0' && c <= '9')
            value = value * 16 + (c - '0');
        else if (lower >= 'a' && lower <= 'f')
            value = value * 16 + (lower - 'a' + 10);
        else
            return -1;
    }
    return value;
}

/* Reads an escape after its backslash: *c is the code point, *used the bytes. Returns NULL or an
 * error text. */
static const char *read_escape(const char *s, size_t n, uint32_t *c, size_t *used) {
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char *at = n > 0 && s[0] ? strchr(letters, s[0]) : NULL;
    *used = 1;
    if (at) {
        *c = (unsigned char)values[at - letters];
        return NULL;
    }
    if (n == 0 || s[0] != 'u')
        return "this is not a valid escape";
    int32_t high = read_hex4(s + 1, n - 1);
    if (high < 0)
        return "\\u needs four hexadecimal digits";
    *c = (uint32_t)high;
    *used = 5;
    if (high < 0xd800 || high > 0xdfff)
        return NULL;
    int32_t low = n > 7 && s[5] == '\\' && s[6] == 'u' ? read_hex4(s + 7, n - 7) : -1;
    if (high > 0xdbff || low < 0xdc00 || low > 0xdfff)
        return "the other half of a surrogate pair is missing";
    *c = 0x10000 + ((uint32_t)(high - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
    *used = 11;
    return NULL;
}

const char *json_read_string(const char *s, size_t n, char *out, size_t *n_out, size_t *used) {
    size_t i = 0;
    *n_out = 0;
    while (i < n && strchr(" \t\r\n", s[i]) && s[i])
        i++;
    if (i == n || s[i] != '"')
        return "a JSON string is expected";
    for (i++; i < n && s[i] != '"';) {
        if ((unsigned char)s[i] < 0x20)
            return "a control character in the string must be written as an escape";
        if (s[i] != '\\') {
            out[(*n_out)++] = s[i++];
            continue;
        }
        uint32_t c;
        size_t taken;
        const char *wrong = read_escape(s + i + 1, n - i - 1, &c, &taken);
        if (wrong)
            return wrong;
        *n_out += char_write(c, out + *n_out);
        i += 1 + taken;
    }
    if (i == n)
        return "the string is not closed";
    *used = i + 1;
    return NULL;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void put_control(FILE *out, unsigned char c) {
    static const char from[] = "\b\f\n\r\t", to[] = "bfnrt";
    const char *e = c ? strchr(from, c) : NULL;
    if (e)
        fprintf(out, "\\%c", to[e - from]);
    else
        fprintf(out, "\\u%04x", c);
}

void json_put_string(FILE *out, const char *s, size_t n) {
    putc('"', out);
    for (size_t i = 0; i < n;) {
        const unsigned char c = (unsigned char)s[i];
        const size_t len = ggl_utf8_length(s + i, n - i);
        if (len == 0)
            fputs("\xef\xbf\xbd", out);
        else if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            put_control(out, c);
        else if (c == 0xc2 && (unsigned char)s[i + 1] < 0xa0) /* terminals obey these, too (C1) */
            put_control(out, (unsigned char)s[i + 1]);
        else
            fwrite(s + i, 1, len, out);
        i += len ? len : 1;
    }
    putc('"', out);
}
