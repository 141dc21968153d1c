/* How GGUF has the tokens of RWKV: see hf_world.c. */
#include <string.h>

#include "hf_tokenizer_impl.h"

ggl_str llm_hf_spell_world(llm_hf_tokenizer *t, ggl_str bytes) {
    static const char letters[] = "tnr\\'", meant[] = "\t\n\r\\'";
    static const char digits[] = "0123456789abcdef";
    const bool both = /* then the quotes are the first */
        memchr(bytes.s, '\'', bytes.n) && memchr(bytes.s, '"', bytes.n);
    char *text = ggl_arena_alloc(&t->arena, 4 * bytes.n + 1, 1), *to = text;
    for (size_t i = 0; text && i < bytes.n; i++) {
        const unsigned char c = (unsigned char)bytes.s[i];
        if (c == '\t' || c == '\n' || c == '\r' || c == '\\' || (both && c == '\'')) {
            *to++ = '\\';
            *to++ = letters[(const char *)memchr(meant, c, sizeof meant - 1) - meant];
        } else if (c < 0x20 || c > 0x7e) {
            *to++ = '\\';
            *to++ = 'x';
            *to++ = digits[c >> 4];
            *to++ = digits[c & 15];
        } else {
            *to++ = (char)c;
        }
    }
    return (ggl_str){text, text ? (size_t)(to - text) : 0};
}
