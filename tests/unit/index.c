/* The table of keys: finding, duplicates, growth, keys of fixed size, no collisions that a file
 * could prepare. */
#include "ggl/internal/index.h"

#include "ggl/alloc.h"
#include "steps.h"

typedef struct item {
    ggl_str name;
    int value;
} item;

static ggl_status init(ggl_index *x, size_t n, ggl_error *err) {
    return ggl_index_init(x, n, sizeof(item), GGL_INDEX_STRINGS, err);
}

TEST(find_and_duplicates) {
    enum { N = 1000 };
    static char names[N][16];
    static item items[N + 1];
    ggl_index x;
    ggl_error err;
    REQUIRE_OK(init(&x, N + 1, &err), &err);
    for (size_t i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "blk.%zu", i);
        items[i].name = (ggl_str){names[i], strlen(names[i])};
        CHECK_INT(ggl_index_put(&x, items, i), i);
    }
    items[N].name = (ggl_str){"blk.7", 5};
    CHECK_INT(ggl_index_put(&x, items, N), 7);
    CHECK_INT(x.n, N);
    for (size_t i = 0; i < N; i++)
        CHECK_INT(ggl_index_find(&x, items, items[i].name), i);
    CHECK(ggl_index_find(&x, items, (ggl_str){"blk", 3}) == SIZE_MAX);
    CHECK(ggl_index_find(&x, items, (ggl_str){"blk.1000", 8}) == SIZE_MAX);
    CHECK(ggl_index_find(&x, items, (ggl_str){"", 0}) == SIZE_MAX);
    ggl_index_fini(&x);
}

TEST(zero_bytes_and_lengths_count) {
    static const char zeros[64];
    item items[64];
    ggl_index x;
    REQUIRE_OK(init(&x, 64, NULL), NULL);
    for (size_t i = 0; i < 64; i++) {
        items[i].name = (ggl_str){zeros, i};
        CHECK_INT(ggl_index_put(&x, items, i), i);
    }
    ggl_index_fini(&x);
}

TEST(empty_and_too_large) {
    ggl_index x;
    REQUIRE_OK(init(&x, 0, NULL), NULL);
    CHECK(ggl_index_find(&x, NULL, (ggl_str){"a", 1}) == SIZE_MAX);
    ggl_index_fini(&x);
    CHECK(ggl_index_find(&x, NULL, (ggl_str){"a", 1}) == SIZE_MAX);
    ggl_error err;
    CHECK_INT(init(&x, SIZE_MAX, &err), GGL_LIMIT);
}

/* Pairs of integers as keys, and a table that grows with them. */
TEST(pairs_and_growth) {
    enum { N = 5000 };
    static struct { int32_t left, right, value; } pairs[N];
    ggl_index x;
    REQUIRE_OK(ggl_index_init(&x, 1, sizeof *pairs, 2 * sizeof(int32_t), NULL), NULL);
    for (size_t i = 0; i < N; i++) {
        pairs[i].left = (int32_t)(i / 70);
        pairs[i].right = (int32_t)(i % 70) - 9;
        pairs[i].value = 1; /* not part of the key */
        REQUIRE_OK(ggl_index_reserve(&x, pairs, i + 1, NULL), NULL);
        CHECK_INT(ggl_index_put(&x, pairs, i), i);
    }
    for (size_t i = 0; i < N; i++) {
        int32_t key[2] = {pairs[i].left, pairs[i].right};
        CHECK_INT(ggl_index_find(&x, pairs, (ggl_str){(const char *)key, sizeof key}), i);
    }
    int32_t other[2] = {0, 61};
    CHECK(ggl_index_find(&x, pairs, (ggl_str){(const char *)other, sizeof other}) == SIZE_MAX);
    ggl_index_fini(&x);
}

/* Puts n names, finds each again; the steps that took. */
static uint64_t steps_for(item *items, size_t n) {
    ggl_index x;
    ggl_n_steps = 0;
    if (!CHECK_OK(init(&x, n, NULL), NULL))
        return 0;
    for (size_t i = 0; i < n; i++)
        CHECK(ggl_index_put(&x, items, i) == i);
    for (size_t i = 0; i < n; i++)
        CHECK(ggl_index_find(&x, items, items[i].name) == i);
    ggl_index_fini(&x);
    return ggl_n_steps;
}

/* A good spread: names that differ in little take about two steps each. */
TEST(names_that_differ_in_little) {
    enum { N = 100000 };
    char *text = malloc((size_t)N * 16);
    item *items = ggl_calloc(N, sizeof *items);
    REQUIRE(text && items);
    for (size_t i = 0; i < N; i++) {
        int n = snprintf(text + i * 16, 16, "key.%zu", i);
        items[i].name = (ggl_str){text + i * 16, (size_t)n};
    }
    uint64_t n = steps_for(items, N);
    CHECK_MSG(n < 2 * 3 * N, "%" PRIu64 " steps", n);
    ggl_free(items);
    free(text);
}

/* Names made for the tables that were here before. In the last kind each piece of 16 bytes is one
 * of two, whose words differ by what a multiplication and a shift turn into the same state,
 * whatever it was before: 2^63, and then 2^63 + 2^31. */
TEST(prepared_collisions) {
    enum { BITS = 12, N = 1 << BITS, PIECE = 16 };
    char *text = ggl_calloc(N, BITS * PIECE);
    item *items = ggl_calloc(N, sizeof *items);
    REQUIRE(text && items);
    for (int kind = 0; kind < 2; kind++) {
        for (size_t i = 0; i < N; i++) {
            char *s = text + i * BITS * PIECE;
            size_t piece = kind == 0 ? 2 : PIECE;
            memset(s, 'x', BITS * PIECE);
            for (size_t b = 0; b < BITS; b++, s += piece) {
                if (kind == 0)
                    memcpy(s, i >> b & 1 ? "Ez" : "FY", 2); /* h*33 + c */
                else if (i >> b & 1)
                    s[7] ^= '\x80', s[15] ^= '\x80', s[11] ^= '\x80';
            }
            items[i].name = (ggl_str){text + i * BITS * PIECE, BITS * piece};
        }
        uint64_t n = steps_for(items, N);
        CHECK_MSG(n < 2 * 3 * N, "kind %d: %" PRIu64 " steps for %d names", kind, n, N);
    }
    ggl_free(items);
    ggl_free(text);
}

/* SipHash has a published test; here it is enough that no table has the seed of another. */
TEST(seeds_differ) {
    ggl_index a, b;
    REQUIRE_OK(init(&a, 8, NULL), NULL);
    REQUIRE_OK(init(&b, 8, NULL), NULL);
    CHECK(a.seed[0] != b.seed[0]);
    ggl_index_fini(&a);
    ggl_index_fini(&b);
}
