#include <math.h>
#include <utime.h>

#include "ggl/internal/gguf.h"
#include "ggl/internal/os_stream.h"
#include "ggl/internal/types.h"
#include "gguf_bytes.h"
#include "test.h"

static gguf_bytes bytes;

static bool is_str(ggl_str s, const char *want) {
    return s.n == strlen(want) && memcmp(s.s, want, s.n) == 0;
}

static void check_values(const ggl_gguf *f) {
    static const struct {
        const char *key;
        ggl_gguf_type type;
        double number;
    } want[] = {
        {"n.u8", GGL_GGUF_U8, 200},       {"n.i8", GGL_GGUF_I8, -128},
        {"n.u16", GGL_GGUF_U16, 65535},   {"n.i16", GGL_GGUF_I16, -32768},
        {"n.u32", GGL_GGUF_U32, 4e9},     {"n.i32", GGL_GGUF_I32, -2},
        {"n.f32", GGL_GGUF_F32, 1.5},     {"n.u64", GGL_GGUF_U64, 0x1p64},
        {"n.i64", GGL_GGUF_I64, -0x1p63}, {"n.f64", GGL_GGUF_F64, -0.1},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const ggl_gguf_value *v = ggl_gguf_find(f, want[i].key);
        double x = 0;
        int64_t n = 0;
        ggl_str s;
        bool b;
        REQUIRE(v);
        CHECK_MSG(v->type == want[i].type && !v->is_array && v->n == 1, "%s", want[i].key);
        CHECK_MSG(ggl_gguf_number(v, 0, &x) && x == want[i].number, "%s is %g", want[i].key, x);
        CHECK(!ggl_gguf_number(v, 1, &x));
        bool integer =
            v->type != GGL_GGUF_F32 && v->type != GGL_GGUF_F64 && v->type != GGL_GGUF_U64;
        CHECK_INT(ggl_gguf_integer(v, 0, &n), integer);
        CHECK(!integer || (double)n == want[i].number);
        CHECK(!ggl_gguf_string(v, 0, &s) && !ggl_gguf_bool(v, 0, &b));
    }
}

static void check_arrays(const ggl_gguf *f) {
    const ggl_gguf_value *v = ggl_gguf_find(f, "a.u16");
    int64_t n;
    bool b;
    ggl_str s;
    double x;
    REQUIRE(v && v->is_array && v->n == 3 && v->type == GGL_GGUF_U16);
    CHECK(ggl_gguf_integer(v, 2, &n) && n == 3);
    CHECK(!ggl_gguf_integer(v, 3, &n));
    v = ggl_gguf_find(f, "a.bool");
    REQUIRE(v && v->is_array && v->n == 2);
    CHECK(ggl_gguf_bool(v, 0, &b) && b && ggl_gguf_bool(v, 1, &b) && !b);
    CHECK(!ggl_gguf_bool(v, 2, &b) && !ggl_gguf_integer(v, 0, &n) && !ggl_gguf_number(v, 0, &x));
    v = ggl_gguf_find(f, "a.string");
    REQUIRE(v && v->is_array && v->n == 3);
    CHECK(ggl_gguf_string(v, 0, &s) && is_str(s, "first"));
    CHECK(ggl_gguf_string(v, 1, &s) && is_str(s, ""));
    CHECK(ggl_gguf_string(v, 2, &s) && is_str(s, "the third"));
    CHECK(!ggl_gguf_string(v, 3, &s) && !ggl_gguf_number(v, 0, &x));
    v = ggl_gguf_find(f, "a.empty");
    REQUIRE(v && v->is_array && v->n == 0 && v->type == GGL_GGUF_F32);
    CHECK(!ggl_gguf_number(v, 0, &x));
}

static void check_tensors(const ggl_gguf *f, bool data) {
    const ggl_gguf_tensor *t = ggl_gguf_find_tensor(f, "blk.0.q");
    REQUIRE(t && t == ggl_gguf_tensor_at(f, 1));
    CHECK(t->type == GGL_Q8_0 && t->n_dims == 2 && t->ne[0] == 64 && t->ne[1] == 3 &&
          t->ne[2] == 1 && t->ne[3] == 1);
    CHECK(t->size == 204 && t->part == 0 && (t->data != NULL) == data);
    t = ggl_gguf_find_tensor(f, "empty");
    REQUIRE(t);
    CHECK(t->size == 0 && t->ne[0] == 0 && t->n_dims == 1);
    t = ggl_gguf_find_tensor(f, "scalar");
    REQUIRE(t);
    double x;
    CHECK(t->size == 8 && t->n_dims == 0 && t->ne[0] == 1);
    if (data) {
        memcpy(&x, t->data, 8);
        CHECK(x == 2.5);
    }
    t = ggl_gguf_find_tensor(f, "four");
    REQUIRE(t);
    CHECK(t->n_dims == 4 && t->size == 24);
    CHECK(!data || memcmp(t->data, (const uint32_t[]){0, 1, 2, 3, 4, 5}, 24) == 0);
    CHECK(!ggl_gguf_find_tensor(f, "fou") && !ggl_gguf_tensor_at(f, 5));
}

static void check_good(const ggl_gguf *f, uint32_t version, bool data) {
    CHECK_INT(ggl_gguf_version(f), version);
    CHECK_INT(ggl_gguf_n_values(f), 18);
    CHECK_INT(ggl_gguf_n_tensors(f), 5);
    CHECK_INT(ggl_gguf_n_parts(f), 1);
    CHECK(is_str(ggl_gguf_value_at(f, 0)->key, "general.architecture"));
    CHECK(!ggl_gguf_value_at(f, 18) && !ggl_gguf_find(f, "n.u") && !ggl_gguf_find(f, ""));
    check_values(f);
    check_arrays(f);
    check_tensors(f, data);
}

/* Numbers lie at multiples of their size, blocks anywhere: what is right for the type is read, for
 * each alignment. */
TEST(alignments_and_types) {
    static const struct {
        uint32_t alignment;
        uint32_t type;
        uint64_t n;
    } good[] = {{4, GGL_F32, 3},   {8, GGL_F64, 1},    {2, GGL_F16, 3}, {2, GGL_BF16, 3},
                {1, GGL_Q8_0, 32}, {1, GGL_Q4_K, 256}, {8, GGL_F32, 3}, {16, GGL_F32, 3},
                {64, GGL_F32, 3},  {4, GGL_I32, 1}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        for (size_t n_name = 1; n_name <= 8; n_name++) {
            static gguf_bytes b;
            char name[16] = "";
            ggl_gguf *f;
            ggl_error err = {0};
            memset(name, 'x', n_name);
            b.n = 0;
            put_header(&b, 3, 1, 1);
            put_key_u32(&b, "general.alignment", good[i].alignment);
            put_tensor(&b, name, 1, good[i].n, 1, good[i].type, 0);
            put_align(&b, good[i].alignment);
            put_zeros(&b, 256);
            if (CHECK_OK(ggl_gguf_open_memory(&f, b.data, b.n, "m", &err), &err))
                ggl_gguf_close(f);
        }
}

/* The caller's bytes at an address that is not a multiple of 4. */
TEST(memory_at_an_odd_address) {
    static gguf_bytes b, moved;
    ggl_gguf *f;
    ggl_error err = {0};
    put_header(&b, 3, 1, 0);
    put_tensor(&b, "x", 1, 8, 1, GGL_F32, 0);
    put_align(&b, 32);
    put_zeros(&b, 32);
    memcpy(moved.data + 1, b.data, b.n);
    CHECK_INT(ggl_gguf_open_memory(&f, moved.data + 1, b.n, "m", &err), GGL_UNSUPPORTED);
    CHECK_HAS(err.msg,
              "m: the bytes begin at an address that is not a multiple of 4, which tensor 'x'");
    CHECK(!f);
}

/* The identity that a file of repacked weights depends on: another model of the same shapes, size
 * and time differs. */
TEST(identity_sees_data) {
    ggl_gguf_identity id[4];
    for (int k = 0; k < 4; k++) { /* as it is, again, the first byte, the last byte changed */
        float data[100] = {1, 2, 3};
        const char *path = test_path("m.gguf");
        ggl_error err = {0};
        ggl_gguf *f;
        ggl_gguf_writer *w = ggl_gguf_writer_new();
        if (k >= 2)
            ((char *)data)[k == 2 ? 0 : sizeof data - 1] ^= 1;
        ggl_gguf_put_tensor(w, "x", GGL_F32, 1, (const int64_t[]){100}, data);
        REQUIRE_OK(ggl_gguf_writer_write(w, path, &err), &err);
        ggl_gguf_writer_free(w);
        struct utimbuf then = {1, 1};
        REQUIRE(utime(path, &then) == 0);
        REQUIRE_OK(ggl_gguf_open(&f, path, NULL, &err), &err);
        CHECK(ggl_gguf_identify(f, &id[k]));
        CHECK(id[k].size == id[0].size && id[k].modified == id[0].modified);
        ggl_gguf_close(f);
    }
    CHECK(id[1].tensors == id[0].tensors);
    CHECK(id[2].tensors != id[0].tensors && id[3].tensors != id[0].tensors);
}

/* The digest is of what the file says: the same at another time and under another name. */
TEST(digest_sees_keys_and_data) {
    uint64_t digest[5];
    for (int k = 0; k < 5; k++) { /* as it is, a copy, another value, another name, other data */
        float data[100] = {1, 2, k == 4 ? 4 : 3};
        const char *path = test_path(k == 1 ? "copy.gguf" : "m.gguf");
        ggl_error err = {0};
        ggl_gguf *f;
        ggl_gguf_writer *w = ggl_gguf_writer_new();
        ggl_gguf_put_string(w, "general.name", k == 2 ? "b" : "a", 1);
        ggl_gguf_put_tensor(w, k == 3 ? "y" : "x", GGL_F32, 1, (const int64_t[]){100}, data);
        REQUIRE_OK(ggl_gguf_writer_write(w, path, &err), &err);
        ggl_gguf_writer_free(w);
        REQUIRE_OK(ggl_gguf_open(&f, path, NULL, &err), &err);
        digest[k] = ggl_gguf_digest(f);
        ggl_gguf_close(f);
    }
    CHECK(digest[1] == digest[0]);
    CHECK(digest[2] != digest[0] && digest[3] != digest[0] && digest[4] != digest[0]);
}

TEST(every_type) {
    for (uint32_t version = 2; version <= 3; version++) {
        ggl_gguf *f;
        ggl_error err;
        put_good_file(&bytes, version);
        REQUIRE_OK(ggl_gguf_open_memory(&f, bytes.data, bytes.n, "good.gguf", &err), &err);
        CHECK_STR(ggl_gguf_name(f), "good.gguf");
        check_good(f, version, true);
        size_t size;
        CHECK(ggl_gguf_part(f, 0, &size) == bytes.data && size == bytes.n);
        CHECK(!ggl_gguf_part(f, 1, &size) && !ggl_gguf_part(f, -1, &size));
        ggl_gguf_close(f);
    }
    ggl_gguf_close(NULL);
}

TEST(ways_to_open) {
    const char *path = test_path("good.gguf");
    put_good_file(&bytes, 3);
    REQUIRE(test_write_file(path, bytes.data, bytes.n));
    const ggl_gguf_params ways[] = {
        {.size = sizeof(ggl_gguf_params)},
        {.size = sizeof(ggl_gguf_params), .no_mmap = true},
        {.size = sizeof(ggl_gguf_params), .populate = true, .willneed = true},
        {.size = sizeof(ggl_gguf_params), .lock = true},
        {.size = sizeof(ggl_gguf_params), .no_mmap = true, .lock = true},
        {.size = sizeof(ggl_gguf_params), .meta_only = true, .lock = true, .populate = true}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        ggl_gguf *f;
        ggl_error err;
        REQUIRE_OK(ggl_gguf_open(&f, path, &ways[i], &err), &err);
        check_good(f, 3, !ways[i].meta_only);
        size_t size;
        const void *part = ggl_gguf_part(f, 0, &size);
        CHECK(size == bytes.n && memcmp(part, bytes.data, size) == 0);
        if (!ways[i].lock)
            CHECK(!ggl_gguf_lock_failed(f));
        ggl_gguf_close(f);
    }
}

TEST(conversions_in_one) {
    ggl_gguf *f;
    ggl_error err = {0};
    put_good_file(&bytes, 3);
    REQUIRE_OK(ggl_gguf_open_memory(&f, bytes.data, bytes.n, "m.gguf", &err), &err);
    ggl_str s = {"kept", 4};
    int64_t n = 77;
    double x = 77;
    bool b = false;
    CHECK(ggl_gguf_get_string(f, "general.architecture", &s, &err) == 1 && is_str(s, "test"));
    CHECK(ggl_gguf_get_integer(f, "n.i32", &n, &err) == 1 && n == -2);
    CHECK(ggl_gguf_get_number(f, "n.f32", &x, &err) == 1 && x == 1.5);
    CHECK(ggl_gguf_get_number(f, "n.i8", &x, &err) == 1 && x == -128);
    CHECK(ggl_gguf_get_bool(f, "b.true", &b, &err) == 1 && b);
    CHECK(ggl_gguf_get_string(f, "no", &s, &err) == 0 && is_str(s, "test"));
    CHECK(ggl_gguf_get_integer(f, "no", &n, &err) == 0 && n == -2);
    CHECK(ggl_gguf_get_number(f, "no", &x, &err) == 0 && ggl_gguf_get_bool(f, "no", &b, &err) == 0);

    CHECK_INT(ggl_gguf_get_integer(f, "general.architecture", &n, &err), -1);
    CHECK_STR(err.msg, "m.gguf: key 'general.architecture' is string, an integer is expected");
    CHECK_INT(err.status, GGL_FORMAT);
    CHECK_INT(ggl_gguf_get_integer(f, "n.u64", &n, &err), -1);
    CHECK_STR(err.msg, "m.gguf: key 'n.u64' is 18446744073709551616, which is too large");
    CHECK_INT(ggl_gguf_get_number(f, "a.u16", &x, &err), -1);
    CHECK_STR(err.msg, "m.gguf: key 'a.u16' is an array of u16, a number is expected");
    CHECK_INT(ggl_gguf_get_number(f, "b.true", &x, &err), -1);
    CHECK_STR(err.msg, "m.gguf: key 'b.true' is bool, a number is expected");
    CHECK_INT(ggl_gguf_get_bool(f, "n.u8", &b, &err), -1);
    CHECK_STR(err.msg, "m.gguf: key 'n.u8' is u8, a bool is expected");
    CHECK_INT(ggl_gguf_get_string(f, "a.string", &s, NULL), -1);
    CHECK(is_str(s, "test") && n == -2);
    ggl_gguf_close(f);
}

TEST(u64_as_integer) {
    gguf_bytes *b = &bytes;
    ggl_gguf *f;
    ggl_error err = {0};
    int64_t n;
    b->n = 0;
    put_header(b, 3, 0, 1);
    put_key_array(b, "k", GGL_GGUF_U64, 3);
    put_u64(b, 5);
    put_u64(b, INT64_MAX);
    put_u64(b, (uint64_t)1 << 63);
    REQUIRE_OK(ggl_gguf_open_memory(&f, b->data, b->n, "m", &err), &err);
    const ggl_gguf_value *v = ggl_gguf_find(f, "k");
    CHECK(ggl_gguf_integer(v, 0, &n) && n == 5);
    CHECK(ggl_gguf_integer(v, 1, &n) && n == INT64_MAX);
    CHECK(!ggl_gguf_integer(v, 2, &n));
    uint64_t u;
    CHECK(ggl_gguf_unsigned(v, 2, &u) && u == (uint64_t)1 << 63 && !ggl_gguf_unsigned(v, 3, &u));
    CHECK(ggl_gguf_unsigned(v, 0, &u) && u == 5);
    ggl_gguf_close(f);
}

TEST(type_names) {
    for (int t = 0; t <= GGL_GGUF_F64; t++)
        CHECK(strcmp(ggl_gguf_type_name((ggl_gguf_type)t), "unknown") != 0);
    CHECK_STR(ggl_gguf_type_name(GGL_GGUF_STRING), "string");
    CHECK_STR(ggl_gguf_type_name((ggl_gguf_type)13), "unknown");
}

/* A file that ends after any byte is a clean error that names the missing bytes, until only padding
 * is missing. The bytes are copied to where the address sanitizer sees a read past them. */
TEST(truncated_anywhere) {
    put_good_file(&bytes, 3);
    size_t padding = 64 - 24; /* after the last tensor's 24 bytes */
    for (size_t n = 0; n <= bytes.n; n++) {
        ggl_gguf *f = (ggl_gguf *)&n;
        ggl_error err = {0};
        unsigned char *copy = malloc(n > 0 ? n : 1);
        memcpy(copy, bytes.data, n);
        ggl_status s = ggl_gguf_open_memory(&f, copy, n, "cut.gguf", &err);
        if (n < bytes.n - padding) {
            CHECK_INT(s, GGL_FORMAT);
            CHECK(!f);
            CHECK(strncmp(err.msg, "cut.gguf: ", 10) == 0);
            CHECK_HAS(err.msg, n == 0 ? "empty" : "truncated");
        } else {
            CHECK_OK(s, &err);
            ggl_gguf_close(f);
        }
        free(copy);
    }
}

TEST(truncated_tensor_table) {
    const char *path = test_path("cut.gguf");
    ggl_gguf *f;
    ggl_error err;
    char want[2048];
    put_good_file(&bytes, 3);
    REQUIRE(test_write_file(path, bytes.data, 1000 - 200));
    CHECK_INT(ggl_gguf_open(&f, path, NULL, &err), GGL_FORMAT);
    CHECK(strncmp(err.msg, path, strlen(path)) == 0);
    CHECK_HAS(err.msg, "tensor ");
    CHECK_HAS(err.msg, "the file has 800");
    /* and the data after it */
    REQUIRE(test_write_file(path, bytes.data, bytes.n - 64));
    CHECK_INT(ggl_gguf_open(&f, path, NULL, &err), GGL_FORMAT);
    snprintf(want, sizeof want,
             "%s: the file is truncated: it needs %zu bytes, the file has %zu: 24 are missing, "
             "from tensor 'four' on",
             path, bytes.n - 40, bytes.n - 64);
    CHECK_STR(err.msg, want);
    /* which does not matter where only names are wanted */
    REQUIRE_OK(ggl_gguf_open(&f, path,
                             &(ggl_gguf_params){.size = sizeof(ggl_gguf_params), .meta_only = true},
                             &err),
               &err);
    check_tensors(f, false);
    ggl_gguf_close(f);
}

TEST(no_such_file) {
    ggl_gguf *f;
    ggl_error err;
    char want[1100];
    const char *path = test_path("none.gguf");
    CHECK_INT(ggl_gguf_open(&f, path, NULL, &err), GGL_IO);
    snprintf(want, sizeof want, "%s: cannot be opened: No such file or directory", path);
    CHECK_STR(err.msg, want);
    CHECK(!f);
    CHECK_INT(ggl_gguf_open(&f, test_folder(), NULL, &err), GGL_IO);
    CHECK_HAS(err.msg, "s a directory");
    path = test_path("empty.gguf");
    REQUIRE(test_write_file(path, "", 0));
    CHECK_INT(ggl_gguf_open(&f, path, NULL, &err), GGL_FORMAT);
    CHECK_HAS(err.msg, "the file is empty");
    CHECK_INT(ggl_gguf_open(&f, TEST_NOWHERE, NULL, &err), GGL_IO);
    CHECK_HAS(err.msg, "is not a regular file");
#ifndef _WIN32
    path = test_path("fifo");
    REQUIRE(mkfifo(path, 0600) == 0);
    CHECK_INT(ggl_gguf_open(&f, path, NULL, &err), GGL_IO); /* and does not wait for a writer */
    CHECK_HAS(err.msg, "write what it gives to a file, and open that");
    CHECK_INT(ggl_gguf_open(&f, path, NULL, NULL), GGL_IO);
#endif
}

TEST(types_that_are_not_read) {
    gguf_bytes *b = &bytes;
    ggl_gguf *f;
    ggl_error err;
    b->n = 0;
    put_header(b, 3, 2, 0);
    put_tensor(b, "x", 2, 256, 4, 9, 0); /* Q8_1 */
    put_tensor(b, "y", 2, 256, 4, 77, 1056);
    const char *path = test_path("foreign.gguf");
    put_align(b, 32);
    put_zeros(b, 2112);
    REQUIRE(test_write_file(path, b->data, b->n));
    CHECK_INT(ggl_gguf_open(&f, path, NULL, &err), GGL_UNSUPPORTED);
    CHECK_HAS(err.msg, ": tensor 1 of 2: tensor 'x' has type Q8_1, which this build does not read");
    REQUIRE_OK(ggl_gguf_open(&f, path,
                             &(ggl_gguf_params){.size = sizeof(ggl_gguf_params), .meta_only = true},
                             &err),
               &err);
    const ggl_gguf_tensor *t = ggl_gguf_find_tensor(f, "y");
    CHECK(t && (int)t->type == 77 && t->size == 0 && !t->data && t->ne[1] == 4);
    ggl_gguf_close(f);
}

/* I2_S: 128 elements in 32 bytes, 32 * g + j in bits 6 - 2 * g and up of byte j; behind all, a scale and zeros. Rows of iq2_bn have
 * the same numbers. */
TEST(i2_s_becomes_iq2_bn) {
    enum { ROW = 256, ROWS = 3 };
    gguf_bytes *b = &bytes;
    ggl_gguf *f;
    ggl_error err;
    const float scale = 0.7251f;
    float want[ROWS * ROW], got[ROWS * ROW];
    uint64_t seed = 9;
    b->n = 0;
    put_header(b, 3, 2, 0);
    put_tensor(b, "w", 2, ROW, ROWS, 36, 0);
    put_tensor(b, "v", 1, 1, 1, GGL_F32, ROWS * ROW / 4 + 32);
    put_align(b, 32);
    const size_t at = b->n;
    put_zeros(b, ROWS * ROW / 4);
    for (int i = 0; i < ROWS * ROW; i++) {
        const int code = (int)(test_random(&seed) >> 40) % 3, e = i % 128;
        want[i] = scale * (float)(code - 1);
        b->data[at + (size_t)(i / 128 * 32 + e % 32)] |=
            (unsigned char)(code << (6 - 2 * (e / 32)));
    }
    put_bytes(b, &scale, 4);
    put_zeros(b, 28 + 32);
    REQUIRE_OK(ggl_gguf_open_memory(&f, b->data, b->n, "m", &err), &err);
    const ggl_gguf_tensor *t = ggl_gguf_find_tensor(f, "w");
    REQUIRE(t && t->type == GGL_IQ2_BN && t->size == ROWS * (4 + ROW / 4));
    ggl_to_float(ggl_type_get(GGL_IQ2_BN), t->data, ROW, 0, ROWS * ROW, got);
    for (int i = 0; i < ROWS * ROW; i++)
        CHECK_MSG(got[i] == want[i], "element %d is %g, expected %g", i, (double)got[i],
                  (double)want[i]);
    ggl_gguf_close(f);
}

TEST(unordered_tensors) {
    gguf_bytes *b = &bytes;
    ggl_gguf *f;
    ggl_error err;
    b->n = 0;
    put_header(b, 3, 3, 0);
    put_tensor(b, "c", 1, 8, 1, GGL_F32, 64);
    put_tensor(b, "a", 1, 8, 1, GGL_F32, 0);
    put_tensor(b, "z", 1, 0, 1, GGL_F32, 64); /* empty, where another begins */
    put_align(b, 32);
    size_t at = b->n;
    put_zeros(b, 96);
    REQUIRE_OK(ggl_gguf_open_memory(&f, b->data, b->n, "m", &err), &err);
    CHECK(ggl_gguf_find_tensor(f, "a")->data == b->data + at);
    CHECK(ggl_gguf_find_tensor(f, "c")->data == b->data + at + 64);
    CHECK(ggl_gguf_tensor_at(f, 0) == ggl_gguf_find_tensor(f, "c"));
    ggl_gguf_close(f);
}

TEST(no_tensors_no_padding) {
    gguf_bytes *b = &bytes;
    ggl_gguf *f;
    ggl_error err;
    b->n = 0;
    put_header(b, 3, 0, 1);
    put_key_u32(b, "k", 7);
    REQUIRE_OK(ggl_gguf_open_memory(&f, b->data, b->n, "m", &err), &err);
    CHECK_INT(ggl_gguf_n_tensors(f), 0);
    CHECK(!ggl_gguf_find_tensor(f, "k"));
    ggl_gguf_close(f);
    b->n = 0;
    put_header(b, 3, 0, 0);
    REQUIRE_OK(ggl_gguf_open_memory(&f, b->data, b->n, "m", &err), &err);
    CHECK(!ggl_gguf_find(f, "k"));
    ggl_gguf_close(f);
}

/* 300,000 keys, strings and tensors: linear time, or this would take minutes. */
TEST(many) {
    enum { N = 300000 };
    os_memory_stream written;
    REQUIRE(ggl_os_memory_stream_open(&written));
    FILE *m = written.to;
    const uint64_t n = N, length = 12, offset = 0;
    const uint32_t type = GGL_GGUF_U8, none = 0;
    fwrite("GGUF\3\0\0\0", 1, 8, m);
    fwrite(&n, 8, 1, m);
    fwrite(&n, 8, 1, m);
    for (int i = 0; i < N; i++) {
        fwrite(&length, 8, 1, m);
        fprintf(m, "key.%08d", i);
        fwrite(&type, 4, 1, m);
        fputc(i & 255, m);
    }
    for (int i = 0; i < N; i++) {
        uint32_t n_dims = 1;
        uint64_t ne = 0;
        fwrite(&length, 8, 1, m);
        fprintf(m, "blk.%08d", N - i);
        fwrite(&n_dims, 4, 1, m);
        fwrite(&ne, 8, 1, m);
        fwrite(&none, 4, 1, m); /* f32 */
        fwrite(&offset, 8, 1, m);
    }
    for (int i = 0; i < 32; i++)
        fputc(0, m);
    REQUIRE(ggl_os_memory_stream_close(&written));
    ggl_gguf *f;
    ggl_error err;
    if (CHECK_OK(ggl_gguf_open_memory(&f, written.text, written.n, "many", &err), &err)) {
        int64_t x;
        CHECK(ggl_gguf_get_integer(f, "key.00299999", &x, &err) == 1 && x == (299999 & 255));
        CHECK(ggl_gguf_find_tensor(f, "blk.00000001") == ggl_gguf_tensor_at(f, N - 1));
        ggl_gguf_close(f);
    }
    free(written.text);
}

TEST(reference_files) {
    static const char *const files[] = {
        "models/stories260K-f32.gguf", "models/stories260K-q8_0.gguf", "golden/gpt2-q4_0.gguf",
        "golden/qwen3moe.gguf", "tokenizers/ggml-vocab-llama-bpe.gguf"};
    if (!test_shared(files[0]))
        SKIP_NOT_SHIPPED("models of other projects");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        ggl_gguf *f;
        ggl_error err;
        const char *path = test_shared(files[i]);
        ggl_str s;
        if (path && CHECK_OK(ggl_gguf_open(&f, path, NULL, &err), &err)) {
            CHECK(ggl_gguf_get_string(f, "general.architecture", &s, &err) == 1 && s.n > 0);
            ggl_gguf_close(f);
        }
    }
}

TEST(version_1_reference_file) {
    const char *path = test_shared("models/stories260K-gguf-v1.gguf");
    ggl_gguf *f;
    ggl_error err;
    if (!path)
        SKIP_NOT_SHIPPED("models of other projects");
    CHECK_INT(ggl_gguf_open(&f, path, NULL, &err), GGL_UNSUPPORTED);
    CHECK_HAS(err.msg, ": has GGUF version 1; 2 and 3 are supported");
}

/* Our encoders give the bytes that ggml's gave when these files were made. */
TEST(reference_encoders) {
    static const char *const pairs[][2] = {{"golden/gpt2.gguf", "golden/gpt2-q8_0.gguf"},
                                           {"golden/gpt2.gguf", "golden/gpt2-q4_0.gguf"},
                                           {"golden/llama.gguf", "golden/llama-q8_0.gguf"},
                                           {"golden/llama.gguf", "golden/llama-q4_0.gguf"},
                                           {"golden/qwen2.gguf", "golden/qwen2-q8_0.gguf"},
                                           {"golden/qwen2.gguf", "golden/qwen2-q4_0.gguf"}};
    int n_same = 0, n_quantized = 0, n_files = 0;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        ggl_gguf *plain, *quantized;
        ggl_error err;
        const char *plain_path = test_shared(pairs[i][0]),
                   *quantized_path = test_shared(pairs[i][1]);
        if (!plain_path || !quantized_path)
            SKIP_NOT_SHIPPED("models of other projects");
        REQUIRE_OK(ggl_gguf_open(&plain, plain_path, NULL, &err), &err);
        REQUIRE_OK(ggl_gguf_open(&quantized, quantized_path, NULL, &err), &err);
        n_files++;
        for (size_t k = 0; k < ggl_gguf_n_tensors(quantized); k++) {
            const ggl_gguf_tensor *q = ggl_gguf_tensor_at(quantized, k);
            char name[65] = {0};
            memcpy(name, q->name.s, q->name.n);
            const ggl_gguf_tensor *p = ggl_gguf_find_tensor(plain, name);
            const ggl_type_info *info = ggl_type_get(q->type);
            if (!info->quantized || !p || p->type != GGL_F32)
                continue;
            unsigned char *ours = malloc(q->size);
            info->from_float(p->data, ours, (int64_t)(p->size / 4));
            n_quantized++;
            n_same += memcmp(ours, q->data, q->size) == 0;
            free(ours);
        }
        ggl_gguf_close(plain);
        ggl_gguf_close(quantized);
    }
    printf("%d files, %d of %d quantized tensors have our bytes\n", n_files, n_same, n_quantized);
    CHECK(n_quantized > 0 && n_same == n_quantized);
}

/* Two files that ggml made of the same weights, which are not kept: where one has Q4_K and the
 * other Q6_K, they differ by what these types lose, no more (a code or a scale in the wrong place
 * is off by as much as there is). */
TEST(reference_k_quants) {
    const char *path[2] = {test_shared("golden/llama-w256-q4_k_m.gguf"),
                           test_shared("golden/llama-w256-q6_k.gguf")};
    if (!path[0] || !path[1])
        SKIP_NOT_SHIPPED("models of other projects");
    ggl_gguf *f[2];
    ggl_error err;
    REQUIRE_OK(ggl_gguf_open(&f[0], path[0], NULL, &err), &err);
    REQUIRE_OK(ggl_gguf_open(&f[1], path[1], NULL, &err), &err);
    int n_pairs = 0;
    for (size_t k = 0; k < ggl_gguf_n_tensors(f[0]); k++) {
        const ggl_gguf_tensor *q4 = ggl_gguf_tensor_at(f[0], k), *q6;
        char name[65] = {0};
        memcpy(name, q4->name.s, q4->name.n);
        q6 = ggl_gguf_find_tensor(f[1], name);
        if (q4->type != GGL_Q4_K || !q6 || q6->type != GGL_Q6_K)
            continue;
        double difference = 0, size = 0;
        for (size_t i = 0; i < q4->size / 144; i++) {
            float x[256], y[256];
            ggl_type_get(GGL_Q4_K)->to_float((const char *)q4->data + 144 * i, x, 256);
            ggl_type_get(GGL_Q6_K)->to_float((const char *)q6->data + 210 * i, y, 256);
            for (int e = 0; e < 256; e++) {
                difference += ((double)x[e] - (double)y[e]) * ((double)x[e] - (double)y[e]);
                size += (double)y[e] * (double)y[e];
            }
        }
        double relative = sqrt(difference / size);
        printf("%s %.4f\n", name, relative);
        CHECK_MSG(relative > 0.02 && relative < 0.08, "%s: %.4f", name, relative);
        n_pairs++;
    }
    CHECK(n_pairs > 0);
    ggl_gguf_close(f[0]);
    ggl_gguf_close(f[1]);
}
