/* Runs the tokenizers that words.py has compiled, of which words.h lists each as WORDS(name), and compares their tokens with those of the
 * large engine. texts.c has the texts. On a board there is no stdio. */
#include <stdlib.h>
#include <string.h>

#include "run_words.h"
#include "encoder.h"
#include "text/fold.h"

#ifdef BOARD
#include "board.h"
static SMALL_ALIGNED char small_work[1 << 20];
static int32_t token[1 << 14];
#else
#include <stdio.h>
static void board_say(const char *text) {
    fputs(text, stdout);
}
#endif

extern const unsigned char texts[];
extern const uint32_t text_at[];
extern const uint32_t n_texts;

uint64_t ggl_n_steps; /* GGL_COUNT_STEPS */

static int failures;

static void say_number(const char *before, size_t x) {
    char number[24], *at = number + sizeof number;
    *--at = 0;
    do
        *--at = (char)('0' + x % 10);
    while ((x /= 10) > 0);
    board_say(before);
    board_say(at);
}

static void fail(const char *name, const char *what, size_t i) {
    if (failures++ < 20) {
        board_say(name);
        board_say(": ");
        board_say(what);
        say_number(" ", i);
        board_say("\n");
    }
}

/* Encodes with exactly so much room; here each block is one of its own, so that the sanitizer sees a byte too much. */
static int32_t encode(const word_cases *c, const char *s, size_t n, unsigned flags, int32_t n_token,
                      size_t work_size, const int32_t *want) {
#ifndef BOARD
    char *work = aligned_alloc(16, (work_size + 15) / 16 * 16 + (work_size == 0) * 16);
    int32_t *token = malloc((size_t)n_token * sizeof *token + 1);
    char *text = malloc(n + (n == 0));
    memcpy(text, s, n);
    memset(work, 0xa5, work_size);
    s = text;
#else
    char *work = small_work;
#endif
    int32_t got = small_encode(c->plan, s, n, flags, token, n_token, work, work_size);
    if (got > 0 && want && memcmp(token, want, (size_t)got * sizeof *token) != 0)
        got = -3;
#ifndef BOARD
    free(work);
    free(token);
    free(text);
#endif
    return got;
}

static void run_texts(const char *name, const word_cases *c) {
    for (uint32_t i = 0; i < n_texts; i++) {
        const char *s = (const char *)texts + text_at[i];
        const size_t n = text_at[i + 1] - text_at[i], work = c->work_each * n + c->work;
        const int32_t *want = c->want + c->want_at[i];
        const int32_t n_want = c->want_at[i + 1] - c->want_at[i];
#ifdef BOARD
        if (work > sizeof(small_work) || (size_t)n_want > sizeof token / sizeof *token)
            continue; /* some patterns may need more for a long text than the board has */
#endif
        if (encode(c, s, n, i % 4, n_want, work, want) != n_want)
            fail(name, "other tokens than the large engine gives for text", i);
        if (n_want > 0 && encode(c, s, n, i % 4, n_want - 1, work, want) != -1)
            fail(name, "more tokens than there is room for, text", i);
        /* with less memory there is no other result */
        for (size_t less = i % 8 == 0 ? work / 16 * 16 : 0; less > 0;
             less = less * 3 / 4 / 16 * 16) {
            const int32_t got = encode(c, s, n, i % 4, n_want, less, want);
            if (got != n_want && got != -1)
                fail(name, "other tokens with little memory, text", i);
        }
    }
}

/* As hash_of_texts of words.c. */
static uint32_t hash_of_texts(const small_plan *plan, bool first) {
    uint32_t h = 2166136261u;
    for (int32_t id = 0; id < plan->words->n_vocab; id++) {
        size_t n;
        const char *s = small_text_of(plan, id, first, &n);
        h = (h ^ (uint32_t)n) * 16777619u;
        for (size_t i = 0; i < n; i++)
            h = (h ^ (unsigned char)s[i]) * 16777619u;
    }
    return h;
}

#ifdef GGL_COUNT_STEPS
static uint64_t steps_of(const word_cases *c, const char *s, size_t n) {
    const int32_t most = (int32_t)(4 * n + 8);
    ggl_n_steps = 0;
    (void)encode(c, s, n, 0, most, c->work_each * n + c->work, NULL);
    return ggl_n_steps;
}

/* Twice the text takes not much more than twice the steps, whatever it repeats: a part of a text, or the beginning of a token. */
static void run_long_texts(const char *name, const word_cases *c) {
    enum { N = 1 << 12 };
    static char s[2 * N];
    for (uint32_t i = 0; i < n_texts + 64; i++) {
        const char *part = (const char *)texts + text_at[i % n_texts];
        size_t n = text_at[i % n_texts + 1] - text_at[i % n_texts];
        if (i >= n_texts)
            part = small_text_of(
                c->plan, (int32_t)((i - n_texts) * 2654435761u % (uint32_t)c->plan->words->n_vocab),
                false, &n);
        const size_t used = i % 3 == 0 && n > 1 ? n - 1 : i % 3 == 1 && n > 0 ? 1 : n;
        for (size_t k = 0; used > 0 && k < 2 * N; k++)
            s[k] = part[k % used];
        if (used > 0 && i % 13 == 0 &&
            steps_of(c, s, 2 * N) > 2.5 * (double)steps_of(c, s, N) + 1000)
            fail(name, "time is not linear in a text that repeats text", i);
    }
}
#endif

static void run(const char *name, const word_cases *c) {
    run_texts(name, c);
    for (int first = 0; first < 2; first++)
        if (hash_of_texts(c->plan, first) != c->text_hash[first])
            fail(name, "other texts of tokens than the large engine gives", (size_t)first);
#ifdef GGL_COUNT_STEPS
    run_long_texts(name, c);
#endif
    board_say(name);
    say_number(": ", (size_t)c->want_at[n_texts]);
    board_say(" tokens\n");
}

/* Of all characters: white space, for which the runtime has no table, and how much folding adds. */
static void check_characters(void) {
    static const folding all[] = {
        {llm_fold_strip, llm_unicode_lower}, {llm_fold_strip, NULL}, {NULL, llm_unicode_lower}};
    for (uint32_t c = 0; c < 0x110000; c++) {
        char s[4];
        const size_t n = llm_unicode_encode(c, s);
        if (small_is_white(s, n) != ((llm_unicode_properties(c) & UNICODE_WHITE) != 0))
            fail("small_is_white", "is wrong for character", c);
        for (int k = 0; k < 3; k++) {
            uint32_t part[FOLD_MOST_PARTS];
            size_t n_all = 0;
            for (int i = llm_fold_character(&all[k], c, part); i > 0; i--)
                n_all += llm_unicode_encode(part[i - 1], s);
            if (n_all > FOLD_RATIO * n)
                fail("folding", "makes too much of character", c);
        }
    }
}

int main(void) {
    check_characters();
#define WORDS(name)                                                                                \
    {                                                                                              \
        extern const word_cases name;                                                              \
        run(#name, &name);                                                                         \
    }
#include "words.h"
    say_number("failures: ", (size_t)failures);
    board_say("\n");
    return failures ? 1 : 0;
}
