/* Guessers without a model: the next tokens and the times of steps are made up. */
#include "llm/internal/guess.h"

#include <math.h>

#include "alloc_fail.h"
#include "guess/source.h"
#include "test.h"

enum { LONGEST = 4000 };

/* A generator that does no work: the text is known, and a step takes the time that the test says. */
typedef struct world {
    int32_t text[LONGEST];
    int64_t n;
    double now, plain_ns; /* of a step without guesses */
    double cost;          /* of a guess, in such steps */
    double wrong_cost;    /* of a step with a wrong guess, besides */
    double noise;         /* a step takes up to this share more or less */
    int pause_every;      /* steps after which the program waits for half a second; 0: never */
    int slow_until;       /* so many steps at the start take 300 times as long: shaders compile */
    uint64_t seed;
    int64_t n_guessed, n_right;
} world;

static int64_t clock_of(void *ctx) {
    return (int64_t)((world *)ctx)->now;
}

static double any(world *w) {
    return (double)(test_random(&w->seed) >> 11) * 0x1p-53;
}

/* Generates text[from .. n) and returns the time, in steps without guesses; pauses do not count. */
static double generate(world *w, llm_guess *g, int64_t from) {
    const llm_guesser *guesser = llm_guess_guesser(g);
    double total = 0;
    for (int64_t n = from, i = 1; n < w->n; i++) {
        int32_t guess[16];
        const double begin = w->now;
        const int64_t room = w->n - n - 1, most = room < 16 ? room : 16;
        const int64_t k =
            most > 0 ? guesser->guess(guesser->self, w->text, (size_t)n, (size_t)n, guess, most)
                     : 0;
        int64_t right = 0;
        while (right < k && guess[right] == w->text[n + right])
            right++;
        const double steps = 1 + w->cost * (double)k + (right < k ? w->wrong_cost : 0);
        w->now += w->plain_ns * steps * (1 + w->noise * (2 * any(w) - 1));
        total += (w->now - begin) / w->plain_ns;
        w->now += i <= w->slow_until ? 300 * w->plain_ns : 0;
        w->n_guessed += k;
        w->n_right += right;
        n += right + 1;
        if (w->pause_every && i % w->pause_every == 0)
            w->now += 5e8;
    }
    return total;
}

static void random_text(world *w, int n_vocab) {
    for (w->n = 0; w->n < LONGEST; w->n++)
        w->text[w->n] = (int32_t)(test_random(&w->seed) % (uint64_t)n_vocab);
}

/* A passage of that length again and again, some tokens of it changed. */
static void repeating_text(world *w, int length, int changed_of_100) {
    for (w->n = 0; w->n < LONGEST; w->n++)
        w->text[w->n] = w->n < length || (int)(test_random(&w->seed) % 100) < changed_of_100
                            ? (int32_t)(test_random(&w->seed) % 5000)
                            : w->text[w->n - length];
}

static llm_guess *lookup_new(world *w, bool always) {
    llm_guess_params p = llm_guess_default();
    ggl_error err = {0};
    llm_guess *g = NULL;
    p.always = always;
    p.clock = clock_of;
    p.clock_ctx = w;
    CHECK_OK(llm_guess_lookup(&g, &p, &err), &err);
    return g;
}

/* --- the pace --------------------------------------------------------------------------------- */

/* Costs of a guess, from where memory is the limit to where computing is. */
static const double costs[] = {0.02, 0.1, 0.3, 0.6, 1, 2};

TEST(text_that_does_not_repeat_takes_at_most_5_percent_longer) {
    for (int i = 0; i < 6 * 4 * 4; i++) {
        static const int vocab[] = {3, 20, 300, 10000};
        world w = {.seed = (uint64_t)i, .plain_ns = 1e6, .cost = costs[i % 6]};
        w.wrong_cost = i / 24 == 1 ? 1.5 : 0;
        w.noise = i / 24 == 2 ? 0.3 : 0;
        w.slow_until = i / 24 == 3 ? 2 : 0;
        random_text(&w, vocab[i / 6 % 4]);
        llm_guess *g = lookup_new(&w, false);
        const double steps = generate(&w, g, 10) / (LONGEST - 10);
        CHECK_MSG(steps < 1.05, "case %d: %.3f times as long as without guesses, %d of %d right", i,
                  steps, (int)w.n_right, (int)w.n_guessed);
        llm_guess_free(g);
    }
}

TEST(text_that_repeats_is_faster) {
    static const double least[] = {5, 3.5, 2, 1.3, 0.96, 0.96};
    for (int i = 0; i < 6 * 3; i++) {
        world w = {.seed = (uint64_t)i, .plain_ns = 1e6, .cost = costs[i % 6]};
        w.noise = i / 6 == 1 ? 0.3 : 0;
        w.pause_every = i / 6 == 2 ? 37 : 0;
        repeating_text(&w, 40, 2);
        llm_guess *g = lookup_new(&w, false);
        const double speed = (LONGEST - 45) / generate(&w, g, 45);
        CHECK_MSG(speed > least[i % 6], "case %d: %.2f times as fast, %d of %d right", i, speed,
                  (int)w.n_right, (int)w.n_guessed);
        llm_guess_free(g);
    }
}

/* Guesses that cost as much as a step each are declined, unless they are asked for. */
TEST(declined_steps_are_counted) {
    for (int always = 0; always < 2; always++) {
        world w = {.seed = 3, .plain_ns = 1e6, .cost = 1.5};
        int64_t n_steps;
        random_text(&w, 3);
        llm_guess *g = lookup_new(&w, always);
        (void)generate(&w, g, 10);
        const int64_t n_declined = llm_guess_declined(g, &n_steps);
        CHECK_MSG(always ? n_declined == 0 : n_declined > n_steps / 2, "%d of %d", (int)n_declined,
                  (int)n_steps);
        llm_guess_free(g);
    }
}

/* A long piece of noise must not end guessing for good, nor a repetition make it careless. */
TEST(the_pace_follows_the_text) {
    world w = {.seed = 5, .plain_ns = 1e6, .cost = 0.1};
    random_text(&w, 50);
    for (int i = 1000; i < 2000; i++)
        w.text[i] = w.text[1000 + i % 30];
    for (int i = 3000; i < 4000; i++)
        w.text[i] = w.text[3000 + i % 70];
    llm_guess *g = lookup_new(&w, false);
    double steps[4];
    for (int k = 0; k < 4; k++) {
        w.n = (k + 1) * 1000;
        steps[k] = generate(&w, g, k == 0 ? 10 : k * 1000);
    }
    CHECK_MSG(steps[0] < 1050 && steps[2] < 1050, "noise: %g and %g steps for 1000 tokens",
              steps[0], steps[2]);
    CHECK_MSG(steps[1] < 400 && steps[3] < 400, "repetition: %g and %g steps for 1000 tokens",
              steps[1], steps[3]);
    llm_guess_free(g);
}

/* A model as draft: each guess is right with probability q, and takes time to make. */
typedef struct oracle {
    world *w;
    double q, time; /* of a guess, in steps without guesses */
    double reading; /* of a token */
    double
        unsure; /* share of the times it is asked in which it makes no guess, in the time of one */
    size_t n_read;
    int n_asked;
} oracle;

static void oracle_follow(void *self, const int32_t *old, size_t n_old, size_t n_same,
                          const int32_t *id, size_t n) {
    oracle *o = self;
    (void)old, (void)n_old, (void)id, (void)n;
    o->n_read = o->n_read < n_same ? o->n_read : n_same;
}

static int64_t oracle_catch_up(void *self, const int32_t *id, size_t n) {
    oracle *o = self;
    const size_t n_new = n - o->n_read;
    (void)id;
    o->n_asked++;
    o->n_read = n;
    o->w->now += o->reading * o->w->plain_ns * (double)n_new;
    return (int64_t)n_new;
}

static int64_t oracle_propose(void *self, const int32_t *id, size_t n, int32_t *out, uint8_t *class,
                              int64_t n_max) {
    const oracle *o = self;
    (void)id;
    if (o->unsure > 0 && any(o->w) < o->unsure)
        return (void)(o->w->now += o->time * o->w->plain_ns), 0;
    for (int64_t k = 0; k < n_max; k++) {
        const bool is_right = any(o->w) < o->q;
        out[k] = is_right ? o->w->text[n + (size_t)k] : -1;
        class[k] = 10;
    }
    o->w->now += o->time * o->w->plain_ns * (double)n_max;
    return n_max;
}

static void oracle_free(void *self) {
    (void)self;
}

static llm_guess *oracle_new(oracle *o) {
    guess_source source = {.follow = oracle_follow,
                           .catch_up = oracle_catch_up,
                           .propose = oracle_propose,
                           .free = oracle_free,
                           .self = o};
    for (int i = 0; i <= PACE_CLASSES; i++)
        source.prior[i] = 0.7;
    llm_guess_params p = llm_guess_default();
    p.clock = clock_of;
    p.clock_ctx = o->w;
    llm_guess *g = NULL;
    ggl_error err = {0};
    CHECK_OK(llm_guess_new(&g, &p, &source, &err), &err);
    return g;
}

/* Returns how many times as fast the text is after its first n_prompt tokens; the time for reading
 * these does not count. */
static double with_draft(double q, double time, double cost, int64_t n_prompt) {
    static world w;
    w = (world){.seed = 7, .plain_ns = 1e6, .cost = cost};
    oracle o = {.w = &w, .q = q, .time = time, .reading = time / 3};
    random_text(&w, 30000);
    llm_guess *g = oracle_new(&o);
    if (!g)
        return 0;
    const double steps = generate(&w, g, n_prompt) - (o.n_read ? o.reading * (double)n_prompt : 0);
    llm_guess_free(g);
    return (double)(LONGEST - n_prompt) / steps;
}

TEST(a_draft_is_used_as_far_as_it_pays) {
    static const struct {
        double q, time, cost, least;
    } c[] = {
        {0, 0.1, 0.1, 0.95},    {0.3, 0.3, 0.5, 0.95}, {0.5, 0.5, 0.2, 0.95}, {0.9, 1, 1, 0.95},
        {0.9, 0.05, 0.05, 2.5}, {0.8, 0.1, 0.1, 1.6},  {0.6, 0.05, 0.1, 1.3}, {0.99, 0.1, 0.3, 1.8},
    };
    for (size_t k = 0; k < 2 * sizeof c / sizeof *c; k++) {
        const size_t i = k / 2;
        const int64_t n_prompt = k % 2 ? 1000 : 10;
        const double speed = with_draft(c[i].q, c[i].time, c[i].cost, n_prompt);
        CHECK_MSG(speed > c[i].least, "q %g, time %g, cost %g: %.2f times as fast, not %g", c[i].q,
                  c[i].time, c[i].cost, speed, c[i].least);
    }
}

/* Writes texts of 128 tokens, each of which begins without debts. Returns the time, in steps without guesses for each token. */
static double short_texts(oracle *o, llm_guess *g, int n_texts) {
    enum { FIRST = 10, LENGTH = 128 };
    double steps = 0;
    o->n_asked = 0;
    for (int i = 0; i < n_texts; i++) {
        random_text(o->w, 30000);
        o->w->n = FIRST + LENGTH;
        steps += generate(o->w, g, FIRST);
    }
    return steps / (n_texts * LENGTH);
}

/* Where a draft is asked and mostly makes no guess, because it is not sure enough, it is asked only now and then: the tokens between are
 * read together. As soon as it is sure, it is asked each time. */
TEST(a_draft_that_is_seldom_sure_is_seldom_asked) {
    static const double unsure[] = {1, 0.96, 0.9};
    for (int i = 0; i < 3; i++) {
        static world w;
        w = (world){.seed = 9, .plain_ns = 1e6, .cost = 0.3};
        oracle o = {.w = &w, .q = 0.7, .time = 0.1, .reading = 0.01, .unsure = unsure[i]};
        llm_guess *g = oracle_new(&o);
        if (!g)
            return;
        double steps = short_texts(&o, g, 30);
        CHECK_MSG(o.n_asked < 30 * 128 / 10 && steps < 1.015,
                  "unsure %g: asked %d times, %.3f steps for a token", unsure[i], o.n_asked, steps);
        CHECK_MSG(o.n_asked >= 30, "unsure %g: asked %d times", unsure[i], o.n_asked);
        o.unsure = 0;
        o.q = 0.9;
        o.time = 0.05;
        steps = short_texts(&o, g, 8);
        CHECK_MSG(steps < 0.8, "sure again: asked %d times, %.3f steps for a token", o.n_asked,
                  steps);
        llm_guess_free(g);
    }
}

/* --- looking up ------------------------------------------------------------------------------- */

static size_t suffix_length(const int32_t *id, size_t n, size_t at) {
    size_t k = 0;
    while (k < 24 && k <= at && id[at - k] == id[n - 1 - k])
        k++;
    return k;
}

/* Checks guesses against a search of the whole text. Where the last tokens are frequent, only some
 * of the places are looked at. */
static bool check_guesses(const int32_t *id, size_t n, const int32_t *guess, int64_t k) {
    size_t best = 0, at = 0, n_places = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        const size_t length = suffix_length(id, n, i);
        n_places += length >= 2;
        if (length >= best && length >= 2) {
            best = length;
            at = i;
        }
    }
    if (best == 0)
        return CHECK_INT(k, 0);
    if (!CHECK_INT(k, 16) || n_places > 16)
        return k == 16;
    for (size_t j = 0; j < 16; j++) {
        const size_t from = at + 1 + j;
        const int32_t want = from < n ? id[from] : guess[from - n];
        if (!CHECK_MSG(guess[j] == want, "after %zu tokens guess %zu is %d, not %d", n, j, guess[j],
                       want))
            return false;
    }
    return true;
}

/* The sequence grows, is cut anywhere, and changes in its middle. */
TEST(lookup_follows_any_change) {
    static world w;
    uint64_t seed = 11;
    for (int round = 0; round < 12; round++) {
        llm_guess *g = lookup_new(&w, true);
        const llm_guesser *guesser = llm_guess_guesser(g);
        const uint64_t n_vocab = round % 3 == 0 ? 6 : round % 3 == 1 ? 40 : 400;
        size_t n = 0;
        bool ok = true;
        for (int i = 0; i < 300 && ok; i++) {
            const uint64_t what = test_random(&seed) % 8;
            size_t n_same = n;
            if (what == 0)
                n_same = n -= n ? test_random(&seed) % n : 0;
            else if (what == 1 && n > 0)
                w.text[n_same = test_random(&seed) % n] = (int32_t)(test_random(&seed) % n_vocab);
            else
                for (uint64_t k = test_random(&seed) % 40; k > 0 && n + 1 < LONGEST; k--, n++)
                    w.text[n] = (int32_t)(test_random(&seed) % n_vocab);
            int32_t guess[16];
            const int64_t k = n ? guesser->guess(guesser->self, w.text, n,
                                                 test_random(&seed) % (n_same + 1), guess, 16)
                                : 0;
            ok = n == 0 || check_guesses(w.text, n, guess, k);
        }
        llm_guess_free(g);
    }
}

TEST(parameters_out_of_range_are_refused) {
    llm_guess *g;
    ggl_error err = {0};
    llm_guess_params p = llm_guess_default();
    p.n_max = 65;
    CHECK_INT(llm_guess_lookup(&g, &p, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "1 to 64");
    p.n_max = 0;
    CHECK_INT(llm_guess_lookup(&g, &p, &err), GGL_USAGE);
    p = llm_guess_default();
    p.n_min = -1;
    CHECK_INT(llm_guess_lookup(&g, &p, &err), GGL_USAGE);
    CHECK(g == NULL);
}

/* Without memory there are no guesses, and later there are some again. */
static bool guess_twice(void *arg) {
    world *w = arg;
    llm_guess_params p = llm_guess_default();
    llm_guess *g;
    int32_t out[16];
    p.always = true;
    if (llm_guess_lookup(&g, &p, NULL) != GGL_OK)
        return false;
    const llm_guesser *by = llm_guess_guesser(g);
    int64_t n = 0;
    for (size_t i = 0; i < 2; i++) /* the second sequence needs more memory */
        n += by->guess(by->self, w->text, i ? 3000 : 500, i ? 500 : 0, out, 16);
    const bool has_failed = alloc_has_failed();
    const int64_t again = by->guess(by->self, w->text, 3001, 3000, out, 16);
    CHECK(again == 16 || !has_failed);
    llm_guess_free(g);
    return n + again == 48;
}

TEST(every_allocation_fails_in_turn) {
    static world w;
    w.seed = 3;
    repeating_text(&w, 40, 0);
    const long n = alloc_fail_each(guess_twice, &w);
    CHECK_MSG(n >= 8, "%ld allocations were failed", n);
}
