/* Runs plans with their tokens, which plans.h lists as PLAN(name, tokens..), and prints the bits of all logits: a line for each token. On a
 * board there is no stdio. */
#include <string.h>

#include "small.h"

#ifdef BOARD
#include "board.h"
#else
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

static void run(const char *name, const small_plan *plan, const int32_t *token, int32_t n) {
    enum { AT_ONCE = 64 };
    board_say(name);
    board_say("\n");
    small_begin(plan, ram);
    for (int32_t i = 0; i < n; i++) {
        const float *logits = small_step(plan, ram, token[i], i);
        char line[8 * AT_ONCE + 1];
        for (int k = 0; k < plan->n_vocab; k++) {
            say_bits(logits[k], line + 8 * (k % AT_ONCE));
            if (k % AT_ONCE == AT_ONCE - 1 || k + 1 == plan->n_vocab)
                board_say(line);
        }
        board_say("\n");
    }
}

int main(void) {
#define PLAN(name, ...)                                                                            \
    {                                                                                              \
        static const int32_t token[] = {__VA_ARGS__};                                              \
        run(#name, &name, token, (int32_t)(sizeof token / sizeof *token));                         \
    }
#include "plans.h"
    return 0;
}
