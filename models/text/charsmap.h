/* SentencePiece's compiled normalization, tokenizer.ggml.precompiled_charsmap: short strings and
 * their replacements.
 *
 *     | u32 n | trie: n / 4 units of 32 bits | replacements, each NUL-terminated |
 *
 * The trie is a double array (S. Yata's darts-clone). A unit has, from its lowest bit up: 8
 * bits, the byte that leads to it; 1 bit, a string ends here; 1 bit, the offset is scaled by
 * 256; 21 bits of offset. The child of unit u for byte b is unit u ^ offset(u) ^ b, if that
 * unit's byte is b. If a string ends at u, unit u ^ offset(u) is its value: bit 31, and an
 * offset into the replacements. */
#ifndef LLM_CHARSMAP_H
#define LLM_CHARSMAP_H

#include "ggl/internal/alloc.h"
#include "ggl/gguf.h"

/* CHARSMAP_RATIO: most bytes of a replacement per byte of its string, so that a small text
 * cannot become huge; NFKC needs 11. CHARSMAP_LONGEST: most bytes of a string, because the units
 * of a damaged file may form a cycle; SentencePiece's own have about 20. */
enum { CHARSMAP_RATIO = 16, CHARSMAP_LONGEST = 256 };

typedef struct charsmap {
    const char *name; /* for messages */
    uint32_t *unit;   /* [n_unit] */
    size_t n_unit, n_text;
    const char *text; /* [n_text], ends with NUL */
} charsmap;

/* Reads the key into the arena. Without it the map is empty. */
GGL_NODISCARD ggl_status llm_charsmap_read(charsmap *m, ggl_arena *arena, const ggl_gguf *file,
                                           ggl_error *err);
/* Reads n > 0 bytes, which must stay where they are, into the arena. name: for messages.
 * GGL_FORMAT: they do not hold a trie and replacements; GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_charsmap_parse(charsmap *m, ggl_arena *arena, const char *name,
                                            const void *data, size_t n, ggl_error *err);
/* Checks all strings of the map. *growth (may be NULL): the most bytes of a replacement per byte of its string, rounded up. GGL_FORMAT: a
 * string exceeds the limits above, or leads to no replacement; GGL_LIMIT: there are more than any text needs. */
GGL_NODISCARD ggl_status llm_charsmap_check(const charsmap *m, size_t *growth, ggl_error *err);
/* Finds the longest string of the map at the start of s[0..n): *length, 0 if none, and its
 * replacement. GGL_FORMAT: the string or replacement exceeds the limits above. */
GGL_NODISCARD ggl_status llm_charsmap_find(const charsmap *m, const char *s, size_t n,
                                           size_t *length, ggl_str *replacement, ggl_error *err);
/* Finds the shortest string of the map at the start of s[0..n); false: there is none. */
bool llm_charsmap_find_shortest(const charsmap *m, const char *s, size_t n, ggl_str *replacement);

#endif
