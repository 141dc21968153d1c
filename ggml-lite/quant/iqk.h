/* Tables of the types of ik_llama.cpp (iqk.c) that the CPU's kernels read, too. Private to ggml-lite and its backends. */
#ifndef GGL_IQK_H
#define GGL_IQK_H

#include <stdint.h>

extern const int8_t ggl_iq6_k_steps[64];      /* of iq6_k, without the shift */
extern const uint8_t ggl_iq2_kl_pairs[32][2]; /* the codes of 3 bits of each pair of iq2_kl */

#endif
