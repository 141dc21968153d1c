/* The file of entered lines: several processes, damaged files, a full disk. */
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/line_history.h"

static char *file(void) {
    static char path[300];
    snprintf(path, sizeof path, "%s/x.history", test_folder());
    return path;
}

static size_t n_lines(const char *path) {
    FILE *f = fopen(path, "rb");
    size_t n = 0;
    for (int c; f && (c = fgetc(f)) != EOF;)
        n += c == '\n';
    if (f)
        fclose(f);
    return n;
}

TEST(entries_come_back) {
    static const char *const entries[] = {"Hello", "two\nlines\n", "back\\slash \\n \\",
                                          "\tx",   "\xe6\x97\xa5", "\\"};
    enum { N = sizeof entries / sizeof *entries };
    line_history *h = line_history_new(file(), 100);
    for (int i = 0; i < N; i++)
        line_history_add(h, entries[i]);
    CHECK(line_history_problem(h) == NULL);
    line_history_free(h);
    struct stat st;
    CHECK(stat(file(), &st) == 0 && (st.st_mode & 0777) == 0600);
    h = line_history_new(file(), 100);
    CHECK_INT(line_history_n(h), N);
    for (size_t i = 0; i < line_history_n(h) && i < N; i++)
        CHECK_STR(line_history_get(h, i), entries[i]);
    line_history_free(h);
}

TEST(only_the_newest_are_kept) {
    char text[32];
    line_history *h = line_history_new(file(), 1000);
    for (int i = 0; i < 100; i++) {
        snprintf(text, sizeof text, "entry %d", i);
        line_history_add(h, text);
    }
    line_history_free(h);
    h = line_history_new(file(), 10);
    CHECK_INT(line_history_n(h), 10);
    CHECK_STR(line_history_get(h, 0), "entry 90");
    line_history_free(h);
    CHECK_INT(n_lines(file()), 10);
    h = line_history_new(file(), 5); /* not more than twice as many: the file stays */
    CHECK_STR(line_history_get(h, 4), "entry 99");
    line_history_free(h);
    CHECK_INT(n_lines(file()), 10);
}

TEST(damaged_files) {
    static const char data[] = "good\n\xff\xfe\nbad\033[2J\n\0\n\nalso good\nno end";
    CHECK(test_write_file(file(), data, sizeof data - 1));
    line_history *h = line_history_new(file(), 10);
    CHECK_INT(line_history_n(h), 2);
    CHECK_STR(line_history_get(h, 1), "also good");
    line_history_add(h, "new");
    line_history_free(h);
    h = line_history_new(file(), 10);
    CHECK_INT(line_history_n(h), 4);
    CHECK_STR(line_history_get(h, 2), "no end");
    CHECK_STR(line_history_get(h, 3), "new");
    CHECK(line_history_problem(h) == NULL);
    line_history_free(h);
}

TEST(no_file_is_possible) {
    const char *const paths[] = {"/dev/null/x/y.history", "/", "/dev/full"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        line_history *h = line_history_new(paths[i], 10);
        line_history_add(h, "kept in memory");
        CHECK_INT(line_history_n(h), 1);
        const char *problem = line_history_problem(h);
        CHECK_MSG(problem && strncmp(problem, paths[i], strlen(paths[i])) == 0, "%s: %s", paths[i],
                  problem ? problem : "no problem");
        CHECK(line_history_problem(h) == NULL); /* once */
        line_history_free(h);
    }
    mkfifo(file(), 0600); /* does not wait for a reader */
    line_history *h = line_history_new(file(), 10);
    CHECK(line_history_problem(h) != NULL);
    line_history_free(h);
}

TEST(a_full_disk_loses_nothing) {
    line_history *h = line_history_new(file(), 100);
    line_history_add(h, "first");
    const pid_t child = fork();
    if (child == 0) {
        char text[100] = {0};
        memset(text, 'x', sizeof text - 1);
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){20, 20}); /* in the middle of the entry */
        line_history_add(h, text);
        _exit(line_history_problem(h) == NULL);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    line_history_free(h);
    h = line_history_new(file(), 100);
    CHECK_INT(line_history_n(h), 1);
    line_history_add(h, "second");
    line_history_free(h);
    CHECK_INT(n_lines(file()), 2);
}

/* Processes that add entries while others read and shorten the file. */
TEST(several_processes) {
    enum { N_PROCESSES = 6, N_ENTRIES = 40 };
    char text[64];
    const char *path = file(); /* one folder for all */
    for (int p = 0; p < N_PROCESSES; p++)
        if (fork() == 0) {
            for (int i = 0; i < N_ENTRIES; i++) {
                line_history *h = line_history_new(path, 1000);
                snprintf(text, sizeof text, "process %d entry %d", p, i);
                line_history_add(h, text);
                line_history_free(h);
            }
            _exit(0);
        }
    while (wait(NULL) > 0)
        ;
    line_history *h = line_history_new(file(), 1000);
    CHECK_INT(line_history_n(h), N_PROCESSES * N_ENTRIES);
    int next[N_PROCESSES] = {0};
    for (size_t i = 0; i < line_history_n(h); i++) {
        int p, k;
        CHECK(sscanf(line_history_get(h, i), "process %d entry %d", &p, &k) == 2 && k == next[p]++);
    }
    line_history_free(h);
}

/* The same, while the file is replaced all the time: none of the newest entries is lost. */
TEST(several_processes_with_a_small_file) {
    enum { N_PROCESSES = 4, N_ENTRIES = 30, MOST = 8 };
    char text[64];
    const char *path = file(); /* one folder for all */
    for (int p = 0; p < N_PROCESSES; p++)
        if (fork() == 0) {
            for (int i = 0; i < N_ENTRIES; i++) {
                line_history *h = line_history_new(path, MOST);
                snprintf(text, sizeof text, "process %d entry %d", p, i);
                line_history_add(h, text);
                line_history_free(h);
            }
            _exit(0);
        }
    while (wait(NULL) > 0)
        ;
    line_history *h = line_history_new(file(), 3 * MOST);
    CHECK(line_history_n(h) >= MOST && line_history_n(h) <= 3 * MOST);
    line_history_free(h);
}

TEST(where_it_is) {
    setenv("XDG_DATA_HOME", "/data", 1);
    char *path = line_history_path("llm-cli");
    CHECK_STR(path, "/data/ggml-lite/llm-cli.history");
    free(path);
    setenv("XDG_DATA_HOME", "relative", 1);
    setenv("HOME", "/home/a", 1);
    path = line_history_path("llm-cli");
    CHECK_STR(path, "/home/a/.local/share/ggml-lite/llm-cli.history");
    free(path);
    unsetenv("HOME");
    CHECK(line_history_path("llm-cli") == NULL);
}
