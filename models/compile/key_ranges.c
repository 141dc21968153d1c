#include "key_ranges.h"

#include <stdint.h>
#include <stdio.h>

#include "ggl/internal/number.h"
#include "ggl/internal/text.h"

static const struct {
    const char *end; /* of the key */
    double least,
        most; /* whole numbers from `least` to `most`, or floats, of keys that are read above `least` */
    const char *advice;
} ranges[] = {
    {"epsilon", 0, 0.1, "models have about 1e-05, and other values make the logits wrong or NaN"},
    {".context_length", 1, 1 << 28, "models read 512 to some million tokens at once"},
    {".rope.freq_base", 1, 1e12,
     "models have 10000 to some hundred million, and another one makes their texts wrong"},
};

/* Writes a whole number with all its digits, another one with the fewest that say what it is. */
static const char *number(char text[GGL_NUMBER_TEXT], double x, bool is_f32) {
    if (x > -1e15 && x < 1e15 && x == (double)(long long)x)
        snprintf(text, GGL_NUMBER_TEXT, "%.0f", x);
    else
        (void)ggl_number_shortest(text, x, is_f32);
    return text;
}

bool llm_arch_doubts_key(const ggl_gguf_value *v, bool is_read, char *text, size_t size) {
    char is[GGL_NUMBER_TEXT], least[GGL_NUMBER_TEXT], most[GGL_NUMBER_TEXT];
    double x;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        if (v->is_array || !ggl_str_ends_with(v->key, ranges[i].end) || !ggl_gguf_number(v, 0, &x))
            continue;
        /* the f32 nearest to 0.1 is above the double */
        const bool is_f32 = v->type == GGL_GGUF_F32;
        const double top = is_f32 ? (double)(float)ranges[i].most : ranges[i].most;
        const bool is_above = is_read && ranges[i].least == 0;
        if ((is_above ? x > ranges[i].least : x >= ranges[i].least) && x <= top)
            continue;
        snprintf(text, size, "key '%.*s' is %s, but %s%s %s %s is expected: %s%s", (int)v->key.n,
                 v->key.s, number(is, x, is_f32), is_above ? "more than " : "",
                 number(least, ranges[i].least, false), is_above ? "and at most" : "to",
                 number(most, ranges[i].most, false), ranges[i].advice,
                 x == UINT32_MAX ? ", and 4294967295 is -1 without its sign" : "");
        return true;
    }
    return false;
}
