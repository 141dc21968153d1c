#include "ggl/alloc.h"
#include "ggl/internal/gguf.h"
#include "gguf_bytes.h"
#include "gguf_written.h"
#include "test.h"

/* A writer with all that f has. */
static ggl_gguf_writer *copy_of(const ggl_gguf *f) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    for (size_t i = 0; i < ggl_gguf_n_values(f); i++)
        ggl_gguf_put_value(w, ggl_gguf_value_at(f, i));
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
        char name[65] = {0};
        memcpy(name, t->name.s, t->name.n);
        ggl_gguf_put_tensor(w, name, t->type, t->n_dims, t->ne, t->data);
    }
    return w;
}

TEST(round_trip) {
    static gguf_bytes b;
    ggl_gguf *f;
    ggl_error err;
    void *data;
    size_t size;
    put_good_file(&b, 3);
    REQUIRE_OK(ggl_gguf_open_memory(&f, b.data, b.n, "m", &err), &err);
    ggl_gguf_writer *w = copy_of(f);
    REQUIRE_OK(ggl_gguf_writer_write_memory(w, &data, &size, &err), &err);
    CHECK(size == b.n && memcmp(data, b.data, size) == 0);
    CHECK_INT(ggl_gguf_writer_size(w), size);
    ggl_free(data);
    const char *path = test_path("copy.gguf");
    REQUIRE_OK(ggl_gguf_writer_write(w, path, &err), &err); /* a second time, to a file */
    REQUIRE_OK(ggl_gguf_writer_write(w, path, &err), &err); /* and over it */
    data = test_read_file(path, &size);
    CHECK(data && size == b.n && memcmp(data, b.data, size) == 0);
    free(data);
    ggl_gguf_writer_free(w);
    ggl_gguf_close(f);
}

/* From calls alone to the same bytes. */
TEST(every_put) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_error err;
    char text[] = "tokens";
    ggl_gguf_put_string(w, "s", text, 5);
    ggl_gguf_put_string(w, "s.empty", NULL, 0);
    text[0] = 'X'; /* it was copied */
    ggl_gguf_put(w, "n", GGL_GGUF_I16, false, &(int16_t){-3}, 1);
    ggl_gguf_put(w, "a", GGL_GGUF_F32, true, (const float[]){1, 2}, 2);
    ggl_gguf_put(w, "a.empty", GGL_GGUF_U64, true, NULL, 0);
    ggl_gguf_put(w, "b", GGL_GGUF_BOOL, true, "\0\1", 2);
    ggl_gguf_put_strings(w, "strings", (const ggl_str[]){{"x", 1}, {"", 0}}, 2);
    ggl_gguf_put_tensor(w, "t", GGL_F16, 1, (const int64_t[]){3}, "abcdef");
    ggl_gguf_put_tensor(w, "nothing", GGL_F16, 2, (const int64_t[]){3, 0}, NULL);

    static gguf_bytes b;
    put_header(&b, 3, 2, 7);
    put_key_string(&b, "s", "token");
    put_key_string(&b, "s.empty", "");
    put_key(&b, "n", GGL_GGUF_I16);
    put_bytes(&b, "\xfd\xff", 2);
    put_key_array(&b, "a", GGL_GGUF_F32, 2);
    put_bytes(&b, "\0\0\x80\x3f\0\0\0\x40", 8);
    put_key_array(&b, "a.empty", GGL_GGUF_U64, 0);
    put_key_array(&b, "b", GGL_GGUF_BOOL, 2);
    put_bytes(&b, "\0\1", 2);
    put_key_array(&b, "strings", GGL_GGUF_STRING, 2);
    put_string(&b, "x");
    put_string(&b, "");
    put_tensor(&b, "t", 1, 3, 1, GGL_F16, 0);
    put_tensor(&b, "nothing", 2, 3, 0, GGL_F16, 32);
    put_align(&b, 32);
    put_bytes(&b, "abcdef", 6);
    put_align(&b, 32);

    void *data;
    size_t size;
    REQUIRE_OK(ggl_gguf_writer_write_memory(w, &data, &size, &err), &err);
    CHECK(size == b.n && memcmp(data, b.data, size) == 0);
    ggl_gguf *f;
    if (CHECK_OK(ggl_gguf_open_memory(&f, data, size, "m", &err), &err))
        ggl_gguf_close(f);
    ggl_free(data);
    ggl_gguf_writer_free(w);
}

TEST(alignments) {
    for (uint32_t alignment = 2; alignment <= 8192; alignment *= 2) {
        ggl_gguf_writer *w = ggl_gguf_writer_new();
        ggl_gguf *f;
        ggl_error err;
        void *data;
        size_t size;
        ggl_gguf_put_tensor(w, "a", GGL_F16, 1, (const int64_t[]){3}, "abcdef");
        ggl_gguf_put(w, "general.alignment", GGL_GGUF_U32, false, &alignment, 1);
        ggl_gguf_put_tensor(w, "b", GGL_F16, 1, (const int64_t[]){3}, "ghijkl");
        REQUIRE_OK(ggl_gguf_writer_write_memory(w, &data, &size, &err), &err);
        REQUIRE_OK(ggl_gguf_open_memory(&f, data, size, "m", &err), &err);
        const ggl_gguf_tensor *b = ggl_gguf_find_tensor(f, "b");
        CHECK(memcmp(b->data, "ghijkl", 6) == 0);
        CHECK_INT(((const char *)b->data - (const char *)data) % alignment, 0);
        CHECK_INT(size % alignment, 0);
        ggl_gguf_close(f);
        ggl_free(data);
        ggl_gguf_writer_free(w);
    }
}

typedef void (*misuse)(ggl_gguf_writer *w);
#define MISUSE(name_) static void name_(ggl_gguf_writer *w)
static const int64_t four[] = {4};
MISUSE(key_empty) {
    ggl_gguf_put_string(w, "", "x", 1);
}
MISUSE(key_twice) {
    ggl_gguf_put_string(w, "k", "x", 1);
    ggl_gguf_put_strings(w, "k", NULL, 0);
}
MISUSE(type_string) {
    ggl_gguf_put(w, "k", GGL_GGUF_STRING, false, "x", 1);
}
MISUSE(type_array) {
    ggl_gguf_put(w, "k", GGL_GGUF_ARRAY, true, "x", 1);
}
MISUSE(type_99) {
    ggl_gguf_put(w, "k", (ggl_gguf_type)99, true, "x", 1);
}
MISUSE(two_scalars) {
    ggl_gguf_put(w, "k", GGL_GGUF_U8, false, "xy", 2);
}
MISUSE(bool_7) {
    ggl_gguf_put(w, "k", GGL_GGUF_BOOL, false, "\7", 1);
}
MISUSE(alignment_3) {
    ggl_gguf_put(w, "general.alignment", GGL_GGUF_U32, false, &(uint32_t){3}, 1);
}
MISUSE(alignment_1_for_f16) {
    ggl_gguf_put(w, "general.alignment", GGL_GGUF_U32, false, &(uint32_t){1}, 1);
    ggl_gguf_put_tensor(w, "t", GGL_F16, 1, four, "12345678");
}
MISUSE(alignment_4_for_f64) {
    ggl_gguf_put(w, "general.alignment", GGL_GGUF_U32, false, &(uint32_t){4}, 1);
    ggl_gguf_put_tensor(w, "t", GGL_F64, 1, (const int64_t[]){1}, "12345678");
}
MISUSE(alignment_u64) {
    ggl_gguf_put(w, "general.alignment", GGL_GGUF_U64, false, &(uint64_t){32}, 1);
}
MISUSE(name_empty) {
    ggl_gguf_put_tensor(w, "", GGL_F32, 1, four, four);
}
MISUSE(name_64) {
    ggl_gguf_put_tensor(w, "0123456789012345678901234567890123456789012345678901234567890123",
                        GGL_F32, 1, four, four);
}
MISUSE(name_twice) {
    ggl_gguf_put_tensor(w, "t", GGL_F32, 1, four, four);
    ggl_gguf_put_tensor(w, "t", GGL_F32, 1, four, four);
}
MISUSE(dims_5) {
    ggl_gguf_put_tensor(w, "t", GGL_F32, 5, four, four);
}
MISUSE(dim_negative) {
    ggl_gguf_put_tensor(w, "t", GGL_F32, 1, (const int64_t[]){-1}, four);
}
MISUSE(dims_overflow) {
    ggl_gguf_put_tensor(w, "t", GGL_F32, 2, (const int64_t[]){(int64_t)1 << 40, (int64_t)1 << 40},
                        four);
}
MISUSE(half_block) {
    ggl_gguf_put_tensor(w, "t", GGL_Q4_0, 1, four, four);
}
MISUSE(type_none) {
    ggl_gguf_put_tensor(w, "t", (ggl_type)4, 1, four, four);
}
MISUSE(no_data) {
    ggl_gguf_put_tensor(w, "t", GGL_F32, 1, four, NULL);
}
MISUSE(first_error_stays) {
    ggl_gguf_put_string(w, "", "x", 1);
    ggl_gguf_put_tensor(w, "", GGL_F32, 1, four, NULL);
    ggl_gguf_put(w, "k", GGL_GGUF_BOOL, false, "\7", 1);
    ggl_gguf_put_strings(w, "k", NULL, 0);
}

TEST(misuse) {
    static const struct {
        misuse call;
        ggl_status status;
        const char *words;
    } table[] = {
        {key_empty, GGL_FORMAT, "the key is empty"},
        {key_twice, GGL_USAGE, "key 'k' was put twice"},
        {type_string, GGL_USAGE, "key 'k': type string is not a number"},
        {type_array, GGL_USAGE, "type array is not a number"},
        {type_99, GGL_USAGE, "type unknown is not a number"},
        {two_scalars, GGL_USAGE, "key 'k' has 2 values, but is not an array"},
        {bool_7, GGL_USAGE, "key 'k': a boolean is 7"},
        {alignment_3, GGL_FORMAT, "general.alignment is 3, a power of two is expected"},
        {alignment_1_for_f16, GGL_USAGE,
         "general.alignment is 1, but tensor 't' of type f16 needs 2"},
        {alignment_4_for_f64, GGL_USAGE,
         "general.alignment is 4, but tensor 't' of type f64 needs 8"},
        {alignment_u64, GGL_USAGE, "general.alignment must be one u32"},
        {name_empty, GGL_FORMAT, "the tensor name is empty"},
        {name_64, GGL_FORMAT, "has 64 bytes, at most 63"},
        {name_twice, GGL_USAGE, "tensor 't' was put twice"},
        {dims_5, GGL_USAGE, "tensor 't' has 5 dimensions, 0 to 4 are supported"},
        {dim_negative, GGL_USAGE, "dimension 0 of tensor 't' is -1"},
        {dims_overflow, GGL_FORMAT, "overflows"},
        {half_block, GGL_FORMAT, "not whole blocks of 32"},
        {type_none, GGL_USAGE, "has type number 4, which does not exist"},
        {no_data, GGL_USAGE, "tensor 't' has no data"},
        {first_error_stays, GGL_FORMAT, "the key is empty"},
    };
    const char *path = test_path("misuse.gguf");
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        ggl_gguf_writer *w = ggl_gguf_writer_new();
        ggl_error err = {0};
        void *data = &err;
        size_t size = 1;
        table[i].call(w);
        CHECK_INT(ggl_gguf_writer_write(w, path, &err), table[i].status);
        CHECK_HAS(err.msg, table[i].words);
        CHECK(strncmp(err.msg, path, strlen(path)) == 0);
        CHECK_INT(ggl_gguf_writer_write_memory(w, &data, &size, &err), table[i].status);
        CHECK(!data && size == 0);
        CHECK(access(path, F_OK) != 0);
        ggl_gguf_writer_free(w);
    }
    ggl_gguf_writer_free(NULL);
}

TEST(unwritable) {
    ggl_gguf_writer *w = small_writer();
    ggl_error err;
    CHECK_INT(ggl_gguf_writer_write(w, test_path("no/such/folder.gguf"), &err), GGL_IO);
    CHECK_HAS(err.msg, "no/such/folder.gguf: cannot be written: its folder does not exist");
    CHECK_INT(ggl_gguf_writer_write(w, test_folder(), &err), GGL_IO);
    CHECK_HAS(err.msg, "is a directory");
    CHECK_INT(ggl_gguf_writer_write(w, "", &err), GGL_USAGE);
    CHECK_HAS(err.msg, "is empty");
    CHECK_INT(files_in(test_folder()), 0);
    ggl_gguf_writer_free(w);
}

/* A model written over itself while it is mapped: the mapping keeps the old file's bytes. */
TEST(over_the_mapped_file) {
    static gguf_bytes b;
    const char *path = test_path("self.gguf");
    ggl_gguf *f;
    ggl_error err;
    put_good_file(&b, 3);
    REQUIRE(test_write_file(path, b.data, b.n));
    REQUIRE_OK(ggl_gguf_open(&f, path, NULL, &err), &err);
    ggl_gguf_writer *w = copy_of(f);
    ggl_gguf_put_string(w, "more", "value", 5);
#ifdef _WIN32 /* before Windows 10 of 2017, and in wine, the file stays */
    if (ggl_gguf_writer_write(w, path, &err) != GGL_OK)
        CHECK_HAS(err.msg, "self.gguf: the file that is there cannot be replaced");
#else
    CHECK_OK(ggl_gguf_writer_write(w, path, &err), &err);
#endif
    size_t size;
    const void *part = ggl_gguf_part(f, 0, &size);
    CHECK(size == b.n && memcmp(part, b.data, size) == 0);
    ggl_gguf_writer_free(w);
    ggl_gguf_close(f);
}

TEST(round_trip_of_reference_files) {
    static const char *const files[] = {"models/stories260K-f32.gguf",
                                        "models/stories260K-q8_0.gguf", "golden/llama-q4_0.gguf",
                                        "golden/qwen3moe.gguf", "golden/gemma2.gguf"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const char *path = test_shared(files[i]);
        ggl_gguf *f;
        ggl_error err;
        if (!path)
            SKIP_NOT_SHIPPED("models of other projects");
        REQUIRE_OK(ggl_gguf_open(&f, path, NULL, &err), &err);
        ggl_gguf_writer *w = copy_of(f);
        void *data;
        size_t size, want_size;
        const void *want = ggl_gguf_part(f, 0, &want_size);
        REQUIRE_OK(ggl_gguf_writer_write_memory(w, &data, &size, &err), &err);
        CHECK_MSG(size == want_size && memcmp(data, want, size) == 0, "%s: %zu bytes, %zu written",
                  files[i], want_size, size);
        ggl_free(data);
        ggl_gguf_writer_free(w);
        ggl_gguf_close(f);
    }
}

/* Data made during the write: three pieces of 4 floats; `wrong` gives one too few, -1 one too many. */
static ggl_status fill_pieces(void *ctx, ggl_gguf_sink *to, ggl_error *err) {
    int n = *(const int *)ctx;
    ggl_status s = GGL_OK;
    for (int i = 0; i < n && s == GGL_OK; i++) {
        float piece[4] = {(float)i, 1, 2, 3};
        s = ggl_gguf_sink_write(to, piece, sizeof piece, err);
    }
    return s;
}

TEST(data_made_while_writing) {
    static const int64_t ne[2] = {4, 3};
    static const char *const words[] = {
        "tensor 'late': 16 of 48 bytes were not written", NULL,
        "tensor 'late': 16 bytes were written, but only 0 were left"};
    for (int n = 2; n <= 4; n++) {
        ggl_error err = {0};
        const char *path = test_path("late.gguf");
        ggl_gguf_writer *w = ggl_gguf_writer_new();
        ggl_gguf_put_tensor_later(w, "late", GGL_F32, 2, ne, fill_pieces, &n);
        ggl_gguf_put_tensor(w, "after", GGL_F32, 1, ne, (float[4]){7});
        ggl_status s = ggl_gguf_writer_write(w, path, &err);
        ggl_gguf_writer_free(w);
        if (n != 3) {
            CHECK_INT(s, GGL_USAGE);
            CHECK_HAS(err.msg, words[n - 2]);
            CHECK(access(path, F_OK) != 0);
            continue;
        }
        ggl_gguf *f;
        REQUIRE_OK(s, &err);
        REQUIRE_OK(ggl_gguf_open(&f, path, NULL, &err), &err);
        const float *late = ggl_gguf_find_tensor(f, "late")->data;
        CHECK(late[0] == 0 && late[4] == 1 && late[8] == 2 && late[11] == 3);
        CHECK(*(const float *)ggl_gguf_find_tensor(f, "after")->data == 7);
        ggl_gguf_close(f);
        unlink(path);
    }
}

/* --- changed keys ----------------------------------------------------------------------------- */

static int32_t number_of(const ggl_gguf *f, const char *key) {
    int64_t x = -1;
    ggl_error err;
    return ggl_gguf_get_integer(f, key, &x, &err) == 1 ? (int32_t)x : -1;
}

TEST(changed_keys) {
    const uint32_t list[] = {1, 2}, one = 1, two = 2;
    ggl_error err = {0};
    ggl_gguf *f, *same;
    void *data;
    size_t size, n = 1;
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_gguf_put(w, "a", GGL_GGUF_U32, false, &one, 1);
    ggl_gguf_put(w, "l", GGL_GGUF_U32, true, list, 2);
    ggl_gguf_put_string(w, "s", "text", 4);
    CHECK_OK(ggl_gguf_writer_write_memory(w, &data, &size, &err), &err);
    ggl_gguf_writer_free(w);
    REQUIRE(CHECK_OK(ggl_gguf_open_memory(&f, data, size, "m", &err), &err));
    REQUIRE(CHECK_OK(ggl_gguf_open_memory(&same, data, size, "m", &err), &err));
    CHECK(!ggl_gguf_changes(f, &n) && n == 0);

    w = ggl_gguf_writer_new();
    ggl_gguf_put(w, "new", GGL_GGUF_U32, false, &two, 1);
    ggl_gguf_put_string(w, "a", "other", 5);
    CHECK_OK(ggl_gguf_change(f, w, &err), &err);
    ggl_str s = {"", 0};
    CHECK(ggl_gguf_n_values(f) == 4 && number_of(f, "new") == 2 && number_of(f, "a") == -1);
    CHECK(ggl_gguf_get_string(f, "a", &s, &err) == 1 && ggl_str_is(s, "other"));
    CHECK(ggl_gguf_get_string(f, "s", &s, &err) == 1 && ggl_str_is(s, "text"));
    CHECK(ggl_gguf_is_changed(ggl_gguf_find(f, "a")) &&
          ggl_gguf_is_changed(ggl_gguf_find(f, "new")));
    CHECK(!ggl_gguf_is_changed(ggl_gguf_find(f, "s")) && ggl_gguf_find(f, "l")->n == 2);
    CHECK(ggl_gguf_changes(f, &n) && n > 0 && ggl_gguf_digest(f) != ggl_gguf_digest(same));
    CHECK(ggl_gguf_change(f, w, &err) == GGL_USAGE);
    CHECK_HAS(err.msg, "m: keys can be changed only once");
    ggl_gguf_writer_free(w);

    w = ggl_gguf_writer_new();
    ggl_gguf_put(w, "l", GGL_GGUF_U32, false, &two, 1);
    CHECK(ggl_gguf_change(same, w, &err) == GGL_USAGE);
    CHECK_HAS(err.msg, "m: key 'l' is a list");
    ggl_gguf_writer_free(w);
    ggl_gguf_close(f);
    ggl_gguf_close(same);
    ggl_free(data);
}
