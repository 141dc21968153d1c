/* BERT's WordPiece, as models/text/tokenizer_wordpiece.c: a word becomes the longest piece that begins words, and then the longest ones that
 * continue them; or the unknown token. */
#include "encoder.h"
#include "../models/text/bert_words.h"

/* Returns false if the word does not become pieces. These are appended only if `append`, which fails without room; so a word that needs
 * the unknown token needs room for that alone. */
static bool match_word(small_encoder *e, const char *s, size_t n, bool append) {
    for (size_t i = 0, length; i < n; i += length) {
        const small_keys *k = i == 0 ? &e->w->starts : &e->w->pieces;
        const int32_t id = small_longest(e->w, k, s + i, n - i, 0, &length);
        if (id < 0 || (append && !small_append(e, id)))
            return false;
    }
    return true;
}

static bool take_word(void *context, const char *s, size_t n, bool is_long) {
    small_encoder *e = context;
    return !is_long && match_word(e, s, n, false) ? match_word(e, s, n, true)
                                                  : small_append(e, e->w->unknown);
}

bool small_encode_wordpiece(small_encoder *e, const char *text, size_t n) {
    bert_words *words = ggl_calloc(1, sizeof *words);
    if (!words)
        return false;
    words->fold = (folding){e->w->strip, e->w->lower};
    words->word = take_word;
    words->context = e;
    return llm_bert_words(words, text, n);
}
