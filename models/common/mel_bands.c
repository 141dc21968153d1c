#include "mel_bands.h"

#include "ggl/internal/math.h"

static const double LINEAR = 200.0 / 3, KNEE_HZ = 1000, KNEE = 15;

static double mel_of(double hz) {
    return hz < KNEE_HZ ? hz / LINEAR : KNEE + ggl_log(hz / KNEE_HZ) * 27 / ggl_log(6.4);
}

static double hz_of(double mel) {
    return mel < KNEE ? mel * LINEAR : KNEE_HZ * ggl_exp((mel - KNEE) * ggl_log(6.4) / 27);
}

void llm_mel_band(int rate, int window, int n, int b, double *out) {
    double corner[3];
    for (int i = 0; i < 3; i++)
        corner[i] = hz_of(mel_of(rate / 2.0) * (b + i) / (n + 1));
    for (int k = 0; k <= window / 2; k++) {
        const double hz = (double)k * rate / window;
        const double up = (hz - corner[0]) / (corner[1] - corner[0]),
                     down = (corner[2] - hz) / (corner[2] - corner[1]);
        const double least = up < down ? up : down;
        out[k] = least > 0 ? least * 2 / (corner[2] - corner[0]) : 0;
    }
}
