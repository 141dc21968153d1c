/* Goes on with a text, on a board or here (host.c). Macros choose what: PROMPT, N_TOKENS, TEMPERATURE (0: the best token), TOP_K, SEED.
 *
 *     make -f small/small.mk BOARD=cortex-m4f MODEL=builtin:stories CTX=64 run */
#include <string.h>

#include "board.h"
#include "plan.h"

#ifndef PROMPT
#define PROMPT "Once upon a time"
#endif
#ifndef N_TOKENS
#define N_TOKENS 40
#endif
#ifndef TEMPERATURE
#define TEMPERATURE 0
#endif
#ifndef TOP_K
#define TOP_K 40
#endif
#ifndef SEED
#define SEED 1
#endif

static SMALL_ALIGNED char ram[PLAN_RAM];

static void say_token(int32_t token, bool first) {
    size_t n;
    const char *text = small_text_of(&plan, token, first, &n);
    char piece[2];
    for (; n > 0; text++, n--) {
        piece[0] = *text;
        piece[1] = 0;
        board_say(piece);
    }
}

int main(void) {
    int32_t token[PLAN_N_CTX];
    uint64_t key[TOP_K];
    small_random random;
    /* the model's own memory is free before a text begins */
    const int32_t n_prompt = small_encode(&plan, PROMPT, strlen(PROMPT), SMALL_WITH_ENDS, token,
                                          PLAN_N_CTX, ram, sizeof ram);
    if (n_prompt < 1) {
        board_say("the prompt is empty or too long, or the plan has no tokenizer\n");
        return 1;
    }
    board_say(PROMPT);
    small_seed(&random, SEED);
    small_begin(&plan, ram);
    const float *logits = NULL;
    for (int32_t i = 0; i < n_prompt; i++)
        logits = small_step(&plan, ram, token[i], i);
    for (int32_t i = n_prompt; logits && i < n_prompt + N_TOKENS; i++) {
        const int32_t next =
            small_draw(&random, logits, PLAN_N_VOCAB, TOP_K, (double)(TEMPERATURE), key);
        if (small_is_end(&plan, next))
            break;
        say_token(next, false);
        logits = small_step(&plan, ram, next, i); /* NULL: the context is full */
    }
    board_say("\n");
    return 0;
}
