/* Calls of llm/llm.h on a context's sequence: scores, files, adapters, types of the KV cache, guesses. */
#include "library_test.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "ggl/internal/gguf.h"
#include "llm/internal/logprobs.h"

/* --- scores ----------------------------------------------------------------------------------- */

static size_t encode(const llm_context *c, const char *s, unsigned flags, int32_t *id) {
    ggl_error err;
    int32_t *found;
    size_t n = 0;
    if (CHECK_OK(llm_encode(c, s, strlen(s), flags, &found, &n, &err), &err) && CHECK(n <= 16))
        memcpy(id, found, n * sizeof *id);
    ggl_free(found);
    return n;
}

TEST(scores) {
    ggl_error err;
    int32_t id[64] = {0};
    double got[16], again[16];
    bool greedy_[16];
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_ctx = 64});
    REQUIRE(c);
    const size_t n_prompt = encode(c, "Once upon a time", LLM_ADD_SPECIAL, id);
    REQUIRE(n_prompt > 1 && n_prompt <= 8);
    const size_t n = encode(c, "Once upon a time, there was a cat", LLM_ADD_SPECIAL, id) - n_prompt;
    int32_t *next = id + n_prompt;
    const int32_t n_vocab = llm_context_facts(c)->n_vocab;
    REQUIRE(n > 2 && n <= 16);
    REQUIRE_OK(llm_score(c, id, n_prompt, next, n, got, greedy_, &err), &err);
    size_t n_seq;
    CHECK(llm_sequence(c, &n_seq) && n_seq == n_prompt + n - 1);
    /* the same from the logits of llm_eval */
    const float *logits;
    REQUIRE_OK(llm_truncate(c, 0, &err), &err);
    REQUIRE_OK(llm_eval(c, id, n_prompt, false, &logits, &err), &err);
    for (size_t i = 0; i < n; i++) {
        llm_logprob chosen = {.id = next[i]}, top;
        llm_logprobs(logits, n_vocab, &chosen, &top, 1);
        CHECK(chosen.logprob == got[i] && greedy_[i] == (top.id == next[i]));
        REQUIRE_OK(llm_eval(c, &next[i], 1, false, &logits, &err), &err);
    }
    CHECK(greedy_[0] && got[0] > log(0.5));
    /* other continuations, and the first one again; the arrays may be the sequence */
    REQUIRE_OK(llm_score(c, id, n_prompt, next + 1, n - 1, again, NULL, &err), &err);
    CHECK(again[0] < got[0]);
    REQUIRE_OK(llm_score(c, id, n_prompt, next, 1, again, NULL, &err), &err);
    CHECK(again[0] == got[0]);
    REQUIRE_OK(llm_score(c, id, n_prompt, next, n, NULL, greedy_, &err), &err);
    const int32_t *seq = llm_sequence(c, &n_seq);
    REQUIRE_OK(llm_score(c, seq, n_prompt, seq + n_prompt, n_seq - n_prompt, again, NULL, &err),
               &err);
    for (size_t i = 0; i + 1 < n; i++)
        CHECK(again[i] == got[i]);
    /* a generation continues from there */
    written t, fresh;
    llm_generate_params p = greedy(8);
    generate(c, "Once upon a time", &p, &t);
    REQUIRE_OK(llm_truncate(c, 0, &err), &err);
    generate(c, "Once upon a time", &p, &fresh);
    CHECK_STR(t.s, fresh.s);
    CHECK_INT(llm_score(c, id, 0, next, n, got, NULL, &err), GGL_USAGE);
    CHECK_INT(llm_score(c, id, n_prompt, next, 0, got, NULL, &err), GGL_USAGE);
    CHECK_INT(llm_score(c, id, 8, id, 58, got, NULL, &err), GGL_LIMIT);
    next[1] = n_vocab;
    CHECK_INT(llm_score(c, id, n_prompt, next, n, got, NULL, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "token 1");
    llm_close(c);
}

/* --- files ------------------------------------------------------------------------------------ */

static const char *path_of(const char *name, char buf[256]) {
    snprintf(buf, 256, "%s-%d", name, (int)getpid());
    return buf;
}

TEST(arrays_that_are_null) {
    static const int32_t id[] = {1, 2};
    ggl_error err;
    int32_t *ids;
    size_t n;
    char *text;
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_ctx = 64});
    REQUIRE(c);
    llm_job job = {.n = 3};
    llm_cancel(NULL);
    CHECK_INT(llm_eval(c, NULL, 3, false, NULL, &err), GGL_USAGE);
    CHECK_STR(err.msg, "id is NULL, but has 3 elements");
    CHECK_INT(llm_score(c, NULL, 2, id, 1, NULL, NULL, &err), GGL_USAGE);
    CHECK_STR(err.msg, "prompt is NULL, but has 2 elements");
    CHECK_INT(llm_score(c, id, 2, NULL, 1, NULL, NULL, &err), GGL_USAGE);
    CHECK_INT(llm_decode(c, NULL, 3, 0, &text, &n, &err), GGL_USAGE);
    CHECK(!text && n == 0);
    CHECK_INT(llm_encode(c, NULL, 3, 0, &ids, &n, &err), GGL_USAGE);
    CHECK_INT(generate_ids(c, NULL, 3, NULL, NULL, NULL, &err), GGL_USAGE);
    CHECK_STR(err.msg, "id is NULL, but has 3 elements");
    CHECK_INT(llm_generate_jobs(c, NULL, 3, &err), GGL_USAGE);
    CHECK_STR(err.msg, "job is NULL, but has 3 elements");
    CHECK_INT(llm_jobs_add(c, &job, &err), GGL_USAGE);
    CHECK_OK(llm_generate_jobs(c, NULL, 0, &err), &err);
    CHECK_OK(llm_eval(c, id, 2, false, NULL, &err), &err);
    llm_close(c);
}

TEST(saved_and_restored) {
    ggl_error err;
    char path[256], none[256];
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_ctx = 128});
    REQUIRE(c);
    path_of("sequence", path);
    CHECK_INT(llm_save(c, path, &err), GGL_USAGE); /* it is empty */
    CHECK_INT(llm_restore(c, path_of("none", none), &err), GGL_NOT_FOUND);
    written t, more;
    const llm_generate_params p = greedy(20);
    generate(c, "Once upon a time", &p, &t);
    size_t n, n_before;
    const int32_t *seq = llm_sequence(c, &n_before);
    int32_t *copy = calloc(n_before, sizeof *copy);
    REQUIRE(copy);
    memcpy(copy, seq, n_before * sizeof *copy);
    REQUIRE_OK(llm_save(c, path, &err), &err);
    llm_close(c);
    c = open_with("builtin:stories", (llm_open_params){.n_ctx = 128});
    REQUIRE(c);
    REQUIRE_OK(llm_restore(c, path, &err), &err);
    seq = llm_sequence(c, &n);
    REQUIRE(n == n_before && n > 10); /* also the last token, which had only been drawn */
    CHECK(memcmp(seq, copy, n * sizeof *copy) == 0);
    /* the prompt is not run again */
    more = (written){.n = 0};
    REQUIRE_OK(generate_ids(c, copy, n_before, &p, take, &more, &err), &err);
    llm_run_info run = {.size = sizeof run};
    REQUIRE_OK(llm_last_run(c, &run, &err), &err);
    CHECK(run.n_reused + 2 >= (int64_t)n_before && run.n_prompt <= 2);
    REQUIRE_OK(llm_truncate(c, 0, &err), &err);
    t = (written){.n = 0};
    REQUIRE_OK(generate_ids(c, copy, n_before, &p, take, &t, &err), &err);
    CHECK_STR(more.s, t.s);
    llm_close(c);
    c = open_with("builtin:stories", (llm_open_params){.cache_type_k = "q8_0"});
    REQUIRE(c);
    CHECK_INT(llm_restore(c, path, &err), GGL_FORMAT);
    CHECK_HAS(err.msg, path);
    static const char *const texts[] = {"",
                                        "Once upon a time, there was a little girl named Lily."};
    static const char *const words[] = {": the file is empty", ": this file is not a prompt cache"};
    for (int i = 0; i < 2; i++) {
        FILE *f = fopen(path, "w");
        REQUIRE(f && fputs(texts[i], f) >= 0 && fclose(f) == 0);
        CHECK_INT(llm_restore(c, path, &err), GGL_FORMAT);
        CHECK_HAS(err.msg, path);
        CHECK_HAS(err.msg, words[i]);
        CHECK(!strstr(err.msg, "left as it is"));
    }
    CHECK(llm_save(c, NULL, &err) == GGL_USAGE && llm_restore(c, NULL, &err) == GGL_USAGE);
    llm_close(c);
    free(copy);
    remove(path);
}

static bool count_drawn(void *user, int32_t id, const float *logits) {
    int *n = user;
    (void)id, (void)logits;
    ++*n;
    return true;
}

/* A cancel has ended the text, and nothing after it: what was drawn is saved, and the text goes on. */
TEST(saved_after_a_cancel) {
    ggl_error err;
    char path[256];
    const char *piece;
    size_t n;
    int n_drawn = 0;
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_ctx = 128});
    REQUIRE(c);
    const int32_t id[] = {1, 5, 6};
    llm_generate_params p = greedy(20);
    p.token = count_drawn;
    p.user = &n_drawn;
    REQUIRE_OK(llm_begin(c, id, 3, &p, &err), &err);
    while (n_drawn < 3)
        REQUIRE_OK(llm_next(c, &piece, &n, &err), &err);
    llm_cancel(c);
    CHECK_INT(llm_next(c, &piece, &n, &err), GGL_CANCELLED);
    CHECK_OK(llm_save(c, path_of("sequence", path), &err), &err);
    CHECK(llm_sequence(c, &n) && n >= 6);
    CHECK_OK(llm_restore(c, path, &err), &err);
    CHECK_OK(llm_eval(c, id, 3, false, NULL, &err), &err);
    llm_close(c);
    remove(path);
}

/* The last token of a text that has filled the context was drawn, but has no room to run. It is saved all the same, and is the last one
 * again, also in a larger context, which goes on from it. */
TEST(a_full_context_is_saved) {
    enum { N_CTX = 64 };
    ggl_error err;
    char path[256];
    written t;
    llm_generate_params p = greedy(0);
    p.ignore_end = true;
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_ctx = N_CTX});
    REQUIRE(c);
    path_of("full", path);
    generate(c, "Once upon a time", &p, &t);
    size_t n, n_again;
    const int32_t *seq = llm_sequence(c, &n);
    REQUIRE(n == N_CTX + 1);
    int32_t all[N_CTX + 1];
    memcpy(all, seq, sizeof all);
    REQUIRE_OK(llm_save(c, path, &err), &err);
    seq = llm_sequence(c, &n_again);
    CHECK(n_again == n && memcmp(seq, all, sizeof all) == 0);
    CHECK_INT(llm_eval(c, all, 1, false, NULL, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "the sequence has 65 tokens, and 1 more exceed the context of 64");
    llm_close(c);
    for (int64_t n_ctx = N_CTX; n_ctx <= 2 * N_CTX; n_ctx += N_CTX) {
        c = open_with("builtin:stories", (llm_open_params){.n_ctx = n_ctx});
        REQUIRE(c);
        REQUIRE_OK(llm_restore(c, path, &err), &err);
        seq = llm_sequence(c, &n_again);
        CHECK(n_again == n && memcmp(seq, all, sizeof all) == 0);
        REQUIRE_OK(llm_save(c, path, &err), &err); /* the larger one runs all of it now */
        if (n_ctx > N_CTX) {
            const float *logits, *fresh;
            REQUIRE_OK(llm_eval(c, all, 1, false, &logits, &err), &err);
            const size_t size = (size_t)llm_context_facts(c)->n_vocab * sizeof *logits;
            float *kept = malloc(size);
            REQUIRE(kept);
            memcpy(kept, logits, size);
            REQUIRE_OK(llm_truncate(c, 0, &err), &err);
            REQUIRE_OK(llm_eval(c, all, n, false, NULL, &err), &err);
            REQUIRE_OK(llm_eval(c, all, 1, false, &fresh, &err), &err);
            CHECK(memcmp(kept, fresh, size) == 0);
            free(kept);
        }
        llm_close(c);
    }
    c = open_with("builtin:stories", (llm_open_params){.n_ctx = N_CTX});
    REQUIRE(c);
    CHECK_INT(llm_restore(c, path, &err), GGL_LIMIT); /* 65 tokens that have run */
    llm_close(c);
    remove(path);
}

/* --- how a context is opened ------------------------------------------------------------------ */

/* Writes an adapter that changes the first layer's queries. */
static bool write_adapter(const char *path) {
    enum { SIZE = 128, RANK = 2 };
    static float a[RANK][SIZE], b[SIZE][RANK];
    const int64_t ne_a[] = {SIZE, RANK}, ne_b[] = {RANK, SIZE};
    ggl_error err;
    for (int i = 0; i < SIZE; i++)
        for (int k = 0; k < RANK; k++) {
            a[k][i] = (float)sin(i * 3 + k) / 2;
            b[i][k] = (float)cos(i + 5 * k) / 2;
        }
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    if (!CHECK(w))
        return false;
    ggl_gguf_put_string(w, "general.type", "adapter", 7);
    ggl_gguf_put_string(w, "adapter.type", "lora", 4);
    ggl_gguf_put_string(w, "general.architecture", "llama", 5);
    ggl_gguf_put_tensor(w, "blk.0.attn_q.weight.lora_a", GGL_F32, 2, ne_a, a);
    ggl_gguf_put_tensor(w, "blk.0.attn_q.weight.lora_b", GGL_F32, 2, ne_b, b);
    const ggl_status st = ggl_gguf_writer_write(w, path, &err);
    ggl_gguf_writer_free(w);
    return CHECK_OK(st, &err);
}

static float first_logit(llm_context *c) {
    ggl_error err;
    const float *logits = NULL;
    CHECK_OK(llm_truncate(c, 0, &err), &err);
    CHECK_OK(llm_eval(c, (const int32_t[]){1, 300, 301}, 3, false, &logits, &err), &err);
    return logits ? logits[400] : 0;
}

TEST(adapters) {
    ggl_error err;
    char path[256];
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_ctx = 64});
    REQUIRE(c && write_adapter(path_of("adapter", path)));
    const float plain = first_logit(c);
    CHECK_INT(llm_set_adapter_scale(c, 0, 1, &err), GGL_USAGE);
    llm_close(c);
    llm_lora lora = {path, 1};
    char split[] =
        "cpu=5"; /* is the caller's again after the opening, as is all of its parameters */
    c = open_with("builtin:stories",
                  (llm_open_params){.adapter = &lora, .n_adapters = 1, .split = split});
    REQUIRE(c);
    strcpy(split, "auto");
    const float full = first_logit(c);
    CHECK(full != plain);
    REQUIRE_OK(llm_set_adapter_scale(c, 0, 0, &err), &err);
    size_t n;
    (void)llm_sequence(c, &n);
    CHECK_INT(n, 0);
    CHECK(first_logit(c) == plain);
    REQUIRE_OK(llm_set_adapter_scale(c, 0, 0.5, &err), &err);
    const float half = first_logit(c);
    CHECK(half != plain && half != full);
    CHECK_INT(llm_set_adapter_scale(c, 0, NAN, &err), GGL_USAGE);
    CHECK_INT(llm_set_adapter_scale(c, 0, 1e39, &err), GGL_USAGE); /* more than a float holds */
    (void)llm_sequence(c, &n);
    CHECK(n > 0);
    REQUIRE_OK(llm_set_adapter_scale(c, 0, 0.5, &err), &err); /* the scale that it has */
    (void)llm_sequence(c, &n);
    CHECK_INT(n, 0);
    CHECK(first_logit(c) == half);
    written t;
    llm_generate_params p = greedy(5);
    generate(c, "Once", &p, &t);
    CHECK(t.n > 0);
    /* numbers that are not finite have no scores */
    REQUIRE_OK(llm_set_adapter_scale(c, 0, 3e38, &err), &err);
    double logprob;
    const int32_t id[] = {1, 5};
    CHECK_INT(llm_score(c, id, 1, id + 1, 1, &logprob, NULL, &err), GGL_FORMAT);
    CHECK_HAS(err.msg, "not finite");
    llm_close(c);
    lora.path = "/none/adapter.gguf";
    const llm_open_params op = {.size = sizeof op, .adapter = &lora, .n_adapters = 1};
    CHECK_INT(llm_open(&c, "builtin:stories", &op, &err), GGL_IO);
    CHECK_HAS(err.msg, "/none/adapter.gguf");
    llm_context *none;
    CHECK_INT(llm_open(&none, path, NULL, &err), GGL_FORMAT);
    CHECK_HAS(err.msg, "not a model; it is applied to the model that it was made for");
    remove(path);
}

TEST(types_of_the_cache) {
    ggl_error err;
    llm_context *c;
    written f16, q8, p8;
    const llm_generate_params p = greedy(30);
    c = open_with("builtin:stories", (llm_open_params){.n_ctx = 64});
    REQUIRE(c);
    generate(c, "Once upon a time", &p, &f16);
    const float exact = first_logit(c);
    llm_close(c);
    c = open_with("builtin:stories",
                  (llm_open_params){.cache_type_k = "q4_0", .cache_type_v = "q8_0"});
    REQUIRE(c);
    generate(c, "Once upon a time", &p, &q8);
    CHECK(q8.n > 20 && first_logit(c) != exact);
    llm_close(c);
    c = open_with("builtin:stories", (llm_open_params){.cache_type_k = "F16"});
    REQUIRE(c);
    generate(c, "Once upon a time", &p, &p8);
    CHECK_STR(p8.s, f16.s);
    llm_close(c);
    const llm_open_params wrong = {.size = sizeof wrong, .cache_type_v = "q6_k"};
    CHECK_INT(llm_open(&c, "builtin:stories", &wrong, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "cache_type_v is 'q6_k'");
}

/* Opens a context that guesses, generates, and checks the counts. The draft is the model itself, so its guesses are right. On a
 * busy machine guesses may seem to cost more time than they save, and there are none; so it has several tries. */
static llm_context *open_guessing(const llm_open_params *how, const llm_generate_params *p,
                                  const char *want) {
    ggl_error err;
    written got;
    for (int tries = 8; tries > 0; tries--) {
        llm_context *c = open_with("builtin:stories", *how);
        if (!c)
            return NULL;
        generate(c, "Once upon a time", p, &got);
        CHECK_STR(got.s, want);
        llm_run_info run = {.size = sizeof run};
        CHECK_OK(llm_last_run(c, &run, &err), &err);
        CHECK(run.n_right <= run.n_guessed && run.n_right <= run.n_generated);
        if (!how->draft || run.n_right > 0)
            return c;
        llm_close(c);
    }
    CHECK_MSG(!how->draft, "no guess of the draft was right in 8 tries");
    return NULL;
}

/* Guesses change no text. */
TEST(guesses) {
    ggl_error err;
    written want, got;
    llm_generate_params p = greedy(60);
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_ctx = 128});
    REQUIRE(c);
    generate(c, "Once upon a time", &p, &want);
    llm_close(c);
    const llm_open_params how[] = {{.lookup = true},
                                   {.draft = "builtin:stories", .n_guess = 4},
                                   {.draft = "builtin:stories", .n_guess = 40}};
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        c = open_guessing(&how[i], &p, want.s);
        if (!c)
            continue;
        const float logit = first_logit(c);
        generate(c, "Once upon a time", &p, &got);
        CHECK_STR(got.s, want.s);
        CHECK(first_logit(c) == logit);
        llm_close(c);
    }
    llm_open_params wrong = {.size = sizeof wrong, .lookup = true, .draft = "builtin:stories"};
    CHECK_INT(llm_open(&c, "builtin:stories", &wrong, &err), GGL_USAGE);
    wrong = (llm_open_params){.size = sizeof wrong, .lookup = true, .n_guess = 1000};
    CHECK_INT(llm_open(&c, "builtin:stories", &wrong, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "n_guess");
    wrong = (llm_open_params){.size = sizeof wrong, .draft = "/none/d.gguf"};
    CHECK_INT(llm_open(&c, "builtin:stories", &wrong, &err), GGL_IO);
    CHECK_HAS(err.msg, "draft: /none/d.gguf");
}

/* A continuation has the tokens that it has in the whole text, also where it begins within a token. */
TEST(tokens_of_a_continuation) {
    ggl_error err;
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_ctx = 0});
    REQUIRE(c);
    const char *const whole = "Once upon a time there was a little garden";
    const size_t n = strlen(whole);
    int32_t *all, *id;
    size_t n_all, n_id, n_begin, n_within = 0;
    REQUIRE_OK(llm_encode(c, whole, n, LLM_ADD_SPECIAL, &all, &n_all, &err), &err);
    for (size_t cut = 1; cut < n; cut++) {
        int32_t *begin;
        size_t n_prompt;
        CHECK_OK(llm_encode_after(c, whole, cut, whole + cut, n - cut, LLM_ADD_SPECIAL, &id,
                                  &n_begin, &n_id, &err),
                 &err);
        CHECK(n_id == n_all && memcmp(id, all, n_all * sizeof *id) == 0);
        CHECK_OK(llm_encode(c, whole, cut, LLM_ADD_SPECIAL, &begin, &n_prompt, &err), &err);
        CHECK(n_begin > 0 && n_begin < n_id && n_begin <= n_prompt &&
              memcmp(id, begin, n_begin * sizeof *id) == 0);
        n_within += n_begin < n_prompt;
        ggl_free(begin);
        ggl_free(id);
    }
    CHECK_MSG(n_within > 5 && n_within < n - 5, "%zu cuts are within a token", n_within);
    CHECK_INT(llm_encode_after(c, whole, n, "", 0, 0, &id, &n_begin, &n_id, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "42 bytes");
    CHECK(n_begin == 0 && n_id == 0);
    CHECK_INT(llm_encode_after(c, "", 0, whole, n, 0, &id, &n_begin, &n_id, &err), GGL_USAGE);
    CHECK(!id);
    CHECK_INT(llm_encode_after(c, NULL, 3, whole, n, 0, &id, &n_begin, &n_id, &err), GGL_USAGE);
    CHECK_INT(llm_encode_after(c, whole, n, NULL, 3, 0, &id, &n_begin, &n_id, &err), GGL_USAGE);
    CHECK_INT(llm_encode_after(c, whole, SIZE_MAX - 1, "a", 1, 0, &id, &n_begin, &n_id, &err),
              GGL_NOMEM);
    ggl_free(all);
    llm_close(c);
}
