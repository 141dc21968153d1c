/* llm_perplexity, llm_verify, llm_describe and llm_plan. */
#include "library_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

static const char text[] =
    "Once upon a time there was a little dog. He lived in a small house with a big garden. One day "
    "he saw a cat on "
    "the wall. The cat was sad, because she had lost her ball. \"I will help you,\" said the dog. "
    "They looked under the "
    "tree and behind the house. Then the dog saw the ball in the water. He jumped in and brought "
    "it back. The cat was "
    "very happy. They played together all day, and they were good friends.\n";

enum { WINDOW = 32 };

/* --- perplexity ------------------------------------------------------------------------------- */

/* The mean of -log p over the second half of each window, by llm_score. The first token of a window is BOS. */
static double nll_by_score(llm_context *c, int64_t *n_scored) {
    ggl_error err = {0};
    int32_t *id = NULL, window[WINDOW];
    size_t n = 0;
    double sum = 0, logprob[WINDOW];
    *n_scored = 0;
    if (!CHECK_OK(llm_encode(c, text, sizeof text - 2, LLM_ADD_SPECIAL, &id, &n, &err), &err))
        return 0;
    for (size_t k = 0; k + WINDOW <= n; k += WINDOW) {
        memcpy(window, id + k, sizeof window);
        window[0] = llm_token_bos(c);
        const size_t half = WINDOW / 2 + 1;
        CHECK_OK(llm_score(c, window, half, window + half, WINDOW - half, logprob, NULL, &err),
                 &err);
        for (size_t i = 0; i < WINDOW - half; i++, ++*n_scored)
            sum -= logprob[i];
    }
    ggl_free(id);
    return sum / (double)*n_scored;
}

TEST(perplexity_is_that_of_scores) {
    ggl_error err = {0};
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_ctx = 64});
    int64_t n_scored;
    const llm_perplexity_params p = {.size = sizeof p, .n_window = WINDOW};
    llm_perplexity_result r = {.size = sizeof r};
    if (!c)
        return;
    const double want = nll_by_score(c, &n_scored);
    CHECK_OK(llm_perplexity(c, text, strlen(text), &p, &r, &err), &err);
    CHECK_INT(r.n_scored, n_scored);
    CHECK_INT(r.n_window, WINDOW);
    CHECK_INT(r.n_chunks * (WINDOW - 1 - WINDOW / 2), n_scored);
    CHECK(n_scored > 0 && fabs(r.nll - want) < 1e-9);
    CHECK(fabs(log(r.ppl) - want) < 1e-9 && r.ppl_error > 0);
    size_t n;
    (void)llm_sequence(c, &n);
    CHECK_INT(n, 0);
    llm_generate_params gp = llm_generate_default();
    gp.n_max = 3;
    CHECK_OK(llm_generate(c, "Once", &gp, NULL, NULL, &err), &err); /* it can be used afterwards */
    llm_close(c);
}

static bool stop_soon(void *user, size_t done, size_t total) {
    CHECK(done <= total);
    return ++*(int *)user < 3;
}

TEST(perplexity_compares_with_a_file) {
    ggl_error err = {0};
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_ctx = 64});
    const char *path = "library_measure.kld";
    llm_perplexity_params p = {.size = sizeof p, .n_window = WINDOW, .n_chunks = 2, .save = path};
    llm_perplexity_result saved = {.size = sizeof saved}, same = {.size = sizeof same};
    if (!c)
        return;
    CHECK_OK(llm_perplexity(c, text, strlen(text), &p, &saved, &err), &err);
    p = (llm_perplexity_params){.size = sizeof p, .base = path};
    CHECK_OK(llm_perplexity(c, NULL, 0, &p, &same, &err), &err);
    CHECK_INT(same.n_scored, saved.n_scored);
    CHECK(same.nll == saved.nll && same.same_top == 1 && fabs(same.kld) < 1e-4);
    p.n_window = 16;
    CHECK_INT(llm_perplexity(c, NULL, 0, &p, &same, &err), GGL_USAGE);
    CHECK_INT(llm_perplexity(c, text, strlen(text), &p, &same, &err), GGL_USAGE);
    remove(path);
    CHECK_INT(llm_perplexity(c, NULL, 0, &p, &same, &err), GGL_IO);
    llm_close(c);
}

TEST(perplexity_refuses) {
    ggl_error err = {0};
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_ctx = 64});
    llm_perplexity_result r = {.size = sizeof r};
    if (!c)
        return;
    const struct {
        const char *text;
        int64_t n_window, n_chunks;
        ggl_status status;
        const char *message;
    } rows[] = {
        {NULL, 0, 0, GGL_USAGE, "llm_perplexity needs a text, or base"},
        {text, 3, 0, GGL_USAGE, "n_window must be 0, or 4 or more, but is 3"},
        {text, WINDOW, -1, GGL_USAGE, "n_chunks must be 0 or more, but is -1"},
        {"Once upon a time", WINDOW, 0, GGL_LIMIT, "with windows of 32 at least 64 are needed"},
        {text, 100, 0, GGL_LIMIT, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const llm_perplexity_params p = {
            .size = sizeof p, .n_window = rows[i].n_window, .n_chunks = rows[i].n_chunks};
        const size_t n = rows[i].text ? strlen(rows[i].text) : 0;
        CHECK_INT(llm_perplexity(c, rows[i].text, n, &p, &r, &err), rows[i].status);
        if (!CHECK(strstr(err.msg, rows[i].message)))
            printf("%s\n", err.msg);
    }
    int calls = 0;
    const llm_perplexity_params p = {
        .size = sizeof p, .n_window = 8, .progress = stop_soon, .user = &calls};
    CHECK_INT(llm_perplexity(c, text, strlen(text), &p, &r, &err), GGL_CANCELLED);
    CHECK_INT(llm_perplexity(c, text, strlen(text), NULL, &r, &err), GGL_LIMIT); /* windows of 64 */
    calls = 0;
    r.size = 3;
    CHECK_INT(llm_perplexity(c, text, strlen(text), &p, &r, &err), GGL_USAGE);
    CHECK_INT(llm_perplexity(c, text, strlen(text), &p, NULL, &err), GGL_USAGE);
    CHECK_INT(calls, 0); /* before anything was computed */
    llm_close(c);
}

/* --- verification ----------------------------------------------------------------------------- */

static void count_node(void *user, const llm_verify_node *node) {
    CHECK(*node->text && node->departure >= 0 && node->departure <= 1);
    ++*(int *)user;
}

TEST(verify_agrees) {
    ggl_error err = {0};
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_ctx = 64});
    int n = 0, calls = 0;
    const int32_t id[] = {1, 2, 3}, wrong[] = {1, 1 << 30};
    llm_verify_result r = {.size = sizeof r};
    llm_verify_params p = {.size = sizeof p, .id = id, .n = 3, .each = count_node, .user = &n};
    if (!c)
        return;
    CHECK_OK(llm_verify(c, &p, &r, &err), &err);
    CHECK(r.n_nodes > 20 && r.n_departed == 0 && !r.whole_departs && r.n_nan == 0 && n == 0);
    CHECK(r.worst > 0 && r.worst <= 1);
    p.all = true;
    CHECK_OK(llm_verify(c, &p, &r, &err), &err);
    CHECK_INT(n, r.n_nodes);
    CHECK_OK(llm_verify(c, NULL, &r, &err), &err);
    p.id = wrong;
    p.n = 2;
    CHECK_INT(llm_verify(c, &p, &r, &err), GGL_USAGE);
    CHECK(strstr(err.msg, "is not in the vocabulary of"));
    p = (llm_verify_params){.size = sizeof p, .device = "cup"};
    CHECK_INT(llm_verify(c, &p, &r, &err), GGL_NOT_FOUND);
    p = (llm_verify_params){.size = sizeof p, .progress = stop_soon, .user = &calls};
    CHECK_INT(llm_verify(c, &p, &r, &err), GGL_CANCELLED);
    calls = 0;
    r.size = 3;
    CHECK_INT(llm_verify(c, &p, &r, &err), GGL_USAGE);
    CHECK_INT(llm_verify(c, &p, NULL, &err), GGL_USAGE);
    CHECK_INT(calls, 0);
    llm_close(c);
}

/* --- descriptions ----------------------------------------------------------------------------- */

TEST(describe) {
    ggl_error err = {0};
    char *json = NULL;
    size_t n = 0;
    static const char *const want[] = {"\"architecture\": \"", "\"has_chat\": ", "\"n_layer\": 5",
                                       "\"n_ctx\": ",          "\"types\": {",   "\"tensors\": "};
    if (!CHECK_OK(llm_describe("builtin:stories", NULL, &json, &n, &err), &err))
        return;
    CHECK_INT(strlen(json), n);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        if (!CHECK(strstr(json, want[i])))
            printf("%s\n", json);
    ggl_free(json);
    CHECK_INT(llm_describe("none.gguf", NULL, &json, &n, &err), GGL_IO);
    CHECK(!json && n == 0);
}

TEST(plan) {
    ggl_error err = {0};
    char *json = NULL;
    size_t n = 0;
    llm_open_params p = {.size = sizeof p, .n_ctx = 64, .split = "cpu=2,cpu1=3"};
    if (!CHECK_OK(llm_plan("builtin:stories", &p, &json, &n, &err), &err))
        return;
    CHECK(strstr(json, "{\"n_ctx\": 64, \"n_ctx_fits\": 64, \"placement\": \"cpu=2,cpu1=3\", "
                       "\"devices\": [{\"name\": \"cpu\""));
    CHECK(strstr(json, "}, {\"name\": \"cpu1\"") && strstr(json, "\"cache\": "));
    ggl_free(json);
    p.split = "cpu=2";
    CHECK_INT(llm_plan("builtin:stories", &p, &json, &n, &err), GGL_USAGE);
    CHECK(!json);
}
