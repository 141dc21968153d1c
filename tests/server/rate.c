/* How fast a count has grown lately. */
#include "llm-server/rate.h"

#include "test.h"

#define MS INT64_C(1000000)

TEST(steady) {
    rate r = {0};
    CHECK(rate_get(&r, 5, 0) == 0);
    int64_t t = 1000 * MS, n = 0;
    for (; t < 100000 * MS; t += 10 * MS, n += 2) {
        rate_note(&r, t, n);
        if (t >= 3000 * MS)
            CHECK(rate_get(&r, t, n) > 190 && rate_get(&r, t, n) < 210);
    }
}

/* A count that stands still, whether that is noted or not, has no rate after the time of the window. */
TEST(stops) {
    rate r = {0};
    int64_t t = 0;
    for (; t < 40000 * MS; t += 500 * MS)
        rate_note(&r, t, t / MS);
    const int64_t n = 39500;
    CHECK(rate_get(&r, t, n) > 900);
    CHECK(rate_get(&r, t + 15000 * MS, n) > 400 && rate_get(&r, t + 15000 * MS, n) < 600);
    CHECK(rate_get(&r, t + 31500 * MS, n) == 0);
    rate noted = r;
    for (int i = 0; i < 40; i++)
        rate_note(&noted, t + i * 1000 * MS, n);
    CHECK(rate_get(&noted, t + 40000 * MS, n) == 0);
    /* after a long silence, the new tokens alone count */
    rate_note(&r, t + 900000 * MS, n);
    CHECK(rate_get(&r, t + 900100 * MS, n + 60) == 2);
}

TEST(begins) {
    rate r = {0};
    rate_note(&r, 7 * MS, 0);
    CHECK(rate_get(&r, 57 * MS, 40) == 40); /* at least a second counts */
    CHECK(rate_get(&r, 10007 * MS, 40) == 4);
}
