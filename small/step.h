/* What the operators of the runtime share. They are called for one token, on one thread, so each is a loop over rows around
 * the portable kernels of backends/cpu/scalar, which define docs/numeric.md: files here include those sources, whose kernels are
 * static, so that a program links only the functions that its plan names. */
#ifndef SMALL_STEP_H
#define SMALL_STEP_H

#include <math.h>
#include <string.h>

#include "../backends/cpu/scalar/scalar.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/types.h"
#include "small.h"

/* types.c: the types by which ggl_type_get finds those of a plan, and NULL. */
void small_use_types(const struct ggl_type_info *const *types);

/* The inputs, at the beginning of RAM. */
typedef struct small_inputs {
    int32_t token, pos, slot;
} small_inputs;

/* An f16 number, which some processors convert. */
static inline float small_half(uint16_t h) {
#if defined(__ARM_FP) && defined(__ARM_FEATURE_FMA) && !defined(__aarch64__)
    float x = float_of(h);
    __asm__("vcvtb.f32.f16 %0, %0" : "+t"(x));
    return x;
#else
    return ggl_f16_to_f32(h);
#endif
}

#define SCALAR_HALF small_half /* in backends/cpu/scalar */

static inline char *small_data(const small_view *v, char *ram) {
    return v->rom ? (char *)(uintptr_t)v->rom + v->at : ram + v->at;
}

static inline int32_t small_n_rows(const small_view *v) {
    return v->ne[1] * v->ne[2] * v->ne[3];
}

/* Returns row r of v, which broadcasts to the shape of `of`; dimension 1 is fastest. */
static inline char *small_row(const small_view *v, const small_view *of, int32_t r, char *ram) {
    const int32_t j = r % of->ne[1], k = r / of->ne[1] % of->ne[2], l = r / of->ne[1] / of->ne[2];
    return small_data(v, ram) + (v->ne[1] == 1 ? 0 : j * v->nb[1]) +
           (v->ne[2] == 1 ? 0 : k * v->nb[2]) + (v->ne[3] == 1 ? 0 : l * v->nb[3]);
}

/* The loop of an operator that makes row r of the result y from row r of its first source x, which has n elements. */
#define SMALL_EACH_ROW(op, of, y, x, n)                                                            \
    const small_view *const *v_ = (op)->view;                                                      \
    const int64_t n = v_[1]->ne[0];                                                                \
    float *y = NULL;                                                                               \
    const float *x = NULL;                                                                         \
    for (int32_t r = 0, rows_ = small_n_rows(v_[of]);                                              \
         r < rows_ && (y = (float *)(void *)small_row(v_[0], v_[of], r, ram),                      \
                      x = (const float *)(const void *)small_row(v_[1], v_[of], r, ram), true);    \
         r++)

#endif
