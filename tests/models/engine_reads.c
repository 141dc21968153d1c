/* Engines of models that read a text before they write: texts have pages of their own, of which there may be few. Then sequences wait, or
 * slots give up what they have read, but none fails, and each writes what it writes alone. */
#include "engine_test.h"

static const char reader[] =
    "arch tiny\nlanguage 2\ntoken_embd [16, n_vocab]\nf = freqs(8, 1000)\n"
    "stage e:\n  y = token_embd[token]\n  k = rope_half(heads(y, 2), f)\n"
    "  return y + attention(k, k, k)\n"
    "x = token_embd[token]\nq = rope_half(heads(x, 2), f)\nx = x + attention(q, q, q)\n"
    "r = cache(heads(e, 2), heads(e * 2, 2))\n"
    "x = x + flat(attend(heads(x, 2), r))\nlogits = linear(x, token_embd)\n";

static void compare(void *ctx, int64_t i, const float *logits) {
    const void *const *a = ctx;
    const job *j = a[0];
    const int64_t k = *(const int64_t *)a[1];
    (void)i;
    CHECK_MSG(memcmp(j->logits + k * VOCAB, logits, VOCAB * sizeof *logits) == 0,
              "job %d: other logits before token %d", (int)j->id, (int)k);
}

/* Compares the logits with those of a session that has one slot. */
static bool check_alone(job *j) {
    fixture *f = j->f;
    int32_t token = llm_session_start_token(f->alone);
    bool ok =
        CHECK_OK(llm_session_read(f->alone, 0, j->prompt, (int64_t)j->n_prompt, &f->err), &f->err);
    for (int64_t k = 0; ok && k < j->n && test_failures == 0; k++) {
        const llm_batch b = {
            .n = 1, .token = &token, .each = compare, .ctx = (const void *[]){j, &k}};
        ok = CHECK_OK(llm_session_eval(f->alone, &b, &f->err), &f->err);
        token = j->token[k];
    }
    return ok;
}

static bool check(fixture *f) {
    for (int i = 0; i < f->n_jobs; i++) {
        job *j = f->job[i];
        if (!CHECK_MSG(j->status == GGL_OK && j->has_ended && j->why != LLM_END_FAILED,
                       "job %d reads %d tokens: %s", i, (int)j->n_prompt,
                       j->status == GGL_OK ? j->message : f->err.msg) ||
            (j->beams.n == 0 && !check_alone(j)))
            return false;
    }
    return true;
}

/* Adds a job that reads text `what`, of which others may read as much or another beginning. */
static bool add(fixture *f, int what, size_t n, int64_t n_max, bool no_reuse) {
    job *j = job_plain(f, what, n, n_max);
    j->cancel_at = below(f, 10) == 0 ? below(f, 20) : -1;
    if (f->most_beams > 1 && below(f, 8) == 0)
        j->beams = (llm_beams_params){2, 1, true, 1, 0};
    return job_add(j, (llm_sequence_params){.size = sizeof(llm_sequence_params),
                                            .client = (uint64_t)below(f, 4),
                                            .no_reuse = no_reuse});
}

/* A kept text makes room for another one, and one that is being used lets others wait. */
TEST(one_text_at_a_time) {
    static fixture f;
    const fixture_params p = {
        .n_ubatch = 64, .n_slots = 4, .n_rows = 4, .n_pool = CTX, .n_parallel = 4};
    bool ok = fixture_open(&f, reader, 1) && fixture_start(&f, &p);
    for (int i = 0; ok && i < 8; i++)
        ok = add(&f, i, 130, 30, i % 3 == 0); /* three pages of four */
    ok = ok && fixture_finish(&f) && check(&f) && add(&f, 8, 130, 10, false) && fixture_finish(&f);
    const int64_t n_reused = llm_engine_get_stats(f.e).n_reused;
    for (int i = 0; ok && i < 4; i++) /* they share the text that was read last */
        ok = add(&f, 8, 130, 10, false);
    ok = ok && fixture_finish(&f) && check(&f);
    CHECK_INT(llm_engine_get_stats(f.e).n_reused - n_reused, 4 * 129);
    CHECK(!ok || llm_engine_n_running(f.e) == 0);
    fixture_stop(&f);
    fixture_close(&f);
}

/* A text for which there is never room is refused. */
TEST(too_long) {
    static fixture f;
    static const int32_t read[130];
    const fixture_params p = {
        .n_ubatch = 64, .n_slots = 2, .n_rows = 2, .n_pool = 128, .n_parallel = 2};
    if (fixture_open(&f, reader, 1) && fixture_start(&f, &p)) {
        llm_sequence_params sp = {.size = sizeof sp};
        job *j = job_plain(&f, 0, 130, 10);
        CHECK(!job_add(j, sp));
        CHECK_INT(j->status, GGL_LIMIT);
        CHECK_HAS(f.err.msg, "the prompt has 130 tokens, but the KV cache has room for only 128");
        j = job_plain(&f, 0, 1, 10);
        sp.read = read;
        sp.n_read = 130;
        CHECK(!job_add(j, sp));
        CHECK_INT(j->status, GGL_LIMIT);
        CHECK_HAS(f.err.msg, "to read has 130 tokens, but the KV cache has room for only 128");
    }
    fixture_stop(&f);
    fixture_close(&f);
}

/* Those that wait for room in the cache find their texts again, or read them again. */
TEST(preempted) {
    static fixture f;
    const fixture_params p = {
        .n_ubatch = 64, .n_slots = 4, .n_rows = 4, .n_pool = CTX, .n_parallel = 4};
    bool ok = fixture_open(&f, reader, 1) && fixture_start(&f, &p);
    for (int i = 0; ok && i < 12; i++)
        ok = add(&f, i, 20, 120, i % 4 == 0); /* two pages of four, and one for the text */
    ok = ok && fixture_finish(&f) && check(&f);
    CHECK(!ok || llm_engine_get_stats(f.e).n_preempted > 0);
    fixture_stop(&f);
    fixture_close(&f);
}

LONG_TEST(few_pages) {
    static fixture f;
    bool ok = fixture_open(&f, reader, sample_seed());
    const int n_rounds = TEST_SANITIZED ? 6 : 40;
    for (int round = 0; ok && round < n_rounds && test_failures == 0; round++) {
        const int n_slots = 1 + below(&f, 8);
        const fixture_params p = {.n_ubatch = 64,
                                  .n_slots = n_slots,
                                  .n_pool = CTX + 64 * below(&f, 5),
                                  .n_rows = 1 + below(&f, 8),
                                  .n_parallel = 1 + below(&f, n_slots)};
        f.most_beams = p.n_parallel;
        ok = fixture_start(&f, &p);
        while (ok && f.n_jobs < 60)
            if (below(&f, 2))
                ok = add(&f, below(&f, 6),
                         (size_t)(below(&f, 2) ? 1 + below(&f, below(&f, 2) ? CTX : 64) : 130),
                         1 + below(&f, below(&f, 3) ? 20 : 150), below(&f, 10) == 0);
            else if (below(&f, 20) == 0)
                llm_engine_cancel(f.e, (uint64_t)below(&f, f.n_jobs + 2));
            else
                ok = fixture_step(&f);
        ok = ok && fixture_finish(&f) && check(&f);
        if (!ok || test_failures > 0)
            printf("%d of %d slots, room for %d, %d rows\n", p.n_parallel, n_slots, (int)p.n_pool,
                   (int)p.n_rows);
        fixture_stop(&f);
    }
    fixture_close(&f);
}
