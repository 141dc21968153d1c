/* What sets of kernels share whose vf and vi are the compiler's own vectors of four lanes; vector_<set>.h defines v_load and v_tree before it includes this. */
#ifndef CPU_LANES4_H
#define CPU_LANES4_H

INLINE vf v_load_n(const float *p, int64_t n) {
    float x[4] = {0};
    memcpy(x, p, (size_t)n * sizeof *x);
    return v_load(x);
}
INLINE vi v_index(void) {
    return (vi){0, 1, 2, 3};
}
/* y[r] = v_tree(s[r]) for four rows at once. */
INLINE void v_four_trees(float *y, const vf (*s)[16 / V_LANES]) {
    for (int r = 0; r < 4; r++)
        y[r] = v_tree(s[r]);
}

/* The even and the odd elements of a, then those of b. */
INLINE vf v_evens(vf a, vf b) {
    return __builtin_shufflevector(a, b, 0, 2, 4, 6);
}
INLINE vf v_odds(vf a, vf b) {
    return __builtin_shufflevector(a, b, 1, 3, 5, 7);
}
/* For each pair: the first element twice; the second one twice; both swapped. */
INLINE vf v_twice_evens(vf v) {
    return __builtin_shufflevector(v, v, 0, 0, 2, 2);
}
INLINE vf v_twice_odds(vf v) {
    return __builtin_shufflevector(v, v, 1, 1, 3, 3);
}
INLINE vf v_swap_pairs(vf v) {
    return __builtin_shufflevector(v, v, 1, 0, 3, 2);
}

#endif
