/* Trainings of models that see and hear: their data, and what they learn. */
#include <math.h>
#include <sys/stat.h>

#include "context.h"
#include "file_senses.h"
#include "llm/llm.h"
#include "llm/steps.h"
#include "opening.h"
#include "training/data.h"
#include "training_test.h"

static const char shapes[] = EXAMPLES "/shapes.bmp", words[] = EXAMPLES "/words.wav";
#define ASKED  "What is in the picture?"
#define ANSWER "A red circle to the left of a blue triangle."

static ggl_error err;

/* --- pictures --------------------------------------------------------------------------------- */

/* Writes a picture of size x size pixels: a square of a color on white. */
static const char *square(const char *name, int size, int red, int green, int blue) {
    const char *path = path_of(name);
    FILE *f = fopen(path, "wb");
    if (!CHECK(f))
        return path;
    fprintf(f, "P6 %d %d 255\n", size, size);
    for (int y = 0; y < size; y++)
        for (int x = 0; x < size; x++) {
            const bool in = x > size / 4 && x < size * 3 / 4 && y > size / 4 && y < size * 3 / 4;
            putc(in ? red : 255, f);
            putc(in ? green : 255, f);
            putc(in ? blue : 255, f);
        }
    fclose(f);
    return path;
}

/* Lines about squares, with the forms of conversations in turn. */
static const char *talks(const char *name, int n) {
    static char text[16000];
    static const char *const color[] = {"red", "green", "blue"};
    size_t used = 0;
    for (int i = 0; i < n; i++) {
        char file[40];
        snprintf(file, sizeof file, "square%d.ppm", i % 3);
        (void)square(file, 40 + 10 * (i % 3), i % 3 == 0 ? 255 : 0, i % 3 == 1 ? 200 : 0,
                     i % 3 == 2 ? 255 : 0);
        used += (size_t)snprintf(
            text + used, sizeof text - used,
            "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image\", \"image\": "
            "\"%s\"}, {\"type\": \"text\", \"text\": \"" ASKED "\"}]}, {\"role\": \"assistant\", "
            "\"content\": \"A %s square.\"}]}\n",
            file, color[i % 3]);
    }
    return file_of(name, text);
}

/* A model as a training opens it, with what it reads. */
typedef struct reads {
    llm_context *c;
    const llm_file_senses *s;
    train_data *d;
} reads;

static bool open_reads(reads *r, const char *model, const char *mmproj) {
    const llm_open_params p = {.size = sizeof p};
    const llm_loading of = {.path = NULL};
    *r = (reads){.c = NULL};
    return CHECK_OK(llm_context_open_path(&r->c, model, &p, LLM_OPENED_MODEL, &err), &err) &&
           CHECK_OK(llm_file_senses_open(&r->s, r->c, mmproj, &of, 128, &err), &err);
}

static ggl_status read_line(reads *r, const char *line) {
    const train_data_params p = {
        .tokenizer = r->c->tokenizer, .chat = r->c->chat, .n_ctx = 128, .senses = r->s};
    llm_train_data_free(r->d);
    r->d = NULL;
    err = (ggl_error){0};
    CHECK_OK(llm_train_data_new(&r->d, &p, &err), &err);
    return llm_train_data_add(r->d, path_of("line.jsonl"), (ggl_str){line, strlen(line)}, &err);
}

static void close_reads(reads *r) {
    llm_train_data_free(r->d);
    llm_file_senses_close(r->s);
    llm_close(r->c);
}

/* The tokens of use for a question about the picture, to its answer. */
static int32_t *tokens_of_use(llm_context *c, size_t *n) {
    char mark[LLM_IMAGE_MARK], talk[LLM_IMAGE_MARK + 200], *prompt = NULL;
    size_t n_prompt;
    int32_t *id = NULL;
    if (!CHECK_OK(llm_see(c, &(llm_image){.path = shapes}, mark, &err), &err))
        return NULL;
    snprintf(talk, sizeof talk,
             "{\"messages\": [{\"role\": \"user\", \"content\": \"%s" ASKED "\"}]}", mark);
    if (CHECK_OK(llm_chat_format(c, talk, true, &prompt, &n_prompt, NULL, &err), &err))
        CHECK_OK(llm_encode(c, prompt, n_prompt, LLM_READ_SPECIAL, &id, n, &err), &err);
    ggl_free(prompt);
    return id;
}

/* Each form has the tokens that the model gets when it is used. */
TEST(forms_of_pictures) {
    static const char *const line[] = {
        "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image_url\", "
        "\"image_url\": {\"url\": \"%s\"}}, {\"type\": \"text\", \"text\": \"" ASKED
        "\"}]}, {\"role\": \"assistant\", \"content\": \"" ANSWER "\"}]}",
        "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image_url\", "
        "\"image_url\": {\"url\": \"file://%s\"}}, {\"type\": \"text\", \"text\": \"" ASKED
        "\"}]}, {\"role\": \"assistant\", \"content\": \"" ANSWER "\"}]}",
        "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image\"}, {\"type\": "
        "\"text\", \"text\": \"" ASKED "\"}]}, {\"role\": \"assistant\", \"content\": \"" ANSWER
        "\"}], \"images\": [\"%s\"]}",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"<image>\\n" ASKED
        "\"}, {\"role\": \"assistant\", \"content\": \"" ANSWER
        "\"}], \"images\": [{\"path\": \"%s\"}]}",
        "{\"image\": \"%s\", \"conversations\": [{\"from\": \"human\", \"value\": "
        "\"<image>\\n" ASKED "\"}, {\"from\": \"gpt\", \"value\": \"" ANSWER "\"}]}"};
    const llm_open_params o = {.size = sizeof o, .n_ctx = 128};
    llm_context *use = NULL;
    reads r;
    size_t n = 0;
    REQUIRE_OK(llm_open(&use, "builtin:shapes", &o, &err), &err);
    int32_t *id = tokens_of_use(use, &n);
    REQUIRE(id && open_reads(&r, "builtin:shapes", "builtin:shapes-eye"));
    uint64_t digest = 0;
    for (size_t i = 0; i < sizeof line / sizeof *line; i++) {
        char text[2000];
        int32_t token[128], target[128];
        float weight[128];
        int64_t row = 0, at = 0;
        snprintf(text, sizeof text, line[i], shapes);
        if (!CHECK_OK(read_line(&r, text), &err) || !CHECK_INT(llm_train_data_n(r.d), 1))
            continue;
        const int64_t length = llm_train_data_length(r.d, 0);
        CHECK(length > (int64_t)n);
        llm_train_data_get(r.d, 0, token, target, weight);
        for (size_t k = 0; k < n; k++) {
            CHECK_MSG(id[k] < 0 ? token[k] < 0 : token[k] == id[k], "form %zu, token %zu: %d, %d",
                      i, k, token[k], id[k]);
            if (token[k] < 0) {
                CHECK_INT(llm_train_data_row(r.d, token[k], &row), 0);
                CHECK_INT(row, at++);
                CHECK(k == 0 || weight[k - 1] == 0);
            }
        }
        CHECK_INT(llm_train_data_counted(r.d, 0), length - (int64_t)n + 1);
        CHECK_INT(llm_train_data_n_readings(r.d), 1);
        CHECK(i == 0 || llm_train_data_digest(r.d) == digest);
        digest = llm_train_data_digest(r.d);
    }
    close_reads(&r);
    ggl_free(id);
    llm_close(use);
}

/* Rows are no targets, also where all tokens count; and lines that show the same picture share its rows. */
TEST(rows_do_not_count) {
    char text[2000];
    reads r;
    int32_t token[128], target[128];
    float weight[128];
    REQUIRE(open_reads(&r, "builtin:shapes", "builtin:shapes-eye"));
    const train_data_params p = {
        .tokenizer = r.c->tokenizer, .chat = r.c->chat, .n_ctx = 128, .all = true, .senses = r.s};
    const char one[] = "{\"image\": \"%s\", \"conversations\": [{\"from\": \"human\", \"value\": "
                       "\"<image>\\n" ASKED "\"}, {\"from\": \"gpt\", \"value\": \"%s\"}]}\n";
    const int n = snprintf(text, sizeof text, one, shapes, ANSWER);
    snprintf(text + n, sizeof text - (size_t)n, one, shapes, "Shapes.");
    REQUIRE_OK(llm_train_data_new(&r.d, &p, &err), &err);
    REQUIRE_OK(llm_train_data_add(r.d, "lines.jsonl", (ggl_str){text, strlen(text)}, &err), &err);
    REQUIRE(llm_train_data_n(r.d) == 2 && llm_train_data_n_readings(r.d) == 1);
    for (int64_t k = 0; k < 2; k++) {
        int64_t counted = 0;
        llm_train_data_get(r.d, k, token, target, weight);
        for (int64_t i = 0; i < llm_train_data_length(r.d, k); i++) {
            CHECK_INT(weight[i], target[i] >= 0);
            counted += target[i] >= 0;
        }
        CHECK_INT(llm_train_data_counted(r.d, k), counted);
    }
    close_reads(&r);
}

TEST(wrong_pictures) {
    static const struct {
        const char *line, *message;
    } wrong[] = {
        {"\"images\": [\"none.bmp\"]", "line.jsonl:1: messages[0]: images[0]: "},
        {"\"images\": [\"none.bmp\"]", "none.bmp: No such file or directory"},
        {"\"images\": [\".\"]", "this is a folder, and no file"},
        {"\"images\": [\"/dev/null\"]", "this is a device or a pipe"},
        {"\"images\": [\"damaged.bmp\"]", "damaged.bmp"},
        {"\"images\": [7]",
         "a picture must be a path, or an object with a \"path\" or a \"url\", not a number"},
        {"\"images\": []", "the messages name more pictures than the 0 of \"images\""},
        {"\"images\": [\"damaged.bmp\", \"b.bmp\"]", "damaged.bmp"},
        {"\"images\": [\"https://example.org/a.png\"]", "nothing is downloaded"},
        {"\"images\": [\"data:image/png,abc\"]", "must be data:TYPE;base64,DIGITS"},
        {"\"images\": [\"data:image/png;base64,!\"]", "is not base64"},
    };
    reads r;
    FILE *f = fopen(path_of("damaged.bmp"), "wb");
    REQUIRE(f && fputs("BMnothing", f) >= 0);
    fclose(f);
    REQUIRE(open_reads(&r, "builtin:shapes", "builtin:shapes-eye"));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[1000];
        snprintf(text, sizeof text,
                 "{\"messages\": [{\"role\": \"user\", \"content\": \"<image>" ASKED
                 "\"}, {\"role\": \"assistant\", \"content\": \"" ANSWER "\"}], %s}",
                 wrong[i].line);
        CHECK(read_line(&r, text) != GGL_OK);
        CHECK_HAS(err.msg, wrong[i].message);
    }
    char text[1000];
    snprintf(text, sizeof text,
             "{\"messages\": [{\"role\": \"user\", \"content\": \"" ASKED
             "\"}, {\"role\": \"assistant\", \"content\": \"" ANSWER "\"}], \"images\": [\"%s\"]}",
             shapes);
    CHECK_INT(read_line(&r, text), GGL_FORMAT);
    CHECK_HAS(err.msg, "\"images\" has 1, of which the messages name 0: write <image>");
    snprintf(text, sizeof text,
             "{\"messages\": [{\"role\": \"user\", \"content\": \"<image><image>" ASKED
             "\"}, {\"role\": \"assistant\", \"content\": \"" ANSWER
             "\"}], \"images\": [\"%s\", \"%s\"]}",
             shapes, shapes);
    CHECK_INT(read_line(&r, text), GGL_LIMIT);
    CHECK_HAS(err.msg, "the model takes 1 picture at a time");
    CHECK_INT(read_line(&r, "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": "
                            "\"audio\", \"audio\": \"a.wav\"}]}]}"),
              GGL_UNSUPPORTED);
    CHECK_HAS(err.msg, "the model sees pictures, and hears no sounds");
    CHECK_INT(read_line(&r, "{\"text\": \"A circle.\", \"image\": \"a.bmp\"}"), GGL_UNSUPPORTED);
    CHECK_HAS(err.msg, "\"image\" beside a text without roles");
    close_reads(&r);
    REQUIRE(open_reads(&r, "builtin:shapes", NULL));
    snprintf(text, sizeof text,
             "{\"messages\": [{\"role\": \"user\", \"content\": \"<image>" ASKED
             "\"}], \"images\": [\"%s\"]}",
             shapes);
    CHECK_INT(read_line(&r, text), GGL_UNSUPPORTED);
    CHECK_HAS(err.msg, "opened without an eye");
    close_reads(&r);
}

/* The mean of the negative logarithms of the probabilities of tokens from `first` on. */
static double loss_of(llm_context *c, const int32_t *id, size_t n, size_t first) {
    const float *logits = NULL;
    const int64_t n_vocab = llm_context_facts(c)->n_vocab;
    double sum = 0;
    if (!CHECK_OK(llm_eval(c, id, n, true, &logits, &err), &err))
        return NAN;
    for (size_t i = first; i < n; i++) {
        const float *row = logits + (int64_t)(i - 1) * n_vocab;
        double all = 0, top = -INFINITY;
        for (int64_t k = 0; k < n_vocab; k++)
            top = fmax(top, (double)row[k]);
        for (int64_t k = 0; k < n_vocab; k++)
            all += exp((double)row[k] - top);
        sum += top + log(all) - (double)row[id[i]];
    }
    return sum / (double)(n - first);
}

/* The loss before the training is that of the model in use. */
TEST(the_loss_of_use) {
    const llm_open_params o = {
        .size = sizeof o, .n_ctx = 128, .cache_type_k = "f32", .cache_type_v = "f32"};
    llm_context *use = NULL;
    char line[1000];
    size_t n = 0, n_answer = 0;
    int32_t *id, *answer = NULL, all[128];
    REQUIRE_OK(llm_open(&use, "builtin:shapes", &o, &err), &err);
    id = tokens_of_use(use, &n);
    REQUIRE(id);
    REQUIRE_OK(
        llm_encode(use, "A green circle.<|end|>", 22, LLM_READ_SPECIAL, &answer, &n_answer, &err),
        &err);
    REQUIRE(n + n_answer < 128);
    memcpy(all, id, n * sizeof *id);
    memcpy(all + n, answer, n_answer * sizeof *id);
    const double wanted = loss_of(use, all, n + n_answer, n);
    snprintf(line, sizeof line,
             "{\"messages\": [{\"role\": \"user\", \"content\": \"<image>" ASKED
             "\"}, {\"role\": \"assistant\", \"content\": \"A green circle.\"}], \"images\": "
             "[\"%s\"]}",
             shapes);
    const llm_training_params p = {.mmproj = "builtin:shapes-eye", .lora = true, .n_steps = 1};
    llm_training *t = open_on("builtin:shapes", file_of("one.jsonl", line), p);
    REQUIRE(t);
    const llm_training_report r = step(t);
    CHECK_MSG(fabs(r.loss - wanted) < 1e-4 * fmax(1, wanted), "%g, in use %g", r.loss, wanted);
    CHECK(wanted > 0.5); /* it is a red one */
    llm_training_close(t);
    ggl_free(id);
    ggl_free(answer);
    llm_close(use);
}

/* Eye and text learn, are written to two files, and go on with the same bits. */
TEST(an_eye_learns) {
    const char *file = talks("talks.jsonl", 24), *out = path_of("out.gguf"),
               *eye = path_of("eye.gguf"), *out2 = path_of("out2.gguf"),
               *eye2 = path_of("eye2.gguf"), *save = path_of("state");
    llm_training_params p = {.mmproj = "builtin:shapes-eye", .n_steps = 6, .rate = 1e-3};
    llm_training_facts f = {.size = sizeof f};
    double before = NAN, after = NAN, read = NAN;
    llm_training *t = open_on("builtin:shapes", file, p), *again;
    REQUIRE(t);
    CHECK_OK(llm_training_describe(t, &f, &err), &err);
    llm_training_run_params run = {.size = sizeof run, .out = out};
    CHECK_INT(llm_training_run(t, &run, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "weights of the eye or the ear learn: mmproj_out");
    CHECK_INT(llm_training_write(t, out, false, &err), GGL_USAGE);
    llm_training_close(t);
    p.mmproj_out = eye;
    t = open_on("builtin:shapes", file, p);
    REQUIRE(t);
    CHECK_OK(llm_training_evaluate(t, &before, NULL, &err), &err);
    (void)step(t);
    (void)step(t);
    CHECK_OK(llm_training_save(t, save, &err), &err);
    run.f32 = true;
    CHECK_OK(llm_training_run(t, &run, &err), &err);
    CHECK_OK(llm_training_evaluate(t, &after, NULL, &err), &err);
    CHECK_MSG(after < 0.7 * before, "%g, from %g", after, before);
    p.mmproj_out = eye2;
    again = open_on("builtin:shapes", file, p);
    REQUIRE(again);
    CHECK_OK(llm_training_resume(again, save, &err), &err);
    run.out = out2;
    CHECK_OK(llm_training_run(again, &run, &err), &err);
    CHECK(same_files(out, out2) && same_files(eye, eye2));
    llm_training_close(again);
    llm_training_close(t);
    llm_training_params changed = p;
    changed.mmproj = eye;
    again = open_on(out, file, changed);
    REQUIRE(again);
    CHECK_OK(llm_training_evaluate(again, &read, NULL, &err), &err);
    CHECK_MSG(fabs(read - after) < 1e-4 * fmax(1, after), "%g, %g", read, after);
    llm_training_close(again);
    /* other pictures are other data, and so is another eye */
    again = open_on("builtin:shapes", file, changed);
    REQUIRE(again);
    CHECK_INT(llm_training_resume(again, save, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "another model or mmproj");
    llm_training_close(again);
    (void)square("square1.ppm", 50, 1, 2, 3);
    again = open_on("builtin:shapes", file, p);
    REQUIRE(again);
    CHECK_INT(llm_training_resume(again, save, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "other texts than the files have now");
    /* and what changes on the way is an error that names the file */
    (void)square("square0.ppm", 64, 9, 9, 9);
    (void)square("square1.ppm", 64, 9, 9, 9);
    (void)square("square2.ppm", 64, 9, 9, 9);
    llm_training_report r = {.size = sizeof r};
    CHECK_INT(llm_training_step(again, &r, &err), GGL_FORMAT);
    CHECK_HAS(err.msg, ".ppm has changed since the data were read");
    llm_training_close(again);
}

static bool break_squares(void *user, const llm_training_report *r) {
    (void)user;
    for (int k = 0; k < 3 && r->step == 2; k++) {
        char name[32];
        snprintf(name, sizeof name, "square%d.ppm", k);
        (void)square(name, 48, 1, 1, 1);
    }
    return true;
}

/* Of an eye whose patches are no whole blocks of a type, what can be rounded learns so. A picture that changes loses no step, and neither does an eye that cannot be
 * written. */
TEST(what_is_learned_is_kept) {
    const char *file = talks("talks.jsonl", 12), *out = path_of("out.gguf"),
               *eye = path_of("eye.gguf"), *save = path_of("state");
    llm_training_params p = {.mmproj = "builtin:shapes-eye",
                             .mmproj_out = eye,
                             .n_steps = 8,
                             .n_seq = 4,
                             .round_to = "q8_0"};
    llm_training_run_params run = {.size = sizeof run, .out = out, .save = save};
    remove(eye);
    llm_training *t = open_on("builtin:shapes", file, p);
    REQUIRE(t);
    CHECK_OK(llm_training_run(t, &run, &err), &err);
    llm_training_close(t);
    CHECK(access(eye, F_OK) == 0 && access(save, F_OK) != 0);
    p.round_to = NULL;
    t = open_on("builtin:shapes", file, p);
    REQUIRE(t);
    run.each = break_squares;
    CHECK_INT(llm_training_run(t, &run, &err), GGL_FORMAT);
    CHECK_HAS(err.msg, "which is kept: ");
    CHECK_HAS(err.msg, ".ppm has changed since the data were read");
    llm_training_close(t);
    CHECK(access(save, F_OK) == 0);
    remove(save);
}

/* Beside an adapter the eye stays as it is; `learn` can say so, too; and preferences may be about pictures. */
TEST(an_eye_that_stays) {
    const char *file = talks("talks.jsonl", 12), *blocks = "blk.*", *out = path_of("part.gguf");
    llm_training_params p = {.mmproj = "builtin:shapes-eye", .n_steps = 2, .lora = true};
    const llm_training_run_params run = {.size = sizeof run, .out = out};
    llm_training *t = open_on("builtin:shapes", file, p);
    REQUIRE(t);
    CHECK_OK(llm_training_run(t, &run, &err), &err);
    llm_training_close(t);
    llm_training_params wrong = p;
    wrong.size = sizeof wrong;
    wrong.file = &file;
    wrong.n_files = 1;
    wrong.mmproj_out = out;
    CHECK_INT(llm_training_open(&t, "builtin:shapes", &wrong, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "beside an adapter the file of the eye or the ear stays as it is");
    p.lora = false;
    p.learn = &blocks;
    p.n_learn = 1;
    t = open_on("builtin:shapes", file, p);
    REQUIRE(t);
    CHECK_OK(llm_training_run(t, &run, &err), &err);
    llm_training_close(t);
    char pair[1000];
    snprintf(pair, sizeof pair,
             "{\"prompt\": [{\"role\": \"user\", \"content\": \"<image>" ASKED
             "\"}], \"chosen\": [{\"role\": \"assistant\", \"content\": \"" ANSWER
             "\"}], \"rejected\": [{\"role\": \"assistant\", \"content\": \"A cat.\"}], "
             "\"images\": [\"%s\"]}",
             shapes);
    t = open_on("builtin:shapes", file_of("pair.jsonl", pair), p);
    REQUIRE(t);
    const llm_training_report r = step(t);
    CHECK_MSG(fabs(r.loss - log(2)) < 1e-6, "%g", r.loss);
    llm_training_close(t);
}

/* Pairs of the eye learn if `matrix` names its matrices, in the file of the adapter, which goes on with the same bits and computes in use what it learned. */
TEST(an_adapter_of_an_eye) {
    static const char *const matrix[] = {"v.blk.*", "mm.*", "blk.*.attn_q.weight"},
                             *const none[] = {"v.blk.9.*"};
    const char *file = talks("talks.jsonl", 24), *out = path_of("eye-lora.gguf"),
               *out2 = path_of("eye-lora2.gguf"), *save = path_of("state");
    llm_training_params p = {.mmproj = "builtin:shapes-eye",
                             .lora = true,
                             .matrix = matrix,
                             .n_matrices = 3,
                             .n_steps = 6,
                             .rate = 5e-3};
    double before = NAN, after = NAN, read = NAN;
    llm_training *t = open_on("builtin:shapes", file, p), *again;
    REQUIRE(t);
    CHECK_OK(llm_training_evaluate(t, &before, NULL, &err), &err);
    (void)step(t);
    (void)step(t);
    CHECK_OK(llm_training_save(t, save, &err), &err);
    llm_training_run_params run = {.size = sizeof run, .out = out};
    CHECK_OK(llm_training_run(t, &run, &err), &err);
    CHECK_OK(llm_training_evaluate(t, &after, NULL, &err), &err);
    CHECK_MSG(after < 0.8 * before, "%g, from %g", after, before);
    llm_training_close(t);
    again = open_on("builtin:shapes", file, p);
    REQUIRE(again);
    CHECK_OK(llm_training_resume(again, save, &err), &err);
    run.out = out2;
    CHECK_OK(llm_training_run(again, &run, &err), &err);
    CHECK(same_files(out, out2));
    llm_training_close(again);
    llm_training_params other = p;
    other.n_matrices = 2;
    again = open_on("builtin:shapes", file, other);
    REQUIRE(again);
    CHECK(llm_training_resume(again, save, &err) != GGL_OK);
    llm_training_close(again);
    llm_training_params on = {.mmproj = "builtin:shapes-eye", .adapter = out, .n_steps = 1};
    again = open_on("builtin:shapes", file, on);
    REQUIRE(again);
    CHECK_OK(llm_training_evaluate(again, &read, NULL, &err), &err);
    CHECK_MSG(fabs(read - after) < 1e-6 * fmax(1, after), "%g, %g", read, after);
    llm_training_close(again);
    llm_training_params wrong = p;
    wrong.size = sizeof wrong;
    wrong.file = &file;
    wrong.n_files = 1;
    wrong.matrix = none;
    wrong.n_matrices = 1;
    CHECK_INT(llm_training_open(&t, "builtin:shapes", &wrong, &err), GGL_NOT_FOUND);
    CHECK_HAS(err.msg, "'v.blk.9.*' fits the name of no matrix");
    wrong = on;
    wrong.size = sizeof wrong;
    wrong.file = &file;
    wrong.n_files = 1;
    wrong.mmproj = NULL;
    CHECK_INT(llm_training_open(&t, "builtin:shapes", &wrong, &err), GGL_NOT_FOUND);
    CHECK_HAS(err.msg, "(mmproj, or --mmproj)");
    /* in use */
    const llm_lora lora = {out, 1};
    const llm_open_params o = {.size = sizeof o,
                               .n_ctx = 128,
                               .cache_type_k = "f32",
                               .cache_type_v = "f32",
                               .adapter = &lora,
                               .n_adapters = 1};
    llm_context *use = NULL;
    char line[1000];
    size_t n = 0, n_answer = 0;
    int32_t *answer = NULL, all[128];
    REQUIRE_OK(llm_open(&use, "builtin:shapes", &o, &err), &err);
    int32_t *id = tokens_of_use(use, &n);
    REQUIRE(id);
    REQUIRE_OK(
        llm_encode(use, "A green circle.<|end|>", 22, LLM_READ_SPECIAL, &answer, &n_answer, &err),
        &err);
    REQUIRE(n + n_answer < 128);
    memcpy(all, id, n * sizeof *id);
    memcpy(all + n, answer, n_answer * sizeof *id);
    const double wanted = loss_of(use, all, n + n_answer, n);
    snprintf(line, sizeof line,
             "{\"messages\": [{\"role\": \"user\", \"content\": \"<image>" ASKED
             "\"}, {\"role\": \"assistant\", \"content\": \"A green circle.\"}], \"images\": "
             "[\"%s\"]}",
             shapes);
    t = open_on("builtin:shapes", file_of("one.jsonl", line), on);
    REQUIRE(t);
    const llm_training_report r = step(t);
    CHECK_MSG(fabs(r.loss - wanted) < 1e-3 * fmax(1, wanted), "%g, in use %g", r.loss, wanted);
    llm_training_close(t);
    ggl_free(id);
    ggl_free(answer);
    llm_close(use);
}

/* --- speech ----------------------------------------------------------------------------------- */

static bool keep_text(void *user, const llm_speech *s) {
    strncat(user, s->text, 200);
    return true;
}

/* The tokens of speech, and the loss before the training, are those of use. */
TEST(speech) {
    const llm_open_params o = {.size = sizeof o, .cache_type_k = "f32", .cache_type_v = "f32"};
    char said[400] = "", line[1000];
    llm_context *use = NULL;
    int32_t token[128], target[128], all[129];
    float weight[128];
    reads r;
    REQUIRE_OK(llm_open(&use, "builtin:words", &o, &err), &err);
    llm_transcribe_params tp = llm_transcribe_default();
    tp.no_times = true;
    tp.each = keep_text;
    tp.user = said;
    REQUIRE_OK(llm_transcribe(use, words, &tp, &err), &err);
    REQUIRE(said[0] && open_reads(&r, "builtin:words", NULL));
    snprintf(line, sizeof line, "{\"audio\": {\"path\": \"%s\"}, \"sentence\": \"%s\"}", words,
             said);
    REQUIRE_OK(read_line(&r, line), &err);
    const int64_t n = llm_train_data_length(r.d, 0), n_counted = llm_train_data_counted(r.d, 0);
    REQUIRE(n < 128);
    CHECK_INT(llm_train_data_reading(r.d, 0), 0);
    llm_train_data_get(r.d, 0, token, target, weight);
    memcpy(all, token, (size_t)n * sizeof *token);
    all[n] = target[n - 1];
    CHECK(n_counted < n && weight[n - n_counted] == 1 && weight[n - n_counted - 1] == 0);
    REQUIRE_OK(llm_hear(use, words, &tp, &err), &err);
    const double wanted = loss_of(use, all, (size_t)n + 1, (size_t)(n - n_counted) + 1);
    const char *matrix[] = {"dec.*.attn_q.weight", "enc.*.attn_q.weight"};
    const llm_training_params adapted = {
        .n_steps = 2, .lora = true, .matrix = matrix, .n_matrices = 2};
    llm_training *t = open_on("builtin:words", file_of("speech.jsonl", line), adapted);
    REQUIRE(t);
    const double loss = step(t).loss;
    CHECK_MSG(fabs(loss - wanted) < 1e-4 * fmax(1, wanted), "%g, in use %g", loss, wanted);
    CHECK(wanted < 1); /* it is what the model writes down */
    llm_training_close(t);
    /* with times */
    snprintf(line, sizeof line,
             "{\"audio_filepath\": \"%s\", \"offset\": 0.5, \"duration\": 1, \"segments\": "
             "[{\"start\": 0.5, \"end\": 1.02, \"text\": \"%s\"}]}",
             words, said);
    CHECK_OK(read_line(&r, line), &err);
    CHECK(llm_train_data_n(r.d) == 1 && llm_train_data_length(r.d, 0) == n + 1);
    close_reads(&r);
    llm_close(use);
}

TEST(wrong_speech) {
    static const struct {
        const char *line, *message;
    } wrong[] = {
        {"\"text\": \"one\"", "lines with \"audio\", the path of a sound, and \"text\""},
        {"\"audio\": \"none.wav\", \"text\": \"one\"", "none.wav: No such file"},
        {"\"audio\": \"long.wav\", \"text\": \"one\"", "seconds, but a window of the model has"},
        {"\"audio\": \"long.wav\", \"text\": \"one\", \"offset\": 1e6",
         "there is no sound after 1e+06 seconds"},
        {"\"audio\": \"long.wav\", \"text\": \"one\", \"offset\": -1",
         "\"offset\" must be a number of seconds"},
        {"\"audio\": \"long.wav\", \"text\": \"one\", \"duration\": \"1\"",
         "\"duration\" must be a number of seconds"},
        {"\"audio\": \"long.wav\", \"text\": \"$\"",
         "'$': the vocabulary lacks a part of it, and would make it ''"},
        {"\"audio\": \"long.wav\", \"text\": \"one $\"",
         "'one $': the vocabulary lacks a part of it, and would make it 'one'"},
        {"\"audio\": \"long.wav\", \"text\": 7", "\"text\" must be a string, not a number"},
        {"\"audio\": \"long.wav\", \"text\": \"one\", \"language\": \"de\"",
         "the model knows English alone"},
        {"\"audio\": \"long.wav\", \"text\": \"one\", \"task\": \"sing\"", "\"task\" must be"},
        {"\"audio\": \"long.wav\", \"text\": \"one\", \"translate\": true",
         "the model does not translate"},
        {"\"audio\": \"long.wav\", \"segments\": [{\"start\": 1, \"end\": 0.5, \"text\": \"one\"}]",
         "segments[0]: \"end\" must be"},
    };
    reads r;
    unsigned char head[44] = "RIFF____WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0"
                             "data";
    const unsigned n = 8000 * 2 * 60;
    for (int k = 0; k < 4; k++) {
        head[4 + k] = (unsigned char)((n + 36) >> 8 * k);
        head[40 + k] = (unsigned char)(n >> 8 * k);
    }
    FILE *f = fopen(path_of("long.wav"), "wb");
    REQUIRE(f && fwrite(head, 1, 44, f) == 44);
    for (unsigned i = 0; i < n; i++)
        putc((int)(i * 37 % 11), f);
    fclose(f);
    REQUIRE(open_reads(&r, "builtin:words", NULL));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[600];
        snprintf(text, sizeof text, "{%s}", wrong[i].line);
        CHECK(read_line(&r, text) != GGL_OK);
        CHECK_HAS(err.msg, wrong[i].message);
    }
    llm_train_data_free(r.d);
    r.d = NULL;
    const train_data_params p = {.tokenizer = r.c->tokenizer, .n_ctx = 64, .senses = r.s};
    REQUIRE_OK(llm_train_data_new(&r.d, &p, &err), &err);
    CHECK_INT(llm_train_data_add(r.d, "a.txt", (ggl_str){"one", 3}, &err), GGL_UNSUPPORTED);
    CHECK_HAS(err.msg, "this is a text, but the model writes down the speech of a sound");
    close_reads(&r);
}

/* A model that writes down speech learns another word for it. */
TEST(speech_learns) {
    char line[1000];
    snprintf(line, sizeof line, "{\"audio\": \"%s\", \"text\": \"seven seven\"}\n", words);
    llm_training *t = open_on("builtin:words", file_of("speech.jsonl", line),
                              (llm_training_params){.n_steps = 8, .rate = 1e-3, .n_warmup = -1});
    REQUIRE(t);
    const double first = step(t).loss;
    double last = first;
    for (int i = 1; i < 8; i++)
        last = step(t).loss;
    CHECK_MSG(last < 0.5 * first, "%g, from %g", last, first);
    CHECK_OK(llm_training_write(t, path_of("words.gguf"), true, &err), &err);
    llm_training_close(t);
}
