/* The tile registers of AMX. A tile has up to 16 rows of up to 64 bytes. t, c, a and b are literal
 * numbers from 0 to 7:
 *
 *   TILE_CONFIG(shapes)         sets the shapes of this thread's tiles, which become zero
 *   TILE_RELEASE()              ends the use of tiles
 *   TILE_ZERO(t)
 *   TILE_LOAD(t, p, stride)     loads the rows of tile t from p, p + stride, ..
 *   TILE_STORE(t, p, stride)
 *   TILE_DOT(c, a, b)           c[m][n] += a[m][4k] * b[k][4n] + .. + a[m][4k+3] * b[k][4n+3] for all k;
 *                               c: integers of 32 bits, a and b: signed bytes
 *
 * They are assembly, because the functions of some compilers do not say which memory they use: gcc
 * 12 removes stores to the shapes. */
#ifndef CPU_TILES_H
#define CPU_TILES_H

#include <stdint.h>

/* The configuration as the processor reads it; tiles that are not used have no rows. */
typedef struct tile_shapes {
    uint8_t palette, start_row, zero[14];
    uint16_t bytes[16]; /* of a row */
    uint8_t rows[16];
} tile_shapes;
_Static_assert(sizeof(tile_shapes) == 64, "no padding");

#define TILE_CONFIG(shapes)                                                                        \
    __asm__ volatile("ldtilecfg %0" : : "m"(*(const tile_shapes *)(shapes)) : "memory")
#define TILE_RELEASE() __asm__ volatile("tilerelease" : : : "memory")
#define TILE_ZERO(t)   __asm__ volatile("tilezero %%tmm" #t : :)
#define TILE_LOAD(t, p, stride)                                                                    \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t                                               \
                     :                                                                             \
                     : "r"(p), "r"((int64_t)(stride))                                              \
                     : "memor"                                                                     \
                       "y")
#define TILE_STORE(t, p, stride)                                                                   \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)"                                           \
                     :                                                                             \
                     : "r"(p), "r"((int64_t)(stride))                                              \
                     : "memory")
#define TILE_DOT(c, a, b) __asm__ volatile("tdpbssd %%tmm" #b ", %%tmm" #a ", %%tmm" #c : :)

#endif
