/* The permissions of a file that replaces another one: never more than those of the old file, at no time. The
 * functions of the C library that change them are replaced by ones that look first. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ggl/internal/file.h"
#include "test.h"

#ifdef __linux__
#include <sys/syscall.h>

static int mode_before = -1; /* of the new file, when its permissions are set */
static bool may_give = true; /* whether fchown works */

int fchmod(int fd, mode_t mode) {
    struct stat st;
    mode_before = fstat(fd, &st) == 0 ? (int)(st.st_mode & 0777) : -1;
    return (int)syscall(SYS_fchmod, fd, mode);
}

int fchown(int fd, uid_t user, gid_t group) {
    if (may_give)
        return (int)syscall(SYS_fchown, fd, user, group);
    errno = EPERM;
    return -1;
}

/* Writes the file; returns its permissions. */
static int replace(const char *path) {
    ggl_error err = {0};
    ggl_new_file *f;
    struct stat st = {0};
    if (CHECK_OK(ggl_new_file_open(&f, path, &err), &err)) {
        fputs("new", ggl_new_file_stream(f));
        CHECK_OK(ggl_new_file_commit(f, &err), &err);
    }
    CHECK(stat(path, &st) == 0 && st.st_size == 3);
    return (int)(st.st_mode & 0777);
}

TEST(of_the_old_file) {
    static const int modes[] = {0600, 0640, 0604, 0666, 0755};
    const char *path = test_path("old");
    umask(022);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        REQUIRE(test_write_file(path, "old file", 8) && chmod(path, (mode_t)modes[i]) == 0);
        mode_before = -1;
        CHECK_INT(replace(path), modes[i]);
        CHECK_INT(mode_before, 0600);
    }
}

TEST(of_a_new_file) {
    umask(027);
    mode_before = -1;
    CHECK_INT(replace(test_path("new")), 0640);
    CHECK_INT(mode_before, -1);
}

/* If the group cannot be kept, another group must not get its rights; that is no error. */
TEST(of_another_group) {
    const char *path = test_path("group");
    REQUIRE(test_write_file(path, "old file", 8));
    if (chown(path, (uid_t)-1, getegid() + 1) != 0)
        SKIP("only root can give a file to any group");
    REQUIRE(chmod(path, 0664) == 0);
    may_give = true;
    CHECK_INT(replace(path), 0664);
    struct stat st = {0};
    CHECK(stat(path, &st) == 0 && st.st_gid == getegid() + 1);
    may_give = false;
    CHECK_INT(replace(path), 0644);
}
#endif
