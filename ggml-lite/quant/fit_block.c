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

float ggl_fit_read_run(fit_source *s, const float *src, const float *importance, int i) {
    src += FIT_RUN * i;
    if (!ggl_fit_read(s, src, importance ? importance + FIT_RUN * i : NULL, FIT_RUN)) {
        *s = (fit_source){.exponent = 0};
        for (int k = 0; k < FIT_RUN; k++)
            s->w[k] = 1.0f;
    }
    return isnan(quant_extreme(src, FIT_RUN)) ? NAN : 0.0f;
}

float ggl_fit_gain(double xx, double xy) {
    const double gain = xy > 0.0 ? xx / xy : 1.0;
    if (fabs(gain - 1.0) <
        0x1p-11) /* an f16 cannot hold it, and what it holds already would be lost */
        return 1.0f;
    return gain > 0.67 ? gain < 1.5 ? (float)gain : 1.5f : 0.67f;
}

float ggl_fit_f16(float d, int exponent) {
    const float h = ggl_f16_to_f32(ggl_f32_to_f16(ldexpf(d, exponent)));
    return isfinite(h) ? ldexpf(h, -exponent) : d;
}

/* Returns the distances from integers times d. */
static vf misfit(const fit_form *integers, vf x, float d) {
    return vf_abs(x - vf_all(d) * fit_value(integers, x * vf_all(1.0f / d)));
}

static float cost_of(const fit_numbers *of, float d) {
    const fit_form integers = {.low = of->low, .high = of->high};
    vf cost = vf_all(0.0f);
    for (int i = 0; i < of->n; i += LANES) {
        const vf x = vf_load(of->x + i);
        vf e = misfit(&integers, x, d);
        for (int k = 1; of->period && k <= 2; k++) {
            const vf other = misfit(&integers, x + vf_load(of->period + i) * vf_all((float)k), d);
            e = vf_pick(other < e, other, e);
        }
        cost += vf_load(of->steepness + i) * e * e;
    }
    return vf_sum(cost);
}

/* Puts d among the starts, which are in order. */
static void add_start(fit_start start[FIT_STARTS], float d, float cost) {
    int at = FIT_STARTS;
    for (; at > 0 && cost < start[at - 1].cost; at--)
        if (at < FIT_STARTS)
            start[at] = start[at - 1];
    if (at < FIT_STARTS)
        start[at] = (fit_start){d, cost};
}

void ggl_fit_starts(const fit_numbers *of, fit_start start[FIT_STARTS]) {
    float extreme = 0.0f;
    for (int i = 0; i < FIT_STARTS; i++)
        start[i] = (fit_start){0.0f, INFINITY};
    for (int i = 0; i < of->n; i++)
        extreme = fabsf(of->x[i]) > fabsf(extreme) ? of->x[i] : extreme;
    for (int k = of->low; k <= of->high && extreme != 0.0f; k++) {
        if (k > of->low / 2 && k <= of->high / 2)
            continue;
        const float d = extreme / (float)k;
        if (isfinite(d) && d != 0.0f)
            add_start(start, d, cost_of(of, d));
    }
}
