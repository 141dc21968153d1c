#include "clock.h"

#include <string.h>

#include "channel.h"
#include "ggl/internal/os_clock.h"

clock_sample ggl_clock_trip(uint64_t begin, uint64_t there, uint64_t end) {
    const int64_t half = (int64_t)(end - begin) / 2;
    return (clock_sample){(int64_t)there, (int64_t)there - (int64_t)begin - half, half + 1};
}

void ggl_clock_add(rank_clock *c, const clock_sample *s) {
    enum { NEAR_NS = 1000000000 }; /* nearer samples make no line: their errors would turn it */
    const bool is_near = c->n > 0 && s->at - c->sample[1].at < NEAR_NS;
    if (is_near && s->exact >= c->sample[1].exact)
        return;
    if (!is_near) {
        c->sample[0] = c->n > 0 ? c->sample[1] : *s;
        c->n++;
    } else if (c->n == 1) {
        c->sample[0] = *s;
    }
    c->sample[1] = *s;
}

uint64_t ggl_clock_here(const rank_clock *c, uint64_t there) {
    const clock_sample *a = &c->sample[0], *b = &c->sample[1];
    const double drift =
        b->at > a->at ? (double)(b->offset - a->offset) / (double)(b->at - a->at) : 0;
    const int64_t since = (int64_t)there - b->at,
                  here = (int64_t)there - b->offset - (int64_t)((double)since * drift);
    return here > 0 ? (uint64_t)here : 0;
}

bool ggl_clock_measure(rank_clock *c, job *j, int rank) {
    enum { TRIPS = 16 }; /* in the first ones, threads that slept wake up */
    channel control;
    clock_sample best = {.exact = INT64_MAX};
    ggl_status st =
        ggl_channel_init(&control, j, rank, 0, j->peer[rank].n_opened + 1, "rank", NULL);
    for (int i = 0; i < TRIPS && st == GGL_OK; i++) {
        ggl_reader result;
        st = ggl_channel_begin(&control, ORDER_CLOCK, 0, NULL);
        if (st != GGL_OK)
            break;
        ggl_channel_end(&control);
        const uint64_t begin = ggl_os_clock();
        st = ggl_channel_call(&control, &result, NULL);
        const clock_sample s = ggl_clock_trip(begin, ggl_get_u64(&result), ggl_os_clock());
        if (st == GGL_OK && !result.failed && s.exact < best.exact)
            best = s;
    }
    j->peer[rank].n_opened = control.number - 1;
    ggl_channel_fini(&control);
    if (best.exact == INT64_MAX)
        return false;
    ggl_clock_add(c, &best);
    c->measured = ggl_os_clock();
    return true;
}
