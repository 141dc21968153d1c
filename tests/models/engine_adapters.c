/* The engine with adapters whose scales sequences choose: each has the tokens and logits that it has alone in a session whose scales are constants,
 * whatever runs beside it, and whatever other sequences with the same or other scales have left in slots and snapshots. */
#include "llm/internal/adapter.h"

static llm_adapter_use adapters[2];
#define FIXTURE_ADAPTERS adapters
#include "engine_test.h"
#include "sample.h"
#include "toy_adapter.h"

#include <math.h>

/* The last one is that of sequences that choose none. */
static const float scales[][2] = {{0, 0}, {1, 0}, {0, 1}, {-1.5f, 0.5f}, {0.75f, 1}};
enum { SCALES = sizeof scales / sizeof *scales, DEFAULT = SCALES - 1, JOBS = 80 };

static const char *const models[] = {MODEL(ALL), MODEL(WINDOW), MODEL(ALL STATES)};

static void use_scales(int k, bool varies) {
    for (int i = 0; i < 2; i++) {
        adapters[i].scale = (double)scales[k][i];
        adapters[i].varies = varies;
        adapters[i].task = varies ? i + 1 : 0;
    }
}

static bool open_adapters(toy_adapter *x, uint64_t seed) {
    ggl_error err = {0};
    bool ok = true;
    for (int i = 0; i < 2 && ok; i++) {
        const int64_t ne[GGL_MAX_DIMS] = {TINY_WIDTH, TINY_VOCAB, 1, 1};
        x[i] = (toy_adapter){0};
        toy_adapter_add(&x[i], "token_embd.weight", 2, ne, seed + (uint64_t)i, false);
        ok = CHECK_OK(toy_adapter_open(&x[i], "tiny", &err) ? GGL_OK : err.status, &err);
        adapters[i] = (llm_adapter_use){.adapter = x[i].adapter, .scale = 1};
    }
    return ok;
}

/* A session whose scales are constants. */
static bool open_alone(fixture *f, int k, llm_session **s) {
    use_scales(k, false);
    const bool ok =
        fixture_session(f, s, &(fixture_params){.n_ubatch = 64, .n_slots = 1, .n_rows = 1});
    use_scales(DEFAULT, true);
    return ok;
}

static bool run_jobs(fixture *f, int *chosen) {
    bool ok = true;
    for (int i = 0; i < JOBS && ok; i++) {
        chosen[i] = below(f, SCALES + 1);
        llm_sequence_params p = {.size = sizeof p};
        if (chosen[i] < SCALES)
            p.share = scales[chosen[i]];
        else
            chosen[i] = DEFAULT;
        float copy[2] = {0}; /* the engine's own */
        if (p.share)
            p.share = memcpy(copy, p.share, sizeof copy);
        ok = CHECK_MSG(job_add(job_random(f), p), "%s", f->err.msg);
        copy[0] = NAN;
        for (int n = below(f, 8); n > 0 && ok; n--)
            ok = fixture_step(f);
    }
    return ok && fixture_finish(f);
}

static void run_model(int k, uint64_t seed) {
    fixture f;
    toy_adapter x[2];
    llm_session *alone[SCALES] = {NULL};
    int chosen[JOBS];
    bool ok = open_adapters(x, seed);
    use_scales(DEFAULT, true);
    if (ok && fixture_open(&f, models[k], seed)) {
        const fixture_params p = {.n_ubatch = 32,
                                  .n_slots = 4 + below(&f, 5),
                                  .n_rows = 8,
                                  .n_parallel = 4,
                                  .n_queue = MOST_JOBS,
                                  .n_queue_each = MOST_JOBS,
                                  .guesses = below(&f, 2),
                                  .step_ns = 1000000};
        f.most_beams = 3;
        int64_t n_reused = 0;
        ok = fixture_start(&f, &p) && run_jobs(&f, chosen);
        llm_session *own = f.alone;
        for (int i = 0; i < SCALES && ok; i++)
            ok = open_alone(&f, i, &alone[i]);
        for (int i = 0; i < f.n_jobs && ok; i++) {
            f.alone = alone[chosen[i]];
            ok = job_check(f.job[i]);
            n_reused += f.job[i]->stats.n_reused;
        }
        CHECK(n_reused > 0);
        f.alone = own;
        for (int i = 0; i < SCALES; i++)
            llm_session_free(alone[i]);
    }
    fixture_close(&f);
    for (int i = 0; i < 2; i++)
        toy_adapter_free(&x[i]);
}

static void run_seeds(int k) {
    for (uint64_t i = 0; i < (TEST_SANITIZED ? 1 : 6) && test_failures == 0; i++)
        run_model(k, sample_seed() * 16 + i);
}

TEST(attention) {
    run_seeds(0);
}

TEST(windows) {
    run_seeds(1);
}

TEST(states) {
    run_seeds(2);
}

TEST(shares_are_checked) {
    fixture f;
    toy_adapter x[2];
    if (open_adapters(x, 1)) {
        use_scales(DEFAULT, true);
        if (fixture_open(&f, models[0], 1) &&
            fixture_start(&f, &(fixture_params){
                                  .n_ubatch = 32, .n_slots = 2, .n_rows = 8, .n_parallel = 1})) {
            const llm_sequence_params p = {.size = sizeof p, .share = (float[]){1, INFINITY}};
            const int32_t token = 1;
            const float *share[] = {p.share};
            CHECK(!job_add(job_plain(&f, 1, 10, 1), p));
            CHECK_INT(f.err.status, GGL_USAGE);
            CHECK_HAS(f.err.msg, "share 1 is inf, but must be finite");
            const llm_batch b = {.n = 1, .token = &token, .share = share};
            CHECK_INT(llm_session_eval(f.s, &b, &f.err), GGL_USAGE);
            CHECK_HAS(f.err.msg, "share 1 of a token is inf");
            CHECK_INT(llm_session_n_tasks(f.s), 2);
            CHECK(llm_session_shares(f.s)[0] == 0.75f && llm_session_shares(f.s)[1] == 1);
        }
        fixture_close(&f);
    }
    for (int i = 0; i < 2; i++)
        toy_adapter_free(&x[i]);
}
