/* A text that is generated: its parameters, what chooses its tokens, and what was not returned yet.
 * llm_begin has one, and each job of llm_generate_jobs. */
#ifndef LIBRARY_GENERATION_H
#define LIBRARY_GENERATION_H

#include "context.h"
#include "job_parts.h"
#include "stopped_text.h"

/* The grammar or schema of the last generation, and its matcher at the beginning of a text. Each generation copies the matcher. */
typedef struct kept_grammar {
    char *text;
    bool is_schema, spaces;
    llm_thought thought
        [LLM_THOUGHTS]; /* [n_thoughts]: the reasoning that may come before it; zeroed behind */
    size_t n_thoughts;
    llm_matcher *matcher;
} kept_grammar;

typedef struct generation {
    llm_generate_params p;
    llm_job_parts parts; /* what chooses its tokens; no sampler: the one before goes on */
    llm_finish finish;   /* LLM_FINISH_NONE: more tokens can be generated */
    int64_t n_generated;
    stopped_text text;
    bool has_begun; /* of llm_token_next_text */
    /* Of a model of the diffusion kind: */
    llm_diffuse_params schedule;
    llm_diffusion diffusion; /* n_length: of the whole text; 0: the model is of another kind */
    /* --- of llm_begin */
    uint64_t id;    /* of the sequence in the engine */
    bool has_drawn; /* a token has come in this step */
    bool is_over;   /* the sequence has ended, for this reason: */
    llm_end why;
    ggl_status st; /* a failure of it, and its message */
    ggl_error err;
    llm_sequence_stats
        stats; /* when it had ended; of earlier ones, which `full` has replaced, the sums */
    llm_sequence_stats before;
    llm_tokens found; /* by beams or diffusion; those before n_taken were taken */
    size_t n_taken;
} generation;

/* Checks the parameters, which may be NULL, and makes what chooses the tokens after the prompt id[0 .. n). Sets *out,
 * unless memory is lacking for it, also on failure. Statuses as of llm_generate. */
ggl_status llm_generation_new(generation **out, llm_context *c, const llm_generate_params *params,
                              const int32_t *id, size_t n, ggl_error *err);
/* Returns why a text ends whose sequence has ended so. */
llm_finish llm_generation_finish(llm_end why);
void llm_generation_free(generation *g);     /* NULL is fine */
void llm_kept_grammar_free(kept_grammar *k); /* NULL is fine */
/* True if the text is not complete by its grammar. */
bool llm_generation_is_incomplete(const generation *g);

/* Takes a token that was drawn from the logits (id less than 0: the grammar allows none). Sets `finish` if it is the last one. */
ggl_status llm_generation_take(generation *g, const llm_context *c, int32_t id, const float *logits,
                               ggl_error *err);

#endif
