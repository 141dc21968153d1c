/* The tracing backend: results are those of the inner one, to the last bit, and the file is what it
 * says. */
#include <pthread.h>

#include "../models/toy_run.h"
#include "alloc_fail.h"
#include "ggl/internal/backends.h"
#include "sample.h"
#include "test.h"

enum { N = 20 };

/* One for all cases, which stays open. */
static ggl_backend *reference(void) {
    static ggl_backend *b;
    ggl_error err = {0};
    if (!b)
        CHECK_OK(ggl_backend_open(&b, "reference", NULL, &err), &err);
    return b;
}

/* Logits of a prompt, to free(). */
static float *logits_of(const toy_model *t, ggl_backend *const *b, int n_backends, size_t *n) {
    toy_run r;
    ggl_error err = {0};
    float *logits = NULL;
    if (CHECK_MSG(
            toy_start(&r, t, b, n_backends, reference(), n_backends > 1 ? 1 : -1, GGL_F16, &err),
            "%s", err.msg)) {
        *n = (size_t)r.n_vocab * N;
        logits = calloc(*n, sizeof *logits);
        CHECK_MSG(logits && toy_prompt(&r, 1, N, 9, logits, &err), "%s", err.msg);
        toy_stop(&r);
    }
    return logits;
}

static ggl_backend *open_backend(const char *name, const ggl_backend_params *p) {
    ggl_backend *b = NULL;
    ggl_error err = {0};
    CHECK_OK(ggl_backend_open(&b, name, p, &err), &err);
    return b;
}

static void same_logits(const toy_model *t, const char *name, ggl_backend *const *a,
                        ggl_backend *const *b, int n_backends) {
    size_t n = 0, m = 0;
    float *got = logits_of(t, b, n_backends, &n), *want = logits_of(t, a, n_backends, &m);
    CHECK_MSG(got && want && n == m && memcmp(got, want, n * sizeof *got) == 0,
              "%s: traced, the bits are others", name);
    free(got);
    free(want);
}

static void check_file(const char *path, int n_tracks) {
    char command[2048], line[512] = "";
    if (!PYTHON3[0])
        SKIP("there is no python3 to read the file");
    snprintf(command, sizeof command, "'" PYTHON3 "' '" CHECK_TRACE "' '%s' %d 2>&1", path,
             n_tracks);
    FILE *p = popen(command, "r");
    REQUIRE(p);
    while (fgets(line, sizeof line, p))
        continue;
    CHECK_MSG(pclose(p) == 0, "%s", line);
    printf("%s", line);
}

/* Every descriptor, recurrent ones among them, on one backend and split over two; one file of all.
 */
TEST(same_bits) {
    const char *name, *text, *path = test_path("trace.json");
    size_t size;
    toy_model t;
    ggl_error err = {0};
    const ggl_backend_params params = {.size = sizeof params, .n_threads = 2},
                             traced = {.size = sizeof traced, .n_threads = 2, .trace = path};
    ggl_backend *plain[] = {open_backend("cpu", &params), open_backend("cpu", &params)};
    ggl_backend *with[] = {open_backend("trace:cpu", &traced), open_backend("cpu1", &traced)};
    REQUIRE(plain[0] && plain[1] && with[0] && with[1]);
    CHECK_STR(with[0]->name, "cpu");
    CHECK_STR(with[1]->name, "cpu1");
    for (int k = 0; llm_arch_builtin(k, &name, &text, &size); k++)
        if (sampled(k, 9) && CHECK_MSG(toy_open(&t, name, text, size, 1, &err), "%s", err.msg)) {
            same_logits(&t, name, plain, with, 1 + k % 2);
            toy_close(&t);
        }
    for (int i = 0; i < 2; i++) {
        ggl_backend_close(plain[i]);
        ggl_backend_close(with[i]);
    }
    check_file(path, 2);
}

static void count(void *ctx, const ggl_tensor *node, int64_t n, bool prepares, uint64_t begin,
                  uint64_t end) {
    int *calls = ctx;
    (void)prepares;
    *calls += node && n > 0 && begin > 0 && end >= begin;
}

/* Returns 0 or 1, for the two descriptors that the tests below use. */
static bool open_toy(toy_model *t, int which) {
    static const char *const wanted[] = {"bloom.arch", "gemma2.arch"};
    const char *name, *text;
    size_t size;
    ggl_error err = {0};
    for (int k = 0; llm_arch_builtin(k, &name, &text, &size); k++)
        if (strcmp(name, wanted[which]) == 0)
            return CHECK_MSG(toy_open(t, name, text, size, 0, &err), "%s", err.msg);
    return CHECK_MSG(false, "%s is not there", wanted[which]);
}

/* A hook of the caller's own is called as often as without the trace. */
TEST(hook) {
    int calls[2] = {0};
    size_t n;
    toy_model t;
    REQUIRE(open_toy(&t, 0));
    for (int i = 0; i < 2; i++) {
        ggl_backend_params p = {.size = sizeof p,
                                .n_threads = 1,
                                .profile = count,
                                .profile_ctx = &calls[i],
                                .trace = i ? test_path("hook.json") : NULL};
        ggl_backend *b = open_backend("cpu", &p);
        free(logits_of(&t, &b, 1, &n));
        ggl_backend_close(b);
    }
    CHECK(calls[0] > 100);
    CHECK_INT(calls[1], calls[0]);
    toy_close(&t);
}

static size_t file_has(const char *path, const char *words) {
    size_t n = 0, found = 0;
    char *text = (char *)test_read_file(path, &n);
    if (!CHECK_MSG(text != NULL, "%s is not there", path))
        return 0;
    text[n] = 0;
    for (char *p = text; (p = strstr(p, words)); p++)
        found++;
    free(text);
    return found;
}

/* Around a backend that is open already. */
TEST(wrapped) {
    ggl_error err = {0};
    ggl_backend *traced = NULL;
    const char *path = test_path("wrapped.json");
    size_t n;
    toy_model t;
    REQUIRE(open_toy(&t, 0));
    ggl_backend_params p = {
        .size = sizeof p, .n_threads = 1, .profile = ggl_trace_node, .profile_ctx = &traced};
    ggl_backend *cpu = open_backend("cpu", &p);
    free(logits_of(&t, &cpu, 1, &n)); /* nothing is reported yet */
    CHECK_INT(ggl_trace_wrap(&traced, cpu, "/nowhere/trace.json", &err), GGL_IO);
    CHECK_HAS(err.msg, "/nowhere/trace.json");
    CHECK(!traced);
    REQUIRE_OK(ggl_trace_wrap(&traced, cpu, path, &err), &err);
    free(logits_of(&t, &traced, 1, &n));
    ggl_backend_close(traced);
    CHECK(file_has(path, "\"cat\":\"node\"") > 100);
    check_file(path, 1);
    toy_close(&t);
}

static void *run_toy(void *arg) {
    toy_model t;
    size_t n;
    ggl_backend *b = arg;
    if (open_toy(&t, 1)) {
        free(logits_of(&t, &b, 1, &n));
        toy_close(&t);
    }
    return NULL;
}

/* Backends of two threads write to one file. */
TEST(two_threads) {
    const char *path = test_path("two.json");
    pthread_t thread[2];
    ggl_backend *b[2];
    (void)reference();
    for (int i = 0; i < 2; i++)
        REQUIRE(b[i] = open_backend("cpu", &(ggl_backend_params){.size = sizeof(ggl_backend_params),
                                                                 .n_threads = 1,
                                                                 .trace = path}));
    for (int i = 0; i < 2; i++)
        REQUIRE(pthread_create(&thread[i], NULL, run_toy, b[i]) == 0);
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
        ggl_backend_close(b[i]);
    }
    check_file(path, 2);
}

typedef struct opening {
    const toy_model *t;
    const char *path;
} opening;

static bool open_and_run(void *arg) {
    const opening *o = arg;
    const ggl_backend_params p = {
        .size = sizeof p, .n_threads = 2, .mask = ALLOC_TRIED, .trace = o->path};
    ggl_error err = {0};
    ggl_backend *b = NULL;
    toy_run r;
    if (ggl_backend_open(&b, "cpu", &p, &err) != GGL_OK)
        return false;
    bool started = toy_start(&r, o->t, &b, 1, reference(), -1, GGL_F16, &err);
    bool ok = started && toy_prompt(&r, 0, 3, 3, NULL, &err);
    if (started)
        toy_stop(&r);
    ggl_backend_close(b);
    return ok;
}

LONG_TEST(every_allocation_fails_in_turn) {
    ALLOC_SKIP_OPENING();
    toy_model t;
    REQUIRE(open_toy(&t, 0));
    opening o = {&t, test_path("fails.json")};
    (void)reference();
    long n = alloc_fail_each(open_and_run, &o);
    CHECK_MSG(n > 50, "%ld allocations were failed", n);
    toy_close(&t);
}

/* Names of files and tensors are not trusted; a file that cannot be written does not crash. */
TEST(wrong_use) {
    ggl_error err = {0};
    ggl_backend *b = NULL;
    CHECK_INT(ggl_backend_open(&b, "trace:trace:cpu", NULL, &err), GGL_USAGE);
    CHECK_INT(ggl_backend_open(&b, "trace:abacus", NULL, &err), GGL_NOT_FOUND);
    CHECK_INT(ggl_backend_open(&b, "tracecpu", NULL, &err), GGL_NOT_FOUND);
    setenv("GGL_TRACE", "/nowhere/x.json", 1);
    CHECK_INT(ggl_backend_open(&b, "trace", NULL, &err), GGL_IO);
    CHECK_HAS(err.msg, "/nowhere/x.json");
    CHECK(!b);
    setenv("GGL_TRACE", "/dev/full", 1);
    REQUIRE_OK(ggl_backend_open(&b, "trace", NULL, &err), &err);
    toy_model t;
    size_t n;
    REQUIRE(open_toy(&t, 0));
    free(logits_of(&t, &b, 1, &n));
    CHECK_INT(ggl_trace_end(b, &err), GGL_IO);
    CHECK_HAS(err.msg, "the trace: /dev/full: cannot be written: No space left");
    CHECK_OK(ggl_trace_end(b, &err), &err); /* a second time it does nothing */
    free(logits_of(&t, &b, 1, &n));         /* and runs are not recorded */
    CHECK_OK(ggl_trace_end(reference(), &err), &err);
    ggl_backend_close(b);
    toy_close(&t);
}
