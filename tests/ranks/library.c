/* llm/llm.h with layers on ranks of a job of mpirun: every border of the trained models, and what else a context can do. The bits
 * are those of one process. */
#include "llm/llm.h"
#define JOIN(code, err) llm_join_job(code, err)
#include "under_mpirun.h"

#include "../models/library_test.h"
#include "ggl/internal/gguf.h"
#include "seed.h"

#define DATA GGL_SOURCE_DIR "/tests/data"

static const char story[] = "Once upon a time there was a little girl named Lily. She had a red";

/* A text and the logits that it was drawn from. */
typedef struct outcome {
    written t;
    float *logits; /* for free() */
    size_t n, n_row;
} outcome;

static bool keep_logits(void *user, int32_t id, const float *logits) {
    outcome *o = user;
    (void)id;
    float *more = realloc(o->logits, (o->n + 1) * o->n_row * sizeof *more);
    if (!CHECK(more && logits))
        return false;
    o->logits = more;
    memcpy(more + o->n++ * o->n_row, logits, o->n_row * sizeof *more);
    return true;
}

static bool keep_piece(void *user, const char *piece, size_t n) {
    return take(&((outcome *)user)->t, piece, n);
}

static void outcome_free(outcome *o) {
    free(o->logits);
    *o = (outcome){0};
}

/* Generates 12 tokens after the prompt, which takes several batches. */
static outcome write_story(llm_context *c, const char *prompt) {
    ggl_error err;
    outcome o = {.n_row = (size_t)llm_context_facts(c)->n_vocab};
    llm_generate_params p = greedy(12);
    p.token = keep_logits;
    p.user = &o;
    p.ignore_end = true;
    CHECK_OK(llm_generate(c, prompt, &p, keep_piece, &o, &err), &err);
    return o;
}

static void same(const outcome *want, const outcome *got, const char *model, const char *how) {
    CHECK_MSG(want->n == got->n && strcmp(want->t.s, got->t.s) == 0 &&
                  memcmp(want->logits, got->logits, want->n * want->n_row * sizeof(float)) == 0,
              "%s, %s: '%s', not '%s', or other logits", model, how, got->t.s, want->t.s);
}

static llm_context *open_small_batches(const char *model, llm_open_params p) {
    p.n_ubatch = 4;
    return open_with(model, p);
}

/* The outcome with these parameters. */
static outcome outcome_of(const char *model, llm_open_params p, const char *prompt) {
    outcome o = {0};
    llm_context *c = open_small_batches(model, p);
    if (c)
        o = write_story(c, prompt);
    llm_close(c);
    return o;
}

static void check_way(const char *model, llm_open_params p, const outcome *want, const char *how) {
    outcome got = outcome_of(model, p, story);
    if (got.logits)
        same(want, &got, model, how);
    outcome_free(&got);
}

/* Returns the number of layers that a split divides. */
static int count_layers(const char *model) {
    int n = 0;
    llm_context *c = open_with(model, (llm_open_params){.device = "none", .n_gpu_layers = 1});
    if (c && !CHECK_MSG(sscanf(llm_context_facts(c)->placement, "cpu=%d", &n) == 1, "%s: %s", model,
                        llm_context_facts(c)->placement))
        n = 0;
    llm_close(c);
    return n;
}

/* --- borders ------------------------------------------------------------------------------------ */

static const char *const models[] = {"builtin:stories", DATA "/stories-gpt2.gguf",
                                     DATA "/stories-qwen2.gguf", DATA "/stories-qwen3.gguf"};
enum { N_MODELS = sizeof models / sizeof *models };

/* Whether a test looks at this one of all today. */
static bool is_chosen(int k) {
    return sample_is_all() || sample_turn(N_MODELS) == (uint64_t)k;
}

TEST(borders) {
    RANKS_OR_SKIP();
    for (int m = 0; m < N_MODELS; m++) {
        const int n = is_chosen(m) ? count_layers(models[m]) : -1;
        outcome want = {0};
        char split[96];
        if (n >= 0)
            want = outcome_of(models[m], (llm_open_params){0}, story);
        for (int a = 0; a <= n; a++) {
            snprintf(split, sizeof split, "cpu=%d,rank1=%d", a, n - a);
            check_way(models[m], (llm_open_params){.split = split}, &want, split);
            snprintf(split, sizeof split, "rank2=%d,cpu=%d", a, n - a);
            check_way(models[m], (llm_open_params){.split = split}, &want, split);
            for (int b = a; b <= n; b++) {
                snprintf(split, sizeof split, "rank3=%d,rank1=%d,cpu=%d", a, b - a, n - b);
                check_way(models[m], (llm_open_params){.split = split}, &want, split);
                snprintf(split, sizeof split, "cpu=%d,rank1=%d,rank2=%d,rank3=%d", a / 2, a - a / 2,
                         b - a, n - b);
                check_way(models[m], (llm_open_params){.split = split}, &want, split);
            }
        }
        outcome_free(&want);
    }
}

/* --- how a context is opened --------------------------------------------------------------------- */

/* Writes an adapter that changes the queries of two layers, and of one the lengths of the rows, too. */
static bool write_adapter(const char *path) {
    enum { SIZE = 128, RANK = 2 };
    static float a[RANK][SIZE], b[SIZE][RANK], m[SIZE];
    const int64_t ne_a[] = {SIZE, RANK}, ne_b[] = {RANK, SIZE}, ne_m[] = {SIZE, 1};
    ggl_error err;
    uint64_t seed = 5;
    for (int i = 0; i < SIZE; i++) {
        m[i] = 1 + (float)(i % 5) / 4;
        for (int k = 0; k < RANK; k++) {
            a[k][i] = test_random_float(&seed) / 2;
            b[i][k] = test_random_float(&seed) / 2;
        }
    }
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_gguf_put_string(w, "general.type", "adapter", 7);
    ggl_gguf_put_string(w, "adapter.type", "lora", 4);
    ggl_gguf_put_string(w, "general.architecture", "llama", 5);
    ggl_gguf_put_tensor(w, "blk.0.attn_q.weight.lora_a", GGL_F32, 2, ne_a, a);
    ggl_gguf_put_tensor(w, "blk.0.attn_q.weight.lora_b", GGL_F32, 2, ne_b, b);
    ggl_gguf_put_tensor(w, "blk.3.attn_q.weight.lora_a", GGL_F32, 2, ne_a, a);
    ggl_gguf_put_tensor(w, "blk.3.attn_q.weight.lora_b", GGL_F32, 2, ne_b, b);
    ggl_gguf_put_tensor(w, "blk.3.attn_q.weight.lora_magnitude", GGL_F32, 1, ne_m, m);
    const ggl_status st = ggl_gguf_writer_write(w, path, &err);
    ggl_gguf_writer_free(w);
    return CHECK_OK(st, &err);
}

/* Each way of opening, in one process and divided. */
TEST(ways) {
    RANKS_OR_SKIP();
    char adapter[1024];
    snprintf(adapter, sizeof adapter, "%s", test_path("adapter.gguf"));
    REQUIRE(write_adapter(adapter));
    const llm_lora lora = {adapter, 0.75};
    static const char *const place[] = {"blk.1.ffn_*=rank3", "*attn_q*=rank1"};
    const struct {
        const char *name;
        llm_open_params p;
        bool is_draft; /* what is guessed depends on the time that it takes, but changes no text */
    } way[] = {
        {"plain", {0}, false},
        {"q8_0", {.cache_type_k = "q8_0", .cache_type_v = "q8_0"}, false},
        {"q4_0", {.cache_type_k = "q4_0", .cache_type_v = "q4_0"}, false},
        {"f32", {.cache_type_k = "f32", .cache_type_v = "bf16"}, false},
        {"adapter", {.adapter = &lora, .n_adapters = 1}, false},
        {"not repacked", {.no_repack = true}, false},
        {"repacked late", {.repack_late = true}, false},
        {"as bf16", {.f16_as_bf16 = true}, false},
        {"read", {.no_mmap = true}, false},
        {"in parallel", {.n_parallel = 3}, false},
        {"lookup", {.lookup = true, .guess_always = true}, true},
        {"draft", {.draft = "builtin:stories", .draft_n_ctx = 64, .guess_always = true}, true},
        {"draft there",
         {.draft = "builtin:stories", .draft_device = "rank2", .draft_n_gpu_layers = INT32_MAX},
         true},
    };
    for (size_t i = 0; i < sizeof way / sizeof *way; i++) {
        const struct {
            const char *name;
            llm_open_params p;
        } where[] = {
            {"in three", {.split = "rank1=2,cpu=1,rank2=2"}},
            {"in four", {.split = "cpu=1,rank1=1,rank2=2,rank3=1"}},
            {"elsewhere", {.device = "rank1"}},
            {"equally", {.device = "rank1,rank2,rank3", .n_gpu_layers = INT32_MAX}},
            {"some", {.device = "rank1,rank2", .n_gpu_layers = 3, .tensor_split = "2,1"}},
            {"placed", {.split = "cpu=2,rank2=3", .place = place, .n_place = 2}},
        };
        llm_open_params alone = way[i].p;
        alone.draft_device = NULL;
        alone.draft_n_gpu_layers = 0;
        outcome want = outcome_of(models[0], alone, story);
        for (size_t k = 0; k < sizeof where / sizeof *where; k++) {
            llm_open_params p = way[i].p;
            char how[96];
            if (way[i].is_draft && k != 1 && k != 3)
                continue;
            p.split = where[k].p.split;
            p.device = where[k].p.device;
            p.n_gpu_layers = where[k].p.n_gpu_layers;
            p.tensor_split = where[k].p.tensor_split;
            p.place = where[k].p.place;
            p.n_place = where[k].p.n_place;
            snprintf(how, sizeof how, "%s, %s", way[i].name, where[k].name);
            check_way(models[0], p, &want, how);
        }
        outcome_free(&want);
    }
}

/* Other scales: the weights of the ranks are made again. */
TEST(scales) {
    RANKS_OR_SKIP();
    ggl_error err;
    const char *path = test_path("adapter.gguf");
    REQUIRE(write_adapter(path));
    const llm_lora lora = {path, 1};
    llm_open_params p = {.adapter = &lora, .n_adapters = 1};
    llm_context *here = open_small_batches(models[0], p);
    p.split = "rank1=1,cpu=2,rank2=2";
    llm_context *there = open_small_batches(models[0], p);
    REQUIRE(here && there);
    for (int i = 0; i < 4; i++) {
        CHECK_OK(llm_set_adapter_scale(here, 0, i * 0.5, &err), &err);
        CHECK_OK(llm_set_adapter_scale(there, 0, i * 0.5, &err), &err);
        outcome a = write_story(here, story), b = write_story(there, story);
        same(&a, &b, models[0], "another scale");
        outcome_free(&a);
        outcome_free(&b);
    }
    llm_close(here);
    llm_close(there);
}

/* Weights that rank 0 sends, since the ranks may not read its files, and that they keep for the next start. */
TEST(sent) {
    RANKS_OR_SKIP();
    outcome want = outcome_of(models[1], (llm_open_params){0}, story);
    CHECK(setenv("GGL_RANK_FILES", "off", 1) == 0);
    for (int i = 0; i < 2; i++)
        check_way(models[1], (llm_open_params){.split = "cpu=1,rank1=1,rank2=2"}, &want,
                  i ? "kept weights" : "sent weights");
    CHECK(unsetenv("GGL_RANK_FILES") == 0);
    outcome_free(&want);
}

/* --- sequences ------------------------------------------------------------------------------------ */

/* A sequence that is saved goes on in another context, with the same layers on the ranks or with other ones. */
TEST(saved) {
    RANKS_OR_SKIP();
    ggl_error err;
    char path[1024];
    static const char *const split[] = {"cpu=1,rank1=2,rank2=2", "rank3=2,cpu=1,rank1=2",
                                        "rank2=5"};
    enum { N_SPLITS = sizeof split / sizeof *split };
    snprintf(path, sizeof path, "%s", test_path("sequence"));
    llm_context *c = open_small_batches(models[0], (llm_open_params){.split = "cpu=5"});
    REQUIRE(c);
    outcome first = write_story(c, story);
    char longer[sizeof story + sizeof first.t.s];
    snprintf(longer, sizeof longer, "%s%s", story, first.t.s);
    outcome want = write_story(c, longer);
    llm_close(c);
    for (int i = 0; i < N_SPLITS; i++) {
        llm_run_info run = {.size = sizeof run};
        c = open_small_batches(models[0], (llm_open_params){.split = split[i]});
        REQUIRE(c);
        outcome got = write_story(c, story);
        same(&first, &got, models[0], split[i]);
        outcome_free(&got);
        (void)remove(path);
        CHECK_OK(llm_save(c, path, &err), &err);
        llm_close(c);
        c = open_small_batches(models[0], (llm_open_params){.split = split[i]});
        REQUIRE(c);
        CHECK_OK(llm_restore(c, path, &err), &err);
        got = write_story(c, longer);
        same(&want, &got, models[0], "restored");
        CHECK_OK(llm_last_run(c, &run, &err), &err);
        CHECK_MSG(run.n_reused > 20, "%d tokens were used again", (int)run.n_reused);
        outcome_free(&got);
        llm_close(c);
        c = open_small_batches(models[0], (llm_open_params){.split = split[(i + 1) % N_SPLITS]});
        REQUIRE(c);
        CHECK_OK(llm_restore(c, path, &err), &err);
        got = write_story(c, longer);
        same(&want, &got, models[0], "restored under another split");
        CHECK_OK(llm_last_run(c, &run, &err), &err);
        CHECK_MSG(run.n_reused > 20, "%d tokens were used again", (int)run.n_reused);
        outcome_free(&got);
        llm_close(c);
    }
    outcome_free(&first);
    outcome_free(&want);
}

/* Sixteen texts at once. */
TEST(jobs) {
    RANKS_OR_SKIP();
    enum { N = 20, PARALLEL = 16 };
    static const char *const split[] = {NULL, "cpu=2,rank1=3", "rank1=1,rank2=2,rank3=1,cpu=1"};
    static written text[3][N];
    for (int k = 0; k < 3; k++) {
        ggl_error err;
        llm_job job[N] = {0};
        llm_generate_params p[N];
        int32_t *id[N] = {0};
        llm_context *c =
            open_with(models[0], (llm_open_params){.split = split[k], .n_parallel = PARALLEL});
        REQUIRE(c);
        for (int i = 0; i < N; i++) {
            char prompt[64];
            size_t n = 0;
            snprintf(prompt, sizeof prompt, "Once upon a time there were %d cats", i / 2);
            p[i] = greedy(4 + i);
            p[i].temp = i % 2 ? 1 : 0;
            p[i].seed = (uint64_t)i;
            CHECK_OK(llm_encode(c, prompt, strlen(prompt), LLM_ADD_SPECIAL, &id[i], &n, &err),
                     &err);
            job[i] =
                (llm_job){.id = id[i], .n = n, .params = &p[i], .each = take, .user = &text[k][i]};
        }
        CHECK_OK(llm_generate_jobs(c, job, N, &err), &err);
        for (int i = 0; i < N; i++) {
            CHECK_INT(job[i].err.status, GGL_OK);
            CHECK_STR(text[k][i].s, text[0][i].s);
            ggl_free(id[i]);
        }
        llm_close(c);
    }
}

/* --- other models --------------------------------------------------------------------------------- */

TEST(embeddings) {
    RANKS_OR_SKIP();
    static const char *const split[] = {NULL, "cpu=2,rank1=3", "rank1=1,rank2=2,rank3=1,cpu=1"};
    float *row[3] = {0};
    int32_t n = 0;
    ggl_error err;
    for (int k = 0; k < 3; k++) {
        llm_context *c = open_small_batches(
            models[0], (llm_open_params){.split = split[k], .embeddings = true, .n_ubatch = 64});
        REQUIRE(c);
        n = llm_context_facts(c)->n_embd;
        row[k] = calloc((size_t)n, sizeof *row[k]);
        CHECK(row[k] && n > 0);
        CHECK_OK(llm_embed(c, "Once upon a time", 16, row[k], &err), &err);
        CHECK(memcmp(row[k], row[0], (size_t)n * sizeof *row[k]) == 0);
        llm_close(c);
    }
    for (int k = 0; k < 3; k++)
        free(row[k]);
}

static bool keep_speech(void *user, const llm_speech *piece) {
    return take(user, piece->text, piece->n);
}

/* An eye and an ear, whose models are divided. */
TEST(senses) {
    RANKS_OR_SKIP();
    static const char *const device[] = {NULL, "rank1", "rank1,rank2,rank3"};
    ggl_error err;
    written seen[3] = {0}, heard[3] = {0};
    for (int k = 0; k < 3; k++) {
        char mark[LLM_IMAGE_MARK], asked[LLM_IMAGE_MARK + 64];
        const llm_generate_params p = greedy(40);
        llm_open_params where = {.device = device[k], .n_gpu_layers = device[k] ? INT32_MAX : 0};
        llm_context *c = open_with("builtin:shapes", where);
        REQUIRE(c);
        REQUIRE_OK(
            llm_see(c, &(llm_image){.path = GGL_SOURCE_DIR "/examples/shapes.bmp"}, mark, &err),
            &err);
        snprintf(asked, sizeof asked, "%sWhat is in the picture?", mark);
        const llm_message m = {.role = "user", .content = asked};
        CHECK_OK(llm_reply(c, &m, 1, &p, take, &seen[k], &err), &err);
        llm_close(c);
        CHECK_STR(seen[k].s, "A red circle to the left of a blue triangle.");
        where.n_ctx = 48;
        c = open_with("builtin:words", where);
        REQUIRE(c);
        llm_transcribe_params tp = llm_transcribe_default();
        tp.n_beams = 1;
        tp.each = keep_speech;
        tp.user = &heard[k];
        CHECK_OK(llm_transcribe(c, GGL_SOURCE_DIR "/examples/words.wav", &tp, &err), &err);
        llm_close(c);
        CHECK(heard[k].n > 0);
        CHECK_STR(heard[k].s, heard[0].s);
    }
}
