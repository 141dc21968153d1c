#include "sampler_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct list {
    model_candidate c[MODEL_MOST];
    int n;
} list;

static int by_logit(const void *a, const void *b) {
    const model_candidate *x = a, *y = b;
    return x->logit != y->logit ? (x->logit < y->logit ? 1 : -1) : x->id - y->id;
}

/* Sorts, and sets the probabilities. */
static void softmax(list *l) {
    double sum = 0;
    qsort(l->c, (size_t)l->n, sizeof *l->c, by_logit);
    for (int i = 0; i < l->n; i++) {
        const bool equal = l->c[i].logit == l->c[0].logit;
        l->c[i].p = equal ? 1 : exp(l->c[i].logit - l->c[0].logit);
        sum += l->c[i].p;
    }
    for (int i = 0; i < l->n; i++)
        l->c[i].p /= sum;
}

static void remove_at(list *l, int i) {
    memmove(l->c + i, l->c + i + 1, (size_t)(l->n - i - 1) * sizeof *l->c);
    l->n--;
}

static double entropy(const list *l) {
    double h = 0;
    for (int i = 0; i < l->n; i++)
        h -= l->c[i].p > 0 ? l->c[i].p * log(l->c[i].p) : 0;
    return h;
}

/* --- stages that change logits --- */

/* They work on floats. */
static void round_all(list *l) {
    for (int i = 0; i < l->n; i++)
        l->c[i].logit = (float)l->c[i].logit;
}

static int most_past(const sampler_model *m, int last_n) {
    return last_n < 0 || last_n > m->n_last ? m->n_last : last_n;
}

static int window(const sampler_model *m, int last_n) {
    const int n = most_past(m, last_n);
    return n < m->n_past ? n : m->n_past;
}

static void penalties(const sampler_model *m, list *l) {
    const int n = window(m, m->p.repeat_last_n);
    if (m->p.repeat_penalty == 1 && m->p.frequency_penalty == 0 && m->p.presence_penalty == 0)
        return;
    if (most_past(m, m->p.repeat_last_n) == 0)
        return;
    round_all(l);
    for (int i = 0; i < l->n; i++) {
        int count = 0;
        for (int k = 0; k < n; k++)
            count += m->past[m->n_past - 1 - k] == l->c[i].id;
        if (count == 0 || isinf(l->c[i].logit))
            continue;
        float x = (float)l->c[i].logit;
        x = x > 0 ? x / m->p.repeat_penalty : x * m->p.repeat_penalty;
        const float each = (float)count * m->p.frequency_penalty;
        l->c[i].logit = x - (each + m->p.presence_penalty);
    }
}

static bool ends_at(const char *text, size_t n, ggl_str s) {
    return s.n <= n && memcmp(text + n - s.n, s.s, s.n) == 0;
}

static bool contains(ggl_str text, ggl_str s) {
    for (size_t i = 0; i <= text.n; i++)
        if (ends_at(text.s, i, s))
            return true;
    return false;
}

/* Returns how many tokens were accepted after the last one in which a breaker ends. */
static int since_break(const sampler_model *m) {
    static char text[MODEL_PAST * 64];
    size_t n = 0;
    int since = 0;
    for (int i = 0; i < m->n_past; i++) {
        const ggl_str piece = m->text[m->past[i]];
        since++;
        for (size_t k = 0; k < piece.n; k++) {
            text[n++] = piece.s[k];
            for (size_t b = 0; b < m->p.n_dry_breakers && m->p.tokenizer; b++)
                if (ends_at(text, n, m->p.dry_breakers[b]))
                    since = 0;
        }
    }
    return since;
}

/* Returns the longest repetition that the token would continue; -1: none that counts. */
static int repetition(const sampler_model *m, int id, int since) {
    const int n = window(m, m->p.dry_last_n);
    const int *past = m->past + m->n_past - n;
    int longest = -1;
    for (size_t b = 0; b < m->p.n_dry_breakers && m->p.tokenizer; b++)
        if (contains(m->text[id], m->p.dry_breakers[b]))
            return -1;
    for (int at = 1; at < n; at++) {
        int length = 0;
        while (length < since && length < at && past[at - 1 - length] == past[n - 1 - length])
            length++;
        if (past[at] == id && length > longest)
            longest = length;
    }
    /* if no repetition may be as long as allowed, there are none */
    return (since < n ? since : n) < m->p.dry_allowed_length ? -1 : longest;
}

static void dry(const sampler_model *m, list *l) {
    const int since = since_break(m);
    if (most_past(m, m->p.dry_last_n) == 0)
        return;
    round_all(l);
    for (int i = 0; i < l->n; i++) {
        const int length = repetition(m, l->c[i].id, since),
                  over = length - m->p.dry_allowed_length;
        if (length < 0 || over < 0 || isinf(l->c[i].logit))
            continue;
        const double x = l->c[i].logit - m->p.dry_multiplier * pow(m->p.dry_base, over);
        l->c[i].logit = x < -3.4028234663852886e38 ? -3.4028234663852886e38 : (float)x;
    }
}

/* --- stages that remove tokens --- */

static void top_n_sigma(const sampler_model *m, list *l) {
    double largest = -INFINITY, sum = 0, squares = 0;
    int n = 0;
    for (int i = 0; i < l->n; i++)
        if (l->c[i].logit > -INFINITY) {
            largest = fmax(largest, l->c[i].logit);
            sum += l->c[i].logit;
            n++;
        }
    for (int i = 0; i < l->n && n > 0; i++)
        if (l->c[i].logit > -INFINITY)
            squares += pow(l->c[i].logit - sum / n, 2);
    if (m->p.top_n_sigma <= 0 || n == 0 || largest == INFINITY)
        return;
    for (int i = l->n - 1; i >= 0; i--)
        if (l->c[i].logit < largest - m->p.top_n_sigma * sqrt(squares / n))
            remove_at(l, i);
}

static void top_k(const sampler_model *m, list *l) {
    softmax(l);
    if (m->p.top_k > 0 && m->p.top_k < l->n)
        l->n = m->p.top_k;
}

static void top_p(const sampler_model *m, list *l) {
    double sum = 0;
    softmax(l);
    for (int i = 0; i < l->n && m->p.top_p < 1; i++) {
        sum += l->c[i].p;
        if (sum >= m->p.top_p)
            l->n = i + 1;
    }
}

static void min_p(const sampler_model *m, list *l) {
    softmax(l);
    for (int i = l->n - 1; i > 0 && m->p.min_p > 0; i--)
        if (l->c[i].p < m->p.min_p * l->c[0].p)
            remove_at(l, i);
}

static double typical_h; /* for the comparison below */

static int by_distance(const void *a, const void *b) {
    const model_candidate *x = a, *y = b;
    const double dx = fabs(-log(x->p) - typical_h), dy = fabs(-log(y->p) - typical_h);
    return dx != dy ? (dx < dy ? -1 : 1) : by_logit(a, b);
}

static void typ_p(const sampler_model *m, list *l) {
    double sum = 0;
    softmax(l);
    if (m->p.typ_p >= 1)
        return;
    typical_h = entropy(l);
    qsort(l->c, (size_t)l->n, sizeof *l->c, by_distance);
    int kept = 0;
    while (kept < l->n &&
           (kept == 0 || sum < m->p.typ_p || l->c[kept].logit == l->c[kept - 1].logit))
        sum += l->c[kept++].p;
    l->n = kept;
}

static void xtc(const sampler_model *m, list *l) {
    softmax(l);
    if (m->p.xtc_threshold <= 0.5f)
        while (l->n > 1 && l->c[1].p >= m->p.xtc_threshold)
            remove_at(l, 0);
}

static void temperature(const sampler_model *m, list *l) {
    double t = m->p.temp, range = m->p.dynatemp_range;
    softmax(l);
    if (range > 0 && l->n < 2)
        return;
    if (range > 0) {
        const double low = fmax(0, t - range), share = entropy(l) / log(l->n);
        t = low + (t + range - low) * pow(fmax(0, fmin(1, share)), m->p.dynatemp_exponent);
    }
    for (int i = 0; i < l->n && t > 0; i++)
        l->c[i].logit /= t;
    if (t <= 0)
        l->n = 1;
}

/* --- the chain --- */

static void begin(const sampler_model *m, const float *logits, const uint32_t *allowed, list *l) {
    l->n = 0;
    for (int id = 0; id < m->n_vocab; id++) {
        bool forbidden = allowed && !(allowed[id / 32] >> id % 32 & 1);
        float x = isnan(logits[id]) ? -INFINITY : logits[id];
        for (size_t k = 0; k < m->p.n_bias; k++)
            if (m->p.bias[k].id == id) {
                forbidden = forbidden || m->p.bias[k].bias == -INFINITY;
                x += m->p.bias[k].bias;
            }
        if (!forbidden)
            l->c[l->n++] = (model_candidate){id, x, 0};
    }
}

static void mirostat(const sampler_model *m, list *l) {
    softmax(l);
    for (int i = l->n - 1; i > 0; i--)
        if (-log2(l->c[i].p) > m->mu)
            l->n = i;
}

static void run_stage(const sampler_model *m, int stage, bool has_xtc, list *l) {
    const bool greedy = m->p.temp <= 0, cuts = !greedy && !m->p.mirostat;
    if (stage == LLM_SAMPLER_PENALTIES)
        penalties(m, l);
    else if (stage == LLM_SAMPLER_DRY && m->p.dry_multiplier > 0)
        dry(m, l);
    else if (stage == LLM_SAMPLER_TEMPERATURE && !greedy)
        temperature(m, l);
    else if (stage == LLM_SAMPLER_TOP_N_SIGMA && cuts)
        top_n_sigma(m, l);
    else if (stage == LLM_SAMPLER_TOP_K && cuts)
        top_k(m, l);
    else if (stage == LLM_SAMPLER_TOP_P && cuts)
        top_p(m, l);
    else if (stage == LLM_SAMPLER_MIN_P && cuts)
        min_p(m, l);
    else if (stage == LLM_SAMPLER_TYP_P && cuts)
        typ_p(m, l);
    else if (stage == LLM_SAMPLER_XTC && cuts && has_xtc)
        xtc(m, l);
}

int model_candidates(const sampler_model *m, const float *logits, const uint32_t *allowed,
                     bool xtc_, model_candidate *out) {
    static list l;
    begin(m, logits, allowed, &l);
    if (l.n == 0)
        return 0;
    for (int i = 0; i < (m->p.n_stages ? m->p.n_stages : LLM_SAMPLER_N_STAGES); i++)
        run_stage(m, m->p.n_stages ? m->p.stage[i] : i, xtc_, &l);
    if (m->p.temp > 0 && m->p.mirostat)
        mirostat(m, &l);
    softmax(&l);
    if (m->p.temp <= 0) {
        l.n = 1;
        l.c[0].p = 1;
    }
    softmax(&l);
    memcpy(out, l.c, (size_t)l.n * sizeof *out);
    return l.n;
}

void model_mirostat(sampler_model *m, double p) {
    m->mu -= m->p.mirostat_eta * (-log2(p) - m->p.mirostat_tau);
}
