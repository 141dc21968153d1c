/* What writes the texts of jobs: parts that begin again are as new ones, parts like others write the same, a grammar is read once, and a token
 * allocates nothing. */
#include "alloc_fail.h"
#include "job_parts.h"
#include "library_test.h"

enum { N_VOCAB = 64, N_DRAWN = 40 };

static void draw(llm_job_parts *x, int32_t *id) {
    float logits[N_VOCAB];
    for (int i = 0; i < N_VOCAB; i++)
        logits[i] = (float)(i * 37 % 11) * 0.2f;
    for (int i = 0; i < N_DRAWN; i++) {
        id[i] = llm_sampler_next(x->sampler, logits, NULL);
        llm_sampler_accept(x->sampler, id[i]);
    }
}

TEST(parts_begin_again) {
    ggl_error err;
    llm_sampler_params s = llm_sampler_default();
    const ggl_str stop = {"end", 3};
    int32_t first[N_DRAWN], like[N_DRAWN], again[N_DRAWN], other[N_DRAWN];
    s.seed = 7;
    s.repeat_penalty = 1.5f;
    const llm_job_params p = {
        .n_vocab = N_VOCAB, .n_ctx = 32, .sampling = &s, .stop = &stop, .n_stop = 1};
    llm_job_parts a, b;
    REQUIRE_OK(llm_job_parts_new(&a, &p, NULL, &err), &err);
    REQUIRE_OK(llm_job_parts_new(&b, &p, &a, &err), &err);
    draw(&a, first);
    draw(&b, like);
    CHECK(memcmp(first, like, sizeof first) == 0);
    (void)llm_stop_read(a.stop, "the end", 7);
    CHECK_INT(llm_stop_found(a.stop), 0);
    CHECK_INT(llm_stop_found(b.stop), -1);
    llm_job_parts_begin(&a, 8);
    CHECK_INT(llm_stop_found(a.stop), -1);
    draw(&a, other);
    CHECK(memcmp(first, other, sizeof first) != 0);
    llm_job_parts_begin(&a, 7);
    draw(&a, again);
    CHECK(memcmp(first, again, sizeof first) == 0);
    llm_job_parts_fini(&a);
    llm_job_parts_fini(&b);
}

/* What the engine is told. */
TEST(descriptions) {
    ggl_error err;
    llm_sampler_params s = llm_sampler_default();
    s.temp = 0.5f;
    s.seed = 3;
    llm_job_params p = {.n_vocab = N_VOCAB,
                        .n_ctx = 100,
                        .sampling = &s,
                        .way = {.n_max = -1, .shift = true, .n_keep = 4, .ignore_end = true}};
    llm_job_parts x;
    llm_sequence_params to = {.size = sizeof to, .n_prompt = 90};
    REQUIRE_OK(llm_job_parts_new(&x, &p, NULL, &err), &err);
    llm_job_describe(&x, &to);
    CHECK(to.sampler == x.sampler && !to.matcher && !to.beams && !to.diffusion);
    CHECK(to.n_max == -1 && to.shift && to.n_keep == 4 && to.ignore_eog);
    x.way.beams.n = 2;
    llm_job_describe(&x, &to);
    CHECK(to.beams && to.beams->n == 2 && !to.shift && to.n_max == -1);
    x.way.beams.n = 0;
    x.way.diffuses = true;
    llm_job_describe(&x, &to);
    CHECK(to.diffusion && to.diffusion->temp == 0.5 && to.diffusion->seed == 3 && !to.shift);
    CHECK(!to.sampler && to.n_max == 10);
    llm_job_parts_begin(&x, 5);
    CHECK(to.diffusion->seed == 5);
    llm_job_parts_fini(&x);
    CHECK_INT(llm_job_n_diffused(7, 100, 90), 7);
    CHECK_INT(llm_job_n_diffused(0, 100, 90), 0);
    CHECK_INT(llm_job_n_diffused(-1, 100, 10), LLM_DIFFUSION_LENGTH);
    CHECK_INT(llm_job_n_diffused(-1, 100, 100), LLM_DIFFUSION_LENGTH); /* which has no room */
}

static void count(void *user, const char *text) {
    CHECK_HAS(text, "colour");
    ++*(int *)user;
}

/* Jobs beside each other with one schema read it once, and after them llm_generate does not read it either. */
TEST(a_schema_is_read_once) {
    enum { N = 3 };
    ggl_error err;
    written t[N] = {{.n = 0}}, alone = {.n = 0};
    llm_job job[N];
    int n_notes = 0;
    int32_t *id;
    size_t n;
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_parallel = N});
    REQUIRE(c);
    llm_generate_params p = greedy(20);
    p.json_schema = "{\"enum\": [\"fox\", \"dog\"], \"colour\": 1}";
    p.note = count;
    p.user = &n_notes;
    REQUIRE_OK(llm_encode(c, "Once", 4, LLM_ADD_SPECIAL, &id, &n, &err), &err);
    for (int i = 0; i < N; i++)
        job[i] = (llm_job){.id = id, .n = n, .params = &p, .each = take, .user = &t[i]};
    CHECK_OK(llm_generate_jobs(c, job, N, &err), &err);
    generate(c, "Once", &p, &alone);
    for (int i = 0; i < N; i++)
        CHECK_STR(t[i].s, alone.s);
    CHECK(alone.n > 0);
    CHECK_INT(n_notes, 1);
    ggl_free(id);
    llm_close(c);
}

/* Allocations from the FIRST-th token of a text to its LAST-th. */
enum { FIRST = 20, LAST = 110 };

typedef struct counting {
    long before, n;
    int n_tokens;
} counting;

static bool count_allocations(void *user, int32_t id, const float *logits) {
    counting *c = user;
    (void)id, (void)logits;
    if (++c->n_tokens == FIRST)
        c->before = alloc_count();
    else if (c->n_tokens == LAST)
        c->n = alloc_count() - c->before;
    return true;
}

/* Texts by llm_generate, and by a job, each plain and with a stop text and a grammar. A matcher remembers states that it has seen, so that it
 * allocates a few times. */
TEST(a_token_allocates_nothing) {
    static const char *const stop[] = {"never"};
    ggl_error err;
    int32_t *id;
    size_t n;
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_parallel = 2});
    REQUIRE(c);
    REQUIRE_OK(llm_encode(c, "Once", 4, LLM_ADD_SPECIAL, &id, &n, &err), &err);
    for (int k = 0; k < 4; k++) {
        counting seen = {.n_tokens = 0};
        written t = {.n = 0};
        llm_generate_params p = greedy(LAST + 5);
        p.ignore_end = true;
        p.token = count_allocations;
        p.user = &seen;
        p.stop = stop;
        p.n_stop = k / 2;
        p.grammar = k / 2 ? "root ::= [ -~]* \"#\"" : NULL;
        llm_job job = {.id = id, .n = n, .params = &p, .each = take, .user = &t};
        CHECK_OK(k % 2 ? llm_generate_jobs(c, &job, 1, &err)
                       : llm_generate(c, "Once", &p, take, &t, &err),
                 &err);
        CHECK_INT(seen.n_tokens, LAST + 5);
        CHECK_MSG(seen.n <= (k / 2 ? 9 : 0), "%ld allocations for %d tokens, %s", seen.n,
                  LAST - FIRST, k % 2 ? "a job" : "llm_generate");
    }
    ggl_free(id);
    llm_close(c);
}
