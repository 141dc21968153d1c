/* Texts that are computed together: their tokens, and the texts as they were read. */
#ifndef TOOLS_EMBED_BATCH_H
#define TOOLS_EMBED_BATCH_H

#include "llm/internal/tokenizer.h"
#include "llm/llm.h"
#include "options.h"
#include "source.h"

/* What is put before a text. */
typedef struct prompt {
    char *s; /* of llm_embed_prompt; NULL: nothing */
    size_t n;
} prompt;

typedef struct batch_text {
    size_t at;           /* its number, from 0 on */
    size_t begin, n;     /* tokens */
    size_t text, n_text; /* bytes */
} batch_text;

/* What the model made of a text: one row of n numbers, or one for each token. Valid during the call. */
typedef struct result {
    size_t at;
    const char *text;
    size_t n_text;
    size_t n_rows, n;
    const float *row;
} result;

/* Takes the results in order. A failure ends the run with it. */
typedef ggl_status result_fn(void *user, const result *r, ggl_error *err);

typedef struct batch {
    llm_context *ctx;
    const llm_tokenizer *tokenizer; /* NULL: there is none */
    const options *o;
    bool is_query;        /* what waits are queries */
    const prompt *before; /* of what waits: the same for all */
    size_t n_copies;      /* of the model */
    batch_text *of;
    int32_t *id, *type; /* type NULL: they are no pairs */
    char *text;
    size_t n, n_id, n_text, cap, cap_id, cap_type, cap_text;
} batch;

/* All is borrowed. n_copies: of the model, which compute together what waits. */
void batch_init(batch *b, llm_context *ctx, const llm_tokenizer *t, const options *o, int n_copies);
/* Adds a text, after its prompt, which lasts until batch_run, and is that of all that wait. name: how messages call it. GGL_USAGE: it has no tokens; GGL_LIMIT: it is too long. */
ggl_status batch_add(batch *b, size_t at, const source_text *t, const prompt *before,
                     const char *name, ggl_error *err);
/* True if so many tokens wait that more make nothing faster. */
bool batch_is_full(const batch *b);
/* Computes what waits, and empties it. task: as of llm_embed_params. Statuses of llm_embed_tokens, and of `each`. */
ggl_status batch_run(batch *b, const char *task, result_fn *each, void *user, ggl_error *err);
void batch_fini(batch *b);

#endif
