/* Measures the limit of AMX in tiles. */
#if defined(__x86_64__)
#include "../../backends/cpu/x86/tiles.h"
#include "limits.h"

/* tdpbssd: 16 x 16 x 64 products of bytes. An eighth of the turns takes as long as those of the other loops. */
double bench_amx_int8(int64_t n) {
    tile_shapes s = {.palette = 1};
    for (int t = 0; t < 8; t++)
        s.rows[t] = 16, s.bytes[t] = 64;
    TILE_CONFIG(&s); /* all tiles are zero */
    for (int64_t i = 0; i < n / 8; i++) {
        TILE_DOT(0, 4, 6);
        TILE_DOT(1, 4, 7);
        TILE_DOT(2, 5, 6);
        TILE_DOT(3, 5, 7);
    }
    TILE_RELEASE();
    return (double)(n / 8) * 4 * 16 * 16 * 64;
}
#endif
