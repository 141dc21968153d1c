/* Runs many sequences at once in the slots of a session (continuous batching). Sequences join and leave
 * between steps. A step runs the next token of every sequence that generates, and fills what is left of
 * the ubatch with pieces of waiting prompts. The tokens of a sequence depend only on the model, its
 * prompt, its sampler and its grammar: never, to the bit, on which other sequences run.
 *
 *     llm_engine *e;
 *     if (llm_engine_new(&e, &(llm_engine_params){.size = sizeof(llm_engine_params), .session = s, .n_parallel = 4}, &err) != GGL_OK) ...
 *     llm_sequence_params p = {.size = sizeof p, .prompt = ids, .n_prompt = n, .sampler = sampler, .n_max = 100,
 *                              .token = on_token, .ended = on_end, .ctx = mine};
 *     if (llm_engine_add(e, &p, &id, &err) != GGL_OK) ...
 *     while (llm_engine_n_running(e) + llm_engine_n_waiting(e) > 0)
 *         if (llm_engine_step(e, &err) != GGL_OK) ...
 *
 * With several backends, an engine whose sequences all generate, at least eight of them, divides them over
 * several batches (llm_session_submit): a step then collects one of these, and the others are computed
 * between steps, too. A sequence of theirs that is cancelled ends in the next step.
 *
 * A sequence whose tokens are asked for (llm_sequence_params.asked) runs alone: each step runs a batch of it or draws one token, so
 * that nothing is computed before the caller wants it.
 *
 * A session that sees texts whole (llm_session_sees_all) takes only sequences with `embedded` or `diffusion`. A step runs as many
 * whole texts as fit, at least one, and their slots are empty afterwards.
 *
 * An engine belongs to one thread. Nobody else uses its session, or its backends while sequences run. */
#ifndef LLM_ENGINE_H
#define LLM_ENGINE_H

#include "llm/internal/beams.h"
#include "llm/internal/diffuse.h"
#include "llm/internal/embed.h"
#include "llm/internal/grammar.h"
#include "llm/internal/guesser.h"
#include "llm/internal/labels.h"
#include "llm/internal/prompt_folder.h"
#include "llm/internal/sampler.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_engine llm_engine;

typedef struct llm_engine_params {
    size_t size; /* sizeof(llm_engine_params): ggl/internal/params.h */
    /* Borrowed until the engine is freed, as are all pointers here. Its slots beyond n_parallel keep
     * sequences that have ended, for later prompts with the same beginning. Its n_rows should be n_parallel
     * (n_guess_max + 1), and LLM_FORCED_ROWS if there are grammars: a step that needs more rows of logits runs several ubatches. */
    llm_session *session;
    const llm_tokenizer *tokenizer; /* NULL if none; sequences end by n_max and `token` alone */
    int n_parallel;                 /* sequences that run at once, 1 .. the session's n_slots */
    size_t n_queue; /* sequences that may wait; 0: any number. llm_engine_add fails beyond it. */
    size_t n_queue_each; /* the same for one client, without those that had to make room */
    /* tokens in a step at most; 0: the session's n_ubatch. A text that is seen whole and is longer runs alone. */
    int64_t n_ubatch;
    /* While sequences generate, pieces of prompts are kept so short that a step takes about this
     * long, in ns, or half as long again as without prompts, if that is more; 0: 50 ms. It changes no
     * token. */
    int64_t step_ns;
    /* Models with states: memory for snapshots of them at the ends of prompts and of common beginnings, so that
     * these need not run again; 0: 256 MiB. */
    size_t n_snapshot_bytes;
    /* Guessers, for as many of the sequences that run at once; NULL: nothing is guessed. */
    const llm_guesser *const *guesser; /* [n_guessers] */
    int n_guessers;                    /* 1 .. n_parallel; 0: n_parallel */
    int64_t n_guess_max;
    /* The time in ns, from any start. NULL: the system's monotonic clock. */
    int64_t (*clock)(void *ctx);
    void *clock_ctx;
    /* Beginnings of prompts that are shared by files, of this session; NULL: none. To load one takes as long as to read its file, which delays
     * the other sequences. A session that sees texts whole uses none. */
    llm_prompt_folder *prompts;
    /* A prompt whose tokens are asked for (llm_sequence_params.asked) runs in one batch, whatever its length, so that several devices
     * work at the same time. The engine has memory for a batch of the context's length then. */
    bool whole_prompts;
} llm_engine_params;

/* All slots are cleared. GGL_USAGE: a parameter is out of range; the message names it. */
GGL_NODISCARD ggl_status llm_engine_new(llm_engine **out, const llm_engine_params *p,
                                        ggl_error *err);
/* Ends all sequences with LLM_END_CANCELLED; none can be added any more. NULL is fine. Not for
 * callbacks of the engine. */
void llm_engine_free(llm_engine *e);
/* Sets these members of llm_engine_params from now on. No sequence waits or runs. */
void llm_engine_set_work(llm_engine *e, int64_t step_ns, llm_prompt_folder *prompts);

/* --- sequences -------------------------------------------------------------------------------- */

typedef enum llm_end {
    LLM_END_EOG,       /* an end-of-generation token was drawn, or the grammar's text is complete */
    LLM_END_MAX,       /* n_max tokens were drawn */
    LLM_END_CONTEXT,   /* the context is full */
    LLM_END_STOPPED,   /* `token` returned false */
    LLM_END_CANCELLED, /* llm_engine_cancel */
    LLM_END_DEADLINE,
    LLM_END_FAILED /* see the error */
} llm_end;

typedef struct llm_sequence_stats {
    int64_t n_prompt; /* tokens of the prompt, and of them */
    int64_t n_reused; /* those that another sequence had run already */
    int64_t n_drawn, n_guessed, n_right;
    int64_t n_nan; /* NaNs among the last logits; such tokens are never drawn */
    /* The clock when it was added, when its first token began to run, when the prompt was done, and at the
     * last token; 0 if that did not happen. */
    int64_t t_added, t_begun, t_prompt, t_last;
    int slot; /* in which it runs, or ran last; -1: none yet */
    int64_t
        n_shifts; /* how often it lost tokens because the context was full (llm_sequence_params.shift), and */
    int64_t n_dropped; /* how many these were */
} llm_sequence_stats;

typedef struct llm_sequence_params {
    size_t size;           /* sizeof(llm_sequence_params): ggl/internal/params.h */
    const int32_t *prompt; /* [n_prompt], at least one; copied */
    size_t n_prompt;
    /* [n_read], copied: of a model that reads a text before it writes (llm_session_reads_text), that text; the prompt is then
     * the beginning of what it writes. NULL: it reads the prompt, and begins with its own start token. */
    const int32_t *read;
    size_t n_read;
    llm_sampler
        *sampler; /* borrowed until `ended`; the engine makes it forget, and accept the prompt */
    llm_matcher
        *matcher; /* the same; at the beginning of the text. NULL: every token is allowed. */
    bool
        is_unsteered; /* the matcher does not know of n_max and the context: it does not lead the text to an early
                        * end, and where these end the text it may be incomplete */
    int64_t n_max;    /* tokens to draw at most, 0 or more; -1: until the context is full */
    bool ignore_eog;  /* goes on after end-of-generation tokens */
    uint64_t client;  /* waiting sequences of different clients take turns */
    int64_t deadline; /* of the clock; 0: none */
    bool no_reuse;    /* runs the whole prompt; what was run before is not used */
    /* Called for each token of the prompt in order, with its logits [n_vocab], valid during the call;
     * implies no_reuse. With `asked`, a model that reads the prompt has those of its own start token. NULL: none. */
    void (*prompted)(void *ctx, int64_t i,
                     const float *logits); /* not of rows of pictures, but for the last one */
    /* Called for each token of the prompt that the pooling takes (llm_embed_range), in order, with its embedding [n_embd], or
     * by LLM_POOL_RANK its score [n_score], valid during the call. The sequence ends then: n_max must be 0, sampler
     * may be NULL, prompted must be. Implies no_reuse unless only the last token is taken. NULL: none. */
    void (*embedded)(void *ctx, int64_t i, const float *row);
    llm_pooling pooling;
    int64_t n_before;    /* tokens at the beginning that the pooling leaves out */
    int32_t n_seen;      /* of a text that is seen whole: llm_batch.seen; 0: all */
    const int32_t *type; /* [n_prompt], copied: of such a text, llm_batch.type; NULL: all are 0 */
    /* [llm_session_n_tasks], copied: llm_batch.share of its tokens. What was run with other shares is not used. NULL: llm_session_shares. */
    const float *share;
    /* Called for each drawn token, the end-of-generation token included, with the logits it was drawn
     * from, valid during the call. Returning false ends the sequence. NULL: none. */
    bool (*token)(void *ctx, int32_t id, const float *logits);
    /* Called once, at last; err: the failure of LLM_END_FAILED, else NULL. After it the engine uses
     * nothing of these parameters. It may call llm_engine_add, which
     * fails if llm_engine_free ends the sequence. NULL: none. */
    void (*ended)(void *ctx, llm_end why, const llm_sequence_stats *stats, const ggl_error *err);
    void *ctx;
    int in_slot; /* 1 + the slot in which it runs if no other sequence does; 0: any */
    /* A full context: with `shift`, the first n_keep tokens stay, the older half of the others is dropped, and the rest
     * is read again, as if it were the prompt; else the sequence ends (LLM_END_CONTEXT). n_keep -1: the prompt stays.
     * If more than half of the context would stay, its first half does. With n_max -1 only the end of the text ends it. */
    bool shift;
    int64_t n_keep;
    /* For a session of a model that writes by diffusion: how the text is written, copied. prompt, n_prompt and n_length of it are not
     * read: the answer has n_max tokens, 1 or more. A step of the engine is a pass over the text, and `token` gets what is settled from
     * the left, with logits NULL. sampler may be NULL, matcher and prompted must be. NULL: the session continues texts. */
    const llm_diffusion *diffusion;
    /* The text is the best one that a search of beams finds, copied; its n_max is not read, and ignore_end is ignore_eog. Each beam takes one of
     * n_parallel places, and the sequence waits until so many are free. `token` gets the text when the search is done, with logits
     * NULL. sampler may be NULL, matcher, prompted, embedded and diffusion must be, and shift false. If the pages of the cache do not suffice for
     * the beams of a sequence that is alone, the search ends with what there is (LLM_END_CONTEXT), as at a deadline. NULL: tokens are drawn. */
    const llm_beams_params *beams;
    /* The n_texts best texts are given, the best one first; 0: one. n_drawn of the statistics is that of one text. Called after each of
     * them but the last one, as `ended` is after that. NULL if n_texts is at most 1. */
    int32_t n_texts;
    void (*text_ended)(void *ctx, llm_end why, const llm_sequence_stats *stats);
    size_t
        n_beginning; /* tokens of the prompt with which others will begin, too: saved in llm_engine_params.prompts at once; 0: not known */
    bool no_guesses; /* it gets no guesser */
    /* Labels that are compared after the prompt, borrowed until `ended`, which then has their probabilities, with LLM_END_MAX. n_max must be 0 and no_guesses
     * true, sampler may be NULL, matcher, prompted, embedded, beams and diffusion must be. They run in slots in which no sequence does, and wait while others
     * have all pages of the cache. NULL: none. */
    llm_labels *labels;
    /* The sequence runs alone, and a step either runs a batch, up to the logits from which the next token is drawn, or draws one token from
     * logits that are there. The logits that `token` gets are valid until the next step, and a full context shifts in the next one.
     * beams, diffusion and embedded must be NULL. */
    bool asked;
    /* With `asked`: called before and while more than one token has to run, as llm_batch.progress; n counts the tokens of the prompt, or
     * of a context that was shifted, that were not reused. Returning false ends the sequence with GGL_CANCELLED. NULL: none. */
    bool (*progress)(void *ctx, int64_t n_done, int64_t n);
    /* With `asked`: a cache for the slot in which the sequence runs, which keeps a copy of it before the last token of the prompt, if the
     * model cannot go back to that (llm_prompt_cache_wants_copy). NULL: none. */
    llm_prompt_cache *keeps;
} llm_sequence_params;

/* Lets a sequence wait for its turn; *id identifies it. GGL_LIMIT: the queue is full, or the prompt
 * does not fit into the context, or there are more beams than n_parallel (the message has the numbers); GGL_USAGE: others wait or run beside a
 * sequence whose tokens are asked for, the prompt is empty, a
 * token or parameter is out of range, the session lacks the output, or the engine is being freed; GGL_NOMEM. After a failure
 * `ended` is not called. */
GGL_NODISCARD ggl_status llm_engine_add(llm_engine *e, const llm_sequence_params *p, uint64_t *id,
                                        ggl_error *err);
/* Ends a sequence now; from within a callback, at the end of the step. Unknown ids are ignored. */
void llm_engine_cancel(llm_engine *e, uint64_t id);
void llm_engine_cancel_all(llm_engine *e); /* not for callbacks of the engine */

/* Admits waiting sequences and runs one ubatch. Does nothing if none wait or run. A failure that
 * concerns one sequence ends that one (LLM_END_FAILED); a failure of the session ends those of the
 * step, and is also returned. The engine goes on after both. */
GGL_NODISCARD ggl_status llm_engine_step(llm_engine *e, ggl_error *err);

int llm_engine_n_running(const llm_engine *e); /* sequences, however many beams they have */
size_t llm_engine_n_waiting(const llm_engine *e);

/* --- what it does ----------------------------------------------------------------------------- */

typedef enum llm_slot_use {
    LLM_SLOT_EMPTY,
    LLM_SLOT_KEPT,
    LLM_SLOT_PROMPT,
    LLM_SLOT_GENERATES
} llm_slot_use;

typedef struct llm_slot_info {
    llm_slot_use use;
    uint64_t id;      /* of the sequence that runs, or ran last; 0: none did */
    int64_t n_past;   /* tokens in the slot */
    int64_t n_shared; /* the tokens in whole pages that other slots have, too */
    /* These two are set while a sequence runs: */
    llm_sequence_stats stats;
    int64_t
        n_left; /* tokens that it may still draw; -1: until the context is full, or it is a beam */
} llm_slot_info;
/* Describes a slot of the session. */
llm_slot_info llm_engine_slot(const llm_engine *e, int slot);
/* The tokens of the sequence that runs in a slot, or ran there last, [*n]: prompt and drawn ones, without those that a shift dropped; none of a
 * text by diffusion. Those
 * after the first n_past were not run. Valid until the engine is called again. */
const int32_t *llm_engine_tokens(const llm_engine *e, int slot, int64_t *n);
/* For a caller that has changed a slot in which no sequence runs: it holds exactly these tokens, which are copied; n must be
 * llm_session_n_past. Not for callbacks of the engine. GGL_USAGE: it does not, or a sequence runs there; GGL_NOMEM: the slot is empty
 * then. */
GGL_NODISCARD ggl_status llm_engine_adopt(llm_engine *e, int slot, const int32_t *id, size_t n,
                                          ggl_error *err);

/* --- slots in files --------------------------------------------------------------------------- */

/* These need a slot in which no sequence runs, and, as a cache, one for that slot of the engine's session. Batches that are under way are collected first, so their callbacks may be called. Not
 * for callbacks of the engine.
 *
 * llm_engine_save_slot writes the slot's sequence to a file, as llm_prompt_cache_save does; GGL_USAGE: the slot is empty.
 * llm_engine_restore_slot fills the slot from such a file (llm_prompt_cache_restore): prompts that begin as its sequence
 * does need not run that part. If pages are lacking, kept sequences of other slots are dropped, once the file was
 * checked. After a failure the slot is as before, or empty. llm_engine_erase_slot empties it.
 * *n: the tokens that were saved, restored or erased. GGL_USAGE: there is no such slot, or a sequence runs in it. */
GGL_NODISCARD ggl_status llm_engine_save_slot(llm_engine *e, int slot, llm_prompt_cache *c,
                                              const char *path, int64_t *n, ggl_error *err);
GGL_NODISCARD ggl_status llm_engine_restore_slot(llm_engine *e, int slot, llm_prompt_cache *c,
                                                 const char *path, int64_t *n, ggl_error *err);
GGL_NODISCARD ggl_status llm_engine_erase_slot(llm_engine *e, int slot, int64_t *n, ggl_error *err);

typedef struct llm_engine_stats {
    int64_t n_steps;
    int64_t n_prompt, n_reused; /* tokens of prompts that were run, and that were not run again */
    int64_t n_drawn;
    int64_t n_ended, n_failed,
        n_cancelled; /* sequences; n_ended counts all, n_cancelled also those of a step that was stopped (GGL_CANCELLED) */
    int64_t n_preempted; /* how often a sequence made room for another, to be continued later */
    int64_t n_drafts;    /* steps of a sequence with guesses; and of these */
    int64_t n_guessed, n_right;
    int64_t busy_ns, prompt_ns, generate_ns; /* time in steps; of it, in proportion to the tokens */
} llm_engine_stats;
llm_engine_stats llm_engine_get_stats(const llm_engine *e);

#ifdef __cplusplus
}
#endif
#endif
