/* Amounts as people read them: "4.68 GB", "3 min 20 s". */
#ifndef COMMON_AMOUNTS_H
#define COMMON_AMOUNTS_H

#include <stddef.h>
#include <stdint.h>

enum { AMOUNT_TEXT = 32 }; /* bytes that are always enough */

/* Returns what a noun has after the number n: "" after 1, else "s". */
const char *llm_amount_s(int64_t n);
/* Writes a number of bytes, in units of 1000: "4.68 GB", "12 bytes". Returns buf. */
const char *llm_amount_bytes(char buf[AMOUNT_TEXT], uint64_t n);
/* Writes a time: "1 h 05 min", "3 min 20 s", "12 s". Returns buf. */
const char *llm_amount_time(char buf[AMOUNT_TEXT], double seconds);

#endif
