#include "bert_words.h"

#include "ggl/internal/steps.h"

/* Hands out the current word, if any, and empties it. */
static bool end_word(bert_words *w) {
    const size_t n = w->n;
    const bool is_long = w->n_character > BERT_WORD_CHARACTERS;
    w->n = w->n_character = 0;
    return n == 0 || w->word(w->context, w->s, n, is_long);
}

/* Appends a character to the word, up to BERT_WORD_CHARACTERS. */
static void add_to_word(bert_words *w, uint32_t c) {
    if (w->n_character++ < BERT_WORD_CHARACTERS)
        w->n += llm_unicode_encode(c, w->s + w->n);
}

/* Makes a character a word of its own. */
static bool add_alone(bert_words *w, uint32_t c) {
    if (!end_word(w))
        return false;
    add_to_word(w, c);
    return end_word(w);
}

/* Adds a code point after folding. */
static bool add_part(bert_words *w, uint32_t c) {
    if (llm_unicode_properties(c) & UNICODE_WHITE)
        return end_word(w);
    if (llm_unicode_step(c) & STEP_PUNCTUATION)
        return add_alone(w, c);
    add_to_word(w, c);
    return true;
}

/* True for the blocks in BERT's own code, which omits U+2B820 to U+2B91F. */
static bool is_chinese(uint32_t c) {
    static const uint32_t blocks[][2] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},
                                         {0x20000, 0x2a6df}, {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f},
                                         {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        if (c >= blocks[i][0] && c <= blocks[i][1])
            return true;
    return false;
}

/* True for control, format and private-use characters, as far as the tables of the library that defines BERT's rules know them. */
static bool is_dropped(uint32_t c) {
    if (c == '\t' || c == '\n' || c == '\r')
        return false;
    return c == 0 || c == 0xfffd || (llm_unicode_step(c) & STEP_OTHER);
}

static bool add_character(bert_words *w, uint32_t c) {
    uint32_t part[FOLD_MOST_PARTS];
    const bool alone = is_chinese(c);
    GGL_STEPS(1);
    if (is_dropped(c))
        return true;
    const int n = llm_fold_character(&w->fold, c, part);
    if (alone && !end_word(w))
        return false;
    for (int i = 0; i < n; i++)
        if (!add_part(w, part[i]))
            return false;
    return !alone || end_word(w);
}

bool llm_bert_words(bert_words *w, const char *text, size_t n) {
    for (size_t i = 0, len; i<n; i += len> 0 ? len : 1) {
        len = ggl_utf8_length(text + i, n - i);
        if (len > 0 && !add_character(w, llm_unicode_decode(text + i, len)))
            return false;
    }
    return end_word(w);
}
