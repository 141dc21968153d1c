/* Forms of Unicode: NFC, NFD, NFKC and NFKD (UAX 15). */
#ifndef LLM_FORMS_H
#define LLM_FORMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct unicode_part;
/* Takes characters of a text, and puts those of its form. From 0x110000 on, c is a byte that is no character, which stays. */
typedef struct unicode_former {
    bool compatible, composes;
    /* zero: as it was given for the character that this one is made of. False: the former stops. */
    bool (*put)(void *ctx, uint32_t c, bool zero);
    void *ctx;
    struct unicode_part *run; /* a character that combines with none, and those behind it that do */
    size_t n, cap;
} unicode_former;
bool llm_form_add(unicode_former *f, uint32_t c,
                  bool zero); /* false: out of memory, or put failed */
/* Puts what is left, and frees the former's memory. */
bool llm_form_end(unicode_former *f);

/* Writes a text in NFC to *out, which the caller frees. False: out of memory. */
bool llm_compose_text(const char *text, size_t n, char **out, size_t *n_out);

#endif
