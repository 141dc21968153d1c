/* Graphs: the bytes are the choices of the generator of tests/random. Each is built, planned and
 * run in all ways, and held against the judge; what differs is a crash. The first eight bytes are
 * the seed of all numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "gen.h"
#include "run.h"

enum { SEED = sizeof(uint64_t), SEEDS = 16, LENGTH = 600 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static r_bench bench;
    static bool open;
    static r_program p;
    r_result result;
    ggl_error err = {0};
    uint64_t seed;
    if (size < SEED)
        return 0;
    if (!open && !r_bench_open(&bench, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        abort();
    }
    open = true;
    memcpy(&seed, data, SEED);
    r_source choices = {.bytes = data + SEED, .n_bytes = size - SEED};
    r_generate(&p, seed, &choices);
    if (!r_check(&bench, &p, NULL, &result)) {
        r_print(&p, stderr);
        fprintf(stderr, "%s\n", result.text);
        abort();
    }
    return 0;
}

bool fuzz_seed(int k, uint8_t **data, size_t *size) {
    if (k >= SEEDS || !(*data = malloc(LENGTH)))
        return false;
    for (int i = 0; i < LENGTH; i++)
        (*data)[i] = (uint8_t)(r_mix((uint64_t)k, (uint64_t)i) >> 32);
    *size = LENGTH;
    return true;
}
