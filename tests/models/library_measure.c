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
        window[0] = llm_context_facts(c)->bos;
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

/* As if another thread did it. */
static bool cancel_context(void *user, size_t done, size_t total) {
    (void)done, (void)total;
    llm_cancel(user);
    return true;
}

static bool stop_soon(void *user, size_t done, size_t total) {
    CHECK(done <= total);
    return ++*(int *)user < 3;
}

/* The windows of a measurement, as they are told. */
typedef struct windows {
    int64_t n, stop; /* calls; stop after so many windows */
    double own, ppl; /* of the last */
} windows;

static bool on_window(void *user, const llm_perplexity_window *w) {
    windows *s = user;
    CHECK_INT(w->n_done, s->n);
    CHECK_INT(w->so_far->n_chunks, s->n);
    s->n++;
    s->own += log(w->n_done > 0 ? w->ppl : 1);
    s->ppl = w->so_far->ppl;
    return w->n_done != s->stop;
}

TEST(perplexity_tells_its_windows) {
    ggl_error err = {0};
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_ctx = 64});
    windows s = {.stop = -1};
    int32_t *id = NULL;
    llm_perplexity_params p = {.size = sizeof p, .n_window = WINDOW, .each = on_window, .user = &s};
    llm_perplexity_result r = {.size = sizeof r}, of_ids = {.size = sizeof of_ids};
    if (!c)
        return;
    CHECK_OK(llm_perplexity(c, text, strlen(text), &p, &r, &err), &err);
    CHECK_INT(s.n, r.n_chunks + 1);
    CHECK(s.ppl == r.ppl && fabs(s.own / (double)r.n_chunks - r.nll) < 1e-9);
    const double whole = r.ppl;
    s = (windows){.stop = 1};
    CHECK_INT(llm_perplexity(c, text, strlen(text), &p, &r, &err), GGL_CANCELLED);
    CHECK_INT(s.n, 2);
    CHECK_OK(llm_encode(c, text, strlen(text) - 1, LLM_ADD_SPECIAL, &id, &p.n_id, &err), &err);
    p.id = id;
    p.each = NULL;
    CHECK_OK(llm_perplexity(c, NULL, 0, &p, &of_ids, &err), &err);
    CHECK(of_ids.ppl == whole && whole > 1);
    CHECK_INT(llm_perplexity(c, text, strlen(text), &p, &r, &err), GGL_USAGE);
    id[3] = 1 << 30;
    CHECK_INT(llm_perplexity(c, NULL, 0, &p, &r, &err), GGL_USAGE);
    ggl_free(id);
    llm_close(c);
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
    CHECK(fabs(same.ratio - 1) < 1e-3 && fabs(same.ppl_base - same.ppl) < 0.01 * same.ppl);
    CHECK(same.correlation > 0.99 && saved.ppl_base == 0);
    for (int k = 1; k < LLM_N_QUANTILES; k++)
        CHECK(same.kld_quantile[k - 1] <= same.kld_quantile[k] &&
              same.p_diff_quantile[k - 1] <= same.p_diff_quantile[k]);
    CHECK(same.kld >= same.kld_quantile[0] && same.kld <= same.kld_quantile[LLM_N_QUANTILES - 1]);
    llm_base_info base = {.size = sizeof base};
    CHECK_OK(llm_perplexity_base(path, &base, &err), &err);
    CHECK(base.n_window == WINDOW && base.n_chunks == 2);
    CHECK_INT(base.n_vocab, llm_context_facts(c)->n_vocab);
    p.n_window = 16;
    CHECK_INT(llm_perplexity(c, NULL, 0, &p, &same, &err), GGL_USAGE);
    CHECK_INT(llm_perplexity(c, text, strlen(text), &p, &same, &err), GGL_USAGE);
    remove(path);
    CHECK_INT(llm_perplexity(c, NULL, 0, &p, &same, &err), GGL_IO);
    CHECK_INT(llm_perplexity_base(path, &base, &err), GGL_IO);
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
        {text, 3, 0, GGL_USAGE, "n_window must be 0, or 4 to 1073741824, but is 3"},
        {text, INT64_MAX, 0, GGL_USAGE, "n_window must be 0, or 4 to 1073741824"},
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

/* --- importance ------------------------------------------------------------------------------- */

/* Saves a matrix after its first window, and ends after `stop`. */
typedef struct collecting {
    llm_imatrix *m;
    int64_t n, stop;
} collecting;

static bool on_imatrix_window(void *user, const llm_imatrix_result *r) {
    collecting *k = user;
    ggl_error err = {0};
    CHECK_INT(r->n_chunks, k->n);
    k->n++;
    if (r->n_chunks == 1)
        CHECK_OK(llm_imatrix_save(k->m, "library_first.gguf", &err), &err);
    return r->n_chunks != k->stop;
}

/* Files have entries in another order. */
static bool has_entry(const llm_imatrix *m, const llm_imatrix_entry *x) {
    llm_imatrix_entry y;
    for (size_t i = 0; llm_imatrix_get(m, i, &y); i++)
        if (strcmp(x->name, y.name) == 0)
            return x->n_col == y.n_col && x->count[0] == y.count[0] &&
                   memcmp(x->sum2, y.sum2, (size_t)(y.n_col * y.n_mat) * sizeof *y.sum2) == 0;
    return false;
}

static bool same_sums(const llm_imatrix *a, const llm_imatrix *b) {
    llm_imatrix_entry x;
    size_t i = 0;
    while (llm_imatrix_get(a, i, &x)) {
        if (!has_entry(b, &x))
            return false;
        i++;
    }
    return i > 0 && !llm_imatrix_get(b, i, &x);
}

TEST(imatrix_of_a_text) {
    ggl_error err = {0};
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_ctx = 64});
    llm_imatrix *m = NULL, *first = NULL, *one = NULL;
    llm_imatrix_result r = {.size = sizeof r};
    llm_perplexity_result ppl = {.size = sizeof ppl};
    const llm_perplexity_params pp = {.size = sizeof pp, .n_window = WINDOW};
    if (!c)
        return;
    CHECK_OK(llm_imatrix_begin(&m, &err), &err);
    CHECK_INT(llm_imatrix_save(m, "library.gguf", &err), GGL_USAGE); /* it is empty */
    CHECK_OK(llm_eval(c, (const int32_t[]){1, 2, 3}, 3, false, NULL, &err), &err);
    collecting k = {.m = m, .stop = -1};
    llm_imatrix_params p = {.size = sizeof p,
                            .n_window = WINDOW,
                            .name = "a text",
                            .each = on_imatrix_window,
                            .user = &k};
    CHECK_OK(llm_imatrix_run(m, c, text, strlen(text), &p, &r, &err), &err);
    CHECK(r.n_chunks > 1 && r.n_chunks == r.n_wanted && k.n == r.n_chunks + 1);
    CHECK_INT(llm_imatrix_windows(m), r.n_chunks);
    size_t n;
    (void)llm_sequence(c, &n);
    CHECK_INT(n, 3); /* stays */
    CHECK_OK(llm_perplexity(c, text, strlen(text), &pp, &ppl, &err), &err);
    CHECK(r.ppl == ppl.ppl && r.n_scored == ppl.n_scored);
    /* what was saved on the way is what ends there */
    CHECK_OK(llm_imatrix_begin(&one, &err), &err);
    k = (collecting){.m = one, .stop = 1};
    CHECK_OK(llm_imatrix_run(one, c, text, strlen(text), &p, &r, &err), &err);
    CHECK(r.n_chunks == 1 && r.n_wanted > 1);
    CHECK_OK(llm_imatrix_begin(&first, &err), &err);
    llm_imatrix_file file = {.size = sizeof file};
    CHECK_OK(llm_imatrix_read(first, "library_first.gguf", 0, &file, &err), &err);
    CHECK(file.tells_window && file.n_weights > 10 && file.n_directed == file.n_weights);
    CHECK(same_sums(one, first) && !same_sums(one, m));
    /* the others make it whole */
    p = (llm_imatrix_params){.size = sizeof p, .n_window = WINDOW, .first_chunk = 1};
    CHECK_OK(llm_imatrix_run(first, c, text, strlen(text), &p, NULL, &err), &err);
    CHECK_INT(llm_imatrix_windows(first), llm_imatrix_windows(m));
    remove("library_first.gguf");
    llm_imatrix_end(m);
    llm_imatrix_end(one);
    llm_imatrix_end(first);
    llm_close(c);
}

TEST(imatrix_of_its_own_text) {
    ggl_error err = {0};
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_ctx = 64});
    llm_imatrix *own = NULL, *given = NULL;
    int32_t *id = NULL;
    if (!c)
        return;
    CHECK_OK(llm_imatrix_begin(&own, &err), &err);
    CHECK_OK(llm_imatrix_begin(&given, &err), &err);
    llm_imatrix_params p = {
        .size = sizeof p, .n_window = WINDOW, .n_chunks = 1, .n_directions = -1};
    CHECK_OK(llm_imatrix_run(own, c, NULL, 0, &p, NULL, &err), &err);
    CHECK_OK(llm_own_text(c, WINDOW, WINDOW, NULL, NULL, &id, &err), &err);
    p.id = id;
    p.n_id = WINDOW;
    CHECK_OK(llm_imatrix_run(given, c, NULL, 0, &p, NULL, &err), &err);
    CHECK(same_sums(own, given));
    llm_imatrix_entry e;
    CHECK(llm_imatrix_get(own, 0, &e) && e.n_directions == 0);
    ggl_free(id);
    llm_imatrix_end(own);
    llm_imatrix_end(given);
    llm_close(c);
}

TEST(imatrix_refuses) {
    ggl_error err = {0};
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_ctx = 64});
    llm_context *other = open_with(DATA "/stories-gpt2.gguf", (llm_open_params){.n_ctx = 64});
    llm_imatrix *m = NULL;
    int calls = 0;
    if (!c || !other)
        return;
    CHECK_OK(llm_imatrix_begin(&m, &err), &err);
    const struct {
        llm_imatrix_params p;
        ggl_status status;
        const char *message;
    } rows[] = {
        {{.n_window = 3}, GGL_USAGE, "n_window must be 0, or 4 to 1073741824, but is 3"},
        {{.n_window = INT64_MAX}, GGL_USAGE, "n_window must be 0, or 4 to 1073741824"},
        {{.n_window = WINDOW, .first_chunk = -1},
         GGL_USAGE,
         "first_chunk and n_chunks must be 0 to"},
        {{.n_window = WINDOW, .n_directions = 6},
         GGL_USAGE,
         "n_directions must be -1, or a multiple"},
        {{.n_window = WINDOW, .first_chunk = 1000}, GGL_LIMIT, "first_chunk is 1000, but the text"},
        {{.n_window = 1000}, GGL_LIMIT, "with windows of 1000 at least 2000 are needed"},
        {{.n_window = 8, .progress = stop_soon, .user = &calls}, GGL_CANCELLED, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        llm_imatrix_params p = rows[i].p;
        p.size = sizeof p;
        CHECK_INT(llm_imatrix_run(m, c, text, strlen(text), &p, NULL, &err), rows[i].status);
        if (!CHECK(strstr(err.msg, rows[i].message)))
            printf("%s\n", err.msg);
        CHECK_INT(llm_imatrix_windows(m), 0); /* as before */
    }
    const llm_imatrix_params none = {.size = sizeof none, .n_id = 3};
    CHECK_INT(llm_imatrix_run(m, c, NULL, 0, &none, NULL, &err), GGL_USAGE); /* not its own text */
    CHECK_INT(llm_imatrix_read(m, "none.gguf", 0, NULL, &err), GGL_IO);
    const llm_imatrix_params p = {.size = sizeof p, .n_window = WINDOW};
    CHECK_OK(llm_imatrix_run(m, c, text, strlen(text), &p, NULL, &err), &err);
    CHECK_OK(llm_imatrix_check(m, c, NULL, &err), &err);
    CHECK_INT(llm_imatrix_check(m, other, "the files", &err), GGL_USAGE);
    CHECK(strstr(err.msg, "the files are not of this model"));
    CHECK_INT(llm_own_text(c, WINDOW, 0, NULL, NULL, &(int32_t *){NULL}, &err), GGL_USAGE);
    llm_imatrix_end(m);
    llm_close(c);
    llm_close(other);
}

/* --- verification ----------------------------------------------------------------------------- */

static void count_node(void *user, const llm_verify_node *node) {
    CHECK(*node->text && *node->shape && node->departure >= 0 && node->departure <= 1);
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
    CHECK(strncmp(r.device, "cpu: ", 5) == 0 && r.largest > 0 && r.first_nan[0] == 0);
    CHECK_INT(r.n_logits, 3 * llm_context_facts(c)->n_vocab);
    CHECK_OK(llm_verify(c, NULL, &r, &err), &err);
    CHECK_INT(r.n_logits, 8 * llm_context_facts(c)->n_vocab);
    p = (llm_verify_params){.size = sizeof p, .n = 2, .mask = "all"};
    CHECK_OK(llm_verify(c, &p, &r, &err), &err);
    CHECK_INT(r.n_logits, 2 * llm_context_facts(c)->n_vocab);
    p.id = wrong;
    p.n = 2;
    CHECK_INT(llm_verify(c, &p, &r, &err), GGL_USAGE);
    CHECK(strstr(err.msg, "is not in the vocabulary of"));
    p = (llm_verify_params){.size = sizeof p, .device = "cup", .device_name = "--backend"};
    CHECK_INT(llm_verify(c, &p, &r, &err), GGL_NOT_FOUND);
    CHECK(strncmp(err.msg, "--backend: ", 11) == 0);
    p = (llm_verify_params){.size = sizeof p, .progress = stop_soon, .user = &calls};
    CHECK_INT(llm_verify(c, &p, &r, &err), GGL_CANCELLED);
    p = (llm_verify_params){.size = sizeof p, .progress = cancel_context, .user = c};
    CHECK_INT(llm_verify(c, &p, &r, &err), GGL_CANCELLED);
    int32_t *own;
    CHECK_INT(llm_own_text(c, WINDOW, 50 * WINDOW, cancel_context, c, &own, &err), GGL_CANCELLED);
    CHECK_INT(llm_own_text(c, WINDOW, 50 * WINDOW, cancel_context, c, &own, NULL), GGL_CANCELLED);
    p = (llm_verify_params){.size = sizeof p, .n = 2, .n_threads = 1};
    CHECK_OK(llm_verify(c, &p, &r, &err), &err); /* the cancel before it is forgotten */
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
