/* Engines: who gets a place, what is run again and what is not, how sequences end, and failures. That
 * the tokens are right, engine.c shows for random ones. */
#include <math.h>

#include "engine_test.h"
#include "steps.h"

#include "alloc_fail.h"

static fixture f; /* large */

enum { LONG_STEPS = 200000000 }; /* two of the long steps of the fixture's clock */

#define FEW                                                                                        \
    { .n_ubatch = 16, .n_slots = 4, .n_rows = 4, .n_parallel = 2 }

static bool start(const char *text, const fixture_params *p) {
    return fixture_open(&f, text, 1) && fixture_start(&f, p);
}

static void finish(void) {
    if (f.e)
        CHECK(fixture_finish(&f) && fixture_check(&f));
    fixture_close(&f);
}

static job *add(int what, size_t n, int64_t n_max, uint64_t client) {
    job *j = job_plain(&f, what, n, n_max);
    CHECK_OK(
        job_add(j, (llm_sequence_params){.size = sizeof(llm_sequence_params), .client = client})
            ? GGL_OK
            : j->status,
        &f.err);
    return j;
}

/* --- places ----------------------------------------------------------------------------------- */

TEST(no_sequence_stalls_while_a_prompt_is_read) {
    if (start(MODEL(ALL), &(fixture_params)FEW)) {
        const job *talks = add(1, 5, 60, 0);
        fixture_step(&f);
        const job *reads = add(2, 200, 5, 0);
        while (reads->n == 0 && f.n_steps < 100) {
            const int64_t n = talks->n;
            fixture_step(&f);
            CHECK_INT(talks->n, n + 1);
        }
        CHECK(f.n_steps > 10 && f.n_steps < 40);
    }
    finish();
}

/* A clock on which each token that runs takes a millisecond. */
static int64_t token_clock(void *ctx) {
    static int64_t past[4];
    fixture *x = ctx;
    for (int i = 0; i < 4; i++) {
        const int64_t n = llm_session_n_past(x->s, i);
        x->now += n > past[i] ? (n - past[i]) * 1000000 : 0;
        past[i] = n;
    }
    return ++x->now;
}

/* While a sequence generates, steps with pieces of a prompt take the time that the parameter allows, or 50 ms. */
TEST(steps_with_prompts_take_as_long_as_they_may) {
    static const int64_t ms[] = {10, 20, 0};
    for (int k = 0; k < 3; k++) {
        const fixture_params p = {.n_ubatch = 128,
                                  .n_slots = 4,
                                  .n_rows = 4,
                                  .n_parallel = 2,
                                  .step_ns = ms[k] * 1000000,
                                  .clock = token_clock};
        const int64_t most = ms[k] > 0 ? ms[k] : 50;
        if (start(MODEL(ALL), &p)) {
            const job *talks = add(1, 5, 60, 0);
            for (int i = 0; i < 5; i++)
                fixture_step(&f);
            const job *reads = add(2, 200, 5, 1);
            int64_t longest = 0, n_steps = 0;
            for (; reads->n == 0 && n_steps < 100; n_steps++) {
                const int64_t n = talks->n, begin = token_clock(&f);
                fixture_step(&f);
                CHECK_INT(talks->n, n + 1);
                if (n_steps > 0) /* in the first it is not known what tokens cost */
                    longest = f.now - begin > longest ? f.now - begin : longest;
            }
            CHECK_MSG(longest > most * 800000 && longest < most * 1100000,
                      "a step of %d us, where %d ms are allowed", (int)(longest / 1000), (int)most);
        }
        finish();
    }
}

/* However many the sequences that generate are: those without room come first in the next step. */
TEST(small_ubatches_are_shared) {
    const fixture_params p = {.n_ubatch = 3, .n_slots = 7, .n_rows = 1, .n_parallel = 7};
    if (start(MODEL(ALL), &p)) {
        const job *j[7];
        for (int i = 0; i < 7; i++)
            j[i] = add(i, 2, 60, 0);
        for (int i = 0; i < 70; i++)
            fixture_step(&f);
        for (int i = 0; i < 7; i++)
            CHECK_MSG(j[i]->n >= 12, "sequence %d has drawn only %d tokens in %d steps", i,
                      (int)j[i]->n, (int)f.n_steps);
    }
    finish();
}

static int n_ended_of(uint64_t client, const job *const *j, int n) {
    int n_ended = 0;
    for (int i = 0; i < n; i++)
        n_ended += j[i]->has_ended && client == 1;
    return n_ended;
}

TEST(clients_take_turns) {
    static const job *of_one[100];
    if (start(MODEL(ALL), &(fixture_params)FEW)) {
        for (int i = 0; i < 100; i++)
            of_one[i] = add(i, 10, 5, 1);
        fixture_step(&f);
        const job *a = add(200, 10, 5, 2), *b = add(201, 10, 5, 3), *c = add(202, 10, 5, 2);
        while (!(a->has_ended && b->has_ended && c->has_ended) && f.n_steps < 1000)
            fixture_step(&f);
        const int n = n_ended_of(1, of_one, 100);
        CHECK_MSG(n <= 8, "%d sequences of a client ended before three of others", n);
        CHECK(a->stats.t_begun < c->stats.t_begun && b->stats.t_begun < c->stats.t_begun);
    }
    finish();
}

/* A sequence that leaves the queue without a place does not cost its client the turn. */
TEST(leaving_costs_no_turn) {
    const fixture_params p = {.n_ubatch = 16, .n_slots = 1, .n_rows = 1, .n_parallel = 1};
    if (start(MODEL(ALL), &p)) {
        add(0, 8, 30, 9);
        fixture_step(&f);
        const job *first = add(1, 8, 3, 1), *second = add(2, 8, 3, 1), *other = add(3, 8, 3, 2);
        llm_engine_cancel(f.e, first->id);
        CHECK(fixture_finish(&f));
        CHECK(second->stats.t_begun < other->stats.t_begun);
    }
    finish();
}

TEST(queue_is_limited) {
    fixture_params p = FEW;
    p.n_queue = 3;
    if (start(MODEL(ALL), &p)) {
        for (int i = 0; i < 3; i++)
            add(i, 10, 5, 1);
        job *j = job_plain(&f, 4, 10, 5);
        CHECK(!job_add(j, (llm_sequence_params){.size = sizeof(llm_sequence_params)}));
        CHECK_INT(j->status, GGL_LIMIT);
        CHECK_HAS(f.err.msg, "3 sequences are waiting, which is the limit");
        CHECK_INT(llm_engine_n_waiting(f.e), 3);
        fixture_step(&f);
        CHECK_INT(llm_engine_n_running(f.e), 2);
        CHECK(job_add(j, (llm_sequence_params){.size = sizeof(llm_sequence_params)}));
        CHECK(!job_plain(&f, 5, 10, 5)->has_ended);
    }
    finish();
}

TEST(one_client_does_not_fill_the_queue) {
    fixture_params p = FEW;
    p.n_queue = 5;
    p.n_queue_each = 3;
    if (start(MODEL(ALL), &p)) {
        for (int i = 0; i < 3; i++)
            add(i, 10, 5, 1);
        job *j = job_plain(&f, 4, 10, 5);
        CHECK(!job_add(j, (llm_sequence_params){.size = sizeof(llm_sequence_params), .client = 1}));
        CHECK_INT(j->status, GGL_LIMIT);
        CHECK_HAS(f.err.msg, "3 sequences of this client are waiting");
        add(5, 10, 5, 2);
        fixture_step(&f); /* two begin, one of each client */
        CHECK(job_add(j, (llm_sequence_params){.size = sizeof(llm_sequence_params), .client = 1}));
        CHECK_INT(llm_engine_n_waiting(f.e), 3);
    }
    finish();
}

/* --- how sequences end ------------------------------------------------------------------------ */

TEST(cancel_ends_at_once) {
    if (start(MODEL(ALL), &(fixture_params)FEW)) {
        const job *a = add(1, 10, -1, 1), *b = add(2, 10, 20, 1), *waits = add(3, 10, 20, 1);
        fixture_step(&f);
        llm_engine_cancel(f.e, waits->id);
        CHECK(waits->has_ended && waits->why == LLM_END_CANCELLED && waits->stats.t_begun == 0);
        fixture_step(&f);
        llm_engine_cancel(f.e, a->id);
        CHECK(a->has_ended && a->why == LLM_END_CANCELLED && a->n > 0);
        llm_engine_cancel(f.e, a->id);
        llm_engine_cancel(f.e, 12345);
        CHECK_INT(llm_engine_n_running(f.e), 1);
        CHECK_INT(llm_engine_n_waiting(f.e), 0);
        CHECK(fixture_finish(&f) && b->why == LLM_END_MAX);
        CHECK_INT(llm_engine_get_stats(f.e).n_cancelled, 2);
        CHECK_INT(llm_engine_get_stats(f.e).n_ended, 3);
    }
    finish();
}

static void cancel_all(job *j) {
    if (j == f.job[0] && j->n == 3) {
        for (int i = f.n_jobs - 1; i >= 0; i--)
            llm_engine_cancel(f.e, f.job[i]->id);
        for (int i = 1; i < f.n_jobs; i++)
            CHECK(!f.job[i]->has_ended);
        CHECK_INT(llm_engine_step(f.e, &f.err), GGL_USAGE);
        CHECK_HAS(f.err.msg, "callback");
    }
}

static void cancel_next(job *j) {
    for (int i = 0; i + 1 < f.n_jobs; i++)
        if (f.job[i] == j)
            llm_engine_cancel(f.e, f.job[i + 1]->id);
}

TEST(callbacks_cancel) {
    if (start(MODEL(ALL), &(fixture_params)FEW)) {
        f.on_token = cancel_all;
        for (int i = 0; i < 5; i++)
            add(i, 10, 20, 1);
        CHECK(fixture_finish(&f));
        CHECK_INT(f.job[0]->n, 3);
        for (int i = 0; i < 5; i++)
            CHECK(f.job[i]->why == LLM_END_CANCELLED);
        CHECK_INT(f.n_steps, 3);
        f.on_token = NULL;
        f.on_end = cancel_next;
        for (int i = 0; i < 5; i++)
            add(10 + i, 10, 20, 1);
        llm_engine_cancel(f.e, f.job[5]->id); /* ends all */
        CHECK_INT(f.n_ended, 10);
    }
    finish();
}

static void add_one(job *j) {
    (void)j;
    if (f.n_jobs < 60)
        add(f.n_jobs, 8, 3, 1);
}

TEST(callbacks_add) {
    if (start(MODEL(ALL), &(fixture_params)FEW)) {
        f.on_token = f.on_end = add_one;
        add(0, 8, 3, 1);
        CHECK(fixture_finish(&f));
        CHECK_INT(f.n_ended, 60);
    }
    finish();
}

TEST(deadlines) {
    fixture_params p = FEW;
    p.step_ns = LONG_STEPS;
    if (start(MODEL(ALL), &p)) {
        const llm_sequence_params late = {.size = sizeof late,
                                          .deadline = f.now + ((int64_t)1 << 60)};
        const llm_sequence_params soon = {.size = sizeof soon, .deadline = f.now + 1};
        job *runs = job_plain(&f, 1, 10, 30), *ends = job_plain(&f, 2, 10, 30);
        job *waits = job_plain(&f, 3, 10, 30);
        CHECK(job_add(runs, late) && job_add(waits, soon));
        fixture_step(&f);
        CHECK(waits->why == LLM_END_DEADLINE && waits->n == 0);
        CHECK(job_add(ends, (llm_sequence_params){.size = sizeof(llm_sequence_params),
                                                  .deadline = f.now + 2000000000}));
        fixture_step(&f);
        CHECK(ends->n > 0 && !ends->has_ended);
        f.now += 2000000000;
        fixture_step(&f);
        CHECK(ends->why == LLM_END_DEADLINE && ends->n > 0);
        CHECK(fixture_finish(&f) && runs->why == LLM_END_MAX);
    }
    finish();
}

TEST(nothing_to_draw) {
    if (start(MODEL(ALL), &(fixture_params)FEW)) {
        job *j = job_plain(&f, 1, 40, 0);
        j->shows_prompt = true;
        CHECK(job_add(j, (llm_sequence_params){.size = sizeof(llm_sequence_params)}) &&
              fixture_finish(&f));
        CHECK(j->why == LLM_END_MAX && j->n == 0 && j->n_prompted == 40);
        const job *full = add(2, CTX, -1, 0);
        CHECK(fixture_finish(&f) && full->why == LLM_END_CONTEXT && full->n == 1);
    }
    finish();
}

TEST(freeing_ends_all) {
    if (start(MODEL(ALL), &(fixture_params)FEW)) {
        for (int i = 0; i < 6; i++)
            add(i, 10, 20, (uint64_t)i);
        fixture_step(&f);
        llm_engine_free(f.e);
        f.e = NULL;
        CHECK_INT(f.n_ended, 6);
        for (int i = 0; i < 6; i++)
            CHECK(f.job[i]->why == LLM_END_CANCELLED);
    }
    finish();
}

static void add_too_late(job *j) {
    job *late = job_plain(&f, 1, 10, 5);
    CHECK(!job_add(late, (llm_sequence_params){.size = sizeof(llm_sequence_params)}));
    CHECK_INT(late->status, GGL_USAGE);
    CHECK_HAS(f.err.msg, "being freed");
    CHECK(!late->has_ended && j->why == LLM_END_CANCELLED);
}

TEST(freeing_refuses_new_ones) {
    if (start(MODEL(ALL), &(fixture_params)FEW)) {
        for (int i = 0; i < 3; i++)
            add(i, 10, 20, (uint64_t)i);
        fixture_step(&f);
        f.on_end = add_too_late;
        llm_engine_free(f.e);
        f.e = NULL;
        CHECK_INT(f.n_ended, 3);
    }
    f.on_end = NULL;
    finish();
}

/* --- what is not run again -------------------------------------------------------------------- */

/* A job whose prompt is that of another, its first n_answer tokens, and n_new more. */
static job *next_turn(const job *j, int64_t n_answer, int n_new) {
    const size_t n = j->n_prompt + (size_t)n_answer;
    job *next = job_new(&f, n + (size_t)n_new, 4);
    memcpy(next->prompt, j->prompt, j->n_prompt * sizeof *j->prompt);
    memcpy(next->prompt + j->n_prompt, j->token, (size_t)n_answer * sizeof *j->token);
    for (size_t i = n; i < next->n_prompt; i++)
        next->prompt[i] = below(&f, VOCAB);
    next->sampling.temp = 0;
    if (n_answer < j->n && n_new > 0) /* it parts there */
        next->prompt[n] = (j->token[n_answer] + 1) % VOCAB;
    CHECK(job_add(next, (llm_sequence_params){.size = sizeof(llm_sequence_params)}) &&
          fixture_finish(&f));
    return next;
}

static void conversations(const char *text, bool has_states) {
    if (start(text, &(fixture_params)FEW)) {
        const job *a = add(1, 100, 20, 0);
        CHECK(fixture_finish(&f));
        CHECK_INT(a->stats.n_reused, 0);
        /* all that was run: the last token drawn was not */
        const job *b = next_turn(a, 20, 7);
        CHECK_INT(b->stats.n_reused, 119);
        /* another answer, from the end of the prompt at least */
        const job *c = next_turn(a, 10, 7);
        CHECK_INT(c->stats.n_reused, has_states ? 100 : 110);
        /* the same prompt once more */
        const job *d = next_turn(a, 0, 0);
        CHECK_INT(d->stats.n_reused, has_states ? 64 : 99);
        CHECK_INT(llm_engine_get_stats(f.e).n_reused,
                  b->stats.n_reused + c->stats.n_reused + d->stats.n_reused);
    }
    finish();
}

TEST(next_turns) {
    conversations(MODEL(ALL), false);
}

TEST(next_turns_with_states) {
    conversations(MODEL(ALL STATES), true);
}

/* Prompts that begin with the same n tokens are one prompt until they part. */
static void common_beginnings(const char *text, int64_t n_common) {
    fixture_params p = {.n_ubatch = 16, .n_slots = 8, .n_rows = 8, .n_parallel = 8};
    if (start(text, &p)) {
        const llm_engine_stats *s = &(llm_engine_stats){0};
        for (int i = 0; i < 8; i++) {
            job *j = job_plain(&f, 1, (size_t)n_common + 9, 5);
            for (int64_t k = 0; k < 9; k++)
                j->prompt[n_common + k] = (int32_t)((i + (int)k) % VOCAB);
            CHECK(job_add(j, (llm_sequence_params){.size = sizeof(llm_sequence_params),
                                                   .client = (uint64_t)i}));
        }
        CHECK(fixture_finish(&f));
        const llm_engine_stats got = llm_engine_get_stats(f.e);
        s = &got;
        CHECK_INT(s->n_prompt, n_common + 8 * 9);
        CHECK_INT(s->n_reused, 7 * n_common);
    }
    finish();
}

TEST(common_beginning_is_run_once) {
    common_beginnings(MODEL(ALL), 150);
}

TEST(common_beginning_with_states) {
    common_beginnings(MODEL(ALL STATES), 150);
}

TEST(common_beginning_with_a_window) {
    common_beginnings(MODEL(WINDOW), 150);
}

/* Twelve prompts that part from the first at ten places. */
static void many_parts(const char *text, int64_t n_more) {
    const fixture_params p = {.n_ubatch = 16, .n_slots = 12, .n_rows = 12, .n_parallel = 12};
    if (start(text, &p)) {
        int64_t n_different = 220;
        for (int i = 0; i < 12; i++) {
            job *j = job_plain(&f, 1, 220, 3);
            const int n_common = 20 * (i > 10 ? 10 : i);
            for (int k = n_common; i > 0 && k < 220; k++)
                j->prompt[k] = (j->prompt[k] + 1 + i % 7) % VOCAB;
            n_different += i > 0 ? 220 - n_common : 0;
            CHECK(job_add(j, (llm_sequence_params){.size = sizeof(llm_sequence_params),
                                                   .client = (uint64_t)i}));
        }
        CHECK(fixture_finish(&f));
        const int64_t n = llm_engine_get_stats(f.e).n_prompt;
        CHECK_MSG(n <= n_different + n_more, "%d tokens were run for %d", (int)n, (int)n_different);
    }
    finish();
}

TEST(common_beginnings_of_many_lengths) {
    many_parts(MODEL(ALL), 0);
}

TEST(common_beginnings_of_many_lengths_with_states) {
    many_parts(MODEL(ALL STATES), 0);
}

TEST(choices_share_a_prompt) {
    const fixture_params p = {.n_ubatch = 16, .n_slots = 4, .n_rows = 4, .n_parallel = 4};
    if (start(MODEL(ALL), &p)) {
        for (int i = 0; i < 4; i++)
            add(1, 100, 10, 0);
        CHECK(fixture_finish(&f));
        CHECK_INT(llm_engine_get_stats(f.e).n_prompt, 100 + 3);
    }
    finish();
}

/* When the one that runs the beginning is cancelled, another one does. */
TEST(leader_is_cancelled) {
    if (start(MODEL(ALL), &(fixture_params)FEW)) {
        const job *a = add(1, 100, 10, 0), *b = add(1, 100, 10, 0);
        fixture_step(&f);
        fixture_step(&f);
        CHECK_INT(b->stats.t_begun, 0);
        llm_engine_cancel(f.e, a->id);
        CHECK(fixture_finish(&f));
        CHECK(b->why == LLM_END_MAX && b->stats.n_reused > 16 && b->stats.n_reused < 99);
    }
    finish();
}

TEST(reuse_can_be_refused) {
    if (start(MODEL(ALL), &(fixture_params)FEW)) {
        add(1, 100, 10, 0);
        CHECK(fixture_finish(&f));
        job *j = job_plain(&f, 1, 100, 10);
        CHECK(job_add(j, (llm_sequence_params){.size = sizeof(llm_sequence_params),
                                               .no_reuse = true}) &&
              fixture_finish(&f));
        CHECK_INT(j->stats.n_reused, 0);
        j = job_plain(&f, 1, 100, 10);
        j->shows_prompt = true;
        CHECK(job_add(j, (llm_sequence_params){.size = sizeof(llm_sequence_params)}) &&
              fixture_finish(&f));
        CHECK_INT(j->stats.n_reused, 0);
        CHECK_INT(j->n_prompted, 100);
    }
    finish();
}

/* Slots that no sequence runs in keep the ones used last. */
TEST(least_recently_used_goes) {
    if (start(MODEL(ALL), &(fixture_params)FEW)) {
        const job *j[5];
        for (int i = 0; i < 4; i++) {
            j[i] = add(i, 40, 5, 0);
            CHECK(fixture_finish(&f));
            CHECK_INT(llm_engine_slot(f.e, i).use, LLM_SLOT_KEPT);
            CHECK_INT(llm_engine_slot(f.e, i).n_past, 44);
            CHECK_INT(llm_engine_slot(f.e, i).id, j[i]->id);
        }
        CHECK(next_turn(j[0], 5, 30)->stats.n_reused == 44);
        add(5, 50, 20, 0); /* in place of j[1] */
        fixture_step(&f);
        CHECK_INT(llm_engine_slot(f.e, 1).use, LLM_SLOT_PROMPT);
        CHECK(fixture_finish(&f));
        CHECK(next_turn(j[2], 5, 1)->stats.n_reused == 44);
        CHECK(next_turn(j[1], 5, 1)->stats.n_reused < 16);
        CHECK_INT(llm_engine_slot(f.e, 4).use, LLM_SLOT_EMPTY);
        CHECK_INT(llm_engine_slot(f.e, -1).use, LLM_SLOT_EMPTY);
    }
    finish();
}

/* --- room in the cache ------------------------------------------------------------------------ */

#define POOL(n)                                                                                    \
    { .n_ubatch = 32, .n_slots = 10, .n_rows = 8, .n_parallel = 8, .n_pool = n }

/* Those that began last wait until the first have ended, and then run again from their tokens. */
TEST(last_ones_make_room) {
    if (start(MODEL(ALL), &(fixture_params)POOL(256))) {
        for (int i = 0; i < 4; i++)
            add(i, 30, 120, (uint64_t)i);
        while (!f.job[0]->has_ended && f.n_steps < 1000) {
            const int64_t n = f.job[0]->n;
            fixture_step(&f);
            CHECK(n == 0 || f.job[0]->n == n + 1);
        }
        CHECK(fixture_finish(&f));
        CHECK(llm_engine_get_stats(f.e).n_preempted > 0);
        for (int i = 0; i < 4; i++)
            CHECK(f.job[i]->why == LLM_END_MAX);
        CHECK(f.job[0]->stats.t_last < f.job[3]->stats.t_last);
    }
    finish();
}

/* A search beside others: each step runs a token of all. If the cache is full, the search makes room as a whole, and begins
 * again; alone, it ends with what it has. */
TEST(beams_beside_others) {
    if (start(MODEL(ALL), &(fixture_params)POOL(384))) {
        job *first = add(1, 30, 200, 1), *search = job_plain(&f, 2, 40, 100),
            *last = job_plain(&f, 3, 30, 200);
        search->beams = (llm_beams_params){.n = 2, .length_penalty = 1};
        CHECK(job_add(search, (llm_sequence_params){.size = sizeof(llm_sequence_params)}));
        CHECK(job_add(last, (llm_sequence_params){.size = sizeof(llm_sequence_params)}));
        while (!first->has_ended && f.n_steps < 1000) {
            const int64_t n = first->n;
            fixture_step(&f);
            CHECK(n == 0 || first->n == n + 1);
            CHECK(f.n_steps > 1 || llm_engine_n_running(f.e) == 3);
        }
        CHECK(fixture_finish(&f) && llm_engine_get_stats(f.e).n_preempted > 0);
        CHECK_INT(search->why, LLM_END_MAX);
        CHECK_INT(search->n, 100);
        job *alone = job_plain(&f, 4, 100, 100);
        alone->beams = (llm_beams_params){.n = 8, .length_penalty = 1};
        CHECK(job_add(alone, (llm_sequence_params){.size = sizeof(llm_sequence_params)}));
        CHECK(fixture_finish(&f));
        CHECK_INT(alone->why, LLM_END_CONTEXT);
        CHECK(alone->n > 0 && alone->n < 100);
    }
    finish();
}

/* While a search runs, it has all its places; when it is cancelled, others have them at once. */
TEST(beams_leave_at_once) {
    if (start(MODEL(ALL), &(fixture_params)POOL(0))) {
        job *search = job_plain(&f, 2, 40, 100);
        search->beams = (llm_beams_params){.n = 7};
        CHECK(job_add(search, (llm_sequence_params){.size = sizeof(llm_sequence_params)}));
        const job *other = add(1, 10, 20, 1), *waits = add(3, 10, 5, 2);
        for (int i = 0; i < 4; i++)
            fixture_step(&f);
        CHECK(other->n > 0 && waits->n == 0 && llm_engine_n_waiting(f.e) == 1);
        llm_engine_cancel(f.e, search->id);
        CHECK(search->has_ended && search->why == LLM_END_CANCELLED && search->n == 0);
        fixture_step(&f);
        CHECK(waits->n == 1 && llm_engine_n_running(f.e) == 2);
        CHECK(fixture_finish(&f));
        CHECK_INT(llm_engine_get_stats(f.e).n_ended, 3);
    }
    finish();
}

TEST(one_may_use_all_pages) {
    if (start(MODEL(ALL), &(fixture_params)POOL(256))) {
        add(1, 100, 20, 0);
        CHECK(fixture_finish(&f));
        const job *all = add(2, 200, -1, 0);
        CHECK(fixture_finish(&f) && all->why == LLM_END_CONTEXT);
        CHECK_INT(all->n, CTX - 200 + 1);
        CHECK_INT(llm_engine_get_stats(f.e).n_preempted, 0);
    }
    finish();
}

/* Contexts that are full lose tokens, and what follows is what a generator draws. Guesses, and others in the batch, change nothing. */
static void shifts(const char *text, bool guesses) {
    enum { LONG = 230 };
    fixture_params p = {
        .n_ubatch = 32, .n_slots = 6, .n_rows = 16, .n_parallel = 3, .guesses = guesses};
    if (start(text, &p)) {
        for (int i = 0; i < 6; i++) {
            job *j = job_plain(&f, i % 4, 60 + 30 * (size_t)i, CTX);
            j->shifts = i != 4;
            j->n_keep = i == 0 ? -1 : i == 1 ? 500 : 7 * i;
            CHECK(job_add(j, (llm_sequence_params){.size = sizeof(llm_sequence_params)}));
        }
        CHECK(fixture_finish(&f));
        for (int i = 0; i < 6; i++)
            CHECK(i == 4 ? f.job[i]->why == LLM_END_CONTEXT && f.job[i]->stats.n_dropped == 0
                         : f.job[i]->why == LLM_END_MAX && f.job[i]->n == CTX &&
                               f.job[i]->stats.n_dropped > 0);
        CHECK_INT(f.job[5]->stats.n_prompt, 60 + 30 * 5);
        job *full = job_plain(&f, 9, CTX, LONG);
        full->shifts = true;
        CHECK(job_add(full, (llm_sequence_params){.size = sizeof(llm_sequence_params)}));
        CHECK(fixture_finish(&f) && full->n == LONG);
    }
    finish();
}

TEST(full_contexts_shift) {
    shifts(MODEL(ALL), false);
}

TEST(full_contexts_shift_with_guesses) {
    shifts(MODEL(ALL), true);
}

TEST(full_contexts_shift_with_states) {
    shifts(MODEL(STATES), false);
}

TEST(full_contexts_shift_with_a_window) {
    shifts(MODEL(WINDOW), true);
}

/* A cache that is full shifts the only sequence, too; others make room first. */
TEST(full_caches_shift) {
    if (start(MODEL(ALL), &(fixture_params)POOL(128))) {
        job *j[2];
        for (int i = 0; i < 2; i++) {
            j[i] = job_plain(&f, i, 60, 150);
            j[i]->shifts = true;
            CHECK(job_add(j[i], (llm_sequence_params){.size = sizeof(llm_sequence_params)}));
        }
        CHECK(fixture_finish(&f));
        CHECK(llm_engine_get_stats(f.e).n_preempted > 0);
        for (int i = 0; i < 2; i++) {
            CHECK(j[i]->why == LLM_END_MAX && j[i]->n == 150 && j[i]->stats.n_dropped > 0);
            j[i]->id = 0; /* a generator shifts later */
        }
    }
    finish();
}

/* A cache that is less than the context is the limit. */
TEST(cache_is_less_than_the_context) {
    if (start(MODEL(ALL), &(fixture_params)POOL(128))) {
        const job *grows = add(1, 100, -1, 0), *next = add(3, 128, 1, 0);
        job *large = job_plain(&f, 2, 129, 10);
        CHECK(!job_add(large, (llm_sequence_params){.size = sizeof(llm_sequence_params)}));
        CHECK_INT(large->status, GGL_LIMIT);
        CHECK_HAS(f.err.msg, "the prompt has 129 tokens, but the KV cache has room for only 128");
        CHECK(fixture_finish(&f));
        CHECK(grows->why == LLM_END_CONTEXT && grows->n == 128 - 100 + 1);
        CHECK(next->why == LLM_END_MAX);
        f.job[0]->id = 0; /* a generator goes on */
    }
    finish();
}

/* Eight of 150 tokens, and 30 more of each, need 24 pages, unless they share two. */
TEST(choices_share_pages) {
    if (start(MODEL(ALL), &(fixture_params)POOL(64 * (2 + 8)))) {
        for (int i = 0; i < 8; i++)
            add(1, 150, 30, 0);
        for (int i = 0; i < 12; i++)
            fixture_step(&f);
        CHECK_INT(llm_engine_slot(f.e, 0).n_shared, 128);
        CHECK(fixture_finish(&f));
        CHECK_INT(llm_engine_get_stats(f.e).n_preempted, 0);
        CHECK_INT(llm_engine_get_stats(f.e).n_prompt, 150 + 7);
    }
    finish();
}

TEST(kept_sequences_go_for_room) {
    if (start(MODEL(ALL), &(fixture_params)POOL(256))) {
        const job *a = add(1, 60, 4, 0);
        CHECK(fixture_finish(&f));
        const job *b = add(2, 60, 4, 0);
        CHECK(fixture_finish(&f));
        add(3, 150, 4, 0); /* in place of the first */
        CHECK(fixture_finish(&f));
        CHECK_INT(llm_engine_get_stats(f.e).n_preempted, 0);
        CHECK_INT(next_turn(b, 4, 1)->stats.n_reused, 63);
        CHECK_INT(next_turn(a, 4, 1)->stats.n_reused, 0);
    }
    finish();
}

/* What a waiting prompt begins with is dropped last, although it was used longest ago. */
TEST(own_beginning_goes_last) {
    if (start(MODEL(ALL), &(fixture_params)POOL(320))) {
        const job *a = add(1, 60, 4, 0);
        CHECK(fixture_finish(&f));
        add(2, 60, 4, 0);
        CHECK(fixture_finish(&f));
        add(3, 20, 40, 5);
        fixture_step(&f);
        fixture_step(&f);
        CHECK_INT(next_turn(a, 4, 90)->stats.n_reused, 63);
    }
    finish();
}

/* No kept sequence is dropped if all of them could not make enough room: of their pages, shared ones
 * count once. */
TEST(kept_sequences_are_not_dropped_in_vain) {
    if (start(MODEL(ALL), &(fixture_params)POOL(320))) {
        const job *a = add(1, 150, 4, 0); /* three pages */
        CHECK(fixture_finish(&f));
        job *b = job_plain(&f, 1, 150, 4); /* two of them, and one more */
        for (size_t i = 140; i < 150; i++)
            b->prompt[i] = (b->prompt[i] + 1) % VOCAB;
        CHECK(job_add(b, (llm_sequence_params){.size = sizeof(llm_sequence_params)}) &&
              fixture_finish(&f));
        CHECK_INT(b->stats.n_reused, 140);
        add(3, 20, 40, 1); /* the fifth page */
        fixture_step(&f);
        const job *large = add(4, CTX, 1, 2); /* five pages */
        fixture_step(&f);
        CHECK_INT(llm_engine_n_waiting(f.e), 1);
        CHECK_INT(large->stats.t_begun, 0);
        CHECK_INT(llm_session_n_free(f.s), 0);
        CHECK_INT(llm_session_n_cached(f.s), 153 + 25 + llm_engine_slot(f.e, 2).n_past);
        int n_kept = 0;
        for (int i = 0; i < 10; i++)
            if (llm_engine_slot(f.e, i).use == LLM_SLOT_KEPT) {
                CHECK_INT(llm_engine_slot(f.e, i).n_shared, 128);
                n_kept++;
            }
        CHECK_INT(n_kept, 2);
        CHECK(a->n == 4);
    }
    finish();
}

/* Of the sequences that share a page and go on in one step, the last needs no copy of it: two pages for
 * two new ones beside the first suffice, and nothing makes room. */
TEST(last_one_on_a_page_needs_no_copy) {
    if (start(MODEL(ALL), &(fixture_params)POOL(64 * 5))) {
        const job *kept = add(9, 60, 4, 0);
        CHECK(fixture_finish(&f));
        const job *a = add(1, 100, 20, 0);
        while (a->n == 0)
            fixture_step(&f);
        const job *b = add(1, 100, 10, 0), *c = add(1, 100, 10, 0);
        fixture_step(&f);
        CHECK_INT(a->n, 2);
        CHECK_INT(b->n, 1);
        CHECK_INT(c->n, 1);
        CHECK(fixture_finish(&f));
        CHECK_INT(llm_engine_get_stats(f.e).n_preempted, 0);
        CHECK_INT(next_turn(kept, 4, 1)->stats.n_reused, 63);
    }
    finish();
}

/* Sequences that made room do not come back only to make room again. */
TEST(making_room_is_rare) {
    fixture_params p = POOL(64 * 6);
    p.step_ns = LONG_STEPS;
    if (start(MODEL(ALL), &p)) {
        for (int i = 0; i < 30; i++) {
            job *j = job_plain(&f, i, 60, 100);
            for (int k = 0; k < 60; k++)
                j->prompt[k] = below(&f, VOCAB);
            CHECK(job_add(j, (llm_sequence_params){.size = sizeof(llm_sequence_params),
                                                   .client = (uint64_t)i}));
        }
        CHECK(fixture_finish(&f));
        const llm_engine_stats s = llm_engine_get_stats(f.e);
        CHECK_MSG(s.n_prompt < 2 * 30 * 60, "%d tokens of prompts were run, %d preemptions",
                  (int)s.n_prompt, (int)s.n_preempted);
    }
    finish();
}

/* Guesses take only pages that nothing else has. */
TEST(guesses_drop_nothing) {
    for (int guesses = 0; guesses < 2; guesses++) {
        const fixture_params p = {.n_ubatch = 32,
                                  .n_slots = 4,
                                  .n_rows = 8,
                                  .n_parallel = 1,
                                  .n_pool = 192,
                                  .guesses = guesses};
        int n_kept = 0;
        if (start(MODEL(ALL), &p)) {
            add(1, 60, 4, 0);
            CHECK(fixture_finish(&f));
            add(2, 100, 27, 0);
            CHECK(fixture_finish(&f));
            for (int i = 0; i < 4; i++)
                n_kept += llm_engine_slot(f.e, i).use == LLM_SLOT_KEPT;
            CHECK_INT(n_kept, 2);
        }
        finish();
    }
}

/* A prompt that has to run as a whole needs pages for all of it. */
TEST(refused_reuse_saves_no_pages) {
    if (start(MODEL(ALL), &(fixture_params)POOL(192))) {
        add(1, 100, 20, 0);
        for (int i = 0; i < 5; i++)
            fixture_step(&f);
        job *whole = job_plain(&f, 1, 100, 20);
        CHECK(job_add(
            whole, (llm_sequence_params){.size = sizeof(llm_sequence_params), .no_reuse = true}));
        fixture_step(&f);
        CHECK_INT(llm_engine_n_waiting(f.e), 1);
        CHECK(fixture_finish(&f));
        CHECK_INT(llm_engine_get_stats(f.e).n_preempted, 0);
    }
    finish();
}

static int64_t no_time(void *ctx) {
    (void)ctx;
    return 0;
}

/* Sequences that made room are not counted as reused again, even if all times are 0. */
TEST(reuse_is_counted_once) {
    fixture_params p = POOL(320);
    p.clock = no_time;
    if (start(MODEL(ALL), &p)) {
        for (int i = 0; i < 4; i++)
            add(1, 60, 150, (uint64_t)i);
        CHECK(fixture_finish(&f));
        int64_t n_reused = 0;
        for (int i = 0; i < 4; i++)
            n_reused += f.job[i]->stats.n_reused;
        CHECK(llm_engine_get_stats(f.e).n_preempted > 0);
        CHECK_INT(llm_engine_get_stats(f.e).n_reused, n_reused);
        CHECK_INT(n_reused, 3 * 59);
    }
    finish();
}

/* --- failures --------------------------------------------------------------------------------- */

TEST(failed_runs) {
    if (start(MODEL(ALL), &(fixture_params)FEW)) {
        const job *a = add(1, 10, 20, 0), *b = add(2, 10, 20, 0), *waits = add(3, 10, 20, 0);
        fixture_step(&f);
        const int64_t n_prompt = llm_engine_get_stats(f.e).n_prompt;
        CHECK_INT(n_prompt, 16);
        f.polls_left = 0;
        CHECK_INT(llm_engine_step(f.e, &f.err), GGL_CANCELLED);
        f.polls_left = -1;
        CHECK_INT(llm_engine_get_stats(f.e).n_prompt, n_prompt);
        CHECK(a->why == LLM_END_FAILED && b->why == LLM_END_FAILED && a->message[0]);
        CHECK(fixture_finish(&f) && waits->why == LLM_END_MAX);
        CHECK_INT(llm_engine_get_stats(f.e).n_failed, 2);
    }
    finish();
}

/* One that cannot draw ends; the others go on. */
TEST(failed_draws) {
    if (start(MODEL(ALL), &(fixture_params)FEW)) {
        llm_logit_bias none[VOCAB];
        for (int i = 0; i < VOCAB; i++)
            none[i] = (llm_logit_bias){i, -INFINITY};
        const job *a = add(1, 10, 20, 0);
        job *b = job_plain(&f, 2, 10, 20);
        b->sampling.bias = none;
        b->sampling.n_bias = VOCAB;
        CHECK(job_add(b, (llm_sequence_params){.size = sizeof(llm_sequence_params)}) &&
              fixture_finish(&f));
        CHECK(b->why == LLM_END_FAILED && a->why == LLM_END_MAX);
        CHECK_HAS(b->message, "no token can be chosen");
    }
    finish();
}

TEST(refusals) {
    if (start(MODEL(ALL), &(fixture_params)FEW)) {
        llm_engine *e;
        const llm_engine_params many = {.size = sizeof many, .session = f.s, .n_parallel = 5};
        CHECK_INT(llm_engine_new(&e, &many, &f.err), GGL_USAGE);
        CHECK_HAS(f.err.msg, "n_parallel is 5, but the session has slots for 1 to 4");
        CHECK(!e);
        const llm_engine_params none = {.size = sizeof none, .n_parallel = 1};
        CHECK_INT(llm_engine_new(&e, &none, &f.err), GGL_USAGE);
        const llm_engine_params less = {
            .size = sizeof less, .session = f.s, .n_parallel = 1, .step_ns = -1};
        CHECK_INT(llm_engine_new(&e, &less, &f.err), GGL_USAGE);
        static const int32_t wrong[] = {1, VOCAB}, too_many[CTX + 1];
        uint64_t id;
        llm_sequence_params p = {.size = sizeof p, .prompt = wrong, .n_prompt = 2, .n_max = 1};
        CHECK_INT(llm_engine_add(f.e, &p, &id, &f.err), GGL_USAGE);
        CHECK_HAS(f.err.msg, "needs a sampler");
        job *j = add(1, 10, 2, 0);
        p.sampler = j->sampler;
        CHECK_INT(llm_engine_add(f.e, &p, &id, &f.err), GGL_USAGE);
        CHECK_HAS(f.err.msg, "token 8 is not in the vocabulary of 8");
        p.n_prompt = 0;
        CHECK_INT(llm_engine_add(f.e, &p, &id, &f.err), GGL_USAGE);
        p = (llm_sequence_params){.size = sizeof(llm_sequence_params),
                                  .prompt = too_many,
                                  .n_prompt = CTX + 1,
                                  .sampler = j->sampler};
        CHECK_INT(llm_engine_add(f.e, &p, &id, &f.err), GGL_LIMIT);
        CHECK_HAS(f.err.msg, "the prompt has 257 tokens, but the context only 256");
        p.n_prompt = 1;
        p.beams = &(llm_beams_params){.n = 3, .n_max = 1};
        CHECK_INT(llm_engine_add(f.e, &p, &id, &f.err), GGL_LIMIT);
        CHECK_HAS(f.err.msg, "3 beams need as many sequences, but there are places for 2");
        p.shift = true;
        p.beams = &(llm_beams_params){.n = 2, .n_max = 1};
        CHECK_INT(llm_engine_add(f.e, &p, &id, &f.err), GGL_USAGE);
        CHECK_HAS(f.err.msg, "without a grammar");
        p.n_max = -2;
        CHECK_INT(llm_engine_add(f.e, &p, &id, &f.err), GGL_USAGE);
        CHECK_INT(id, 0);
    }
    finish();
}

/* Text that a grammar determines runs in few batches, with the tokens and logits of single steps: `finish`
 * compares them with a generator alone, which has one row of logits. */
static int64_t steps_of_forced(int64_t n_rows, bool guesses) {
    static const char text[] = "root ::= (\"d\" \"e\" \"d\" \"b\" \"e\"){6} [ad] \"edede\"";
    const fixture_params p = {
        .n_ubatch = 64, .n_slots = 2, .n_rows = n_rows, .n_parallel = 2, .guesses = guesses};
    llm_grammar *g = NULL;
    int64_t n_steps = 0;
    if (start(MODEL(ALL), &p) &&
        CHECK_OK(llm_grammar_from_gbnf(&g, text, strlen(text), "g", &f.err), &f.err)) {
        for (int i = 0; i < 2; i++) {
            job *j = job_plain(&f, i, 10, 60);
            j->grammar = g;
            j->sampling.temp = 1;
            j->sampling.seed = (uint64_t)i + 1;
            CHECK(job_add(j, (llm_sequence_params){.size = sizeof(llm_sequence_params)}));
        }
        CHECK(fixture_finish(&f));
        n_steps = f.n_steps;
        for (int i = 0; i < 2; i++)
            CHECK_INT(f.job[i]->n, 37); /* with the one that ends the text */
    }
    finish();
    f.n_steps = 0;
    llm_grammar_free(g);
    return n_steps;
}

TEST(forced_text_runs_in_batches) {
    const int64_t alone = steps_of_forced(2, false); /* a row for each sequence */
    CHECK_MSG(alone >= 36, "%d steps", (int)alone);
    const int64_t batched = steps_of_forced(16, false);
    CHECK_MSG(batched <= 8, "%d steps", (int)batched);
    const int64_t guessed = steps_of_forced(16, true);
    CHECK_MSG(guessed <= 8, "%d steps", (int)guessed);
}

/* Sequences whose grammars have 2^60 ways to go on fail when their steps are used up. Beside eight of them,
 * one that has no grammar draws a token in each step, and no step takes longer than their limits allow. */
TEST(hostile_grammars_hold_up_nobody) {
    enum { N_HOSTILE = 8, N_RULES = 60, MOST = 50000, BACK = 2000 };
    const fixture_params p = {.n_ubatch = 64, .n_slots = 9, .n_rows = 16, .n_parallel = 9};
    char text[40 * (N_RULES + 2)], *at = text;
    const llm_logit_bias no_end = {6, -INFINITY};
    llm_grammar *g = NULL;
    at += sprintf(at, "root ::= r0\n");
    for (int i = 0; i < N_RULES; i++)
        at += sprintf(at, "r%d ::= r%d \"b\"? r%d | \"a\"\n", i, i + 1, i + 1);
    sprintf(at, "r%d ::= \"a\"", N_RULES);
    if (start(MODEL(ALL), &p) &&
        CHECK_OK(llm_grammar_from_gbnf(&g, text, strlen(text), "g", &f.err), &f.err)) {
        job *innocent = add(1, 4, 100, 0);
        for (int i = 0; i < N_HOSTILE; i++) {
            job *j = job_plain(&f, i, 4, 100);
            j->grammar = g;
            j->sampling.bias = &no_end;
            j->sampling.n_bias = 1;
            if (CHECK(job_tools(j)))
                llm_matcher_limit(j->matcher, MOST, BACK);
            CHECK(job_add(j,
                          (llm_sequence_params){.size = sizeof(llm_sequence_params), .client = 2}));
        }
        for (int i = 0; i < 60 && test_failures == 0; i++) {
            ggl_n_steps = 0;
            fixture_step(&f);
            CHECK_INT(innocent->n, i + 1);
            CHECK(ggl_n_steps < 3 * N_HOSTILE * (MOST + 3 * BACK));
        }
        CHECK_INT(f.n_ended, N_HOSTILE);
        for (int i = 1; i < f.n_jobs; i++)
            CHECK_HAS(f.job[i]->message, "the grammar is too ambiguous: after ");
    }
    finish();
    llm_grammar_free(g);
}

/* Once sequences run, tokens need no memory. */
TEST(tokens_allocate_nothing) {
    const fixture_params p = {
        .n_ubatch = 16, .n_slots = 4, .n_rows = 16, .n_parallel = 3, .guesses = true};
    if (start(MODEL(ALL), &p)) {
        for (int i = 0; i < 3; i++)
            add(i, 40, 100, 0);
        for (int i = 0; i < 12; i++)
            fixture_step(&f);
        const long before = alloc_count();
        for (int i = 0; i < 20; i++)
            fixture_step(&f);
        CHECK_INT(alloc_count() - before, 0);
        CHECK(f.job[0]->n > 20);
    }
    finish();
}

/* States for which there is no memory are not even read from the device. */
TEST(snapshots_that_are_too_large_cost_nothing) {
    fixture_params p = FEW;
    p.n_snapshot_bytes = 200;
    if (start(MODEL(ALL STATES), &p)) {
        const job *j = add(1, 40, 10, 0);
        fixture_step(&f);
        const long before = alloc_count();
        for (int i = 0; i < 6; i++)
            fixture_step(&f);
        CHECK_INT(alloc_count() - before, 0);
        CHECK(j->n > 0);
    }
    finish();
}

static bool run_some(void *arg) {
    const bool has_states = arg != NULL;
    llm_engine *e = NULL;
    const llm_engine_params ep = {.size = sizeof ep, .session = f.s, .n_parallel = 2};
    bool ok = llm_engine_new(&e, &ep, &f.err) == GGL_OK;
    f.e = e;
    for (int i = 0; ok && i < 3; i++)
        ok = job_add(f.job[i], (llm_sequence_params){.size = sizeof(llm_sequence_params),
                                                     .client = (uint64_t)i});
    while (ok && llm_engine_n_running(e) + (int)llm_engine_n_waiting(e) > 0)
        ok = llm_engine_step(e, &f.err) == GGL_OK;
    llm_engine_free(e);
    f.e = NULL;
    for (int i = 0; i < 3; i++) {
        job *j = f.job[i];
        ok = ok && j->has_ended && j->why != LLM_END_FAILED;
        CHECK(!j->id || j->has_ended);
        if (j->matcher)
            llm_matcher_reset(j->matcher);
        j->n = 0;
        j->id = 0;
        j->has_ended = false;
    }
    /* a snapshot for others may be missing */
    return ok && !(has_states && alloc_has_failed());
}

static void every_allocation(const char *text, void *arg) {
    if (fixture_open(&f, text, 1) && fixture_start(&f, &(fixture_params)FEW)) {
        llm_engine_free(f.e);
        for (int i = 0; i < 3; i++) {
            job *j = job_plain(&f, i, 70, 4);
            j->grammar = i == 1 ? f.grammar[1] : NULL;
            j->beams = (llm_beams_params){.n = i == 2 ? 2 : 0};
            CHECK(job_tools(j));
        }
        const long n = alloc_fail_each(run_some, arg);
        CHECK_MSG(n > 5, "allocation %ld", n);
    }
    fixture_close(&f);
}

TEST(every_allocation_fails_in_turn) {
    every_allocation(MODEL(ALL), NULL);
}

TEST(every_allocation_fails_in_turn_with_states) {
    every_allocation(MODEL(ALL STATES), &f);
}
