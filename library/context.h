/* What a context of llm/llm.h consists of. */
#ifndef LIBRARY_CONTEXT_H
#define LIBRARY_CONTEXT_H

#include <stdatomic.h>

#include "guessing.h"
#include "llm/internal/chat.h"
#include "llm/internal/engine.h"
#include "llm/internal/file_sampling.h"
#include "llm/internal/head.h"
#include "llm/internal/pooling.h"
#include "llm/internal/prompt_cache.h"
#include "llm/internal/stage_rows.h"
#include "llm/llm.h"
#include "steps.h"

typedef struct llm_jobs llm_jobs;
typedef struct llm_live llm_live;

/* The tools of the conversation that llm_chat_answer is answering, and which control tokens it shows as text. */
typedef struct llm_asked {
    const struct json_value *tools; /* that may be called; NULL: none */
    llm_calls_tokens tokens;        /* special tokens that are text in the answer */
    bool one_call;                  /* the answer ends with its first call */
} llm_asked;

/* A picture or a sound of a conversation, which llm_chat_see has shown to the model. */
typedef struct llm_shown {
    char mark[LLM_IMAGE_MARK];
    bool is_named; /* while a conversation is searched */
} llm_shown;

struct llm_context {
    llm_opened opened;
    llm_facts facts;           /* of what is open */
    struct llm_copies *copies; /* split "copies"; NULL: there are none */
    bool misused; /* the step that failed did so because the choice of devices was wrong */
    llm_placement *placement;
    llm_model *model;
    const llm_tokenizer *tokenizer; /* NULL: the model has none that we know; why_no_tokenizer */
    ggl_error why_no_tokenizer;
    llm_file_sampling file_sampling; /* the defaults of sampling */
    llm_chat *chat;                  /* NULL: there is no template; why_no_chat */
    ggl_error why_no_chat;
    const llm_calls_params *
        answers; /* the text that begins next is read so: before what it must fit, reasoning is free. NULL: it is any text */
    const llm_asked *asked; /* while llm_chat_answer generates; NULL: it does not */
    llm_pooling pooling;    /* of embeddings */
    bool limit_is_file;     /* the context is sentence_transformers.max_seq_length */
    bool
        no_special_tokens; /* texts of vectors begin and end with none (sentence_transformers.add_special_tokens) */
    int32_t dropped; /* the unknown token, where such texts are without it; -1: they are not */
    llm_head *head;  /* what makes a vector of rows; NULL: no vectors are made */
    int64_t
        n_dims; /* numbers of a vector, unless others are asked for (sentence_transformers.truncate_dim); 0: no vectors are made */
    llm_session_params session_params; /* with which `session` was made */
    char *repack_cache;                /* a copy for session_params */
    llm_session *session;
    llm_stages *
        stages; /* of a model whose tokens read rows of an input, such as sound: they end in `session`; NULL: of others */
    struct llm_live *live; /* of llm_live_begin; NULL: no sound is given piece by piece */
    void (*drop_live)(
        llm_context *
            c); /* ends it, without what is still to be written; does nothing within a call of it */
    struct llm_voice *voice; /* finds speech for llm_transcribe; NULL: none was wanted yet */
    struct llm_eye *eye;     /* NULL: it sees no pictures */
    bool eye_left_out;       /* the one that came with the model is of no use */
    ggl_error why_no_eye;    /* why that one was left out or not opened; msg "": none came */
    llm_shown *shown;        /* [n_shown]: what llm_chat_see has shown, which is held */
    size_t n_shown, cap_shown;
    llm_placement *
        eye_placement; /* with llm_opening.sees_apart; NULL: the eye runs on the session's backends */
    llm_adapter_use *adapter; /* [n_adapters] */
    size_t n_adapters;
    llm_guessing *guessing;         /* NULL: nothing is guessed */
    int32_t tap[LLM_ARCH_MAX_TAPS]; /* layers that the draft reads */
    int64_t n_guess_max;
    llm_sampler *sampler; /* of the last generation, which same_sampler goes on with; NULL: none */
    llm_engine *engine;   /* runs all texts */
    llm_vocab *vocab;     /* made for the first grammar */
    struct generation *generation; /* started by llm_begin; NULL: none, or it has ended */
    char *rest;                    /* text of a generation that has failed; returned by llm_next */
    struct kept_grammar *kept;     /* of the last generation with a grammar; NULL: none */
    const llm_sampler_params
        *sampling; /* of a tool: in place of the parameters' members; NULL: none */
    llm_prompt_cache
        *cache;          /* of a tool: keeps what the slot has at the end of a prompt; NULL: none */
    llm_jobs *jobs;      /* of llm_jobs_add or llm_generate_jobs; NULL: none */
    char *prompt_folder; /* of their beginnings; NULL: none */
    int64_t prompt_folder_size;
    atomic_int cancelled; /* true or false; RISC-V exchanges no bytes */
    atomic_bool stops; /* of the copy that `session` is: what it computes is not wanted any more */
    bool
        is_ending; /* what llm_begin or llm_jobs_add has begun was cancelled, and ends with its next call */
    bool (*asks)(void *ctx); /* llm_opening.cancelled */
    void *asks_ctx;
    /* The sequence is that of the engine's slot 0, or after llm_eval it is `ids`. The slot then holds the first
     * llm_session_n_past of them; the next run runs the others. */
    llm_tokens ids;
    bool is_own;
    float *rows; /* [n_rows][n_vocab]: the last logits of llm_eval */
    size_t cap_rows, n_rows;
    const float *logits; /* the last row, of `rows` or the engine's */
    llm_run_info run;
    double repack_before; /* seconds of late copies before the last generation */
};

/* Sets c->facts. */
void llm_context_note_facts(llm_context *c);
/* Checks that the model gives each token a probability after those before it, as texts that are continued or measured
 * need; `reads`: it may read a text before. GGL_UNSUPPORTED, with the reason. */
GGL_INTERNAL_API ggl_status llm_context_check_writes(const llm_context *c, bool reads,
                                                     ggl_error *err);
/* True if the call is to end: by llm_cancel, or llm_opening.cancelled. */
bool llm_context_is_asked_to_end(const llm_context *c);
/* The same, or what the session computes is not wanted any more. ctx: the context. */
bool llm_context_is_cancelled(void *ctx);
/* Makes an engine, which guesses with c->guessing. All slots of the session are emptied. */
ggl_status llm_context_make_engine(llm_engine **out, const llm_context *c, llm_session *session,
                                   ggl_error *err);
/* Moves the sequence from the engine to c->ids, if the engine has it. */
ggl_status llm_context_take(llm_context *c, ggl_error *err);
/* Moves the sequence back to the engine, which continues from the slot's tokens. */
ggl_status llm_context_give(llm_context *c, ggl_error *err);
/* Empties the sequence, which llm_context_take has taken. */
ggl_status llm_context_clear(llm_context *c, ggl_error *err);
/* The sequence, which llm_context_take has taken, becomes these tokens, the first of which the slot holds already. */
ggl_status llm_context_set(llm_context *c, const int32_t *id, size_t n, ggl_error *err);
/* Runs the tokens of the sequence, which llm_context_take has taken, that have not run, and keeps the logits of the last
 * n_rows of them. */
ggl_status llm_context_run(llm_context *c, size_t n_rows, ggl_error *err);
/* The sequence becomes this prompt, of which it keeps what both begin with, and c->rows the logits after its last token. */
ggl_status llm_context_run_prompt(llm_context *c, const int32_t *id, size_t n, ggl_error *err);
/* Keeps what the sequence, which llm_context_take has taken, and the prompt id[0 .. n_prompt) begin with, but not all of the prompt. */
ggl_status llm_context_keep_common(llm_context *c, const int32_t *id, size_t n_prompt,
                                   ggl_error *err);
/* Call after a failed run: the sequence becomes the tokens that the slot holds, if the slot can still be used. */
void llm_context_recover(llm_context *c);
/* Every call that generates begins with this: it ends what llm_begin has begun. Only here is a cancel forgotten, so one
 * that comes while the prompt is formatted or tokenized has its effect. */
void llm_context_start(llm_context *c);
/* Every call that leaves the sequence as it is, and can be cancelled, begins with this: a cancel that came before is none of
 * this call, but of what llm_begin or llm_jobs_add has begun. Without these it is forgotten. */
void llm_context_start_beside(llm_context *c);
/* They return this of their status: a cancel that has ended such a call does not end what was begun, too. */
GGL_NODISCARD ggl_status llm_context_end_beside(llm_context *c, ggl_status st);
/* Every call that goes on with these begins with this. */
void llm_context_go_on(llm_context *c);
/* llm_begin, after llm_context_start. */
ggl_status llm_context_begin(llm_context *c, const int32_t *id, size_t n,
                             const llm_generate_params *params, ggl_error *err);
/* Reads a conversation; pictures and sounds are refused. The tools are checked: a template writes nothing of what it does not expect. */
ggl_status llm_context_read_talk(const llm_context *c, const char *json, llm_talk **talk,
                                 ggl_error *err);
/* The same; pictures and sounds are shown to the model, and held as llm_chat_see says. */
ggl_status llm_context_see_talk(llm_context *c, const char *json, llm_talk **talk, ggl_error *err);
/* Renders a conversation. As llm_chat_format. made: NULL: nobody asks. */
ggl_status llm_context_format(const llm_context *c, const llm_talk *talk, bool answer, char **text,
                              size_t *n, llm_chat_made *made, ggl_error *err);
/* Says what of the conversation the prompt does not show as it was given, to p->note. */
void llm_note_changes(const llm_chat_changes *changes, const llm_generate_params *p);
/* llm_encode of such a text: what looks like a control token in a message is text. flags: of llm_tokenize. */
ggl_status llm_context_tokenize(const llm_context *c, const llm_spans *given, ggl_str text,
                                unsigned flags, int32_t **id, size_t *n_id, ggl_error *err);
/* Frees the generation that llm_begin started, if there is one. */
void llm_context_end(llm_context *c);
/* Empties all slots, in which no sequence runs. */
ggl_status llm_context_erase(llm_context *c, ggl_error *err);
/* Ends the jobs, if there are any, and empties all slots. GGL_USAGE: a callback of a job calls this. */
ggl_status llm_context_end_jobs(llm_context *c, ggl_error *err);

#endif
