/* Times of words: the cheapest way through a table beside all ways, and how tokens become words. */
#include <math.h>
#include <string.h>

#include "speech/word_path.h"
#include "speech/word_split.h"
#include "test.h"

enum { MOST = 6 };

typedef struct grid {
    size_t n, m;
    double cost[MOST * MOST];
} grid;

/* The least sum of all ways from (i, j) to the end. */
static double least(const grid *g, size_t i, size_t j) {
    double best = i + 1 == g->n && j + 1 == g->m ? 0 : INFINITY;
    for (int k = 1; k < 4; k++) {
        const size_t row = i + (k & 1), column = j + (k >> 1);
        if (row < g->n && column < g->m)
            best = fmin(best, least(g, row, column));
    }
    return best + g->cost[i * g->m + j];
}

/* The least sum of the ways that enter row k in column first[k]: each leaves it there where the next row is entered, or a column before. */
static double along(const grid *g, const size_t *first) {
    double sum = 0;
    for (size_t i = 0; i < g->n; i++) {
        const size_t last = i + 1 < g->n ? first[i + 1] : g->m - 1;
        for (size_t j = first[i]; j < last; j++)
            sum += g->cost[i * g->m + j];
        const double at_last = g->cost[i * g->m + last];
        sum += i + 1 < g->n && last > first[i] ? fmin(0, at_last) : at_last;
    }
    return sum;
}

TEST(the_way_is_the_cheapest) {
    uint64_t seed = 20;
    for (int turn = 0; turn < 400; turn++) {
        grid g = {.n = 1 + (size_t)turn % MOST, .m = 1 + (size_t)(turn / MOST) % MOST};
        size_t first[MOST];
        ggl_error err;
        for (size_t k = 0; k < g.n * g.m; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            /* some tables of few values, in which ways cost the same */
            const double x = (double)(seed >> 40) / 0x1p23 - 1;
            g.cost[k] = turn % 3 ? x : floor(2 * x);
        }
        REQUIRE_OK(llm_word_path(g.cost, g.n, g.m, first, &err), &err);
        CHECK(first[0] == 0);
        for (size_t i = 1; i < g.n; i++)
            CHECK(first[i] >= first[i - 1] && first[i] < g.m);
        CHECK_MSG(fabs(along(&g, first) - least(&g, 0, 0)) < 1e-9, "%zu x %zu: %g, not %g", g.n,
                  g.m, along(&g, first), least(&g, 0, 0));
    }
}

TEST(equal_ways_go_to_the_next_column) {
    const double cost[12] = {0};
    size_t first[3];
    ggl_error err;
    REQUIRE_OK(llm_word_path(cost, 3, 4, first, &err), &err);
    CHECK(first[0] == 0 && first[1] == 0 && first[2] == 0);
}

/* Checks that tokens, each ended by '|', become words. */
static void check_words(const char *tokens, bool no_spaces, const char *want) {
    char text[256], got[512] = "";
    size_t at[64], n = 0, n_text = 0, n_parts;
    word_part part[64];
    at[0] = 0;
    for (const char *s = tokens; *s; s++) {
        if (*s == '|')
            at[++n] = n_text;
        else
            text[n_text++] = *s;
    }
    llm_word_split(text, at, n, no_spaces, part, &n_parts);
    for (size_t k = 0; k < n_parts; k++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%zu%.*s|", part[k].n_tokens,
                 (int)part[k].n_text, text + part[k].text);
    CHECK_STR(got, want);
}

TEST(tokens_become_words) {
    check_words("", false, "");
    check_words(" And| so|,| my| fel|low|.|", false, "1 And|1 so|1,|1 my|2 fellow|1.|");
    check_words("lo|w| it|'s| \"|so|\"|", false, "2low|2 it's|2 \"so|1\"|");
    check_words(" caf\xc3|\xa9| \xe4\xb8|\xad\xe5|\x9b|\xbd|", false,
                "2 caf\xc3\xa9|4 \xe4\xb8\xad\xe5\x9b\xbd|");
    check_words("\xe4\xb8|\xad|\xe5\x9b\xbd|a|b|", true, "2\xe4\xb8\xad|1\xe5\x9b\xbd|1a|1b|");
    /* bytes that are no characters, and one that is not complete at the end */
    check_words("a|\xff|b| \xe4|c| \xe4|\xb8|", false,
                "3a\xff"
                "b|2 \xe4"
                "c|2 \xe4\xb8|");
    CHECK(llm_word_has_no_spaces("ja") && llm_word_has_no_spaces("yue") &&
          !llm_word_has_no_spaces("en") && !llm_word_has_no_spaces(""));
}
