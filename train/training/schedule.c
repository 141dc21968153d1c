/* The learning rate of each step. */
#include "schedule.h"

#include <string.h>

#include "ggl/internal/math.h"

static const char *const name_of[] = {
    [TRAIN_COSINE] = "cosine",
    [TRAIN_LINEAR] = "linear",
    [TRAIN_CONSTANT] = "constant",
};
enum { N_FALLS = sizeof name_of / sizeof *name_of };

ggl_status llm_train_fall_find(train_fall *out, const char *name, ggl_error *err) {
    for (int i = 0; i < N_FALLS; i++)
        if (!name || strcmp(name, name_of[i]) == 0) {
            *out = (train_fall)i;
            return GGL_OK;
        }
    return ggl_fail(err, GGL_USAGE, "the schedule '%s': cosine, linear and constant are known",
                    name);
}

const char *llm_train_fall_name(train_fall fall) {
    return name_of[fall];
}

double llm_train_rate(const train_schedule *s, int64_t step) {
    const double pi = 3.14159265358979323846;
    if (step < s->n_warmup)
        return s->rate * (double)(step + 1) / (double)(s->n_warmup + 1);
    if (s->fall == TRAIN_CONSTANT || s->n_steps <= s->n_warmup)
        return s->rate;
    const double done = (double)(step - s->n_warmup) / (double)(s->n_steps - s->n_warmup),
                 fallen = (done - s->hold) / (1 - s->hold),
                 at = fallen < 0   ? 0
                      : fallen < 1 ? fallen
                                   : 1,
                 left = s->fall == TRAIN_LINEAR ? 1 - at : (1 + ggl_cos(pi * at)) / 2;
    return s->rate * (s->end + (1 - s->end) * left);
}
