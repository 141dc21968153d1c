/* What models learn from texts that belong together: gradients against differences of the loss, by the reference backend; the losses against
 * formulas; and that a step of several runs, or of several parts, is one of a single run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/backends.h"
#include "test.h"
#include "training/training.h"

static ggl_error err;

enum { N_EMBD = 16 };

/* --- models ----------------------------------------------------------------------------------- */

typedef struct fixture {
    llm_arch *arch;
    ggl_gguf *vocab;
    llm_model *m;
    llm_tokenizer *t;
    ggl_backend *cpu, *reference;
} fixture;

/* A new model of one layer, with the tokenizer of the built-in one. */
static bool open_fixture(fixture *f, const char *family, const char *pooling, const char *with) {
    const char *const causal[] = {".block_count=1",
                                  ".embedding_length=16",
                                  ".feed_forward_length=32",
                                  ".attention.head_count=2",
                                  ".context_length=64",
                                  ".attention.layer_norm_rms_epsilon=1e-5",
                                  pooling},
                      *const whole[] = {".block_count=1",
                                        ".embedding_length=16",
                                        ".feed_forward_length=32",
                                        ".attention.head_count=2",
                                        ".context_length=64",
                                        ".attention.layer_norm_epsilon=1e-5",
                                        pooling};
    const char *path = test_path("model.gguf");
    const ggl_gguf_params meta = {.size = sizeof meta, .meta_only = true};
    *f = (fixture){0};
    if (!CHECK_OK(llm_arch_open(&f->arch, family, &err), &err) ||
        !CHECK_OK(ggl_gguf_open(&f->vocab, BUILTIN_MODEL, &meta, &err), &err))
        return false;
    const llm_train_new p = {.size = sizeof p,
                             .arch = f->arch,
                             .name = family,
                             .vocab = f->vocab,
                             .key = strcmp(family, "bert") == 0 ? whole : causal,
                             .n_keys = 7,
                             .with = &with,
                             .n_with = with != NULL,
                             .sigma = 0.3,
                             .seed = 4};
    return CHECK_OK(llm_train_new_model(&p, path, &err), &err) &&
           CHECK_OK(llm_model_open(&f->m, path, NULL, &err), &err) &&
           CHECK_OK(llm_tokenizer_new(&f->t, llm_model_file(f->m), &err), &err) &&
           CHECK_OK(ggl_backend_open(&f->cpu, "cpu", NULL, &err), &err) &&
           CHECK_OK(ggl_backend_open(&f->reference, "reference", NULL, &err), &err);
}

static void close_fixture(fixture *f) {
    llm_tokenizer_free(f->t);
    llm_model_free(f->m);
    ggl_gguf_close(f->vocab);
    llm_arch_free(f->arch);
    ggl_backend_close(f->cpu);
    ggl_backend_close(f->reference);
}

/* A training on lines, in which a ' stands for a ". NULL: it cannot be made, which is a failure unless `wrong`. */
static llm_training *train_on(const fixture *f, ggl_backend *on, const char *lines,
                              llm_training_params p, bool wrong) {
    const char *path = test_path("data.jsonl");
    char *copy = strdup(lines);
    llm_training *t = NULL;
    for (char *c = copy; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    CHECK(test_write_file(path, copy, strlen(copy)));
    free(copy);
    p.size = sizeof p;
    p.file = &path;
    p.n_files = 1;
    p.valid_share = -1;
    p.n_seq = p.n_seq ? p.n_seq : 100;
    const train_parts of = {.model = f->m,
                            .tokenizer = f->t,
                            .backend = on,
                            .reference = f->reference,
                            .query_prompt = {"Q: ", 3},
                            .document_prompt = {"D: ", 3},
                            .text_prompt = {"", 0}};
    const ggl_status st = llm_training_new(&t, &of, &p, &err);
    if (!wrong)
        CHECK_OK(st, &err);
    return t;
}

/* The loss of all items as one step, and what is right. */
static double loss_of(llm_training *t, double *right) {
    int64_t n, *item = llm_train_items_of(t, 0, llm_train_order_n(t->order), &n);
    train_sum sum = {0};
    CHECK_OK(llm_train_measure(t, t->data, item, n, &sum, &err), &err);
    ggl_free(item);
    if (right)
        *right = sum.n_right;
    return sum.loss / sum.n;
}

static double learn(llm_training *t) {
    int64_t n, *item = llm_train_items_of(t, 0, llm_train_order_n(t->order), &n);
    train_sum sum = {0};
    const train_step_items all = {.item = item, .n = n, .end = n};
    CHECK_OK(llm_train_learn(t, &all, llm_train_total(t, item, n), &sum, &err), &err);
    ggl_free(item);
    return sum.loss / sum.n;
}

#define MATCHES                                                                                    \
    "{'query': 'Tom had a red ball.', 'positive': 'The boy plays.'}\n"                             \
    "{'query': 'A cat sat on the mat', 'positive': 'It was happy', 'negative': 'Big dog'}\n"       \
    "{'anchor': 'Rain fell down', 'positive': 'The flower grew', 'negatives': ['Sun', 'A ' ]}\n"   \
    "{'query': 'A cat sat on the mat', 'pos': ['It slept', 'The boy plays.'], 'neg': ['Moon']}\n"
#define SCORED                                                                                     \
    "{'sentence1': 'Tom had a ball.', 'sentence2': 'The boy plays.', 'score': 0.8}\n"              \
    "{'sentence1': 'The cat sat', 'sentence2': 'It was happy', 'label': 0.25}\n"                   \
    "{'sentence1': 'Rain fell', 'sentence2': 'The flower', 'score': 0.25}\n"                       \
    "{'sentence1': 'She ran', 'sentence2': 'He ate a big cake', 'score': 0}\n"
#define RANKED                                                                                     \
    "{'query': 'Tom had a ball.', 'positive': 'The boy plays.', 'negative': 'Rain'}\n"             \
    "{'query': 'The cat sat', 'positive': 'It was happy', 'neg': ['Big dog', 'A moon', '']}\n"

/* --- gradients -------------------------------------------------------------------------------- */

static const int64_t dims[] = {4, N_EMBD};

static const struct {
    const char *family, *pooling, *with, *lines;
    int64_t n_dims, n_ubatch;
} cases[] = {
    {"bert", ".pooling_type=1", NULL, MATCHES, 0, 0},
    {"bert", ".pooling_type=2", NULL, MATCHES, 2, 0},
    {"bert", ".pooling_type=1", NULL, SCORED, 0, 40},
    {"llama", ".pooling_type=3", NULL, MATCHES, 0, 40},
    {"llama", ".pooling_type=1", NULL, SCORED, 1, 0},
    {"bert", ".pooling_type=4", "cls*", RANKED, 0, 0},
    {"bert", ".pooling_type=4", "cls*", SCORED, 0, 40},
};

static double difference(llm_training *t, float *x, float h) {
    const float was = *x, up = was + h, down = was - h;
    *x = up;
    const double above = loss_of(t, NULL);
    *x = down;
    const double below = loss_of(t, NULL);
    *x = was;
    return (above - below) / ((double)up - (double)down);
}

LONG_TEST(gradients) {
    enum { SAMPLES = 24 };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        fixture f;
        REQUIRE(open_fixture(&f, cases[c].family, cases[c].pooling, cases[c].with));
        const llm_training_params p = {
            .dim = dims, .n_dims = (size_t)cases[c].n_dims, .n_ubatch = cases[c].n_ubatch};
        llm_training *t = train_on(&f, f.reference, cases[c].lines, p, false);
        REQUIRE(t);
        const double loss = learn(t);
        double largest = 0, worst = 0;
        CHECK_MSG(loss > 0 && fabs(loss - loss_of(t, NULL)) < 1e-9 * loss, "case %zu: %g, %g", c,
                  loss, loss_of(t, NULL));
        const int n = llm_trainer_n_weights(t->trainer);
        for (int k = 0; k < n; k++) {
            const llm_train_weight w = llm_trainer_weight(t->trainer, k);
            for (int64_t i = 0; i < llm_train_weight_count(&w); i++)
                largest = fmax(largest, fabs((double)w.grad[i]));
        }
        /* a weight's number with a large gradient, and any */
        for (int s = 0; s < SAMPLES; s++) {
            const llm_train_weight w = llm_trainer_weight(t->trainer, s % n);
            const int64_t all = llm_train_weight_count(&w);
            int64_t at = (int64_t)s * 977 % all;
            for (int64_t i = 0; i < all && s % 2; i++)
                at = fabs((double)w.grad[i]) > fabs((double)w.grad[at]) ? i : at;
            worst = fmax(worst, fabs(difference(t, &w.data[at], 1e-3F) - (double)w.grad[at]));
        }
        CHECK_MSG(largest > 0.01 && worst < 1e-3 * largest, "case %zu: %g of %g", c, worst,
                  largest);
        llm_training_close(t);
        close_fixture(&f);
    }
}

/* --- losses ----------------------------------------------------------------------------------- */

/* The vectors that the model makes of texts, alone: as `embed` of another program would give them. */
static void vector_of(llm_training *t, int64_t item, double *out) {
    int32_t token[64], target[64];
    float row[64 * N_EMBD];
    const int64_t n = llm_train_data_length(t->data, item);
    llm_train_data_get(t->data, item, token, target, NULL);
    const llm_train_batch b = {.token = token, .target = NULL, .length = &n, .n_seq = 1};
    double length = 0;
    CHECK_OK(llm_trainer_look(t->trainer, &b, row, &err), &err);
    memset(out, 0, N_EMBD * sizeof *out);
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < N_EMBD; k++)
            out[k] += (double)row[i * N_EMBD + k];
    for (int k = 0; k < N_EMBD; k++)
        length += out[k] * out[k];
    for (int k = 0; k < N_EMBD; k++)
        out[k] /= sqrt(length);
}

static double times(const double *a, const double *b) {
    double sum = 0;
    for (int k = 0; k < N_EMBD; k++)
        sum += a[k] * b[k];
    return sum;
}

/* Which texts are compared with which: the groups of MATCHES are items 0 1, 2 3 4, 5 6 7 8, 9 10 11 and 12 13 14 ('A ' has letters; a query for each
 * positive). */
TEST(negatives) {
    static const int query[] = {0, 2, 5, 9, 12};
    /* of each query what is compared besides the right one: no queries; not what is equal to the right one; and not what belongs to an equal
     * query, as those of 2, 9 and 12 are */
    static const int other[][12] = {{3, 4, 6, 7, 8, 10, 11, 14, -1},
                                    {1, 4, 6, 7, 8, 11, 14, -1},
                                    {1, 3, 4, 7, 8, 10, 11, 13, 14, -1},
                                    {1, 4, 6, 7, 8, 11, 14, -1},
                                    {4, 6, 7, 8, 11, 14, -1}};
    static double v[15][N_EMBD];
    fixture f;
    double sum = 0, right, n_right = 0;
    REQUIRE(open_fixture(&f, "bert", ".pooling_type=1", NULL));
    llm_training *t =
        train_on(&f, f.cpu, MATCHES, (llm_training_params){.contrast_temp = 0.1}, false);
    REQUIRE(t);
    REQUIRE(llm_train_data_n(t->data) == 15);
    for (int i = 0; i < 15; i++)
        vector_of(t, i, v[i]);
    for (int q = 0; q < 5; q++) {
        const double own = times(v[query[q]], v[query[q] + 1]) / 0.1;
        double all = exp(own);
        bool best = true;
        for (int k = 0; other[q][k] >= 0; k++) {
            const double x = times(v[query[q]], v[other[q][k]]) / 0.1;
            all += exp(x);
            best &= x < own;
        }
        sum += log(all) - own;
        n_right += best;
    }
    const double loss = loss_of(t, &right);
    CHECK_MSG(fabs(loss - sum / 5) < 1e-6 * loss, "%.9g, %.9g", loss, sum / 5);
    CHECK(right == n_right);
    llm_training_close(t);
    close_fixture(&f);
}

TEST(order_of_scores) {
    static const double score[] = {0.8, 0.25, 0.25, 0};
    fixture f;
    double c[4], sum = 1;
    REQUIRE(open_fixture(&f, "bert", ".pooling_type=1", NULL));
    llm_training *t = train_on(&f, f.cpu, SCORED, (llm_training_params){0}, false);
    REQUIRE(t);
    for (int i = 0; i < 4; i++) {
        double a[N_EMBD], b[N_EMBD];
        vector_of(t, 2 * i, a);
        vector_of(t, 2 * i + 1, b);
        c[i] = times(a, b) / 0.05;
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            sum += score[i] > score[j] ? exp(c[j] - c[i]) : 0;
    const double loss = loss_of(t, NULL);
    CHECK_MSG(fabs(loss - log(sum)) < 1e-5 * loss, "%.9g, %.9g", loss, log(sum));
    llm_training_close(t);
    close_fixture(&f);
}

/* --- learning --------------------------------------------------------------------------------- */

/* Which word belongs to which is learned by heart; runs of few tokens take the steps of one large one. */
TEST(what_belongs_together_is_learned) {
    static const char *const word[] = {"red", "dog", "sun", "tree", "cat", "rain", "book", "fish"};
    for (int ranks = 0; ranks < 2; ranks++) {
        char lines[2000] = "";
        for (int i = 0; i < 8; i++)
            snprintf(lines + strlen(lines), sizeof lines - strlen(lines),
                     "{'query': 'the %s', 'positive': 'a %s', 'negative': 'a %s'}\n", word[i],
                     word[(i + 3) % 8], word[(i + 5) % 8]);
        fixture f;
        double before, after, loss[2][2];
        REQUIRE(open_fixture(&f, "bert", ranks ? ".pooling_type=4" : ".pooling_type=1",
                             ranks ? "cls*" : NULL));
        for (int small = 0; small < 2; small++) {
            const llm_training_params p = {
                .n_ubatch = small ? 16 : 512, .n_steps = 60, .rate = 1e-2, .n_seq = 8};
            llm_training *t = train_on(&f, f.cpu, lines, p, false);
            llm_training_report r = {.size = sizeof r};
            REQUIRE(t);
            loss[small][0] = loss_of(t, &before);
            for (int i = 0; i < (small ? 3 : 60); i++) {
                CHECK_OK(llm_training_step(t, &r, &err), &err);
                if (i == 2)
                    loss[small][1] = loss_of(t, NULL);
            }
            if (!small) {
                CHECK_MSG(loss_of(t, &after) < 0.2 * loss[0][0] && after == 8 && before < 8,
                          "%g of %g, %g right of %g", loss_of(t, NULL), loss[0][0], after, before);
                CHECK_MSG(r.accuracy == 1, "%g", r.accuracy);
            }
            llm_training_close(t);
        }
        for (int k = 0; k < 2; k++)
            CHECK_MSG(fabs(loss[0][k] - loss[1][k]) < 1e-4 * loss[0][k], "%d: %.9g, %.9g", k,
                      loss[0][k], loss[1][k]);
        close_fixture(&f);
    }
}

TEST(mistakes) {
    static const int64_t large[] = {N_EMBD + 1};
    static const struct {
        const char *pooling, *with, *lines;
        llm_training_params p;
        const char *says;
    } wrong[] = {
        {".pooling_type=4",
         "cls*",
         "{'query': 'a', 'positive': 'b'}\n",
         {0},
         "without a text that does not belong to the others"},
        {".pooling_type=4",
         "cls*",
         "{'sentence1': 'a', 'sentence2': 'b', 'score': 3}\n",
         {0},
         "\"score\" is 3; a model that scores learns probabilities"},
        {".pooling_type=4",
         "cls*",
         RANKED,
         {.contrast_temp = 0.1},
         "contrast_temp (--contrast-temp) are for texts"},
        {".pooling_type=0", NULL, MATCHES, {0}, "(none: the file does not say"},
        {".pooling_type=1",
         NULL,
         MATCHES,
         {.dim = large, .n_dims = 1},
         "dim (--dims) is 17; the model's vectors have 1 to 16"},
        {".pooling_type=1", NULL, MATCHES, {.pooling = "max"}, "are pooled in another way"},
        {".pooling_type=1", NULL, MATCHES, {.pooling = "most"}, "'most' is none of"},
        {".pooling_type=1",
         NULL,
         MATCHES SCORED,
         {0},
         "data.jsonl:5: this is two texts with a score, and what comes before is a text with one"},
        {".pooling_type=1",
         NULL,
         "{'query': 'a', 'positive': 3}\n",
         {0},
         "\"positive\" must be a string or a list of strings, not a number"},
        {".pooling_type=1",
         NULL,
         "{'query': 'a', 'pos': ['b'], 'neg': [{}]}\n",
         {0},
         "\"neg\" must be a string or a list of strings, not a list with an object"},
        {".pooling_type=1",
         NULL,
         "{'sentence1': 'a', 'sentence2': 'b', 'score': 'x'}\n",
         {0},
         "need a number \"score\" (or \"label\")"},
        {".pooling_type=1", NULL, "{'query': ' ', 'positive': 'b'}\n", {0}, "1 without text"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        fixture f;
        REQUIRE(open_fixture(&f, "bert", wrong[i].pooling, wrong[i].with));
        CHECK_MSG(!train_on(&f, f.cpu, wrong[i].lines, wrong[i].p, true), "case %zu", i);
        CHECK_HAS(err.msg, wrong[i].says);
        close_fixture(&f);
    }
}

/* An object cannot become more items than its size lets expect. */
TEST(many_texts_of_one_query) {
    enum { MANY = 300 };
    char *lines = malloc(MANY * 12 + 200), *end = lines;
    fixture f;
    REQUIRE(lines && open_fixture(&f, "bert", ".pooling_type=1", NULL));
    for (int k = 0; k < 2; k++) {
        end += sprintf(end, k == 0 ? "{'query': 'a', 'pos': ['b'" : "], 'neg': ['c'");
        for (int i = 1; i < MANY; i++)
            end += sprintf(end, ", 'b'");
    }
    sprintf(end, "]}\n");
    CHECK(!train_on(&f, f.cpu, lines, (llm_training_params){0}, true));
    CHECK_HAS(err.msg, "300 texts that belong to the query, each with 300 that do not");
    free(lines);
    close_fixture(&f);
}
