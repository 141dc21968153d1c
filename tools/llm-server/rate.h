/* How fast a count has grown lately, for autoscalers: its growth within the last RATE_SECONDS, per second.
 *
 *     rate_note(&r, now, n);           // from time to time, at least while it grows
 *     double x = rate_get(&r, now, n); // now, in ns of a clock that never goes back */
#ifndef LLM_SERVER_RATE_H
#define LLM_SERVER_RATE_H

#include <stdint.h>

enum { RATE_SECONDS = 30, RATE_SAMPLES = RATE_SECONDS + 2 };

/* Zero at first. */
typedef struct rate {
    struct {
        int64_t t, n;
    } sample[RATE_SAMPLES]; /* a ring; at least a second lies between two of them */
    uint64_t n_samples;     /* all that there ever were */
    int64_t begun;          /* when the first one came */
} rate;

void rate_note(rate *r, int64_t now, int64_t n);
double rate_get(const rate *r, int64_t now, int64_t n);

#endif
