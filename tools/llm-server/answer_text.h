/* Makes the parts of an answer from the tokens of a choice: ends the text at stop strings, separates reasoning and
 * calls of tools from content, and passes on whole characters.
 *
 *     answer_text t = {0};
 *     answer_text_begin(&t, &params);
 *     while (a token is drawn) {
 *         if (answer_text_token(&t, &token, &err) != GGL_OK) ...    // calls params.take for each part
 *         if (answer_text_found(&t) >= 0)
 *             break;                                                // a stop string
 *     }
 *     if (answer_text_end(&t, false, &err) != GGL_OK) ...
 *     answer_text_fini(&t);
 *
 * Joined, the parts do not depend on how the text was cut into tokens. */
#ifndef LLM_SERVER_ANSWER_TEXT_H
#define LLM_SERVER_ANSWER_TEXT_H

#include "llm/internal/calls.h"
#include "dialect.h"
#include "llm/internal/tokenizer.h"
#include "stopped_text.h"

typedef struct answer_text_params {
    const llm_tokenizer *tokenizer; /* borrowed until answer_text_fini, as are all pointers here */
    llm_calls_tokens marks; /* control tokens that are not text may still be in a stop string */
    llm_stop *stops;        /* at the beginning of a text; NULL: none */
    bool stop_in_text;
    llm_calls *calls; /* at the beginning of an answer; NULL: all is content */
    bool has_tools;   /* calls become parts, else they are content (llm_calls_params.no_calls) */
    bool begins_text; /* the answer is a text of its own, and does not continue the prompt */
    bool keeps_tokens;
    size_t n_top; /* keeps_tokens: log-probabilities for each token at most */
    /* Takes a part, which is valid during the call. The id of a call may be empty. False: out of memory. */
    bool (*take)(void *ctx, const answer_part *part);
    void *ctx;
} answer_text_params;

/* Bytes that grow. */
typedef struct answer_bytes {
    char *s;
    size_t n, cap;
} answer_bytes;

/* Tokens whose text was not given out yet. */
typedef struct waiting_tokens {
    answer_token *token; /* [n]; `top` of each is set when it is given out */
    llm_logprob *top;    /* [n * n_top] */
    size_t *begin;       /* [n]: where its text begins in the text of all tokens */
    size_t n, cap, cap_top, cap_begin;
} waiting_tokens;

typedef struct answer_text {
    answer_text_params p;
    stopped_text
        text; /* holds back what may be a stop string; bytes of control tokens that are not shown are hidden in it */
    answer_bytes raw, clean; /* the end of `raw` may be a part of a character */
    size_t n_read;           /* bytes of all tokens */
    waiting_tokens tokens;
    bool has_begun;      /* of llm_token_next_text */
    bool has_part[2];    /* of PART_CONTENT, PART_REASONING: one was given */
    bool is_unfinished;  /* the last call's arguments were not: llm_calls_part.is_unfinished */
    int n_calls;         /* calls that were begun */
    bool call_is_open;   /* the last of them goes on */
    int n_called;        /* calls that were begun and have ended, or are passed over */
    size_t n_arguments;  /* bytes of the open call that were given out */
    int64_t n_reasoning; /* tokens that ended within reasoning */
} answer_text;

/* Begins a text. *t is zeroed before the first one; later ones use its memory again. */
void answer_text_begin(answer_text *t, const answer_text_params *p);
void answer_text_fini(answer_text *t);

/* Adds a token that was drawn; token->text is not used. Nothing is added after a stop string. GGL_NOMEM, and
 * statuses of llm_calls_add. */
GGL_NODISCARD ggl_status answer_text_token(answer_text *t, const answer_token *token,
                                           ggl_error *err);
/* Ends the text: gives out what was held back. is_cut: it did not end by itself; if there are tools, a call that
 * is not complete and the beginning of a mark are left out (llm_calls_cut). */
GGL_NODISCARD ggl_status answer_text_end(answer_text *t, bool is_cut, ggl_error *err);
/* True if nothing of what may follow is given out, as the only call that is wanted is complete. */
bool answer_text_is_over(const answer_text *t);
/* True if the text has calls, and the last one is complete. */
bool answer_text_calls(const answer_text *t);
/* The index of the stop string that was found; -1: none. */
int32_t answer_text_found(const answer_text *t);

/* Appends n bytes and keeps a NUL after them. False: out of memory. */
bool answer_bytes_add(answer_bytes *b, const char *s, size_t n);

#endif
