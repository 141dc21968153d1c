/* Matrices of a subgroup. Each is a variable of its own, NAME_IJ for the one I below and J beside the first, or NAME_CIJ in
 * strip C: NVIDIA's compiler keeps an array of matrices in memory, and each product takes eight times as long. The macros
 * repeat something for the largest numbers of them, and where something must not be done for those that are not there, it has a
 * condition; trim.c removes what is false. The including file declares M, N and K: matrices are M x K by K x N. */

#define SUMS  coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator>
#define LEFT  coopmat<float16_t, gl_ScopeSubgroup, M, K, gl_MatrixUseA>
#define RIGHT coopmat<float16_t, gl_ScopeSubgroup, K, N, gl_MatrixUseB>

/* Four below each other; four or eight of these beside each other. c is passed on. */
#define EACH_DOWN(DO, j, c)    DO(0, j, c) DO(1, j, c) DO(2, j, c) DO(3, j, c)
#define EACH_OF_FOUR(DO, c)    EACH_DOWN(DO, 0, c) EACH_DOWN(DO, 1, c) EACH_DOWN(DO, 2, c) EACH_DOWN(DO, 3, c)
#define EACH_OF_EIGHT(DO, c)                                                                                           \
    EACH_OF_FOUR(DO, c)                                                                                                \
    EACH_DOWN(DO, 4, c) EACH_DOWN(DO, 5, c) EACH_DOWN(DO, 6, c) EACH_DOWN(DO, 7, c)
