/* The tokens by which a speech model is told what to do and says when something was spoken. They are found by their texts:
 *
 *     <|startoftranscript|> <|en|> <|transcribe|> <|0.00|> And so, my fellow Americans<|2.40|> .. <|endoftext|>
 *
 * A language is a token of two or three letters after <|startoftranscript|>; <|t|> are times in a window, 0.02 s apart. The published
 * program (openai/whisper, tokenizer.py) also says which tokens are never written: those of notes, such as "[" or a note of music. */
#ifndef LIBRARY_SPEECH_TOKENS_H
#define LIBRARY_SPEECH_TOKENS_H

#include "ggl/gguf.h"
#include "llm/internal/token_list.h"
#include "llm/internal/tokenizer.h"

enum { SPEECH_MS_PER_TOKEN = 20 };

/* What the model's file says of its tokens. */
typedef struct speech_keys {
    llm_token_list never; /* the tokens that are never written; n 0: it has no such list */
    int is_multilingual;  /* 1, 0; -1: the file does not say */
} speech_keys;

/* Reads the keys suppress_tokens and multilingual of the family. GGL_FORMAT: a key has another type; GGL_NOMEM. Free with
 * llm_speech_keys_fini in any case. */
GGL_NODISCARD ggl_status llm_speech_keys_read(speech_keys *k, const ggl_gguf *file,
                                              const char *family, ggl_error *err);
void llm_speech_keys_fini(speech_keys *k);

typedef struct speech_tokens {
    const llm_tokenizer *tokenizer; /* borrowed */
    int32_t n_vocab;
    /* Ids; -1: the vocabulary has no such token. All have `end`, `start`, `no_times` and times. */
    int32_t end, start, translate, transcribe, previous, no_speech, no_times;
    int32_t first_time, n_times;         /* ids first_time .. first_time + n_times - 1 */
    int32_t first_language, n_languages; /* n_languages 0: the model knows English alone, and is
                                            neither told a language nor what to do */
    uint8_t *is_never;                   /* [n_vocab]: 1: never written */
    int32_t blank;                       /* " ", which is never the first one; -1: none */
} speech_tokens;

/* Finds the tokens. n_vocab: of the model's logits. writable: llm_session_writable; NULL: no further tokens are never written. keys: its file's; without a list of tokens that are never written, that of the published
 * program counts. Vocabularies of models that know English alone have tokens of languages, too, which those models were never trained with; so if
 * the file does not say which it is, the number of tokens does, as in the published program.
 * GGL_UNSUPPORTED: the vocabulary is not that of a speech model; GGL_NOMEM. Free with llm_speech_tokens_fini in any case. */
GGL_NODISCARD ggl_status llm_speech_tokens_init(speech_tokens *t, const llm_tokenizer *tokenizer,
                                                int32_t n_vocab, const uint32_t *writable,
                                                const speech_keys *keys, ggl_error *err);
void llm_speech_tokens_fini(speech_tokens *t);

/* True for a time, which stands for SPEECH_MS_PER_TOKEN * (id - first_time) milliseconds. */
static inline bool speech_is_time(const speech_tokens *t, int32_t id) {
    return id >= t->first_time && id < t->first_time + t->n_times;
}

/* The code of a language's token, such as "en": *n bytes. */
GGL_INTERNAL_API const char *llm_speech_language_code(const speech_tokens *t, int32_t id,
                                                      size_t *n);
/* The name of the language with this code, such as "english"; NULL: it is not known. */
const char *llm_speech_language_name(const char *code);
/* The code of the language with this code or name, in any case; NULL: it is not known. */
const char *llm_speech_code_of(const char *name, size_t n);
/* Returns the token of a language by its code or its name, in any case; -1: the model has none. */
GGL_INTERNAL_API int32_t llm_speech_find_language(const speech_tokens *t, const char *name);

#endif
