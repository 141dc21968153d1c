#include "room.h"

#include <stdbool.h>

#include "least.h"

enum {
    FIRST_PIECE = 64,  /* beside others, while it is not known what a token costs */
    SHORTEST_PIECE = 8 /* however long a step takes */
};

/* --- how many --------------------------------------------------------------------------------- */

int64_t llm_room_for_prompts(const room *r, int64_t n_most, int64_t n_generating) {
    if (n_generating == 0)
        return n_most;
    if (r->token_ns <= 0)
        return least(n_most, FIRST_PIECE);
    /* where a step without prompts takes long already, prompts may add half of its time */
    const double rest = (double)r->step_ns - r->generate_ns, half = r->generate_ns / 2;
    const double n = (rest > half ? rest : half) / r->token_ns;
    if (n < SHORTEST_PIECE)
        return least(n_most, SHORTEST_PIECE);
    return n < (double)n_most ? (int64_t)n : n_most;
}

/* Follows the recent values: a quarter of each. */
static void follow(double *mean, double value) {
    *mean = *mean > 0 ? *mean + (value - *mean) / 4 : value;
}

void llm_room_learn(room *r, int64_t ns, int64_t n_prompt, int64_t n_generating) {
    if (n_prompt == 0) {
        follow(&r->generate_ns, (double)ns);
        return;
    }
    double rest = (double)ns;
    if (n_generating > 0 && r->generate_ns < rest)
        rest -= r->generate_ns;
    follow(&r->token_ns, rest / (double)n_prompt);
}

/* --- whose ------------------------------------------------------------------------------------ */

static int count_clients(const room_share *s, int n) {
    int n_clients = 0;
    for (int k = 0; k < n; k++) {
        bool is_new = true;
        for (int j = 0; j < k; j++)
            is_new &= s[j].client != s[k].client;
        n_clients += is_new;
    }
    return n_clients;
}

static int count_prompts(const room_share *s, int n, uint64_t client) {
    int n_prompts = 0;
    for (int k = 0; k < n; k++)
        n_prompts += s[k].client == client;
    return n_prompts;
}

/* The prompt that wants more and has least left; of equals the first. -1: none wants more. */
static int soonest(const room_share *s, int n) {
    int best = -1;
    for (int i = 0; i < n; i++)
        if (s[i].get < s[i].want && (best < 0 || s[i].left - s[i].get < s[best].left - s[best].get))
            best = i;
    return best;
}

void llm_room_divide(room_share *s, int n_prompts, int64_t n) {
    const int n_clients = count_clients(s, n_prompts);
    int64_t rest = n;
    for (int i = 0; i < n_prompts; i++) {
        const int64_t part = n / 2 / n_clients / count_prompts(s, n_prompts, s[i].client);
        /* however little room there is, the first prompt goes on */
        s[i].get = least(s[i].want, i == 0 && part == 0 ? least(n, 1) : part);
        rest -= s[i].get;
    }
    for (int i; rest > 0 && (i = soonest(s, n_prompts)) >= 0;) {
        const int64_t more = least(rest, s[i].want - s[i].get);
        s[i].get += more;
        rest -= more;
    }
}
