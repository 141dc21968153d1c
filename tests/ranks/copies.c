/* llm_open_params.split "copies": texts and windows that several copies of a model compute at the same time. What comes out has the bits and the order
 * of one process: on instances of the CPU, and on ranks that are threads of this process. */
#include "../models/library_test.h"

#include <stdlib.h>
#include <string.h>

#include "local_job.h"
#include "test.h"

enum { N_TEXTS = 90, WINDOW = 32, N_DIMS = 128 };

static const char story[] =
    "Once upon a time there was a little dog. He lived in a small house with a big garden. One day "
    "he saw a cat on the wall. The cat was sad, because she had lost her ball. \"I will help "
    "you,\" "
    "said the dog. They looked under the tree and behind the house. Then the dog saw the ball in "
    "the "
    "water. He jumped in and brought it back. The cat was very happy. They played together all "
    "day, "
    "and they were good friends. In the evening the dog was tired and went home. His mother gave "
    "him "
    "a bone, and he told her about the cat and the ball. Then he slept in his little bed.\n";

/* How a context is opened. */
typedef struct way {
    const char *device; /* NULL: one process */
    int n_ranks;        /* 0: no job */
    bool is_lost;       /* one of them will be */
} way;

static const way ways[] = {{NULL, 0, false},       {"cpu", 0, false},
                           {"cpu,cpu1", 0, false}, {"cpu2,cpu,cpu1,cpu5,cpu3", 0, false},
                           {NULL, 3, false},       {"rank1,rank2", 3, false},
                           {"rank1", 2, false}};
enum { N_WAYS = sizeof ways / sizeof *ways };

/* Sanitizers take long: there, one process, two devices and three ranks. */
static bool is_chosen(int i) {
    return !TEST_SANITIZED || i == 0 || i == 2 || i == 4;
}

typedef struct opened {
    local_job *job;
    llm_context *c;
} opened;

static bool open_way(opened *o, const way *w, llm_open_params p) {
    ggl_error err = {0};
    *o = (opened){0};
    setenv("GGL_RANK_PATIENCE", w->is_lost ? TEST_SANITIZED ? "8" : "1" : "60", 1);
    if (w->n_ranks > 0 && !CHECK_MSG(o->job = local_job_open(w->n_ranks, &err), "%s", err.msg))
        return false;
    p.size = sizeof p;
    p.n_ctx = 64;
    p.n_ubatch = 16;
    p.n_threads = 1;
    p.device = w->device;
    p.split = w->device || w->n_ranks > 0 ? "copies" : NULL;
    return CHECK_OK(llm_open(&o->c, "builtin:stories", &p, &err), &err);
}

static void close_way(opened *o) {
    llm_close(o->c);
    CHECK(!o->job || local_job_close(o->job));
    unsetenv("GGL_RANK_PATIENCE");
}

/* --- texts ------------------------------------------------------------------------------------ */

typedef struct vectors {
    float row[N_TEXTS][N_DIMS];
    size_t n;      /* texts that came */
    size_t n_most; /* after which they are not wanted */
    llm_context *cancels;
    pthread_t thread;
} vectors;

static bool keep_vector(void *user, size_t text, size_t n_rows, const float *row, size_t n) {
    vectors *v = user;
    CHECK(pthread_equal(pthread_self(), v->thread));
    CHECK_INT(text, v->n);
    if (!CHECK(n_rows >= 1 && n == N_DIMS && text < N_TEXTS))
        return false;
    for (size_t r = 0; r < n_rows; r++) /* with the pooling none, several */
        for (size_t i = 0; i < n; i++)
            v->row[text][i] += row[r * n + i] * (float)(r + 1);
    v->n++;
    if (v->cancels && v->n == 5)
        llm_cancel(v->cancels);
    return v->n != v->n_most;
}

/* Text k has 1 to 41 bytes of the story. */
static void make_texts(const char **text, size_t *n) {
    for (size_t k = 0; k < N_TEXTS; k++) {
        text[k] = story + k * 5 % 300;
        n[k] = 1 + k * 7 % 41;
    }
}

static ggl_status embed(llm_context *c, vectors *v, ggl_error *err) {
    const char *text[N_TEXTS];
    size_t n[N_TEXTS];
    make_texts(text, n);
    memset(v->row, 0, sizeof v->row);
    v->n = 0;
    v->thread = pthread_self();
    const llm_embed_params p = {.size = sizeof p, .each = keep_vector, .user = v};
    return llm_embed_texts(c, text, n, N_TEXTS, &p, err);
}

TEST(texts) {
    static vectors want, got;
    static const char *const pooling[] = {NULL, "last", "none"};
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < N_WAYS; i++) {
            ggl_error err = {0};
            opened o;
            if (!is_chosen(i))
                continue;
            if (open_way(&o, &ways[i],
                         (llm_open_params){.embeddings = true, .pooling = pooling[k]})) {
                vectors *v = i == 0 ? &want : &got;
                CHECK_OK(embed(o.c, v, &err), &err);
                CHECK_INT(v->n, N_TEXTS);
                CHECK_MSG(memcmp(want.row, v->row, sizeof want.row) == 0,
                          "pooling %d, way %d: other bits", k, i);
            }
            close_way(&o);
        }
}

/* Texts that are not wanted any more, a text that is too long, a cancel; the context can be used after each. */
TEST(texts_that_end_early) {
    static vectors v;
    for (int i = 0; i < N_WAYS; i++) {
        ggl_error err = {0}, alone = {0};
        opened o;
        const char *text[N_TEXTS];
        size_t n[N_TEXTS];
        if (!is_chosen(i))
            continue;
        if (!open_way(&o, &ways[i], (llm_open_params){.embeddings = true})) {
            close_way(&o);
            continue;
        }
        v = (vectors){.n_most = 37};
        CHECK_INT(embed(o.c, &v, &err), GGL_CANCELLED);
        CHECK_INT(v.n, 37);
        v = (vectors){.cancels = o.c};
        CHECK_INT(embed(o.c, &v, &err), GGL_CANCELLED);
        CHECK(v.n >= 5);
        make_texts(text, n);
        text[60] = story;
        n[60] = 500;
        v = (vectors){.thread = pthread_self()};
        const llm_embed_params p = {.size = sizeof p, .each = keep_vector, .user = &v};
        CHECK_INT(llm_embed_texts(o.c, text, n, N_TEXTS, &p, &err), GGL_LIMIT);
        CHECK_HAS(err.msg, "texts[60] has ");
        CHECK_INT(v.n, 0);
        v = (vectors){0};
        CHECK_OK(embed(o.c, &v, &alone), &alone);
        CHECK_INT(v.n, N_TEXTS);
        close_way(&o);
    }
}

/* Calls that have one sequence use the first device, and other scales of adapters reach all. */
TEST(other_calls) {
    ggl_error err = {0};
    written want = {.n = 0}, got = {.n = 0};
    const llm_generate_params p = greedy(8);
    for (int i = 0; i < 3; i += 2) {
        opened o;
        if (open_way(&o, &ways[i], (llm_open_params){.embeddings = true}))
            generate(o.c, "Once upon", &p, i == 0 ? &want : &got);
        if (i > 0 && o.c)
            CHECK_STR(llm_context_facts(o.c)->placement, "copies on cpu,cpu1");
        close_way(&o);
    }
    CHECK_STR(got.s, want.s);
    CHECK(want.n > 0);
    char *json = NULL;
    size_t n;
    const llm_open_params plan = {
        .size = sizeof plan, .n_ctx = 64, .device = "cpu,cpu1", .split = "copies"};
    CHECK_OK(llm_plan("builtin:stories", &plan, &json, &n, &err), &err);
    CHECK_HAS(json, "\"placement\": \"copies on cpu,cpu1\"");
    CHECK(json && strstr(json, "{\"name\": \"cpu\"") && strstr(json, "{\"name\": \"cpu1\""));
    ggl_free(json);
}

TEST(mistakes) {
    static const char *const place[] = {"blk.0.*=cpu1"};
    const struct {
        llm_open_params p;
        ggl_status status;
        const char *words;
    } row[] = {
        {{.device = "cpu,cpu1,CPU"}, GGL_USAGE, "device: 'cpu' is named twice"},
        {{.device = "cpu,"}, GGL_USAGE, "device: the name of a backend is empty"},
        {{.device = "cpu,cup"}, GGL_NOT_FOUND, "no backend 'cup'"},
        {{.device = "cpu,rank1"}, GGL_NOT_FOUND, "rank1 is a rank of a job"},
        {{.device = "cpu,cpu1", .n_gpu_layers = 2}, GGL_USAGE, "split copies and n_gpu_layers"},
        {{.device = "cpu,cpu1", .tensor_split = "1,1"}, GGL_USAGE, "split copies and tensor_split"},
        {{.device = "cpu,cpu1", .fit = true}, GGL_USAGE, "split copies and fit"},
        {{.device = "cpu,cpu1", .place = place, .n_place = 1},
         GGL_USAGE,
         "split copies and places"},
        {{.strict = true}, GGL_USAGE, "split copies has no effect: device names no devices"},
        {{.draft = "builtin:stories", .draft_device = "copies"}, GGL_NOT_FOUND, "copies"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        ggl_error err = {0};
        llm_context *c = NULL;
        llm_open_params p = row[i].p;
        p.size = sizeof p;
        p.n_ctx = 64;
        p.split = "copies";
        CHECK_INT(llm_open(&c, "builtin:stories", &p, &err), row[i].status);
        CHECK_HAS(err.msg, row[i].words);
        llm_close(c);
    }
}

/* --- windows ---------------------------------------------------------------------------------- */

typedef struct told {
    size_t done; /* tokens */
    int64_t n_windows, n_most;
    size_t stops; /* after so many tokens */
} told;

static bool on_progress(void *user, size_t done, size_t total) {
    told *t = user;
    CHECK_MSG(done <= total && done + WINDOW >= t->done, "%zu of %zu tokens after %zu", done, total,
              t->done);
    t->done = done;
    return t->stops == 0 || done < t->stops;
}

static bool on_window(void *user, const llm_perplexity_window *w) {
    told *t = user;
    CHECK_INT(w->n_done, t->n_windows);
    t->n_windows++;
    return true;
}

static unsigned char *read_file(const char *path, size_t *n) {
    unsigned char *data = test_read_file(path, n);
    CHECK_MSG(data, "%s cannot be read", path);
    return data;
}

static void check_same_file(const char *a, const char *b, int i) {
    size_t n = 0, m = 0;
    unsigned char *x = read_file(a, &n), *y = read_file(b, &m);
    CHECK_MSG(x && y && n == m && memcmp(x, y, n) == 0, "way %d: other bytes", i);
    free(x);
    free(y);
}

TEST(perplexity) {
    char first[1024], path[1024];
    llm_perplexity_result want = {.size = sizeof want}, compared = {.size = sizeof compared};
    snprintf(first, sizeof first, "%s", test_path("first.kld"));
    snprintf(path, sizeof path, "%s", test_path("copies.kld"));
    for (int i = 0; i < N_WAYS; i++) {
        ggl_error err = {0};
        opened o;
        told t = {0};
        llm_perplexity_result r = {.size = sizeof r}, c = {.size = sizeof c};
        if (!is_chosen(i))
            continue;
        if (open_way(&o, &ways[i], (llm_open_params){0})) {
            llm_perplexity_params p = {.size = sizeof p,
                                       .n_window = WINDOW,
                                       .save = i == 0 ? first : path,
                                       .progress = on_progress,
                                       .each = on_window,
                                       .user = &t};
            CHECK_OK(llm_perplexity(o.c, story, strlen(story), &p, &r, &err), &err);
            CHECK(r.n_chunks >= 4 && t.n_windows == r.n_chunks + 1);
            p = (llm_perplexity_params){.size = sizeof p, .base = first};
            CHECK_OK(llm_perplexity(o.c, NULL, 0, &p, &c, &err), &err);
            want = i == 0 ? r : want;
            compared = i == 0 ? c : compared;
            CHECK_MSG(memcmp(&want, &r, sizeof r) == 0, "way %d: other values", i);
            CHECK_MSG(memcmp(&compared, &c, sizeof c) == 0, "way %d: another comparison", i);
            if (i > 0)
                check_same_file(first, path, i);
            t = (told){.stops = 2 * WINDOW};
            p = (llm_perplexity_params){
                .size = sizeof p, .n_window = WINDOW, .progress = on_progress, .user = &t};
            CHECK_INT(llm_perplexity(o.c, story, strlen(story), &p, &r, &err), GGL_CANCELLED);
        }
        close_way(&o);
    }
}

static bool on_matrix(void *user, const llm_imatrix_result *so_far) {
    told *t = user;
    CHECK_INT(so_far->n_chunks, t->n_windows);
    t->n_windows++;
    return so_far->n_chunks != t->n_most;
}

/* The whole text, and its first two windows. */
TEST(importance) {
    char first[1024], path[1024];
    for (int most = 0; most < 3; most += 2)
        for (int i = 0; i < N_WAYS; i++) {
            ggl_error err = {0};
            opened o;
            told t = {.n_most = most > 0 ? most : -1};
            llm_imatrix *m = NULL;
            llm_imatrix_result r = {.size = sizeof r};
            snprintf(first, sizeof first, "%s", test_path(most ? "two.gguf" : "all.gguf"));
            snprintf(path, sizeof path, "%s", test_path("copies.gguf"));
            const llm_imatrix_params p = {.size = sizeof p,
                                          .n_window = WINDOW,
                                          .name = "a story",
                                          .progress = on_progress,
                                          .each = on_matrix,
                                          .user = &t};
            if (!is_chosen(i))
                continue;
            if (open_way(&o, &ways[i], (llm_open_params){0}) &&
                CHECK_OK(llm_imatrix_begin(&m, &err), &err) &&
                CHECK_OK(llm_imatrix_run(m, o.c, story, strlen(story), &p, &r, &err), &err)) {
                CHECK(most > 0 ? r.n_chunks == most : r.n_chunks >= 4);
                CHECK_OK(llm_imatrix_save(m, i == 0 ? first : path, &err), &err);
                if (i > 0)
                    check_same_file(first, path, i);
            }
            llm_imatrix_end(m);
            close_way(&o);
        }
}

/* A rank that falls silent: the call ends, with an error that names it. */
static bool silence(void *user, size_t text, size_t n_rows, const float *row, size_t n) {
    (void)n_rows, (void)row, (void)n;
    if (text == 3)
        local_job_silence(user, 2);
    return true;
}

TEST(lost_rank) {
    ggl_error err = {0};
    opened o;
    enum { MANY = 4000 };
    static const char *text[MANY];
    static size_t n[MANY];
    if (open_way(&o, &(way){NULL, 3, true}, (llm_open_params){.embeddings = true})) {
        for (size_t k = 0; k < MANY; k++) {
            text[k] = story;
            n[k] = 40;
        }
        const llm_embed_params p = {.size = sizeof p, .each = silence, .user = o.job};
        CHECK_INT(llm_embed_texts(o.c, text, n, MANY, &p, &err), GGL_DEVICE);
        CHECK_HAS(err.msg, "rank 2 (process ");
    }
    llm_close(o.c);
    if (o.job)
        (void)local_job_close(o.job); /* a rank does not end as it must */
    unsetenv("GGL_RANK_PATIENCE");
}
