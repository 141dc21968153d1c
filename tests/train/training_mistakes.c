/* llm/train.h: what a training needs and does not get, and mistakes of its users. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/compose.h"
#include "ggl/internal/gguf.h"
#include "llm/llm.h"
#include "llm/train.h"
#include "test.h"
#include "training_test.h"

/* --- memory and disks ------------------------------------------------------------------------- */

/* What it needs is told beside what is free: also before there is anything of it, and once. */
TEST(memory_beside_what_is_free) {
    static const struct {
        const char *left, *words;
        llm_training_params p;
    } row[] = {
        {"1e12", NULL, {.n_steps = 1}},
        {"5e6",
         "it needs 19.0 MB of memory, and 5.00 MB are free: 19.0 MB for what learns. ",
         {.n_steps = 1}},
        {"4e7", " for what learns, ", {.n_steps = 1}},
        {"4e7",
         "Less take: optimizer_bits (--optimizer-bits) 8; an adapter (lora, or --lora); ",
         {.n_steps = 1}},
        {"8e6",
         "Less take: a limit of the values (memory, or --memory); ",
         {.lora = true, .n_steps = 1}},
        {"2e7", " for the teacher. ", {.lora = true, .teacher = "builtin:chat", .n_steps = 1}},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char said[4000] = "";
        ggl_error err = {0};
        llm_training_params p = row[i].p;
        llm_training_facts f = {.size = sizeof f};
        p.note = keep_note;
        p.user = said;
        CHECK(setenv("GGL_MEMORY_LEFT", row[i].left, 1) == 0);
        llm_training *t = open_on("builtin:chat", chats(), p);
        REQUIRE(t);
        CHECK_OK(llm_training_describe(t, &f, &err), &err);
        CHECK_INT(f.memory_left, strtod(row[i].left, NULL));
        CHECK_INT(f.memory_bytes, f.learn_bytes + f.value_bytes + f.model_bytes + f.teacher_bytes);
        CHECK((f.model_bytes > 0) == p.lora && (f.teacher_bytes > 0) == (p.teacher != NULL));
        CHECK_MSG(row[i].words ? strstr(said, row[i].words) != NULL : !*said, "%d: %s", (int)i,
                  said);
        const char *first = strstr(said, "it needs ");
        CHECK(!first || !strstr(first + 1, "it needs "));
        llm_training_close(t);
    }
    CHECK(unsetenv("GGL_MEMORY_LEFT") == 0);
}

/* Of checkpoints that replace each other, and the result: an error before the first step, and not when the room is gone. */
TEST(room_on_disks) {
    static const struct {
        int64_t n_steps, save_every;
        bool out, save, fits;
        double left; /* in units of the result; the state is three times as large */
    } row[] = {
        {3, 9, true, true, true, 1.1},
        {3, 9, true, true, false, 0.9}, /* no checkpoint */
        {3, 2, true, true, true, 5.1},
        {3, 2, true, true, false, 3.5}, /* one: then the result */
        {9, 2, true, true, true, 7.2},
        {9, 2, true, true, false, 6.6}, /* each beside the one before */
        {9, 0, true, true, true, 1.1},  /* by minutes, nobody knows whether there is one */
        {9, 2, true, false, true, 2.1},
        {9, 2, true, false, false, 1.9},
        {9, 2, false, true, true, 6.2},
        {9, 2, false, true, false, 5.6},
    };
    ggl_error err = {0};
    const char *out = path_of("room.gguf"), *save = path_of("room.train");
    FILE *f;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char left[40];
        watch w = {0};
        llm_training *t = open_on(
            "builtin:chat", chats(),
            (llm_training_params){.lora = true, .valid_share = -1, .n_steps = row[i].n_steps});
        const llm_training_run_params run = {.size = sizeof run,
                                             .out = row[i].out ? out : NULL,
                                             .save = row[i].save ? save : NULL,
                                             .save_every = row[i].save_every,
                                             .each = on_step,
                                             .user = &w};
        REQUIRE(t);
        snprintf(left, sizeof left, "%.0f", row[i].left * 186880 * 4);
        CHECK(setenv("GGL_DISK_LEFT", left, 1) == 0);
        const ggl_status st = llm_training_run(t, &run, &err);
        CHECK_MSG(st == (row[i].fits ? GGL_OK : GGL_IO), "%d: %s", (int)i, err.msg);
        CHECK_INT(w.steps, row[i].fits ? row[i].n_steps : 0);
        if (!row[i].fits)
            CHECK_HAS(err.msg, "of their disk while they are written");
        remove(out);
        llm_training_close(t);
    }
    CHECK(unsetenv("GGL_DISK_LEFT") == 0);
    f = fopen(save, "rb");
    CHECK(!f);
}

/* A training that is run by a step of another one. */
typedef struct second {
    llm_training *t;
    llm_training_run_params run;
    ggl_status st;
    ggl_error err;
} second;

static bool run_other(void *user, const llm_training_report *r) {
    second *s = user;
    if (r->step == 1)
        s->st = llm_training_run(s->t, &s->run, &s->err);
    return true;
}

/* Two trainings that write the same file: the second one is refused, as long as the first one runs. */
TEST(one_at_a_time) {
    ggl_error err = {0};
    const char *out = path_of("both.gguf");
    const llm_training_params p = {.lora = true, .n_steps = 2};
    llm_training *a = open_on("builtin:chat", chats(), p), *b = open_on("builtin:chat", chats(), p);
    REQUIRE(a && b);
    second other = {b, {.size = sizeof other.run, .out = out}, GGL_OK, {0}};
    const llm_training_run_params run = {
        .size = sizeof run, .out = out, .each = run_other, .user = &other};
    CHECK_OK(llm_training_run(a, &run, &err), &err);
    CHECK_INT(other.st, GGL_IO);
    CHECK_HAS(other.err.msg, "both.gguf is being written by another process");
    CHECK_OK(llm_training_run(b, &other.run, &err), &err);
    llm_training_close(a);
    llm_training_close(b);
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

/* In the warm-up the rate is below the one that was given, which is the one to make smaller. An adapter that a rate has ruined: nothing
 * changes what the model writes any more. */
TEST(too_high_a_rate) {
    static const struct {
        llm_training_params p;
        const char *words[2];
    } row[] = {{{.rate = 50, .n_steps = 400, .n_warmup = -1, .max_norm = -1},
                {"the training has diverged", "a smaller rate may help, such as 0.0008"}},
               {{.rate = 100, .n_steps = 400, .n_warmup = 100, .max_norm = -1},
                {"the training has diverged: ",
                 " (the largest is 100); a smaller rate may help, such as 0.0008"}},
               {{.lora = true, .rate = 20, .n_steps = 400, .n_warmup = -1},
                {"nothing learns any more: the gradient has been 0 for 5 steps, at a loss of ",
                 "a smaller rate may help, such as 0.003"}}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        ggl_error err = {0};
        const llm_training_run_params run = {.size = sizeof run};
        llm_training *t = open_on("builtin:chat", chats(), row[i].p);
        REQUIRE(t);
        CHECK_INT(llm_training_run(t, &run, &err), GGL_LIMIT);
        CHECK_HAS(err.msg, row[i].words[0]);
        CHECK_HAS(err.msg, row[i].words[1]);
        llm_training_close(t);
    }
}

static ggl_tensor *nan_loss(void *user, ggl_graph *g, ggl_tensor *logits, ggl_tensor *target) {
    (void)user;
    return ggl_binary(g, GGL_OP_MUL, ggl_cross_entropy(g, logits, target),
                      ggl_graph_number(g, NAN));
}

/* Losses that are not finite before anything was learned are those of the model. */
TEST(a_model_that_is_damaged) {
    ggl_error err = {0};
    const char *const path = path_of("damaged.gguf");
    llm_training_params p = {.n_steps = 1, .rate = 1e-6};
    llm_training *t = open_on("builtin:chat", chats(), p);
    REQUIRE(t);
    CHECK_OK(llm_training_write(t, path, true, &err), &err);
    llm_training_close(t);
    ggl_gguf *g;
    REQUIRE_OK(ggl_gguf_open(&g, path, NULL, &err), &err);
    const ggl_gguf_tensor *norm = ggl_gguf_find_tensor(g, "output_norm.weight");
    size_t size;
    REQUIRE(norm && norm->type == GGL_F32);
    const long at = (long)((const char *)norm->data - (const char *)ggl_gguf_part(g, 0, &size));
    ggl_gguf_close(g);
    FILE *f = fopen(path, "r+b");
    REQUIRE(f && fseek(f, at, SEEK_SET) == 0);
    CHECK(fwrite(&(float){NAN}, sizeof(float), 1, f) == 1);
    fclose(f);
    p.n_steps = 400;
    t = open_on(path, chats(), p);
    REQUIRE(t);
    CHECK_INT(llm_training_step(t, NULL, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "in step 1 the loss is nan");
    CHECK_HAS(err.msg, "before anything was learned: the rate is not the cause");
    CHECK_HAS(err.msg, "The model gives them: a file may be damaged");
    llm_training_close(t);
    p.loss = nan_loss;
    t = open_on("builtin:chat", chats(), p);
    REQUIRE(t);
    CHECK_INT(llm_training_step(t, NULL, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "The model, or the loss function, gives them");
    llm_training_close(t);
}

/* A loss above that of guessing is told at the end; one below it, and one that is no loss of tokens, is not. */
TEST(no_better_than_guessing) {
    static char text[4000];
    size_t n = 0;
    for (int i = 0; i < 40; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "{\"text\": \"%d7$#Q x9&K =%%\"}\n", i);
    const char *hard = file_of("hard.jsonl", text);
    const struct {
        const char *file;
        llm_training_params p;
        bool told;
    } row[] = {
        {hard, {0}, true}, {story(), {.separator = "\n\n"}, false}, {hard, {.loss = twice}, false}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char said[4000] = "";
        llm_training_params p = row[i].p;
        p.n_seq = 1;
        p.n_steps = 25;
        p.rate = 1e-9;
        p.valid_share = -1;
        p.note = keep_note;
        p.user = p.loss ? NULL : said;
        p.note = p.loss ? NULL : keep_note;
        llm_training *t = open_on("builtin:stories", row[i].file, p);
        REQUIRE(t);
        llm_training_report r = {0};
        for (int k = 0; k < 25; k++)
            r = step(t);
        CHECK_MSG((strstr(said, "is no better than that of guessing, 7.62: ") != NULL) ==
                      row[i].told,
                  "%d: a loss of %g: %s", (int)i, r.loss, said);
        llm_training_close(t);
    }
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

#define FILE_OF(list) .file = list, .n_files = 1

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
        {{FILE_OF(one), .rate = -1}, GGL_USAGE, "rate (-lr) is -1; it must be from 0 to 100"},
        {{FILE_OF(one), .n_batch = -5}, GGL_USAGE, "n_batch (-b) is -5"},
        {{FILE_OF(one), .rank = -5, .lora = true}, GGL_USAGE, "rank"},
        {{FILE_OF(one), .schedule = "cos"}, GGL_USAGE, "cosine, linear and constant"},
        {{FILE_OF(one), .matrix = pattern, .n_matrices = 1}, GGL_USAGE, "needs lora (--lora)"},
        {{FILE_OF(one), .rank = 4, .dora = true}, GGL_USAGE, "rank (--rank) is of a new adapter"},
        {{FILE_OF(one), .alpha = 4}, GGL_USAGE, "alpha (--alpha) is of a new adapter"},
        {{FILE_OF(one), .rs = true}, GGL_USAGE, "rs (--rslora) is of a new adapter"},
        {{FILE_OF(one), .dora = true}, GGL_USAGE, "dora (--dora) is of a new adapter"},
        {{FILE_OF(one), .optimizer = "adam"}, GGL_USAGE, "adamw, sgd and muon"},
        {{FILE_OF(one), .optimizer_bits = 4}, GGL_USAGE, "it must be 8 or 32"},
        {{FILE_OF(one), .round_to = "q4_0", .bf16 = true},
         GGL_USAGE,
         "both say what products read"},
        {{FILE_OF(one), .round_to = "q4"}, GGL_USAGE, "no type of this name"},
        {{FILE_OF(one), .round_to = "q4_0", .lora = true}, GGL_USAGE, "stay f32"},
        {{FILE_OF(one), .lora = true, .matrix = pattern, .n_matrices = 1}, GGL_NOT_FOUND, "blk.99"},
        {{FILE_OF(one), .learn = pattern, .n_learn = 1}, GGL_NOT_FOUND, "blk.99"},
        {{FILE_OF(one), .lora = true, .adapter = "a"}, GGL_USAGE, "either a new adapter"},
        {{FILE_OF(one), .lora = true, .learn = model_own, .n_learn = 1},
         GGL_NOT_FOUND,
         "'output_norm.weight' fits the name of no weight"},
        {{FILE_OF(one), .adapter = none}, GGL_IO, "none.txt"},
        {{.file = lost, .n_files = 1}, GGL_IO, "none.txt"},
        {{.file = mixed, .n_files = 2}, GGL_FORMAT, "pairs.jsonl"},
        {{FILE_OF(one), .valid_file = two, .n_valid_files = 1}, GGL_USAGE, "pairs.jsonl"},
        {{FILE_OF(two), .teacher = "builtin:chat"}, GGL_USAGE, "no teacher"},
        {{FILE_OF(one), .loss = twice, .teacher = "builtin:chat"}, GGL_USAGE, "not both"},
        {{FILE_OF(one), .n_ctx = 32, .teacher = "builtin:words"}, GGL_UNSUPPORTED, "builtin:words"},
        {{FILE_OF(one), .teacher = "builtin:words"},
         GGL_SHAPE,
         "the teacher builtin:words: the context has 1024 tokens"},
        {{FILE_OF(one), .round_to = "i32"}, GGL_USAGE, "cannot be rounded to i32"},
        {{FILE_OF(one), .round_to = "f64"}, GGL_USAGE, "cannot be rounded to f64"},
        {{FILE_OF(two), .lora = true, .progress = stop, .user = &calls}, GGL_CANCELLED, ""},
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
