/* Layers that guess ahead learn: gradients against differences of the loss, by the reference backend; what guesses read; that all
 * else of the model stays as it is; and models that get such layers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/backends.h"
#include "ggl/internal/gguf.h"
#include "test.h"
#include "training/training.h"

static ggl_error err;

enum { WIDTH = 16 };

/* --- models ----------------------------------------------------------------------------------- */

#define TRUNK                                                                                      \
    "arch tiny\nlanguage 2\ntoken_embd [16, n_vocab]\nx = token_embd[token]\nlayer l < 2:\n"       \
    "  h = heads(x, 2)\n  x = x + attention(h, h, h)\nlogits = linear(x, token_embd)\n"
/* Layers that guess; `over`: the stage's options, `name`: of their tensors. */
#define LAYERS(over, name)                                                                         \
    TRUNK "stage draft over x(" over ") \"" name ".\":\n  mix [32, 16]\n  out [16, 16]\n"          \
          "  h = linear(concat(token_embd[token], x), mix)\n  z = heads(h, 2)\n"                   \
          "  return h + linear(attention(z, z, z), out)\nguess = linear(draft, token_embd)\n"
#define ONE      LAYERS("ahead = 1", "ahead")
#define IN_A_ROW LAYERS("ahead = 1, layer k < 2", "ahead.{k}")
#define APART    LAYERS("ahead = k + 1, layer k < 2", "ahead.{k}")

/* A model that guesses for TRUNK, whose token embedding it reads. */
#define OTHER                                                                                      \
    "arch tinyguess\nlanguage 2\nn_draft = size(\"d2t\") ?? n_vocab\n"                             \
    "input taken [32] from layers([0, 2])\nfc [32, 16]\ny = linear(taken, fc)\n"                   \
    "token_embd [16, n_vocab]\nstage draft over y(ahead = 1, from = 1):\n  mix [32, 16]\n"         \
    "  out [16, 16]\n  h = linear(concat(token_embd[token], y), mix)\n  z = heads(h, 2)\n"         \
    "  return h + linear(attention(z, z, z), out)\noutput [16, n_draft]\n"                         \
    "guess = linear(draft, output)\nd2t [n_draft] ? from \"d2t\"\n"                                \
    "if has(d2t): guess_token = d2t\n"

typedef struct fixture {
    ggl_gguf *vocab, *base;
    llm_model *m, *draft;
    llm_tokenizer *t;
    ggl_backend *cpu, *reference;
} fixture;

static bool make_model(const char *text, const char *path, const ggl_gguf *vocab,
                       const ggl_gguf *base) {
    llm_arch *arch;
    if (!CHECK_OK(llm_arch_parse(&arch, text, strlen(text), "tiny.arch", &err), &err))
        return false;
    const llm_train_new p = {.size = sizeof p,
                             .arch = arch,
                             .name = "tiny",
                             .vocab = vocab,
                             .base = base,
                             .descriptor = {text, strlen(text)},
                             .sigma = 0.3,
                             .seed = base ? 5 : 4};
    const ggl_status st = llm_train_new_model(&p, path, &err);
    llm_arch_free(arch);
    return CHECK_OK(st, &err);
}

/* A model with the tokenizer of the built-in one, to which the layers of `text` are added. */
static bool open_fixture(fixture *f, const char *text) {
    const ggl_gguf_params meta = {.size = sizeof meta, .meta_only = true};
    char base[1024], with[1024];
    snprintf(base, sizeof base, "%s", test_path("base.gguf"));
    snprintf(with, sizeof with, "%s", test_path("with.gguf"));
    *f = (fixture){0};
    return CHECK_OK(ggl_gguf_open(&f->vocab, BUILTIN_MODEL, &meta, &err), &err) &&
           make_model(TRUNK, base, f->vocab, NULL) &&
           CHECK_OK(ggl_gguf_open(&f->base, base, NULL, &err), &err) &&
           (strcmp(text, TRUNK) == 0 || make_model(text, with, NULL, f->base)) &&
           CHECK_OK(llm_model_open(&f->m, strcmp(text, TRUNK) == 0 ? base : with, NULL, &err),
                    &err) &&
           CHECK_OK(llm_tokenizer_new(&f->t, llm_model_file(f->m), &err), &err) &&
           CHECK_OK(ggl_backend_open(&f->cpu, "cpu", NULL, &err), &err) &&
           CHECK_OK(ggl_backend_open(&f->reference, "reference", NULL, &err), &err);
}

static void close_fixture(fixture *f) {
    llm_tokenizer_free(f->t);
    llm_model_free(f->m);
    llm_model_free(f->draft);
    ggl_gguf_close(f->base);
    ggl_gguf_close(f->vocab);
    ggl_backend_close(f->cpu);
    ggl_backend_close(f->reference);
}

#define TEXT "Tom had a red ball.|The cat sat on the mat, and it was happy.|Rain fell down|A dog"

static ggl_status open_training(llm_training **t, const fixture *f, ggl_backend *on,
                                const char *text, llm_training_params p) {
    const char *path = test_path(text[0] == '{' ? "data.jsonl" : "data.txt");
    CHECK(test_write_file(path, text, strlen(text)));
    p.size = sizeof p;
    p.file = &path;
    p.n_files = 1;
    p.separator = text[0] == '{' ? NULL : "|";
    p.draft = true;
    p.valid_share = -1;
    p.n_ctx = p.n_ctx ? p.n_ctx : 64;
    const train_parts of = {.model = f->m,
                            .draft = f->draft,
                            .tokenizer = f->t,
                            .backend = on,
                            .reference = f->reference};
    return llm_training_new(t, &of, &p, &err);
}

/* All items as one step. */
static train_sum of_all(llm_training *t, bool learns) {
    int64_t n, *item = llm_train_items_of(t, 0, llm_train_order_n(t->order), &n);
    train_sum sum = {0};
    const train_step_items all = {.item = item, .n = n, .end = n};
    CHECK_OK(learns ? llm_train_learn(t, &all, llm_train_total(t, item, n), &sum, &err)
                    : llm_train_measure(t, t->data, item, n, &sum, &err),
             &err);
    ggl_free(item);
    return sum;
}

static double loss_of(llm_training *t, bool learns) {
    const train_sum s = of_all(t, learns);
    return s.loss / s.n;
}

/* --- gradients -------------------------------------------------------------------------------- */

static const struct {
    const char *model;
    int64_t depth, n_ubatch;
    double share;
} cases[] = {{ONE, 1, 0, 0},       {ONE, 2, 0, 0},        {ONE, 4, 24, 0.6},
             {IN_A_ROW, 2, 24, 0}, {IN_A_ROW, 4, 0, 0.3}, {APART, 3, 24, 0}};

static double largest_of(llm_training *t) {
    double largest = 0;
    for (int k = 0; k < llm_trainer_n_weights(t->trainer); k++) {
        const llm_train_weight w = llm_trainer_weight(t->trainer, k);
        for (int64_t i = 0; i < llm_train_weight_count(&w); i++)
            largest = fmax(largest, fabs((double)w.grad[i]));
    }
    return largest;
}

static double difference(llm_training *t, float *x, float h) {
    const float was = *x, up = was + h, down = was - h;
    *x = up;
    const double above = loss_of(t, false);
    *x = down;
    const double below = loss_of(t, false);
    *x = was;
    return (above - below) / ((double)up - (double)down);
}

/* Compares gradients of a training with differences. */
static void check_gradients(llm_training *t, const char *what, int64_t n_weights) {
    enum { SAMPLES = 12 };
    const double loss = loss_of(t, true), again = loss_of(t, false), largest = largest_of(t);
    double worst = 0;
    CHECK_MSG(loss > 0 && fabs(loss - again) < 1e-5 * loss, "%s: %g, %g", what, loss, again);
    const int n = llm_trainer_n_weights(t->trainer);
    CHECK_INT(n, n_weights);
    /* of each weight a number with a large gradient, and any */
    for (int s = 0; s < SAMPLES; s++) {
        const llm_train_weight w = llm_trainer_weight(t->trainer, s % n);
        const int64_t all = llm_train_weight_count(&w);
        int64_t at = (int64_t)s * 977 % all;
        for (int64_t i = 0; i < all && s / n % 2 == 0; i++)
            at = fabs((double)w.grad[i]) > fabs((double)w.grad[at]) ? i : at;
        worst = fmax(worst, fabs(difference(t, &w.data[at], 2e-4F) - (double)w.grad[at]));
    }
    CHECK_MSG(largest > 1e-3 && worst < 2e-3 * largest, "%s: %g of %g", what, worst, largest);
}

TEST(gradients) {
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        fixture f;
        llm_training *t;
        char what[32];
        snprintf(what, sizeof what, "case %zu", c);
        REQUIRE(open_fixture(&f, cases[c].model));
        const llm_training_params p = {.draft_depth = cases[c].depth,
                                       .n_ubatch = cases[c].n_ubatch,
                                       .teacher_share = cases[c].share};
        REQUIRE_OK(open_training(&t, &f, f.reference, TEXT, p), &err);
        check_gradients(t, what, strstr(cases[c].model, "layer k") ? 4 : 2);
        llm_training_close(t);
        close_fixture(&f);
    }
}

/* --- what guesses read ------------------------------------------------------------------------ */

enum { LENGTH = 3 };

/* The cross entropy of the scores with the model's probabilities. */
static double entropy(const float *score, const float *logits, int64_t n) {
    double all = 0, every = 0, said = 0;
    for (int64_t k = 0; k < n; k++) {
        all += exp((double)score[k]);
        every += exp((double)logits[k]);
    }
    for (int64_t k = 0; k < n; k++)
        said += exp((double)logits[k]) / every * (double)score[k];
    return log(all) - said;
}

/* Scores of elements 0 .. n - 1 that read row[n], and what the layer returns. */
static void guess(llm_training *t, const int32_t *token, int64_t n, int layer, const float *row,
                  float *told, float *score) {
    const llm_train_batch b = {
        .token = token, .length = &n, .n_seq = 1, .layer = layer, .row = row};
    CHECK_OK(llm_trainer_guess(t->trainer, &b, told, score, &err), &err);
}

/* The sum of the losses of all guesses, of n_layers layers. Of each pass the elements before d are as in use: they read what the model or a layer said of the token
 * before. */
static double chain(llm_training *t, const int32_t *token, int n_layers, bool apart) {
    const int64_t n = llm_trainer_n_vocab(t->trainer), length = LENGTH;
    const double share[] = {1 / (1 + 0.7 + 0.49), 0.7 / (1 + 0.7 + 0.49), 0.49 / (1 + 0.7 + 0.49)};
    float y[LENGTH * WIDTH], row[LENGTH * WIDTH], told[LENGTH * WIDTH],
        *logits = calloc((size_t)(LENGTH * n), sizeof *logits),
        *score = calloc((size_t)(LENGTH * n), sizeof *score);
    const llm_train_batch b = {.token = token, .length = &length, .n_seq = 1};
    double sum = 0;
    CHECK_OK(llm_trainer_hear(t->trainer, &b, y, logits, &err), &err);
    for (int d = 0; d < 3; d++) {
        const int layer = d < n_layers ? d : n_layers - 1;
        const bool reads_model = d == 0 || (apart && d < n_layers);
        const int late = reads_model ? d + 1 : 1;
        memset(row, 0, sizeof row);
        memcpy(row + late * WIDTH, reads_model ? y : told,
               (size_t)((LENGTH - late) * WIDTH) * sizeof *row);
        guess(t, token, LENGTH, layer, row, told, score);
        for (int i = d; i < LENGTH; i++)
            sum += share[d] * entropy(score + i * n, logits + i * n, n);
    }
    free(logits);
    free(score);
    return sum;
}

TEST(what_guesses_read) {
    static const struct {
        const char *model;
        int n_layers;
        bool apart;
    } layers[] = {{ONE, 1, false}, {IN_A_ROW, 2, false}, {APART, 2, true}};
    for (size_t c = 0; c < sizeof layers / sizeof *layers; c++) {
        fixture f;
        llm_training *t;
        int32_t token[LENGTH + 8], target[LENGTH + 8];
        REQUIRE(open_fixture(&f, layers[c].model));
        const llm_training_params p = {.draft_depth = 3, .n_ctx = LENGTH};
        REQUIRE_OK(open_training(&t, &f, f.reference, "the cat", p), &err);
        REQUIRE(llm_train_data_length(t->data, 0) == LENGTH);
        llm_train_data_get(t->data, 0, token, target, NULL);
        int64_t item = 0;
        train_sum sum = {0};
        CHECK_OK(llm_train_measure(t, t->data, &item, 1, &sum, &err), &err);
        const double expected = chain(t, token, layers[c].n_layers, layers[c].apart);
        CHECK_MSG(fabs(sum.loss - expected) < 1e-5 * expected, "%zu: %.9g, %.9g", c, sum.loss,
                  expected);
        llm_training_close(t);
        close_fixture(&f);
    }
}

/* --- a model that guesses for another one ----------------------------------------------------- */

enum { SOME = 700 };

/* Opens one beside TRUNK: with scores of all tokens, or of some. */
static bool open_other(fixture *f, bool some) {
    static float numbers[WIDTH * 2048];
    static int64_t token[SOME];
    const uint32_t n_vocab = 2048;
    const int64_t n = some ? SOME : n_vocab;
    const char *path = test_path("draft.gguf");
    if (!open_fixture(f, TRUNK))
        return false;
    for (int i = 0; i < WIDTH * 2048; i++)
        numbers[i] = 0.4f * sinf((float)i * 1.7f);
    for (int i = 0; i < SOME; i++) /* in no order */
        token[i] = i * 997 % 2048;
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_gguf_put_string(w, "general.architecture", "tinyguess", 9);
    ggl_gguf_put_string(w, "general.descriptor", OTHER, strlen(OTHER));
    ggl_gguf_put(w, "tinyguess.vocab_size", GGL_GGUF_U32, false, &n_vocab, 1);
    ggl_gguf_put_tensor(w, "fc.weight", GGL_F32, 2, (int64_t[]){2 * WIDTH, WIDTH}, numbers + 5);
    ggl_gguf_put_tensor(w, "mix.weight", GGL_F32, 2, (int64_t[]){2 * WIDTH, WIDTH}, numbers + 77);
    ggl_gguf_put_tensor(w, "out.weight", GGL_F32, 2, (int64_t[]){WIDTH, WIDTH}, numbers + 99);
    ggl_gguf_put_tensor(w, "output.weight", GGL_F32, 2, (int64_t[]){WIDTH, n}, numbers);
    if (some)
        ggl_gguf_put_tensor(w, "d2t", GGL_I64, 1, (int64_t[]){SOME}, token);
    const bool ok = CHECK_OK(ggl_gguf_writer_write(w, path, &err), &err) &&
                    CHECK_OK(llm_model_open(&f->draft, path, NULL, &err), &err);
    ggl_gguf_writer_free(w);
    return ok;
}

/* The loss of a text of LENGTH + 1 tokens, of which the first is not run. */
static double other_chain(llm_training *t, const int32_t *token) {
    const double share[2] = {1 / 1.7, 0.7 / 1.7};
    const int64_t n = 2048, length = LENGTH + 1, run = LENGTH;
    float y[(LENGTH + 1) * 2 * WIDTH],
        row[LENGTH * WIDTH] = {0}, told[LENGTH * WIDTH],
                     *logits = calloc((size_t)(length * n), sizeof *logits),
                     *score = calloc((size_t)(length * n), sizeof *score);
    llm_train_batch b = {.token = token, .length = &length, .n_seq = 1};
    double sum = 0;
    CHECK_OK(llm_trainer_hear(t->trainer, &b, y, logits, &err), &err);
    b = (llm_train_batch){.token = token + 1,
                          .length = &run,
                          .n_seq = 1,
                          .row = row,
                          .feature = y,
                          .given = (const float[LENGTH]){0}};
    CHECK_OK(llm_trainer_guess(t->trainer, &b, told, score, &err), &err);
    for (int i = 0; i < LENGTH; i++)
        sum += share[0] * entropy(score + i * n, logits + (i + 1) * n, n);
    memcpy(row + WIDTH, told, (LENGTH - 1) * WIDTH * sizeof *row);
    b.given = (const float[LENGTH]){0, 1, 1};
    CHECK_OK(llm_trainer_guess(t->trainer, &b, told, score, &err), &err);
    for (int i = 1; i < LENGTH; i++)
        sum += share[1] * entropy(score + i * n, logits + (i + 1) * n, n);
    free(logits);
    free(score);
    return sum;
}

TEST(a_model_that_guesses_for_another) {
    for (int some = 0; some < 2; some++) {
        fixture f;
        llm_training *t;
        ggl_gguf *out;
        const char *path;
        llm_training_report r = {.size = sizeof r};
        REQUIRE(open_other(&f, some));
        for (int mixed = 0; mixed < 2; mixed++) {
            const llm_training_params p = {
                .draft_depth = 3, .n_ubatch = mixed ? 24 : 0, .teacher_share = mixed ? 0.5 : 0};
            REQUIRE_OK(open_training(&t, &f, f.reference, TEXT, p), &err);
            check_gradients(t, some ? "scores of some" : "scores of all", 4);
            CHECK_INT(llm_train_memory(t).model, WIDTH * 2048 * sizeof(float)); /* all of TRUNK */
            llm_training_close(t);
        }
        int32_t token[LENGTH + 8], target[LENGTH + 8];
        const int64_t item = 0;
        train_sum sum = {0};
        REQUIRE_OK(open_training(&t, &f, f.reference, "the cat sat",
                                 (llm_training_params){.n_ctx = LENGTH + 1}),
                   &err);
        REQUIRE(llm_train_data_length(t->data, 0) == LENGTH + 1);
        llm_train_data_get(t->data, 0, token, target, NULL);
        CHECK_OK(llm_train_measure(t, t->data, &item, 1, &sum, &err), &err);
        if (!some) {
            const double expected = other_chain(t, token);
            CHECK_MSG(fabs(sum.loss - expected) < 1e-5 * expected, "%.9g, %.9g", sum.loss,
                      expected);
        }
        llm_training_close(t);
        /* what is written is that model */
        REQUIRE_OK(open_training(&t, &f, f.cpu, TEXT, (llm_training_params){.n_steps = 2}), &err);
        CHECK_OK(llm_training_step(t, &r, &err), &err);
        path = test_path("out.gguf");
        CHECK_OK(llm_training_write(t, path, false, &err), &err);
        REQUIRE_OK(ggl_gguf_open(&out, path, NULL, &err), &err);
        CHECK_INT(ggl_gguf_n_tensors(out), 4 + some);
        CHECK(!ggl_gguf_find_tensor(out, "token_embd.weight"));
        ggl_gguf_close(out);
        llm_training_close(t);
        close_fixture(&f);
    }
}

/* --- learning --------------------------------------------------------------------------------- */

/* True if the files have the same values and tensors, but for tensors of layers that guess. */
static void check_rest(const ggl_gguf *a, const ggl_gguf *b) {
    size_t n = 0;
    for (size_t i = 0; i < ggl_gguf_n_tensors(a); i++) {
        const ggl_gguf_tensor *x = ggl_gguf_tensor_at(a, i);
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)x->name.n, x->name.s);
        const ggl_gguf_tensor *y = ggl_gguf_find_tensor(b, name);
        const bool same =
            y && x->type == y->type && x->size == y->size && memcmp(x->data, y->data, x->size) == 0;
        n += !same;
        CHECK_MSG(same == (strncmp(name, "ahead.", 6) != 0), "%s", name);
    }
    CHECK(n == 2 && ggl_gguf_n_values(a) == ggl_gguf_n_values(b));
}

TEST(only_the_layer_learns) {
    fixture f;
    llm_training *t, *again;
    llm_training_report r = {.size = sizeof r}, s = r;
    ggl_gguf *out;
    char path[1024], state[1024];
    snprintf(path, sizeof path, "%s", test_path("out.gguf"));
    snprintf(state, sizeof state, "%s", test_path("state"));
    REQUIRE(open_fixture(&f, ONE));
    const llm_training_params p = {.n_steps = 60, .rate = 4e-2, .n_ubatch = 40};
    REQUIRE_OK(open_training(&t, &f, f.cpu, TEXT, p), &err);
    CHECK_INT(t->p.draft_depth, 2);
    const train_sum before = of_all(t, false);
    for (int i = 0; i < 60; i++) {
        CHECK_OK(llm_training_step(t, &r, &err), &err);
        CHECK(isnan(r.accuracy));
        if (i == 40)
            CHECK_OK(llm_training_save(t, state, &err), &err);
    }
    const train_sum after = of_all(t, false);
    CHECK_MSG(after.loss < 0.95 * before.loss &&
                  llm_train_accuracy(&after) > llm_train_accuracy(&before) + 0.2,
              "%g of %g, right %g, %g", after.loss, before.loss, llm_train_accuracy(&before),
              llm_train_accuracy(&after));
    CHECK_OK(llm_training_write(t, path, false, &err), &err);
    REQUIRE_OK(ggl_gguf_open(&out, path, NULL, &err), &err);
    check_rest(llm_model_file(f.m), out);
    ggl_gguf_close(out);

    REQUIRE_OK(open_training(&again, &f, f.cpu, TEXT, p), &err);
    CHECK_OK(llm_training_resume(again, state, &err), &err);
    while (!s.is_last && CHECK_OK(llm_training_step(again, &s, &err), &err))
        ;
    for (int k = 0; k < llm_trainer_n_weights(t->trainer); k++) {
        const llm_train_weight a = llm_trainer_weight(t->trainer, k),
                               b = llm_trainer_weight(again->trainer, k);
        CHECK(memcmp(a.data, b.data, (size_t)llm_train_weight_count(&a) * sizeof *a.data) == 0);
    }
    llm_training_close(again);
    llm_training_close(t);
    close_fixture(&f);
}

/* --- models that get layers ------------------------------------------------------------------- */

TEST(layers_are_added) {
    fixture f;
    REQUIRE(open_fixture(&f, IN_A_ROW));
    const ggl_gguf *with = llm_model_file(f.m);
    CHECK_INT(ggl_gguf_n_tensors(with), ggl_gguf_n_tensors(f.base) + 4);
    CHECK_INT(ggl_gguf_n_values(with), ggl_gguf_n_values(f.base));
    for (size_t i = 0; i < ggl_gguf_n_tensors(f.base); i++) {
        const ggl_gguf_tensor *a = ggl_gguf_tensor_at(f.base, i), *b = ggl_gguf_tensor_at(with, i);
        CHECK(a->type == b->type && a->size == b->size && memcmp(a->data, b->data, a->size) == 0);
    }
    llm_arch *arch;
    REQUIRE_OK(llm_arch_parse(&arch, IN_A_ROW, strlen(IN_A_ROW), "tiny.arch", &err), &err);
    llm_train_new p = {.size = sizeof p, .arch = arch, .name = "tiny", .base = with};
    CHECK_INT(llm_train_new_model(&p, test_path("more.gguf"), &err), GGL_USAGE);
    CHECK_HAS(err.msg, "nothing is to be added");
    p.name = "other";
    CHECK_INT(llm_train_new_model(&p, test_path("more.gguf"), &err), GGL_USAGE);
    CHECK_HAS(err.msg, "has the architecture 'tiny', and the descriptor is for 'other'");
    llm_arch_free(arch);
    close_fixture(&f);
}

TEST(mistakes) {
    static const char *const trunk[] = {"token_embd*"};
    static const struct {
        const char *model, *text;
        llm_training_params p;
        const char *says;
    } wrong[] = {
        {TRUNK, TEXT, {0}, "no layers that guess"},
        {ONE, TEXT, {.learn = trunk, .n_learn = 1}, "'token_embd*' fits the name of no weight"},
        {ONE,
         TEXT,
         {.draft_depth = 17},
         "draft_depth (--draft-depth) is 17; it must be from 0 to 16"},
        {IN_A_ROW,
         TEXT,
         {.draft_depth = 1},
         "draft_depth (--draft-depth) is 1; the model has 2 layers that guess"},
        {ONE, "{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\"}\n", {0}, "preferences"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        fixture f;
        llm_training *t;
        REQUIRE(open_fixture(&f, wrong[i].model));
        CHECK(open_training(&t, &f, f.cpu, wrong[i].text, wrong[i].p) != GGL_OK);
        CHECK_HAS(err.msg, wrong[i].says);
        close_fixture(&f);
    }
    fixture f;
    llm_training *t;
    const int32_t token[2] = {1, 2};
    const int64_t n = 2;
    float row[2 * WIDTH] = {0};
    REQUIRE(open_fixture(&f, ONE));
    REQUIRE_OK(open_training(&t, &f, f.cpu, TEXT, (llm_training_params){0}), &err);
    llm_train_batch b = {.token = token, .target = token, .length = &n, .n_seq = 1};
    CHECK_INT(llm_trainer_add(t->trainer, &b, NULL, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "lacks the rows");
    b.row = row;
    b.layer = 1;
    CHECK_INT(llm_trainer_look(t->trainer, &b, row, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "layer 1 that guesses does not exist");
    llm_training_close(t);
    close_fixture(&f);
}
