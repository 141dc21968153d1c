/* llm-perplexity's parts: log-softmax, files of log-probabilities, and the statistics, against
 * numbers worked out by hand. */
#include <math.h>

#include "measure/log_softmax.h"
#include "measure/logits_file.h"
#include "measure/ppl_stats.h"

#include "test.h"

static bool near(double got, double want, double off) {
    return CHECK_MSG(fabs(got - want) <= off, "%.12g is not %.12g", got, want);
}

TEST(log_softmax) {
    const float same[4] = {2, 2, 2, 2}, two[3] = {0, 1e4F, -1e4F};
    log_softmax s = llm_log_softmax_of(same, 4);
    CHECK(s.finite && s.top == 0);
    for (int i = 0; i < 4; i++)
        near(llm_log_softmax_at(&s, same, i), -1.3862943611198906, 1e-15); /* ln 4 */
    s = llm_log_softmax_of(two, 3);
    CHECK(s.finite && s.top == 1);
    near(llm_log_softmax_at(&s, two, 1), 0, 0);
    near(llm_log_softmax_at(&s, two, 2), -2e4, 0);
    CHECK(!llm_log_softmax_of((float[]){0, NAN}, 2).finite);
    CHECK(!llm_log_softmax_of((float[]){INFINITY, 0}, 2).finite);
}

/* Sums of exponentials, of vocabularies of any length and of logits far and near, against the functions of the C library in double. */
TEST(log_sums) {
    enum { N = 1000 };
    float x[N];
    uint64_t seed = 7;
    for (int64_t n = 1; n <= N; n = n < 140 ? n + 1 : n * 3) {
        const double wide = n % 3 == 0 ? 0.5 : n % 3 == 1 ? 20 : 300;
        int64_t top = 0;
        double sum = 0;
        for (int64_t i = 0; i < n; i++) {
            seed = seed * 6364136223846793005 + 1442695040888963407;
            x[i] = (float)(wide * ((double)(seed >> 40) / 0x1p24 - 0.5));
            top = x[i] > x[top] ? i : top;
        }
        for (int64_t i = 0; i < n; i++)
            sum += exp((double)x[i] - (double)x[top]);
        const log_softmax s = llm_log_softmax_of(x, n);
        CHECK(s.finite && s.top == top && s.max == x[top]);
        near(s.log_sum, log(sum), 2e-7);
    }
}

/* Base 1/2 and 1/2, the other 9/10 and 1/10; then a token that base has at exp(-16) or less. */
TEST(divergence) {
    const float base[3] = {3, 3, -40}, other[3] = {(float)log(9), 0, -40};
    uint16_t code[8];
    CHECK_INT(llm_log_probs_size(3), 8);
    log_softmax s = llm_log_softmax_of(base, 3);
    llm_log_probs_encode(&s, base, 3, code);
    CHECK_INT(code[4], 65535);
    CHECK_INT(code[5], 65535);
    CHECK_INT(code[6], 0); /* 16 below the likeliest, though it is 43 below */
    CHECK_INT(code[7], 0);
    s = llm_log_softmax_of(other, 3);
    log_compared c = llm_log_compare(&s, other, 3, code, 1);
    near(c.nll, log(10), 1e-6);
    near(c.nll_base, log(2), 1e-5);
    near(c.kld, 0.5 * log(0.5 / 0.9) + 0.5 * log(0.5 / 0.1), 1e-5);
    near(c.p_diff, 0.1 - 0.5, 1e-5);
    CHECK(c.same_top);
    s = llm_log_softmax_of(base, 3);
    c = llm_log_compare(&s, base, 3, code, 0);
    near(c.kld, 0, 1e-6);
    /* all alike: no scale */
    const float flat[2] = {1, 1};
    s = llm_log_softmax_of(flat, 2);
    llm_log_probs_encode(&s, flat, 2, code);
    c = llm_log_compare(&s, flat, 2, code, 1);
    near(c.nll_base, log(2), 1e-6);
    near(c.kld, 0, 1e-6);
}

TEST(statistics) {
    ppl_stats s = {0};
    for (int i = 1; i <= 3; i++)
        llm_ppl_add(&s, i);
    near(llm_ppl_value(&s).value, exp(2), 1e-12);
    near(llm_ppl_value(&s).error, exp(2) * sqrt(2.0 / 3 / 2), 1e-12);
    s = (ppl_stats){0};
    llm_ppl_add(&s, 0.5);
    near(llm_ppl_value(&s).error, 0, 0);
    s = (ppl_stats){0};
    for (int i = 0; i < 12; i++)
        llm_ppl_add_compared(&s, &(log_compared){.nll = i + 1,
                                                 .nll_base = i,
                                                 .kld = i % 2,
                                                 .p_diff = i % 2 ? 0.1 : -0.1,
                                                 .same_top = i < 9});
    near(llm_ppl_log_ratio(&s).value, 1, 1e-12);
    near(llm_ppl_log_ratio(&s).error, 0, 1e-6); /* always one off: the ratio is certain */
    near(llm_ppl_correlation(&s), 1, 1e-12);
    near(llm_ppl_kld(&s).value, 0.5, 0);
    near(llm_ppl_kld(&s).error, sqrt(0.25 / 11), 1e-15);
    near(llm_ppl_p_diff(&s).value, 0, 1e-15);
    near(llm_ppl_p_rms(&s).value, 0.1, 1e-15);
    near(llm_ppl_same_top(&s).value, 0.75, 0);
    near(llm_ppl_same_top(&s).error, sqrt(0.75 * 0.25 / 11), 1e-15);
    const double x[5] = {0, 1, 2, 3, 10};
    near(llm_ppl_quantile(x, 5, 0.5), 2, 0);
    near(llm_ppl_quantile(x, 5, 0.9), 7.2, 1e-12);
    near(llm_ppl_quantile(x, 5, 1), 10, 0);
    near(llm_ppl_quantile(x, 4, 0.5), 1.5, 0);
    near(llm_ppl_quantile(x, 1, 0.5), 0, 0);
}

/* Rows that the encoder writes add up to 1 within what the format loses, also where nearly all
 * probabilities are raised to its least one; rows with other codes do not. */
TEST(valid_rows) {
    enum { N = 200001 };
    static const float far[] = {0, 1e-4F, 1, 7, 15.9F, 16, 16.1F, 100, 1e6F};
    float *logits = calloc(N, sizeof *logits);
    uint16_t *row = calloc((size_t)llm_log_probs_size(N), sizeof *row);
    for (size_t k = 0; logits && row && k < sizeof far / sizeof *far; k++)
        for (int64_t n = 1; n <= N; n = n < 10 ? n + 1 : n * 37 < N ? n * 37 : n < N ? N : N + 1)
            for (int shape = 0; shape < 2; shape++) {
                for (int64_t i = 0; i < n; i++) /* one above all others, or an even slope */
                    logits[i] = 20 - (shape ? far[k] * (float)i / (float)n : i ? far[k] : 0);
                log_softmax s = llm_log_softmax_of(logits, n);
                llm_log_probs_encode(&s, logits, n, row);
                CHECK_MSG(llm_log_probs_valid(row, n), "%d tokens, %g apart", (int)n,
                          (double)far[k]);
                if (n < 9 || far[k] < 1)
                    continue;
                for (int64_t i = 0; i < n; i++)
                    row[4 + i] = i < 200 ? 65535 : row[4 + i];
                CHECK_MSG(shape || !llm_log_probs_valid(row, n), "200 of %d tokens, %g apart",
                          (int)n, (double)far[k]);
            }
    free(logits);
    free(row);
}

static const logits_head head = {
    .n_ctx = 6, .n_vocab = 5, .n_chunk = 2}; /* 2 positions of a chunk are scored */
static const int32_t tokens[12] = {0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1};
enum { ROW = 10, SIZE = 20 + 12 * 4 + 2 * 2 * ROW * 2 };

static const char *write_file(void) {
    const char *path = test_path("base.kld");
    ggl_error err = {0};
    logits_writer w = {0};
    if (!CHECK_OK(llm_logits_begin(&w, path, &head, tokens, &err), &err))
        return path;
    for (int k = 0; k < 4; k++) {
        const float logits[5] = {(float)k, 1, 2, 3, 4};
        uint16_t row[ROW];
        log_softmax s = llm_log_softmax_of(logits, 5);
        llm_log_probs_encode(&s, logits, 5, row);
        llm_logits_put(&w, row, ROW);
    }
    CHECK_OK(llm_logits_end(&w, &err), &err);
    return path;
}

TEST(file) {
    ggl_error err = {0};
    logits_reader r;
    uint16_t row[ROW];
    CHECK_INT(llm_log_probs_size(5), ROW);
    CHECK_INT(llm_logits_scored(6), 2);
    CHECK_INT(llm_logits_scored(512), 255);
    REQUIRE_OK(llm_logits_open(&r, write_file(), &err), &err);
    CHECK_INT(r.head.n_ctx, 6);
    CHECK_INT(r.head.n_vocab, 5);
    CHECK_INT(r.head.n_chunk, 2);
    CHECK(memcmp(r.token, tokens, sizeof tokens) == 0);
    CHECK(llm_logits_row(&r, 1, 1, row));
    CHECK_INT(row[4 + 0], 65535 * 2 / 3); /* 3 of 1 .. 4 */
    CHECK_INT(row[4 + 1], 0);
    CHECK_INT(row[4 + 4], 65535);
    llm_logits_close(&r);
}

static void refused(const unsigned char *data, size_t n, const char *words) {
    ggl_error err = {0};
    logits_reader r;
    const char *path = test_path("bad.kld");
    REQUIRE(test_write_file(path, data, n));
    if (CHECK(llm_logits_open(&r, path, &err) != GGL_OK)) {
        CHECK_HAS(err.msg, words);
        CHECK_HAS(err.msg, "bad.kld");
    } else {
        llm_logits_close(&r);
    }
}

TEST(hostile_file) {
    size_t n;
    unsigned char *data = test_read_file(write_file(), &n);
    REQUIRE(data && n == SIZE);
    for (size_t k = 1; k < n; k++)
        refused(data, k, k < 20 ? "not a file of log-probabilities" : "incomplete");
    static const struct {
        size_t at;
        int32_t value;
        const char *words;
    } changes[] = {
        {0, 0, "not a file of log-probabilities"},
        {8, 0, "which is impossible"},
        {8, 3, "which is impossible"},
        {8, -1, "which is impossible"},
        {8, 1 << 30, "incomplete"},
        {12, 0, "which is impossible"},
        {12, -5, "which is impossible"},
        {12, INT32_MAX, "incomplete"},
        {16, 0, "which is impossible"},
        {16, INT32_MAX, "incomplete"},
        {20, -1, "outside of the vocabulary"},
        {24, 5, "outside of the vocabulary"},
    };
    for (size_t k = 0; k < sizeof changes / sizeof *changes; k++) {
        unsigned char before[4];
        memcpy(before, data + changes[k].at, 4);
        memcpy(data + changes[k].at, &changes[k].value, 4);
        refused(data, n, changes[k].words);
        memcpy(data + changes[k].at, before, 4);
    }
    /* scales that no probabilities have */
    ggl_error err = {0};
    logits_reader r;
    uint16_t row[ROW];
    const float bad[] = {NAN, INFINITY, -1, 7, 2e-4F}; /* the last: 2e-4 * 65535 - 3.. is above 0 */
    for (size_t k = 0; k < 10; k++) {
        unsigned char before[4];
        size_t at = 20 + 48 + 4 * (k % 2);
        float value = k % 2 && bad[k / 2] == -1 ? -INFINITY : bad[k / 2];
        memcpy(before, data + at, 4);
        memcpy(data + at, &value, 4);
        const char *path = test_path("scale.kld");
        REQUIRE(test_write_file(path, data, n));
        REQUIRE_OK(llm_logits_open(&r, path, &err), &err);
        CHECK(!llm_logits_row(&r, 0, 0, row));
        CHECK(llm_logits_row(&r, 0, 1, row));
        llm_logits_close(&r);
        memcpy(data + at, before, 4);
    }
    free(data);
    CHECK(llm_logits_open(&r, test_path("none.kld"), &err) == GGL_IO);
}

TEST(target) {
    ggl_error err = {0};
    logits_writer w = {0};
    CHECK_INT(llm_logits_begin(&w, test_path("none/base.kld"), &head, tokens, &err), GGL_IO);
    CHECK_HAS(err.msg, "its folder does not exist");
    CHECK_INT(llm_logits_begin(&w, test_folder(), &head, tokens, &err), GGL_IO);
    CHECK_HAS(err.msg, "is a directory");
    REQUIRE_OK(llm_logits_begin(&w, test_path("gone.kld"), &head, tokens, &err), &err);
    llm_logits_abort(&w);
    CHECK(access(test_path("gone.kld"), F_OK) != 0);
}
