/* Guesses from the sequence itself: what followed the last tokens where they stood before.
 *
 * As in LZ77, positions whose last `order` tokens have the same hash form a chain from the latest to
 * the earliest. A chain is a stack: a sequence that is cut back takes its positions off again. */
#include <string.h>

#include "ggl/alloc.h"
#include "source.h"

enum {
    ORDERS = 2,
    CHAIN_MAX = 16,  /* positions of a chain that are looked at */
    LENGTH_MAX = 24, /* tokens before a position that are compared */
    LENGTH_MIN = 2,  /* fewer equal tokens are no match */
    FIRST_CAP = 1024
};

/* A long match is looked for first: it may be far away. */
static const size_t order[ORDERS] = {5, 2};

typedef struct lookup {
    size_t n, cap; /* positions in the chains, and for how many there is memory */
    /* [2 * cap]: the latest position + 1 by hash; [cap]: the one before it; 0: none */
    uint32_t *head[ORDERS], *before[ORDERS];
} lookup;

static uint32_t *head_of(lookup *l, int o, const int32_t *id, size_t i) {
    uint64_t h = 0;
    for (size_t k = 0; k < order[o]; k++)
        h = (h ^ (uint32_t)id[i - k]) * 0x9e3779b97f4a7c15u;
    return &l->head[o][(h >> 32) & (2 * l->cap - 1)]; /* cap is a power of two */
}

static void push(lookup *l, const int32_t *id, size_t i) {
    for (int o = 0; o < ORDERS; o++) {
        l->before[o][i] = 0;
        if (i + 1 < order[o])
            continue;
        uint32_t *head = head_of(l, o, id, i);
        l->before[o][i] = *head;
        *head = (uint32_t)i + 1;
    }
    l->n = i + 1;
}

static void pop(lookup *l, const int32_t *id) {
    const size_t i = --l->n;
    for (int o = 0; o < ORDERS; o++)
        if (i + 1 >= order[o])
            *head_of(l, o, id, i) = l->before[o][i];
}

static void release(lookup *l) {
    for (int o = 0; o < ORDERS; o++) {
        ggl_free(l->head[o]);
        ggl_free(l->before[o]);
    }
    *l = (lookup){0};
}

/* Makes room for n positions; drops the existing ones if it needs more memory. Out of memory:
 * cap is 0 afterwards. */
static void make_room(lookup *l, size_t n) {
    size_t cap = l->cap ? l->cap : FIRST_CAP;
    if (n <= l->cap)
        return;
    while (cap < n)
        cap *= 2;
    release(l);
    bool ok = true;
    for (int o = 0; o < ORDERS && ok; o++) {
        l->head[o] = ggl_calloc(2 * cap, sizeof *l->head[o]);
        l->before[o] = ggl_calloc(cap, sizeof *l->before[o]);
        ok = l->head[o] && l->before[o];
    }
    l->cap = cap;
    if (!ok)
        release(l);
}

static void lookup_follow(void *self, const int32_t *old, size_t n_old, size_t n_same,
                          const int32_t *id, size_t n) {
    lookup *l = self;
    (void)n_old;
    while (l->n > n_same)
        pop(l, old);
    make_room(l, n);
    if (l->cap)
        for (size_t i = l->n; i < n; i++)
            push(l, id, i);
}

/* --- matches ---------------------------------------------------------------------------------- */

/* The number of equal tokens, up to LENGTH_MAX, that end at positions a < b. */
static size_t equal_tokens(const int32_t *id, size_t a, size_t b) {
    size_t n = 0;
    while (n < LENGTH_MAX && n <= a && id[a - n] == id[b - n])
        n++;
    return n;
}

/* Finds the longest match of the last tokens, the latest among equally long ones: sets *at to the
 * position where it ends, and returns its length, or 0. */
static size_t longest_match(const lookup *l, const int32_t *id, size_t *at) {
    size_t best = 0;
    const size_t last = l->n - 1;
    for (int o = 0; o < ORDERS; o++) {
        uint32_t c = l->before[o][last];
        for (int i = 0; i < CHAIN_MAX && c > 0 && best < LENGTH_MAX; i++) {
            const size_t n = equal_tokens(id, c - 1, last);
            if (n > best) {
                best = n;
                *at = c - 1;
            }
            c = l->before[o][c - 1];
        }
        if (best >= order[o]) /* the other chains have no longer one */
            break;
    }
    return best >= LENGTH_MIN ? best : 0;
}

static int64_t lookup_propose(void *self, const int32_t *id, size_t n, int32_t *out, uint8_t *class,
                              int64_t n_max) {
    const lookup *l = self;
    size_t at = 0;
    const size_t length = l->n == n && n > 0 ? longest_match(l, id, &at) : 0;
    if (length == 0)
        return 0;
    for (size_t k = 0; k < (size_t)n_max; k++) {
        /* at the sequence's end its own guesses go on: what repeats, repeats on */
        const size_t from = at + 1 + k, c = length + k;
        out[k] = from < n ? id[from] : out[from - n];
        class[k] = c < PACE_CLASSES ? (uint8_t)c : PACE_CLASSES - 1;
    }
    return n_max;
}

static void lookup_free(void *self) {
    release(self);
    ggl_free(self);
}

ggl_status llm_guess_lookup(llm_guess **out, const llm_guess_params *p, ggl_error *err) {
    *out = NULL;
    lookup *l = ggl_calloc(1, sizeof *l);
    if (!l)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a guesser");
    guess_source source = {.follow = lookup_follow,
                           .propose = lookup_propose,
                           .free = lookup_free,
                           .is_cheap = true,
                           .self = l};
    /* the longer the match, the likelier it goes on */
    for (int i = 0; i <= PACE_CLASSES; i++)
        source.prior[i] = (i + 1) / (i + 4.0);
    return llm_guess_new(out, p, &source, err);
}
