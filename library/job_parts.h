/* The parts of a job that write its text: a sampler, a matcher and stop texts; or a search of beams; or diffusion. llm.h makes the parts of
 * a generation here, and llm-server those of each choice of a request, from the same struct.
 *
 *     llm_job_params p = {.n_vocab = n_vocab, .n_ctx = n_ctx, .sampling = &sampling, .way = {.n_max = -1}};
 *     llm_job_parts x;
 *     if (llm_job_parts_new(&x, &p, NULL, &err) != GGL_OK) ..
 *     llm_sequence_params s = {.size = sizeof s, .prompt = id, .n_prompt = n, ..};
 *     llm_job_describe(&x, &s);
 *     if (llm_engine_add(engine, &s, &which, &err) != GGL_OK) ..
 *
 * The caller first checks by job_rules.h that the wishes can be combined. Threads: one thread at a time may use the parts of a job, and
 * those that were made like them. */
#ifndef LIBRARY_JOB_PARTS_H
#define LIBRARY_JOB_PARTS_H

#include "llm/internal/calls.h"
#include "llm/internal/engine.h"
#include "llm/internal/grammar.h"
#include "llm/internal/stop.h"

/* --- grammars --------------------------------------------------------------------------------- */

/* A text that says what another one must fit. */
typedef struct llm_job_form {
    const char *text; /* [n] */
    size_t n;
    const char *name; /* for messages */
    bool is_schema;   /* of JSON; else a grammar, GBNF */
    bool spaces;      /* JSON may have white space between values */
    llm_schema_note note;
    void *user;
    uint64_t max_steps;         /* to read it, as llm_schema_params has them; 0: no limit */
    size_t max_bytes;           /* 0: the usual ones */
    const llm_thought *thought; /* [n_thoughts]: the reasoning that may come before it */
    size_t n_thoughts;
} llm_job_form;

/* Finds the reasoning that may come before an answer of this form. Reasoning whose marks are control tokens, which grammars do not
 * allow, is left out. Before a grammar, only reasoning that the prompt has begun is free, and only if the grammar does not have the mark
 * that ends it. grammar: its text; n 0: the form is a schema. Statuses of llm_calls_thoughts. */
GGL_NODISCARD ggl_status llm_job_thoughts(llm_thought thought[LLM_THOUGHTS], size_t *n,
                                          const llm_calls_params *answers, const llm_tokenizer *t,
                                          ggl_str grammar, ggl_error *err);

/* Statuses of llm_grammar_from_gbnf and llm_grammar_from_schema. */
GGL_NODISCARD ggl_status llm_job_grammar_new(llm_grammar **out, const llm_job_form *f,
                                             ggl_error *err);

/* --- parts ------------------------------------------------------------------------------------ */

/* How a text goes on, and ends. */
typedef struct llm_job_way {
    int64_t n_max;     /* tokens; less than 0: until the text ends, or the context is full */
    bool ignore_end;   /* goes on after its end */
    bool is_unsteered; /* the matcher does not lead the text to an early end: llm_sequence_params */
    bool shift;        /* a full context drops tokens, except of beams and by diffusion */
    int64_t n_keep;    /* the first of them that stay; -1: the prompt */
    llm_beams_params beams; /* n 0: none are searched */
    bool diffuses;
    llm_diffusion diffusion; /* the schedule; what a sampler has is set by llm_job_parts_new */
} llm_job_way;

/* All pointers are borrowed until the parts are made. */
typedef struct llm_job_params {
    int64_t n_vocab, n_ctx;
    const llm_sampler_params *sampling; /* NULL: no sampler is made, as one from before goes on */
    const llm_matcher *
        matcher; /* at the beginning of a text, copied; copies share what they learn. NULL: the text is any */
    const ggl_str *stop; /* [n_stop], copied */
    size_t n_stop;
    llm_job_way way;
} llm_job_params;

typedef struct llm_job_parts {
    llm_sampler *sampler; /* NULL: llm_job_params.sampling was */
    llm_matcher *matcher; /* NULL: every text is allowed */
    llm_stop *stop;       /* NULL: there are no stop texts */
    int64_t n_ctx;
    llm_job_way way;
} llm_job_parts;

/* Makes the parts. like: others of the same description, which must live longer: what they have prepared of breakers and biases is
 * shared; NULL: there are none. Call llm_job_parts_fini also on failure. GGL_USAGE: a number is out of range, or a stop text is empty;
 * GGL_LIMIT: these are too long; GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_job_parts_new(llm_job_parts *out, const llm_job_params *p,
                                           const llm_job_parts *like, ggl_error *err);
/* Begins another text, as if they were new and had this seed. */
void llm_job_parts_begin(llm_job_parts *x, uint64_t seed);
void llm_job_parts_fini(llm_job_parts *x);
/* Describes them to the engine: sets all members of *s that they decide. s->n_prompt must be set. They must stay in place until the sequence was
 * added, and what they have until it has ended. */
void llm_job_describe(const llm_job_parts *x, llm_sequence_params *s);
/* The tokens of an answer by diffusion: n_max, or if that is less than 0, as many as there is room for after the prompt, at most
 * LLM_DIFFUSION_LENGTH. */
int64_t llm_job_n_diffused(int64_t n_max, int64_t n_ctx, int64_t n_prompt);

#endif
