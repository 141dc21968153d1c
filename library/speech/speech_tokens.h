/* The tokens by which a speech model is told what to do and says when something was spoken. They are found by their texts:
 *
 *     <|startoftranscript|> <|en|> <|transcribe|> <|0.00|> And so, my fellow Americans<|2.40|> .. <|endoftext|>
 *
 * A language is a token of two or three letters after <|startoftranscript|>; <|t|> are times in a window, 0.02 s apart. The published
 * program (openai/whisper, tokenizer.py) also says which tokens are never written: those of notes, such as "[" or a note of music. */
#ifndef LIBRARY_SPEECH_TOKENS_H
#define LIBRARY_SPEECH_TOKENS_H

#include "llm/internal/tokenizer.h"

enum { SPEECH_MS_PER_TOKEN = 20 };

typedef struct speech_tokens {
    const llm_tokenizer *tokenizer; /* borrowed */
    int32_t n_vocab;
    /* Ids; -1: the vocabulary has no such token. All have `end`, `start`, `no_times` and times. */
    int32_t end, start, translate, transcribe, previous, no_speech, no_times;
    int32_t first_time, n_times; /* ids first_time .. first_time + n_times - 1 */
    int32_t first_language,
        n_languages;   /* n_languages 0: the model knows one language, and is not told it */
    uint8_t *is_never; /* [n_vocab]: 1: never written */
    int32_t blank;     /* " ", which is never the first one; -1: none */
} speech_tokens;

/* Finds the tokens. n_vocab: of the model's logits. never [n_never]: the file's list of tokens that are never written; NULL: that of the
 * published program. GGL_UNSUPPORTED: the vocabulary is not that of a speech model; GGL_NOMEM. Free with llm_speech_tokens_fini in any case. */
GGL_NODISCARD ggl_status llm_speech_tokens_init(speech_tokens *t, const llm_tokenizer *tokenizer,
                                                int32_t n_vocab, const int32_t *never,
                                                size_t n_never, ggl_error *err);
void llm_speech_tokens_fini(speech_tokens *t);

/* True for a time, which stands for SPEECH_MS_PER_TOKEN * (id - first_time) milliseconds. */
static inline bool speech_is_time(const speech_tokens *t, int32_t id) {
    return id >= t->first_time && id < t->first_time + t->n_times;
}

/* The code of a language's token, such as "en": *n bytes. */
const char *llm_speech_language_code(const speech_tokens *t, int32_t id, size_t *n);
/* The name of the language with this code, such as "english"; NULL: it is not known. */
const char *llm_speech_language_name(const char *code);
/* Returns the token of a language by its code or its name, in any case; -1: the model has none. */
int32_t llm_speech_find_language(const speech_tokens *t, const char *name);

#endif
