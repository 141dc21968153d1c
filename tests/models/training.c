/* llm/train.h: what learns, from what, and that a training that was interrupted goes on with the same bits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/compose.h"
#include "llm/llm.h"
#include "llm/train.h"
#include "test.h"

enum { CHATS = 40 };

/* Writes a file of that name to the test's folder, and returns its path. */
static const char *file_of(const char *name, const char *text) {
    static char path[8][600];
    static int k;
    char *p = path[k++ % 8];
    snprintf(p, sizeof path[0], "%s/%s", test_folder(), name);
    FILE *f = fopen(p, "w");
    if (CHECK(f)) {
        CHECK(fputs(text, f) >= 0);
        fclose(f);
    }
    return p;
}

static const char *path_of(const char *name) {
    static char path[8][600];
    static int k;
    char *p = path[k++ % 8];
    snprintf(p, sizeof path[0], "%s/%s", test_folder(), name);
    return p;
}

static const char *chats(void) {
    static const char *const who[] = {"Tom", "Lily", "Ben", "Anna"}, *const what[] = {"ball", "dog",
                                                                                      "hat"};
    static char text[CHATS * 200];
    size_t n = 0;
    for (int i = 0; i < CHATS; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "{\"messages\": [{\"role\": \"user\", \"content\": \"Who is %s?\"}, "
                              "{\"role\": \"assistant\", \"content\": \"%s likes the %s.\"}]}\n",
                              who[i % 4], who[i % 4], what[i % 3]);
    return file_of("chats.jsonl", text);
}

static const char *pairs(void) {
    static char text[CHATS * 200];
    size_t n = 0;
    for (int i = 0; i < CHATS; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "{\"prompt\": \"Once upon a time %d\", \"chosen\": \", there was a "
                              "dog.\", \"rejected\": \" 7 7 7\"}\n",
                              i);
    return file_of("pairs.jsonl", text);
}

static const char *story(void) {
    static char text[9000];
    size_t n = 0;
    for (int i = 0; i < 60; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "Lily saw %d red birds in the tree, and she was very happy.\n\n", i);
    return file_of("story.txt", text);
}

/* Opens a training of one file, with two threads. NULL: a failure, which was reported. */
static llm_training *open_on(const char *model, const char *file, llm_training_params p) {
    ggl_error err = {0};
    llm_training *t = NULL;
    p.size = sizeof p;
    if (file) {
        p.file = &file;
        p.n_files = 1;
    }
    p.n_threads = p.n_threads ? p.n_threads : 2;
    CHECK_OK(llm_training_open(&t, model, &p, &err), &err);
    return t;
}

static llm_training_report step(llm_training *t) {
    ggl_error err = {0};
    llm_training_report r = {.size = sizeof r};
    CHECK_OK(llm_training_step(t, &r, &err), &err);
    return r;
}

static bool same_files(const char *a, const char *b) {
    FILE *f = fopen(a, "rb"), *g = fopen(b, "rb");
    bool same = f && g;
    int x = 0;
    while (same && x != EOF) {
        x = getc(f);
        same = x == getc(g);
    }
    if (f)
        fclose(f);
    if (g)
        fclose(g);
    return same;
}

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

static ggl_tensor *twice(void *user, ggl_graph *g, ggl_tensor *logits, ggl_tensor *target) {
    (void)user;
    return ggl_binary(g, GGL_OP_MUL, ggl_cross_entropy(g, logits, target), ggl_graph_number(g, 2));
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

/* --- the same bits ---------------------------------------------------------------------------- */

/* One thread or two; and saved after the fourth step, and gone on with by a program that begins again. */
TEST(the_same_bits) {
    ggl_error err = {0};
    llm_training_params p = {.lora = true, .rate = 1e-3, .n_steps = 9, .seed = 5};
    const char *save = path_of("state"), *whole = path_of("whole"), *one = path_of("one"),
               *resumed = path_of("resumed");
    llm_training *t = open_on("builtin:chat", chats(), p);
    llm_training_report a = {.size = sizeof a}, b = {.size = sizeof b};
    REQUIRE(t);
    for (int i = 0; i < 9; i++) {
        if (i == 4)
            CHECK_OK(llm_training_save(t, save, &err), &err);
        step(t);
    }
    CHECK_OK(llm_training_write(t, whole, false, &err), &err);

    p.n_threads = 1;
    llm_training *u = open_on("builtin:chat", chats(), p);
    REQUIRE(u);
    for (int i = 0; i < 9; i++)
        step(u);
    CHECK_OK(llm_training_write(u, one, false, &err), &err);
    CHECK(same_files(whole, one));
    llm_training_close(u);

    u = open_on("builtin:chat", chats(), p);
    REQUIRE(u);
    CHECK_OK(llm_training_resume(u, save, &err), &err);
    CHECK(llm_training_past(u, 3, &a) && llm_training_past(t, 3, &b) && a.loss == b.loss &&
          a.n_tokens == b.n_tokens);
    for (int i = 4; i < 9; i++)
        CHECK_INT(step(u).step, i + 1);
    CHECK(llm_training_past(u, 8, &a) && llm_training_past(t, 8, &b) && a.loss == b.loss &&
          a.is_last);
    CHECK_OK(llm_training_write(u, resumed, false, &err), &err);
    CHECK(same_files(whole, resumed));
    llm_training_close(u);

    /* not with another adapter in the file with which it began */
    llm_training_params q = {.adapter = whole, .n_steps = 2};
    const char *other = path_of("other");
    u = open_on("builtin:chat", chats(), q);
    REQUIRE(u);
    step(u);
    CHECK_OK(llm_training_save(u, other, &err), &err);
    CHECK_OK(llm_training_write(u, one, false, &err), &err);
    llm_training_close(u);
    q.adapter = one;
    u = open_on("builtin:chat", chats(), q);
    REQUIRE(u);
    CHECK_INT(llm_training_resume(u, other, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "this training began with another adapter");
    llm_training_close(u);

    /* not with other settings, other data, or a damaged file */
    p.rate = 2e-3;
    u = open_on("builtin:chat", chats(), p);
    CHECK_INT(llm_training_resume(u, save, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "this training began with rate = 0.001, and now it is 0.002");
    llm_training_close(u);
    p.rate = 1e-3;
    u = open_on("builtin:chat",
                file_of("other.jsonl", "{\"prompt\": \"a\", \"completion\": \"b\"}\n"), p);
    CHECK_INT(llm_training_resume(u, save, &err), GGL_USAGE);
    llm_training_close(u);
    u = open_on("builtin:chat", chats(), p);
    CHECK_INT(llm_training_resume(u, whole, &err), GGL_FORMAT);
    CHECK_HAS(err.msg, "it is not the state of a training");
    CHECK(llm_training_resume(u, path_of("none"), &err) == GGL_IO);
    p.rank = 4;
    llm_training *v = open_on("builtin:chat", chats(), p);
    CHECK_INT(llm_training_resume(v, save, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "this training began with rank = 16, and now it is 4");
    llm_training_close(v);
    CHECK_INT(step(u).step, 1); /* it is as before */
    llm_training_close(u);
    llm_training_close(t);
}

/* --- runs ------------------------------------------------------------------------------------- */

typedef struct watch {
    llm_training *t;
    int64_t steps, written, end_at; /* end_at: the step after which `each` ends it; 0: none */
    bool cancels;                   /* by llm_training_cancel */
} watch;

static bool on_step(void *user, const llm_training_report *r) {
    watch *w = user;
    w->steps = r->step;
    if (w->cancels && r->step == w->end_at)
        llm_training_cancel(w->t);
    return w->cancels || r->step != w->end_at;
}

static bool on_written(void *user, const llm_training_report *r) {
    (void)r;
    ((watch *)user)->written++;
    return true;
}

/* A step in parts is the same step, but for rounding; more parts than items are empty. */
TEST(parts_of_a_step) {
    const char *const file[] = {chats(), pairs()};
    for (int k = 0; k < 2; k++) {
        llm_training_params p = {.lora = true, .rate = 1e-3, .n_steps = 3};
        llm_training *one = open_on("builtin:chat", file[k], p);
        p.n_parts = 3;
        llm_training *three = open_on("builtin:chat", file[k], p);
        p.n_parts = 40;
        llm_training *many = open_on("builtin:chat", file[k], p);
        REQUIRE(one && three && many);
        for (int i = 0; i < 3; i++) {
            const llm_training_report a = step(one), b = step(three), c = step(many);
            CHECK_MSG(
                fabs(a.loss - b.loss) < 1e-4 * a.loss && fabs(a.norm - b.norm) < 1e-3 * a.norm &&
                    fabs(a.loss - c.loss) < 1e-4 * a.loss && fabs(a.norm - c.norm) < 1e-3 * a.norm,
                "%g, %g, %g: %g, %g, %g", a.loss, b.loss, c.loss, a.norm, b.norm, c.norm);
        }
        CHECK_INT(llm_training_follow(one, NULL), GGL_USAGE);
        llm_training_close(one);
        llm_training_close(three);
        llm_training_close(many);
    }
}

/* A run that is ended after any step, and run again, ends with the bits of one that was not. */
TEST(an_ended_run_goes_on) {
    ggl_error err = {0};
    const llm_training_params p = {.lora = true, .rate = 1e-3, .n_steps = 7};
    const char *save = path_of("run.train"), *whole = path_of("whole.gguf"),
               *out = path_of("out.gguf");
    llm_training *t = open_on("builtin:chat", chats(), p);
    llm_training_run_params run = {.size = sizeof run, .out = whole, .each = on_step};
    watch w = {0};
    run.user = &w;
    REQUIRE(t);
    CHECK_OK(llm_training_run(t, &run, &err), &err);
    CHECK_INT(w.steps, 7);
    llm_training_close(t);
    run.out = out;
    run.save = save;
    run.save_every = 2;
    run.written = on_written;
    for (int64_t end_at = 1, goes_on = 0; end_at <= 7; end_at += 2, goes_on = 1) {
        w = (watch){.end_at = end_at < 7 ? end_at : 0, .cancels = end_at == 3};
        w.t = t = open_on("builtin:chat", chats(), p);
        REQUIRE(t);
        if (goes_on)
            CHECK_OK(llm_training_resume(t, save, &err), &err);
        CHECK_INT(llm_training_run(t, &run, &err), end_at < 7 ? GGL_CANCELLED : GGL_OK);
        CHECK_INT(w.steps, end_at);
        llm_training_close(t);
    }
    CHECK(same_files(whole, out));
    CHECK(w.written == 2); /* after step 6, and at the end */
    FILE *f = fopen(save, "rb");
    CHECK_MSG(!f, "%s is left", save);
    if (f)
        fclose(f);
}

/* Without progress on what it does not learn from, a run ends; `best` keeps what was best. */
TEST(patience) {
    ggl_error err = {0};
    const char *out = path_of("best.gguf");
    const char *valid =
        file_of("valid.jsonl", "{\"prompt\": \"Who is Tom?\", \"completion\": \"No. No. No.\"}\n");
    const llm_training_params p = {.lora = true,
                                   .rate = 3e-3,
                                   .n_steps = 60,
                                   .n_warmup = -1,
                                   .valid_file = &valid,
                                   .n_valid_files = 1};
    watch w = {0};
    const llm_training_run_params run = {.size = sizeof run,
                                         .out = out,
                                         .valid_every = 1,
                                         .patience = 4,
                                         .best = true,
                                         .each = on_step,
                                         .written = on_written,
                                         .user = &w};
    llm_training *t = open_on("builtin:chat", chats(), p);
    llm_training_report r = {.size = sizeof r};
    double best = INFINITY;
    REQUIRE(t);
    CHECK_OK(llm_training_run(t, &run, &err), &err);
    CHECK_MSG(w.steps >= 5 && w.steps < 60, "%d steps", (int)w.steps);
    for (int64_t k = 0; llm_training_past(t, k, &r); k++)
        best = fmin(best, r.valid_loss);
    CHECK(llm_training_past(t, w.steps - 1, &r) && r.is_last);
    CHECK(llm_training_past(t, w.steps - 5, &r) && r.valid_loss == best);
    CHECK(w.written >= 1 && w.written <= w.steps - 4);
    llm_training_close(t);

    /* what was written is what was best */
    const llm_training_params q = {
        .adapter = out, .n_steps = 1, .valid_file = &valid, .n_valid_files = 1};
    double loss = NAN;
    t = open_on("builtin:chat", chats(), q);
    REQUIRE(t);
    CHECK_OK(llm_training_evaluate(t, &loss, NULL, &err), &err);
    CHECK_MSG(fabs(loss - best) < 1e-5, "%g, %g", loss, best);
    llm_training_close(t);
}

/* A run that is ended after each step: what was best is written, and patience ends it where it ends one that was not. */
TEST(patience_of_an_ended_run) {
    ggl_error err = {0};
    const char *whole = path_of("best.gguf"), *out = path_of("ended.gguf"),
               *save = path_of("ended.train"), *data = chats();
    const char *valid =
        file_of("valid.jsonl", "{\"prompt\": \"Who is Tom?\", \"completion\": \"No. No. No.\"}\n");
    const llm_training_params p = {.lora = true,
                                   .rate = 1e-2,
                                   .n_steps = 60,
                                   .n_warmup = -1,
                                   .valid_file = &valid,
                                   .n_valid_files = 1};
    watch w = {0};
    llm_training_run_params run = {.size = sizeof run,
                                   .out = whole,
                                   .valid_every = 1,
                                   .patience = 2,
                                   .best = true,
                                   .each = on_step,
                                   .user = &w};
    llm_training *t = open_on("builtin:chat", data, p);
    REQUIRE(t);
    CHECK_OK(llm_training_run(t, &run, &err), &err);
    llm_training_close(t);
    const int64_t steps = w.steps;
    run.out = out;
    run.save = save;
    ggl_status st = GGL_CANCELLED;
    for (int64_t k = 1; k <= steps + 1 && st == GGL_CANCELLED; k++) {
        w = (watch){.end_at = k};
        t = open_on("builtin:chat", data, p);
        REQUIRE(t);
        if (k > 1)
            CHECK_OK(llm_training_resume(t, save, &err), &err);
        st = llm_training_run(t, &run, &err);
        CHECK(st == GGL_OK ? w.steps == 0 || w.steps == steps : w.steps == k);
        llm_training_close(t);
    }
    CHECK_OK(st, &err);
    CHECK(same_files(whole, out));
}

/* With a limit of time the number of steps is settled on the way, and is known when it goes on. */
TEST(minutes) {
    ggl_error err = {0};
    const char *save = path_of("timed");
    const llm_training_params p = {.lora = true, .minutes = 0.01};
    llm_training *t = open_on("builtin:chat", chats(), p);
    llm_training_report r = {.size = sizeof r}, past = r;
    REQUIRE(t);
    CHECK(isnan(r.seconds_left) || step(t).n_steps == 0);
    while (!r.is_last && r.step < 100000)
        r = step(t);
    CHECK(r.is_last);
    CHECK_OK(llm_training_save(t, save, &err), &err);
    llm_training_close(t);
    t = open_on("builtin:chat", chats(), p);
    REQUIRE(t);
    CHECK_OK(llm_training_resume(t, save, &err), &err);
    CHECK(llm_training_past(t, r.step - 1, &past) && past.loss == r.loss);
    const llm_training_run_params run = {.size = sizeof run};
    CHECK_OK(llm_training_run(t, &run, &err), &err); /* nothing is left */
    CHECK(!llm_training_past(t, r.step, &past));
    llm_training_close(t);
}

/* Time that passes after a step, by measurements, does not end a training that has said that there is another step. */
TEST(minutes_of_measurements) {
    ggl_error err = {0};
    const llm_training_params p = {.lora = true, .minutes = 1e-4, .valid_share = 0.5};
    llm_training *t = open_on("builtin:chat", chats(), p);
    llm_training_report r = {.size = sizeof r};
    double loss = NAN;
    REQUIRE(t);
    for (int i = 0; i < 10; i++)
        CHECK_OK(llm_training_evaluate(t, &loss, NULL, &err), &err);
    CHECK_OK(llm_training_step(t, &r, &err), &err);
    CHECK(r.is_last && r.seconds >= 0.006);
    CHECK_INT(llm_training_step(t, &r, &err), GGL_USAGE);
    llm_training_close(t);
}

/* What the steps before reported is known after a resume. */
TEST(reports_of_the_past) {
    ggl_error err = {0};
    const char *save = path_of("past");
    const llm_training_params p = {.lora = true, .n_steps = 3};
    llm_training *t = open_on("builtin:chat", chats(), p);
    llm_training_report now[3], past[3];
    memset(now, 0, sizeof now); /* compared as bytes */
    memset(past, 0, sizeof past);
    REQUIRE(t);
    const llm_training_run_params run = {.size = sizeof run, .valid_every = 2};
    CHECK_OK(llm_training_run(t, &run, &err), &err);
    CHECK_OK(llm_training_save(t, save, &err), &err);
    for (int k = 0; k < 3; k++) {
        now[k].size = past[k].size = sizeof *now;
        CHECK(llm_training_past(t, k, &now[k]));
    }
    llm_training_close(t);
    t = open_on("builtin:chat", chats(), p);
    REQUIRE(t);
    CHECK_OK(llm_training_resume(t, save, &err), &err);
    for (int k = 0; k < 3; k++)
        CHECK(llm_training_past(t, k, &past[k]) && now[k].n_steps == 3);
    CHECK(memcmp(now, past, sizeof now) == 0);
    llm_training_close(t);
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
    const double chance = log(llm_context_n_vocab(c));
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

/* A type to which nothing can be rounded is found before the first step, not after the last one. */
TEST(a_type_that_is_only_read) {
    enum { IQ2_XS = 17 };
    static const char name[] = "blk.0.ffn_up.weight";
    static char bytes[2000000];
    ggl_error err = {0};
    const char *model = path_of("read.gguf"), *out = path_of("out.gguf"), *file = story(),
               *attention = "*attn*";
    const char *const more[] = {".block_count=1",
                                ".context_length=128",
                                ".embedding_length=256",
                                ".feed_forward_length=256",
                                ".attention.head_count=4",
                                ".attention.layer_norm_rms_epsilon=1e-5"},
                      *const init[] = {"blk.0.ffn_up.weight=0"};
    const llm_new_model_params new_model = {.size = sizeof new_model,
                                            .arch = "llama",
                                            .tokenizer = "builtin:stories",
                                            .key = more,
                                            .n_keys = sizeof more / sizeof *more,
                                            .init = init,
                                            .n_init = 1};
    REQUIRE_OK(llm_new_model(model, &new_model, &err), &err);
    FILE *f = fopen(model, "r+b");
    REQUIRE(f);
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    size_t at = 0;
    while (at + sizeof name < n && memcmp(bytes + at, name, sizeof name - 1) != 0)
        at++;
    at += sizeof name - 1 + 4 + 2 * 8; /* the name, how many dimensions, both */
    CHECK(fseek(f, (long)at, SEEK_SET) == 0 && fputc(IQ2_XS, f) == IQ2_XS);
    fclose(f);
    llm_training_params p = {.n_steps = 1, .n_ctx = 32, .n_batch = 64};
    watch w = {0};
    llm_training_run_params run = {.size = sizeof run, .out = out, .each = on_step, .user = &w};
    llm_training *t = open_on(model, file, p);
    REQUIRE(t);
    CHECK_INT(llm_training_run(t, &run, &err), GGL_UNSUPPORTED);
    CHECK_HAS(err.msg, "blk.0.ffn_up.weight cannot be rounded to iq2_xs again");
    CHECK_INT(w.steps, 0);
    run.f32 = true;
    CHECK_OK(llm_training_run(t, &run, &err), &err);
    llm_training_close(t);
    p.learn = &attention;
    p.n_learn = 1;
    run.f32 = false;
    t = open_on(model, file, p);
    REQUIRE(t);
    CHECK_OK(llm_training_run(t, &run, &err), &err);
    llm_training_close(t);
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
        {{.arch = "llama", .from = "builtin:stories"}, "nothing is to be added"},
        {{.arch = "lama", .tokenizer = "builtin:stories"}, "lama"},
        {{.arch = "llama", .tokenizer = "builtin:storys"}, "the built-in models are"},
        {{.arch = "llama", .tokenizer = "builtin:stories"}, "embedding_length is missing"},
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

/* --- checking --------------------------------------------------------------------------------- */

static bool count_gradient(void *user, const llm_gradient *g) {
    ++*(int *)user;
    return g->weight && g->element >= 0 && isfinite(g->gradient);
}

TEST(gradients_of_models) {
    static const char *const model[] = {"builtin:stories", DATA "/stories-gpt2.gguf",
                                        DATA "/stories-qwen3.gguf"};
    ggl_error err = {0};
    llm_gradients_result r = {.size = sizeof r};
    for (int i = 0; i < 3; i++) {
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
    CHECK_INT(llm_verify_gradients("builtin:words", NULL, &r, &err), GGL_UNSUPPORTED);
}

/* --- bad days --------------------------------------------------------------------------------- */

/* A first step that is easy by chance does not make a training of hard ones one that diverges. */
TEST(an_easy_step) {
    static char text[4000];
    size_t n = 0;
    const char *easy = "Once upon a time, there was a little girl named Lily.",
               *hard = "7$#Q x9&K =%";
    for (int i = 0; i < 32; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "{\"text\": \"%s\"}\n",
                              i % 8 ? hard : easy);
    const char *file = file_of("easy.jsonl", text);
    llm_training_report r = {0};
    for (uint64_t seed = 0; seed < 50; seed++) {
        const llm_training_params p = {
            .n_seq = 1, .n_steps = 45, .rate = 1e-9, .valid_share = -1, .seed = seed};
        llm_training *t = open_on("builtin:stories", file, p);
        REQUIRE(t);
        r = step(t);
        const bool is_easy = r.loss < 3;
        for (int i = 1; i < 45 && is_easy; i++)
            r = step(t);
        llm_training_close(t);
        if (is_easy)
            break;
    }
    CHECK_INT(r.step, 45);
}

TEST(too_high_a_rate) {
    ggl_error err = {0};
    const llm_training_params p = {.rate = 50, .n_steps = 400, .n_warmup = -1, .max_norm = -1};
    const llm_training_run_params run = {.size = sizeof run};
    llm_training *t = open_on("builtin:chat", chats(), p);
    REQUIRE(t);
    CHECK_INT(llm_training_run(t, &run, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "the training has diverged");
    CHECK_HAS(err.msg, "a smaller rate may help, such as 0.0008");
    llm_training_close(t);
}

/* A checkpoint that cannot be written ends the training, and the last one stays. */
TEST(no_room) {
    ggl_error err = {0};
    char out[700];
    llm_training *t =
        open_on("builtin:chat", chats(), (llm_training_params){.lora = true, .n_steps = 3});
    snprintf(out, sizeof out, "%s/none/out.gguf", test_folder());
    const llm_training_run_params run = {.size = sizeof run, .out = out, .save_every = 1};
    REQUIRE(t);
    CHECK_INT(llm_training_run(t, &run, &err), GGL_IO);
    CHECK_HAS(err.msg, "none/out.gguf");
    llm_training_close(t);
}

static bool stop(void *user, const char *what, size_t done, size_t total) {
    ++*(int *)user;
    return !what && done > total;
}

TEST(mistakes) {
    const char *chat = chats(), *pair = pairs(), *none = path_of("none.txt");
    const char *const one[] = {chat}, *const two[] = {pair}, *const mixed[] = {chat, pair},
                      *const lost[] = {none}, *const pattern[] = {"blk.99.*"},
                      *const model_own[] = {"output_norm.weight"};
    int calls = 0;
    const struct {
        llm_training_params p;
        ggl_status st;
        const char *words;
    } wrong[] = {
        {{.file = NULL}, GGL_USAGE, "needs a file to learn from"},
        {{.file = one, .n_files = 1, .rate = -1},
         GGL_USAGE,
         "rate is -1; it must be from 0 to 100"},
        {{.file = one, .n_files = 1, .n_batch = -5}, GGL_USAGE, "n_batch is -5"},
        {{.file = one, .n_files = 1, .rank = -5, .lora = true}, GGL_USAGE, "rank"},
        {{.file = one, .n_files = 1, .schedule = "cos"}, GGL_USAGE, "cosine, linear and constant"},
        {{.file = one, .n_files = 1, .matrix = pattern, .n_matrices = 1}, GGL_USAGE, "needs lora"},
        {{.file = one, .n_files = 1, .optimizer = "adam"}, GGL_USAGE, "adamw, sgd and muon"},
        {{.file = one, .n_files = 1, .round_to = "q4"}, GGL_USAGE, "no type of this name"},
        {{.file = one, .n_files = 1, .round_to = "q4_0", .lora = true}, GGL_USAGE, "stay f32"},
        {{.file = one, .n_files = 1, .lora = true, .matrix = pattern, .n_matrices = 1},
         GGL_NOT_FOUND,
         "blk.99"},
        {{.file = one, .n_files = 1, .learn = pattern, .n_learn = 1}, GGL_NOT_FOUND, "blk.99"},
        {{.file = one, .n_files = 1, .lora = true, .adapter = "a"},
         GGL_USAGE,
         "either a new adapter"},
        {{.file = one, .n_files = 1, .lora = true, .learn = model_own, .n_learn = 1},
         GGL_NOT_FOUND,
         "'output_norm.weight' fits the name of no weight"},
        {{.file = one, .n_files = 1, .adapter = none}, GGL_IO, "none.txt"},
        {{.file = lost, .n_files = 1}, GGL_IO, "none.txt"},
        {{.file = mixed, .n_files = 2}, GGL_FORMAT, "pairs.jsonl"},
        {{.file = one, .n_files = 1, .valid_file = two, .n_valid_files = 1},
         GGL_USAGE,
         "pairs.jsonl"},
        {{.file = two, .n_files = 1, .teacher = "builtin:chat"}, GGL_USAGE, "no teacher"},
        {{.file = one, .n_files = 1, .loss = twice, .teacher = "builtin:chat"},
         GGL_USAGE,
         "not both"},
        {{.file = one, .n_files = 1, .n_ctx = 32, .teacher = "builtin:words"},
         GGL_UNSUPPORTED,
         "builtin:words"},
        {{.file = one, .n_files = 1, .teacher = "builtin:words"},
         GGL_SHAPE,
         "the teacher builtin:words: the context has 1024 tokens"},
        {{.file = one, .n_files = 1, .round_to = "i32"}, GGL_USAGE, "cannot be rounded to i32"},
        {{.file = one, .n_files = 1, .round_to = "f64"}, GGL_USAGE, "cannot be rounded to f64"},
        {{.file = two, .n_files = 1, .lora = true, .progress = stop, .user = &calls},
         GGL_CANCELLED,
         ""},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ggl_error err = {0};
        llm_training *t = NULL;
        llm_training_params p = wrong[i].p;
        p.size = sizeof p;
        const ggl_status st = llm_training_open(&t, "builtin:chat", &p, &err);
        CHECK_MSG(st == wrong[i].st && !t && strstr(err.msg, wrong[i].words), "%d: %d: %s", (int)i,
                  (int)st, err.msg);
        llm_training_close(t);
    }
    ggl_error err = {0};
    llm_training *t =
        open_on("builtin:chat", chat, (llm_training_params){.lora = true, .valid_share = -1});
    double loss;
    REQUIRE(t);
    CHECK_INT(llm_training_evaluate(t, &loss, NULL, &err), GGL_NOT_FOUND);
    llm_training_facts f = {.size = 0};
    CHECK_INT(llm_training_describe(t, &f, &err), GGL_USAGE);
    llm_training_close(t);
    CHECK_INT(calls, 1);
    CHECK_INT(llm_training_open(&t, "builtin:chat", NULL, &err), GGL_USAGE);
    llm_training_close(NULL);
}
