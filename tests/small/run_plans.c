/* Runs plans with their tokens, which plans.h lists as PLAN(name, tokens..), and prints the bits of all logits: a line for each token. On a
 * board there is no stdio. */
#include <string.h>

#include "small.h"

#ifdef BOARD
#include "board.h"
static uint32_t begin, end; /* of the last step, in instructions */
#define COUNT(at) ((at) = board_instructions())
#else
#define COUNT(at)
#include <stdio.h>
static void board_say(const char *text) {
    fputs(text, stdout);
}
#endif

#define PLAN(name, ...) extern const small_plan name;
#include "plans.h"
#undef PLAN

static SMALL_ALIGNED char ram[MOST_RAM];

static void say_bits(float x, char *to) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    for (int k = 0; k < 8; k++)
        to[k] = "0123456789abcdef"[u >> (28 - 4 * k) & 15];
    to[8] = 0;
}

static void say_number(int32_t x) {
    char number[16], *at = number + sizeof number;
    *--at = 0;
    *--at = ' ';
    do
        *--at = (char)('0' + x % 10);
    while ((x /= 10) > 0);
    board_say(at);
}

/* The tokens of all texts, and the texts of these. */
static void run_texts(const small_plan *plan) {
    static const char *const texts[] = {
#define TEXT(text) text,
#include "texts.h"
    };
    static int32_t token[256];
    for (unsigned k = 0; plan->words && k < 4 * (sizeof texts / sizeof *texts); k++) {
        const int32_t n = small_encode(plan, texts[k / 4], strlen(texts[k / 4]), k % 4, token, 256,
                                       ram, sizeof ram);
        for (int32_t i = 0; i < n; i++)
            say_number(token[i]);
        board_say(n < 0 ? "failed|" : "|");
        for (int32_t i = 0; i < n; i++) {
            size_t size;
            const char *text = small_text_of(plan, token[i], false, &size);
            for (size_t j = 0; j < size; j++) {
                const char hex[3] = {"0123456789abcdef"[(unsigned char)text[j] >> 4],
                                     "0123456789abcdef"[(unsigned char)text[j] & 15], 0};
                board_say(hex);
            }
        }
        board_say("\n");
    }
}

static void run(const char *name, const small_plan *plan, const int32_t *token, int32_t n) {
    enum { AT_ONCE = 64 };
    board_say(name);
    board_say("\n");
    small_begin(plan, ram);
    for (int32_t i = 0; i < n; i++) {
        COUNT(begin);
        const float *logits = small_step(plan, ram, token[i], i);
        COUNT(end);
        char line[8 * AT_ONCE + 1];
        for (int k = 0; k < plan->n_vocab; k++) {
            say_bits(logits[k], line + 8 * (k % AT_ONCE));
            if (k % AT_ONCE == AT_ONCE - 1 || k + 1 == plan->n_vocab)
                board_say(line);
        }
        board_say("\n");
    }
    run_texts(plan);
}

int main(void) {
#define PLAN(name, ...)                                                                            \
    {                                                                                              \
        static const int32_t token[] = {__VA_ARGS__};                                              \
        run(#name, &name, token, (int32_t)(sizeof token / sizeof *token));                         \
    }
#include "plans.h"
#ifdef BOARD
    say_number((int32_t)board_stack_used());
    board_say("bytes of stack, ");
    say_number((int32_t)(end - begin));
    board_say("instructions for the last token\n");
#endif
    return 0;
}
