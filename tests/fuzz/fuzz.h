/* The functions of a fuzz target. The first is libFuzzer's interface. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Reads `size` bytes as a file of the format under test. Always returns 0; a bug is a crash. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The k-th of some valid files to start from, for free(); false past the last. */
bool fuzz_seed(int k, uint8_t **data, size_t *size);

/* A bug, if it is false. */
static inline void require(bool ok) {
    if (!ok)
        abort();
}

#endif
