#include "mel_bands.h"

#include <stdbool.h>

#include "ggl/internal/math.h"

static const double LINEAR = 200.0 / 3, KNEE_HZ = 1000, KNEE = 15;
static const double HTK_HZ = 700, HTK_STEPS = 2595, LOG10_E = 0x1.bcb7b1526e50ep-2;

static double slaney_of(double hz) {
    return hz < KNEE_HZ ? hz / LINEAR : KNEE + ggl_log(hz / KNEE_HZ) * 27 / ggl_log(6.4);
}

static double hz_of_slaney(double mel) {
    return mel < KNEE ? mel * LINEAR : KNEE_HZ * ggl_exp((mel - KNEE) * ggl_log(6.4) / 27);
}

static double htk_of(double hz) {
    return HTK_STEPS * LOG10_E * ggl_log(1 + hz / HTK_HZ);
}

static double hz_of_htk(double mel) {
    return HTK_HZ * (ggl_exp(mel / (HTK_STEPS * LOG10_E)) - 1);
}

static const struct {
    double (*mel_of)(double hz), (*hz_of)(double mel);
    bool area; /* 1, not the height */
} scales[] = {
    [LLM_MEL_SLANEY] = {slaney_of, hz_of_slaney, true}, [LLM_MEL_HTK] = {htk_of, hz_of_htk, false}};

void llm_mel_band(llm_mel_scale scale, int rate, int window, int n, int b, double *out) {
    double corner[3];
    for (int i = 0; i < 3; i++)
        corner[i] = scales[scale].hz_of(scales[scale].mel_of(rate / 2.0) * (b + i) / (n + 1));
    for (int k = 0; k <= window / 2; k++) {
        const double hz = (double)k * rate / window;
        const double up = (hz - corner[0]) / (corner[1] - corner[0]),
                     down = (corner[2] - hz) / (corner[2] - corner[1]);
        const double least = up < down ? up : down;
        const double height = scales[scale].area ? least * 2 / (corner[2] - corner[0]) : least;
        out[k] = least > 0 ? height : 0;
    }
}
