/* How much of a change is left after rounding; see llm/internal/lora_folder.h. */
#include <math.h>
#include <stdio.h>

#include "llm/internal/lora_folder.h"

double llm_lora_share(double change, double lost) {
    return change > 0 && lost < INFINITY ? fmax(0, 1 - lost / change) : 1;
}

void llm_lora_keep(llm_lora_kept *k, const char *name, double change, double lost) {
    const double share = llm_lora_share(change, lost);
    if (!(change > 0))
        return;
    if (k->change == 0 || share < k->least) {
        k->least = share;
        snprintf(k->weight, sizeof k->weight, "%s", name);
    }
    k->change += change;
    k->lost += lost;
}

double llm_lora_change(const double *acc, const float *row, size_t n) {
    double sum = 0;
    for (size_t e = 0; e < n; e++)
        sum += (acc[e] - (double)row[e]) * (acc[e] - (double)row[e]);
    return sum;
}

void llm_lora_cancel(double *acc, const float *row, size_t n, double most) {
    static const double noise =
        1e-26; /* far above the squared rounding of doubles, and below that of any type of weights */
    for (size_t e = 0; e < n; e++)
        most += (double)row[e] * (double)row[e];
    if (llm_lora_change(acc, row, n) > noise * most)
        return;
    for (size_t e = 0; e < n; e++)
        acc[e] = (double)row[e];
}
