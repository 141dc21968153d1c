#include "speech_rules.h"

#include <math.h>

#include "ggl/internal/math.h"

static void forbid(float *logits, int32_t from, int32_t to) {
    for (int32_t id = from; id < to; id++)
        logits[id] = -INFINITY;
}

double llm_speech_log_sum(const float *logits, int32_t n) {
    double top = -INFINITY, sum = 0;
    for (int32_t k = 0; k < n; k++)
        top = fmax(top, (double)logits[k]);
    if (isinf(top))
        return top;
    for (int32_t k = 0; k < n; k++)
        sum += ggl_exp((double)logits[k] - top);
    return top + ggl_log(sum);
}

/* Times come in pairs, except that one may end the text; and they do not go back. */
static void apply_pairs(const speech_rules *r, const int32_t *id, size_t n, float *logits) {
    const speech_tokens *t = r->tokens;
    const int32_t end = t->first_time + t->n_times;
    const bool last = n >= 1 && speech_is_time(t, id[n - 1]);
    const bool before = n < 2 || speech_is_time(t, id[n - 2]);
    if (last && before)
        forbid(logits, t->first_time, end); /* after a pair, or the first one: words */
    else if (last)
        forbid(logits, 0, t->end); /* after the end of a segment: a time, or the end of the text */
    size_t k = n;
    while (k > 0 && !speech_is_time(t, id[k - 1]))
        k--;
    if (k == 0)
        return;
    /* a segment ends after it has begun, but the next one may begin where it ends */
    forbid(logits, t->first_time, id[k - 1] + (last && !before ? 0 : 1));
}

/* The first token is a time, and not a late one. */
static void apply_first(const speech_rules *r, float *logits) {
    const speech_tokens *t = r->tokens;
    const int32_t end = t->first_time + t->n_times;
    forbid(logits, 0, t->first_time);
    forbid(logits, end, t->n_vocab);
    if (r->most_first >= 0 && r->most_first + 1 < t->n_times)
        forbid(logits, t->first_time + r->most_first + 1, end);
}

/* If a time is likelier than any other token, it is a time. */
static void prefer_times(const speech_rules *r, float *logits) {
    const speech_tokens *t = r->tokens;
    const double times = llm_speech_log_sum(logits + t->first_time, t->n_times);
    double top = -INFINITY;
    for (int32_t id = 0; id < t->first_time; id++)
        top = fmax(top, (double)logits[id]);
    if (times > top)
        forbid(logits, 0, t->first_time);
}

void llm_speech_rules_apply(const speech_rules *r, const int32_t *id, size_t n, float *logits) {
    const speech_tokens *t = r->tokens;
    for (int32_t k = 0; k < t->n_vocab; k++)
        if (t->is_never[k])
            logits[k] = -INFINITY;
    if (n == 0) { /* the text is not empty */
        logits[t->end] = -INFINITY;
        if (t->blank >= 0)
            logits[t->blank] = -INFINITY;
    }
    if (!r->times) {
        forbid(logits, t->first_time, t->first_time + t->n_times);
        return;
    }
    apply_pairs(r, id, n, logits);
    if (n == 0)
        apply_first(r, logits);
    prefer_times(r, logits);
}
