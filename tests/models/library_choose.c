/* llm_choose: labels that are compared as continuations of a prompt, beside llm_score and llm_eval of each alone. */
#include "library_test.h"

#include <math.h>
#include <stdlib.h>

#include "llm/internal/logprobs.h"
#include "seed.h"

static const char prompt[] = "Once upon a time there was a little";

typedef struct labels {
    const char *text[80];
    size_t n_text[80], n;
    llm_choice choice[80];
} labels;

static void add(labels *l, const char *text) {
    l->text[l->n] = text;
    l->n_text[l->n++] = strlen(text);
}

static ggl_status choose(llm_context *c, labels *l, llm_choose_params p, ggl_error *err) {
    p.size = sizeof p;
    return llm_choose(c, prompt, strlen(prompt), l->text, l->n_text, l->n, &p, l->choice, err);
}

static llm_context *open_parallel(int32_t n, int32_t n_threads) {
    ggl_error err;
    llm_context *c;
    const llm_open_params p = {
        .size = sizeof p, .n_ctx = 256, .n_parallel = n, .n_threads = n_threads};
    return CHECK_OK(llm_open(&c, "builtin:stories", &p, &err), &err) ? c : NULL;
}

/* The log-probability of a label by llm_score, and with `end` that of the end after it by llm_eval. */
static double alone(llm_context *c, const char *label, bool end) {
    ggl_error err;
    int32_t *id = NULL;
    size_t n_begin, n;
    double logprob[32], sum = 0;
    const float *logits;
    if (!CHECK_OK(llm_encode_after(c, prompt, strlen(prompt), label, strlen(label), LLM_ADD_SPECIAL,
                                   &id, &n_begin, &n, &err),
                  &err) ||
        !CHECK(n - n_begin <= 32) ||
        !CHECK_OK(llm_score(c, id, n_begin, id + n_begin, n - n_begin, logprob, NULL, &err), &err))
        return NAN;
    for (size_t i = 0; i < n - n_begin; i++)
        sum += logprob[i];
    if (end && CHECK_OK(llm_eval(c, &id[n - 1], 1, false, &logits, &err), &err)) {
        const int32_t n_vocab = llm_context_facts(c)->n_vocab;
        double p = 0;
        for (int32_t t = 0; t < n_vocab; t++) {
            llm_logprob one = {.id = t}, top;
            if (!llm_token_is_end(c, t))
                continue;
            llm_logprobs(logits, n_vocab, &one, &top, 1);
            p += exp(one.logprob);
        }
        CHECK(p > 0);
        sum += log(p);
    }
    ggl_free(id);
    return sum;
}

/* Checks a comparison against that of each label alone. */
static void check_alone(const labels *l, bool end, bool per_token) {
    llm_context *c = open_parallel(1, 1);
    double weight[80], sum = 0;
    for (size_t k = 0; c && k < l->n; k++) {
        const double want = alone(c, l->text[k], end);
        CHECK_MSG(fabs(l->choice[k].logprob - want) < 1e-9, "'%s': %.17g, alone %.17g", l->text[k],
                  l->choice[k].logprob, want);
        weight[k] = exp(per_token ? want / (double)l->choice[k].n_tokens : want);
        sum += weight[k];
    }
    for (size_t k = 0; c && k < l->n; k++)
        CHECK(fabs(l->choice[k].probability - weight[k] / sum) < 1e-9);
    llm_close(c);
}

TEST(labels_beside_each_alone) {
    ggl_error err;
    labels l = {0};
    bool ends = true;
    double mean = 0;
    static const double value[] = {1, 2, 3, 4};
    llm_context *c = open_parallel(4, 2);
    REQUIRE(c);
    add(&l, " girl named Lily");
    add(&l, " girl named Sue");
    add(&l, " dog");
    add(&l, " boy. He liked to play");
    REQUIRE_OK(
        choose(c, &l, (llm_choose_params){.ends = &ends, .value = value, .mean = &mean}, &err),
        &err);
    CHECK(!ends);
    CHECK(l.choice[0].probability > l.choice[1].probability);
    CHECK(fabs(mean - (l.choice[0].probability + 2 * l.choice[1].probability +
                       3 * l.choice[2].probability + 4 * l.choice[3].probability)) < 1e-12);
    check_alone(&l, false, false);
    REQUIRE_OK(choose(c, &l, (llm_choose_params){.per_token = true}, &err), &err);
    check_alone(&l, false, true);
    REQUIRE_OK(choose(c, &l, (llm_choose_params){.with_end = true, .ends = &ends}, &err), &err);
    CHECK(ends);
    check_alone(&l, true, false);
    llm_close(c);
}

/* " girl" begins " girl named", so without their ends both would be true at the same time. */
TEST(a_label_that_begins_another) {
    ggl_error err;
    labels l = {0};
    bool ends = false;
    llm_context *c = open_parallel(3, 2);
    REQUIRE(c);
    add(&l, " girl named");
    add(&l, " girl");
    add(&l, " dog");
    REQUIRE_OK(choose(c, &l, (llm_choose_params){.ends = &ends}, &err), &err);
    CHECK(ends && l.choice[1].n_tokens + 1 == l.choice[0].n_tokens);
    check_alone(&l, true, false);
    llm_close(c);
}

/* A prompt that ends within a word of the label: all labels count from the same place on. */
TEST(a_prompt_that_ends_within_a_token) {
    ggl_error err;
    const char *const label[] = {"rl", "raffe"};
    const size_t n[] = {2, 5};
    static const char begun[] = "Once upon a time there was a gi";
    llm_choice choice[2];
    double logprob[32];
    llm_context *c = open_parallel(1, 2);
    REQUIRE(c);
    REQUIRE_OK(llm_choose(c, begun, strlen(begun), label, n, 2, NULL, choice, &err), &err);
    CHECK(choice[0].probability > 0.9);
    int32_t *id;
    size_t n_begin, n_id;
    double sum = 0;
    REQUIRE_OK(llm_encode_after(c, begun, strlen(begun), label[0], n[0], LLM_ADD_SPECIAL, &id,
                                &n_begin, &n_id, &err),
               &err);
    REQUIRE(choice[0].n_tokens <= n_id && choice[0].n_tokens <= 32);
    const size_t from = n_id - choice[0].n_tokens;
    REQUIRE_OK(llm_score(c, id, from, id + from, n_id - from, logprob, NULL, &err), &err);
    for (size_t i = 0; i < n_id - from; i++)
        sum += logprob[i];
    CHECK(fabs(sum - choice[0].logprob) < 1e-9);
    ggl_free(id);
    llm_close(c);
}

/* Makes n labels of syllables, no two alike. */
static void add_random(labels *l, size_t n, char (*text)[40]) {
    static const char *const part[] = {" girl", " dog", " cat", " and", " the", "s", " big", "."};
    uint64_t x = sample_mix(sample_seed());
    while (l->n < n) {
        char *s = text[l->n];
        bool is_new = true;
        s[0] = 0;
        x = sample_mix(x);
        for (uint64_t i = 0; i <= x % 4; i++)
            strcat(s, part[(x >> (8 + 3 * i)) % 8]);
        for (size_t k = 0; k < l->n; k++)
            is_new &= strcmp(l->text[k], s) != 0;
        if (is_new)
            add(l, s);
    }
}

/* Slots, threads and repetitions change no bit; the prompt is run once. */
TEST(random_labels_in_any_number_of_slots) {
    static const int32_t how[][2] = {{1, 1}, {2, 2}, {5, 1}, {40, 2}};
    static char text[40][40];
    ggl_error err;
    labels first = {0};
    add_random(&first, 40, text);
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        labels l = first;
        size_t n_seq, n_again;
        llm_context *c = open_parallel(how[i][0], how[i][1]);
        REQUIRE(c);
        for (int again = 0; again < 2; again++)
            REQUIRE_OK(choose(c, &l, (llm_choose_params){0}, &err), &err);
        (void)llm_sequence(c, &n_seq);
        if (i == 0)
            check_alone(&l, true, false);
        for (size_t k = 0; k < l.n; k++)
            CHECK(i == 0 || (l.choice[k].logprob == first.choice[k].logprob &&
                             l.choice[k].probability == first.choice[k].probability));
        first = i == 0 ? l : first;
        CHECK(n_seq > 5 && n_seq < 20);
        /* what comes after is as before */
        written t;
        const llm_generate_params p = greedy(8);
        generate(c, prompt, &p, &t);
        CHECK(t.n > 8);
        (void)llm_sequence(c, &n_again);
        CHECK(n_again > n_seq);
        llm_close(c);
    }
}

TEST(labels_that_are_refused) {
    ggl_error err;
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_ctx = 32});
    REQUIRE(c);
    labels l = {0};
    CHECK_INT(choose(c, &l, (llm_choose_params){0}, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "at least one label");
    add(&l, " dog");
    add(&l, "");
    CHECK_INT(choose(c, &l, (llm_choose_params){0}, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "label[1], of 0 bytes, has no token");
    l.n = 1;
    add(&l, " cat");
    add(&l, " dog");
    CHECK_INT(choose(c, &l, (llm_choose_params){0}, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "label[0] and label[2] are the same");
    l.n = 2;
    add(&l, " dog and a cat and a dog and a cat and a dog and a cat and a dog and a cat and a dog");
    CHECK_INT(choose(c, &l, (llm_choose_params){0}, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "context of 32");
    l.n = 2;
    CHECK_OK(choose(c, &l, (llm_choose_params){0}, &err), &err);
    CHECK_INT(choose(c, &l, (llm_choose_params){.chat = true}, &err), GGL_NOT_FOUND);
    const char *const none[] = {NULL};
    const size_t n[] = {3};
    llm_choice choice[1];
    CHECK_INT(llm_choose(c, prompt, 4, none, n, 1, NULL, choice, &err), GGL_USAGE);
    CHECK_INT(llm_choose(c, NULL, 4, l.text, l.n_text, 1, NULL, choice, &err), GGL_USAGE);
    CHECK_INT(llm_choose(c, prompt, 4, l.text, l.n_text, 1, NULL, NULL, &err), GGL_USAGE);
    llm_close(c);
}

/* One label has all of the probability. */
TEST(one_label) {
    ggl_error err;
    labels l = {0};
    llm_context *c = open_parallel(1, 1);
    REQUIRE(c);
    add(&l, " dog");
    REQUIRE_OK(choose(c, &l, (llm_choose_params){0}, &err), &err);
    CHECK(l.choice[0].probability == 1 && l.choice[0].logprob < 0);
    llm_close(c);
}

TEST(a_conversation) {
    ggl_error err;
    const char *const label[] = {"yes", "no"};
    const size_t n[] = {3, 2};
    llm_choice choice[2];
    llm_context *c = open_with("builtin:chat", (llm_open_params){.n_parallel = 2});
    REQUIRE(c);
    static const char talk[] =
        "{\"messages\": [{\"role\": \"user\", \"content\": \"Is a cat an animal?\"}]}";
    const llm_choose_params p = {.size = sizeof p, .chat = true};
    REQUIRE_OK(llm_choose(c, talk, strlen(talk), label, n, 2, &p, choice, &err), &err);
    CHECK(fabs(choice[0].probability + choice[1].probability - 1) < 1e-12);
    /* the tokens of the whole text, though only its end is read for each label */
    char *text, all[256];
    size_t n_text, n_id;
    int32_t *ids;
    double logprob[32], sum;
    REQUIRE_OK(llm_chat_format(c, talk, true, &text, &n_text, NULL, &err), &err);
    for (size_t k = 0; k < 2; k++) {
        snprintf(all, sizeof all, "%s%s", text, label[k]);
        REQUIRE_OK(llm_encode(c, all, strlen(all), LLM_READ_SPECIAL, &ids, &n_id, &err), &err);
        const size_t n_last = choice[k].n_tokens;
        REQUIRE(n_last < n_id && n_last <= 32);
        REQUIRE_OK(
            llm_score(c, ids, n_id - n_last, ids + n_id - n_last, n_last, logprob, NULL, &err),
            &err);
        sum = 0;
        for (size_t i = 0; i < n_last; i++)
            sum += logprob[i];
        CHECK(fabs(sum - choice[k].logprob) < 1e-9);
        ggl_free(ids);
    }
    ggl_free(text);
    CHECK_INT(llm_choose(c, "{", 1, label, n, 2, &p, choice, &err), GGL_FORMAT);
    CHECK_OK(llm_choose(c, talk, strlen(talk), label, n, 2, &p, choice, &err), &err);
    llm_close(c);
}
