/* Reads blocks, and rounds factors, for the searches of fit_block.h. */
#include "fit_block.h"

#include <math.h>

bool ggl_fit_read(fit_source *s, const float *src, const float *importance, int n) {
    float extreme = fabsf(quant_extreme(src, n));
    if (!(extreme >= 0x1p-60f)) /* an f16 has no numbers below 2^-24; codes have at most 7 bits */
        return false;
    s->exponent = ilogbf(extreme);
    const float factor = ldexpf(1.0f, -s->exponent);
    double sum = 0.0, squares = 0.0;
    for (int i = 0; i < n; i++)
        s->x[i] = src[i] * factor;
    for (int i = 0; i < n; i++)
        squares += (double)s->x[i] * (double)s->x[i];
    for (int i = 0; i < n && importance; i++)
        if (importance[i] > 0.0f && importance[i] <= 0x1.fffffep127f)
            sum += (double)importance[i];
    const double mean = sum / n;
    const float mean_square = (float)(squares / n);
    for (int i = 0; i < n; i++) {
        float w = 1.0f;
        if (mean > 0.0)
            w = importance[i] > 0.0f && importance[i] <= 0x1.fffffep127f
                    ? (float)(importance[i] / mean)
                    : 0.0f;
        s->w[i] = (w + 1e-6f) * sqrtf(mean_square + s->x[i] * s->x[i]);
    }
    return true;
}

float ggl_fit_gain(double xx, double xy) {
    const double gain = xy > 0.0 ? xx / xy : 1.0;
    return gain > 1.0 ? gain < 1.5 ? (float)gain : 1.5f : 1.0f;
}

float ggl_fit_f16(float d, int exponent) {
    const float h = ggl_f16_to_f32(ggl_f32_to_f16(ldexpf(d, exponent)));
    return isfinite(h) ? ldexpf(h, -exponent) : d;
}
