/* Engines: who gets a place, how sequences end, and failures; engine_room.c has what is run again. That
 * the tokens are right, engine.c shows for random ones. */
#include <math.h>

#include "alloc_fail.h"
#include "engine_rules.h"
#include "steps.h"

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

/* A sequence that wants no guesses gets none; and cancelling all leaves an engine that goes on, with its guessers. */
TEST(guesses_are_for_some) {
    if (start(MODEL(ALL),
              &(fixture_params){
                  .n_ubatch = 16, .n_slots = 4, .n_rows = 16, .n_parallel = 2, .guesses = true})) {
        for (int round = 0; round < 2; round++) {
            job *j[3];
            for (int i = 0; i < 3; i++) {
                j[i] = job_plain(&f, i, 20, 60);
                CHECK(job_add(j[i], (llm_sequence_params){.size = sizeof(llm_sequence_params),
                                                          .no_guesses = i != 1}));
            }
            for (int i = 0; i < 20; i++)
                CHECK(fixture_step(&f));
            llm_engine_cancel_all(f.e);
            CHECK_INT(llm_engine_n_running(f.e) + (int)llm_engine_n_waiting(f.e), 0);
            for (int i = 0; i < 3; i++) {
                CHECK(j[i]->has_ended && j[i]->why == LLM_END_CANCELLED);
                CHECK((j[i]->stats.n_guessed > 0) == (i == 1));
            }
        }
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
        CHECK_INT(llm_engine_get_stats(f.e).n_cancelled, 2); /* with the step in which they were */
        CHECK_INT(llm_engine_get_stats(f.e).n_failed, 0);
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
 * compares them with a sequence alone, which has one row of logits. */
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
