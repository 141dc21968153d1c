/* SentencePiece's compiled normalization, tokenizer.ggml.precompiled_charsmap: strings of up to a
 * few characters and what each is replaced by.
 *
 *     | u32 n | trie: n / 4 units of 32 bits | replacements, each with a NUL at its end |
 *
 * The trie is a double array (S. Yata's darts-clone). A unit holds, from its lowest bit on: 8 bits
 * with the byte that leads to it; one that says that a string ends there; one that scales the
 * offset by 256; 21 bits of offset. The child of unit u by byte b is u ^ offset(u) ^ b, if the byte
 * in it is b. Where a string ends, unit u ^ offset(u) is its value: bit 31, and a place among the
 * replacements. */
#ifndef LLM_CHARSMAP_H
#define LLM_CHARSMAP_H

#include "ggl/alloc.h"
#include "ggl/gguf.h"

/* A replacement has at most so many bytes for each byte of its string, so that a small text does not
 * become a huge one; NFKC needs 11. Strings have at most CHARSMAP_LONGEST bytes (SentencePiece's own
 * some 20), as in a damaged file the units may lead in a circle. */
enum { CHARSMAP_RATIO = 16, CHARSMAP_LONGEST = 256 };

typedef struct charsmap {
    uint32_t *unit; /* [n_unit] */
    size_t n_unit, n_text;
    char *text; /* [n_text], the last one is NUL */
} charsmap;

/* Reads the key, if the file has it, into the arena; without it nothing is replaced. */
GGL_NODISCARD ggl_status llm_charsmap_read(charsmap *m, ggl_arena *arena, const ggl_gguf *file,
                                           ggl_error *err);
/* *length: bytes of the longest string that s[0..n) begins with, and what replaces it; 0: there is
 * none. GGL_FORMAT: the string or the replacement is longer than the above. */
GGL_NODISCARD ggl_status llm_charsmap_find(const charsmap *m, const char *s, size_t n,
                                           size_t *length, ggl_str *replacement, ggl_error *err);

#endif
