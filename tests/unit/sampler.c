/* llm/internal/sampler.h: docs/sampling.md is what these hold it to. */
#include "test.h"

#include <math.h>

#include "alloc_fail.h"
#include "llm/internal/sampler.h"

/* Filters that let all pass. */
static llm_sampler_params plain(void) {
    return (llm_sampler_params){.size = sizeof(llm_sampler_params),
                                .temp = 1,
                                .top_p = 1,
                                .typ_p = 1,
                                .repeat_penalty = 1,
                                .seed = 1};
}

static llm_sampler *sampler(const llm_sampler_params *p, int32_t n_vocab, int32_t n_last) {
    llm_sampler *s;
    ggl_error err = {0};
    CHECK_OK(llm_sampler_new(&s, p, n_vocab, n_last, &err), &err);
    return s;
}

enum { N_MAX = 16 };

/* How often each of n ids is drawn in `count` draws. */
static void frequencies(const llm_sampler_params *p, const float *logits, int32_t n, int count,
                        int *freq) {
    llm_sampler *s = sampler(p, n, 0);
    memset(freq, 0, N_MAX * sizeof *freq);
    for (int i = 0; s && i < count; i++) {
        int32_t id = llm_sampler_next(s, logits, NULL);
        if (CHECK(id >= 0 && id < n))
            freq[id]++;
    }
    llm_sampler_free(s);
}

/* The set of ids ever drawn, as bits. */
static unsigned drawn(const llm_sampler_params *p, const float *logits, int32_t n) {
    int freq[N_MAX];
    unsigned set = 0;
    frequencies(p, logits, n, 3000, freq);
    for (int i = 0; i < n; i++)
        set |= freq[i] > 0 ? 1u << i : 0;
    return set;
}

TEST(defaults) {
    llm_sampler_params p = llm_sampler_default();
    CHECK(p.temp == 0.8f && p.top_k == 40 && p.top_p == 0.95f && p.min_p == 0.05f);
    CHECK(p.repeat_penalty == 1 && p.repeat_last_n == 64);
}

TEST(greedy) {
    llm_sampler_params p = plain();
    for (int k = 0; k < 2; k++) {
        p.temp = k ? -1.0f : 0.0f;
        llm_sampler *s = sampler(&p, 6, 0);
        CHECK_INT(llm_sampler_next(s, (float[]){1, 5, 2, 5, 4, -7}, NULL),
                  1); /* of equals the lower id */
        CHECK_INT(llm_sampler_next(s, (float[]){NAN, NAN, -3, NAN, -2, NAN}, NULL), 4);
        CHECK_INT(llm_sampler_next(s, (float[]){-0.0f, 0, -1, -1, -1, -1}, NULL), 0);
        CHECK_INT(llm_sampler_next(s, (float[]){NAN, -INFINITY, NAN, NAN, NAN, NAN}, NULL), 0);
        CHECK_INT(llm_sampler_next(s, (float[]){1e38f, INFINITY, 3, INFINITY, 0, 0}, NULL), 1);
        CHECK_INT(llm_sampler_next(s, (float[]){-3, -2, -1, -1e-40f, -1e-44f, -1e-42f}, NULL), 4);
        llm_sampler_free(s);
    }
}

/* Equal logits of 2^16 ids: the draw shows the generator's upper 16 bits. The numbers are those
 * that xoshiro256** seeded by splitmix64(0) is published with. */
TEST(generator) {
    enum { N = 1 << 16 };
    static float logits[N];
    llm_sampler_params p = plain();
    p.seed = 0;
    llm_sampler *s = sampler(&p, N, 0);
    CHECK_INT(llm_sampler_next(s, logits, NULL), 0x99ec);
    CHECK_INT(llm_sampler_next(s, logits, NULL), 0xbf6e);
    CHECK_INT(llm_sampler_next(s, logits, NULL), 0x1a5f);
    llm_sampler_free(s);
}

/* Forced tokens are chosen whatever the logits are, until one is not allowed; the random numbers go on as without them. */
TEST(forced) {
    ggl_error err = {0};
    enum { N = 8 };
    float logits[N] = {0};
    llm_sampler_params p = llm_sampler_default();
    p.seed = 5;
    llm_sampler *s, *same;
    const int32_t ids[] = {3, 1, 7}, wrong[] = {N};
    const uint32_t not_1 = 0xff & ~2u;
    REQUIRE_OK(llm_sampler_new(&s, &p, N, N, &err), &err);
    REQUIRE_OK(llm_sampler_new(&same, &p, N, N, &err), &err);
    CHECK_OK(llm_sampler_force(s, ids, 3, &err), &err);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(llm_sampler_next(s, logits, NULL), ids[i]);
        (void)llm_sampler_next(same, logits, NULL);
    }
    for (int i = 0; i < 5; i++)
        CHECK_INT(llm_sampler_next(s, logits, NULL), llm_sampler_next(same, logits, NULL));
    CHECK_OK(llm_sampler_force(s, ids, 3, &err), &err);
    CHECK_INT(llm_sampler_next(s, logits, &not_1), 3);
    CHECK(llm_sampler_next(s, logits, &not_1) != 1);
    (void)llm_sampler_next(same, logits, &not_1), (void)llm_sampler_next(same, logits, &not_1);
    for (int i = 0; i < 5; i++)
        CHECK_INT(llm_sampler_next(s, logits, NULL), llm_sampler_next(same, logits, NULL));
    CHECK(llm_sampler_force(s, wrong, 1, &err) == GGL_USAGE);
    CHECK_OK(llm_sampler_force(s, ids, 3, &err), &err);
    llm_sampler_reset(s);
    llm_sampler_reset(same);
    CHECK_INT(llm_sampler_next(s, logits, NULL), llm_sampler_next(same, logits, NULL));
    llm_sampler_free(s);
    llm_sampler_free(same);
}

TEST(seeds) {
    static const int32_t recorded[] = {716, 839, 923, 883, 280, 541, 432, 847,
                                       862, 957, 118, 764, 908, 301, 621, 378};
    enum { N = 1000, N_IDS = sizeof recorded / sizeof *recorded };
    static float logits[N];
    uint64_t seed = 1;
    for (int i = 0; i < N; i++)
        logits[i] = 8 * test_random_float(&seed);
    llm_sampler_params p = llm_sampler_default();
    p.seed = 42;
    p.repeat_penalty = 1.1f;
    p.temp = 1.5f;
    llm_sampler *a = sampler(&p, N, 100), *b = sampler(&p, N, 100);
    p.seed = 43;
    llm_sampler *c = sampler(&p, N, 100);
    int differ = 0;
    for (int i = 0; i < N_IDS; i++) {
        int32_t id = llm_sampler_next(a, logits, NULL);
        CHECK_MSG(id == recorded[i], "token %d is %d, recorded: %d", i, (int)id, (int)recorded[i]);
        CHECK_INT(llm_sampler_next(b, logits, NULL), id);
        llm_sampler_accept(a, id);
        llm_sampler_accept(b, id);
        differ += llm_sampler_next(c, logits, NULL) != id;
    }
    CHECK(differ > N_IDS / 2);
    llm_sampler_reseed(c, 42); /* after all that: as created with it */
    for (int i = 0; i < N_IDS; i++) {
        CHECK_INT(llm_sampler_next(c, logits, NULL), recorded[i]);
        llm_sampler_accept(c, recorded[i]);
    }
    llm_sampler_free(a);
    llm_sampler_free(b);
    llm_sampler_free(c);
}

/* Probabilities 0.4 0.3 0.15 0.1 0.05, not in order. */
static const float FIVE[] = {-1.2039728043f, -2.9957322736f, -0.9162907319f, -2.3025850930f,
                             -1.8971199849f};

TEST(filters) {
    llm_sampler_params p = plain();
    CHECK_INT(drawn(&p, FIVE, 5), 0x1f);
    const struct {
        int32_t top_k;
        float top_p, min_p;
        unsigned kept;
    } cases[] = {
        {1, 1, 0, 1 << 2},
        {2, 1, 0, 1 << 2 | 1 << 0},
        {4, 1, 0, 0x1f & ~(1 << 1)},
        {5, 1, 0, 0x1f},
        {1000, 1, 0, 0x1f},
        {2000, 1, 0, 0x1f}, /* by sorting */
        {0, 0, 0, 1 << 2},
        {0, 0.39f, 0, 1 << 2},
        {0, 0.41f, 0, 1 << 2 | 1 << 0},
        {0, 0.69f, 0, 1 << 2 | 1 << 0},
        {0, 0.71f, 0, 1 << 2 | 1 << 0 | 1 << 4},
        {0, 0.96f, 0, 0x1f},
        {3, 0.80f, 0, 1 << 2 | 1 << 0}, /* 0.7 / 0.85 > 0.8: of what top-k left */
        {0, 1, 1, 1 << 2},
        {0, 1, 0.76f, 1 << 2},
        {0, 1, 0.74f, 1 << 2 | 1 << 0}, /* 0.3 / 0.4 */
        {0, 1, 0.26f, 1 << 2 | 1 << 0 | 1 << 4},
        {0, 1, 0.24f, 0x1f & ~(1 << 1)},
        {0, 0.71f, 0.74f, 1 << 2 | 1 << 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        p.top_k = cases[i].top_k;
        p.top_p = cases[i].top_p;
        p.min_p = cases[i].min_p;
        CHECK_MSG(drawn(&p, FIVE, 5) == cases[i].kept, "case %zu: %x are drawn, expected %x", i,
                  drawn(&p, FIVE, 5), cases[i].kept);
    }
    p = plain(); /* -0 equals 0: the lower id is first */
    p.top_p = 0;
    CHECK_INT(drawn(&p, (float[]){-1, -0.0f, 0}, 3), 2);
    /* top-k cuts through equals: the lower ids stay */
    const float equal[] = {0, 1, 1, 1, 1, 0};
    p = plain();
    p.top_k = 3;
    CHECK_INT(drawn(&p, equal, 6), 0xe);
}

/* Temperature comes last: min-p sees the logits as they are, the draw sees them divided. */
TEST(temperature) {
    llm_sampler_params p = plain();
    int freq[N_MAX];
    p.temp = 100;
    p.min_p = 0.24f;
    CHECK_INT(drawn(&p, FIVE, 5), 0x1f & ~(1 << 1));
    frequencies(&p, FIVE, 5, 4000, freq);
    CHECK(freq[3] > 900 && freq[2] < 1100);
    p.temp = 1e-30f;
    CHECK_INT(drawn(&p, FIVE, 5), 1 << 2);
    p.temp = 0.5f; /* 16 : 9 : 2.25 : 1, the last is dropped */
    p.min_p = 0;
    p.top_k = 2;
    frequencies(&p, FIVE, 5, 10000, freq);
    CHECK_MSG(abs(freq[2] - 6400) < 200, "%d of 10000, expected about 6400", freq[2]);
}

/* The draws' distribution: chi-square with 4 degrees of freedom; 18.5 is passed once in 1000 times,
 * but the seed is fixed. */
TEST(distribution) {
    static const double p_exact[] = {0.3, 0.05, 0.4, 0.1, 0.15};
    enum { COUNT = 100000 };
    llm_sampler_params p = plain();
    for (int k = 0; k < 2; k++) {
        int freq[N_MAX];
        double chi = 0;
        p.top_k = k ? 5 : 0;
        p.seed = (uint64_t)k + 7;
        frequencies(&p, FIVE, 5, COUNT, freq);
        for (int i = 0; i < 5; i++)
            chi += (freq[i] - COUNT * p_exact[i]) * (freq[i] - COUNT * p_exact[i]) /
                   (COUNT * p_exact[i]);
        CHECK_MSG(chi < 18.5, "chi-square is %.2f", chi);
        CHECK(chi > 0.01);
    }
}

TEST(odd_logits) {
    llm_sampler_params p = plain();
    for (int k = 0; k < 3; k++) {
        p.top_k = k == 1 ? 3 : 0;
        p.top_p = k == 2 ? 0.999f : 1;
        CHECK_INT(drawn(&p, (float[]){NAN, 1, NAN, 1, -INFINITY}, 5), 0xa);
        CHECK_INT(drawn(&p, (float[]){1, INFINITY, 1e38f, INFINITY, 0}, 5), 0xa);
        CHECK_INT(drawn(&p, (float[]){-INFINITY, NAN, -INFINITY}, 3), 7);
        CHECK_INT(drawn(&p, (float[]){3e38f, -3e38f}, 2), 1);
        CHECK_INT(drawn(&p, (float[]){NAN}, 1), 1);
    }
}

TEST(repeat_penalty) {
    llm_sampler_params p = plain();
    p.temp = 0;
    p.repeat_penalty = 2;
    p.repeat_last_n = 2;
    const float logits[] = {3, 4, -1, -1.5f, 2.5f};
    llm_sampler *s = sampler(&p, 5, 100);
    CHECK_INT(llm_sampler_next(s, logits, NULL), 1);
    llm_sampler_accept(s, 1); /* 4 / 2 */
    CHECK_INT(llm_sampler_next(s, logits, NULL), 0);
    llm_sampler_accept(s, 0);
    CHECK_INT(llm_sampler_next(s, logits, NULL), 4);
    llm_sampler_accept(s, 4); /* 1 leaves the window of two */
    CHECK_INT(llm_sampler_next(s, logits, NULL), 1);
    llm_sampler_accept(s, 1);
    llm_sampler_accept(s, 1); /* twice in the window, penalized once: 2 against 3 and 2.5 */
    CHECK_INT(llm_sampler_next(s, logits, NULL), 0);
    llm_sampler_accept(s, -1); /* no tokens: ignored */
    llm_sampler_accept(s, 5);
    CHECK_INT(llm_sampler_next(s, logits, NULL), 0);
    llm_sampler_free(s);

    const float negative[] = {-1, -1.5f, -3}; /* negative logits are multiplied: -2 */
    s = sampler(&p, 3, 100);
    llm_sampler_accept(s, 0);
    CHECK_INT(llm_sampler_next(s, negative, NULL), 1);
    llm_sampler_free(s);

    p.repeat_last_n = -1; /* all, up to n_last */
    s = sampler(&p, 5, 3);
    llm_sampler_accept(s, 1);
    for (int i = 0; i < 2; i++)
        llm_sampler_accept(s, 2);
    CHECK_INT(llm_sampler_next(s, logits, NULL), 0);
    llm_sampler_accept(s, 2);
    CHECK_INT(llm_sampler_next(s, logits, NULL), 1);
    llm_sampler_free(s);

    p.repeat_last_n = 0; /* none */
    s = sampler(&p, 5, 100);
    llm_sampler_accept(s, 1);
    CHECK_INT(llm_sampler_next(s, logits, NULL), 1);
    llm_sampler_free(s);

    p.repeat_penalty = 0.5f; /* below 1 it is a reward: 3 becomes 6, -1.5 becomes -0.75 */
    p.repeat_last_n = 64;
    s = sampler(&p, 5, 100);
    llm_sampler_accept(s, 0);
    CHECK_INT(llm_sampler_next(s, logits, NULL), 0);
    llm_sampler_free(s);
    s = sampler(&p, 3, 100);
    llm_sampler_accept(s, 1);
    CHECK_INT(llm_sampler_next(s, negative, NULL), 1);
    llm_sampler_free(s);
    p.repeat_penalty = 2;

    p.temp = 1; /* in the drawing chain, too: 1 falls to 2 and out of the best two */
    p.top_k = 2;
    p.repeat_last_n = 64;
    for (int sorted = 0; sorted < 2; sorted++) {
        unsigned set = 0;
        p.top_k = sorted ? 0 : 2;
        p.min_p = sorted ? 0.5f : 0; /* e^(2.5 - 3) is above it, e^(2 - 3) below */
        s = sampler(&p, 5, 100);
        llm_sampler_accept(s, 1);
        for (int i = 0; i < 200; i++)
            set |= 1u << llm_sampler_next(s, logits, NULL);
        CHECK_INT(set, 1 << 0 | 1 << 4);
        llm_sampler_free(s);
    }
}

/* The heap and the sort choose alike: a large k that is no filter in effect, against a small one.
 */
TEST(heap_and_sort_agree) {
    enum { N = 5000 };
    static float logits[N];
    uint64_t seed = 3;
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < N; i++) /* few different values: many ties */
            logits[i] =
                round % 2 ? (float)(test_random(&seed) % 40) : 20 * test_random_float(&seed);
        llm_sampler_params p = plain();
        p.top_k = 1024; /* the heap */
        p.min_p = 0.3f;
        p.seed = (uint64_t)round;
        llm_sampler *heap = sampler(&p, N, 0);
        p.top_k = 1025; /* the sort */
        llm_sampler *sort = sampler(&p, N, 0);
        for (int i = 0; i < 10; i++)
            CHECK_INT(llm_sampler_next(heap, logits, NULL), llm_sampler_next(sort, logits, NULL));
        llm_sampler_free(heap);
        llm_sampler_free(sort);
    }
}

TEST(no_allocations) {
    enum { N = 3000 };
    static float logits[N];
    uint64_t seed = 5;
    for (int i = 0; i < N; i++)
        logits[i] = test_random_float(&seed);
    for (int k = 0; k < 3; k++) {
        llm_sampler_params p = llm_sampler_default();
        p.repeat_penalty = 1.2f;
        p.top_k = k == 0 ? 40 : 0;
        p.temp = k == 2 ? 0 : 1;
        llm_sampler *s = sampler(&p, N, 50);
        long before = alloc_count();
        for (int i = 0; i < 200; i++)
            llm_sampler_accept(s, llm_sampler_next(s, logits, NULL));
        CHECK_INT(alloc_count(), before);
        llm_sampler_free(s);
    }
}

static bool create(void *arg) {
    llm_sampler *s;
    if (llm_sampler_new(&s, arg, 100, 10, NULL) != GGL_OK)
        return false;
    llm_sampler_free(s);
    return true;
}

TEST(failing_allocations) {
    llm_sampler_params p = plain();
    p.repeat_penalty = 2;
    p.repeat_last_n = -1;
    CHECK(alloc_fail_each(create, &p) == 6);
}

TEST(refused) {
    llm_sampler *s;
    ggl_error err;
    const struct {
        llm_sampler_params p;
        int32_t n_vocab, n_last;
        const char *words;
    } cases[] = {
        {{.size = sizeof(llm_sampler_params), .temp = NAN, .top_p = 1, .repeat_penalty = 1},
         5,
         5,
         "temp is nan"},
        {{.size = sizeof(llm_sampler_params), .temp = INFINITY, .top_p = 1, .repeat_penalty = 1},
         5,
         5,
         "temp is inf"},
        {{.size = sizeof(llm_sampler_params), .top_k = -1, .top_p = 1, .repeat_penalty = 1},
         5,
         5,
         "top_k is -1"},
        {{.size = sizeof(llm_sampler_params), .top_p = 1.5f, .repeat_penalty = 1},
         5,
         5,
         "top_p is 1.5"},
        {{.size = sizeof(llm_sampler_params), .top_p = NAN, .repeat_penalty = 1},
         5,
         5,
         "top_p is nan"},
        {{.size = sizeof(llm_sampler_params), .top_p = 1, .min_p = -0.5f, .repeat_penalty = 1},
         5,
         5,
         "min_p is -0.5"},
        {{.size = sizeof(llm_sampler_params), .top_p = 1, .repeat_penalty = 0},
         5,
         5,
         "repeat_penalty is 0"},
        {{.size = sizeof(llm_sampler_params), .top_p = 1, .repeat_penalty = 1, .repeat_last_n = -2},
         5,
         5,
         "repeat_last_n is -2"},
        {{.size = sizeof(llm_sampler_params), .top_p = 1, .repeat_penalty = 1},
         0,
         5,
         "n_vocab is 0"},
        {{.size = sizeof(llm_sampler_params), .top_p = 1, .repeat_penalty = 1},
         5,
         -1,
         "n_last is -1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_INT(llm_sampler_new(&s, &cases[i].p, cases[i].n_vocab, cases[i].n_last, &err),
                  GGL_USAGE);
        CHECK_HAS(err.msg, cases[i].words);
        CHECK(!s);
    }
    llm_sampler_free(NULL);
}
