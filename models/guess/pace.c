#include "pace.h"

#include <math.h>

/* The debt, in steps without guesses, up to which guesses are made; how much of it each token pays
 * off; and the credit that gains can build up. */
static const double debt_max = 2, paid_per_token = 0.02, credit_max = 8;
/* The assumed cost of one guess before any was measured. */
static const double assumed_cost = 0.25, assumed_source = 0.1;
/* The weight of a prior, in guesses; and the number of guesses over which a rate is averaged. */
static const double prior_weight = 2, rate_window = 48;
/* After this many steps with guesses, one runs without, to measure its cost again. */
enum { PLAIN_EVERY = 64 };

static double least(double a, double b) {
    return a < b ? a : b;
}

static double most(double a, double b) {
    return a > b ? a : b;
}

void llm_pace_init(pace *p, const double prior[PACE_CLASSES + 1]) {
    *p = (pace){.asked.prior = 0.5}; /* a text finds out with a few questions */
    for (int i = 0; i <= PACE_CLASSES; i++)
        p->rate[i].prior = prior[i];
}

/* --- what was measured ------------------------------------------------------------------------ */

static void add(pace_mean *m, double x, double window) {
    m->n = least(m->n + 1, window);
    m->mean += (x - m->mean) / m->n;
}

static void rate(pace_rate *r, bool is_right) {
    const double keep = 1 - 1 / rate_window;
    r->right = r->right * keep + is_right;
    r->n = r->n * keep + 1;
}

void llm_pace_rate(pace *p, int class, bool is_right) {
    rate(&p->rate[class], is_right);
}

void llm_pace_rate_asked(pace *p, int64_t n_used, int64_t n_right) {
    rate(&p->asked, n_used > 0);
    for (int64_t i = 0; i < n_used && i <= n_right; i++)
        rate(&p->rate[PACE_ANY], i < n_right);
}

/* A step without guesses. What is known about guesses is slowly forgotten, so that one bad
 * measurement is not final: sometimes they are tried again. */
static void record_plain(pace *p, double ns) {
    const double keep = 1 - 1.0 / 256;
    if (ns < p->plain.mean / 2) /* the earlier ones waited for something, such as shaders */
        p->plain.n = 0;
    add(&p->plain, p->plain.n > 0 ? least(ns, 2 * p->plain.mean) : ns, 16);
    for (int k = 1; k <= LLM_GUESS_MOST; k++) {
        p->cost[0][k].mean *= keep;
        p->cost[1][k].mean *= keep;
    }
    pace_rate *const of_source[] = {&p->rate[PACE_ANY], &p->asked};
    for (int i = 0; i < 2; i++) {
        of_source[i]->right *= keep;
        of_source[i]->n *= keep;
    }
    p->n_since_plain = 0;
}

/* True if a step of n elements took so long that the program must have waited for something else.
 * After MAX_PAUSES in a row, the step itself is slow. */
static bool is_pause(pace *p, double ns, double n) {
    enum { MAX_PAUSES = 2 };
    const bool is_long = p->plain.n > 0 && ns > 5 * p->plain.mean * n;
    p->n_pauses = is_long && p->n_pauses < MAX_PAUSES ? p->n_pauses + 1 : 0;
    return p->n_pauses > 0;
}

void llm_pace_record(pace *p, const pace_step *s) {
    const double n_tokens = (double)s->n_tokens, k = (double)s->n_guessed;
    const double step = (double)s->step_ns;
    if (is_pause(p, step, k + n_tokens))
        return;
    if (s->n_guessed == 0)
        record_plain(p, step / n_tokens);
    if (s->n_source > 0)
        add(&p->source, (double)s->source_ns / (double)s->n_source, 16);
    if (s->n_read >= 8) /* few at once are as slow as guesses */
        add(&p->reading, (double)s->read_ns / (double)s->n_read, 4);
    if (p->plain.n == 0)
        return;
    double lost = (double)s->guess_ns / p->plain.mean;
    if (s->n_guessed > 0) {
        const double steps = step / p->plain.mean;
        /* tokens beyond the guessed ones came from steps without guesses */
        const double others = n_tokens - (double)(s->n_right + 1);
        const double cost = most(steps - others - 1, 0);
        add(&p->cost[s->n_right == s->n_guessed][s->n_guessed], cost, 6);
        lost += steps - n_tokens;
        p->n_since_plain++;
    }
    p->debt = most(least(p->debt + lost, 50) - paid_per_token * n_tokens, -credit_max);
}

/* --- what is expected ------------------------------------------------------------------------- */

/* The measured cost of k guesses, between measured numbers a straight line. Returns false if none was
 * measured. */
static bool measured_cost(const pace_mean *cost, int64_t k, double *out) {
    int64_t below = k, above = k;
    while (below > 0 && cost[below].n == 0)
        below--;
    while (above <= LLM_GUESS_MOST && cost[above].n == 0)
        above++;
    if (above <= LLM_GUESS_MOST) {
        const double from = below > 0 ? cost[below].mean : 0;
        const double part = above > below ? (double)(k - below) / (double)(above - below) : 0;
        *out = from + (cost[above].mean - from) * part;
        return true;
    }
    if (below > 0)
        *out = cost[below].mean * (double)k / (double)below;
    return below > 0;
}

static double expected_cost(const pace *p, int64_t k, double p_all_right) {
    double cost[2];
    const bool known[2] = {measured_cost(p->cost[0], k, &cost[0]),
                           measured_cost(p->cost[1], k, &cost[1])};
    for (int i = 0; i < 2; i++)
        if (!known[i])
            cost[i] = known[1 - i] ? cost[1 - i] : assumed_cost * (double)k;
    return cost[1] * p_all_right + cost[0] * (1 - p_all_right);
}

static double expected_rate(const pace_rate *r) {
    return (r->right + r->prior * prior_weight) / (r->n + prior_weight);
}

bool llm_pace_allows(const pace *p, int64_t n_read) {
    if (p->plain.n <= 1)
        return false;
    return p->debt + p->reading.mean * (double)n_read / p->plain.mean < debt_max;
}

void llm_pace_restart(pace *p) {
    p->debt = least(p->debt, 0);
    p->asked.right /= most(p->asked.n, 1);
    p->asked.n = least(p->asked.n, 1);
}

int64_t llm_pace_choose(const pace *p, const uint8_t *class, int64_t n, bool ready) {
    /* few different numbers, so that each is measured often */
    static const int64_t size[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
    if (!llm_pace_allows(p, 0) || p->n_since_plain >= PLAIN_EVERY)
        return 0;
    double best = 1.02, p_right = 1, n_tokens = 1;
    const double source = ready             ? 0
                          : p->source.n > 0 ? p->source.mean / p->plain.mean
                                            : assumed_source;
    const double used =
        ready ? 1 : expected_rate(&p->asked); /* else it is a step without guesses */
    int64_t chosen = 0, k = 0;
    for (int i = 0; i < (int)(sizeof size / sizeof *size) && k < n; i++) {
        for (; k < size[i] && k < n; k++) {
            p_right *= expected_rate(&p->rate[class[k]]);
            n_tokens += p_right;
        }
        const double cost = 1 + used * expected_cost(p, k, p_right) + source * (double)k;
        const double gain = (1 + used * (n_tokens - 1)) / cost;
        if (gain > best) {
            best = gain;
            chosen = k;
        }
    }
    return chosen;
}
