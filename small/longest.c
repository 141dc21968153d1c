/* At each place the longest token, as models/text/tokenizer_rwkv.c has it. No memory is needed: a place takes as many steps as the longest
 * token has bytes. */
#include "encoder.h"

bool small_encode_longest(small_encoder *e, const char *text, size_t n) {
    for (size_t i = 0, length; i < n; i += length) {
        length = 1;
        const int32_t id = small_longest(e->w, &e->w->pieces, text + i, n - i, 0, &length);
        if (!small_append(e, id >= 0 ? id : e->w->unknown))
            return false;
    }
    return true;
}
