#include "alloc_fail.h"
#include "ggl/internal/alloc.h"
#include "process_status.h"
#include "test.h"

TEST(size_overflow) {
    size_t x = 7;
    CHECK(ggl_size_mul(SIZE_MAX / 2, 2, &x) && x == SIZE_MAX - 1);
    CHECK(!ggl_size_mul(SIZE_MAX / 2 + 1, 2, &x) && x == SIZE_MAX - 1);
    CHECK(!ggl_size_mul((size_t)1 << 32, (size_t)1 << 32, &x));
    CHECK(ggl_size_mul(0, SIZE_MAX, &x) && x == 0);
    CHECK(ggl_size_mul(SIZE_MAX, 0, &x) && x == 0);
    CHECK(ggl_size_add(SIZE_MAX - 1, 1, &x) && x == SIZE_MAX);
    CHECK(!ggl_size_add(SIZE_MAX, 1, &x) && x == SIZE_MAX);
    CHECK(ggl_size_align(0, 32, &x) && x == 0);
    CHECK(ggl_size_align(1, 32, &x) && x == 32);
    CHECK(ggl_size_align(32, 32, &x) && x == 32);
    CHECK(ggl_size_align(33, 1, &x) && x == 33);
    CHECK(ggl_size_align(SIZE_MAX - 31, 32, &x) && x == SIZE_MAX - 31);
    CHECK(!ggl_size_align(SIZE_MAX - 30, 32, &x));
}

/* Large memory is the system's again, whatever malloc does. */
TEST(pages) {
    for (size_t size = 1; size < 20 << 20; size = 3 * size + 1) {
        unsigned char *p = ggl_pages_calloc(size);
        REQUIRE(p && (uintptr_t)p % 64 == 0 && p[0] == 0 && p[size - 1] == 0);
        memset(p, 1, size);
        const long long full = test_status("VmRSS:") * 1024;
        ggl_pages_free(p, size);
        if (full > 0 && size >= 4 << 20 && !TEST_SANITIZED)
            CHECK_MSG(test_status("VmRSS:") * 1024 < full - (long long)size / 2, "%zu bytes stay",
                      size);
    }
    ggl_pages_free(NULL, 1);
    ggl_pages_free(NULL, 10 << 20);
}

TEST(calloc) {
    unsigned char *p = ggl_calloc(100, 3);
    REQUIRE(p);
    for (int i = 0; i < 300; i++)
        CHECK_INT(p[i], 0);
    ggl_free(p);
    p = ggl_calloc(0, 8);
    CHECK(p);
    ggl_free(p);
    CHECK(!ggl_calloc(SIZE_MAX / 2, 3));
    ggl_free(NULL);
}

TEST(grow) {
    int *a = NULL;
    size_t cap = 0;
    for (int i = 0; i < 1000; i++) {
        REQUIRE(ggl_grow(&a, &cap, (size_t)i + 1, sizeof *a));
        REQUIRE(cap > (size_t)i && a[i] == 0);
        a[i] = i;
    }
    for (int i = 0; i < 1000; i++)
        CHECK_INT(a[i], i);
    for (size_t i = 1000; i < cap; i++)
        CHECK_INT(a[i], 0);
    int *before = a;
    size_t cap_before = cap;
    CHECK(!ggl_grow(&a, &cap, SIZE_MAX / 2, sizeof *a));
    CHECK(a == before && cap == cap_before && a[999] == 999);
    ggl_free(a);
}

TEST(grow_out_of_memory) {
    int *a = NULL;
    size_t cap = 0;
    alloc_fail_at(1);
    CHECK(!ggl_grow(&a, &cap, 3, sizeof *a));
    CHECK(!a && cap == 0);
    CHECK(ggl_grow(&a, &cap, 3, sizeof *a));
    alloc_fail_at(1);
    CHECK(!ggl_grow(&a, &cap, 1000, sizeof *a));
    CHECK(a && cap >= 3);
    alloc_fail_at(0);
    ggl_free(a);
}

TEST(arena) {
    ggl_arena a = {0};
    unsigned char *p[500];
    size_t n[500], sum = 0;
    uint64_t seed = 1;
    for (int i = 0; i < 500; i++) {
        n[i] = test_random(&seed) % (i % 50 == 0 ? 100000 : 200);
        p[i] = ggl_arena_alloc(&a, n[i], 1);
        REQUIRE(p[i]);
        CHECK_INT((uintptr_t)p[i] % 16, 0);
        for (size_t k = 0; k < n[i]; k++)
            if (!CHECK(p[i][k] == 0))
                break;
        memset(p[i], i & 255, n[i]);
        sum += n[i];
    }
    for (int i = 0; i < 500; i++) /* nothing overlaps */
        for (size_t k = 0; k < n[i]; k++)
            if (!CHECK(p[i][k] == (i & 255)))
                break;
    CHECK(a.used >= sum && a.used < sum + 500 * 16 + 500);
    CHECK(!ggl_arena_alloc(&a, SIZE_MAX / 2, 3));
    CHECK(!ggl_arena_alloc(&a, SIZE_MAX - 3, 1));
    ggl_arena_fini(&a);
    CHECK(!a.head && a.used == 0);
    CHECK(ggl_arena_alloc(&a, 1, 1)); /* and may be used again */
    ggl_arena_fini(&a);
}

TEST(arena_strings) {
    ggl_arena a = {0};
    CHECK_STR(ggl_arena_strndup(&a, "abcdef", 3), "abc");
    CHECK_STR(ggl_arena_strndup(&a, NULL, 0), "");
    CHECK_STR(ggl_arena_printf(&a, "%s.%d", "blk", 12), "blk.12");
    char *s = ggl_arena_printf(&a, "%0*d", 70000, 1);
    CHECK(s && strlen(s) == 70000 && s[69999] == '1');
    ggl_arena_fini(&a);
}

TEST(arena_limit) {
    ggl_arena a = {.limit = 100};
    CHECK(ggl_arena_alloc(&a, 64, 1));
    CHECK(!ggl_arena_alloc(&a, 48, 1));
    CHECK_INT(a.used, 64);
    CHECK(ggl_arena_alloc(&a, 32, 1));
    CHECK(!ggl_arena_alloc(&a, 1, 1));
    ggl_arena_fini(&a);
}

static bool use_arena(void *arg) {
    (void)arg;
    ggl_arena a = {0};
    bool ok = true;
    for (int i = 0; ok && i < 20; i++)
        ok = ggl_arena_printf(&a, "%0*d", i * 400, i) && ggl_arena_alloc(&a, 1000, 8);
    ggl_arena_fini(&a);
    return ok;
}

TEST(arena_out_of_memory) {
    CHECK(alloc_fail_each(use_arena, NULL) > 3);
}

#ifndef _WIN32
TEST(counting_of_aligned_memory) {
    void *(*volatile do_aligned_alloc)(size_t, size_t) = aligned_alloc;
    const long before = alloc_count();
    free(do_aligned_alloc(64, 64));
    CHECK_INT(alloc_count() - before, 1);
}
#endif

TEST(counting) {
    /* through pointers that the compiler cannot see through: it may drop a malloc that is only
     * freed */
    void *(*volatile do_malloc)(size_t) = malloc;
    void *(*volatile do_calloc)(size_t, size_t) = calloc;
    void *(*volatile do_realloc)(void *, size_t) = realloc;
    long before = alloc_count();
    void *a = do_malloc(8), *b = do_calloc(1, 8), *c = do_realloc(NULL, 8);
    CHECK_INT(alloc_count() - before, 3);
    free(a);
    free(b);
    free(c);
    CHECK_INT(alloc_count() - before, 3);
    alloc_fail_at(2);
    a = do_malloc(8);
    b = do_malloc(8);
    c = do_malloc(8);
    CHECK(a && !b && c && alloc_has_failed());
    alloc_fail_at(0);
    free(a);
    free(c);
}
