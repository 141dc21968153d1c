/* Files with several defects: all of them are passed to ggl_gguf_params.defect, and what is sound can be
 * read. Without that function, the first one is the error. */
#include "gguf_bytes.h"
#include "ggl/internal/gguf.h"
#include "gguf_found.h"
#include "test.h"

/* Opens the bytes as a file; the caller closes it. NULL: it did not open. */
static ggl_gguf *open_with(const gguf_bytes *b, gguf_found *f, bool meta_only) {
    const ggl_gguf_params p = {
        .size = sizeof p, .meta_only = meta_only, .defect = gguf_on_defect, .ctx = f};
    ggl_gguf *g = NULL;
    const char *path = test_path("defects.gguf");
    CHECK(test_write_file(path, b->data, b->n));
    *f = (gguf_found){0};
    CHECK(ggl_gguf_open(&g, path, NULL, NULL) != GGL_OK);
    CHECK(!g);
    const ggl_status s = ggl_gguf_open(&g, path, &p, NULL);
    CHECK((s == GGL_OK) == (g != NULL));
    return g;
}

TEST(all_are_reported) {
    static const char *const words[] = {"'a' is already key 1",  "a boolean is 7",
                                        "'bad' has offset 40",   "type number 999",
                                        "'rows' has rows of 33", "the file is truncated",
                                        "overlaps that of",      "'fine' is already"};
    gguf_bytes b = {.n = 0};
    gguf_found f;
    put_header(&b, 3, 6, 3);
    put_key_u32(&b, "a", 1);
    put_key_u32(&b, "a", 2);
    put_key(&b, "b", GGL_GGUF_BOOL);
    put_u8(&b, 7);
    put_tensor(&b, "fine", 1, 8, 1, GGL_F32, 0);
    put_tensor(&b, "bad", 1, 8, 1, GGL_F32, 40);
    put_tensor(&b, "new", 1, 8, 1, 999, 96);
    put_tensor(&b, "rows", 1, 33, 1, GGL_Q8_0, 96);
    put_tensor(&b, "fine", 1, 16, 1, GGL_F32, 64); /* the same name, over "bad" */
    put_tensor(&b, "cut", 1, 64, 1, GGL_F32, 128);
    put_align(&b, 32);
    put_zeros(&b, 130);
    ggl_gguf *g = open_with(&b, &f, false);
    REQUIRE(g);
    CHECK_MSG(f.n == 8, "%d defects:\n%s", f.n, f.text);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        CHECK_MSG(strstr(f.text, words[i]), "no '%s' in:\n%s", words[i], f.text);
    CHECK(ggl_gguf_n_tensors(g) == 6 && ggl_gguf_n_values(g) == 3);
    CHECK(ggl_gguf_tensor_at(g, 0)->data && ggl_gguf_tensor_at(g, 1)->offset == 40);
    CHECK(ggl_gguf_tensor_at(g, 2)->size == 0 && ggl_gguf_tensor_at(g, 3)->size == 0);
    CHECK(ggl_gguf_find_tensor(g, "fine") == ggl_gguf_tensor_at(g, 0));
    CHECK(!ggl_gguf_tensor_at(g, 5)->data && ggl_gguf_tensor_at(g, 5)->size == 256);
    ggl_gguf_close(g);
}

TEST(what_cannot_be_read_is_an_error) {
    gguf_bytes b = {.n = 0};
    gguf_found f;
    put_header(&b, 3, 0, 2);
    put_key_u32(&b, "a", 1);
    put_key(&b, "b", 77); /* a type of unknown size: no key after it can be found */
    put_u32(&b, 1);
    CHECK(!open_with(&b, &f, false));
    CHECK(f.n == 0);
}

TEST(values_are_compared_bit_for_bit) {
    gguf_bytes b = {.n = 0};
    ggl_gguf *g;
    ggl_error err;
    put_header(&b, 3, 0, 4);
    put_key_u32(&b, "a", 1);
    put_key_u32(&b, "b", 1);
    put_key_u32(&b, "c", 2);
    put_key(&b, "d", GGL_GGUF_I32);
    put_u32(&b, 1);
    REQUIRE(ggl_gguf_open_memory(&g, b.data, b.n, "values", &err) == GGL_OK);
    CHECK(ggl_gguf_same_value(ggl_gguf_find(g, "a"), ggl_gguf_find(g, "b")));
    CHECK(!ggl_gguf_same_value(ggl_gguf_find(g, "a"), ggl_gguf_find(g, "c")));
    CHECK(!ggl_gguf_same_value(ggl_gguf_find(g, "a"), ggl_gguf_find(g, "d")));
    ggl_gguf_close(g);
}
