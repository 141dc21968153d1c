/* How long a rank takes, beside times that were computed by hand. */
#include <math.h>

#include "common/units.h"
#include "llm-bench/cluster_speed.h"
#include "test.h"

#define CHECK_NEAR(a, b) CHECK(fabs((a) - (b)) <= 1e-9 * fabs((double)(b)))

/* Reading decides for few columns, arithmetic for many. f32: a multiply-add for four bytes. */
TEST(rates) {
    const cluster_speed s = cluster_speed_of(4, 10, 1, GGL_F32);
    CHECK_NEAR(cluster_speed_at(&s, 1), 0.25e-9);
    CHECK_NEAR(cluster_speed_at(&s, 10), 0.25e-9);
    CHECK_NEAR(cluster_speed_at(&s, 100), 2.5e-9);
    const cluster_speed slow = cluster_speed_of(40, 1, 1, GGL_F32); /* arithmetic always */
    CHECK_NEAR(cluster_speed_at(&slow, 1), 0.25e-9);
    CHECK_NEAR(cluster_speed_at(&slow, 3), 0.75e-9);
    const cluster_speed read = cluster_speed_of(4, INFINITY, INFINITY, GGL_Q4_0);
    CHECK_NEAR(cluster_speed_at(&read, 1000), 0.25e-9);
    const cluster_speed no_memory = cluster_speed_without_memory(&s),
                        no_arithmetic = cluster_speed_without_arithmetic(&s);
    CHECK_NEAR(cluster_speed_at(&no_memory, 2), 0.05e-9);
    CHECK_NEAR(cluster_speed_at(&no_arithmetic, 1000), 0.25e-9);
}

TEST(points) {
    const cluster_speed s = {3, {1, 4, 16}, {10, 16, 64}, 0};
    CHECK_NEAR(cluster_speed_at(&s, 0.5), 10);
    CHECK_NEAR(cluster_speed_at(&s, 2), 12);
    CHECK_NEAR(cluster_speed_at(&s, 10), 40);
    CHECK_NEAR(cluster_speed_at(&s, 32), 128);
}

TEST(seconds) {
    const cluster_speed s =
        cluster_speed_of(1, 0.25e3, 0.5, GGL_F32); /* arithmetic costs nothing */
    const cluster_cost whole = {.whole = 2e9};
    CHECK_NEAR(cluster_seconds(&whole, &s, 1, 1, 0), 2);
    CHECK_NEAR(cluster_seconds(&whole, &s, 3, 3, 0), 2);
    CHECK(cluster_seconds(&whole, &s, 0, 0, 0) == 0);
    /* two tokens choose 4 of 8 experts each: 6 of them on average */
    const cluster_cost experts = {.picked = {{1e9, 8, 4}}, .n_picked = 1};
    CHECK_NEAR(cluster_seconds(&experts, &s, 1, 1, 0), 4);
    CHECK_NEAR(cluster_seconds(&experts, &s, 2, 2, 0), 6);
    CHECK_NEAR(cluster_weights(&experts), 8e9);
    /* a window of 100 positions of 1e7 bytes; 1e6 multiply-adds take less time than that */
    const cluster_cost store = {.store = {{1e7, 1e6, 100}}, .n_stores = 1};
    CHECK_NEAR(cluster_seconds(&store, &s, 1, 1, 50), 0.5);
    CHECK_NEAR(cluster_seconds(&store, &s, 2, 2, 500), 2);
    CHECK_NEAR(cluster_cache(&store, 500), 1e9);
    /* many tokens of one sequence read its rows once, but multiply */
    CHECK_NEAR(cluster_seconds(&store, &s, 1000, 1, 50), 1000 * 50 * 1e6 / 0.5e9);
    const cluster_cost state = {.states = 1e9};
    CHECK_NEAR(cluster_seconds(&state, &s, 2, 2, 7), 4);
    CHECK_NEAR(cluster_cache(&state, 7), 1e9);
}

TEST(units) {
    static const tool_unit rates[] = {{"B/s", 1}, {"GB/s", 1e9}, {"Gbit/s", 125e6}, {NULL, 0}};
    double x = 0;
    CHECK(tool_read_unit("1.5GB/s", 7, rates, &x) && x == 1.5e9);
    CHECK(tool_read_unit("10gbit/s,x", 8, rates, &x) && x == 1.25e9);
    CHECK(tool_read_unit("4GiB", 4, tool_unit_bytes, &x) && x == 0x1p32);
    CHECK(tool_read_unit("7", 1, tool_unit_bytes, &x) && x == 7);
    static const char *const wrong[] = {"",     "GB/s",   "1",        "-1B/s", "1 B/s",
                                        "0B/s", "1e3B/s", "1.1.1B/s", "1XB/s"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(!tool_read_unit(wrong[i], strlen(wrong[i]), rates, &x));
}
