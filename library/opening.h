/* Opening a model in steps: llm_open takes them all at once, a tool prints something between them. This header is for the tools,
 * which link the static libraries.
 *
 *     llm_opening o = {.path = "model.gguf", .params = llm_open_default(), ..};
 *     llm_context *c;
 *     st = llm_context_new(&c, &err);
 *     if (st == GGL_OK)
 *         st = llm_context_open(c, &o, LLM_OPENED_MODEL, &err);
 *     .. llm_opened_model(c) is there ..
 *     if (st == GGL_OK)
 *         st = llm_context_open(c, &o, LLM_OPENED_ALL, &err);
 *     .. after a failure, llm_opened_step(c) is the step before the one that failed ..
 *     llm_close(c); */
#ifndef LIBRARY_OPENING_H
#define LIBRARY_OPENING_H

#include <stdio.h>

#include "copies.h"
#include "guessing.h"
#include "llm/internal/chat.h"
#include "llm/internal/engine.h"
#include "llm/internal/file_sampling.h"
#include "llm/internal/head.h"
#include "llm/internal/pooling.h"
#include "llm/internal/sampler.h"
#include "llm/llm.h"
#include "place/fit.h"
#include "steps.h"

/* The options of open_params.def: members of llm_open_params, and what only programs have. */
typedef enum llm_open_param {
#define OPEN_PARAM(kind, member, ...) LLM_OPEN_##member,
#define OPEN_OWN(kind, id, ...)       LLM_OPEN_##id,
#include "open_params.def"
    LLM_N_OPEN_PARAMS
} llm_open_param;

enum {
    LLM_OPEN_TYPED = 32, /* bytes of a spelling */
    LLM_SPEECH_TEXTS =
        5 /* that are tried at once for a window of sound, unless more are asked for */
};

/* Everything that can be said about opening a model. All pointers are borrowed until the last step is taken. */
typedef struct llm_opening {
    const char *path; /* as llm_open takes it */
    llm_model *
        beside; /* opens another context of this model, in place of `path`; borrowed during the first step. NULL: none */
    llm_open_params params;

    /* What only programs say. */

    /* [LLM_N_OPEN_PARAMS]: flags as they were typed, by which messages name options; "": not typed. NULL: messages name members. */
    const char (*typed)[LLM_OPEN_TYPED];
    int n_load_threads; /* that convert a folder; 0: params.n_threads */
    bool no_chat;       /* no template is opened */
    bool no_tokenizer;  /* nor a tokenizer */
    bool
        is_question; /* the model will not run: its file is neither read ahead nor locked, and no draft is opened */
    const char *mask; /* instruction sets that the CPU does without */
    place_rule_texts place_regex;
    const char *trace, *shadow; /* as llm_placement_choice */
    uint64_t shadow_seed;
    bool n_gpu_layers_given; /* of params, also 0 */
    bool no_advice;          /* messages do not advise a smaller context */
    bool
        image_tokens_for_all; /* they are for several models: an eye that sees all pictures in sizes of its own is opened without them, with a note */
    bool
        mmproj_came; /* it came with the model, without being asked for: one that cannot be used is left out, with a note */
    const char *
        why_no_eye; /* why the eye that comes with the model is not in params.mmproj; NULL: there is none, or it is */
    /* The eye has backends of its own, so that one thread may show pictures (llm_see) while another one runs the session; and no mark in a
     * text stands for a picture: llm_seen_tokens gives the tokens of one. */
    bool sees_apart;
    /* The caller has inputs that do not depend on each other, so that params.split may be "copies" (copies.h): the whole model on
     * each device. A step that is taken without opens only the first. */
    bool copies;
    /* What the caller needs of the session; params say the rest, and n_parallel is not read. size 0: what llm_open needs. n_rows is a minimum. */
    llm_session_params session;
    bool
        chooses_slots; /* of a model that writes down speech: session.n_slots becomes LLM_SPEECH_TEXTS */
    bool n_ctx_is_most; /* as much of params.n_ctx as fits */
    /* Slots besides session.n_slots, for sequences that have ended; -1: as many as are cheap */
    int64_t n_kept_slots;
    int n_guessers; /* sequences that guess at once; 0: one */
    /* Sequences may have other scales than these (llm_adapter_use.varies), where an adapter allows it; such adapters begin at 0. */
    bool vary_adapters, vary_from_0;

    /* What is called. NULL: nothing. */

    /* As llm_placement_choice.note and measured; their ctx is NULL. */
    void (*placement_note)(void *ctx, const char *text), (*measured)(void *ctx, const char *text);
    /* As ggl_backend_params.profile. */
    ggl_profile_fn *profile;
    void *profile_ctx;
    llm_copy_fn *copy; /* called before the session of each copy is made, of the first once more */
    void *copy_ctx;
    /* See llm_fit_others and llm_fitting. */
    double (*taken)(void *ctx, const char *device);
    bool (*refuses)(void *ctx, const llm_fit *fit, int64_t n_ctx, bool is_asked);
    void (*lacks)(void *ctx, const llm_fit *fit, int64_t n_ctx, bool is_asked);
    /* Called when the session was planned, and that of a draft. */
    void (*placed)(void *ctx, const llm_placement *p, const llm_session *s);
    /* Asked between the steps of a run, besides llm_cancel, of copies in threads of theirs; true ends it with GGL_CANCELLED. */
    bool (*cancelled)(void *ctx);
    /* With sees_apart: asked while the eye looks, in place of `cancelled`. NULL: it looks to the end. */
    bool (*stops_seeing)(void *ctx);
    void *ctx; /* of these six */
} llm_opening;

/* How messages name an option: as a member of llm_open_params, or the flag that was typed, or its usual one. */
const char *llm_open_name(const llm_opening *o, llm_open_param k);
/* Checks the numbers, and what excludes each other. GGL_USAGE. */
ggl_status llm_open_check(const llm_opening *o, ggl_error *err);
/* True if both read the same files in the same way (llm_loading_is_same). */
bool llm_opening_reads_same(const llm_opening *a, const llm_opening *b);
/* Opens the backends alone. Statuses of llm_placement_new; *out must be closed even after an error. */
ggl_status llm_open_placement(llm_placement **out, const llm_opening *o, ggl_error *err);
/* Most tokens that are guessed at once; 0 if none are. */
int64_t llm_open_n_guess(const llm_opening *o);

/* A context that has nothing yet. llm_close frees it. */
ggl_status llm_context_new(llm_context **out, ggl_error *err);
/* Takes the steps after llm_opened_step, up to `until`. Statuses of llm_open. */
ggl_status llm_context_open(llm_context *c, const llm_opening *o, llm_opened until, ggl_error *err);
/* Opens the model that finds speech (llm_transcribe_params.vad_model) for a context that is open, so that one that is of no use is refused before a sound comes. llm_transcribe
 * opens it otherwise. GGL_UNSUPPORTED: the context's model does not hear, or the other one finds no speech, or at another rate; statuses of llm_open. */
GGL_NODISCARD ggl_status llm_context_open_voice(llm_context *c, const char *path, ggl_error *err);
/* How a caller whose engine runs in a thread of its own lets a text model with an ear write down a sound. */
typedef struct llm_transcribe_way {
    /* Runs a sequence to its end, of which its `ended` was told when this returns. After tokens have come, it calls look(p->ctx) in the thread of the caller, while no callback of p
     * runs; false: the rest is not wanted. GGL_CANCELLED: it is not wanted any more; statuses of llm_engine_add. */
    ggl_status (*run)(void *ctx, const llm_sequence_params *p, bool (*look)(void *ctx),
                      ggl_error *err);
    /* Are called before and after each use of the ear, which one thread at a time may use. */
    void (*enter)(void *ctx), (*leave)(void *ctx);
    void *ctx;
} llm_transcribe_way;
/* llm_transcribe of such a model, in a thread that leaves the context's session alone. */
GGL_NODISCARD ggl_status llm_transcribe_by(llm_context *c, const char *path,
                                           const llm_transcribe_params *params,
                                           const llm_transcribe_way *way, ggl_error *err);
/* True for a model that finds speech, by its keys. */
bool llm_finds_speech(const llm_model *m);
/* What a model notices beside text. */
typedef struct llm_senses {
    bool sees, hears; /* pictures, sounds */
} llm_senses;
/* What a file, a folder or a built-in eye (llm_open_params.mmproj) gives to a model, without loading its weights. Neither also: it cannot be opened, or mmproj is NULL. */
llm_senses llm_senses_of(const char *mmproj);
/* Makes a context and takes the steps up to `until`, by the parameters of llm_open. */
GGL_INTERNAL_API ggl_status llm_context_open_path(llm_context **out, const char *path,
                                                  const llm_open_params *params, llm_opened until,
                                                  ggl_error *err);
/* Closes what the steps after `to` have opened, at most LLM_OPENED_ADAPTERS, so that they can be taken again, with another
 * session. Status of llm_context_close. */
ggl_status llm_context_return(llm_context *c, llm_opened to, ggl_error *err);
/* llm_close with a status. GGL_IO: the timeline of llm_placement_choice.trace could not be written. c may be NULL. */
ggl_status llm_context_close(llm_context *c, ggl_error *err);

/* --- what is open, for the tools -------------------------------------------------------------- */

/* Each is NULL, or 0, before its step. */
llm_opened llm_opened_step(const llm_context *c);
/* The step that failed did so because the choice of devices was wrong. */
bool llm_opened_misused(const llm_context *c);
llm_model *llm_opened_model(const llm_context *c);
const llm_tokenizer *llm_opened_tokenizer(const llm_context *c); /* NULL also: there is none */
const ggl_error *llm_opened_why_no_tokenizer(const llm_context *c);
llm_chat *llm_opened_chat(const llm_context *c);
/* Why an eye or an ear that came with the model is not open; "": none came, or it is. */
const char *llm_opened_lack(const llm_context *c);
void llm_opened_set_chat(llm_context *c, llm_chat *chat); /* which the context then owns */
llm_placement *llm_opened_placement(const llm_context *c);
/* Copies of the model: 1, or with the split "copies" one for each device. Copy 0 has the placement and the session of the context. */
int llm_opened_n_copies(const llm_context *c);
const char *llm_opened_copies_text(
    const llm_context *c); /* "copies on cpu,rank1"; NULL: another split */
llm_placement *llm_opened_copy_placement(const llm_context *c, int k);
llm_session *llm_opened_copy_session(const llm_context *c, int k);
const llm_adapter_use *llm_opened_adapter(
    const llm_context *c); /* [llm_opened_n_adapters]: adapters, and then control vectors */
size_t llm_opened_n_adapters(const llm_context *c);
llm_pooling llm_opened_pooling(const llm_context *c);
/* Whether the model's first score ranks texts, as llm_rerank needs it. GGL_UNSUPPORTED: it has no score, or is a classifier. */
GGL_NODISCARD ggl_status llm_check_ranks(const llm_context *c, ggl_error *err);
const llm_head *llm_opened_head(const llm_context *c); /* NULL: no vectors are made */
/* True if llm_facts.n_ctx, the limit of a text that becomes a vector or a score, is the file's max_seq_length, and was not asked for. */
bool llm_limit_is_file(const llm_context *c);
/* True if a text without tokens has a vector: one of zeros, with what modules after the pooling make of it. So has a table of vectors, whose texts get
 * no tokens at their ends. */
bool llm_embeds_empty(const llm_context *c);
llm_session *llm_opened_session(const llm_context *c);
/* Prints where the eye or the ear runs, or the stages before the tokens, and their memory, as ggl_sched_print does; nothing if there are none. */
void llm_opened_print_stages(const llm_context *c, FILE *out, bool nodes);
/* With which the session was made. */
const llm_session_params *llm_opened_session_params(const llm_context *c);
llm_guessing *llm_opened_guessing(const llm_context *c);
/* How a text is read of which a vector is made: llm_embed_params. */
typedef struct llm_embed_how {
    ggl_str prompt;        /* before each text; n 0: none */
    bool truncate;         /* texts that are too long are cut */
    bool no_parse_special; /* what looks like a special token in a text is text */
} llm_embed_how;
/* Appends the tokens of a text of which a vector is made, as the model's file says; flags: LLM_TOKENIZE_BOS and _SPECIAL. */
ggl_status llm_embed_tokenize(const llm_context *c, ggl_str text, unsigned flags, llm_tokens *ids,
                              ggl_error *err);
/* Cuts the tokens of a text, those from `begin` on, to the longest text that the context takes. The token that the tokenizer puts at the
 * end of texts stays there, as tokenizers of Hugging Face keep it. types: of all tokens in *ids, cut likewise; or NULL. GGL_NOMEM. */
ggl_status llm_embed_cut(const llm_context *c, llm_tokens *ids, llm_tokens *types, size_t begin,
                         ggl_error *err);
/* Counts the tokens of the prompt that the pooling leaves out: 0, unless the model's file says that it does
 * (sentence_transformers.include_prompt). GGL_UNSUPPORTED: there is no tokenizer; GGL_NOMEM. */
ggl_status llm_embed_count_before(const llm_context *c, const llm_embed_how *how, int64_t *n,
                                  ggl_error *err);
/* Fills a query up with masks as llm_embed_params.query does, for a caller that wants a vector of each token. *n_seen: the tokens at
 * its beginning that others see (llm_batch.seen). GGL_FORMAT: the model's keys are wrong; GGL_NOMEM. */
ggl_status llm_fill_query(const llm_context *c, llm_tokens *ids, int32_t *n_seen, ggl_error *err);
/* Appends the tokens that stand for a picture which llm_see has shown: the texts around it, and its rows, whose ids are below 0. GGL_USAGE:
 * it is not there any more; GGL_NOMEM. Any thread. */
ggl_status llm_seen_tokens(const llm_context *c, const char *mark, llm_tokens *ids, ggl_error *err);
/* Counts the rows that are kept of it, without laying it out. A row that stands at the end of several lines is one. Statuses of llm_seen_tokens. */
ggl_status llm_seen_rows(const llm_context *c, const char *mark, size_t *n, ggl_error *err);
/* The model's file, if it has a say in sampling; else NULL. */
const ggl_gguf *llm_sampling_file(const llm_open_params *p, const ggl_gguf *file);
/* The defaults of sampling, with what the file says. */
const llm_file_sampling *llm_opened_sampling(const llm_context *c);
/* Tells, by sentences, what the file sets of `s`, those of llm_opened_sampling that nobody has said otherwise, and what of the file is not used. */
void llm_note_sampling(const llm_context *c, const llm_opening *o, const llm_file_sampling *s,
                       void (*note)(void *user, const char *text), void *user);
/* In place of the members about sampling of all parameters; borrowed, and may change. */
void llm_opened_set_sampling(llm_context *c, const llm_sampler_params *sampling);
/* The text that llm_begin begins next is read so: before what it must fit, reasoning is free. NULL: it is any text, as at first. *p must
 * last until llm_begin has returned. */
void llm_opened_read_as(llm_context *c, const llm_calls_params *p);
/* Frees what llm_begin has begun, before the next call would. */
void llm_opened_end(llm_context *c);

#endif
