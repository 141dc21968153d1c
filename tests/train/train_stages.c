/* Models whose tokens read something learn: eyes, ears and encoders. Gradients against differences of the loss, by the reference backend; the same bits for
 * any threads and runs; and the loss against that of a session. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/backends.h"
#include "llm/internal/adapter.h"
#include "llm/internal/trainer.h"
#include "test.h"

enum { N_CTX = 24, N_BATCH = 48, N_SEQ = 3, N = 9 + 5 + 12, SAMPLES = 14, MOST = 20 };

/* --- models ----------------------------------------------------------------------------------- */

/* A text model that takes rows, and sees those of a picture together. */
#define TEXT(given)                                                                                \
    "arch tiny\nlanguage 2\ntoken_embd [16, n_vocab]\nx = " given "\nlayer l < 2:\n"               \
    "  h = heads(x, 2)\n  x = x + attention(h, h, h)\n  w [16, 16]\n  x = x + tanh(linear(x, "     \
    "w))\n"                                                                                        \
    "logits = linear(x, token_embd)\n"

/* An eye: a convolution, a table of positions, a layer that sees all, and rows that are joined. A tensor of four dimensions learns, too. */
#define EYE                                                                                        \
    "arch \"tinyeye\"\nlanguage 2\ninput heard [6] from floats(rows = 20)\n"                       \
    "stage wide over heard \"enc.\":\n  conv1 [3, 6, 8]\n"                                         \
    "  patch_embd [2, 3, 1, 8]\n"                                                                  \
    "  return tanh(conv_rows(heard, conv1)) + linear(heard, reshape(patch_embd, 6, 8))\n"          \
    "stage enc over wide(every = 2, from = 1) \"enc.\":\n  conv2 [3, 8, 8]\n"                      \
    "  position_embd [8, 20]\n  x = conv_rows(wide, conv2) + position_embd[pos]\n"                 \
    "  attn_q [8, 8]\n  attn_k [8, 8]\n  attn_v [8, 8]\n"                                          \
    "  return x + attention(heads(linear(x, attn_q), 2), heads(linear(x, attn_k), 2), "            \
    "heads(linear(x, attn_v), 2))\n"                                                               \
    "stage joined over enc(every = 2, count = 3) \"mm.\":\n  join [16, 16] bias\n"                 \
    "  return linear(flat(around(enc, 0, 2)), join)\nrows = joined\n"

/* Tokens that read rows by attention with fewer heads of keys, and a cap. */
#define EAR                                                                                        \
    "arch \"tinyear\"\nlanguage 2\ninput heard [6] from floats(rows = 20)\n"                       \
    "stage enc over heard(every = 2) \"enc.\":\n  conv [3, 6, 16]\n"                               \
    "  x = conv_rows(heard, conv)\n  q [16, 16]\n"                                                 \
    "  return x + attention(heads(linear(x, q), 2), heads(x, 2), heads(x, 2))\n"                   \
    "token_embd [16, n_vocab]\nx = token_embd[token]\nlayer l < 2:\n  h = heads(x, 2)\n"           \
    "  x = x + attention(h, h, h)\n  ck [16, 8]\n  cv [16, 8]\n"                                   \
    "  read = cache(heads(linear(enc, ck), 2), heads(linear(enc, cv), 2))\n  cq [16, 16]\n"        \
    "  co [16, 16]\n"                                                                              \
    "  x = x + linear(flat(attend(heads(linear(x, cq), 4), read, cap = 3)), co)\n"                 \
    "logits = linear(x, token_embd)\n"

/* Rows in the order of windows of a picture, which the first layer does not look beyond. */
#define EYE_IN_WINDOWS                                                                             \
    "arch \"tinyeye\"\nlanguage 2\n"                                                               \
    "input patch [2, 2, 3] from picture(patch = 2, block = 2, size = 12, mean = 0, std = 1)\n"     \
    "stage eye over patch(windows = 2) \"enc.\":\n  conv1 [12, 16]\n"                              \
    "  x = linear(flat(patch), conv1)\n  layer l < 2:\n"                                           \
    "    q [16, 16]\n    k [16, 16]\n    v [16, 16]\n"                                             \
    "    x = x + attention(heads(linear(x, q), 2), heads(linear(x, k), 2), "                       \
    "heads(linear(x, v), 2), within = none if l == 1 else patch.window)\n  return x\n"             \
    "stage joined over eye(every = 4) \"mm.\":\n  join [64, 16] bias\n"                            \
    "  return linear(flat(around(eye, 0, 4)), join)\nrows = joined\n"

/* Rows of a plane: windows that are filled, every other line and column of what squares of it become, and a row before them. */
#define EYE_IN_PLANES                                                                              \
    "arch \"tinyeye\"\nlanguage 2\n"                                                               \
    "input patch [2, 2, 3] from picture(patch = 2, size = 8, mean = 0, std = 1)\n"                 \
    "stage eye over patch(windows = 3, filled = 1) \"enc.\":\n  conv1 [12, 16]\n"                  \
    "  x = linear(flat(patch), conv1)\n  q [16, 16]\n  k [16, 16]\n"                               \
    "  return x + attention(heads(linear(x, q), 2), heads(linear(x, k), 2), heads(x, 2), "         \
    "within = patch.window)\n"                                                                     \
    "stage half over eye(step = 2) \"enc.\":\n  conv2 [3, 3, 16, 16]\n"                            \
    "  return tanh(conv_plane(plane_around(eye, 3), conv2))\n"                                     \
    "stage queries over half(asks = 1) \"enc.\":\n  ask [16]\n  conv3 [16, 16]\n"                  \
    "  h = heads(linear(half + ask, conv3), 2)\n  return half + attention(h, h, h)\n"              \
    "stage joined over queries(from = -1) \"mm.\":\n  join [16, 16] bias\n"                        \
    "  return linear(queries, join)\nrows = joined\n"

typedef struct model {
    llm_arch *arch, *eye_arch;
    llm_arch_toy *toy, *eye;
    ggl_backend *reference;
} model;

static ggl_error err;

static bool open_arch(llm_arch **out, llm_arch_toy **toy, const char *text) {
    const ggl_status st = strchr(text, '\n')
                              ? llm_arch_parse(out, text, strlen(text), "tiny.arch", &err)
                              : llm_arch_open(out, text, &err);
    *toy = CHECK_OK(st, &err) ? llm_arch_toy_new(*out, 0, &err) : NULL;
    CHECK_MSG(*toy, "%s", err.msg);
    return *toy != NULL;
}

static bool open_model(model *m, const char *text, const char *eye) {
    *m = (model){0};
    return CHECK_OK(ggl_backend_open(&m->reference, "reference", NULL, &err), &err) &&
           open_arch(&m->arch, &m->toy, text) && (!eye || open_arch(&m->eye_arch, &m->eye, eye));
}

static void close_model(model *m) {
    llm_arch_toy_free(m->toy);
    llm_arch_toy_free(m->eye);
    llm_arch_free(m->arch);
    llm_arch_free(m->eye_arch);
    ggl_backend_close(m->reference);
}

static ggl_status make(llm_trainer **t, const model *m, ggl_backend *on, llm_train_params p) {
    p.size = sizeof p;
    p.backend = on;
    p.reference = m->reference;
    p.n_ctx = N_CTX;
    p.n_batch = p.n_batch ? p.n_batch : N_BATCH;
    p.n_read = MOST;
    p.eye = m->eye_arch;
    p.eye_source = m->eye ? llm_arch_toy_source(m->eye) : NULL;
    return llm_trainer_new(t, m->arch, llm_arch_toy_source(m->toy), &p, &err);
}

/* --- batches ---------------------------------------------------------------------------------- */

enum { N_READINGS = 2, LONG = 16, SHORT = 8 };

/* The places of a picture's rows, in blocks of two by two: four blocks, or two, one above the other. */
static const llm_row_places *places_of(int k) {
    static int32_t yx[N_READINGS][LONG][2];
    static llm_row_places places[N_READINGS];
    const int across = k == 0 ? 2 : 1;
    for (int i = 0; i < LONG; i++) {
        yx[k][i][0] = i / 4 / across * 2 + i % 4 / 2;
        yx[k][i][1] = i / 4 % across * 2 + i % 2;
    }
    places[k].yx = yx[k][0];
    return &places[k];
}

/* Three sequences and two readings: rows or tokens, one of which is read twice. */
static llm_train_batch batch(const llm_trainer *t) {
    static int32_t token[N], target[N], read[N_SEQ] = {1, 0, 1}, place[N], text[LONG + SHORT];
    static float weight[N], row[(LONG + SHORT) * 256];
    static llm_train_reading reading[N_READINGS];
    static const int64_t length[N_SEQ] = {9, 5, 12};
    const llm_train_reader r = llm_trainer_reader(t);
    for (int i = 0; i < N; i++) {
        token[i] = (i * 7 + i / 5) % 29;
        target[i] = ((i + 1) * 7 + (i + 1) / 5) % 29;
        weight[i] = (float)(i % 4) / 30;
        place[i] = -1;
    }
    for (int i = 0; i < LONG + SHORT; i++)
        text[i] = (i * 11 + 3) % 29;
    for (int64_t i = 0; i < (LONG + SHORT) * r.n_input && i < (LONG + SHORT) * 256; i++)
        row[i] = (float)sin(0.7 * (double)i);
    for (int k = 0; k < N_READINGS; k++) {
        const int first = k == 0 ? 0 : LONG;
        reading[k] = (llm_train_reading){.row = r.of_text ? NULL : row + first * r.n_input,
                                         .token = r.of_text ? text + first : NULL,
                                         .places = places_of(k),
                                         .n = k == 0 ? LONG : SHORT};
    }
    /* rows of both in the first sequence, those of the second one in the third */
    const int64_t n0 = llm_trainer_n_rows(t, LONG), n1 = llm_trainer_n_rows(t, SHORT);
    for (int i = 0; i < 3; i++) {
        place[1 + i] = (int32_t)(i % n0);
        place[5 + i] = (int32_t)(n0 + i % n1);
        place[16 + i] = (int32_t)(n0 + i % n1);
    }
    return (llm_train_batch){.token = token,
                             .target = target,
                             .weight = weight,
                             .length = length,
                             .n_seq = N_SEQ,
                             .reading = reading,
                             .n_readings = N_READINGS,
                             .read = read,
                             .place = place};
}

static double loss_of(llm_trainer *t) {
    double loss = NAN;
    const llm_train_batch b = batch(t);
    CHECK_OK(llm_trainer_evaluate(t, &b, &loss, NULL, &err), &err);
    return loss;
}

static double difference(llm_trainer *t, float *x, float h) {
    const float was = *x, up = was + h, down = was - h;
    *x = up;
    const double above = loss_of(t);
    *x = down;
    const double below = loss_of(t);
    *x = was;
    return (above - below) / ((double)up - (double)down);
}

/* --- gradients -------------------------------------------------------------------------------- */

static const struct {
    const char *text, *eye;
    bool own;
} cases[] = {{TEXT("given(token_embd[token])"), EYE, false},
             {TEXT("given(token_embd[token], together = 1)"), EYE, false},
             {TEXT("given(token_embd[token])"), EYE_IN_WINDOWS, false},
             {TEXT("given(token_embd[token])"), EYE_IN_PLANES, false},
             {EAR, NULL, true},
             {"t5", NULL, true},
             {"bart", NULL, true},
             {"whisper", NULL, true}};
enum { CASES = sizeof cases / sizeof *cases };

static void check_gradients(llm_trainer *t, const char *what) {
    const llm_train_batch b = batch(t);
    const int n = llm_trainer_n_weights(t);
    double loss = NAN, largest = 0;
    CHECK_OK(llm_trainer_add(t, &b, &loss, &err), &err);
    CHECK_MSG(loss > 0 && fabs(loss - loss_of(t)) < 1e-6 * loss, "%s: %g, %g", what, loss,
              loss_of(t));
    for (int k = 0; k < n; k++) {
        const llm_train_weight w = llm_trainer_weight(t, k);
        for (int64_t i = 0; i < llm_train_weight_count(&w); i++)
            largest = fmax(largest, fabs((double)w.grad[i]));
    }
    for (int s = 0; s < SAMPLES; s++) {
        const llm_train_weight w = llm_trainer_weight(t, s * n / SAMPLES);
        int64_t at = (int64_t)s * 7919 % llm_train_weight_count(&w);
        for (int64_t i = 0; i < llm_train_weight_count(&w) && s % 2; i++) /* one that matters */
            at = fabs((double)w.grad[i]) > fabs((double)w.grad[at]) ? i : at;
        double error = INFINITY;
        for (float h = 1e-2F; h > 5e-4F && error > 1e-3 * largest; h /= 4)
            error = fmin(error, fabs(difference(t, &w.data[at], h) - (double)w.grad[at]));
        CHECK_MSG(error <= 1e-3 * largest, "%s: %s[%lld]: gradient %g, largest %g, off by %g", what,
                  w.name, (long long)at, (double)w.grad[at], largest, error);
    }
}

static bool has_weight(const llm_trainer *t, const char *part) {
    bool any = false;
    for (int k = 0; k < llm_trainer_n_weights(t); k++)
        any |= strstr(llm_trainer_weight(t, k).name, part) != NULL;
    return any;
}

LONG_TEST(gradients) {
    for (int c = 0; c < CASES; c++) {
        model m;
        llm_trainer *t = NULL;
        char what[64];
        snprintf(what, sizeof what, "case %d", c);
        REQUIRE(open_model(&m, cases[c].text, cases[c].eye));
        REQUIRE_OK(make(&t, &m, m.reference, (llm_train_params){0}), &err);
        const llm_train_reader r = llm_trainer_reader(t);
        CHECK(r.is_there && r.is_own == cases[c].own);
        CHECK_MSG(has_weight(t, "enc."), "%s: the stage does not learn", what);
        check_gradients(t, what);
        llm_trainer_free(t);
        close_model(&m);
    }
}

/* --- bits ------------------------------------------------------------------------------------- */

static float *gradients(llm_trainer *t, int64_t *n) {
    *n = 0;
    for (int k = 0; k < llm_trainer_n_weights(t); k++) {
        const llm_train_weight w = llm_trainer_weight(t, k);
        *n += llm_train_weight_count(&w);
    }
    float *all = malloc((size_t)*n * sizeof *all), *to = all;
    for (int k = 0; all && k < llm_trainer_n_weights(t); k++) {
        const llm_train_weight w = llm_trainer_weight(t, k);
        memcpy(to, w.grad, (size_t)llm_train_weight_count(&w) * sizeof *to);
        to += llm_train_weight_count(&w);
    }
    return all;
}

static double largest_difference(const float *a, const float *b, int64_t n) {
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return most;
}

/* One thread and two give the same bits; other runs, in which stages are read once more, the same but for rounding. */
TEST(threads_and_runs) {
    static const struct {
        int threads;
        int64_t n_batch;
    } way[] = {{1, N_BATCH}, {2, N_BATCH}, {1, N_CTX}};
    setenv("GGL_CPU_SHARE_ALL", "1", 1);
    for (int c = 0; c < CASES; c++) {
        model m;
        float *first = NULL;
        REQUIRE(open_model(&m, cases[c].text, cases[c].eye));
        for (int i = 0; i < 3; i++) {
            ggl_backend *cpu = NULL;
            llm_trainer *t = NULL;
            const ggl_backend_params on = {.size = sizeof on, .n_threads = way[i].threads};
            double loss;
            int64_t n;
            REQUIRE_OK(ggl_backend_open(&cpu, "cpu", &on, &err), &err);
            REQUIRE_OK(make(&t, &m, cpu, (llm_train_params){.n_batch = way[i].n_batch}), &err);
            const llm_train_batch b = batch(t);
            CHECK_OK(llm_trainer_add(t, &b, &loss, &err), &err);
            float *all = gradients(t, &n);
            if (!first)
                first = all;
            else if (i == 1)
                CHECK_MSG(memcmp(first, all, (size_t)n * sizeof *all) == 0, "case %d", c);
            else
                CHECK_MSG(largest_difference(first, all, n) < 1e-5, "case %d: %g", c,
                          largest_difference(first, all, n));
            if (all != first)
                free(all);
            llm_trainer_free(t);
            ggl_backend_close(cpu);
        }
        free(first);
        close_model(&m);
    }
    unsetenv("GGL_CPU_SHARE_ALL");
}

/* Steps make the loss smaller, also with values that are computed again. */
LONG_TEST(learns) {
    for (int c = 0; c < CASES; c++) {
        model m;
        ggl_backend *cpu = NULL;
        llm_trainer *t = NULL;
        double loss = NAN, before;
        REQUIRE(open_model(&m, cases[c].text, cases[c].eye));
        REQUIRE_OK(ggl_backend_open(&cpu, "cpu", NULL, &err), &err);
        REQUIRE_OK(make(&t, &m, cpu, (llm_train_params){.keep = 1, .optimizer = LLM_TRAIN_MUON}),
                   &err);
        const llm_train_batch b = batch(t);
        before = loss_of(t);
        for (int i = 0; i < 10; i++) {
            CHECK_OK(llm_trainer_add(t, &b, &loss, &err), &err);
            CHECK_OK(llm_trainer_step(t, 6e-3, NULL, &err), &err);
        }
        CHECK_MSG(loss_of(t) < 0.8 * before, "case %d: %g, then %g", c, before, loss_of(t));
        llm_trainer_free(t);
        ggl_backend_close(cpu);
        close_model(&m);
    }
}

/* --- what learns ------------------------------------------------------------------------------ */

TEST(some_weights) {
    static const char *const of_stage[] = {"enc.*"}, *const of_first[] = {"enc.conv1*"},
                             *const of_tokens[] = {"blk.*"};
    static const struct {
        const char *const *learn;
        bool stage, tokens;
    } way[] = {{of_stage, true, false}, {of_first, true, false}, {of_tokens, false, true}};
    for (int i = 0; i < 3; i++) {
        model m;
        llm_trainer *t = NULL;
        REQUIRE(open_model(&m, cases[0].text, cases[0].eye));
        REQUIRE_OK(
            make(&t, &m, m.reference, (llm_train_params){.learn = way[i].learn, .n_learn = 1}),
            &err);
        CHECK(has_weight(t, "enc.") == way[i].stage && has_weight(t, "blk.") == way[i].tokens);
        check_gradients(t, "some weights");
        llm_trainer_free(t);
        close_model(&m);
    }
}

/* --- adapters --------------------------------------------------------------------------------- */

/* Pairs of an eye learn beside those of the text, or alone, and nothing else does. */
TEST(adapters) {
    static const char *const of_stages[] = {"enc.attn_*", "mm.*"},
                             *const both[] = {"mm.*", "blk.*"}, *const of_layers[] = {"enc.blk.*"};
    static const struct {
        int c;
        const char *const *matrix;
        size_t n_matrices, n_pairs;
        bool stage, tokens;
    } way[] = {{0, of_stages, 2, 4, true, false},
               {1, both, 2, 3, false, true},
               {2, of_layers, 1, 6, true, false}};
    for (size_t i = 0; i < sizeof way / sizeof *way; i++) {
        model m;
        llm_trainer *t = NULL;
        void *data = NULL;
        size_t size = 0;
        llm_adapter *a = NULL;
        REQUIRE(open_model(&m, cases[way[i].c].text, cases[way[i].c].eye));
        const llm_train_pairs pairs = {.size = sizeof pairs,
                                       .rank = 3,
                                       .matrix = way[i].matrix,
                                       .n_matrices = way[i].n_matrices,
                                       .seed = 5,
                                       .eye = m.eye_arch,
                                       .eye_source = llm_arch_toy_source(m.eye)};
        REQUIRE_OK(
            llm_train_new_adapter(m.arch, llm_arch_toy_source(m.toy), &pairs, &data, &size, &err),
            &err);
        REQUIRE_OK(llm_adapter_open_memory(&a, data, size, "new", &err), &err);
        CHECK_INT((int64_t)llm_adapter_describe(a).n_pairs, (int64_t)way[i].n_pairs);
        const llm_adapter_use use = {.adapter = a, .scale = 1, .beside = true};
        REQUIRE_OK(
            make(&t, &m, m.reference,
                 (llm_train_params){.adapter = &use, .n_adapters = 1, .only_adapters = true}),
            &err);
        CHECK_INT(llm_trainer_n_weights(t), (int)(2 * way[i].n_pairs));
        CHECK_MSG(has_weight(t, "enc.") == way[i].stage && has_weight(t, ".w.") == way[i].tokens,
                  "way %zu: %s", i, llm_trainer_weight(t, 0).name);
        for (int k = 0; k < llm_trainer_n_weights(t);
             k++) { /* B begins with zeros, which have no gradient of A */
            const llm_train_weight w = llm_trainer_weight(t, k);
            for (int64_t n = 0; strstr(w.name, ".lora_b") && n < llm_train_weight_count(&w); n++)
                w.data[n] = (float)(0.2 * sin(1.3 * (double)n));
        }
        check_gradients(t, "an adapter");
        llm_trainer_free(t);
        llm_adapter_free(a);
        ggl_free(data);
        close_model(&m);
    }
}

/* --- mistakes --------------------------------------------------------------------------------- */

TEST(wrong_batches) {
    model m;
    llm_trainer *t = NULL;
    int32_t wrong[N] = {99}, none[N_SEQ] = {0, 2, 0};
    double loss;
    REQUIRE(open_model(&m, cases[0].text, cases[0].eye));
    REQUIRE_OK(make(&t, &m, m.reference, (llm_train_params){0}), &err);
    llm_train_batch b = batch(t);
    b.place = wrong;
    CHECK_INT(llm_trainer_add(t, &b, &loss, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "row 99 stands in the place of token 0");
    b = batch(t);
    llm_train_reading long_one = b.reading[0];
    long_one.n = MOST + 1;
    b.reading = &long_one;
    b.n_readings = 1;
    CHECK_INT(llm_trainer_add(t, &b, &loss, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "reading 0 has 21 rows; there must be 1 to 20");
    long_one = (llm_train_reading){.n = 1};
    CHECK_INT(llm_trainer_add(t, &b, &loss, &err), GGL_USAGE);
    llm_trainer_free(t);
    close_model(&m);
    REQUIRE(open_model(&m, EAR, NULL));
    REQUIRE_OK(make(&t, &m, m.reference, (llm_train_params){0}), &err);
    b = batch(t);
    b.read = none;
    CHECK_INT(llm_trainer_add(t, &b, &loss, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "sequence 1 reads 2; there are readings 0 to 1");
    b.read = NULL;
    CHECK_INT(llm_trainer_add(t, &b, &loss, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "lacks what its tokens read");
    llm_trainer_free(t);
    close_model(&m);
    REQUIRE(open_model(&m, TEXT("given(token_embd[token])"), EAR));
    CHECK_INT(make(&t, &m, m.reference, (llm_train_params){0}), GGL_UNSUPPORTED);
    CHECK_HAS(err.msg, "no eye or ear");
    close_model(&m);
}
