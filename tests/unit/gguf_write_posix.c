/* Files are written as POSIX has them: devices, pipes, links, rights, and disks that are full. */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include "gguf_written.h"
#include "test.h"

TEST(full_and_locked) {
    ggl_gguf_writer *w = small_writer();
    ggl_error err;
    CHECK_INT(ggl_gguf_writer_write(w, "/dev/full", &err), GGL_IO);
    CHECK_HAS(err.msg, "No space left");
    if (geteuid() != 0) { /* nothing is unwritable to root */
        const char *folder = test_path("locked");
        char path[1100];
        REQUIRE(mkdir(folder, 0500) == 0);
        snprintf(path, sizeof path, "%s/x.gguf", folder);
        CHECK_INT(ggl_gguf_writer_write(w, path, &err), GGL_IO);
        CHECK_HAS(err.msg, "Permission denied");
        rmdir(folder);
    }
    CHECK_INT(files_in(test_folder()), 0);
    ggl_gguf_writer_free(w);
}

/* Devices and pipes are written as they are, and not replaced by a file. */
TEST(device_and_pipe) {
    ggl_gguf_writer *w = small_writer();
    ggl_error err;
    struct stat st;
    REQUIRE_OK(ggl_gguf_writer_write(w, "/dev/null", &err), &err);
    CHECK(stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode));
    const char *pipe_path = test_path("pipe");
    char got[4] = "";
    REQUIRE(mkfifo(pipe_path, 0600) == 0);
    int fd = open(pipe_path, O_RDONLY | O_NONBLOCK); /* small enough to wait in the pipe */
    REQUIRE_OK(ggl_gguf_writer_write(w, pipe_path, &err), &err);
    CHECK(read(fd, got, 4) == 4 && memcmp(got, "GGUF", 4) == 0);
    CHECK(stat(pipe_path, &st) == 0 && S_ISFIFO(st.st_mode));
    close(fd);
    unlink(pipe_path);
    CHECK_INT(files_in(test_folder()), 0);
    ggl_gguf_writer_free(w);
}

/* A link to a file that is not there yet names where it will be. */
TEST(dangling_link) {
    const char *target = test_path("later.gguf"), *name = test_path("link.gguf");
    ggl_gguf_writer *w = small_writer();
    ggl_error err;
    struct stat st;
    REQUIRE(symlink("later.gguf", name) == 0);
    REQUIRE_OK(ggl_gguf_writer_write(w, name, &err), &err);
    CHECK(lstat(name, &st) == 0 && S_ISLNK(st.st_mode));
    CHECK(lstat(target, &st) == 0 && S_ISREG(st.st_mode));
    REQUIRE(unlink(name) == 0 && symlink(name, name) == 0); /* one to itself */
    CHECK_INT(ggl_gguf_writer_write(w, name, &err), GGL_IO);
    CHECK_INT(files_in(test_folder()), 2);
    ggl_gguf_writer_free(w);
}

/* A write that fails half way, as on a full disk: the old file stays, and nothing beside it. */
TEST(disk_full) {
    const char *path = test_path("x.gguf");
    ggl_error err;
    ggl_gguf_writer *w = small_writer();
    REQUIRE_OK(ggl_gguf_writer_write(w, path, &err), &err);
    static const float data[4096];
    ggl_gguf_put_tensor(w, "t", GGL_F32, 1, (const int64_t[]){4096}, data);
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit old, limit;
    REQUIRE(getrlimit(RLIMIT_FSIZE, &old) == 0);
    limit = old;
    limit.rlim_cur = 4096;
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK_INT(ggl_gguf_writer_write(w, path, &err), GGL_IO);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &old) == 0);
    CHECK_HAS(err.msg, "x.gguf: cannot be written: File too large");
    CHECK_INT(files_in(test_folder()), 1);
    ggl_gguf *f;
    if (CHECK_OK(ggl_gguf_open(&f, path, NULL, &err), &err)) {
        CHECK_INT(ggl_gguf_n_tensors(f), 0);
        ggl_gguf_close(f);
    }
    ggl_gguf_writer_free(w);
}

/* Through a link the file it names is replaced; and rights come from the umask. */
TEST(links_and_rights) {
    const char *target = test_path("target.gguf"), *name = test_path("link.gguf");
    ggl_error err;
    struct stat st;
    ggl_gguf_writer *w = small_writer();
    umask(022);
    REQUIRE_OK(ggl_gguf_writer_write(w, target, &err), &err);
    REQUIRE(stat(target, &st) == 0);
    CHECK_INT(st.st_mode & 0777, 0644);
    REQUIRE(symlink(target, name) == 0);
    ggl_gguf_put_string(w, "more", "value", 5);
    REQUIRE_OK(ggl_gguf_writer_write(w, name, &err), &err);
    REQUIRE(lstat(name, &st) == 0 && S_ISLNK(st.st_mode));
    ggl_gguf *f;
    if (CHECK_OK(ggl_gguf_open(&f, target, NULL, &err), &err)) {
        CHECK_INT(ggl_gguf_n_values(f), 2);
        ggl_gguf_close(f);
    }
    ggl_gguf_writer_free(w);
}
