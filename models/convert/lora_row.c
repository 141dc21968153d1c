/* How adapters change a row of a matrix; see llm/internal/adapter_pairs.h. */
#include <math.h>

#include "llm/internal/adapter_pairs.h"

double llm_lora_change(const double *acc, const float *row, size_t n) {
    double sum = 0;
    for (size_t e = 0; e < n; e++)
        sum += (acc[e] - (double)row[e]) * (acc[e] - (double)row[e]);
    return sum;
}

/* Several changes of a row, of which acc[n] is the sum with row[n], may cancel, up to what the sum's rounding leaves; then acc becomes the row.
 * most: the largest llm_lora_change after each of them. */
static void cancel(double *acc, const float *row, size_t n, double most) {
    static const double noise =
        1e-26; /* far above the squared rounding of doubles, and below that of any type of weights */
    for (size_t e = 0; e < n; e++)
        most += (double)row[e] * (double)row[e];
    if (llm_lora_change(acc, row, n) > noise * most)
        return;
    for (size_t e = 0; e < n; e++)
        acc[e] = (double)row[e];
}

/* Adds a change's row, whose row of B is ranks[], to acc[n]. */
static void add_change(const llm_lora_matrix *x, const float *ranks, double divisor, size_t n,
                       double *acc) {
    for (int64_t r = 0; r < x->pair.rank; r++) {
        const double factor = x->scale * (double)ranks[r] / divisor;
        const float *column = x->columns + (size_t)r * n;
        for (size_t e = 0; e < n; e++)
            acc[e] += factor * (double)column[e];
    }
}

/* Returns the length of the model's own row with this change alone; own[n]: memory. Of zeros what the engine takes it for. */
static double length(const llm_lora_matrix *x, const float *ranks, const float *row, size_t n,
                     double *own) {
    double sum = 0;
    for (size_t e = 0; e < n; e++)
        own[e] = (double)row[e];
    add_change(x, ranks, 1, n, own); /* a weight with a divisor has no magnitudes */
    for (size_t e = 0; e < n; e++)
        sum += own[e] * own[e];
    return sqrt(fmax(sum, 1e-30));
}

void llm_lora_change_row(const llm_lora_matrix *change, size_t n_change, int64_t m, int64_t o,
                         double divisor, const float *row, float *ranks, size_t n, double *acc) {
    double most = 0;
    for (size_t e = 0; e < n; e++)
        acc[e] = (double)row[e];
    for (size_t c = 0; c < n_change; c++) {
        const llm_lora_matrix *x = &change[c];
        llm_adapter_row(&x->pair, m, o, ranks);
        add_change(x, ranks, divisor, n, acc);
        if (x->pair.magnitude) {
            const double size =
                llm_adapter_magnitude(&x->pair, m, o) / length(x, ranks, row, n, acc + n);
            for (size_t e = 0; e < n; e++)
                acc[e] *= size;
        }
        if (n_change > 1)
            most = fmax(most, llm_lora_change(acc, row, n));
    }
    if (n_change > 1)
        cancel(acc, row, n, most);
}
