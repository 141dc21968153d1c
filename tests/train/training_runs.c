/* llm/train.h: trainings that go on with the same bits, runs that end early, and what is measured on the way. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/compose.h"
#include "llm/llm.h"
#include "llm/train.h"
#include "test.h"
#include "training_test.h"

/* Changes the last byte, or the last digit of the first "n_batch": N. */
static void change_byte(const char *path, bool in_text) {
    static char all[1 << 24];
    FILE *f = fopen(path, "r+b");
    REQUIRE(f);
    const size_t n = fread(all, 1, sizeof all, f);
    size_t at = n - 1;
    for (size_t i = 0; in_text && i + 9 < n; i++)
        at = at == n - 1 && memcmp(all + i, "n_batch\":", 9) == 0 ? i + 10 : at;
    all[at] ^= 1;
    CHECK(n < sizeof all && (at < n - 1) == in_text && fseek(f, 0, SEEK_SET) == 0 &&
          fwrite(all, 1, n, f) == n);
    CHECK(fclose(f) == 0);
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

    /* not with another descriptor: even a comment makes it another one */
    char own[700];
    snprintf(own, sizeof own, "%s", file_of("own.arch", ""));
    append(DATA "/../../models/archs/llama.arch", own);
    p.arch = own;
    u = open_on("builtin:chat", chats(), p);
    REQUIRE(u);
    CHECK_OK(llm_training_resume(u, save, &err), &err); /* the same text */
    llm_training_close(u);
    FILE *f = fopen(own, "a");
    REQUIRE(f && fputs("# mine\n", f) >= 0 && fclose(f) == 0);
    u = open_on("builtin:chat", chats(), p);
    REQUIRE(u);
    CHECK_INT(llm_training_resume(u, save, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "this training began with another descriptor");
    llm_training_close(u);
    p.arch = NULL;

    /* not with other settings, other data, or a damaged file */
    p.rate = 2e-3;
    u = open_on("builtin:chat", chats(), p);
    CHECK_INT(llm_training_resume(u, save, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "this training began with rate (-lr) = 0.001, and now it is 0.002");
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
    for (int k = 0; k < 2; k++) {
        const char *damaged = path_of(k ? "text" : "numbers");
        append(save, damaged);
        change_byte(damaged, k);
        CHECK_INT(llm_training_resume(u, damaged, &err), GGL_FORMAT);
        CHECK_HAS(err.msg, " is damaged: its contents do not have the digest");
    }

    /* of another model, whose usual rate is another one, too, the model is named */
    llm_training *x = open_on(
        "builtin:stories", file_of("pairs.jsonl", "{\"prompt\": \"a\", \"completion\": \"b\"}\n"),
        (llm_training_params){.lora = true, .n_steps = 9});
    REQUIRE(x);
    CHECK_INT(llm_training_resume(x, save, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "this training began with another model");
    llm_training_close(x);
    p.rank = 4;
    llm_training *v = open_on("builtin:chat", chats(), p);
    CHECK_INT(llm_training_resume(v, save, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "this training began with rank (--rank) = 16, and now it is 4");
    llm_training_close(v);
    CHECK_INT(step(u).step, 1); /* it is as before */
    llm_training_close(u);
    llm_training_close(t);
}

/* --- runs ------------------------------------------------------------------------------------- */

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

/* --- measurements ----------------------------------------------------------------------------- */

/* A file to measure on that is much longer than what is learned: some of it is measured, from all of its parts, and a note says so. */
TEST(long_measurements) {
    static char text[200 * 60];
    size_t n = 0;
    for (int i = 0; i < 200; i++) /* the last half is hard */
        n += (size_t)snprintf(text + n, sizeof text - n, "%s\n\n",
                              i < 100 ? "Once upon a time, there was a little girl named Lily."
                                      : "7$#Q x9&K =% 7$#Q x9&K =%");
    const char *valid = file_of("valid.txt", text);
    ggl_error err = {0};
    static const struct {
        int64_t valid_max, least, most;
        double minutes;
        bool noted;
    } row[] = {
        {0, 100, 256, 0, true},        {300, 200, 300, 0, true},  {1, 1, 40, 0, true},
        {-1, 2000, 9000, 0, false},    {0, 2000, 9000, 1, false}, /* before its steps are settled, all could be */
        {100000, 2000, 9000, 0, false}};
    double all = NAN;
    for (size_t i = sizeof row / sizeof *row; i-- > 0;) {
        char said[4000] = "";
        llm_training *t = open_on("builtin:stories", story(),
                                  (llm_training_params){.separator = "\n\n",
                                                        .valid_file = &valid,
                                                        .n_valid_files = 1,
                                                        .valid_max = row[i].valid_max,
                                                        .n_steps = row[i].minutes > 0 ? 0 : 4,
                                                        .minutes = row[i].minutes,
                                                        .n_batch = 256,
                                                        .n_ctx = 64,
                                                        .note = keep_note,
                                                        .user = said});
        llm_training_facts f = {.size = sizeof f};
        double loss = NAN;
        REQUIRE(t);
        CHECK_OK(llm_training_describe(t, &f, &err), &err);
        CHECK_MSG(f.n_valid_tokens >= row[i].least && f.n_valid_tokens <= row[i].most &&
                      f.n_valid_items > 0 && f.n_valid_items == f.n_valid_draws,
                  "%d: %d tokens of %d items", (int)i, (int)f.n_valid_tokens, (int)f.n_valid_items);
        CHECK_MSG((strstr(said, " to measure the loss on, ") != NULL) == row[i].noted, "%d: %s",
                  (int)i, said);
        CHECK_OK(llm_training_evaluate(t, &loss, NULL, &err), &err);
        all = i == sizeof row / sizeof *row - 1 ? loss : all;
        CHECK_MSG(f.n_valid_items < 6 || fabs(loss - all) < 0.3 * all, "%d: %g, all of it %g",
                  (int)i, loss, all);
        llm_training_close(t);
    }
}
