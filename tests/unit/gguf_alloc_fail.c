/* Opening and writing with every single allocation failing once: a clean error, no leak (address
 * sanitizer). */
#include "alloc_fail.h"
#include "ggl/alloc.h"
#include "ggl/internal/gguf.h"
#include "gguf_bytes.h"
#include "test.h"

static gguf_bytes bytes;

static bool open_memory(void *arg) {
    (void)arg;
    ggl_gguf *f;
    ggl_error err = {0};
    ggl_status s = ggl_gguf_open_memory(&f, bytes.data, bytes.n, "m.gguf", &err);
    if (s == GGL_OK) {
        CHECK(ggl_gguf_find(f, "a.string") && ggl_gguf_find_tensor(f, "four"));
        ggl_gguf_close(f);
        return true;
    }
    CHECK_INT(s, GGL_NOMEM);
    CHECK(!f);
    CHECK_HAS(err.msg, "m.gguf: ");
    CHECK_HAS(err.msg, "out of memory");
    return false;
}

TEST(open_out_of_memory) {
    put_good_file(&bytes, 3);
    CHECK(alloc_fail_each(open_memory, NULL) >= 8);
}

static bool write_memory(void *arg) {
    static const int32_t data_of_all = 7;
    const char *path = arg;
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_error err = {0};
    if (!w)
        return false;
    ggl_gguf_put_string(w, "s", "value", 5);
    ggl_gguf_put_strings(w, "strings", (const ggl_str[]){{"x", 1}, {"", 0}}, 2);
    for (int i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof name, "t.%d", i);
        ggl_gguf_put(w, name, GGL_GGUF_I32, false, &i, 1);
        ggl_gguf_put_tensor(w, name, GGL_I32, 1, (const int64_t[]){1}, &data_of_all);
    }
    void *data;
    size_t size;
    ggl_status s = path ? ggl_gguf_writer_write(w, path, &err)
                        : ggl_gguf_writer_write_memory(w, &data, &size, &err);
    ggl_gguf_writer_free(w);
    if (s != GGL_OK) {
        CHECK_INT(s, GGL_NOMEM);
        CHECK_HAS(err.msg, "out of memory");
        CHECK(!path || access(path, F_OK) != 0);
        return false;
    }
    if (path)
        (void)ggl_os_remove(path);
    else
        ggl_free(data);
    return true;
}

TEST(write_out_of_memory) {
    CHECK(alloc_fail_each(write_memory, NULL) >= 10);
    char path[1100];
    snprintf(path, sizeof path, "%s", test_path("x.gguf"));
    CHECK(alloc_fail_each(write_memory, path) >= 10);
}

static bool open_split(void *arg) {
    ggl_gguf *f;
    ggl_error err = {0};
    ggl_status s = ggl_gguf_open(&f, arg, NULL, &err);
    if (s == GGL_OK) {
        CHECK_INT(ggl_gguf_n_parts(f), 2);
        ggl_gguf_close(f);
        return true;
    }
    CHECK_INT(s, GGL_NOMEM);
    CHECK_HAS(err.msg, "m-0000");
    return false;
}

TEST(split_out_of_memory) {
    char first[1100] = "";
    for (int i = 1; i >= 0; i--) {
        ggl_gguf_writer *w = ggl_gguf_writer_new();
        ggl_error err;
        ggl_gguf_put(w, "split.no", GGL_GGUF_U16, false, &(uint16_t){(uint16_t)i}, 1);
        ggl_gguf_put(w, "split.count", GGL_GGUF_U16, false, &(uint16_t){2}, 1);
        ggl_gguf_put(w, "split.tensors.count", GGL_GGUF_I32, false, &(int32_t){2}, 1);
        ggl_gguf_put_tensor(w, i ? "b" : "a", GGL_I32, 1, (const int64_t[]){1}, "abc");
        snprintf(first, sizeof first, "%s",
                 test_path(i ? "m-00002-of-00002.gguf" : "m-00001-of-00002.gguf"));
        REQUIRE_OK(ggl_gguf_writer_write(w, first, &err), &err);
        ggl_gguf_writer_free(w);
    }
    CHECK(alloc_fail_each(open_split, first) >= 15);
}

/* Looking things up allocates nothing. */
TEST(lookups_allocate_nothing) {
    ggl_gguf *f;
    ggl_error err;
    put_good_file(&bytes, 3);
    REQUIRE_OK(ggl_gguf_open_memory(&f, bytes.data, bytes.n, "m", &err), &err);
    long before = alloc_count();
    int64_t n;
    CHECK(ggl_gguf_get_integer(f, "n.i32", &n, &err) == 1 &&
          ggl_gguf_get_integer(f, "s.empty", &n, &err) == -1);
    CHECK(ggl_gguf_find_tensor(f, "four") && !ggl_gguf_find_tensor(f, "five"));
    CHECK_INT(alloc_count() - before, 0);
    ggl_gguf_close(f);
}
