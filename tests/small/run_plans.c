/* Runs plans with their tokens, which plans.h lists as PLAN(name, NAME, tokens..), and prints the bits of all logits: a line for each token. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "small.h"

#define PLAN(name, ...) extern const small_plan name;
#include "plans.h"
#undef PLAN

static SMALL_ALIGNED char ram[MOST_RAM];

static void run(const char *name, const small_plan *plan, const int32_t *token, int32_t n) {
    printf("%s\n", name);
    small_begin(plan, ram);
    for (int32_t i = 0; i < n; i++) {
        const float *logits = small_step(plan, ram, token[i], i);
        for (int k = 0; k < plan->n_vocab; k++) {
            uint32_t u;
            memcpy(&u, logits + k, sizeof u);
            printf("%08lx", (unsigned long)u);
        }
        printf("\n");
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
