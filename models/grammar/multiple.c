#include "multiple.h"

/* modulus / gcd(modulus, 10^n): what remains to be divided if n zeros follow. */
static int32_t without_tens(int32_t modulus, int32_t n) {
    int32_t twos = n, fives = n;
    for (; twos > 0 && modulus % 2 == 0; twos--)
        modulus /= 2;
    for (; fives > 0 && modulus % 5 == 0; fives--)
        modulus /= 5;
    return modulus;
}

int32_t llm_multiple_len(const llm_multiple *m) {
    const bool is_whole = m->places >= 0;
    const int32_t left = is_whole ? m->places : -1 - m->places;
    int64_t ten = 1;
    for (int32_t n = 0; is_whole || n <= left; n++, ten *= 10) {
        const int32_t q = without_tens(m->modulus, is_whole ? left : left - n);
        const int64_t missing = (q - m->rest * ten % q) % q;
        if (missing < ten) /* it has at most n digits; at the latest where ten >= q */
            return n;
    }
    return LLM_MULTIPLE_DEAD;
}

bool llm_multiple_after(const llm_multiple *m, uint32_t c, llm_multiple *next) {
    *next = *m;
    if (c == '.' && m->places >= 0)
        next->places = -1 - m->places;
    else if (c >= '0' && c <= '9' && m->places != -1)
        next->rest = (m->rest * 10 + (int32_t)(c - '0')) % m->modulus;
    else if (c != '0')
        return false;
    if (c != '.' && m->places < -1)
        next->places++;
    return llm_multiple_len(next) != LLM_MULTIPLE_DEAD;
}
