/* Members of llm_generate_params that look at each token of a generation, or steer it. */
#include <math.h>

#include "library_test.h"

static const char prompt[] = "Once upon a time";

/* What the callbacks have seen. */
typedef struct seen {
    llm_context *c;
    written text;
    int32_t id[64];
    float logit[64]; /* of the token that was drawn */
    size_t n, n_rows, most;
    int32_t forced[2];
    int n_full, n_notes;
    size_t n_prompt;
    int64_t n_done;
} seen;

static bool on_token(void *user, int32_t id, const float *logits) {
    seen *s = user;
    if (!CHECK(s->n < 64))
        return false;
    s->logit[s->n] = logits[id];
    s->id[s->n++] = id;
    return !s->most || s->n < s->most;
}

static void on_row(void *user, int64_t i, const float *logits) {
    seen *s = user;
    CHECK(i == (int64_t)s->n_rows && isfinite(logits[0]));
    s->n_rows++;
}

static bool on_progress(void *user, int64_t n_done, int64_t n) {
    seen *s = user;
    CHECK(n_done <= n && n_done >= s->n_done);
    s->n_done = n_done;
    return true;
}

static size_t on_force(void *user, const int32_t **id) {
    seen *s = user;
    *id = s->forced;
    return s->n == 2 ? 2 : 0;
}

/* Goes on after the last 8 tokens. */
static bool on_full(void *user, const int32_t **id, size_t *n) {
    seen *s = user;
    s->n_full++;
    *id = s->id + s->n - 8;
    *n = 8;
    return s->n_full < 3;
}

static void on_note(void *user, const char *text) {
    seen *s = user;
    CHECK_HAS(text, "maxItem");
    s->n_notes++;
}

static bool shows_all(void *user, int32_t id) {
    return user && id >= 0;
}

static llm_run_info run_of(const llm_context *c) {
    ggl_error err;
    llm_run_info run = {.size = sizeof run};
    CHECK_OK(llm_last_run(c, &run, &err), &err);
    return run;
}

TEST(tokens_and_logits) {
    ggl_error err;
    seen s = {.n = 0};
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_ctx = 64});
    REQUIRE(c);
    llm_generate_params p = greedy(12);
    generate(c, prompt, &p, &s.text);
    p.user = &s;
    p.token = on_token;
    p.prompt_logits = on_row;
    p.prompt_progress = on_progress;
    written again;
    generate(c, prompt, &p, &again);
    CHECK_STR(again.s, s.text.s);
    llm_run_info run = run_of(c);
    CHECK(s.n == 12 && run.n_generated == 12 && run.n_reused == 0);
    CHECK(s.n_rows == (size_t)run.n_prompt && s.n_done == run.n_prompt);
    CHECK(run.seconds > 0 && run.prompt_seconds > 0 && run.n_nan == 0 && !run.incomplete);
    CHECK(s.logit[11] == llm_logits(c)[s.id[11]]);
    /* the callback ends it; what was held back for a stop text is not lost */
    const char *stop[] = {again.s + 1};
    const char *piece = "";
    size_t n = 0, n_id;
    int32_t *id;
    s.n = 0;
    s.most = 3;
    p.stop = stop;
    p.n_stop = 1;
    p.prompt_logits = NULL;
    REQUIRE_OK(llm_encode(c, prompt, strlen(prompt), LLM_ADD_SPECIAL, &id, &n_id, &err), &err);
    REQUIRE_OK(llm_begin(c, id, n_id, &p, &err), &err);
    written held = {.n = 0};
    ggl_status st = GGL_OK;
    while (st == GGL_OK && piece) {
        st = llm_next(c, &piece, &n, &err);
        if (piece)
            take(&held, piece, n);
    }
    CHECK(st == GGL_CANCELLED && held.n > 1 && strncmp(held.s, again.s, held.n) == 0);
    CHECK(run_of(c).finish == LLM_FINISH_CANCELLED && run_of(c).n_generated == 3);
    CHECK_OK(llm_next(c, &piece, &n, &err), &err);
    CHECK(!piece);
    ggl_free(id);
    llm_close(c);
}

TEST(stop_texts) {
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_ctx = 64});
    REQUIRE(c);
    const int32_t end = llm_context_facts(c)->eos;
    size_t n;
    const char *mark = llm_token_bytes(c, end, &n);
    char text[32];
    snprintf(text, sizeof text, "%.*s", (int)n, mark);
    const llm_token_bias bias = {end, 1000};
    const char *stop[] = {text};
    seen s = {.n = 0};
    llm_generate_params p = greedy(5);
    p.ignore_end = true;
    p.bias = &bias;
    p.n_bias = 1;
    p.stop = stop;
    p.n_stop = 1;
    generate(c, prompt, &p, &s.text); /* a special token that is not shown stops, too */
    CHECK(run_of(c).finish == LLM_FINISH_STOP && run_of(c).n_generated == 1);
    CHECK_STR(s.text.s, "");
    p.n_stop_shown = 1;
    p.user = &s;
    p.shows = shows_all;
    generate(c, prompt, &p, &s.text);
    CHECK_STR(s.text.s, text);
    ggl_error err;
    p.n_stop_shown = 2;
    CHECK_INT(llm_check_params(c, &p, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "n_stop_shown");
    llm_close(c);
}

TEST(steered) {
    seen s = {.forced = {300, 301}};
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_ctx = 32});
    REQUIRE(c);
    llm_generate_params p = greedy(6);
    p.user = &s;
    p.token = on_token;
    p.force = on_force;
    generate(c, prompt, &p, &s.text);
    CHECK(s.n == 6 && s.id[2] == 300 && s.id[3] == 301);
    /* a full context: the text ends, drops its older half, or goes on after other tokens */
    p = greedy(60);
    p.ignore_end = true;
    p.user = &s;
    p.token = on_token;
    s.n = 0;
    generate(c, prompt, &p, &s.text);
    CHECK(run_of(c).finish == LLM_FINISH_CONTEXT && run_of(c).n_generated < 32);
    s.n = 0;
    p.shift = true;
    p.n_keep = 2;
    generate(c, prompt, &p, &s.text);
    llm_run_info run = run_of(c);
    CHECK(run.finish == LLM_FINISH_LENGTH && run.n_generated == 60 && s.n == 60);
    CHECK(run.n_shifts > 1 && run.n_dropped > run.n_shifts);
    s.n = 0;
    p.shift = false;
    p.full = on_full;
    generate(c, prompt, &p, &s.text);
    run = run_of(c);
    CHECK(s.n_full == 3 || run.finish == LLM_FINISH_LENGTH);
    CHECK(s.n_full >= 1 && run.n_generated > 32 && run.n_prompt > 8);
    llm_close(c);
}

/* One seed: the second text is another one if the sampler goes on, and the same one if not. */
TEST(same_sampler) {
    written text[3];
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_ctx = 64});
    REQUIRE(c);
    llm_generate_params p = llm_generate_default();
    p.n_max = 20;
    p.seed = 7;
    generate(c, prompt, &p, &text[0]);
    p.same_sampler = true;
    generate(c, prompt, &p, &text[1]);
    p.same_sampler = false;
    generate(c, prompt, &p, &text[2]);
    CHECK(strcmp(text[0].s, text[1].s) != 0);
    CHECK_STR(text[2].s, text[0].s);
    llm_close(c);
}

TEST(checked) {
    ggl_error err;
    seen s = {.n = 0};
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_ctx = 64});
    REQUIRE(c);
    llm_generate_params p = greedy(3);
    p.grammar = "root ::= \"a\" b";
    p.grammar_name = "my.gbnf";
    CHECK_INT(llm_check_params(c, &p, &err), GGL_FORMAT);
    CHECK_HAS(err.msg, "my.gbnf:1:");
    p.grammar = NULL;
    p.json_schema = "{\"type\": \"object\", \"required\": [\"a long name\"], \"maxItem\": 3}";
    p.user = &s;
    p.note = on_note;
    CHECK_OK(llm_check_params(c, &p, &err), &err);
    CHECK_INT(s.n_notes, 1);
    generate(c, prompt, &p, &s.text); /* with what was kept of the schema: nothing is noted again */
    CHECK_INT(s.n_notes, 1);
    CHECK(run_of(c).incomplete);
    p.n_max = 60;
    generate(c, prompt, &p, &s.text);
    CHECK(!run_of(c).incomplete && s.text.s[0] == '{');
    CHECK_INT(s.n_notes, 1);
    llm_close(c);
}
