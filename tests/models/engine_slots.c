/* Slots of an engine: sequences run where they are asked to, and kept ones come back from files as they were. */
#include "engine_test.h"

static fixture f;

static llm_prompt_cache *cache_of(int slot) {
    llm_prompt_cache *c = NULL;
    const llm_prompt_cache_params p = {
        .size = sizeof p, .model = f.model, .session = f.s, .slot = slot};
    CHECK_OK(llm_prompt_cache_new(&c, &p, &f.err), &f.err);
    return c;
}

static int64_t save(int slot, const char *path) {
    int64_t n = -1;
    llm_prompt_cache *c = cache_of(slot);
    CHECK_OK(llm_engine_save_slot(f.e, slot, c, path, &n, &f.err), &f.err);
    llm_prompt_cache_free(c);
    return n;
}

static ggl_status restore(int slot, const char *path, int64_t *n) {
    llm_prompt_cache *c = cache_of(slot);
    const ggl_status st = llm_engine_restore_slot(f.e, slot, c, path, n, &f.err);
    llm_prompt_cache_free(c);
    return st;
}

/* Runs a job to its end in a slot; less than 0: any. */
static job *run_in(job *j, int slot) {
    CHECK(job_add(
              j, (llm_sequence_params){.size = sizeof(llm_sequence_params), .in_slot = slot + 1}) &&
          fixture_finish(&f));
    return j;
}

/* The whole sequence of a job as a prompt. */
static job *next(const job *j, int64_t n_max) {
    job *o = job_plain(&f, 0, j->n_prompt + (size_t)j->n, n_max);
    memcpy(o->prompt, j->prompt, j->n_prompt * sizeof *o->prompt);
    memcpy(o->prompt + j->n_prompt, j->token, (size_t)j->n * sizeof *o->prompt);
    return o;
}

static bool start(const char *text, int64_t n_pool) {
    return fixture_open(&f, text, 1) && fixture_start(&f, &(fixture_params){.n_ubatch = 32,
                                                                            .n_slots = 6,
                                                                            .n_rows = 8,
                                                                            .n_pool = n_pool,
                                                                            .n_parallel = 2});
}

/* A new engine with a session of its own: the program begins again. */
static bool start_again(int64_t n_pool) {
    fixture_stop(&f);
    return fixture_start(
        &f, &(fixture_params){
                .n_ubatch = 32, .n_slots = 6, .n_rows = 8, .n_pool = n_pool, .n_parallel = 2});
}

static void check_files(const char *text) {
    const char *path = test_path("slot");
    int64_t n = 0;
    if (!start(text, 0)) {
        fixture_close(&f);
        return;
    }
    job *j = run_in(job_plain(&f, 1, 100, 10), 3);
    CHECK_INT(j->stats.slot, 3);
    CHECK_INT(save(3, path), 109);
    job *o = next(j, 0); /* kept beyond fixture_stop */
    int32_t prompt[110];
    memcpy(prompt, o->prompt, sizeof prompt);
    if (start_again(0)) {
        CHECK_OK(restore(1, path, &n), &f.err);
        CHECK_INT(n, 109);
        CHECK_INT(llm_engine_slot(f.e, 1).n_past, 109);
        CHECK_INT(llm_engine_slot(f.e, 1).use, LLM_SLOT_KEPT);
        j = job_plain(&f, 0, 110, 12);
        memcpy(j->prompt, prompt, sizeof prompt);
        run_in(j, -1);
        CHECK_INT(j->stats.n_reused, 109);
        CHECK_INT(j->stats.slot, 1);
        CHECK(job_check(j));
    }
    fixture_close(&f);
}

TEST(files) {
    check_files(MODEL(ALL));
}

TEST(files_with_a_window) {
    check_files(MODEL(WINDOW));
}

TEST(files_with_states) {
    check_files(MODEL(ALL STATES));
}

/* The prompt of a sequence that was saved, once more: tokens that need not run. */
static int64_t reused_by(const int32_t *prompt, int64_t n) {
    job *j = job_plain(&f, 0, (size_t)n, 8);
    memcpy(j->prompt, prompt, (size_t)n * sizeof *prompt);
    run_in(j, -1);
    CHECK(job_check(j));
    return j->stats.n_reused;
}

/* States from which the prompt of a saved sequence can go on before its end are in its file, so that a restart is not slower. */
TEST(files_have_earlier_states) {
    enum { N = 120 };
    const char *path = test_path("slot");
    int32_t prompt[N];
    int64_t n = 0;
    if (start(MODEL(ALL STATES), 0)) {
        job *j = run_in(job_plain(&f, 1, N, 10), 3);
        memcpy(prompt, j->prompt, sizeof prompt);
        CHECK_INT(save(3, path), N + 9);
        const int64_t in_memory = reused_by(prompt, N);
        CHECK(in_memory > N / 2);
        if (start_again(0)) {
            CHECK_OK(restore(1, path, &n), &f.err);
            CHECK_INT(reused_by(prompt, N), in_memory);
        }
    }
    fixture_close(&f);
}

/* The place that is asked for is taken, with what other slots have computed; unless a sequence runs there. */
TEST(places) {
    if (start(MODEL(ALL), 0)) {
        job *j = run_in(job_plain(&f, 1, 100, 10), 4);
        CHECK_INT(j->stats.slot, 4);
        job *o = run_in(next(j, 5), 2);
        CHECK_INT(o->stats.slot, 2);
        CHECK_INT(o->stats.n_reused, 109);
        CHECK_INT(llm_engine_slot(f.e, 4).n_past, 109);
        CHECK(job_check(o));
        job *a = job_plain(&f, 2, 50, 30), *b = job_plain(&f, 3, 50, 30);
        CHECK(job_add(a, (llm_sequence_params){.size = sizeof(llm_sequence_params), .in_slot = 3}));
        run_in(b, 2);
        CHECK_INT(a->stats.slot, 2);
        CHECK(b->stats.slot != 2 && job_check(a) && job_check(b));
        CHECK(!job_add(job_plain(&f, 2, 50, 30),
                       (llm_sequence_params){.size = sizeof(llm_sequence_params), .in_slot = 7}));
        CHECK_INT(f.job[f.n_jobs - 1]->status, GGL_USAGE);
    }
    fixture_close(&f);
}

/* A slot in which a sequence runs is left alone, as is one for which the file is no good. */
TEST(refusals) {
    const char *path = test_path("slot"), *none = test_path("none");
    int64_t n = 0;
    if (start(MODEL(ALL), 0)) {
        run_in(job_plain(&f, 1, 100, 10), 0);
        CHECK_INT(save(0, path), 109);
        CHECK_INT(restore(0, none, &n), GGL_NOT_FOUND);
        CHECK_INT(llm_engine_slot(f.e, 0).n_past, 109);
        CHECK_INT(llm_engine_restore_slot(f.e, 6, NULL, path, &n, &f.err), GGL_USAGE);
        CHECK_INT(llm_engine_erase_slot(f.e, 6, &n, &f.err), GGL_USAGE);
        CHECK_INT(llm_engine_erase_slot(f.e, -1, &n, &f.err), GGL_USAGE);
        job *j = job_plain(&f, 2, 50, 30);
        CHECK(job_add(j, (llm_sequence_params){.size = sizeof(llm_sequence_params), .in_slot = 2}));
        CHECK(fixture_step(&f));
        CHECK_INT(restore(1, path, &n), GGL_USAGE);
        CHECK_INT(llm_engine_erase_slot(f.e, 1, &n, &f.err), GGL_USAGE);
        CHECK(fixture_finish(&f) && job_check(j));
        CHECK_OK(llm_engine_erase_slot(f.e, 1, &n, &f.err), &f.err);
        CHECK_INT(n, 79);
        CHECK_INT(llm_engine_slot(f.e, 1).use, LLM_SLOT_EMPTY);
    }
    fixture_close(&f);
}

/* A restored sequence gets the pages of kept ones, those used longest ago first, but not of running ones. */
TEST(room) {
    const char *path = test_path("slot");
    int64_t n = 0;
    if (start(MODEL(ALL), 256)) {
        run_in(job_plain(&f, 1, 150, 10), 0);
        CHECK_INT(save(0, path), 159);
        CHECK_OK(llm_engine_erase_slot(f.e, 0, &n, &f.err), &f.err);
        run_in(job_plain(&f, 2, 60, 4), 1);
        run_in(job_plain(&f, 3, 60, 4), 2);
        CHECK_OK(restore(0, path, &n), &f.err);
        CHECK_INT(n, 159);
        CHECK_INT(llm_engine_slot(f.e, 1).use, LLM_SLOT_EMPTY);
        CHECK_INT(llm_engine_slot(f.e, 2).use, LLM_SLOT_KEPT);
        CHECK_OK(restore(0, path, &n), &f.err); /* in its own place */
        CHECK_INT(llm_engine_slot(f.e, 2).use, LLM_SLOT_KEPT);
        CHECK_OK(llm_engine_erase_slot(f.e, 0, &n, &f.err), &f.err);
        job *j = job_plain(&f, 4, 120, 20);
        CHECK(job_add(j, (llm_sequence_params){.size = sizeof(llm_sequence_params), .in_slot = 4}));
        while (llm_engine_slot(f.e, 3).use != LLM_SLOT_GENERATES && fixture_step(&f)) {
        }
        CHECK_INT(restore(0, path, &n), GGL_LIMIT);
        CHECK_INT(n, 0);
        CHECK_INT(llm_engine_slot(f.e, 2).use, LLM_SLOT_KEPT);
        CHECK(fixture_finish(&f) && job_check(j));
    }
    fixture_close(&f);
}
