/* Decimal numbers that are multiples of a whole number, digit by digit. The remainder of the digits
 * that were read is a state; expressions over characters and over bytes share its transitions. */
#ifndef LLM_GRAMMAR_MULTIPLE_H
#define LLM_GRAMMAR_MULTIPLE_H

#include <stdbool.h>
#include <stdint.h>

enum { LLM_MULTIPLE_MOST = 2000, LLM_MULTIPLE_DEAD = INT32_MAX };

/* Texts of digits with at most one point. Multiplied by 10^P, where P is the number of places, their
 * value is a multiple of the modulus; so all digits after the first P places are 0. */
typedef struct llm_multiple {
    int32_t modulus; /* 1 to LLM_MULTIPLE_MOST */
    int32_t rest;    /* of the digits that were read, modulo `modulus` */
    int32_t places;  /* P, before the point; after it -1 - the places that are left */
} llm_multiple;

/* Reads one character. Returns false if no text begins like that. */
bool llm_multiple_after(const llm_multiple *m, uint32_t c, llm_multiple *next);
/* The characters of the shortest text; 0: the empty text is one; LLM_MULTIPLE_DEAD if none. */
int32_t llm_multiple_len(const llm_multiple *m);

#endif
