/* Which items a training draws. */
#include "training/order.h"

#include <math.h>

#include "ggl/internal/gguf.h"
#include "test.h"

static ggl_error err;

/* Data of lines, each a text, or a pair. */
typedef struct fixture {
    ggl_gguf *file;
    llm_tokenizer *t;
    train_data *d;
} fixture;

static bool open_data(fixture *f, int n, bool pairs, int64_t n_ctx) {
    const ggl_gguf_params params = {.size = sizeof params, .meta_only = true};
    *f = (fixture){0};
    FILE *to = fopen(test_path("data.jsonl"), "w");
    for (int i = 0; i < n; i++) /* of 1 to 5 words */
        fprintf(to,
                pairs ? "{\"prompt\": \"%.*s\", \"chosen\": \" a\", \"rejected\": \" b\"}\n"
                      : "{\"text\": \"%.*s\"}\n",
                1 + 2 * (i % 5), "a b c d e");
    fclose(to);
    if (!CHECK_OK(ggl_gguf_open(&f->file, BUILTIN_MODEL, &params, &err), &err) ||
        !CHECK_OK(llm_tokenizer_new(&f->t, f->file, &err), &err))
        return false;
    const train_data_params p = {.tokenizer = f->t, .n_ctx = n_ctx};
    return CHECK_OK(llm_train_data_new(&f->d, &p, &err), &err) &&
           CHECK_OK(llm_train_data_read(f->d, test_path("data.jsonl"), &err), &err);
}

static void close_data(fixture *f) {
    llm_train_data_free(f->d);
    llm_tokenizer_free(f->t);
    ggl_gguf_close(f->file);
}

static train_order *order_of(const fixture *f, uint64_t seed, bool in_order, double valid) {
    const train_order_params p = {.data = f->d, .seed = seed, .in_order = in_order, .valid = valid};
    train_order *o = NULL;
    CHECK_OK(llm_train_order_new(&o, &p, &err), &err);
    return o;
}

/* Each pass has each item once; passes and seeds differ. */
TEST(passes) {
    static const int sizes[] = {1, 2, 3, 4, 5, 16, 17, 100, 1000};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (int pairs = 0; pairs < 2; pairs++) {
            fixture f;
            const int n = sizes[k];
            REQUIRE(open_data(&f, n, pairs, 64));
            train_order *o = order_of(&f, 7, false, 0), *other = order_of(&f, 8, false, 0);
            REQUIRE(o && other);
            CHECK_INT(llm_train_order_n(o), n);
            CHECK_INT(llm_train_order_n_valid(o), 0);
            int n_same_pass = 0, n_same_seed = 0;
            for (int pass = 0; pass < 3; pass++) {
                char *seen = calloc((size_t)n, 1);
                for (int i = 0; i < n; i++) {
                    const int64_t item = llm_train_order_at(o, (int64_t)pass * n + i);
                    CHECK(item >= 0 && item < llm_train_data_n(f.d) && item % (1 + pairs) == 0);
                    CHECK(!seen[item / (1 + pairs)]++);
                    n_same_pass += pass > 0 && item == llm_train_order_at(o, i);
                    n_same_seed += item == llm_train_order_at(other, (int64_t)pass * n + i);
                }
                free(seen);
            }
            if (n >= 100) /* one in n is at its place by chance */
                CHECK(n_same_pass < 12 && n_same_seed < 15);
            llm_train_order_free(o);
            llm_train_order_free(other);
            close_data(&f);
        }
}

/* Every item is about as often at each place. */
TEST(orders_are_even) {
    enum { N = 10, PASSES = 4000 };
    static int count[N][N];
    fixture f;
    REQUIRE(open_data(&f, N, false, 64));
    train_order *o = order_of(&f, 1, false, 0);
    REQUIRE(o != NULL);
    for (int64_t k = 0; k < N * PASSES; k++)
        count[k % N][llm_train_order_at(o, k)]++;
    double chi = 0;
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            chi += pow(count[i][k] - PASSES / N, 2) / (PASSES / N);
    CHECK_MSG(chi < 140, "chi squared is %g, with 81 degrees of freedom", chi);
    llm_train_order_free(o);
    close_data(&f);
}

TEST(in_the_order_of_the_files) {
    fixture f;
    REQUIRE(open_data(&f, 9, false, 64));
    train_order *o = order_of(&f, 7, true, 0);
    REQUIRE(o != NULL);
    for (int64_t k = 0; k < 30; k++)
        CHECK_INT(llm_train_order_at(o, k), k % 9);
    llm_train_order_free(o);
    close_data(&f);
}

/* What is for validation is never drawn, and all pieces of a document go together. */
TEST(validation) {
    static const double valid[] = {0.01, 0.25, 0.99, 1, 7, 19.9};
    static const int64_t records[] = {1, 5, 19,
                                      1, 7, 19}; /* 0.99 * 20 is rounded up to 20: refused */
    for (size_t k = 0; k < sizeof valid / sizeof *valid; k++) {
        fixture f;
        REQUIRE(open_data(&f, 20, false, 3)); /* pieces of 3 tokens */
        const train_order_params p = {.data = f.d, .seed = 7, .valid = valid[k]};
        train_order *o;
        if (k == 2) {
            CHECK_INT(llm_train_order_new(&o, &p, &err), GGL_USAGE);
            CHECK(!o);
            CHECK_HAS(err.msg, "there are 20, of which validation takes 20");
            close_data(&f);
            continue;
        }
        REQUIRE_OK(llm_train_order_new(&o, &p, &err), &err);
        const int64_t n = llm_train_order_n(o), n_valid = llm_train_order_n_valid(o);
        CHECK_INT(n + n_valid, llm_train_data_n(f.d));
        char in[256] = {0};
        int64_t n_begun = 0;
        for (int64_t i = 0; i < n_valid; i++) {
            const int64_t item = llm_train_order_valid_at(o, i);
            CHECK(i == 0 || item > llm_train_order_valid_at(o, i - 1));
            in[item] = 1;
            n_begun += llm_train_data_begins(f.d, item);
        }
        CHECK_INT(n_begun, records[k]);
        for (int64_t i = 0; i < llm_train_data_n(f.d); i++)
            CHECK(llm_train_data_begins(f.d, i) || in[i] == in[i - 1]);
        for (int64_t i = 0; i < 3 * n; i++)
            CHECK(!in[llm_train_order_at(o, i)]++ || i >= n);
        llm_train_order_free(o);
        close_data(&f);
    }
}

TEST(wrong_parts) {
    static const double wrong[] = {-1, NAN, INFINITY, 5, 1e300};
    fixture f;
    REQUIRE(open_data(&f, 5, false, 64));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const train_order_params p = {.data = f.d, .valid = wrong[i]};
        train_order *o;
        CHECK_INT(llm_train_order_new(&o, &p, &err), GGL_USAGE);
        CHECK(!o);
    }
    train_data *none;
    const train_data_params empty = {.tokenizer = f.t, .n_ctx = 8};
    REQUIRE_OK(llm_train_data_new(&none, &empty, &err), &err);
    const train_order_params p = {.data = none};
    train_order *o;
    CHECK_INT(llm_train_order_new(&o, &p, &err), GGL_USAGE);
    llm_train_data_free(none);
    close_data(&f);
}

/* Batches have room for what they take, and not for one more. */
TEST(batches) {
    for (int pairs = 0; pairs < 2; pairs++) {
        fixture f;
        REQUIRE(open_data(&f, 30, pairs, 64));
        train_order *o = order_of(&f, 3, false, 6);
        REQUIRE(o != NULL);
        const int step = 1 + pairs;
        for (int64_t n_tokens = 1; n_tokens < 60; n_tokens += 7)
            for (int64_t n_draws = 1; n_draws < 9; n_draws++)
                for (int64_t k = 0; k < 50; k++) {
                    const int64_t n = llm_train_order_batch(o, k, 48, n_tokens, n_draws);
                    int64_t used = 0, more = 0;
                    for (int64_t i = 0; i <= n; i++)
                        for (int s = 0; s < step; s++)
                            *(i < n ? &used : &more) +=
                                llm_train_data_length(f.d, llm_train_order_at(o, k + i) + s);
                    CHECK(used <= n_tokens && n <= n_draws && (n == 0 || k + n <= 48));
                    CHECK(k + n >= 48 || used + more > n_tokens || n + 1 > n_draws);
                }
        CHECK_INT(llm_train_order_valid_batch(o, 4, 6, 1000, 100), 2);
        CHECK_INT(llm_train_order_valid_batch(o, 0, 6, 1000, 4), 4);
        llm_train_order_free(o);
        close_data(&f);
    }
}

/* Groups of any size are drawn whole. */
TEST(groups) {
    fixture f;
    enum { N = 20 };
    int n_items = 0;
    REQUIRE(open_data(&f, 1, false, 64));
    llm_train_data_free(f.d);
    FILE *to = fopen(test_path("groups.jsonl"), "w");
    for (int i = 0; i < N; i++) {
        fprintf(to, "{\"query\": \"a\", \"positive\": \"b %d\", \"negatives\": [", i);
        for (int k = 0; k < i % 4; k++)
            fprintf(to, k == 0 ? "\"c\"" : ", \"c\"");
        fprintf(to, "]}\n");
        n_items += 2 + i % 4;
    }
    fclose(to);
    const train_data_params p = {.tokenizer = f.t, .n_ctx = 64};
    REQUIRE_OK(llm_train_data_new(&f.d, &p, &err), &err);
    REQUIRE_OK(llm_train_data_read(f.d, test_path("groups.jsonl"), &err), &err);
    CHECK_INT(llm_train_data_kind(f.d), TRAIN_MATCHES);
    CHECK_INT(llm_train_data_n(f.d), n_items);
    for (int valid = 0; valid < 6; valid += 5) {
        train_order *o = order_of(&f, 9, false, valid);
        REQUIRE(o);
        bool seen[N * 5] = {false};
        int n = 0;
        CHECK_INT(llm_train_order_n(o), N - valid);
        CHECK_INT(llm_train_order_n_valid(o), valid);
        for (int k = 0; k < N; k++) {
            const int64_t at = k < N - valid ? llm_train_order_at(o, k)
                                             : llm_train_order_valid_at(o, k - (N - valid));
            REQUIRE(at >= 0 && at < n_items && !seen[at]);
            seen[at] = true;
            CHECK(llm_train_data_begins(f.d, at));
            n += (int)llm_train_data_group(f.d, at);
        }
        CHECK_INT(n, n_items);
        CHECK_INT(llm_train_order_batch(o, 0, 100, 100000, 7), 7);
        const int64_t first = llm_train_order_at(o, 0);
        int64_t tokens = 0;
        for (int64_t i = 0; i < llm_train_data_group(f.d, first); i++)
            tokens += llm_train_data_length(f.d, first + i);
        CHECK_INT(llm_train_order_batch(o, 0, 100, tokens, 7), 1);
        CHECK_INT(llm_train_order_batch(o, 0, 100, tokens - 1, 7), 0);
        llm_train_order_free(o);
    }
    close_data(&f);
}
