/* Labels after a sequence, of models that keep a window of rows, states, or both: any number of spare slots gives the same bits, and
 * the slot holds what it did. */
#include "llm/internal/labels.h"

#include <math.h>
#include <stdlib.h>

#include "ggl/alloc.h"
#include "ggl/backends.h"
#include "test.h"
#include "tiny_model.h"

enum { CTX = 320, SLOTS = 6, BEFORE = 70, LABELS = 12, LONGEST = 5 };

static bool session_open(llm_session **s, llm_model *m, ggl_backend *cpu, ggl_backend *fold,
                         int64_t n_pool) {
    ggl_error err;
    llm_session_params p = llm_session_default();
    p.n_ctx = CTX;
    p.n_ubatch = 16;
    p.n_slots = SLOTS;
    p.n_pool = n_pool;
    p.backend = &cpu;
    p.n_backends = 1;
    p.fold = fold;
    return CHECK_OK(llm_session_new(s, m, &p, &err), &err) &&
           CHECK_OK(llm_session_alloc(*s, &err), &err);
}

/* Makes labels that begin alike: no two are the same, and none begins another, as the last token is of it alone. */
static void make(int32_t (*id)[LONGEST], llm_label *label) {
    uint64_t seed = 7;
    for (int k = 0; k < LABELS; k++) {
        const int n = k < 4 ? 1 : 2 + k % (LONGEST - 1);
        for (int i = 0; i < n; i++)
            id[k][i] = k < 4 ? k : i + 1 < n && i > 0 ? (int32_t)(test_random(&seed) % 4) : 4;
        if (n > 1) {
            id[k][1] = k % 4;
            id[k][n - 1] = 4 + k / 4;
        }
        label[k] = (llm_label){id[k], (size_t)n};
    }
}

static void check_model(const char *text) {
    ggl_error err;
    ggl_backend *cpu, *fold;
    llm_model *m;
    llm_session *s;
    int32_t before[BEFORE + 1], id[LABELS][LONGEST];
    llm_label label[LABELS];
    double want[LABELS] = {0};
    float logits[TINY_VOCAB], after[TINY_VOCAB] = {0};
    static const int spare[] = {1, 2, 3, 4, 5};
    const char *path = test_path("tiny.gguf");
    REQUIRE(tiny_model_write(path, text, 1));
    REQUIRE_OK(ggl_backend_open(&cpu, "cpu", NULL, &err), &err);
    REQUIRE_OK(ggl_backend_open(&fold, "reference", NULL, &err), &err);
    REQUIRE_OK(llm_model_open(&m, path, NULL, &err), &err);
    make(id, label);
    for (int i = 0; i <= BEFORE; i++)
        before[i] = i * i % TINY_VOCAB;
    for (size_t n = 0; n <= 6; n++) { /* 6: the cache has pages for one spare slot */
        llm_labels *l;
        REQUIRE(session_open(&s, m, cpu, fold, n == 6 ? 192 : 0));
        REQUIRE_OK(llm_session_eval(s, &(llm_batch){.n = BEFORE, .token = before}, &err), &err);
        memcpy(logits, llm_session_logits(s), sizeof logits);
        REQUIRE_OK(llm_labels_new(&l, label, LABELS, false, NULL, TINY_VOCAB, &err), &err);
        CHECK(!llm_labels_end(l) && llm_labels_n_run(l) < LABELS * (LONGEST - 1));
        for (int again = 0; again < 2; again++)
            REQUIRE_OK(llm_labels_run(l,
                                      &(llm_labels_place){.session = s,
                                                          .logits = logits,
                                                          .spare = spare,
                                                          .n_spare = n < 6 ? n : 5},
                                      &err),
                       &err);
        for (int k = 0; k < LABELS; k++) {
            CHECK(isfinite(llm_labels_logprob(l, (size_t)k)));
            CHECK(n == 0 || llm_labels_logprob(l, (size_t)k) == want[k]);
            want[k] = llm_labels_logprob(l, (size_t)k);
        }
        for (int k = 1; k < SLOTS; k++)
            CHECK_INT(llm_session_n_past(s, k), 0);
        CHECK_INT(llm_session_n_past(s, 0), BEFORE);
        REQUIRE_OK(llm_session_eval(s, &(llm_batch){.n = 1, .token = &before[BEFORE]}, &err), &err);
        CHECK(n == 0 || memcmp(after, llm_session_logits(s), sizeof after) == 0);
        memcpy(after, llm_session_logits(s), sizeof after);
        llm_labels_free(l);
        llm_session_free(s);
    }
    llm_model_free(m);
    ggl_backend_close(cpu);
    ggl_backend_close(fold);
}

TEST(all_rows) {
    check_model(MODEL(ALL));
}

TEST(a_window) {
    check_model(MODEL(WINDOW));
}

TEST(states) {
    check_model(MODEL(STATES));
}

TEST(states_and_all_rows) {
    check_model(MODEL(STATES ALL));
}

TEST(labels_that_make_no_tree) {
    ggl_error err;
    llm_labels *l;
    static const int32_t id[] = {1, 2, 9, 1, 2};
    const llm_label label[] = {{id, 2}, {id + 3, 1}, {id + 2, 1}, {id + 3, 2}};
    CHECK_INT(llm_labels_new(&l, label, 0, false, NULL, 8, &err), GGL_USAGE);
    CHECK_INT(llm_labels_new(&l, label, 3, false, NULL, 8, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "label[2]: token 0 is 9; the vocabulary has 8");
    CHECK_INT(llm_labels_new(&l, label, 2, false, NULL, 8, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "no token of the model ends a text");
    CHECK_INT(llm_labels_new(&l, label, 4, false, NULL, 10, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "label[0] and label[3] are the same");
    CHECK(!l);
}

TEST(shares) {
    static const double logprob[] = {-1000, -1001, -INFINITY};
    static const size_t n[] = {2, 1, 1};
    double share[3];
    llm_labels_shares(logprob, NULL, 3, share);
    CHECK(fabs(share[0] - 1 / (1 + exp(-1))) < 1e-12 && share[2] == 0);
    llm_labels_shares(logprob, n, 3, share);
    CHECK(share[0] == 1 && share[1] < 1e-200);
    llm_labels_shares(logprob + 2, NULL, 1, share);
    CHECK(share[0] == 1); /* none has any: they are alike */
}
