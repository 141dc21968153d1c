/* Elements of a type, by number, from a buffer of words; and what they become. */
#ifndef CONVERT_GLSL
#define CONVERT_GLSL

#include "functions.glsl"
#include "kinds.h"

/* The word that has element `at`. */
uint word_of(uint from, uint at) {
    return from == FROM_F16 || from == FROM_BF16 ? at >> 1 : at;
}

/* The element, of its word, as the bits of the result. */
uint converted(uint from, uint at, uint word) {
    if (from == FROM_WORD)
        return word;
    uint half_word = word >> (at & 1u) * 16u & 0xffffu;
    float x = from == FROM_I32   ? float(int(word))
              : from == FROM_F16 ? half_to_float(half_word)
                                 : bfloat_to_float(half_word);
    return floatBitsToUint(x);
}

#endif
