/* llm/train.h: what learns, and from what; new models; and gradients. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/compose.h"
#include "ggl/internal/gguf.h"
#include "llm/llm.h"
#include "llm/train.h"
#include "test.h"
#include "training_test.h"

/* --- what learns ------------------------------------------------------------------------------ */

/* A model learns a text; written, it has what it learned. */
TEST(a_model_learns_a_text) {
    ggl_error err = {0};
    const char *out = path_of("learned.gguf");
    const llm_training_params p = {.separator = "\n\n",
                                   .n_steps = 12,
                                   .n_batch = 512,
                                   .n_ctx = 64,
                                   .rate = 1e-3,
                                   .valid_share = 0.2};
    llm_training *t = open_on("builtin:stories", story(), p), *again;
    llm_training_facts f = {.size = sizeof f};
    double before = NAN, after = NAN, read = NAN;
    REQUIRE(t);
    CHECK_OK(llm_training_describe(t, &f, &err), &err);
    CHECK_STR(f.kind, "text");
    CHECK_INT(f.n_steps, 12);
    CHECK_INT(f.n_items, 48);
    CHECK_INT(f.n_valid_items, 12);
    CHECK(f.n_counted == f.n_tokens && f.n_numbers > 1000000 && f.value_bytes > 0);
    CHECK_OK(llm_training_evaluate(t, &before, NULL, &err), &err);
    llm_training_report r = {0};
    for (int i = 0; i < 12; i++)
        r = step(t);
    CHECK(r.is_last && r.step == 12 && r.n_steps == 12 && isnan(r.accuracy));
    CHECK_INT(llm_training_step(t, &r, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "there is no step after step 12");
    CHECK_OK(llm_training_evaluate(t, &after, NULL, &err), &err);
    CHECK_MSG(after < 0.5 * before, "%g, from %g", after, before);
    CHECK_OK(llm_training_write(t, out, true, &err), &err);
    again = open_on(out, story(), p);
    REQUIRE(again);
    CHECK_OK(llm_training_evaluate(again, &read, NULL, &err), &err);
    CHECK_MSG(fabs(read - after) < 1e-4 * after, "%g, %g", read, after);
    llm_training_close(again);
    llm_training_close(t);
}

/* An adapter learns conversations, and the model answers with it. */
TEST(an_adapter_learns_chats) {
    ggl_error err = {0};
    const char *out = path_of("style.gguf");
    const llm_training_run_params run = {.size = sizeof run, .out = out};
    llm_training *t = open_on("builtin:chat", chats(),
                              (llm_training_params){.lora = true, .rank = 8, .rate = 4e-3});
    llm_training_report r = {.size = sizeof r};
    REQUIRE(t);
    CHECK_OK(llm_training_run(t, &run, &err), &err);
    CHECK(!llm_training_past(t, -1, &r) && llm_training_past(t, 0, &r));
    const double first = r.loss;
    CHECK(llm_training_past(t, 14, &r) && !llm_training_past(t, 15, &r));
    CHECK_MSG(r.is_last && r.loss < 0.2 * first && isfinite(r.valid_loss), "%g, from %g", r.loss,
              first);
    llm_training_close(t);
    llm_context *c = NULL;
    const llm_lora lora = {.path = out, .scale = 1};
    const llm_open_params o = {.size = sizeof o, .n_ctx = 256, .adapter = &lora, .n_adapters = 1};
    REQUIRE_OK(llm_open(&c, "builtin:chat", &o, &err), &err);
    const llm_generate_params g = {.size = sizeof g, .n_max = 20};
    const llm_message m = {"user", "Who is Ben?"};
    char *text = NULL;
    (void)text;
    CHECK_OK(llm_reply(c, &m, 1, &g, NULL, NULL, &err), &err);
    llm_close(c);
}

/* The loss is the mean over tokens that count, each times the weight of its answer. */
TEST(answers_have_weights) {
    static const char two[] =
        "{\"messages\": [{\"role\": \"user\", \"content\": \"Who is Ben?\"}, {\"role\": "
        "\"assistant\", \"content\": \"A dog.\", \"weight\": %g}, {\"role\": \"user\", "
        "\"content\": \"And Tom?\"}, {\"role\": \"assistant\", \"content\": \"Tom likes the "
        "ball and the hat.\", \"weight\": %g}]}\n";
    static const double weight[][2] = {{1, 0}, {0, 1}, {3, 0.5}};
    double loss[3] = {0}, n[3] = {0};
    ggl_error err = {0};
    for (int i = 0; i < 3; i++) {
        char text[600];
        snprintf(text, sizeof text, two, weight[i][0], weight[i][1]);
        const char *file = file_of("weights.jsonl", text);
        llm_training *t =
            open_on("builtin:chat", file,
                    (llm_training_params){.n_steps = 1, .valid_file = &file, .n_valid_files = 1});
        llm_training_facts f = {.size = sizeof f};
        REQUIRE(t);
        CHECK_OK(llm_training_describe(t, &f, &err), &err);
        CHECK_OK(llm_training_evaluate(t, &loss[i], NULL, &err), &err);
        const double learned = step(t).loss; /* before the step */
        CHECK_MSG(fabs(learned - loss[i]) < 1e-5 * loss[i], "%g, %g", learned, loss[i]);
        n[i] = (double)f.n_counted;
        llm_training_close(t);
    }
    CHECK(n[2] == n[0] + n[1] && n[0] < n[1]);
    const double want = (3 * n[0] * loss[0] + 0.5 * n[1] * loss[1]) / (3 * n[0] + 0.5 * n[1]);
    CHECK_MSG(fabs(loss[2] - want) < 1e-5 * want, "%g, %g", loss[2], want);
    CHECK(fabs(loss[0] - loss[1]) > 1e-2 * want);
}

/* Of an adapter, patterns name its own weights: what the model learned would not be written. */
TEST(weights_of_an_adapter_learn) {
    ggl_error err = {0};
    const char *layer = "blk.0.*";
    const llm_training_params p = {.lora = true, .learn = &layer, .n_learn = 1};
    llm_training *t = open_on("builtin:chat", chats(), p);
    llm_training_facts f = {.size = sizeof f};
    REQUIRE(t);
    CHECK_OK(llm_training_describe(t, &f, &err), &err);
    CHECK_INT(f.n_weights, 14); /* pairs of seven matrices */
    llm_training_close(t);
}

/* Preferences: nothing is gained at first; then the chosen answers gain. */
TEST(preferences) {
    ggl_error err = {0};
    llm_training *t = open_on("builtin:stories", pairs(),
                              (llm_training_params){.lora = true, .rate = 2e-3, .n_steps = 6});
    double loss = NAN, right = NAN;
    REQUIRE(t);
    llm_training_report r = step(t);
    CHECK_MSG(fabs(r.loss - log(2)) < 1e-6 && r.accuracy == 0, "%g, %g", r.loss, r.accuracy);
    for (int i = 1; i < 6; i++)
        r = step(t);
    CHECK_MSG(r.accuracy == 1 && r.loss < 0.6, "%g, %g", r.loss, r.accuracy);
    CHECK_OK(llm_training_evaluate(t, &loss, &right, &err), &err);
    CHECK_MSG(right == 1 && loss < log(2), "%g, %g", loss, right);
    llm_training_close(t);
}

/* A teacher that is the model itself teaches nothing. A model that was changed learns to be as the teacher again. */
TEST(a_teacher) {
    llm_training_params p = {.lora = true, .teacher = "builtin:chat", .n_steps = 9, .rate = 3e-3};
    llm_training *t = open_on("builtin:chat", chats(), p);
    REQUIRE(t);
    llm_training_report r = step(t);
    CHECK_MSG(r.norm < 2e-2 && r.loss > 0, "norm %g, loss %g", r.norm, r.loss);
    llm_training_close(t);

    p.teacher_temp = 2;
    p.teacher_share = 0.5;
    t = open_on("builtin:chat", chats(), p);
    REQUIRE(t);
    const double first = step(t).loss;
    for (int i = 1; i < 9; i++)
        r = step(t);
    CHECK_MSG(r.loss < first, "%g, from %g", r.loss, first);
    llm_training_close(t);
}

TEST(a_loss_of_ones_own) {
    const llm_training_params p = {.lora = true}, own = {.lora = true, .loss = twice};
    llm_training *a = open_on("builtin:chat", chats(), p),
                 *b = open_on("builtin:chat", chats(), own);
    REQUIRE(a && b);
    const llm_training_report x = step(a), y = step(b);
    CHECK_MSG(fabs(y.loss - 2 * x.loss) < 1e-5 * y.loss &&
                  fabs(y.norm - 2 * x.norm) < 1e-3 * y.norm,
              "%g, %g", x.loss, y.loss);
    llm_training_close(a);
    llm_training_close(b);
}

/* A model of q8_0 learns to be one of q4_0: better than one that is only rounded, and written as it was measured. */
TEST(rounded_while_it_learns) {
    ggl_error err = {0};
    const char *out = path_of("q4.gguf");
    llm_training_params p = {.round_to = "q4_0", .n_steps = 12, .rate = 2e-3, .optimizer = "muon"};
    llm_training *t = open_on("builtin:chat", chats(), p);
    double before = NAN, after = NAN, read = NAN;
    REQUIRE(t);
    CHECK_OK(llm_training_evaluate(t, &before, NULL, &err), &err);
    for (int i = 0; i < 12; i++)
        step(t);
    CHECK_OK(llm_training_evaluate(t, &after, NULL, &err), &err);
    CHECK_MSG(after < 0.7 * before, "%g, from %g", after, before);
    CHECK_OK(llm_training_write(t, out, false, &err), &err);
    llm_training_close(t);
    p.round_to = NULL;
    t = open_on(out, chats(), p);
    REQUIRE(t);
    CHECK_OK(llm_training_evaluate(t, &read, NULL, &err), &err);
    CHECK_MSG(fabs(read - after) < 1e-5 * after, "%g, %g", read, after);
    llm_training_close(t);
}

/* Products in bf16: each step's loss is nearly that of f32, copies take 2 bytes, any thread and instruction set give the same bits, and what was saved goes on with
 * them, but not in f32. */
TEST(products_in_bf16) {
    ggl_error err = {0};
    const char *save = path_of("bf16.train"), *a = path_of("bf16"), *b = path_of("bf16-resumed");
    llm_training_params p = {.n_steps = 8, .rate = 1e-3};
    llm_training_facts f = {.size = sizeof f};
    llm_training *f32 = open_on("builtin:chat", chats(), p);
    p.bf16 = true;
    llm_training *t = open_on("builtin:chat", chats(), p);
    double loss = NAN, of_f32 = NAN;
    bool any = false;
    REQUIRE(t && f32);
    CHECK_OK(llm_training_describe(t, &f, &err), &err);
    const double bytes = (double)f.learn_bytes / (double)f.n_numbers;
    CHECK_MSG(bytes > 17 && bytes <= 18, "%g bytes for each number", bytes);
    for (int i = 0; i < 8; i++) {
        if (i == 4)
            CHECK_OK(llm_training_save(t, save, &err), &err);
        const llm_training_report x = step(t), y = step(f32);
        CHECK_MSG(fabs(x.loss - y.loss) < 0.02 * y.loss, "step %d: %g, in f32 %g", i, x.loss,
                  y.loss);
        CHECK_MSG(fabs(x.norm - y.norm) < 0.1 * y.norm, "step %d: %g, in f32 %g", i, x.norm,
                  y.norm);
        any |= x.loss != y.loss;
    }
    CHECK(any);
    CHECK_OK(llm_training_evaluate(t, &loss, NULL, &err), &err);
    CHECK_OK(llm_training_evaluate(f32, &of_f32, NULL, &err), &err);
    CHECK_MSG(fabs(loss - of_f32) < 0.02 * of_f32, "%g, in f32 %g", loss, of_f32);
    CHECK_OK(llm_training_write(t, a, true, &err), &err);
    llm_training_close(t);
    llm_training_close(f32);
    p.n_threads = 1;
    setenv("GGL_CPU_MASK", "avx512bf16,bf16", 1);
    t = open_on("builtin:chat", chats(), p);
    unsetenv("GGL_CPU_MASK");
    REQUIRE(t);
    CHECK_OK(llm_training_resume(t, save, &err), &err);
    for (int i = 4; i < 8; i++)
        step(t);
    CHECK_OK(llm_training_write(t, b, true, &err), &err);
    CHECK(same_files(a, b));
    llm_training_close(t);
    p.bf16 = false;
    t = open_on("builtin:chat", chats(), p);
    REQUIRE(t);
    CHECK_INT(llm_training_resume(t, save, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "this training began with bf16 (--bf16) = 1, and now it is 0");
    llm_training_close(t);
}

/* Beside a model that does not learn, whatever its type, gradients go back in bf16. */
TEST(an_adapter_in_bf16) {
    llm_training_params p = {.lora = true, .rank = 8, .rate = 4e-3, .n_steps = 5};
    llm_training *f32 = open_on("builtin:chat", chats(), p);
    p.bf16 = true;
    llm_training *t = open_on("builtin:chat", chats(), p);
    bool any = false;
    REQUIRE(t && f32);
    for (int i = 0; i < 5; i++) {
        const llm_training_report x = step(t), y = step(f32);
        CHECK_MSG(i > 0 || x.loss == y.loss, "%g, %g", x.loss, y.loss);
        CHECK_MSG(fabs(x.loss - y.loss) < 0.02 * y.loss, "step %d: %g, in f32 %g", i, x.loss,
                  y.loss);
        any |= x.norm != y.norm;
    }
    CHECK(any);
    llm_training_close(t);
    llm_training_close(f32);
}

/* What the optimizer remembers in 8 bits takes 10 of 16 bytes; saved, it goes on with the same bits, and only with 8 of them. */
TEST(eight_bits) {
    ggl_error err = {0};
    const char *save = path_of("eight.train"), *a = path_of("eight"), *b = path_of("eight-resumed");
    llm_training_params p = {.n_steps = 6, .rate = 1e-3, .optimizer_bits = 8};
    llm_training_facts f = {.size = sizeof f};
    llm_training *t = open_on("builtin:chat", chats(), p);
    REQUIRE(t);
    CHECK_OK(llm_training_describe(t, &f, &err), &err);
    CHECK_MSG((double)f.learn_bytes < 10.1 * (double)f.n_numbers, "%zu bytes", f.learn_bytes);
    const double first = step(t).loss;
    for (int i = 1; i < 6; i++) {
        if (i == 3)
            CHECK_OK(llm_training_save(t, save, &err), &err);
        const llm_training_report r = step(t);
        CHECK(i < 5 || r.loss < 0.5 * first);
    }
    CHECK_OK(llm_training_write(t, a, false, &err), &err);
    llm_training_close(t);
    p.n_threads = 1;
    t = open_on("builtin:chat", chats(), p);
    REQUIRE(t);
    CHECK_OK(llm_training_resume(t, save, &err), &err);
    for (int i = 3; i < 6; i++)
        step(t);
    CHECK_OK(llm_training_write(t, b, false, &err), &err);
    CHECK(same_files(a, b));
    llm_training_close(t);
    p.optimizer_bits = 0;
    t = open_on("builtin:chat", chats(), p);
    REQUIRE(t);
    CHECK_INT(llm_training_resume(t, save, &err), GGL_USAGE);
    CHECK_HAS(err.msg,
              "this training began with optimizer_bits (--optimizer-bits) = 8, and now it is 32");
    llm_training_close(t);
}

/* The rate grows in the warm-up, stays, and falls to what shall be left. */
TEST(rates) {
    const struct {
        const char *schedule;
        double want[10]; /* in thousandths */
    } row[] = {{"linear", {0.25, 0.5, 0.75, 1, 1, 1, 1, 0.8, 0.6, 0.4}},
               {"cosine", {0.25, 0.5, 0.75, 1, 1, 1, 1, 0.88284, 0.6, 0.31716}},
               {"constant", {0.25, 0.5, 0.75, 1, 1, 1, 1, 1, 1, 1}}};
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        const llm_training_params p = {.lora = true,
                                       .rank = 1,
                                       .rate = 1e-3,
                                       .n_steps = 10,
                                       .n_warmup = 3,
                                       .rate_hold = 3. / 7,
                                       .rate_end = 0.2,
                                       .schedule = row[k].schedule,
                                       .n_seq = 1};
        llm_training *t = open_on("builtin:chat", chats(), p);
        REQUIRE(t);
        for (int i = 0; i < 10; i++) {
            const double rate = step(t).rate;
            CHECK_MSG(fabs(rate - 1e-3 * row[k].want[i]) < 1e-8, "%s, step %d: %g", row[k].schedule,
                      i, rate);
        }
        llm_training_close(t);
    }
}

/* --- new models ------------------------------------------------------------------------------- */

static const char *const sizes[] = {".block_count=2",
                                    ".context_length=128",
                                    ".embedding_length=32",
                                    ".feed_forward_length=64",
                                    ".attention.head_count=4",
                                    ".attention.head_count_kv=2",
                                    ".attention.layer_norm_rms_epsilon=1e-5"};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* A new model begins with the loss of chance, and learns; the same seed gives the same file. */
TEST(a_new_model_learns) {
    ggl_error err = {0};
    const char *a = path_of("a.gguf"), *b = path_of("b.gguf");
    llm_new_model_params p = {.size = sizeof p,
                              .arch = "llama",
                              .tokenizer = "builtin:stories",
                              .key = sizes,
                              .n_keys = SIZES,
                              .seed = 3};
    REQUIRE_OK(llm_new_model(a, &p, &err), &err);
    REQUIRE_OK(llm_new_model(b, &p, &err), &err);
    CHECK(same_files(a, b));
    p.seed = 4;
    REQUIRE_OK(llm_new_model(b, &p, &err), &err);
    CHECK(!same_files(a, b));
    llm_training *t =
        open_on(a, story(),
                (llm_training_params){
                    .separator = "\n\n", .n_steps = 30, .n_batch = 512, .n_ctx = 64, .rate = 1e-2});
    REQUIRE(t);
    llm_training_report r = step(t);
    llm_context *c = NULL;
    REQUIRE_OK(llm_open(&c, a, &(llm_open_params){.size = sizeof(llm_open_params)}, &err), &err);
    const double chance = log(llm_context_facts(c)->n_vocab);
    llm_close(c);
    CHECK_MSG(fabs(r.loss - chance) < 0.05 * chance, "%g, %g", r.loss, chance);
    while (!r.is_last)
        r = step(t);
    CHECK_MSG(r.loss < 0.5 * chance, "%g, of %g", r.loss, chance);
    llm_training_close(t);
}

/* A new model of the sizes and one more key. False: a failure, which was reported. */
static bool make_new(const char *path, const char *tokenizer, const char *key, const char *init) {
    const char *all[SIZES + 1];
    ggl_error err = {0};
    memcpy(all, sizes, sizeof sizes);
    all[SIZES] = key;
    const llm_new_model_params p = {.size = sizeof p,
                                    .arch = "llama",
                                    .tokenizer = tokenizer,
                                    .key = all,
                                    .n_keys = SIZES + (key != NULL),
                                    .init = &init,
                                    .n_init = init != NULL};
    return CHECK_OK(llm_new_model(path, &p, &err), &err);
}

/* A model with a table of few positions: new, and with an adapter. */
TEST(few_positions) {
    static const char *const keys[] = {
        ".block_count=1",          ".context_length=32",      ".embedding_length=32",
        ".feed_forward_length=64", ".attention.head_count=4", ".attention.layer_norm_epsilon=1e-5"};
    ggl_error err = {0};
    const char *model = path_of("positions.gguf");
    const llm_new_model_params p = {.size = sizeof p,
                                    .arch = "gpt2",
                                    .tokenizer = "builtin:stories",
                                    .key = keys,
                                    .n_keys = sizeof keys / sizeof *keys};
    REQUIRE_OK(llm_new_model(model, &p, &err), &err);
    llm_training *t = open_on(model, story(), (llm_training_params){.lora = true, .n_steps = 1});
    REQUIRE(t);
    CHECK(step(t).norm > 0);
    llm_training_close(t);
    /* a context that is asked for, and which the table does not have */
    const char *file = story();
    const llm_training_params longer = {
        .size = sizeof longer, .file = &file, .n_files = 1, .n_ctx = 48, .n_steps = 1};
    CHECK_INT(llm_training_open(&t, model, &longer, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "48 tokens, but this model has only 32 positions: n_ctx of 32 (-c)");
}

/* Rotary positions have no end, but the model has not seen those beyond its context. */
TEST(more_positions_than_were_trained) {
    char notes[4000] = "";
    llm_training_params p = {.n_ctx = 520, .n_steps = 1, .note = keep_note, .user = notes};
    llm_training *t = open_on("builtin:stories", story(), p);
    REQUIRE(t);
    llm_training_close(t);
    CHECK_HAS(notes, "the longest sequence has 520 tokens, but the model was trained on 512");
    notes[0] = '\0';
    p.n_ctx = 512;
    t = open_on("builtin:stories", story(), p);
    REQUIRE(t);
    llm_training_close(t);
    CHECK_MSG(!strstr(notes, "trained on"), "%s", notes);
}

/* The logits may be more than the tokenizer's tokens: a teacher must have as many. */
TEST(teachers_and_vocabularies) {
    ggl_error err = {0};
    const char *wide = path_of("wide.gguf"), *other = path_of("other.gguf"), *file = story();
    llm_training_params p = {.size = sizeof p,
                             .file = &file,
                             .n_files = 1,
                             .n_steps = 2,
                             .n_ctx = 64,
                             .n_threads = 2,
                             .teacher = "builtin:stories"};
    llm_training *t = NULL;
    REQUIRE(make_new(wide, "builtin:stories", ".vocab_size=2100", NULL));
    CHECK_INT(llm_training_open(&t, wide, &p, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "the teacher has 2048 tokens, but the model has 2100");
    p.teacher = wide;
    CHECK_INT(llm_training_open(&t, "builtin:stories", &p, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "the teacher has 2100 tokens, but the model has 2048");
    t = open_on(wide, file, p);
    REQUIRE(t);
    const llm_training_report r = step(t);
    CHECK_MSG(fabs(r.loss - log(2100)) < 0.1 && r.norm < 1e-3, "%g, %g", r.loss, r.norm);
    llm_training_close(t);

    REQUIRE(make_new(other, "builtin:words", ".vocab_size=2048", NULL));
    p.teacher = other;
    CHECK_INT(llm_training_open(&t, "builtin:stories", &p, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "has other tokens: token ");
}

TEST(an_eye_needs_no_tokenizer) {
    static const char *const key[] = {".projector_type=mlp",
                                      ".vision.image_size=32",
                                      ".vision.patch_size=8",
                                      ".vision.embedding_length=8",
                                      ".vision.block_count=1",
                                      ".vision.feed_forward_length=8",
                                      ".vision.image_mean=0.5",
                                      ".vision.attention.head_count=2",
                                      ".vision.image_std=0.5",
                                      ".vision.feature_layer=[1]",
                                      ".vision.attention.layer_norm_epsilon=1e-5"};
    const llm_new_model_params p = {
        .size = sizeof p, .arch = "clip-llava", .key = key, .n_keys = sizeof key / sizeof *key};
    ggl_error err = {0};
    ggl_gguf *f = NULL;
    const char *path = test_path("eye.gguf");
    REQUIRE_OK(llm_new_model(path, &p, &err), &err);
    REQUIRE_OK(ggl_gguf_open(&f, path, NULL, &err), &err);
    for (size_t i = 0; i < ggl_gguf_n_values(f); i++) {
        const ggl_str k = ggl_gguf_value_at(f, i)->key;
        CHECK(k.n < 10 || memcmp(k.s, "tokenizer.", 10) != 0);
    }
    ggl_gguf_close(f);
}

TEST(new_models_that_cannot_be) {
    const char *const none[] = {"nothing.*"}, *const init[] = {"*=x"},
                      *const wrong_key[] = {".block_count"}, *const list[] = {".block_count=[1,x]"},
                      *const unread[] = {sizes[0], sizes[1], sizes[2], sizes[3],
                                         sizes[4], sizes[5], sizes[6], ".blok_count=3"};
    const struct {
        llm_new_model_params p;
        const char *words;
    } wrong[] = {
        {{.tokenizer = "builtin:stories"}, "needs arch, and either tokenizer or from"},
        {{.arch = "llama", .tokenizer = "builtin:stories", .from = "builtin:stories"},
         "needs arch, and either tokenizer or from"},
        {{.arch = "llama"}, "llama.arch reads tokens: a tokenizer is missing"},
        {{.arch = "llama", .from = "builtin:stories"}, "nothing is to be added"},
        {{.arch = "lama", .tokenizer = "builtin:stories"}, "lama"},
        {{.arch = "llama", .tokenizer = "builtin:storys"}, "the built-in models are"},
        {{.arch = "llama", .tokenizer = "builtin:stories"},
         "lacks keys that llama.arch needs: .embedding_length, "},
        {{.arch = "llama", .tokenizer = "builtin:stories", .key = wrong_key, .n_keys = 1},
         "is no KEY=VALUE"},
        {{.arch = "llama", .tokenizer = "builtin:stories", .key = list, .n_keys = 1},
         "a list of whole numbers"},
        {{.arch = "llama", .tokenizer = "builtin:stories", .key = unread, .n_keys = 8},
         "blok_count"},
        {{.arch = "llama",
          .tokenizer = "builtin:stories",
          .key = sizes,
          .n_keys = SIZES,
          .with = none,
          .n_with = 1},
         "'nothing.*' fits the name of no tensor"},
        {{.arch = "llama",
          .tokenizer = "builtin:stories",
          .key = sizes,
          .n_keys = SIZES,
          .init = none,
          .n_init = 1},
         "PATTERN=MEAN"},
        {{.arch = "llama",
          .tokenizer = "builtin:stories",
          .key = sizes,
          .n_keys = SIZES,
          .init = init,
          .n_init = 1},
         "PATTERN=MEAN"},
        {{.arch = "llama",
          .tokenizer = "builtin:stories",
          .key = sizes,
          .n_keys = SIZES,
          .sigma = -1},
         "sigma is -1"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ggl_error err = {0};
        llm_new_model_params p = wrong[i].p;
        p.size = sizeof p;
        const ggl_status st = llm_new_model(path_of("no.gguf"), &p, &err);
        CHECK_MSG(st != GGL_OK && strstr(err.msg, wrong[i].words), "%d: %s", (int)i, err.msg);
    }
}

/* --- more tokens ------------------------------------------------------------------------------ */

static const char *const marks[] = {"<|user|>", "<|end|>"};

/* How many tokens have logits; 0: a failure, which was reported. */
static int32_t n_rows(const char *path) {
    ggl_error err = {0};
    llm_context *c = NULL;
    CHECK_OK(llm_open(&c, path, &(llm_open_params){.size = sizeof(llm_open_params)}, &err), &err);
    const int32_t n = c ? llm_context_facts(c)->n_vocab : 0;
    llm_close(c);
    return n;
}

/* Adds the marks. False: a failure, which was reported. */
static bool add_marks(const char *path, const char *model, uint64_t seed, int32_t want) {
    int32_t first = -1;
    const llm_new_model_params p = {.size = sizeof p,
                                    .from = model,
                                    .special = marks,
                                    .n_special = 2,
                                    .first_special = &first,
                                    .seed = seed};
    ggl_error err = {0};
    return CHECK_OK(llm_new_model(path, &p, &err), &err) && CHECK_INT(first, want);
}

/* Of two files, the second of which has more tokens: all tensors are the same, but for `grown`, whose rows are followed by two more with
 * numbers such as theirs. False: reported. */
static bool only_grew(const char *before, const char *after, const char *const *grown, int n) {
    ggl_error err = {0};
    ggl_gguf *a = NULL, *b = NULL;
    bool good = CHECK_OK(ggl_gguf_open(&a, before, NULL, &err), &err) &&
                CHECK_OK(ggl_gguf_open(&b, after, NULL, &err), &err) &&
                CHECK_INT(ggl_gguf_n_tensors(a), ggl_gguf_n_tensors(b));
    for (size_t i = 0; good && i < ggl_gguf_n_tensors(a); i++) {
        const ggl_gguf_tensor *x = ggl_gguf_tensor_at(a, i), *y = ggl_gguf_tensor_at(b, i);
        int64_t more = 0;
        for (int k = 0; k < n; k++)
            more = ggl_str_is(x->name, grown[k]) ? 2 : more;
        const int last = x->n_dims - 1;
        good = CHECK_MSG(x->type == y->type && y->ne[last] == x->ne[last] + more &&
                             memcmp(x->data, y->data, x->size) == 0,
                         "%.*s", (int)x->name.n, x->name.s);
        const ggl_type_info *type = ggl_type_get(y->type);
        float row[128] = {0};
        const int64_t n_row = ggl_extents(x->ne, 0, last, 1);
        double squares[2] = {0};
        for (int64_t r = 0; good && more > 0 && n_row <= 128 && r < y->ne[last]; r++) {
            type->to_float((const char *)y->data + (size_t)(r * (n_row / type->block)) * type->size,
                           row, n_row);
            for (int64_t k = 0; k < n_row; k++)
                squares[r >= x->ne[last]] += (double)row[k] * (double)row[k];
        }
        const double old = squares[0] / (double)x->ne[last], new = squares[1] / 2;
        good = good && (more == 0 || n_row == 1 ||
                        CHECK_MSG(new > old / 4 && new < 4 * old, "%.*s: %g, %g", (int)x->name.n,
                                  x->name.s, old, new));
    }
    ggl_gguf_close(a);
    ggl_gguf_close(b);
    return good;
}

/* The embedding gets rows, and the output, if it is another tensor; a model that has rows for more tokens than its tokenizer keeps them. */
TEST(more_tokens_have_rows) {
    static const char *const rows[] = {"token_embd.weight", "output.weight"};
    const char *gpt2 = DATA "/stories-gpt2.gguf", *a = path_of("a.gguf"), *b = path_of("b.gguf"),
               *output = "output.weight";
    REQUIRE(add_marks(a, gpt2, 0, 1536));
    CHECK(only_grew(gpt2, a, rows, 1));
    REQUIRE(add_marks(b, gpt2, 0, 1536));
    CHECK(same_files(a, b));
    REQUIRE(add_marks(b, gpt2, 1, 1536));
    CHECK(!same_files(a, b));

    ggl_error err = {0};
    const char *model = path_of("untied.gguf");
    const llm_new_model_params p = {.size = sizeof p,
                                    .arch = "llama",
                                    .tokenizer = "builtin:stories",
                                    .key = sizes,
                                    .n_keys = SIZES,
                                    .with = &output,
                                    .n_with = 1};
    REQUIRE_OK(llm_new_model(model, &p, &err), &err);
    REQUIRE(add_marks(a, model, 0, 2048));
    CHECK(only_grew(model, a, rows, 2));

    REQUIRE(make_new(model, "builtin:stories", ".vocab_size=2049", NULL));
    REQUIRE(add_marks(a, model, 0, 2048));
    CHECK_INT(n_rows(a), 2050);
    REQUIRE(make_new(model, "builtin:stories", ".vocab_size=2100", NULL));
    REQUIRE(add_marks(a, model, 0, 2048));
    CHECK(only_grew(model, a, rows, 0));
    CHECK_INT(n_rows(a), 2100);
}

/* A base model learns to answer: with a chat template, the new tokens begin and end the turns. */
TEST(more_tokens_learn) {
    static const char template[] =
        "{%- for m in messages -%}<|user|>{{ m.content }}<|end|>{%- endfor -%}"
        "{%- if add_generation_prompt -%}<|user|>{%- endif -%}";
    const char *model = path_of("more.gguf");
    REQUIRE(add_marks(model, "builtin:stories", 0, 2048));
    CHECK_INT(n_rows(model), 2050);
    llm_training *t =
        open_on(model, chats(),
                (llm_training_params){.chat_template = template, .n_steps = 8, .rate = 1e-3});
    REQUIRE(t);
    llm_training_report r = step(t);
    const double first = r.loss;
    while (!r.is_last)
        r = step(t);
    CHECK_MSG(r.loss < 0.7 * first, "%g, of %g", r.loss, first);
    llm_training_close(t);
}

TEST(more_tokens_that_cannot_be) {
    static const char *const empty[] = {""}, *const twice[] = {"<a>", "<a>"},
                             *const there[] = {"</s>"}, *const bytes[] = {"\xff"};
    const struct {
        const char *model;
        const char *const *special;
        size_t n;
        const char *words;
    } wrong[] = {
        {"builtin:stories", NULL, 0, "a model that gets more tokens needs from and special"},
        {"builtin:stories", empty, 1, "a token is empty"},
        {"builtin:stories", bytes, 1, "is not valid UTF-8"},
        {"builtin:stories", twice, 2, "the token '<a>' is given twice"},
        {"builtin:stories", there, 1, "has the token '</s>' already: its id is 2"},
        {NULL, there, 1, "`from` names it"},
        {"no.gguf", there, 1, "no.gguf"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ggl_error err = {0};
        const llm_new_model_params p = {.size = sizeof p,
                                        .from = wrong[i].model,
                                        .special = wrong[i].special,
                                        .n_special = wrong[i].n};
        const ggl_status st = llm_new_model(path_of("no-more.gguf"), &p, &err);
        CHECK_MSG(st != GGL_OK && strstr(err.msg, wrong[i].words), "%d: %s", (int)i, err.msg);
    }
    ggl_error err = {0};
    const llm_new_model_params both = {.size = sizeof both,
                                       .from = "builtin:stories",
                                       .special = marks,
                                       .n_special = 2,
                                       .key = sizes,
                                       .n_keys = SIZES};
    CHECK_INT(llm_new_model(path_of("no-more.gguf"), &both, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "a model that gets more tokens gets nothing else");
}

/* --- checking --------------------------------------------------------------------------------- */

static bool count_gradient(void *user, const llm_gradient *g) {
    ++*(int *)user;
    return g->weight && g->element >= 0 && isfinite(g->gradient);
}

TEST(gradients_of_models) {
    static const char *const model[] = {"builtin:stories", DATA "/stories-gpt2.gguf",
                                        DATA "/stories-qwen3.gguf", "builtin:words"};
    ggl_error err = {0};
    llm_gradients_result r = {.size = sizeof r};
    for (int i = 0; i < 4; i++) {
        int n = 0;
        const llm_gradients_params p = {
            .size = sizeof p, .n_numbers = 9, .n_tokens = 6, .each = count_gradient, .user = &n};
        CHECK_OK(llm_verify_gradients(model[i], &p, &r, &err), &err);
        CHECK_MSG(r.n_numbers == 9 && n == 9 && r.error < 1e-4 && r.largest > 0, "%s: %g of %g",
                  model[i], r.error, r.largest);
    }
    CHECK_INT(llm_verify_gradients(
                  "builtin:stories",
                  &(llm_gradients_params){.size = sizeof(llm_gradients_params), .n_tokens = 1}, &r,
                  &err),
              GGL_USAGE);
    CHECK_INT(llm_verify_gradients("builtin:stories", NULL, NULL, &err), GGL_USAGE);
    CHECK_INT(llm_verify_gradients("builtin:shapes-eye", NULL, &r, &err), GGL_UNSUPPORTED);
}
