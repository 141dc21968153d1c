/* The whole of the test framework. A test program includes this once; each TEST is a case, which
 * ctest runs in a process of its own:
 *
 *     #include "test.h"
 *     TEST(one_and_one) {
 *         CHECK(1 + 1 == 2);
 *     }
 *
 * `program` runs all cases, `program CASE` one, `program --list` names them. Exit codes: 0, 1 (a
 * check failed), 2 (no such case), 77 (skipped). CHECKs count failures and go on; REQUIREs end the
 * case. */
#ifndef TEST_H
#define TEST_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_process.h"
#include "ggl/status.h"

/* Under the sanitizer of addresses, or of threads, a case that takes long may run a sample. */
#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define TEST_ASAN 1
#else
#define TEST_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define TEST_TSAN 1
#else
#define TEST_TSAN 0
#endif
#define TEST_SANITIZED (TEST_ASAN || TEST_TSAN)

typedef struct test_case {
    const char *name;
    void (*run)(void);
    struct test_case *next;
} test_case;

static test_case *test_first, **test_last = &test_first;
static int test_failures;
static bool test_skipped;

#define TEST(name_)                                                                                \
    static void test_run_##name_(void);                                                            \
    __attribute__((constructor)) static void test_add_##name_(void) {                              \
        static test_case c = {#name_, test_run_##name_, NULL};                                     \
        *test_last = &c;                                                                           \
        test_last = &c.next;                                                                       \
    }                                                                                              \
    static void test_run_##name_(void)

/* A case that takes more than about 1.5 seconds: ./test runs it on one day of eight (CMakeLists.txt). */
#define LONG_TEST(name_) TEST(name_)

#define TEST_SAY(...)                                                                              \
    (test_failures++, fprintf(stderr, "%s:%d: ", __FILE__, __LINE__),                              \
     fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), false)

/* Each is an expression: true if the check held. */
#define CHECK(cond)            ((cond) ? true : TEST_SAY("failed: %s", #cond))
#define CHECK_MSG(cond, ...)   ((cond) ? true : TEST_SAY(__VA_ARGS__))
#define CHECK_OK(status_, err) test_ok(__FILE__, __LINE__, #status_, status_, err)
#define CHECK_INT(got, want)   test_int(__FILE__, __LINE__, #got, (long long)(got), (long long)(want))
#define CHECK_STR(got, want)   test_str(__FILE__, __LINE__, #got, got, want, false)
/* `words` stand somewhere in `text` */
#define CHECK_HAS(text, words) test_str(__FILE__, __LINE__, #text, text, words, true)

#define REQUIRE(cond)                                                                              \
    do {                                                                                           \
        if (!CHECK(cond))                                                                          \
            return;                                                                                \
    } while (0)
#define REQUIRE_OK(status_, err)                                                                   \
    do {                                                                                           \
        if (!CHECK_OK(status_, err))                                                               \
            return;                                                                                \
    } while (0)
#define SKIP(...)                                                                                  \
    do {                                                                                           \
        printf("skipped: " __VA_ARGS__);                                                           \
        putchar('\n');                                                                             \
        test_skipped = true;                                                                       \
        return;                                                                                    \
    } while (0)

/* Where test_shared() found no file: says what it would be, because a clone cannot have it. */
#define SKIP_NOT_SHIPPED(what_)                                                                    \
    SKIP("%s: not part of the repository, and found in no folder GGL_SHARED", what_)

#define TEST_UNUSED __attribute__((unused))

TEST_UNUSED static bool test_ok(const char *file, int line, const char *what, ggl_status s,
                                const ggl_error *err) {
    if (s == GGL_OK)
        return true;
    test_failures++;
    fprintf(stderr, "%s:%d: %s: %s: %s\n", file, line, what, ggl_status_text(s),
            err ? err->msg : "");
    return false;
}

TEST_UNUSED static bool test_int(const char *file, int line, const char *what, long long got,
                                 long long want) {
    if (got == want)
        return true;
    test_failures++;
    fprintf(stderr, "%s:%d: %s is %lld, expected %lld\n", file, line, what, got, want);
    return false;
}

TEST_UNUSED static bool test_str(const char *file, int line, const char *what, const char *got,
                                 const char *want, bool somewhere) {
    if (got && (somewhere ? strstr(got, want) != NULL : strcmp(got, want) == 0))
        return true;
    test_failures++;
    fprintf(stderr, "%s:%d: %s is\n    '%s', expected %s\n    '%s'\n", file, line, what,
            got ? got : "(null)", somewhere ? "to hold" : "is", want);
    return false;
}

/* Pseudo-random numbers (splitmix64): the same on every machine. */
TEST_UNUSED static uint64_t test_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Uniform in [-1, 1). */
TEST_UNUSED static float test_random_float(uint64_t *state) {
    return (float)(int32_t)(test_random(state) >> 32) * 0x1p-31f;
}

/* A folder of this case's own, removed with its files when the case ends. */
static char test_folder_[256];

static void test_folder_remove(void) {
    if (!test_folder_[0])
        return;
    os_folder *folder = ggl_os_folder_open(test_folder_);
    char path[1024];
    for (const char *name; folder && (name = ggl_os_folder_next(folder));) {
        snprintf(path, sizeof path, "%s/%s", test_folder_, name);
        (void)ggl_os_remove(path);
    }
    ggl_os_folder_close(folder);
    (void)ggl_os_remove_folder(test_folder_);
    test_folder_[0] = '\0';
}

TEST_UNUSED static const char *test_folder(void) {
    if (!test_folder_[0]) {
        const char *tmp = getenv("TMPDIR");
        uint64_t random = 0;
        (void)ggl_os_random(&random, sizeof random);
#ifdef _WIN32
        tmp = tmp && tmp[0] ? tmp : getenv("TEMP");
#endif
        snprintf(test_folder_, sizeof test_folder_, "%s/ggl-test-%016" PRIx64,
                 tmp && tmp[0] ? tmp : "/tmp", random);
        if (!ggl_os_make_folder(test_folder_, true)) {
            perror(test_folder_);
            exit(1);
        }
    }
    return test_folder_;
}

/* A file that takes everything and has nothing. */
#ifdef _WIN32
#define TEST_NOWHERE "NUL"
#else
#define TEST_NOWHERE "/dev/null"
#endif

/* Sets a variable of the environment; NULL: removes it. */
TEST_UNUSED static void test_set_variable(const char *name, const char *to) {
#ifdef _WIN32
    (void)_putenv_s(name, to ? to : "");
#else
    if (to)
        (void)setenv(name, to, 1);
    else
        (void)unsetenv(name);
#endif
}

/* A path in that folder; valid until the 8th next call of test_path or test_shared. */
static char *test_path_buffer(void) {
    static char buffers[8][1024];
    static unsigned next;
    return buffers[next++ % 8];
}

TEST_UNUSED static const char *test_path(const char *name) {
    char *path = test_path_buffer();
    snprintf(path, 1024, "%s/%s", test_folder(), name);
    return path;
}

/* A file of the reference folder; NULL if there is no such folder or file: the case should SKIP. */
TEST_UNUSED static const char *test_shared(const char *name) {
    const char *folder = getenv("GGL_SHARED");
    char *path = test_path_buffer();
    snprintf(path, 1024, "%s/%s", folder ? folder : "", name);
    return folder && folder[0] && ggl_os_may_read(path) ? path : NULL;
}

TEST_UNUSED static bool test_write_file(const char *path, const void *data, size_t n) {
    FILE *f = fopen(path, "wb");
    bool ok = f && fwrite(data, 1, n, f) == n;
    return f && fclose(f) == 0 && ok;
}

/* The whole of a file, for free(); NULL if it cannot be read. */
TEST_UNUSED static unsigned char *test_read_file(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    unsigned char *data = size < 0 ? NULL : malloc((size_t)size + 1);
    *n = data ? fread(data, 1, (size_t)size, f) : 0;
    fclose(f);
    return data;
}

int main(int argc, char **argv) {
    int n_run = 0, n_skipped = 0;
    for (test_case *c = test_first; c; c = c->next) {
        if (argc > 1 && strcmp(argv[1], "--list") == 0) {
            puts(c->name);
            n_run++;
        } else if (argc < 2 || strcmp(argv[1], c->name) == 0) {
            int before = test_failures;
            test_skipped = false;
            c->run();
            test_folder_remove();
            n_run++;
            n_skipped += test_skipped;
            if (argc < 2 || test_failures > before)
                printf("%s %s\n",
                       test_failures > before ? "FAILED"
                       : test_skipped         ? "skip  "
                                              : "ok    ",
                       c->name);
        }
    }
    if (n_run == 0) {
        fprintf(stderr, "no case '%s'; --list names them\n", argc > 1 ? argv[1] : "");
        return 2;
    }
    return test_failures > 0 ? 1 : n_skipped == n_run ? 77 : 0;
}

#endif
