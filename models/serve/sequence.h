/* A sequence of tokens in a slot of a session, with the sampler, matcher and guesser for its next token.
 * The engine runs sequences, many in one batch.
 *
 * A turn goes like this, with `most` guesses at most:
 *
 *     llm_seq_go_back(q, q->n - 1, &err);    // takes wrong guesses out of the slot
 *     llm_seq_guess(q, most, &err);
 *     n = llm_seq_fill(q, batch, most);      // tokens to run: those that the slot lacks, then the guesses
 *     ... run them, with logits for the last token of the sequence and for each guess ...
 *     llm_seq_ran(q);
 *     while (q->at >= 0)                     // the row of logits to draw from
 *         llm_seq_draw(q, row[q->at], &id, &err); */
#ifndef LLM_SEQUENCE_H
#define LLM_SEQUENCE_H

#include "llm/internal/grammar.h"
#include "llm/internal/guesser.h"
#include "llm/internal/sampler.h"
#include "llm/internal/session.h"

/* States of the slot at an earlier token, for models whose states cannot be cut back. */
typedef struct seq_snapshot {
    void *data; /* NULL: none */
    size_t size;
    int64_t n; /* tokens of the sequence at which it was made */
} seq_snapshot;

typedef struct seq {
    llm_session *session;
    int slot;
    bool
        shifts; /* a full context loses old tokens; otherwise the matcher's text must end in time */
    bool is_unsteered; /* the matcher gets no budget: its text may be cut off */
    int64_t n_ctx, n_vocab;
    llm_sampler *sampler;
    /* The slot holds the first n_kept tokens. Wrong guesses may follow them until llm_seq_go_back. */
    int32_t *token; /* [n]; belongs to the owner, who makes room for one more than will run */
    int64_t n, n_kept;
    /* Of a model that reads a text before it writes: that text, [n_text], of the owner. NULL: the session alone knows it. */
    const int32_t *text;
    int64_t n_text;
    const float *share; /* llm_batch.share of its tokens, of the owner; NULL: llm_session_shares */
    seq_snapshot snapshot; /* before the last guesses */
    llm_guesser guesser;   /* .guess NULL if none */
    int64_t n_guess_max;   /* no more than the slot can go back */
    int64_t n_ahead_max;   /* the most of guesses, and of tokens that the matcher forces */
    int32_t *guess;        /* [n_ahead_max]; the last batch ran the first n_guess */
    int64_t n_guess;
    bool is_forced; /* they are not guessed: the matcher allows no others */
    int64_t
        n_told; /* tokens at the start that the guesser has seen and that did not change since */
    int64_t at; /* the row of the next token to draw; -1: a batch has to run first */
    llm_matcher *matcher;     /* NULL: every token is allowed */
    const uint32_t *writable; /* llm_session_writable */
    uint32_t *allowed;      /* a bit for each token that both allow; made when it is first needed */
    bool has_mask, is_done; /* `allowed` is for the next token, unless the text is done */
    int64_t n_left;         /* tokens that will be drawn at most; less than 0: any number */
    int64_t n_drawn, n_drafts, n_guessed, n_right, n_forced;
    int64_t n_nan; /* NaNs among the last logits; such tokens are never drawn */
} seq;

/* Sets all but tokens and slot: nothing is held. n_guess_max is reduced to what the session allows.
 * guesser: copied; NULL: none. GGL_NOMEM. */
ggl_status llm_seq_init(seq *q, llm_session *s, const llm_guesser *guesser, int64_t n_guess_max,
                        ggl_error *err);
/* Frees everything but the tokens. */
void llm_seq_fini(seq *q);

/* The shares of its tokens; and whether what ran with others, [llm_session_n_tasks], is as if it had run with these. */
static inline const float *llm_seq_shares(const seq *q) {
    return q->share ? q->share : llm_session_shares(q->session);
}
bool llm_seq_has_shares(const seq *q, const float *share);
/* The number of tokens at the start that a[0 .. n_a) and b[0 .. n_b) have in common. */
int64_t llm_seq_common(const int32_t *a, int64_t n_a, const int32_t *b, int64_t n_b);
/* The sampler's history becomes the tokens. */
void llm_seq_tell_sampler(seq *q);
/* From now on draws only tokens that the matcher allows, and has it accept them. n_max: the most tokens that
 * the caller draws (less than 0: any number); the text is then completed within them, and before the
 * context is full if that does not shift, where this is possible (llm_matcher_mask). The matcher is
 * borrowed. m NULL: every token may be drawn. GGL_USAGE: the matcher has no vocabulary, or not that of the model. */
ggl_status llm_seq_constrain(seq *q, llm_matcher *m, int64_t n_max, ggl_error *err);

/* Removes tokens from the slot so that it holds at most the first n. It holds fewer, or none, if the
 * model's caches cannot be cut there. Sets n_kept. The last batch's logits and guesses are forgotten. */
ggl_status llm_seq_go_back(seq *q, int64_t n, ggl_error *err);
/* Drops n_drop tokens behind the first `keep`, at least one, and goes back there. A picture is dropped whole or stays: fewer are kept, and more are
 * dropped, but never the last token. Sets *n_dropped. */
ggl_status llm_seq_shift(seq *q, int64_t keep, int64_t n_drop, int64_t *n_dropped, ggl_error *err);
void llm_seq_drop_snapshot(seq *q);

/* Sets the guesses to at most `most` tokens: those that the matcher forces, or else what the guesser says
 * may follow the sequence. Does nothing unless the slot holds all tokens but the last. */
ggl_status llm_seq_guess(seq *q, int64_t most, ggl_error *err);
/* Writes the first `most` of the tokens that have to run, and returns their number, which is
 * n - n_kept + n_guess at most. */
int64_t llm_seq_fill(const seq *q, int32_t *batch, int64_t most);
/* Call when the batch has run: the next token can be drawn. */
void llm_seq_ran(seq *q);
/* Draws the next token from the row `at` of logits [n_vocab] and appends it. *id is -1, and nothing was
 * drawn, if the text is complete by its grammar. GGL_FORMAT: none of the logits is a finite number; GGL_USAGE: the sampler's biases
 * forbid all tokens that the grammar allows. */
ggl_status llm_seq_draw(seq *q, const float *logits, int32_t *id, ggl_error *err);

#endif
