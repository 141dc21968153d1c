/* Engines: whatever sequences run beside it, begin as it does, are cancelled or fail, and whatever is
 * guessed, the tokens and logits of a sequence are those that it has alone. */
#include "engine_test.h"

/* Adds, cancels and steps at random until n jobs have come and gone. */
static bool random_schedule(fixture *f, int n) {
    while (f->n_jobs < n) {
        const int what = below(f, 12);
        if (what < 5) {
            const int64_t deadline = below(f, 12) ? 0 : f->now + below(f, 200) * 1000000;
            (void)job_add(job_random(f),
                          (llm_sequence_params){.size = sizeof(llm_sequence_params),
                                                .client = (uint64_t)below(f, 4),
                                                .deadline = deadline,
                                                .no_reuse = below(f, 10) == 0,
                                                .n_beginning = (size_t)below(f, 200)});
        } else if (what == 5 && below(f, 3) == 0) {
            llm_engine_cancel(f->e, (uint64_t)below(f, f->n_jobs + 2));
        } else if (what == 6 && below(f, 8) == 0) {
            f->polls_left = below(f, 20);
            const ggl_status st = llm_engine_step(f->e, &f->err);
            CHECK(st == GGL_OK || st == GGL_CANCELLED);
            f->polls_left = -1;
            f->is_cancelled = llm_session_n_lanes(f->s) > 1;
        } else if (!fixture_step(f)) {
            return false;
        }
    }
    return fixture_finish(f);
}

/* What a round was like, for a failure to be understood. */
static void check_round(fixture *f, int n_jobs, bool guesses, int n_backends) {
    const int n_slots = (n_backends > 1 && !guesses ? 16 : 1) + below(f, 8);
    const bool many = n_slots >= 16; /* they generate for long, so that all of them do at times */
    const int64_t n_ubatch = (many ? 60 : 2) + below(f, below(f, 2) ? 12 : 100);
    const fixture_params p = {.n_ubatch = n_ubatch,
                              .n_step = below(f, 3) || many ? 0 : 1 + below(f, (int)n_ubatch),
                              .step_ns = below(f, 2) || many ? 0 : 1 + below(f, 1000000),
                              .n_slots = n_slots,
                              .n_pool = below(f, 3) ? CTX + 64 * below(f, 4) : 0,
                              .n_rows = 1 + guesses + below(f, 20),
                              .n_parallel = many ? 16 : 1 + below(f, n_slots),
                              .n_queue = below(f, 3) ? 0 : (size_t)(1 + below(f, 10)),
                              .n_backends = n_backends,
                              .guesses = guesses,
                              .folder = below(f, 3) ? NULL : test_folder()};
    f->most_beams = p.n_parallel < 8 ? p.n_parallel : 8;
    bool ok = fixture_start(f, &p);
    for (int i = 0; ok && i < 12 && many; i++) {
        job *j = job_random(f);
        j->n_max = 60 + below(f, 100);
        (void)job_add(j, (llm_sequence_params){.size = sizeof(llm_sequence_params)});
    }
    ok = ok && random_schedule(f, n_jobs) && fixture_check(f);
    f->n_preempted += ok ? llm_engine_get_stats(f->e).n_preempted : 0;
    f->n_loaded += ok && p.folder ? llm_prompt_folder_get_stats(f->prompts).n_loaded : 0;
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
        check_round(&f, 60, round % 2 == 0, 1);
    CHECK(!ok || test_failures > 0 || f.n_right > 0);
    printf("%d times a sequence made room for others, %d loaded its beginning\n",
           (int)f.n_preempted, (int)f.n_loaded);
    fixture_close(&f);
}

#define TWO_LAYERS                                                                                 \
    "arch tiny\nlanguage 1\ntoken_embd [16, n_vocab]\nx = token_embd[token]\nlayer l < 2:\n"       \
    "  h = heads(x, 2)\n  x = x + attention(h, h, h)\nlogits = linear(x, token_embd)\n"

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

/* Fewer rows of logits than sequences: in turns, all of them go on. */
TEST(few_rows_on_several_backends) {
    static fixture f;
    const fixture_params p = {
        .n_ubatch = 64, .n_slots = 12, .n_rows = 2, .n_parallel = 12, .n_backends = 2};
    bool ok = fixture_open(&f, TWO_LAYERS, sample_seed()) && fixture_start(&f, &p);
    for (int i = 0; ok && i < 12; i++)
        ok = job_add(job_plain(&f, i, 2, 60),
                     (llm_sequence_params){.size = sizeof(llm_sequence_params)});
    for (int i = 0; ok && i < 100; i++)
        ok = CHECK_OK(llm_engine_step(f.e, &f.err), &f.err);
    for (int i = 0; ok && i < 12; i++)
        CHECK_MSG(f.job[i]->n > 5, "sequence %d has drawn only %d", i, (int)f.job[i]->n);
    ok = ok && fixture_finish(&f) && fixture_check(&f);
    fixture_stop(&f);
    fixture_close(&f);
}

/* Layers of three kinds, each on a backend of its own: batches of the sequences are under way on all of them
 * at the same time. */
LONG_TEST(several_backends) {
    static fixture f;
    const char *layer = "h = heads(x, 2)\n  ";
    char text[600];
    snprintf(text, sizeof text,
             "arch tiny\nlanguage 1\ntoken_embd [16, n_vocab]\nx = token_embd[token]\n"
             "layer l < 3:\n  %sx = x + attention(h, h, h)\n  %sx = x + attention(h, h, h, window "
             "= 49)\n"
             "  x = x + flat(sum(transpose(recent(x, 3))))\nlogits = linear(x, token_embd)\n",
             layer, layer);
    const fixture_params p = {
        .n_ubatch = 64, .n_slots = 12, .n_rows = 12, .n_parallel = 12, .n_backends = 3};
    bool ok = fixture_open(&f, text, sample_seed()) && fixture_start(&f, &p);
    for (int i = 0; ok && i < 12; i++)
        ok = job_add(job_plain(&f, i, 20, 60),
                     (llm_sequence_params){.size = sizeof(llm_sequence_params)});
    ok = ok && fixture_finish(&f) && fixture_check(&f);
    CHECK_MSG(!ok || f.n_overlapped > 100, "only %d steps overlapped", (int)f.n_overlapped);
    fixture_stop(&f);
    for (int round = 0; ok && round < (TEST_SANITIZED ? 3 : 10) && test_failures == 0; round++)
        check_round(&f, 60, round % 5 == 4, 2 + round % 2);
    fixture_close(&f);
}
