#include "max_sim.h"

#include <math.h>

static double product(const float *a, const float *b, size_t n, bool cosine) {
    double sum = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)a[i] * (double)b[i];
        aa += (double)a[i] * (double)a[i];
        bb += (double)b[i] * (double)b[i];
    }
    return !cosine ? sum : aa * bb > 0 ? sum / sqrt(aa * bb) : 0;
}

double tool_max_sim(const float *query, size_t n_query, const float *text, size_t n_text, size_t n,
                    bool cosine) {
    double sum = 0;
    for (size_t i = 0; i < n_query; i++) {
        double most = -INFINITY;
        for (size_t k = 0; k < n_text; k++)
            most = fmax(most, product(query + i * n, text + k * n, n, cosine));
        sum += most;
    }
    return sum;
}
