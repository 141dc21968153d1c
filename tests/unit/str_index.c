#include "str_index.h"
#include "ggl/alloc.h"
#include "test.h"

typedef struct item {
    ggl_str name;
    int value;
} item;

TEST(find_and_duplicates) {
    enum { N = 1000 };
    static char names[N][16];
    static item items[N + 1];
    str_index x;
    ggl_error err;
    REQUIRE_OK(str_index_init(&x, N + 1, &err), &err);
    for (size_t i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "blk.%zu", i);
        items[i].name = (ggl_str){names[i], strlen(names[i])};
        CHECK_INT(str_index_put(&x, items, sizeof *items, i), i);
    }
    items[N].name = (ggl_str){"blk.7", 5};
    CHECK_INT(str_index_put(&x, items, sizeof *items, N), 7);
    for (size_t i = 0; i < N; i++)
        CHECK_INT(str_index_find(&x, items, sizeof *items, items[i].name), i);
    CHECK(str_index_find(&x, items, sizeof *items, (ggl_str){"blk", 3}) == SIZE_MAX);
    CHECK(str_index_find(&x, items, sizeof *items, (ggl_str){"blk.1000", 8}) == SIZE_MAX);
    CHECK(str_index_find(&x, items, sizeof *items, (ggl_str){"", 0}) == SIZE_MAX);
    str_index_fini(&x);
}

TEST(zero_bytes_and_lengths_count) {
    static const char zeros[64];
    item items[64];
    str_index x;
    REQUIRE_OK(str_index_init(&x, 64, NULL), NULL);
    for (size_t i = 0; i < 64; i++) {
        items[i].name = (ggl_str){zeros, i};
        CHECK_INT(str_index_put(&x, items, sizeof *items, i), i);
    }
    str_index_fini(&x);
}

TEST(empty_and_too_large) {
    str_index x;
    REQUIRE_OK(str_index_init(&x, 0, NULL), NULL);
    CHECK(str_index_find(&x, NULL, sizeof(item), (ggl_str){"a", 1}) == SIZE_MAX);
    str_index_fini(&x);
    CHECK(str_index_find(&x, NULL, sizeof(item), (ggl_str){"a", 1}) == SIZE_MAX);
    ggl_error err;
    CHECK_INT(str_index_init(&x, SIZE_MAX, &err), GGL_LIMIT);
}

/* A good spread: a million names that differ in little take few probes, so this takes well under a
 * second. */
TEST(a_million_names) {
    enum { N = 1000000 };
    char *text = malloc((size_t)N * 16);
    item *items = ggl_calloc(N, sizeof *items);
    str_index x;
    REQUIRE(text && items);
    REQUIRE_OK(str_index_init(&x, N, NULL), NULL);
    for (size_t i = 0; i < N; i++) {
        int n = snprintf(text + i * 16, 16, "key.%zu", i);
        items[i].name = (ggl_str){text + i * 16, (size_t)n};
        str_index_put(&x, items, sizeof *items, i);
    }
    for (size_t i = 0; i < N; i += 1009)
        CHECK_INT(str_index_find(&x, items, sizeof *items, items[i].name), i);
    str_index_fini(&x);
    ggl_free(items);
    free(text);
}
