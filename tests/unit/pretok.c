/* The pre-tokenizers: the pattern language case by case, all rows of the table, long runs under each of them. */
#include "steps.h"

#include "text/pretok.h"
#include "text/tokenizer_table.h"

static char out[4096];
static size_t n_words;

static ggl_status collect(void *context, const char *s, size_t n) {
    (void)context;
    size_t used = strlen(out);
    if (used + n + 2 < sizeof out)
        snprintf(out + used, sizeof out - used, "%s%.*s", n_words > 0 ? "|" : "", (int)n, s);
    n_words++;
    return GGL_OK;
}

static ggl_status split(const pretok_program *const *p, int n, const char *text, size_t size) {
    ggl_error err = {0};
    out[0] = '\0';
    n_words = 0;
    ggl_status s = llm_pretok_split(p, n, text, size, collect, NULL, &err);
    CHECK_OK(s, &err);
    return s;
}

/* The words of a text, '|' between them. */
static const char *words(const char *pattern, const char *text) {
    ggl_arena arena = {0};
    const pretok_program *p;
    ggl_error err = {0};
    out[0] = '\0';
    if (CHECK_OK(llm_pretok_compile(&p, &arena, (ggl_str){pattern, strlen(pattern)}, &err), &err))
        split(&p, 1, text, strlen(text));
    ggl_arena_fini(&arena);
    return out;
}

TEST(matching) {
    const struct {
        const char *pattern, *text, *words;
    } cases[] = {
        {"ab", "xabyab", "x|ab|y|ab"},
        {"ab|a|b", "aabb", "a|ab|b"},
        {"a|ab", "ab", "a|b"}, /* the first that fits, not the longest */
        {"a*", "baab", "b|aa|b"},
        {"a?b", "aabb", "a|ab|b"},
        {"a+b", "aaba", "aab|a"},
        {"a{2}", "aaaaa", "aa|aa|a"},
        {"a{2,}b", "abaab", "ab|aab"},
        {"a{1,2}", "aaaaa", "aa|aa|a"},
        {"a*ab", "aaab", "aaab"},
        {"a++ab", "aaab", "aaab"}, /* possessive: never matches, one gap */
        {"x?+xa", "xa", "xa"},
        {"(ab){2}", "ababab", "abab|ab"},
        {"(ab)+c", "ababcab", "ababc|ab"},
        {"(a|bc)*d", "abcad", "abcad"},
        {"(?:a|b){1,3}", "abbab", "abb|ab"},
        {"(a(b)?)?c", "abcacc", "abc|ac|c"},
        {"[a-c]+", "xabcd", "x|abc|d"},
        {"[^a-c]+", "xabcd", "x|abc|d"},
        {"[-a]+", "-a-b", "-a-|b"},
        {"[a\\]]+", "a]b", "a]|b"},
        {"\\x{e9}", "aéb", "a|é|b"},
        {"[à-ÿ]+", "aéüb", "a|éü|b"},
        {"\\p{L}+", "ab1中é2", "ab|1|中é|2"},
        {"\\P{L}+", "ab12c", "ab|12|c"},
        {"[^\\S ]+", "a \t\nb", "a |\t\n|b"},
        {"[\\p{L}&&[^\\p{Han}]]+", "ab中c", "ab|中|c"},
        {"[\\s\\S]{2}", "abc", "ab|c"},
        {"\\d{3}", "1234५६७", "123|4५६|७"},
        {"(?i:'s)", "a'S's'ſx", "a|'S|'s|'ſ|x"},
        {"(?i:[k])x", "KxKx", "Kx|Kx"},
        {"\\s+(?!\\S)|\\s+", "a   b ", "a|  | |b| "},
        {"a(?=b)", "abaab", "a|ba|a|b"},
        {"a(?!b)", "aab", "a|ab"},
        {"a(?=bc|d)", "abad", "ab|a|d"},
        {"(?=(\\d{3})+(?!\\d))", "1234567a12", "1|234|567a12"}, /* cuts, takes nothing */
        {"\\d{1,3}(?=(?:\\d{3})*\\b)", "1234567 12a", "1|234|567| 12a"},
        {"^a", "aab", "a|ab"},
        {"a$", "aba", "ab|a"},
        {"\\s+$", "a b  ", "a b|  "},
        {"\\bb", "ab b_b", "ab |b|_b"},
        {"a", "", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!CHECK_STR(words(cases[i].pattern, cases[i].text), cases[i].words))
            fprintf(stderr, "    pattern %s\n", cases[i].pattern);
}

TEST(stray_bytes) {
    CHECK_STR(words("\\p{L}+", "a\xff\xc3z"), "a|\xff\xc3|z");
    CHECK_STR(words("\\p{S}", "\xff\x80"), "\xff|\x80"); /* as U+FFFD, one by one */
}

TEST(patterns_refused) {
    static const char *const broken[] = {
        "(",           ")",         "a)",      "[",           "[a",           "[b-a]",
        "a{2",         "a{3,2}",    "a{0}",    "*a",          "a**",          "a*?",
        "(a*)*",       "(?=a)+",    "(?<=a)b", "\\p{Greek}",  "\\p{L",        "\\q",
        "\\",          "[[a]]",     "(?i:a",   "a{99999999}", "(ab){1,1000}", "(ab)++",
        "\\x{110000}", "[a&&[^b]]", "."};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        ggl_arena arena = {0};
        const pretok_program *p;
        ggl_error err = {0};
        ggl_status s =
            llm_pretok_compile(&p, &arena, (ggl_str){broken[i], strlen(broken[i])}, &err);
        CHECK_MSG(s == GGL_FORMAT && !p, "'%s' is not refused", broken[i]);
        CHECK_HAS(err.msg, "at byte ");
        ggl_arena_fini(&arena);
    }
    ggl_arena arena = {0};
    const pretok_program *p;
    ggl_error err = {0};
    CHECK_INT(llm_pretok_compile(&p, &arena, (ggl_str){"((ab){64}){64}", 14}, &err), GGL_FORMAT);
    CHECK_HAS(err.msg, "the pattern is too long");
    ggl_arena_fini(&arena);
}

/* Steps for one fill of 16 KiB, and for a tenth of it. */
static void check_fill(const pretok_program *const *p, int n, const char *fill, const char *name) {
    enum { N = 1 << 14 };
    static char text[N + 1];
    char what[120];
    for (size_t i = 0; i < N; i++)
        text[i] = fill[i % strlen(fill)];
    text[N] = 'a';
    ggl_n_steps = 0;
    split(p, n, text, N / 10);
    uint64_t small = ggl_n_steps;
    ggl_n_steps = 0;
    split(p, n, text, N + 1);
    snprintf(what, sizeof what, "%s, '%s' again and again", name, fill);
    test_linear(what, small, ggl_n_steps, 10);
}

static bool same_splits(const table_pre *a, const table_pre *b) {
    bool same = a->n_split == b->n_split;
    for (int i = 0; same && i < a->n_split; i++)
        same = a->split[i].s == b->split[i].s; /* both point into the table */
    return same;
}

/* Every name of the table: it reads, it compiles. Every list of patterns: time is linear in any
 * text, and the words join to the text. */
TEST(the_table) {
    static const char *const fills[] = {
        "a", "A", " ", "1", "\n", "\xcc\x81", "\xe4\xb8\xad", ".", " .", "1a", "'", "<sentinel:1"};
    static table_pre row[256];
    static ggl_str name[256];
    int n_names = 0, n_different = 0;
    for (; n_names < 256 && llm_table_name("pre", n_names, &name[n_names]); n_names++) {
        ggl_error err = {0};
        ggl_arena arena = {0};
        const pretok_program *p[TABLE_MAX_SPLITS];
        const ggl_str *own = &name[n_names];
        table_pre *pre = &row[n_names];
        REQUIRE_OK(llm_table_find_pre(*own, pre, &err), &err);
        CHECK(pre->n_split > 0);
        bool seen = false;
        for (int j = 0; j < n_names; j++) {
            CHECK_MSG(own->n != name[j].n || memcmp(own->s, name[j].s, own->n) != 0,
                      "'%.*s' stands twice", (int)own->n, own->s);
            seen = seen || same_splits(pre, &row[j]);
        }
        for (int i = 0; i < pre->n_split; i++)
            REQUIRE_OK(llm_pretok_compile(&p[i], &arena, pre->split[i], &err), &err);
        char text[64];
        snprintf(text, sizeof text, "%.*s", (int)own->n, own->s);
        for (size_t f = 0; !seen && f < sizeof fills / sizeof *fills; f++)
            check_fill(p, pre->n_split, fills[f], text);
        n_different += !seen;
        ggl_arena_fini(&arena);
    }
    CHECK(n_names > 80 && n_names < 256);
    CHECK(n_different > 20);
    table_model model;
    ggl_str known;
    ggl_error err = {0};
    for (int k = 0; llm_table_name("model", k, &known); k++)
        CHECK_OK(llm_table_find_model(known, &model, &err), &err);
    CHECK(llm_table_name("end", 30, &known));
}

static const char *words_by(const char *pre, const char *text) {
    table_pre row;
    ggl_error err = {0};
    ggl_arena arena = {0};
    const pretok_program *p[TABLE_MAX_SPLITS];
    out[0] = '\0';
    if (!CHECK_OK(llm_table_find_pre((ggl_str){pre, strlen(pre)}, &row, &err), &err))
        return out;
    for (int i = 0; i < row.n_split; i++)
        CHECK_OK(llm_pretok_compile(&p[i], &arena, row.split[i], &err), &err);
    split(p, row.n_split, text, strlen(text));
    ggl_arena_fini(&arena);
    return out;
}

/* Worked by hand from the published patterns. */
TEST(rows_of_the_table) {
    CHECK_STR(words_by("gpt-2", "I'll  go 'LL 1234 é²!?\n\n x"),
              "I|'ll| | go| '|LL| 1234| é|²|!?|\n\n| x");
    CHECK_STR(words_by("llama-bpe", "I'LL go.\n\n 12345 x"), "I|'LL| go|.\n\n| |123|45| x");
    CHECK_STR(words_by("qwen2", "a 123 'b\n"), "a| |1|2|3| '|b|\n");
    CHECK_STR(words_by("qwen35", "a\u0301b"), "a\u0301b");
    CHECK_STR(words_by("qwen2", "a\u0301b"), "a|\u0301b");
    CHECK_STR(words_by("starcoder", "x 123"), "x| |1|2|3");
    CHECK_STR(words_by("falcon", "a+b 12345"), "a|+|b| |123|45");
    CHECK_STR(words_by("default", "a+b 12345"), "a|+|b| |123|45");
    CHECK_STR(words_by("tekken", "helloWorld HTTPServer 12"), "hello|World| HTTPServer| |1|2");
    CHECK_STR(words_by("tekken-num3", "aB 1234567 22"), "a|B| |1|234|567| |22");
    CHECK_STR(words_by("k2-horizon", "a\u200cb\u0301 1234"), "a\u200cb\u0301| |123|4");
    CHECK_STR(words_by("glm5", "I'LL go.\n\n 12345 x"), "I|'LL| go|.\n\n| |123|45| x");
    CHECK_STR(words_by("gpt-4o", "it's HTTPServer 1234"), "it's| HTTPServer| |123|4");
    CHECK_STR(words_by("deepseek-v3", "ab12345 中文c"), "ab|123|45| |中文|c");
    CHECK_STR(words_by("deepseek-coder", "if x1:\n"), "if| x|1|:|\n");
    CHECK_STR(words_by("deepseek-llm", "if x12!  "), "if| x|12|!|  ");
    CHECK_STR(words_by("superbpe", "12345 a 67"), "12|345| a |67");
    CHECK_STR(words_by("afmoe", "12345 a"), "12|345| a");
    CHECK_STR(words_by("kimi-k2", "a中文b iPhone"), "a|中文|b| i|Phone");
    CHECK_STR(words_by("bloom", "a b, c"), "a| b|,| c");
    CHECK_STR(words_by("viking", "a b12"), "a| b|1|2");
    CHECK_STR(words_by("bailingmoe", "a\n\n b12"), "a|\n\n| b|1|2");
    CHECK_STR(words_by("jais-2", "a     b"), "a|    | b");
    CHECK_STR(words_by("exaone-moe", "ab cd1"), "ab cd|1");
    CHECK_STR(words_by("chameleon", "a  b12"), "a|  |b|1|2");
}
