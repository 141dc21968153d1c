/* What a model reads besides its tokens, of files that are read, but of which nothing is run: pictures and sounds that stand in its texts, a sound whose speech it
 * writes down, or a text that it answers (an encoder and a decoder). */
#ifndef LIBRARY_FILE_SENSES_H
#define LIBRARY_FILE_SENSES_H

#include "llm/internal/tokenizer.h"
#include "llm/llm.h"
#include "loading.h"
#include "noticed.h"
#include "speech/speech_tokens.h"

/* A part of a file that was shown. */
typedef struct llm_shown_part {
    int64_t n, n_made; /* rows of the input, and those that stand for tokens */
    int32_t first;     /* the id of the first of these; the others follow downwards */
} llm_shown_part;

typedef struct llm_shown_file {
    uint8_t id[LLM_MEDIA_ID];
    char mark[LLM_IMAGE_MARK]; /* what stands for it in a text; empty: of speech */
    llm_shown_part *part;      /* [n_parts], to be freed by ggl_free */
    int64_t n_parts;
} llm_shown_file;

typedef struct llm_file_senses {
    bool pictures, sounds; /* stand in texts, where `marks` names them */
    const llm_marks *marks;
    const llm_model *eye;        /* that makes rows of them; NULL: none */
    const speech_tokens *speech; /* the model writes down speech; NULL: it does not */
    bool text;                   /* it answers a text */
    int32_t start;               /* the token with which these answers begin */
    /* Reads a file, and lets texts name it until let_go. *out is to be freed in any case. */
    ggl_status (*show)(void *ctx, const llm_noticed_file *f, llm_shown_file *out, ggl_error *err);
    void (*let_go)(void *ctx, const llm_shown_file *shown);
    /* Reads it again, and prepares its parts; forget in any case. */
    ggl_status (*read)(void *ctx, const llm_noticed_file *f, llm_noticed *out, ggl_error *err);
    ggl_status (*part)(void *ctx, llm_noticed *x, int64_t k, llm_noticed_part *out, ggl_error *err);
    void (*forget)(void *ctx, llm_noticed *x);
    void *ctx;
} llm_file_senses;

/* True if each sequence of tokens has one reading. */
static inline bool llm_file_senses_read_whole(const llm_file_senses *s) {
    return s && (s->speech || s->text);
}

/* Opens an eye or an ear for the model of the context (mmproj, NULL: none), or finds out how the model itself reads sounds or texts. *out is NULL if its tokens
 * read nothing. `of` has what llm_load_named needs besides the path. n_ctx: the most tokens of a text. GGL_UNSUPPORTED, GGL_FORMAT: such a model cannot have, or be, one; as
 * llm_open. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status llm_file_senses_open(const llm_file_senses **out,
                                                               llm_context *c, const char *mmproj,
                                                               const llm_loading *of, int64_t n_ctx,
                                                               ggl_error *err);
/* Before the context is closed. NULL is fine. */
GGL_INTERNAL_API void llm_file_senses_close(const llm_file_senses *s);

#endif
