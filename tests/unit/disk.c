/* Locks of files, and the room on disks. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ggl/internal/disk_left.h"
#include "ggl/internal/file_lock.h"
#include "test.h"

static const char *in_folder(const char *name) {
    static char path[4][700];
    static int k;
    char *p = path[k++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", test_folder(), name);
    return p;
}

static bool is_there(const char *path) {
    struct stat s;
    return lstat(path, &s) == 0;
}

/* --- locks ------------------------------------------------------------------------------------ */

TEST(one_at_a_time) {
    ggl_error err = {0};
    ggl_file_lock *a, *b, *c;
    const char *path = in_folder("out"), *other = in_folder("other"), *file = in_folder("out.lock");
    REQUIRE_OK(ggl_file_lock_open(&a, path, &err), &err);
    CHECK(a && is_there(file) && !is_there(path));
    CHECK_INT(ggl_file_lock_open(&b, path, &err), GGL_IO);
    CHECK_HAS(err.msg, "out is being written by another process");
    CHECK(!b && is_there(file));
    REQUIRE_OK(ggl_file_lock_open(&c, other, &err), &err);
    ggl_file_lock_close(c);
    ggl_file_lock_close(a);
    CHECK(!is_there(file));
    REQUIRE_OK(ggl_file_lock_open(&b, path, &err), &err);
    ggl_file_lock_close(b);
    ggl_file_lock_close(NULL);
}

/* A process that is killed leaves a file, which locks nothing. */
TEST(ends_with_its_process) {
    ggl_error err = {0};
    ggl_file_lock *l;
    const char *path = in_folder("killed"), *file = in_folder("killed.lock");
    int says[2];
    char c;
    REQUIRE(pipe(says) == 0);
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        if (ggl_file_lock_open(&l, path, &err) == GGL_OK && l && write(says[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    REQUIRE(pid > 0 && read(says[0], &c, 1) == 1);
    CHECK_INT(ggl_file_lock_open(&l, path, &err), GGL_IO);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    CHECK(is_there(file));
    REQUIRE_OK(ggl_file_lock_open(&l, path, &err), &err);
    CHECK(l);
    ggl_file_lock_close(l);
    CHECK(!is_there(file));
    close(says[0]);
    close(says[1]);
}

/* Many processes that take it as often as they can: never two at once. */
TEST(many_processes) {
    enum { PROCESSES = 6, TIMES = 200 };
    const char *path = in_folder("many"), *mark = in_folder("mark");
    pid_t pid[PROCESSES];
    fflush(stdout);
    for (int i = 0; i < PROCESSES; i++) {
        pid[i] = fork();
        if (pid[i] != 0)
            continue;
        for (int k = 0; k < TIMES;) {
            ggl_error err;
            ggl_file_lock *l;
            if (ggl_file_lock_open(&l, path, &err) != GGL_OK)
                continue;
            k++;
            if (!l || mkdir(mark, 0777) != 0 || rmdir(mark) != 0)
                _exit(1);
            ggl_file_lock_close(l);
        }
        _exit(0);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status = -1;
        CHECK(pid[i] > 0 && waitpid(pid[i], &status, 0) == pid[i] && status == 0);
    }
}

/* Where there can be no lock, there is none, and no error: what is written there says what is wrong. */
TEST(no_locks) {
    static const char *const path[] = {"/dev/null", "/nowhere/at/all", "/proc/x"};
    for (size_t i = 0; i < sizeof path / sizeof *path; i++) {
        ggl_error err = {0};
        ggl_file_lock *l;
        CHECK_OK(ggl_file_lock_open(&l, path[i], &err), &err);
        CHECK(!l);
    }
}

/* --- room ------------------------------------------------------------------------------------- */

TEST(room_on_disks) {
    struct statvfs v;
    struct stat s;
    uint64_t bytes = 0, disk = 0, other = 0;
    REQUIRE(statvfs(test_folder(), &v) == 0 && stat(test_folder(), &s) == 0);
    const double least = 0.5 * (double)v.f_bavail * (double)v.f_frsize;
    static const char *const name[] = {"new", "none/of/these/folders", ""};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        CHECK(ggl_disk_left(in_folder(name[i]), &bytes, &disk));
        CHECK_MSG((double)bytes >= least && disk == (uint64_t)s.st_dev, "%s: %g", name[i],
                  (double)bytes);
    }
    CHECK(ggl_disk_left("here", &bytes, NULL) && ggl_disk_left("none/here", &bytes, NULL));
    CHECK(!ggl_disk_left("/dev/null", &bytes, NULL));
    if (stat("/proc", &s) == 0 && ggl_disk_left("/proc/x", &bytes, &other))
        CHECK(other != disk);
    CHECK(setenv("GGL_DISK_LEFT", "1234", 1) == 0);
    CHECK(ggl_disk_left(in_folder("new"), &bytes, &disk) && bytes == 1234);
    CHECK(unsetenv("GGL_DISK_LEFT") == 0);
}
