/* Special tokens in text, against trying all of them everywhere; and steps for sets and texts that
 * make that slow. */
#include "text/special_tokens.h"

#include "ggl/alloc.h"
#include "steps.h"

typedef struct token {
    ggl_str s;
    bool user;
} token;

static bool build(special_tokens *x, const token *t, int n) {
    ggl_error err = {0};
    ggl_status s = llm_special_init(x, &err);
    for (int id = 0; id < n && s == GGL_OK; id++)
        s = llm_special_add(x, t[id].s, id, t[id].user, &err);
    if (s == GGL_OK)
        s = llm_special_finish(x, &err);
    return CHECK_OK(s, &err);
}

/* The longest token at text[0..n), of equal ones the first; -1: none. */
static int naive(const token *t, int n_token, const char *text, size_t n, bool user_only) {
    int best = -1;
    for (int id = 0; id < n_token; id++) {
        bool fits = t[id].s.n <= n && memcmp(t[id].s.s, text, t[id].s.n) == 0;
        for (int k = 0; fits && k < id; k++) /* of equal spellings the first counts */
            fits = t[k].s.n != t[id].s.n || memcmp(t[k].s.s, t[id].s.s, t[id].s.n) != 0;
        if (fits && (t[id].user || !user_only) && (best < 0 || t[id].s.n > t[best].s.n))
            best = id;
    }
    return best;
}

static void compare(const special_tokens *x, const token *t, int n_token, const char *text,
                    size_t n, bool user_only) {
    special_match *found;
    size_t n_found, k;
    ggl_error err = {0};
    REQUIRE_OK(llm_special_find(x, text, n, user_only, &found, &n_found, &err), &err);
    k = n_found;
    for (size_t i = 0; i < n; i++) {
        int want = naive(t, n_token, text + i, n - i, user_only);
        bool here = k > 0 && found[k - 1].at == i;
        int got = here ? found[--k].id : -1;
        CHECK_MSG(got == want, "'%.*s' at %zu: token %d, expected %d", (int)n, text, i, got, want);
    }
    CHECK_INT(k, 0);
    ggl_free(found);
}

/* The same with stretches in which only user-defined tokens are found. */
static void compare_between(const special_tokens *x, const token *t, int n_token, const char *text,
                            size_t n, const bool *is_given, const llm_spans *given) {
    special_match *found;
    size_t n_found, k;
    ggl_error err = {0};
    REQUIRE_OK(llm_special_find_between(x, text, n, given, 0, &found, &n_found, &err), &err);
    k = n_found;
    for (size_t i = 0; i < n; i++) {
        size_t free = i;
        while (free < n && !is_given[free])
            free++;
        const int own = naive(t, n_token, text + i, free - i, false),
                  user = naive(t, n_token, text + i, n - i, true);
        const int want = user >= 0 && (own < 0 || t[user].s.n > t[own].s.n) ? user : own;
        const bool here = k > 0 && found[k - 1].at == i;
        const int got = here ? found[--k].id : -1;
        CHECK_MSG(got == want, "'%.*s' at %zu: token %d, expected %d", (int)n, text, i, got, want);
    }
    CHECK_INT(k, 0);
    ggl_free(found);
}

/* Draws stretches. */
static void draw_given(uint64_t *seed, size_t n, bool *is_given, llm_spans *given) {
    given->n = 0;
    for (size_t i = 0; i < n; i++) {
        is_given[i] = test_random(seed) % 3 == 0;
        if (is_given[i] && i > 0 && is_given[i - 1])
            given->at[given->n - 1].to = i + 1;
        else if (is_given[i])
            given->at[given->n++] = (llm_span){i, i + 1};
    }
}

TEST(same_as_naive) {
    enum { N_TOKEN = 12 };
    uint64_t seed = 3;
    for (int round = 0; round < 2000; round++) {
        char spelling[N_TOKEN][8], text[40];
        token t[N_TOKEN];
        special_tokens x;
        int n_token = (int)(test_random(&seed) % (N_TOKEN + 1));
        unsigned letters = 1 + (unsigned)(test_random(&seed) % 3);
        for (int id = 0; id < n_token; id++) {
            t[id] = (token){{spelling[id], 1 + test_random(&seed) % 6}, test_random(&seed) % 2};
            for (size_t i = 0; i < t[id].s.n; i++)
                spelling[id][i] = (char)("a\xff"
                                         "c"[test_random(&seed) % letters]);
        }
        size_t n = test_random(&seed) % sizeof text;
        for (size_t i = 0; i < n; i++)
            text[i] = (char)("a\xff"
                             "c"[test_random(&seed) % letters]);
        if (build(&x, t, n_token)) {
            compare(&x, t, n_token, text, n, false);
            compare(&x, t, n_token, text, n, true);
            bool is_given[sizeof text];
            llm_span span[sizeof text];
            llm_spans given = {.at = span};
            draw_given(&seed, n, is_given, &given);
            compare_between(&x, t, n_token, text, n, is_given, &given);
        }
        llm_special_fini(&x);
    }
}

static uint64_t steps_to_find(const special_tokens *x, const char *text, size_t n) {
    special_match *found;
    size_t n_found;
    ggl_n_steps = 0;
    CHECK_OK(llm_special_find(x, text, n, false, &found, &n_found, NULL), NULL);
    ggl_free(found);
    return ggl_n_steps;
}

/* Steps for n bytes, and for 10 n. One key is looked up again and again here, and where it lies in
 * the table depends on the seed: the best of some tables is what counts. */
static void best_steps(const token *t, int n_token, const char *text, size_t n, uint64_t *small,
                       uint64_t *large) {
    *large = UINT64_MAX;
    for (int i = 0; i < 16; i++) {
        special_tokens x;
        REQUIRE(build(&x, t, n_token));
        uint64_t few = steps_to_find(&x, text, n), many = steps_to_find(&x, text, 10 * n);
        if (many < *large) {
            *small = few;
            *large = many;
        }
        llm_special_fini(&x);
    }
}

/* Few steps for each byte, whatever the tokens are. */
TEST(texts_that_almost_fit) {
    enum { LONG = 1000, N = 40000 };
    static char a[LONG + 1], b[LONG + 1], text[N];
    static token t[LONG + 2];
    memset(a, 'a', LONG);
    memset(b, 'a', sizeof b);
    memset(text, 'a', N);
    b[0] = 'b';
    for (int kind = 0; kind < 3; kind++) {
        int n = 0;
        if (kind == 0) /* a, aa, aaa, .. */
            for (; n < LONG; n++)
                t[n].s = (ggl_str){a, (size_t)n + 1};
        a[LONG] = kind == 1 ? 'b' : 'a';
        if (kind == 1) /* a, and a..ab */
            t[n++].s = (ggl_str){a, 1};
        if (kind > 0)
            t[n++].s = (ggl_str){a, LONG + 1};
        if (kind == 2) /* ba..a, and a..a */
            t[n++].s = (ggl_str){b, sizeof b};
        uint64_t small = 0, large = 0;
        best_steps(t, n, text, N / 10, &small, &large);
        CHECK_MSG(large <= 8 * N, "kind %d: %" PRIu64 " steps for %d bytes", kind, large, N);
        test_linear("a text of a", small, large, 10);
    }
}

static uint64_t steps_to_build(const token *t, int n) {
    special_tokens x;
    ggl_n_steps = 0;
    CHECK(build(&x, t, n));
    llm_special_fini(&x);
    return ggl_n_steps;
}

/* Building takes steps linear in the spellings' bytes: lengths 2, 1, 2, 1, .., and deep tries. */
TEST(building) {
    enum { N = 20000 };
    static char s[N * 4];
    static token t[N];
    for (int i = 0; i < N; i++) {
        memcpy(s + i * 4, (char[]){'<', (char)(i >> 8), (char)i, '>'}, 4);
        t[i].s = (ggl_str){s + i * 4, i % 2 ? 3 : 4};
    }
    test_linear("short tokens", steps_to_build(t, N / 10), steps_to_build(t, N), 10);
    memset(s, 'x', sizeof s);
    t[0].s = (ggl_str){s, sizeof s / 10};
    uint64_t small = steps_to_build(t, 1);
    t[0].s.n = sizeof s;
    test_linear("a long token", small, steps_to_build(t, 1), 10);
}
