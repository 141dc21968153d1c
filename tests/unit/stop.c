/* llm/internal/stop.h against a search in the whole text. */
#include "llm/internal/stop.h"

#include "alloc_fail.h"
#include "steps.h"

enum { MOST_TEXT = 400, MOST_STRINGS = 8, MOST_LENGTH = 12 };

typedef struct example {
    char text[MOST_TEXT], bytes[MOST_STRINGS][MOST_LENGTH];
    ggl_str string[MOST_STRINGS];
    size_t n_text, n;
} example;

/* Few different bytes, so that strings overlap, nest and nearly match. */
static void make(example *x, uint64_t *seed) {
    const uint64_t n_bytes = 1 + test_random(seed) % 4;
    x->n_text = test_random(seed) % MOST_TEXT;
    x->n = test_random(seed) % (MOST_STRINGS + 1);
    for (size_t i = 0; i < x->n_text; i++)
        x->text[i] = (char)(test_random(seed) % n_bytes); /* 0 is a byte like others */
    for (size_t k = 0; k < x->n; k++) {
        const size_t n = 1 + test_random(seed) % MOST_LENGTH;
        for (size_t i = 0; i < n; i++)
            x->bytes[k][i] = (char)(test_random(seed) % n_bytes);
        x->string[k] = (ggl_str){x->bytes[k], n};
    }
}

static bool ends_at(const example *x, size_t end, ggl_str s) {
    return s.n <= end && memcmp(x->text + end - s.n, s.s, s.n) == 0;
}

/* Returns the string that ends first, the longest of several, the first of equals; -1: none. */
static int naive_found(const example *x, size_t *end) {
    for (*end = 0; *end <= x->n_text; ++*end) {
        int best = -1;
        for (int k = 0; k < (int)x->n; k++)
            if (ends_at(x, *end, x->string[k]) && (best < 0 || x->string[k].n > x->string[best].n))
                best = k;
        if (best >= 0)
            return best;
    }
    *end = x->n_text;
    return -1;
}

/* Returns how many bytes at the end of text[0..n) are the beginning of some string. */
static size_t naive_held(const example *x, size_t n) {
    size_t held = 0;
    for (size_t k = 0; k < x->n; k++)
        for (size_t m = 1; m < x->string[k].n; m++)
            if (m > held && ends_at(x, n, (ggl_str){x->string[k].s, m}))
                held = m;
    return held;
}

static bool check_text(const example *x, llm_stop *s, uint64_t *seed) {
    size_t end, shown = 0, read = 0;
    const int found = naive_found(x, &end);
    const long before = alloc_count();
    llm_stop_reset(s);
    while (read < x->n_text && llm_stop_found(s) < 0) {
        size_t piece = test_random(seed) % 9;
        piece = piece < x->n_text - read ? piece : x->n_text - read;
        shown += llm_stop_read(s, x->text + read, piece);
        read += piece;
        const size_t held = found >= 0 && read >= end ? x->string[found].n : naive_held(x, read),
                     known = found >= 0 && read >= end ? end : read;
        if (!CHECK_INT(shown, known - held) || !CHECK_INT(llm_stop_held(s), held))
            return false;
    }
    return CHECK_INT(llm_stop_found(s), found) && CHECK_INT(alloc_count(), before) &&
           CHECK(found < 0 || llm_stop_read(s, "abc", 3) == 0);
}

TEST(random) {
    static example x;
    uint64_t seed = 21;
    int n_found = 0;
    for (int round = 0; round < 20000; round++) {
        ggl_error err;
        llm_stop *s;
        make(&x, &seed);
        REQUIRE_OK(llm_stop_new(&s, x.string, x.n, &err), &err);
        const bool ok = check_text(&x, s, &seed) && check_text(&x, s, &seed);
        n_found += llm_stop_found(s) >= 0;
        llm_stop_free(s);
        if (!CHECK_MSG(ok, "round %d", round))
            break;
    }
    CHECK(n_found > 2000 && n_found < 19000);
}

TEST(examples) {
    ggl_error err;
    llm_stop *s;
    const ggl_str strings[] = {{"\nUser:", 6}, {"</s>", 4}};
    REQUIRE_OK(llm_stop_new(&s, strings, 2, &err), &err);
    CHECK_INT(llm_stop_read(s, "Hi.\n", 4), 3);
    CHECK_INT(llm_stop_read(s, "Us", 2), 0);
    CHECK_INT(llm_stop_read(s, "age", 3), 6);
    CHECK_INT(llm_stop_read(s, "\nUser", 5), 0);
    CHECK_INT(llm_stop_held(s), 5);
    CHECK_INT(llm_stop_found(s), -1);
    CHECK_INT(llm_stop_read(s, ": no", 4), 0);
    CHECK_INT(llm_stop_found(s), 0);
    CHECK_INT(llm_stop_held(s), 6);
    llm_stop_free(s);
    const ggl_str empty[] = {{"a", 1}, {"", 0}};
    CHECK_INT(llm_stop_new(&s, empty, 2, &err), GGL_USAGE);
    CHECK_STR(err.msg, "stop string 2 is empty");
    CHECK(!s);
    llm_stop_free(NULL);
}

static uint64_t steps_of(const ggl_str *string, size_t n, const char *text, size_t n_text) {
    ggl_error err;
    llm_stop *s;
    if (!CHECK_OK(llm_stop_new(&s, string, n, &err), &err))
        return 0;
    ggl_n_steps = 0;
    for (size_t i = 0; i < n_text; i += 100)
        (void)llm_stop_read(s, text + i, 100);
    CHECK_INT(llm_stop_found(s), -1);
    llm_stop_free(s);
    return ggl_n_steps;
}

/* Strings that the text nearly contains everywhere. */
TEST(linear) {
    enum { N = 20000, LENGTH = 1000, COUNT = 100 };
    static char text[10 * N], same[LENGTH + COUNT + 1];
    ggl_str strings[COUNT];
    memset(text, 'a', sizeof text);
    memset(same, 'a', LENGTH + COUNT);
    for (int i = 0; i < COUNT; i++) /* a..ab, each longer than the one before */
        strings[i] = (ggl_str){same + COUNT - 1 - i, (size_t)(LENGTH + i + 2)};
    same[LENGTH + COUNT] = 'b';
    /* a few steps for each byte, whatever the hash table's seed */
    CHECK(steps_of(strings, COUNT, text, N) < 20 * N);
    CHECK(steps_of(strings, COUNT, text, sizeof text) < 20 * sizeof text);
}

static bool create(void *arg) {
    const ggl_str strings[] = {{"abc", 3}, {"abd", 3}, {"bd", 2}};
    llm_stop *s;
    (void)arg;
    if (llm_stop_new(&s, strings, 3, NULL) != GGL_OK)
        return false;
    llm_stop_free(s);
    return true;
}

TEST(failing_allocations) {
    CHECK(alloc_fail_each(create, NULL) > 2);
}
