/* How probable each of several labels is after a sequence: those that begin alike are a tree, of which each token runs once, many
 * in a batch.
 *
 * If all tokens of one label are the beginning of another, "the text goes on with this label" is true of both at the same time.
 * Then the end of the text after each label counts, too: that any of the tokens that end a text comes next.
 *
 * Threads: as the session. */
#ifndef LLM_LABELS_H
#define LLM_LABELS_H

#include "llm/internal/session.h"
#include "llm/internal/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_labels llm_labels;

typedef struct llm_label {
    const int32_t *id; /* [n], at least one; borrowed during llm_labels_new */
    size_t n;
} llm_label;

/* with_end: the end counts in any case. t tells which tokens end a text; NULL: none do. GGL_USAGE: a label has no token, or one that
 * is out of range, two are the same, or ends count and no token ends a text. */
GGL_NODISCARD ggl_status llm_labels_new(llm_labels **out, const llm_label *label, size_t n,
                                        bool with_end, const llm_tokenizer *t, int32_t n_vocab,
                                        ggl_error *err);
void llm_labels_free(llm_labels *l); /* NULL is fine */

/* Where the labels run. */
typedef struct llm_labels_place {
    llm_session *session;
    int slot;            /* holds what comes before the labels, and does so afterwards, too */
    const float *logits; /* [n_vocab]: after its last token; NULL: llm_labels_begin had them */
    const int *
        spare; /* [n_spare]: slots that are empty before and afterwards. With none, labels run one after the other. */
    size_t n_spare;
    bool (*is_cancelled)(void *ctx); /* asked between batches; NULL: nobody asks */
    void *ctx;
} llm_labels_place;

/* Takes the logits [n_vocab] after the last token before the labels. */
void llm_labels_begin(llm_labels *l, const float *logits);

/* GGL_LIMIT: the sequence and a label exceed the context; GGL_FORMAT: the logits are not finite; GGL_CANCELLED; else as of
 * llm_session_eval. The bits do not depend on the number of spare slots. */
GGL_NODISCARD ggl_status llm_labels_run(llm_labels *l, const llm_labels_place *at, ggl_error *err);

bool llm_labels_end(const llm_labels *l); /* true if the end counts */
/* Of label k, after llm_labels_run: the natural logarithm of the probability of its tokens, and of the end if that counts. */
double llm_labels_logprob(const llm_labels *l, size_t k);
/* How many tokens that is, the end included if it counts. */
size_t llm_labels_n(const llm_labels *l, size_t k);
/* Most tokens of a label that run; 0: none has to. */
int64_t llm_labels_depth(const llm_labels *l);
/* How many slots are of use at the same time. */
size_t llm_labels_width(const llm_labels *l);
/* Tokens that run, after those before the labels. */
size_t llm_labels_n_run(const llm_labels *l);

/* Sets share[i], of n, to what each has of 1: e^logprob[i] over the sum of all; with n_tokens, e^(logprob[i] / n_tokens[i]). */
void llm_labels_shares(const double *logprob, const size_t *n_tokens, size_t n, double *share);

#ifdef __cplusplus
}
#endif
#endif
