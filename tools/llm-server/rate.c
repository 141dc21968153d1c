#include "rate.h"

#define SECOND INT64_C(1000000000)

void rate_note(rate *r, int64_t now, int64_t n) {
    const uint64_t last = (r->n_samples + RATE_SAMPLES - 1) % RATE_SAMPLES;
    if (r->n_samples > 0 && now - r->sample[last].t < SECOND)
        return;
    if (r->n_samples == 0)
        r->begun = now;
    r->sample[r->n_samples % RATE_SAMPLES].t = now;
    r->sample[r->n_samples % RATE_SAMPLES].n = n;
    r->n_samples++;
}

/* The growth since the oldest sample of that time. Before it nothing had grown for long, or there is one sample for each second. */
double rate_get(const rate *r, int64_t now, int64_t n) {
    const uint64_t n_kept = r->n_samples < RATE_SAMPLES ? r->n_samples : RATE_SAMPLES;
    int64_t before = n;
    for (uint64_t i = 1; i <= n_kept; i++) {
        const uint64_t k = (r->n_samples - i) % RATE_SAMPLES;
        if (now - r->sample[k].t > RATE_SECONDS * SECOND)
            break;
        before = r->sample[k].n;
    }
    const double seconds = (double)(now - r->begun) / (double)SECOND;
    return (double)(n - before) / (seconds < 1              ? 1
                                   : seconds > RATE_SECONDS ? RATE_SECONDS
                                                            : seconds);
}
