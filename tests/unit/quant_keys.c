/* The keys of a quantized file: own ones in the place of the source's, lists without the removed layers, and no
 * file with other keys if memory runs out. */
#include "quant/keys.h"

#include "alloc_fail.h"
#include "ggl/alloc.h"
#include "test.h"

/* A file in memory with lists of three elements, of which the model has three layers. */
typedef struct source {
    void *bytes;
    ggl_gguf *file;
} source;

static bool open_source(source *s) {
    static const uint8_t bools[] = {1, 0, 1};
    static const uint64_t large[] = {UINT64_MAX, 2, (uint64_t)1 << 63};
    static const uint32_t numbers[] = {10, 20, 30}, three = 3, old = 1;
    static const int8_t small[] = {-1, -2, -3};
    static const float floats[] = {0.5F, 1.5F, 2.5F};
    static const double doubles[] = {0.1, 0.2, 0.3};
    static const ggl_str strings[] = {{"a", 1}, {"b", 1}, {"c", 1}};
    ggl_error err = {0};
    size_t n;
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_gguf_put_string(w, "general.architecture", "some", 4);
    ggl_gguf_put(w, "general.quantization_version", GGL_GGUF_U32, false, &old, 1);
    ggl_gguf_put(w, "general.file_type", GGL_GGUF_U32, false, &old, 1);
    ggl_gguf_put(w, "some.block_count", GGL_GGUF_U32, false, &three, 1);
    ggl_gguf_put(w, "some.u32", GGL_GGUF_U32, true, numbers, 3);
    ggl_gguf_put(w, "some.u64", GGL_GGUF_U64, true, large, 3);
    ggl_gguf_put(w, "some.i8", GGL_GGUF_I8, true, small, 3);
    ggl_gguf_put(w, "some.bool", GGL_GGUF_BOOL, true, bools, 3);
    ggl_gguf_put(w, "some.f32", GGL_GGUF_F32, true, floats, 3);
    ggl_gguf_put(w, "some.f64", GGL_GGUF_F64, true, doubles, 3);
    ggl_gguf_put(w, "some.two", GGL_GGUF_U32, true, numbers, 2);
    ggl_gguf_put(w, "some.rope.dimension_sections", GGL_GGUF_U32, true, numbers, 3);
    ggl_gguf_put(w, "other.u32", GGL_GGUF_U32, true, numbers, 3);
    ggl_gguf_put_strings(w, "some.labels", strings, 3);
    ggl_gguf_put(w, "split.tensors.count", GGL_GGUF_U32, false, &three, 1);
    const bool ok = CHECK_OK(ggl_gguf_writer_write_memory(w, &s->bytes, &n, &err), &err) &&
                    CHECK_OK(ggl_gguf_open_memory(&s->file, s->bytes, n, "m", &err), &err);
    ggl_gguf_writer_free(w);
    return ok;
}

static void close_source(source *s) {
    ggl_gguf_close(s->file);
    ggl_free(s->bytes);
}

/* Puts the keys into a file in memory. False: it failed. */
static bool put_keys(source *to, const source *from, const quant_choice *c, const quant_key *own,
                     size_t n_own) {
    ggl_error err = {0};
    size_t n;
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    *to = (source){0};
    if (!w)
        return false;
    ggl_status s = llm_quant_put_keys(w, from->file, c, 3, own, n_own, &err);
    if (s == GGL_OK)
        s = ggl_gguf_writer_write_memory(w, &to->bytes, &n, &err);
    if (s == GGL_OK)
        s = ggl_gguf_open_memory(&to->file, to->bytes, n, "m", &err);
    ggl_gguf_writer_free(w);
    return s == GGL_OK;
}

static void check_list(const ggl_gguf *f, const char *key, uint64_t n, double first, double last) {
    const ggl_gguf_value *v = ggl_gguf_find(f, key);
    double x = -9;
    bool truth = false;
    if (!CHECK_MSG(v && v->is_array && v->n == n, "%s is not a list of %d", key, (int)n))
        return;
    if (v->type == GGL_GGUF_STRING)
        return;
    x = ggl_gguf_bool(v, 0, &truth) ? truth : ggl_gguf_number(v, 0, &x) ? x : -9;
    CHECK_MSG(x >= first && x <= first, "%s begins with %g", key, x);
    x = ggl_gguf_bool(v, n - 1, &truth) ? truth : ggl_gguf_number(v, n - 1, &x) ? x : -9;
    CHECK_MSG(x >= last && x <= last, "%s ends with %g", key, x);
}

/* Layer 1 goes. */
TEST(lists_of_layers) {
    source from, to;
    quant_prune prune = {.n = 1, .gone = {[1] = true}};
    const quant_choice c = {.type = "q8_0", .prune = &prune};
    int64_t n = 0;
    REQUIRE(open_source(&from) && put_keys(&to, &from, &c, NULL, 0));
    CHECK(ggl_gguf_get_integer(to.file, "some.block_count", &n, NULL) == 1 && n == 2);
    check_list(to.file, "some.u32", 2, 10, 30);
    check_list(to.file, "some.u64", 2, 0x1p64, 0x1p63);
    check_list(to.file, "some.i8", 2, -1, -3);
    check_list(to.file, "some.bool", 2, 1, 1);
    check_list(to.file, "some.f32", 2, 0.5, 2.5);
    check_list(to.file, "some.f64", 2, 0.1, 0.3);
    uint64_t large = 0;
    CHECK(ggl_gguf_unsigned(ggl_gguf_find(to.file, "some.u64"), 0, &large) && large == UINT64_MAX);
    check_list(to.file, "some.two", 2, 10, 20);
    check_list(to.file, "some.rope.dimension_sections", 3, 10, 30);
    check_list(to.file, "other.u32", 3, 10, 30);
    check_list(to.file, "some.labels", 3, 0, 0);
    close_source(&to);
    close_source(&from);
}

/* A type without a number has no general.file_type; of own keys the last one applies. */
TEST(own_keys) {
    static const quant_key own[] = {{"new", GGL_GGUF_U32, {.u32 = 1}},
                                    {"some.two", GGL_GGUF_STRING, {.text = "text"}},
                                    {"new", GGL_GGUF_BOOL, {.truth = 1}},
                                    {"general.quantization_version", GGL_GGUF_U32, {.u32 = 7}}};
    const quant_choice c = {.type = "q8_0"};
    source from, to;
    int64_t n = 0;
    bool truth = false;
    ggl_str text = {"", 0};
    REQUIRE(open_source(&from) && put_keys(&to, &from, &c, own, 4));
    CHECK_INT(ggl_gguf_n_values(to.file), ggl_gguf_n_values(from.file) - 1); /* two less, one new */
    CHECK(!ggl_gguf_find(to.file, "general.file_type") &&
          !ggl_gguf_find(to.file, "split.tensors.count"));
    CHECK(ggl_gguf_get_integer(to.file, "general.quantization_version", &n, NULL) == 1 && n == 7);
    CHECK(ggl_gguf_get_bool(to.file, "new", &truth, NULL) == 1 && truth);
    CHECK(ggl_gguf_get_string(to.file, "some.two", &text, NULL) == 1 && ggl_str_is(text, "text"));
    close_source(&to);
    const quant_choice mix = {.mix = llm_quant_mix_find("Q4_K_M")}, copy = {0};
    REQUIRE(put_keys(&to, &from, &mix, NULL, 0));
    CHECK(ggl_gguf_get_integer(to.file, "general.file_type", &n, NULL) == 1 && n == 15);
    CHECK(ggl_gguf_get_integer(to.file, "general.quantization_version", &n, NULL) == 1 && n == 2);
    close_source(&to);
    REQUIRE(put_keys(&to, &from, &copy, NULL, 0));
    CHECK(ggl_gguf_get_integer(to.file, "general.file_type", &n, NULL) == 1 && n == 1);
    CHECK_INT(ggl_gguf_n_values(to.file), ggl_gguf_n_values(from.file) - 1);
    close_source(&to);
    close_source(&from);
}

static bool put_once(void *arg) {
    quant_prune prune = {.n = 1, .gone = {[1] = true}};
    const quant_choice c = {.type = "q8_0", .prune = &prune};
    source to;
    const bool ok = put_keys(&to, arg, &c, NULL, 0);
    close_source(&to);
    return ok;
}

TEST(out_of_memory) {
    source from;
    REQUIRE(open_source(&from));
    const long n = alloc_fail_each(put_once, &from);
    CHECK_MSG(n > 10, "%ld", n);
    close_source(&from);
}
