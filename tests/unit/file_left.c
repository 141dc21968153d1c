/* Temporary files of writers that were killed: the next writer of the same file removes them, and no others. */
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ggl/internal/file.h"
#include "test.h"

static bool is_there(const char *path) {
    struct stat s;
    return lstat(path, &s) == 0;
}

static void write_whole(const char *path) {
    ggl_error err = {0};
    ggl_new_file *f;
    if (CHECK_OK(ggl_new_file_open(&f, path, &err), &err)) {
        fputs("new", ggl_new_file_stream(f));
        CHECK_OK(ggl_new_file_commit(f, &err), &err);
    }
}

/* In another process: opens the file, says so, and finishes it when it is told to. */
static void write_when_told(const char *path, int says, int told) {
    ggl_error err = {0};
    ggl_new_file *f;
    char c = 'x';
    if (ggl_new_file_open(&f, path, &err) != GGL_OK || write(says, &c, 1) != 1 ||
        read(told, &c, 1) != 1 || fputs("old", ggl_new_file_stream(f)) < 0 ||
        ggl_new_file_commit(f, &err) != GGL_OK)
        _exit(1);
    _exit(0);
}

typedef struct writer {
    pid_t pid;
    int tell;
    char temporary[700];
} writer;

/* Starts it, and waits until it has the file. */
static bool start(writer *w, const char *path) {
    int says[2], told[2];
    char c;
    if (pipe(says) != 0 || pipe(told) != 0)
        return false;
    fflush(stdout);
    w->pid = fork();
    if (w->pid == 0)
        write_when_told(path, says[1], told[0]);
    close(says[1]);
    close(told[0]);
    w->tell = told[1];
    snprintf(w->temporary, sizeof w->temporary, "%s.tmp-%ld-0", path, (long)w->pid);
    const bool begun = w->pid > 0 && read(says[0], &c, 1) == 1;
    close(says[0]);
    return begun && is_there(w->temporary);
}

static int end(writer *w) {
    int status = -1;
    waitpid(w->pid, &status, 0);
    close(w->tell);
    return status;
}

TEST(of_killed_writers) {
    const char *path = test_path("killed");
    writer w[3];
    for (int i = 0; i < 3; i++) {
        REQUIRE(start(&w[i], path));
        kill(w[i].pid, SIGKILL);
        CHECK(WIFSIGNALED(end(&w[i])));
        CHECK(is_there(w[i].temporary));
        CHECK(i == 0 || !is_there(w[i - 1].temporary));
    }
    ggl_error err = {0};
    CHECK_OK(ggl_new_file_check(path, &err), &err);
    CHECK(!is_there(w[2].temporary) && !is_there(path));
}

TEST(of_others_that_write) {
    const char *path = test_path("shared");
    writer w;
    REQUIRE(start(&w, path));
    write_whole(path);
    CHECK(is_there(w.temporary) && is_there(path));
    CHECK(write(w.tell, "x", 1) == 1);
    CHECK_INT(end(&w), 0);
    CHECK(!is_there(w.temporary) && is_there(path));
}

TEST(of_other_names) {
    static const char *const other[] = {"names.tmp-1",       "names.tmp-1-", "names.tmp-1-0x",
                                        "names.tmp-keep",    "names.tmp--0", "names.tmp-x-0",
                                        "names.old.tmp-1-0", "ames.tmp-1-0", "names2.tmp-1-0"};
    enum { N = sizeof other / sizeof *other };
    for (int i = 0; i < N; i++)
        REQUIRE(test_write_file(test_path(other[i]), "x", 1));
    REQUIRE(mkdir(test_path("names.tmp-2-0"), 0755) == 0 &&
            symlink("names.tmp-1", test_path("names.tmp-3-0")) == 0 &&
            mkfifo(test_path("names.tmp-4-0"), 0644) == 0);
    REQUIRE(test_write_file(test_path("names.tmp-12-0"), "x", 1));
    write_whole(test_path("names"));
    CHECK(!is_there(test_path("names.tmp-12-0")));
    for (int i = 0; i < N; i++)
        CHECK_MSG(is_there(test_path(other[i])), "%s", other[i]);
    CHECK(is_there(test_path("names.tmp-2-0")) && is_there(test_path("names.tmp-3-0")) &&
          is_there(test_path("names.tmp-4-0")));
}
