/* llm-arch verify --gradients. */
#ifndef TOOLS_ARCH_GRADIENTS_H
#define TOOLS_ARCH_GRADIENTS_H

#include <stdint.h>

/* Compares so many gradients of the model with differences, and prints those that are off most. Returns the exit code: 1 if one is off by
 * more than rounding can explain. */
int arch_verify_gradients(const char *tool, const char *model, const char *arch, int64_t n_numbers,
                          int64_t n_tokens, int64_t n_worst);

#endif
