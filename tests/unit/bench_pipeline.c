/* How batches pass ranks, beside times that were computed by hand. */
#include <math.h>

#include "llm-bench/pipeline.h"
#include "test.h"

enum { MOST = 64 };
static const pipeline_link ideal = {0, INFINITY, 0};

#define CHECK_NEAR(a, b) CHECK(fabs((a) - (b)) < 1e-9)

/* n batches of the same segments; batch i begins after batch i - behind is done; behind = 0: at once. */
static pipeline_result run_all(const pipeline_link *link, const pipeline_segment *s, int n_segments,
                               int n_ranks, int n_lanes, int n, int behind) {
    pipeline_batch b[MOST];
    pipeline_result r = {0};
    ggl_error err = {0};
    for (int i = 0; i < n; i++)
        b[i] = (pipeline_batch){s, n_segments, behind > 0 && i >= behind ? i - behind : -1};
    CHECK(pipeline_run(&r, link, n_ranks, n_lanes, b, n, &err) == GGL_OK);
    return r;
}

/* Equal ranks without a link are an ideal pipeline: n pieces take n + ranks - 1 turns. */
TEST(ideal_pieces) {
    const pipeline_segment s[] = {{0, 1, 0, 0}, {1, 1, 8, 8}, {2, 1, 8, 8}, {3, 1, 8, 8}};
    pipeline_result r = run_all(&ideal, s, 4, 4, 4, 10, 0);
    CHECK_NEAR(r.seconds, 13);
    CHECK_NEAR(r.computed, 40);
    CHECK_NEAR(r.out, 240);
    CHECK_NEAR(r.in, 240);
    CHECK_INT(r.n_messages, 60);
    CHECK_NEAR(run_all(&ideal, s, 4, 4, 1, 10, 0).seconds, 40); /* one lane */
    CHECK_NEAR(run_all(&ideal, s, 4, 4, 2, 10, 0).seconds, 21); /* five pairs */
    CHECK_NEAR(run_all(&ideal, s, 1, 1, 1, 10, 0).seconds, 10); /* one rank */
    CHECK_NEAR(run_all(&ideal, s, 4, 4, 4, 0, 0).seconds, 0);
}

/* The slowest rank decides. */
TEST(slowest) {
    const pipeline_segment s[] = {{0, 1, 0, 0}, {1, 3, 8, 8}, {2, 1, 8, 8}};
    CHECK_NEAR(run_all(&ideal, s, 3, 3, 3, 10, 0).seconds, 1 + 30 + 1);
}

/* One sequence passes all ranks for each token: nothing is done at once. */
TEST(one_sequence) {
    const pipeline_segment s[] = {{0, 0.25, 0, 0}, {1, 0.5, 8, 8}, {2, 1, 8, 8}};
    CHECK_NEAR(run_all(&ideal, s, 3, 3, 3, 8, 1).seconds, 8 * 1.75);
    const pipeline_link slow = {0.01, 800, 0.001}; /* 8 bytes: 0.01 */
    CHECK_NEAR(run_all(&slow, s, 3, 3, 3, 8, 1).seconds,
               8 * (1.75 + 2 * (2 * (0.01 + 0.01) + 2 * 0.001)));
}

/* Three groups of sequences keep three equal ranks busy; two of them, two thirds of the time. */
TEST(several_sequences) {
    const pipeline_segment s[] = {{0, 1, 0, 0}, {1, 1, 0, 0}, {2, 1, 0, 0}};
    CHECK_NEAR(run_all(&ideal, s, 3, 3, 3, 30, 3).seconds, 32);
    CHECK_NEAR(run_all(&ideal, s, 3, 3, 3, 30, 2).seconds, 46);
}

/* What the last rank computes for outputs is an order of its own: the rank's thread is asked again. */
TEST(tail) {
    const pipeline_segment s[] = {{0, 1, 0, 0}, {1, 1, 8, 0}, {1, 0.5, 0, 8}};
    const pipeline_link slow = {0.01, INFINITY, 0};
    CHECK_NEAR(run_all(&slow, s, 3, 2, 2, 5, 1).seconds, 5 * (2.5 + 4 * 0.01));
}

/* Large data is announced, asked for, and sent, while the rank waits; then announced, asked for and sent back. */
TEST(large_data) {
    const pipeline_link slow = {0.01, 1e6, 0};
    const pipeline_segment s[] = {{0, 1, 0, 0}, {1, 1, 1e5, 1e5}};
    CHECK_NEAR(run_all(&slow, s, 2, 2, 2, 1, 0).seconds, 2 + 6 * 0.01 + 2 * 0.1);
    /* the rank cannot compute the next piece before the data of the one before is gone, and its own has come */
    CHECK_NEAR(run_all(&slow, s, 2, 2, 2, 3, 0).seconds, 1 + 3 * (1 + 6 * 0.01 + 2 * 0.1));
}

/* All ranks share the link of rank 0: if they are faster, it decides. */
TEST(link_is_shared) {
    const pipeline_link slow = {0, 1e4, 0};
    const pipeline_segment s[] = {
        {0, 0, 0, 0}, {1, 0, 1e4, 1e4}, {2, 0, 1e4, 1e4}, {3, 0, 1e4, 1e4}, {4, 0, 1e4, 1e4}};
    /* each direction carries 4 s for a batch; the last one's answer is behind it */
    const double t = run_all(&slow, s, 5, 5, 5, 20, 0).seconds;
    CHECK(t >= 81 - 1e-9 && t < 90);
}
