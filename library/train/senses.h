/* What a model reads besides its tokens: pictures and sounds that stand in its texts, a sound whose speech it writes down, or a text that it answers
 * (an encoder and a decoder). Files are read by the layer above (library/training_senses.c). */
#ifndef LIBRARY_TRAIN_SENSES_H
#define LIBRARY_TRAIN_SENSES_H

#include "llm/internal/tokenizer.h"
#include "noticed.h"
#include "speech/speech_tokens.h"

enum { TRAIN_MARK = 96 }; /* bytes of a mark, with its NUL; at least those of LLM_IMAGE_MARK */

/* A part of a file that was shown. */
typedef struct train_shown_part {
    int64_t n, n_made; /* rows of the input, and those that stand for tokens */
    int32_t first;     /* the id of the first of these; the others follow downwards */
} train_shown_part;

typedef struct train_shown {
    uint8_t id[LLM_MEDIA_ID];
    char mark[TRAIN_MARK];  /* what stands for it in a text; empty: of speech */
    train_shown_part *part; /* [n_parts], to be freed by ggl_free */
    int64_t n_parts;
} train_shown;

typedef struct train_senses {
    bool pictures, sounds; /* stand in texts, where `marks` names them */
    const llm_marks *marks;
    const speech_tokens *speech; /* the model writes down speech; NULL: it does not */
    bool text;                   /* it answers a text */
    int32_t start;               /* the token with which these answers begin */
    /* Reads a file, and lets texts name it until let_go. *out is to be freed in any case. */
    ggl_status (*show)(void *ctx, const llm_noticed_file *f, train_shown *out, ggl_error *err);
    void (*let_go)(void *ctx, const train_shown *shown);
    /* Reads it again, and prepares its parts; forget in any case. */
    ggl_status (*read)(void *ctx, const llm_noticed_file *f, llm_noticed *out, ggl_error *err);
    ggl_status (*part)(void *ctx, llm_noticed *x, int64_t k, llm_noticed_part *out, ggl_error *err);
    void (*forget)(void *ctx, llm_noticed *x);
    void *ctx;
} train_senses;

/* True if each sequence of tokens has one reading. */
static inline bool train_reads(const train_senses *s) {
    return s && (s->speech || s->text);
}

#endif
