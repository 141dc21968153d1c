/* Jobs of models that write by diffusion. */
#include <math.h>

#include "diffuse_alone.h"
#include "library_test.h"
#include "llm/internal/diffuse.h"
#include "opening.h"
#include "tiny_model.h"

static const char diffusion[] =
    "arch tiny\nlanguage 2\ntoken_embd [16, 8]\nf = freqs(8, 1000)\nstage s:\n  x = "
    "token_embd[token]\n"
    "  for i < 3:\n    q = rope_half(heads(x, 2), f)\n    x = x + attention(q, q, heads(x, 2))\n"
    "  return x\nlogits = linear(s, token_embd)\n";

enum { MASK = 7, N_DIFFUSED = 20 };

/* The text of a job, as its own session writes it. */
static void draw_alone(llm_context *c, const llm_job *job, drawn *out) {
    const llm_generate_params *p = job->params;
    const llm_diffuse_params *s = p->diffuse;
    llm_diffusion d = llm_diffusion_default();
    int32_t id[200];
    ggl_error err;
    d.prompt = job->id;
    d.n_prompt = (int64_t)job->n;
    d.n_length = d.n_prompt + p->n_max;
    d.n_steps = s ? s->n_steps : 0;
    d.n_block = s ? s->n_block : 0;
    d.order_temp = s ? s->order_temp : 0;
    d.cfg_scale = s ? s->cfg_scale : 0;
    d.temp = (double)p->temp;
    d.top_k = p->top_k;
    d.top_p = p->top_p == 0 ? 1 : (double)p->top_p;
    d.seed = p->seed;
    *out = (drawn){.n = p->n_max};
    if (s && s->order)
        CHECK_OK(llm_diffusion_order_find(s->order, &d.order, &err), &err);
    CHECK_OK(llm_diffusion_of(&d, llm_opened_model(c), &err), &err);
    CHECK_OK(diffuse_alone(llm_opened_session(c), &d, id, &err), &err);
    memcpy(out->id, id + d.n_prompt, (size_t)p->n_max * sizeof *id);
}

typedef struct steps { /* what `step` has seen */
    int32_t n_calls, n_done, n_steps, stop_at;
    size_t n_masks;
    drawn last;
} steps;

static bool see_step(void *user, int32_t n_done, int32_t n_steps, const int32_t *id, size_t n,
                     int32_t mask) {
    steps *s = user;
    size_t n_masks = 0;
    for (size_t i = 0; i < n; i++)
        n_masks += id[i] == mask;
    CHECK(s->n_calls == 0 ? n_masks == n && n_done == 0
                          : n_masks <= s->n_masks && n_done > s->n_done);
    CHECK(mask == MASK);
    s->n_calls++;
    s->n_done = n_done;
    s->n_steps = n_steps;
    s->n_masks = n_masks;
    s->last.n = (int64_t)n;
    memcpy(s->last.id, id, n * sizeof *id);
    return s->n_calls != s->stop_at;
}

static bool same_drawn(const drawn *a, const drawn *b) {
    return a->n == b->n && memcmp(a->id, b->id, (size_t)a->n * sizeof *a->id) == 0;
}

/* Texts beside each other, some in blocks, some computed twice, have the tokens that each has alone. */
static void diffuses(int64_t n_ctx, bool shift) {
    static const char *const orders[] = {NULL, "origin", "entropy", "margin", "random"};
    static drawn all[N_DIFFUSED], alone, one;
    llm_generate_params p[N_DIFFUSED];
    llm_diffuse_params d[N_DIFFUSED];
    llm_job job[N_DIFFUSED];
    int32_t prompt[N_DIFFUSED];
    ggl_error err;
    const char *const keys[] = {"tokenizer.ggml.mask_token_id=int:7",
                                shift ? "diffusion.shift_logits=bool:true"
                                      : "diffusion.shift_logits=bool:false"};
    llm_context *c =
        open_with(test_path("diffusion.gguf"),
                  (llm_open_params){.n_ctx = n_ctx, .override = keys, .n_override = 2});
    llm_context *other =
        open_with(test_path("diffusion.gguf"),
                  (llm_open_params){.n_ctx = n_ctx, .override = keys, .n_override = 2});
    REQUIRE(c && other);
    for (int k = 0; k < N_DIFFUSED; k++) {
        prompt[k] = k % 7;
        all[k] = (drawn){.n = 0};
        d[k] = (llm_diffuse_params){.size = sizeof d[k],
                                    .n_steps = k % 4 * 5,
                                    .n_block = k % 3 ? 0 : 8,
                                    .order = orders[k % 5],
                                    .order_temp = k % 7 == 6 ? 0.5 : 0,
                                    .cfg_scale = k % 6 == 5 ? 0.8 : 0};
        p[k] = greedy(4 + k * 5 % 37);
        p[k].temp = k % 2 ? 1.25f : 0;
        p[k].top_k = k % 5 == 3 ? 3 : 0;
        p[k].top_p = k % 5 == 1 ? 0.7f : 0;
        p[k].seed = (uint64_t)k;
        p[k].token = keep_token;
        p[k].user = &all[k];
        p[k].diffuse = k == 2 ? NULL : &d[k];
        job[k] = (llm_job){.id = &prompt[k], .n = 1, .params = &p[k]};
    }
    CHECK_OK(llm_generate_jobs(c, job, N_DIFFUSED, &err), &err);
    for (int k = 0; k < N_DIFFUSED; k++) {
        CHECK_OK(job[k].err.status, &job[k].err);
        CHECK(job[k].finish == LLM_FINISH_LENGTH && job[k].n_generated == p[k].n_max);
        draw_alone(other, &job[k], &alone);
        CHECK_MSG(alone.n == p[k].n_max && same_drawn(&all[k], &alone), "text %d", k);
        one = (drawn){.n = 0};
        p[k].user = &one;
        steps seen = {.n_calls = 0};
        d[k].step = see_step;
        d[k].user = &seen;
        CHECK_OK(generate_ids(c, job[k].id, 1, &p[k], NULL, NULL, &err), &err);
        CHECK_MSG(same_drawn(&one, &alone), "text %d by llm_begin", k);
        CHECK_MSG(k == 2 || (same_drawn(&seen.last, &alone) && seen.n_done <= seen.n_steps),
                  "text %d: the last step has the text", k);
        for (int64_t i = 0; i < one.n; i++)
            CHECK(one.id[i] != MASK);
    }
    size_t n;
    CHECK(llm_sequence(c, &n) && n == 0);
    llm_close(c);
    llm_close(other);
}

/* A step that returns false stops its text, and no other. */
TEST(diffusion_stops_by_a_step) {
    const char *const key = "tokenizer.ggml.mask_token_id=int:7";
    const int32_t id = 1;
    ggl_error err;
    REQUIRE(tiny_model_write(test_path("diffusion.gguf"), diffusion, 0.7f));
    llm_context *c = open_with(
        test_path("diffusion.gguf"),
        (llm_open_params){.n_ctx = 40, .n_parallel = 2, .override = &key, .n_override = 1});
    REQUIRE(c);
    for (int32_t stop_at = 1; stop_at < 4; stop_at++) {
        steps seen[3] = {{.stop_at = stop_at}, {.stop_at = stop_at}, {.stop_at = 0}};
        llm_diffuse_params d[3];
        llm_generate_params p[3];
        llm_job job[3];
        drawn out = {.n = 0};
        for (int k = 0; k < 3; k++) {
            d[k] = (llm_diffuse_params){
                .size = sizeof *d, .n_steps = 5, .step = see_step, .user = &seen[k]};
            p[k] = greedy(10);
            p[k].token = keep_token;
            p[k].user = &out;
            p[k].diffuse = &d[k];
            job[k] = (llm_job){.id = &id, .n = 1, .params = &p[k]};
        }
        CHECK_INT(generate_ids(c, &id, 1, &p[0], NULL, NULL, &err), GGL_CANCELLED);
        CHECK_INT(seen[0].n_calls, stop_at);
        out.n = 0;
        CHECK_OK(llm_generate_jobs(c, job + 1, 2, &err), &err);
        CHECK_INT(job[1].err.status, GGL_CANCELLED);
        CHECK_INT(job[1].finish, LLM_FINISH_CANCELLED);
        CHECK_INT(seen[1].n_calls, stop_at);
        CHECK(job[2].finish == LLM_FINISH_LENGTH && seen[2].n_calls == 6);
    }
    llm_close(c);
}

typedef struct looks {
    const llm_context *c;
    size_t most;
} looks;

static bool look_at_sequence(void *user, int32_t id, const float *logits) {
    looks *l = user;
    size_t n;
    (void)llm_sequence(l->c, &n);
    l->most = n > l->most ? n : l->most;
    return id >= 0 && !logits;
}

/* What is written in any order is no sequence while it is written, nor what was there before. */
TEST(no_sequence_by_diffusion) {
    const char *const key = "tokenizer.ggml.mask_token_id=int:7";
    const int32_t id[] = {1, 2, 3};
    const char *piece;
    size_t n;
    ggl_error err;
    REQUIRE(tiny_model_write(test_path("diffusion.gguf"), diffusion, 0.7f));
    llm_context *c = open_with(test_path("diffusion.gguf"),
                               (llm_open_params){.n_ctx = 40, .override = &key, .n_override = 1});
    REQUIRE(c);
    const llm_diffuse_params d = {.size = sizeof d, .n_steps = 5};
    looks l = {.c = c};
    llm_generate_params p = greedy(10);
    p.diffuse = &d;
    p.token = look_at_sequence;
    p.user = &l;
    for (int round = 0; round < 2; round++) {
        REQUIRE_OK(llm_begin(c, id, 3, &p, &err), &err);
        CHECK(llm_sequence(c, &n) && n == 0);
        do
            CHECK_OK(llm_next(c, &piece, &n, &err), &err);
        while (piece && err.status == GGL_OK);
        CHECK_INT((long long)l.most, 0);
    }
    llm_close(c);
}

static void count_row(void *user, int64_t i, const float *logits) {
    CHECK(i == *(int64_t *)user && isfinite(logits[0]));
    ++*(int64_t *)user;
}

/* The logits of a text are those of its tokens, and nothing follows. */
TEST(logits_of_a_text) {
    const int32_t id[] = {1, 2, 3, 4, 5};
    const char *piece;
    size_t n;
    int64_t n_rows = 0;
    ggl_error err;
    llm_run_info run = {.size = sizeof run};
    REQUIRE(tiny_model_write(test_path("diffusion.gguf"), diffusion, 0.7f));
    llm_context *c = open_with(test_path("diffusion.gguf"), (llm_open_params){.n_ctx = 40});
    REQUIRE(c);
    llm_generate_params p = greedy(3);
    p.token = keep_token;
    p.prompt_logits = count_row;
    p.user = &n_rows;
    REQUIRE_OK(llm_begin(c, id, 5, &p, &err), &err);
    CHECK_INT(n_rows, 5);
    CHECK_OK(llm_next(c, &piece, &n, &err), &err);
    CHECK(!piece && n_rows == 5);
    REQUIRE_OK(llm_last_run(c, &run, &err), &err);
    CHECK(run.finish == LLM_FINISH_LENGTH && run.n_prompt == 5 && run.n_generated == 0);
    llm_close(c);
}

TEST(jobs_by_diffusion) {
    ggl_error err;
    REQUIRE(tiny_model_write(test_path("diffusion.gguf"), diffusion, 0.7f));
    diffuses(48, true);
    diffuses(150, false);

    /* what such a text cannot have */
    const char *const key = "tokenizer.ggml.mask_token_id=int:7";
    const int32_t id = 1;
    drawn out = {.n = 0};
    llm_generate_params p = greedy(0);
    llm_diffuse_params d = {.size = sizeof d};
    p.token = keep_token;
    p.user = &out;
    llm_context *c = open_with(test_path("diffusion.gguf"),
                               (llm_open_params){.n_ctx = 40, .override = &key, .n_override = 1});
    REQUIRE(c);
    CHECK_OK(generate_ids(c, &id, 1, &p, NULL, NULL, &err), &err);
    CHECK_INT(out.n, 39); /* what fits, which is less than 64 */
    p.n_max = 40;
    CHECK_INT(generate_ids(c, &id, 1, &p, NULL, NULL, &err), GGL_LIMIT);
    p.n_max = INT64_MAX;
    CHECK_INT(generate_ids(c, &id, 1, &p, NULL, NULL, &err), GGL_LIMIT);
    llm_job longest = {.id = &id, .n = 1, .params = &p};
    CHECK_INT(llm_jobs_add(c, &longest, &err), GGL_LIMIT);
    p.n_max = 4;
    CHECK_INT(generate_ids(c, &id, 0, &p, NULL, NULL, &err), GGL_USAGE);
    d.order = "best";
    p.diffuse = &d;
    CHECK_INT(generate_ids(c, &id, 1, &p, NULL, NULL, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "order 'best'");
    d.order = NULL;
    d.eps = 2;
    llm_job job = {.id = &id, .n = 1, .params = &p};
    CHECK_INT(llm_jobs_add(c, &job, &err), GGL_USAGE);
    p.diffuse = NULL;
    p.shift = true;
    CHECK_INT(llm_jobs_add(c, &job, &err), GGL_UNSUPPORTED);
    CHECK_HAS(err.msg, "writes by diffusion");
    p.shift = false;
    const llm_token_bias bias = {1, -1};
    p.bias = &bias;
    p.n_bias = 1;
    CHECK_INT(generate_ids(c, &id, 1, &p, NULL, NULL, &err), GGL_UNSUPPORTED);
    llm_close(c);
    c = open_with("builtin:stories", (llm_open_params){.n_parallel = 1});
    REQUIRE(c);
    p = greedy(3);
    p.diffuse = &d;
    CHECK_INT(generate_ids(c, &id, 1, &p, NULL, NULL, &err), GGL_USAGE);
    llm_close(c);
}
