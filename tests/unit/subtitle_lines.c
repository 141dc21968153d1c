/* unit.subtitle_lines: subtitles by words: their number, lines of a width, several lines, pauses, and the word that is said. */
#include <stdio.h>
#include <string.h>

#include "common/speech_lines.h"
#include "test.h"

static char got[4096];

static void put(void *ctx, double start, double end, const char *text, size_t n) {
    const size_t at = strlen(got);
    (void)ctx;
    snprintf(got + at, sizeof got - at, "%g-%g %.*s;", start, end, (int)n, text);
}

/* Two pieces, their words a second long each from the given second on. */
static void check(lines l, const char *want) {
    static const char *const text[2][5] = {{" And", " so,", " my", " fellow"},
                                           {" ask", " n\u00f6t", "\n\u4e2d"}};
    static const size_t n[2] = {4, 3};
    static const double begin[2] = {0, 8};
    got[0] = 0;
    l.put = put;
    for (int p = 0; p < 2; p++) {
        llm_word word[5];
        for (size_t k = 0; k < n[p]; k++)
            word[k] = (llm_word){.start = begin[p] + (double)k,
                                 .end = begin[p] + (double)k + 1,
                                 .text = text[p][k],
                                 .n = strlen(text[p][k])};
        lines_add(&l, &(llm_speech){.word = word, .n_words = n[p]});
    }
    lines_add(&l, &(llm_speech){0});
    lines_end(&l);
    CHECK(!l.failed);
    CHECK_STR(got, want);
}

TEST(words_are_counted) {
    CHECK(!lines_are_wanted(&(lines){0}) && lines_are_wanted(&(lines){.highlight = true}));
    check((lines){.most_words = 1},
          "0-1 And;1-2 so,;2-3 my;3-4 fellow;8-9 ask;9-10 n\u00f6t;10-11 \u4e2d;");
    check((lines){.most_words = 3}, "0-3 And so, my;3-4 fellow;8-11 ask n\u00f6t \u4e2d;");
}

TEST(subtitles_are_not_empty) {
    for (int highlight = 0; highlight < 2; highlight++) {
        const llm_word word[] = {{0, 1, "\n", 1, 1}, {1, 2, " ", 1, 1}, {2, 3, " so", 3, 1}};
        lines l = {.most_words = 1, .highlight = highlight, .put = put};
        got[0] = 0;
        lines_add(&l, &(llm_speech){.word = word, .n_words = 3});
        lines_end(&l);
        CHECK(!l.failed);
        CHECK_STR(got, highlight ? "2-3 <u>so</u>;" : "2-3 so;");
    }
}

TEST(lines_have_a_width) {
    check((lines){.most_width = 8}, "0-4 And so,\nmy\nfellow;8-11 ask n\u00f6t\n\u4e2d;");
    check((lines){.most_width = 9}, "0-4 And so,\nmy fellow;8-11 ask n\u00f6t \u4e2d;");
    check((lines){.most_width = 1}, "0-4 And\nso,\nmy\nfellow;8-11 ask\nn\u00f6t\n\u4e2d;");
}

TEST(subtitles_have_lines) {
    check((lines){.most_width = 8, .most_lines = 2},
          "0-3 And so,\nmy;3-4 fellow;8-11 ask n\u00f6t\n\u4e2d;");
    check((lines){.most_width = 100, .most_lines = 1},
          "0-4 And so, my fellow;8-11 ask n\u00f6t \u4e2d;");
}

TEST(the_word_that_is_said_is_underlined) {
    check((lines){.most_words = 2, .highlight = true},
          "0-1 <u>And</u> so,;1-2 And <u>so,</u>;2-3 <u>my</u> fellow;3-4 my <u>fellow</u>;"
          "8-9 <u>ask</u> n\u00f6t;9-10 ask <u>n\u00f6t</u>;10-11 <u>\u4e2d</u>;");
    check((lines){.most_width = 8, .most_lines = 9, .highlight = true},
          "0-1 <u>And</u> so,\nmy\nfellow;1-2 And <u>so,</u>\nmy\nfellow;2-3 And "
          "so,\n<u>my</u>\nfellow;"
          "3-4 And so,\nmy\n<u>fellow</u>;8-9 <u>ask</u> n\u00f6t\n\u4e2d;9-10 ask "
          "<u>n\u00f6t</u>\n\u4e2d;10-11 ask n\u00f6t\n<u>\u4e2d</u>;");
}
