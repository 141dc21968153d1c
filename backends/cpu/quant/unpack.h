/* These functions turn rows of a file into codes and scales. All instruction sets of a processor share them, because products cost
 * far more than unpacking. unpack_<isa>.c defines them, by quant/interleave_tmpl.h. */
#ifndef CPU_UNPACK_H
#define CPU_UNPACK_H

#include "rows16.h"

/* Unpacks n_runs runs of 32 columns (whole blocks of the type) of 16 rows: codes to 8 planes for
 * each run, scales to f32. Row r begins at rows + row[r], and its part of the blocks at w + row[r]. */
typedef void cpu_unpack_fn(uint8_t *codes, float *scales, const uint8_t *rows, const uint8_t *w,
                           const size_t *row, int64_t n_runs);

typedef struct cpu_unpacking {
    cpu_unpack_fn *unpack;
    void (*interleave)(uint8_t *to, const void *w, size_t row_size, int n_rows,
                       int64_t k); /* see cpu_product */
} cpu_unpacking;

extern const cpu_unpacking ggl_cpu_unpacking[GGL_TYPE_LIMIT]; /* NULL: the type has no planes */

#endif
