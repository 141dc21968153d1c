/* Engines: what is not run again because a slot has it, and who makes room in the cache for whom. */
#include "engine_rules.h"

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

/* Contexts that are full lose tokens, and what follows is what is drawn alone. Guesses, and others in the batch, change nothing. */
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
            j[i]->id = 0; /* alone, with the whole cache, it shifts later */
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
        f.job[0]->id = 0; /* alone it goes on */
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
