/* Reads and converts elements of a type from a buffer of words. */
#ifndef CONVERT_GLSL
#define CONVERT_GLSL

#include "functions.glsl"
#include "kinds.h"

/* Returns the index of the word that contains element `at`. */
uint word_of(uint from, uint at) {
    return from == FROM_F16 || from == FROM_BF16 ? at >> 1 : at;
}

/* Converts element `at`, contained in `word`; returns the result's bits. */
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
