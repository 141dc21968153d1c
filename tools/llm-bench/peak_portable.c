/* Measures reading from memory only: without vector instructions the limit of a machine cannot
 * be found out. */
#include <string.h>

#include "limits.h"

static volatile uint64_t kept; /* what is read must be used */

static void read_words(const void *p, size_t size) {
    const char *s = p;
    uint64_t sum[8] = {0}, word[8];
    for (size_t i = 0; i < size; i += sizeof word) {
        memcpy(word, s + i, sizeof word);
        for (int k = 0; k < 8; k++)
            sum[k] ^= word[k];
    }
    for (int k = 0; k < 8; k++)
        kept ^= sum[k];
}

const bench_peak bench_peak_portable = {.name = "portable", .read = read_words};
