/* Pages of a mapped file that are dropped are read again; other memory keeps what is in it. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/file.h"
#include "ggl/internal/gguf.h"
#include "test.h"
#include "../../ggml-lite/base/os_file.h"

enum { PAGES = 4 * 65536 };

static bool all_are(const char *data, size_t n, char x) {
    size_t k = 0;
    while (k < n && data[k] == x)
        k++;
    return k == n;
}

TEST(of_a_file) {
    ggl_file_map m;
    ggl_error err = {0};
    char *bytes = ggl_aligned_calloc(65536, PAGES), *other = ggl_aligned_calloc(65536, PAGES);
    REQUIRE(bytes && other);
    memset(bytes, 5, PAGES);
    memset(other, 7, PAGES);
    REQUIRE(test_write_file(test_path("pages"), bytes, PAGES));
    for (int no_mmap = 0; no_mmap < 2; no_mmap++) {
        const ggl_file_how how = {.no_mmap = no_mmap != 0};
        REQUIRE_OK(ggl_file_map_open_how(&m, test_path("pages"), &how, &err), &err);
        ggl_file_map_drop(&m, m.data, m.size);
        CHECK(all_are(m.data, m.size, 5));
        ggl_file_map_drop(&m, other, PAGES);
        ggl_file_map_drop(&m, (const char *)m.data + PAGES / 2, (size_t)PAGES);
        ggl_file_map_drop(&m, NULL, SIZE_MAX);
        ggl_file_map_drop(&m, m.data, SIZE_MAX);
        CHECK(all_are(other, PAGES, 7) && all_are(m.data, m.size, 5));
        ggl_file_map_close(&m);
    }
    ggl_aligned_free(bytes);
    ggl_aligned_free(other);
}

TEST(of_a_gguf) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_gguf *f;
    ggl_error err = {0};
    char *bytes = ggl_aligned_calloc(65536, PAGES), *other = ggl_aligned_calloc(65536, PAGES);
    const char *path = test_path("pages.gguf");
    REQUIRE(w && bytes && other);
    memset(bytes, 5, PAGES);
    memset(other, 7, PAGES);
    ggl_gguf_put_tensor(w, "x", GGL_F32, 1, (const int64_t[]){PAGES / 4}, bytes);
    REQUIRE_OK(ggl_gguf_writer_write(w, path, &err), &err);
    REQUIRE_OK(ggl_gguf_open(&f, path, NULL, &err), &err);
    const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, 0);
    ggl_gguf_drop(f, t->data, t->size);
    ggl_gguf_drop(f, other, PAGES);
    ggl_gguf_drop(f, t->data, SIZE_MAX);
    CHECK(all_are(t->data, t->size, 5) && all_are(other, PAGES, 7));
    ggl_gguf_close(f);
    ggl_gguf_writer_free(w);
    ggl_aligned_free(bytes);
    ggl_aligned_free(other);
}

/* A handler of SIGBUS asks which file an address belongs to. Closed files leave room for others. */
TEST(name_of_an_address) {
    enum { N = 5 };
    static const char *const names[N] = {"a", "b", "c", "d", "e"};
    ggl_file_map m[N], read;
    ggl_error err = {0};
    char path[N][256];
    const ggl_file_how no_mmap = {.no_mmap = true};
    for (int i = 0; i < N; i++) {
        snprintf(path[i], sizeof path[i], "%s", test_path(names[i]));
        REQUIRE(test_write_file(path[i], names[i], 1));
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++)
            REQUIRE_OK(ggl_file_map_open(&m[i], path[i], &err), &err);
        for (int i = 0; i < N; i++) {
            CHECK_STR(ggl_file_at(m[i].data, NULL), path[i]);
            CHECK(!ggl_file_at((const char *)m[i].data + 1, NULL)); /* its one byte */
        }
        const void *gone = m[round].data;
        ggl_file_map_close(&m[round]);
        CHECK(!ggl_file_at(gone, NULL));
        REQUIRE_OK(ggl_file_map_open_how(&read, path[0], &no_mmap, &err), &err);
        CHECK(!ggl_file_at(read.data, NULL)); /* memory, which stays whatever becomes of the file */
        ggl_file_map_close(&read);
        for (int i = 0; i < N; i++)
            ggl_file_map_close(&m[i]);
    }
    CHECK(!ggl_file_at(NULL, NULL) && !ggl_file_at(&err, NULL) &&
          !ggl_file_at((const void *)UINTPTR_MAX, NULL));
}

/* Asking whether a page is in memory does not read it. */
TEST(is_in_memory) {
#ifdef POSIX_FADV_DONTNEED
    ggl_file_map m;
    ggl_error err = {0};
    char *bytes = calloc(PAGES, 1);
    const char *path = test_path("cold");
    REQUIRE(bytes && test_write_file(path, bytes, PAGES));
    free(bytes);
    const int fd = open(path, O_RDONLY);
    REQUIRE(fd >= 0 && fsync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
    close(fd);
    REQUIRE_OK(ggl_file_map_open(&m, path, &err), &err);
    const char *first = m.data, *last = first + m.size - 1;
    const bool is_cold = !ggl_os_map_is_present(first);
    for (int i = 0; i < 3 && is_cold; i++)
        CHECK(!ggl_os_map_is_present(last));
    CHECK(*first == 0 && ggl_os_map_is_present(first));
    CHECK(*last == 0 && ggl_os_map_is_present(last));
    ggl_file_map_close(&m);
    if (!is_cold)
        SKIP("this file system keeps files in memory");
#endif
}
