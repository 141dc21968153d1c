#include "room.h"

#include <math.h>
#include <stdlib.h>

#include "common/least.h"

enum {
    FIRST_PIECE = 64,  /* beside others, while it is not known what a token costs */
    SHORTEST_PIECE = 8 /* however long a step takes */
};

/* --- what a token costs ----------------------------------------------------------------------- */

/* Positions are measured in these units while costs are learned. A token deeper than one unit corrects
 * mostly depth_ns, a token before it mostly token_ns. */
static const double depth_unit = 2048;
/* Recent values count: each corrects a quarter of what was wrong. */
static const double pace = 0.25;

static double not_negative(double x) {
    return x > 0 ? x : 0;
}

double llm_room_token_ns(const room *r, double pos) {
    return r->token_ns + r->depth_ns * pos;
}

/* Moves a mean by a quarter of the way to a new value. */
static void follow(double *mean, double value) {
    *mean = *mean > 0 ? *mean + (value - *mean) * pace : value;
}

/* Tokens at this mean position took so long each. (Normalized least mean squares: of all changes of the
 * two numbers that correct a quarter of the error, the smallest.) */
static void follow_token(room *r, double pos, double ns) {
    if (r->token_ns <= 0) {
        r->token_ns = ns;
        return;
    }
    const double x = pos / depth_unit;
    const double change = (ns - llm_room_token_ns(r, pos)) * pace / (1 + x * x);
    r->token_ns += change;
    r->depth_ns = not_negative(r->depth_ns + change * x / depth_unit);
    if (r->token_ns <= 0)
        r->token_ns = 1; /* nearly nothing, but known */
}

void llm_room_learn(room *r, int64_t ns, int64_t n_prompt, double depth, int64_t n_generating) {
    if (n_prompt == 0) {
        follow(&r->generate_ns, (double)ns);
        return;
    }
    double rest = (double)ns;
    if (n_generating > 0 && r->generate_ns < rest)
        rest -= r->generate_ns;
    follow_token(r, depth / (double)n_prompt, rest / (double)n_prompt);
}

/* --- how many --------------------------------------------------------------------------------- */

void llm_room_for_prompts(const room *r, room_share *s, int n_prompts, int64_t n_most,
                          int64_t n_generating) {
    if (n_generating == 0 || r->token_ns <= 0) {
        llm_room_divide(s, n_prompts, n_generating == 0 ? n_most : least(n_most, FIRST_PIECE),
                        INFINITY);
        return;
    }
    /* where a step without prompts takes long already, prompts may add half of its time */
    const double rest = (double)r->step_ns - r->generate_ns, half = r->generate_ns / 2;
    double dearest = 0;
    for (int i = 0; i < n_prompts; i++)
        dearest = fmax(dearest, s[i].token_ns);
    llm_room_divide(s, n_prompts, n_most, fmax(fmax(rest, half), SHORTEST_PIECE * dearest));
}

/* --- whose ------------------------------------------------------------------------------------ */

static int by_client(const void *a, const void *b) {
    const room_share *x = a, *y = b;
    return x->client != y->client ? (x->client > y->client) - (x->client < y->client)
                                  : (x->at > y->at) - (x->at < y->at);
}

/* The prompt that has least left comes first; of equals the one that came first. */
static int by_rest(const void *a, const void *b) {
    const room_share *x = a, *y = b;
    const int64_t p = x->left - x->get, q = y->left - y->get;
    return p != q ? (p > q) - (p < q) : (x->at > y->at) - (x->at < y->at);
}

static int by_place(const void *a, const void *b) {
    const room_share *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static void sort(room_share *s, int n, int (*order)(const void *, const void *)) {
    qsort(s, (size_t)n, sizeof *s, order);
}

/* The tokens that a prompt can run in `ns` nanoseconds, n at most. */
static int64_t tokens_in(const room_share *s, int64_t n, double ns) {
    return (double)n * s->token_ns <= ns ? n : (int64_t)(not_negative(ns) / s->token_ns);
}

/* The number of prompts of the client of s[0], of those of one client that follow each other. */
static int n_alike(const room_share *s, int n) {
    int i = 1;
    while (i < n && s[i].client == s[0].client)
        i++;
    return i;
}

/* Gives each prompt the part of its client that is its own; sorted by client. */
static void give_parts(room_share *s, int n_prompts, int64_t n_most, double ns) {
    int n_clients = 0;
    for (int i = 0; i < n_prompts; i += n_alike(s + i, n_prompts - i))
        n_clients++;
    for (int i = 0, n; i < n_prompts; i += n) {
        n = n_alike(s + i, n_prompts - i);
        const int64_t part = n_most / 2 / n_clients / n;
        for (int k = i; k < i + n; k++) {
            s[k].get = tokens_in(&s[k], least(s[k].want, part), ns / 2 / n_clients / n);
            /* however little room there is, the first prompt goes on */
            if (s[k].at == 0 && s[k].get == 0)
                s[k].get = least(s[k].want, least(n_most, 1));
        }
    }
}

void llm_room_divide(room_share *s, int n_prompts, int64_t n_most, double ns) {
    for (int i = 0; i < n_prompts; i++)
        s[i].at = i;
    sort(s, n_prompts, by_client);
    give_parts(s, n_prompts, n_most, ns);
    for (int i = 0; i < n_prompts; i++) {
        n_most -= s[i].get;
        ns -= (double)s[i].get * s[i].token_ns;
    }
    sort(s, n_prompts, by_rest);
    for (int i = 0; i < n_prompts && n_most > 0; i++) {
        const int64_t more = tokens_in(&s[i], least(n_most, s[i].want - s[i].get), ns);
        s[i].get += more;
        n_most -= more;
        ns -= (double)more * s[i].token_ns;
    }
    sort(s, n_prompts, by_place);
}
