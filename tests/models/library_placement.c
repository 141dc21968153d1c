/* Where layers run, by the members device, split and n_gpu_layers of llm_open_params. The tools read the same texts by
 * the same code; e2e.python compares the two. */
#include "library_test.h"

#include <stdlib.h>

#include "process_status.h"
#include "test.h"

typedef struct row {
    const char *device, *split;
    int32_t n_gpu_layers;
    ggl_status status;
    const char *want; /* llm_context_placement, or what the message contains */
} row;

static const row rows[] = {
    {NULL, NULL, 0, GGL_OK, "cpu"},
    {"", NULL, 0, GGL_OK, "cpu"},
    {"cpu", NULL, 0, GGL_OK, "cpu"},
    {"CPU", NULL, 0, GGL_OK, "cpu"},
    {"none", NULL, 0, GGL_OK, "cpu"},
    {"None", NULL, 3, GGL_OK, "cpu=5"},
    {"Reference", NULL, 0, GGL_OK, "reference"},
    {"cpu1,cpu", NULL, 0, GGL_OK, "cpu1"},
    {"cpu1", NULL, 2, GGL_OK, "cpu=3,cpu1=2"},
    {"Cpu1,CPU2", NULL, 99, GGL_OK, "cpu1=3,cpu2=2"},
    {"cpu,cpu1", NULL, 2, GGL_OK, "cpu=3,cpu1=2"},
    {NULL, "cpu=5", 0, GGL_OK, "cpu=5"},
    {NULL, "CPU=2,cpu1=3", 0, GGL_OK, "cpu=2,cpu1=3"},
    {NULL, "CPU=2,cpu=3", 0, GGL_OK, "cpu=2,cpu=3"},
    {NULL, "cpu=0,cpu1=+5", 0, GGL_OK, "cpu=0,cpu1=5"},
    {"cpu1", "cpu1=5", 0, GGL_OK, "cpu1=5"},
    {"cpu", "cpu1=5", 0, GGL_OK, "cpu1=5"},
    {"none", "auto", 0, GGL_OK, "cpu=5"},
    {"cpu,cpu", NULL, 0, GGL_USAGE, "device: 'cpu' is named twice"},
    {"Cpu1,cpu1", NULL, 0, GGL_USAGE, "device: 'cpu1' is named twice"},
    {"none,cpu1", NULL, 0, GGL_USAGE, "device none,cpu1: 'none' stands for the CPU alone"},
    {"cpu,", NULL, 0, GGL_USAGE, "device: the name of a backend is empty"},
    {"cup", NULL, 0, GGL_NOT_FOUND, "device: this build has no backend 'cup'; did you mean 'cpu'?"},
    {NULL, "", 0, GGL_USAGE, "split: '' is neither NAME=LAYERS"},
    {NULL, "cpu", 0, GGL_USAGE,
     "split: 'cpu' is neither NAME=LAYERS, as in vulkan0=20,cpu=12, nor auto"},
    {NULL, "cpu=x", 0, GGL_USAGE, "split: 'cpu=x' is neither"},
    {NULL, "cpu=-1,cpu1=6", 0, GGL_USAGE, "split: 'cpu=-1' is neither"},
    {NULL, "cpu=99999999999999999999", 0, GGL_USAGE, "is neither"},
    {NULL, "=5", 0, GGL_USAGE, "split: the name of a backend is empty"},
    {NULL, "cup=5", 0, GGL_NOT_FOUND, "split: this build has no backend 'cup'"},
    {NULL, "cpu=2,cpu1=2", 0, GGL_USAGE, "split cpu=2,cpu1=2: that is 4 layers; the model has 5"},
    {"cpu1", "cpu=5", 0, GGL_USAGE, "device names cpu1, to which split cpu=5 gives no layers"},
    {NULL, "cpu=5", 3, GGL_USAGE, "split and n_gpu_layers cannot be used together"},
};

static ggl_status open_row(llm_context **c, const row *r, ggl_error *err) {
    const llm_open_params p = {.size = sizeof p,
                               .n_ctx = 64,
                               .n_threads = 2,
                               .device = r->device,
                               .split = r->split,
                               .n_gpu_layers = r->n_gpu_layers};
    return llm_open(c, "builtin:stories", &p, err);
}

static const char *shown(const char *s) {
    return s ? s : "NULL";
}

TEST(texts) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        ggl_error err = {0};
        llm_context *c;
        const ggl_status st = open_row(&c, r, &err);
        const char *got = st == GGL_OK ? llm_context_facts(c)->placement : err.msg;
        CHECK_MSG(st == r->status &&
                      (st == GGL_OK ? strcmp(got, r->want) == 0 : strstr(got, r->want) != NULL),
                  "device %s, split %s, n_gpu_layers %d: status %d, %s", shown(r->device),
                  shown(r->split), (int)r->n_gpu_layers, (int)st, got);
        llm_close(c);
    }
}

/* Members that the tools have as flags: they change no text, or the message names the member. */
TEST(how_it_is_opened) {
    static const char *const rule[] = {"blk.0.*=cpu"}, *const wrong[] = {"none=cpu"};
    const struct {
        llm_open_params p;
        ggl_status status;
        const char *words;
    } how[] = {
        {{.n_threads_batch = 1, .no_mmap = true, .strict = true}, GGL_OK, NULL},
        {{.device = "cpu1", .tensor_split = "1"}, GGL_OK, NULL},
        {{.place = rule, .n_place = 1}, GGL_OK, NULL},
        {{.draft = "builtin:stories",
          .draft_n_ctx = 64,
          .draft_p_min = 0.5f,
          .draft_device = "cpu1"},
         GGL_OK,
         NULL},
        {{.device = "cpu1",
          .split = "rows",
          .draft = "builtin:stories",
          .draft_n_ctx = 64,
          .draft_device = "cpu"},
         GGL_OK,
         NULL},
        {{.type = "q4_k_m"}, GGL_USAGE, "type: the built-in models are quantized already"},
        {{.place = wrong, .n_place = 1}, GGL_USAGE, "place 'none=cpu'"},
        {{.n_place = 1}, GGL_USAGE, "place[0] is NULL; n_place is 1"},
        {{.n_override = 2}, GGL_USAGE, "override[0] is NULL; n_override is 2"},
        {{.n_adapters = 1}, GGL_USAGE, "adapter is NULL; n_adapters is 1"},
        {{.tensor_split = "1,x"},
         GGL_USAGE,
         "tensor_split 1,x: 'x' is not a proportion, a number of 0 or more"},
        {{.tensor_split = "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
                          "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"},
         GGL_USAGE,
         "there are 64 proportions or more"},
        {{.n_gpu_layers = -1},
         GGL_USAGE,
         "n_gpu_layers must be 0 or more (INT32_MAX: all), but is -1"},
        {{.split = "cpu=5", .fit = true}, GGL_USAGE, "split"},
        {{.draft = "builtin:stories", .draft_device = "cup"}, GGL_NOT_FOUND, "draft_device"},
        {{.lookup = true, .draft_p_min = 2}, GGL_USAGE, "draft_p_min must be 0 to 1"},
        {{.n_ctx = INT64_C(1) << 40},
         GGL_USAGE,
         "n_ctx must be 0 to 1073741824, but is 1099511627776"},
        {{.n_parallel = 257}, GGL_USAGE, "n_parallel must be 0 to 256, but is 257"},
        {{.n_cpu_moe = -1}, GGL_USAGE, "n_cpu_moe must be 0 or more"},
        {{.n_threads_batch = 100000}, GGL_USAGE, "n_threads_batch must be 0 to"},
    };
    const llm_generate_params greedy = {.size = sizeof greedy, .n_max = 5};
    written want = {.n = 0};
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        ggl_error err = {0};
        llm_context *c;
        llm_open_params p = how[i].p;
        p.size = sizeof p;
        p.n_ctx = p.n_ctx ? p.n_ctx : 64;
        const ggl_status st = llm_open(&c, "builtin:stories", &p, &err);
        CHECK_MSG(st == how[i].status && (st == GGL_OK || strstr(err.msg, how[i].words)),
                  "%zu: status %d, %s", i, (int)st, err.msg);
        if (!c)
            continue;
        written got;
        generate(c, "Once upon a time", &greedy, &got);
        want = i == 0 ? got : want;
        CHECK_STR(got.s, want.s);
        llm_close(c);
    }
}

static void keep_note(void *user, const char *text) {
    snprintf(user, 512, "%s", text);
}

/* A file that cannot be written is no failure of llm_open, but must not be silent. */
TEST(notes_of_the_repack_cache) {
    char note[512] = "";
    ggl_error err;
    llm_context *c;
    const llm_open_params p = {.size = sizeof p,
                               .n_ctx = 64,
                               .note = keep_note,
                               .user = note,
                               .repack_cache = "/nonexistent/x"};
    REQUIRE_OK(llm_open(&c, BUILTIN_MODEL, &p, &err), &err);
    llm_close(c);
    CHECK_HAS(note, "repacked weights are not saved: /nonexistent/x");
    CHECK(!strchr(note, '\n'));
}

/* Said if a context is asked for that is longer than that of the training, 512 tokens. */
TEST(note_of_a_long_context) {
    static const struct {
        int64_t n_ctx;
        const char *note;
    } how[] = {{512, ""},
               {513, "the model was trained on 512 tokens at once; text beyond them may make no "
                     "sense"}};
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        char note[512] = "";
        ggl_error err;
        llm_context *c;
        const llm_open_params p = {
            .size = sizeof p, .n_ctx = how[i].n_ctx, .note = keep_note, .user = note};
        REQUIRE_OK(llm_open(&c, "builtin:stories", &p, &err), &err);
        llm_close(c);
        CHECK_STR(note, how[i].note);
    }
}

/* Each instance of the CPU has threads of its own, so these show how many were opened. */
TEST(one_cpu) {
    static const row same[] = {{"cpu", NULL, 0, GGL_OK, NULL},
                               {"CPU", NULL, 0, GGL_OK, NULL},
                               {"none", NULL, 0, GGL_OK, NULL},
                               {NULL, "CPU=2,cpu=3", 0, GGL_OK, NULL},
                               {"CPU", "Cpu=5", 0, GGL_OK, NULL}};
    const int before = (int)test_status("Threads:");
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        ggl_error err = {0};
        llm_context *c;
        REQUIRE_OK(open_row(&c, &same[i], &err), &err);
        CHECK_MSG(test_status("Threads:") == before + (before > 0),
                  "device %s, split %s: %d threads, %d before", shown(same[i].device),
                  shown(same[i].split), (int)test_status("Threads:"), before);
        llm_close(c);
    }
}

/* Writes a copy of the built-in model whose context has n tokens. */
static bool write_with_context(const char *path, uint32_t n) {
    static const char key[] = "llama.context_length";
    size_t size;
    unsigned char *data = test_read_file(BUILTIN_MODEL, &size);
    unsigned char *at = data ? memmem(data, size, key, sizeof key - 1) : NULL;
    if (at)
        memcpy(at + sizeof key - 1 + 4, &n, sizeof n); /* after the type, u32 */
    const bool ok = at && test_write_file(path, data, size);
    free(data);
    return ok;
}

static int64_t n_ctx_with_memory(const char *path, const char *bytes, int64_t n_ctx) {
    ggl_error err = {0};
    llm_context *c;
    const llm_open_params p = {.size = sizeof p, .n_threads = 1, .n_ctx = n_ctx};
    if (setenv("GGL_MEMORY_LEFT", bytes, 1) != 0 || !CHECK_OK(llm_open(&c, path, &p, &err), &err))
        return -1;
    const int64_t n = llm_context_facts(c)->n_ctx;
    llm_close(c);
    return n;
}

/* Without n_ctx the context is as large as fits, as that of llm-cli without -c. */
TEST(context_fits_memory) {
    const char *path = test_path("context.gguf");
    REQUIRE(write_with_context(path, 200000));
    CHECK_INT(n_ctx_with_memory(path, "1e12", 0), 200000);
    const int64_t n = n_ctx_with_memory(path, "4e7", 0);
    CHECK_MSG(n > 2048 && n < 200000 && n % 256 == 0, "%d tokens", (int)n);
    CHECK_INT(n_ctx_with_memory(path, "1e6", 0), 2048);        /* fewer are of no use */
    CHECK_INT(n_ctx_with_memory(path, "1e6", 200000), 200000); /* as asked */
    CHECK(unsetenv("GGL_MEMORY_LEFT") == 0);
}

typedef struct told {
    char notes[1024];
    bool prepares; /* weights */
} told;

static void add_note(void *user, const char *text) {
    told *t = user;
    snprintf(t->notes + strlen(t->notes), sizeof t->notes - strlen(t->notes), "%s\n", text);
}

static bool on_prepared(void *user, size_t done, size_t total) {
    ((told *)user)->prepares = done <= total;
    return true;
}

/* Weights whose repacked copy does not fit into memory stay as they are. A program that runs with the file's weights
 * is better than one that the system ends. */
TEST(copies_fit_memory) {
    const struct {
        const char *bytes, *repack_cache;
        int64_t n_ctx;
        bool f16_as_bf16, leaves;
    } way[] = {{"1e12", NULL, 64, false, false},
               {"1e5", NULL, 64, false, true},
               {"1e5", NULL, 0, false, true},
               {"1e5", "/nonexistent/x", 64, false, false}, /* the file is to have them */
               {"1e5", NULL, 64, true, false}};
    bool has_layout = false; /* of their own, with these instruction sets */
    for (size_t i = 0; i < sizeof way / sizeof *way; i++) {
        ggl_error err = {0};
        llm_context *c;
        told t = {.prepares = false};
        const llm_open_params p = {.size = sizeof p,
                                   .n_threads = 1,
                                   .n_ctx = way[i].n_ctx,
                                   .repack_cache = way[i].repack_cache,
                                   .f16_as_bf16 = way[i].f16_as_bf16,
                                   .note = add_note,
                                   .progress = on_prepared,
                                   .user = &t};
        REQUIRE(setenv("GGL_MEMORY_LEFT", way[i].bytes, 1) == 0);
        REQUIRE_OK(llm_open(&c, "builtin:stories", &p, &err), &err);
        has_layout |= t.prepares;
        CHECK_INT(t.prepares, has_layout && !way[i].leaves);
        if (way[i].leaves && has_layout)
            CHECK_HAS(t.notes, "used as they are in the file, because the memory has");
        else
            CHECK_MSG(!strstr(t.notes, "as they are"), "way %zu: %s", i, t.notes);
        llm_close(c);
    }
    CHECK(unsetenv("GGL_MEMORY_LEFT") == 0);
}
