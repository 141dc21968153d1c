/* Engines: whatever sequences run beside it, begin as it does, are cancelled or fail, and whatever is
 * guessed, the tokens and logits of a sequence are those of a generator alone. */
#include "engine_test.h"

/* Adds, cancels and steps at random until n jobs have come and gone. */
static bool random_schedule(fixture *f, int n) {
    while (f->n_jobs < n) {
        const int what = below(f, 12);
        if (what < 5) {
            const int64_t deadline = below(f, 12) ? 0 : f->now + below(f, 200) * 1000000;
            (void)job_add(job_random(f), (llm_sequence_params){.size = sizeof(llm_sequence_params),
                                                               .client = (uint64_t)below(f, 4),
                                                               .deadline = deadline,
                                                               .no_reuse = below(f, 10) == 0});
        } else if (what == 5 && below(f, 3) == 0) {
            llm_engine_cancel(f->e, (uint64_t)below(f, f->n_jobs + 2));
        } else if (what == 6 && below(f, 8) == 0) {
            f->polls_left = below(f, 20);
            const ggl_status st = llm_engine_step(f->e, &f->err);
            CHECK(st == GGL_OK || st == GGL_CANCELLED);
            f->polls_left = -1;
        } else if (!fixture_step(f)) {
            return false;
        }
    }
    return fixture_finish(f);
}

/* What a round was like, for a failure to be understood. */
static void check_round(fixture *f, int n_jobs, bool guesses) {
    const int n_slots = 1 + below(f, 8);
    const int64_t n_ubatch = 2 + below(f, below(f, 2) ? 12 : 100);
    const fixture_params p = {.n_ubatch = n_ubatch,
                              .n_step = below(f, 3) ? 0 : 1 + below(f, (int)n_ubatch),
                              .step_ns = below(f, 2) ? 0 : 1 + below(f, 1000000),
                              .n_slots = n_slots,
                              .n_pool = below(f, 3) ? CTX + 64 * below(f, 4) : 0,
                              .n_rows = 1 + guesses + below(f, 20),
                              .n_parallel = 1 + below(f, n_slots),
                              .n_queue = below(f, 3) ? 0 : (size_t)(1 + below(f, 10)),
                              .guesses = guesses};
    bool ok = fixture_start(f, &p) && random_schedule(f, n_jobs) && fixture_check(f);
    f->n_preempted += ok ? llm_engine_get_stats(f->e).n_preempted : 0;
    for (int i = 0; i < f->n_jobs && ok; i++)
        ok = CHECK(f->job[i]->id != 0 || f->job[i]->status == GGL_LIMIT);
    if (!ok)
        printf("with ubatches of %d, %d of %d slots, room for %d, %d rows, queue %d, %s guesses\n",
               (int)p.n_ubatch, p.n_parallel, n_slots, (int)p.n_pool, (int)p.n_rows, (int)p.n_queue,
               p.guesses ? "with" : "without");
    fixture_stop(f);
}

static void same_as_alone(const char *text) {
    static fixture f;
    bool ok = fixture_open(&f, text, sample_seed());
    const int n = TEST_SANITIZED ? 3 : 10;
    for (int round = 0; ok && round < n && test_failures == 0; round++)
        check_round(&f, 60, round % 2 == 0);
    CHECK(!ok || test_failures > 0 || f.n_right > 0);
    printf("%d times a sequence made room for others\n", (int)f.n_preempted);
    fixture_close(&f);
}

TEST(caches) {
    same_as_alone(MODEL(ALL));
}

TEST(windows) {
    same_as_alone(MODEL(WINDOW));
}

TEST(states) {
    same_as_alone(MODEL(STATES));
}

TEST(all) {
    same_as_alone(MODEL(ALL STATES WINDOW));
}
