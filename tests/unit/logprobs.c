/* llm/internal/logprobs.h against sorting and libm. */
#include <math.h>

#include "llm/internal/logprobs.h"

#include "alloc_fail.h"
#include "test.h"

enum { MOST = 700 };

static const float *compared;

static int by_logit(const void *a, const void *b) {
    const int x = *(const int *)a, y = *(const int *)b;
    return compared[x] != compared[y] ? (compared[x] < compared[y] ? 1 : -1) : x - y;
}

TEST(random) {
    static float logits[MOST], clean[MOST];
    static llm_logprob top[MOST];
    int order[MOST];
    uint64_t seed = 11;
    const long before = alloc_count();
    for (int round = 0; round < 2000; round++) {
        const int n = 1 + (int)(test_random(&seed) % MOST), kind = round % 3;
        double sum = 0;
        for (int i = 0; i < n; i++) {
            logits[i] = kind ? 20 * test_random_float(&seed) : (float)(test_random(&seed) % 5);
            if (i > 0 && test_random(&seed) % 30 == 0)
                logits[i] = kind == 1 ? NAN : -INFINITY;
            clean[i] = isnan(logits[i]) ? -INFINITY : logits[i];
            sum += exp((double)clean[i]);
            order[i] = i;
        }
        compared = clean;
        qsort(order, (size_t)n, sizeof *order, by_logit);
        llm_logprob chosen = {(int32_t)(test_random(&seed) % (uint64_t)n), 0};
        const size_t want = test_random(&seed) % (MOST + 10), most = want < MOST ? want : MOST,
                     got = llm_logprobs(logits, n, &chosen, top, most);
        CHECK_INT(got, most < (size_t)n ? most : (size_t)n);
        const double expected = clean[chosen.id] - log(sum);
        CHECK(chosen.logprob == expected || fabs(chosen.logprob - expected) < 1e-12 * 40);
        for (size_t i = 0; i < got; i++) {
            const double p = clean[order[i]] - log(sum);
            if (!CHECK_MSG(top[i].id == order[i] &&
                               (top[i].logprob == p || fabs(top[i].logprob - p) < 1e-11),
                           "round %d, place %zu: token %d, %g; expected %d, %g", round, i,
                           (int)top[i].id, top[i].logprob, order[i], p))
                return;
        }
    }
    CHECK_INT(alloc_count(), before);
}

TEST(infinite) {
    llm_logprob top[3], chosen = {1, 0};
    CHECK_INT(llm_logprobs((float[]){-INFINITY, NAN}, 2, &chosen, top, 3), 2);
    CHECK(fabs(top[0].logprob - log(0.5)) < 1e-15 && top[0].id == 0 && top[1].id == 1);
    CHECK(chosen.logprob == top[1].logprob);
    CHECK_INT(llm_logprobs((float[]){0, INFINITY, INFINITY}, 3, &chosen, top, 3), 3);
    CHECK(top[0].id == 1 && top[1].id == 2 && top[2].id == 0);
    CHECK(fabs(top[1].logprob - log(0.5)) < 1e-15 && top[2].logprob == -INFINITY);
    CHECK_INT(llm_logprobs((float[]){3}, 1, NULL, top, 1), 1);
    CHECK(top[0].logprob == 0);
    CHECK_INT(llm_logprobs((float[]){3, 4}, 2, &chosen, NULL, 0), 0);
}
