/* The line of progress, and the context that fits into memory. */
#include "common/progress.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/amounts.h"
#include "common/fit_context.h"
#include "ggl/internal/memory_left.h"
#include "test.h"

static const char *line(const progress_job *job, int n, double t, int width) {
    static char buf[PROGRESS_LINE];
    const size_t size = progress_line(buf, job, n, t, width);
    CHECK(size == strlen(buf));
    return buf;
}

static bool is(const char *a, const char *b) {
    if (strcmp(a, b) != 0)
        fprintf(stderr, "  '%s', not '%s'\n", a, b);
    return strcmp(a, b) == 0;
}

TEST(line_says_how_much) {
    progress_job j = {.what = "prompt", .unit = "tokens", .total = 1500, .done = 512};
    CHECK(is(line(&j, 1, 0.5, 80), "prompt 34 %, 512 of 1500 tokens"));
    CHECK(is(line(&j, 1, 2, 80), "prompt 34 %, 512 of 1500 tokens, 4 s left"));
    j = (progress_job){.what = "loading", .unit = PROGRESS_BYTES, .total = 4.68e9, .done = 1.17e9};
    CHECK(is(line(&j, 1, 20, 80), "loading 25 %, 1.17 GB of 4.68 GB, 1 min 00 s left"));
    j = (progress_job){
        .what = "x.gguf", .unit = PROGRESS_TRANSFER, .total = 100e6, .done = 60e6, .resumed = 50e6};
    CHECK(is(line(&j, 1, 10, 80), "x.gguf 60 %, 60.0 MB of 100 MB, 1.00 MB/s, 40 s left"));
    j.done = 10e6; /* less than before the job: it started over */
    CHECK(is(line(&j, 1, 10, 80), "x.gguf 10 %, 10.0 MB of 100 MB"));
    j = (progress_job){.what = "working"};
    CHECK(is(line(&j, 1, 12, 80), "working, 12 s"));
    j = (progress_job){.what = "prompt", .explained = "reading weights: 35 %"};
    CHECK(is(line(&j, 1, 3, 80), "prompt, reading weights: 35 %, 3 s"));
    j.unit = "tokens", j.total = 512;
    CHECK(is(line(&j, 1, 3, 80), "prompt 0 %, 0 of 512 tokens, reading weights: 35 %"));
}

TEST(line_of_jobs_within_jobs) {
    const progress_job j[] = {{.what = "measuring", .unit = "tests", .total = 4, .done = 1},
                              {.what = "limits", .t_begin = 8}};
    CHECK(is(line(j, 2, 10, 80), "measuring 25 %, 1 of 4 tests: limits, 30 s left"));
}

TEST(line_fits_the_terminal) {
    const progress_job j = {.what = "日本語 file", .total = 2, .done = 1};
    CHECK(is(line(&j, 1, 0, 8), "日本語 f"));
    CHECK(is(line(&j, 1, 0, 5), "日本"));
}

TEST(jobs_without_a_terminal_do_nothing) {
    progress_end();
    progress_begin("steps", 3, "%s", "x");
    progress_set(1);
    CHECK(progress_share(NULL, 2, 3));
    progress_say("y");
    progress_clear();
    progress_end();
    progress_off();
}

TEST(context_that_fits) {
    llm_fit_memory m[2] = {{"memory", 10e9, 1e9, 4e9, 1e6, 0, 0}, {"gpu", 0, 0, 1e9, 1e6, 0, 0}};
    int at;
    CHECK(llm_fit_tokens(m, 2, 5000, &at) == 5000); /* all of it: 5 GB */
    CHECK(llm_fit_tokens(m, 2, 131072, &at) == 4864 && at == 0);
    m[1].available = 4e9;
    m[1].margin = 1e9;
    CHECK(llm_fit_tokens(m, 2, 131072, &at) == 1792 && at == 1);
    m[1].fixed = 5e9;
    CHECK(llm_fit_tokens(m, 2, 131072, &at) == 0 && at == 1);
    m[1].row = 0;
    CHECK(llm_fit_tokens(m, 2, 4000, &at) == 4000);
}

TEST(more_memory_gives_no_fewer_tokens) {
    int64_t before = 0;
    for (double gb = 3; gb < 12; gb += 0.1) {
        const llm_fit_memory m = {"memory", gb * 1e9, 0, 4e9, 1e5, 2e9, 0};
        int at;
        const int64_t n = llm_fit_tokens(&m, 1, 32768, &at);
        CHECK(n >= before && (n <= 4096 || gb * 1e9 >= 6e9 + 1e5 * (double)n));
        before = n;
    }
    CHECK(before == 32768);
}

TEST(context_note_has_numbers) {
    const llm_fit_memory m = {"the memory", 10e9, 1e9, 4e9, 1e6, 0, 0};
    char buf[320];
    CHECK(is(fit_context_text(&m, 131072, buf, sizeof buf),
             "the KV cache of 131072 tokens takes 131 GB, but the memory has 10.0 GB available; "
             "the rest of the model takes 4.00 GB, and 1.00 GB are left free"));
}

TEST(hint_after_a_slow_load) {
    char buf[192];
    CHECK(is(repack_hint(2.9, 2.8, buf, sizeof buf), ""));
    CHECK(is(repack_hint(10, 4, buf, sizeof buf), ""));
    CHECK(strstr(repack_hint(10, 8, buf, sizeof buf), "8 of the 10 s") &&
          strstr(buf, "--repack-cache"));
}

/* --- memory that is left ------------------------------------------------------------------------- */

static void put(const char *root, const char *path, const char *text) {
    char name[512];
    snprintf(name, sizeof name, "%s%s", root, path);
    for (char *s = name + strlen(root) + 1; (s = strchr(s, '/')); s++) {
        *s = '\0';
        (void)mkdir(name, 0700);
        *s = '/';
    }
    FILE *f = fopen(name, "w");
    CHECK(f != NULL);
    if (f) {
        fputs(text, f);
        fclose(f);
    }
}

TEST(memory_left_may_be_told) {
    CHECK(setenv("GGL_MEMORY_LEFT", "1e30", 1) == 0 && ggl_memory_left("") == SIZE_MAX);
    CHECK(setenv("GGL_MEMORY_LEFT", "5000", 1) == 0 && ggl_memory_left("") == 5000);
    CHECK(unsetenv("GGL_MEMORY_LEFT") == 0);
}

TEST(memory_left_is_the_least) {
    char root[] = "/tmp/memory_left.XXXXXX", command[64];
    CHECK(mkdtemp(root) != NULL);
    CHECK(ggl_memory_left(root) == 0);
    put(root, "/proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n");
    CHECK(ggl_memory_left(root) == 8000 * 1024);
    put(root, "/proc/self/cgroup", "0::/a/b\n");
    put(root, "/sys/fs/cgroup/a/b/memory.max", "max\n");
    put(root, "/sys/fs/cgroup/a/b/memory.current", "5000\n");
    CHECK(ggl_memory_left(root) == 8000 * 1024);
    put(root, "/sys/fs/cgroup/a/memory.max", "1000000\n"); /* of a group around it */
    put(root, "/sys/fs/cgroup/a/memory.current", "700000\n");
    put(root, "/sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 100000\n");
    CHECK(ggl_memory_left(root) == 400000);
    put(root, "/sys/fs/cgroup/a/memory.stat", "inactive_file 100000\nactive_file 20000\n");
    CHECK(ggl_memory_left(root) == 420000);
    put(root, "/sys/fs/cgroup/a/memory.high",
        "900000\n"); /* beyond it the system slows processes down */
    CHECK(ggl_memory_left(root) == 320000);
    put(root, "/sys/fs/cgroup/a/memory.max", "max\n");
    CHECK(ggl_memory_left(root) == 320000);
    put(root, "/proc/self/cgroup", "7:cpu:/x\n6:memory:/x\nbroken\n");
    put(root, "/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "50000\n");
    put(root, "/sys/fs/cgroup/memory/x/memory.usage_in_bytes", "60000\n");
    CHECK(ggl_memory_left(root) == 1); /* nothing */
    snprintf(command, sizeof command, "rm -r %s", root);
    CHECK(system(command) == 0);
}
