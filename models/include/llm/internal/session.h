/* A session runs a model. It owns the graph, the plans and the slots. A slot holds one sequence of
 * tokens with its KV cache and states. Each eval appends tokens to slots; a batch may contain
 * tokens of several slots, which does not change the bits of any sequence's logits.
 *
 *     llm_session_params p = llm_session_default();
 *     p.backend = (ggl_backend *[]){cpu}; p.n_backends = 1; p.fold = reference;
 *     if (llm_session_new(&s, model, &p, &err) != GGL_OK ||
 *         llm_session_alloc(s, &err) != GGL_OK) ...
 *     llm_session_eval(s, &(llm_batch){.n = n, .token = ids}, &err);
 *     const float *logits = llm_session_logits(s);  // [n_vocab], of the last token
 *
 * Threads: a session, with the backends it borrows, belongs to one thread at a time. Sessions of
 * one model run at the same time if their backends are different instances. */
#ifndef LLM_SESSION_H
#define LLM_SESSION_H

#include "ggl/sched.h"
#include "llm/internal/media.h"
#include "llm/internal/adapter.h"
#include "llm/internal/model.h"
#include "llm/internal/rows_gather.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_session llm_session;

typedef struct llm_session_params {
    size_t size;      /* sizeof(llm_session_params): ggl/internal/params.h */
    int64_t n_ctx;    /* most tokens in a slot; 0: the model's context length, or 4096 */
    int64_t n_ubatch; /* most tokens computed at once; default 512 */
    int64_t n_slots;  /* default 1 */
    /* Of a model whose tokens read rows of numbers: most rows of the stage that they read; 0: what the descriptor says, or else n_ctx. */
    int64_t n_read;
    int64_t
        n_inputs; /* how many different inputs its slots read at the same time; 0: each its own */
    /* Tokens for which the KV cache has room, in pages of 64 that all slots share: a slot takes them
     * as it grows, and slots with a common beginning have the same ones. 0, the default: n_ctx for
     * each slot, so that a slot can always grow up to n_ctx. */
    int64_t n_pool;
    /* Also gives embeddings (llm_batch.want_embedding). GGL_UNSUPPORTED: see llm_arch_params. */
    bool embeddings;
    /* Also gives alignments (llm_batch.want_alignment). GGL_UNSUPPORTED: see llm_arch_params. */
    bool alignment;
    /* The only output that is computed: "logits", "embedding", "score" or "guess"; see llm_arch_params. NULL: all. The
     * logits of a session of guesses are these. */
    const char *only;
    /* Also computes for each token the row that the model's guesses read (llm_session_hear). GGL_UNSUPPORTED: it
     * has no layers that guess. */
    bool rows;
    /* Tells rows that enter these layers instead, side by side, for a model that guesses for this one. [n_taps]; as in llm_arch_params. */
    const int32_t *tap;
    int n_taps;
    /* Tokens below 0 stand for rows of this table; borrowed. NULL: there are none. GGL_UNSUPPORTED: the model takes none. */
    llm_media *media;
    int guess_layer; /* with .only "guess": as in llm_arch_params */
    /* In a session of guesses for another model: that one, whose token embedding is read if its own file has none. Borrowed until
     * the session is freed. NULL: none. */
    const llm_model *other;
    /* Rows of logits and embeddings computed at a time; default 1. Affects only speed and memory. */
    int64_t n_rows;
    /* Types of the KV cache: f16 (default), f32, bf16, q8_0, q4_0. */
    ggl_type type_k, type_v;
    bool
        types_given; /* somebody chose them; else whoever opens the model may choose others (library/opening.c) */
    ggl_backend *const *backend; /* borrowed until the session is freed */
    int n_backends;
    ggl_backend *fold;          /* computes constants once, in double: the reference backend */
    ggl_backend *fold_products; /* computes large products among them, in f32; NULL: fold does */
    /* Returns the index of the backend for a layer: -1 is the part before the first, n_layer the
     * part after the last. With a weight's name: the backend for the layer's nodes that read
     * this weight, or -1 for no preference. NULL: the first backend runs everything. Called by
     * llm_session_new. */
    int (*place)(void *ctx, int layer, int n_layer, const char *weight);
    void *place_ctx;
    bool strict; /* fail if a backend refuses a node, instead of running it on another one */
    /* Adapters of the model (llm/internal/adapter.h), applied all together. The array is borrowed during
     * llm_session_new, the adapters until the session is freed. */
    const llm_adapter_use *adapter;
    size_t n_adapters;
    /* By default the weights of products are repacked for the backend (ggl/sched.h): faster, but
     * the whole file is read at load. no_repack: use them as they are in the file; pages are
     * read when first needed, and sessions and processes share them. */
    bool no_repack;
    /* Weights are repacked late, between runs (ggl/sched.h): the first tokens come sooner. */
    bool repack_late;
    int64_t n_expected; /* tokens that will be generated in all (ggl/sched.h); 0: not known */
    /* Large products are divided among the first n_divided backends, in proportion to these numbers, and computed at the same
     * time (ggl/internal/divide.h); all else is where `place` puts it, which is asked for the parts' weights, too. Without effect if `watch` is
     * set. 0: none is divided. Borrowed during llm_session_new. */
    const double *divided;
    int n_divided;
    /* Of backends that share the layers and work at the same time: the time that a batch takes beside that of its tokens, in the time
     * of a token. A long batch is then cut into pieces that keep all of them busy best, of at most n_ubatch tokens. 0: of n_ubatch. */
    double batch_cost;
    /* Called while llm_session_alloc repacks weights, with the bytes done and in total.
     * Returning false stops it with GGL_CANCELLED. NULL: none. */
    bool (*progress)(void *ctx, size_t done, size_t total);
    void *progress_ctx;
    /* Called between the steps of a run; true ends llm_session_eval with GGL_CANCELLED. NULL:
     * none. */
    bool (*cancelled)(void *ctx);
    void *cancelled_ctx;
    /* File that caches repacked weights for later sessions, which map it. It is rewritten if it
     * does not fit the model and the adapters. "": the model's path plus ".repack". NULL: no cache. The model
     * must come from a file. */
    const char *repack_cache;
    /* Looks at what nodes of the model's graph read (ggl/sched.h): llm-imatrix does, for
     * example. Borrowed until the session is freed. NULL: none. */
    const ggl_watch *watch;
    /* Of a stage whose rows see no others (llm_session_is_by_row): n_ubatch of its n_ctx rows are computed at once. */
    bool in_pieces;
} llm_session_params;

void llm_session_fill_default(llm_session_params *p, size_t size); /* ggl/internal/params.h */
static inline llm_session_params llm_session_default(void) {
    llm_session_params p;
    llm_session_fill_default(&p, sizeof p);
    return p;
}

/* Builds and compiles the graph. All sizes are known and printable afterwards, but no memory for
 * values or weights is allocated. Fails as llm_arch_build and ggl_sched_new do, or with
 * GGL_LIMIT for n_ctx. */
GGL_NODISCARD ggl_status llm_session_new(llm_session **out, const llm_model *m,
                                         const llm_session_params *p, ggl_error *err);
/* Allocates everything and repacks weights; call once, before the first eval. */
GGL_NODISCARD ggl_status llm_session_alloc(llm_session *s, ggl_error *err);
/* Repacks weights that wait (repack_late): see ggl_sched_repack_some. */
GGL_NODISCARD ggl_status llm_session_repack(llm_session *s, double seconds, size_t *left,
                                            ggl_error *err);
void llm_session_free(llm_session *s);

GGL_INTERNAL_API const ggl_sched *llm_session_sched(const llm_session *s);
const ggl_graph *llm_session_graph(const llm_session *s);
/* Warnings of llm_session_new, one per line; "" if none. */
const char *llm_session_notes(const llm_session *s);
/* Notes of llm_session_alloc, e.g. whether repack_cache was used. */
const char *llm_session_load_notes(const llm_session *s);
int64_t llm_session_n_ctx(const llm_session *s);
int64_t llm_session_n_vocab(const llm_session *s);
/* A bit for each token of the logits, bit id % 32 of word id / 32. It is 0 for those that must never be chosen, whatever their logits are, because
 * the model's file says so (tokenizer.ggml.suppress_tokens). NULL: any token may be chosen. The engine, llm_diffuser and llm_beams obey it. */
const uint32_t *llm_session_writable(const llm_session *s);
/* Length of an embedding; 0 without llm_session_params.embeddings, if the model has logits. */
int64_t llm_session_n_embd(const llm_session *s);
/* Numbers of the model's output "score"; 0: it has none. */
int64_t llm_session_n_score(const llm_session *s);
/* The model sees texts whole: a slot's tokens are all in one batch, and it must be empty before. The longest text has
 * n_ctx tokens, and n_ubatch is at least as much. */
bool llm_session_sees_all(const llm_session *s);
/* Of an alignment: its heads, and the numbers for each, of which the first are those of the rows that the slot has read; 0 without
 * llm_session_params.alignment. */
int64_t llm_session_n_aligned_heads(const llm_session *s);
int64_t llm_session_n_aligned_rows(const llm_session *s);
bool llm_session_has_logits(const llm_session *s);
/* False for a row of a picture that sees later ones: of these, nothing can be wanted but of the last. */
bool llm_session_may_want(const llm_session *s, int32_t id);
/* The model's tokens read a text, which llm_session_read gives to a slot first (an encoder and a decoder). */
bool llm_session_reads_text(const llm_session *s);
/* The token with which such a model begins to write. */
int32_t llm_session_start_token(const llm_session *s);
/* Checks tokens that a caller gave. GGL_USAGE: one is not in a vocabulary of n_vocab. */
GGL_NODISCARD ggl_status llm_check_tokens(const int32_t *id, size_t n, int64_t n_vocab,
                                          ggl_error *err);
/* The same for a token that the session is to run, or the id of a row that it is to read. GGL_USAGE also: there is no such row; GGL_LIMIT: its
 * picture is too large. */
GGL_NODISCARD ggl_status llm_session_check_token(const llm_session *s, int32_t id, ggl_error *err);
/* The same for the tokens of a prompt. GGL_USAGE also: there are none; GGL_LIMIT also: they exceed the context. */
GGL_NODISCARD ggl_status llm_session_check_prompt(const llm_session *s, const int32_t *id, size_t n,
                                                  ggl_error *err);
/* Gives the slot the text of n tokens that its tokens read from now on; it has no tokens afterwards. Clearing the slot keeps the
 * text, copies and shares of it have the text, too. GGL_LIMIT: the text has more than n_ctx tokens; GGL_USAGE: it has none,
 * a token is out of range, or the model reads no text; and as llm_session_eval. */
GGL_NODISCARD ggl_status llm_session_read(llm_session *s, int slot, const int32_t *token, int64_t n,
                                          ggl_error *err);
/* Returns the *n tokens of the text that the slot's tokens read, valid until it reads another one; *n is 0 if it has read none, or
 * the model reads no text, but rows. */
const int32_t *llm_session_text(const llm_session *s, int slot, int64_t *n);
/* As llm_session_read, for a model whose tokens read the last of its stages over rows: gives the slot n rows for each of that stage's
 * inputs (llm_session_rows_input). id says which rows they are, for llm_session_find_read. llm_stages_read calls this
 * (llm/internal/stage_rows.h). Statuses of llm_session_read. */
enum { LLM_ROWS_ID = 16 };
GGL_NODISCARD ggl_status llm_session_read_rows(llm_session *s, int slot, const float *const *input,
                                               int64_t n, const int32_t id[LLM_ROWS_ID],
                                               ggl_error *err);
/* Lets the slot read what a slot, maybe this one, has read, without running anything: a text of these n_words tokens, or the rows of this
 * id. If it is this one, its tokens stay. *is_found false, and nothing is changed: no slot has read it. */
GGL_NODISCARD ggl_status llm_session_find_read(llm_session *s, int slot, const int32_t *id,
                                               int64_t n_words, bool *is_found, ggl_error *err);
/* Empties the slot, and gives back what its tokens read. */
GGL_NODISCARD ggl_status llm_session_unread(llm_session *s, int slot, ggl_error *err);
/* What the descriptor gave; valid as long as the session. */
const llm_arch_result *llm_session_built(const llm_session *s);
int64_t llm_session_n_layer(const llm_session *s);
/* As in llm_session_params. */
int64_t llm_session_n_rows(const llm_session *s);
int64_t llm_session_n_ubatch(const llm_session *s);
int64_t llm_session_n_slots(const llm_session *s);

/* Names the session's adapters for messages, with their scales, unless tokens choose them, as in " with style.gguf at scale 2"; "": it has none, or
 * all have the scale 0. */
const char *llm_session_adapters_text(const llm_session *s);
/* Tasks of the session's adapters (llm_adapter_use.task), of each of which a token has a share; 0: there are none. */
int64_t llm_session_n_tasks(const llm_session *s);
/* [n_tasks]: the shares of tokens that have none of their own: the scales of adapters that vary, and 0 of other tasks. */
const float *llm_session_shares(const llm_session *s);
/* Length of a row that llm_session_hear gives, or that guesses read; 0 in a session without llm_session_params.rows, .tap and
 * .only "guess". */
int64_t llm_session_n_row(const llm_session *s);
/* Numbers of a row that stands for a token; 0: made without params.media. */
int64_t llm_session_n_given(const llm_session *s);
/* True if these are added to what the session makes of a token. */
bool llm_session_adds(const llm_session *s);
/* How many tokens can follow a text of n until there are no more rows that are added to them; less than 0: the text itself has that many too many. INT64_MAX: no rows are
 * added to its tokens. */
int64_t llm_session_rows_left(const llm_session *s, const int32_t *id, int64_t n);
/* Returns how many of token[0..n_token), the next ones of a slot, to run together in place of the first n. Rows of a picture that see each other are
 * not parted: it ends before one, or, if nothing is before it, behind it. Such a picture has at most n_ubatch rows. */
int64_t llm_session_whole_rows(const llm_session *s, const int32_t *token, int64_t n_token,
                               int64_t n);
/* Returns how many rows of its picture come before the one with this id, and sets *n to how many the picture has; 0 and 0: it is a token, or not
 * there. */
int64_t llm_session_row_of(const llm_session *s, int32_t id, int64_t *n);
/* Length of the rows of another model that a session of guesses reads (llm_arch_result.n_feature); 0: it reads n_row numbers. */
int64_t llm_session_n_feature(const llm_session *s);
/* In a session of guesses: the first token of a text is not among those that are run. */
bool llm_session_from_second(const llm_session *s);
/* In a session that guesses in blocks: the token of a mask, which stands where one is guessed. */
int32_t llm_session_mask(const llm_session *s);
/* How many scores `each` gets, n_vocab or, of guesses for some of the tokens, fewer; and which token the i-th of these is for, in the vocabulary; -1:
 * the model gave none. */
int64_t llm_session_n_logits(const llm_session *s);
int32_t llm_session_token_of(const llm_session *s, const float *logits, int64_t i);
/* The chance that the likeliest of these guesses is right, if the model gives it; else `share`, that of its scores. */
float llm_session_chance(const llm_session *s, const float *logits, float share);
/* True if the session tells rows: with llm_session_params.rows or .tap, and one of guesses whose rows the next layer
 * that guesses reads. */
bool llm_session_tells(const llm_session *s);
/* In such a session, calls hear(ctx, slot, pos, token, row) for each token, in their order, when
 * its batch is collected; row [n_row] is valid during the call. hear NULL: no more. */
void llm_session_hear(llm_session *s,
                      void (*hear)(void *ctx, int slot, int64_t pos, int32_t token,
                                   const float *row),
                      void *ctx);

typedef struct llm_batch {
    int64_t n;            /* any number; split into ubatches */
    const int32_t *token; /* [n]; below 0: a row of params.media */
    const int32_t *slot;  /* [n]: the slot to append each token to; NULL: all to slot 0 */
    /* [n]: of which text of several side by side each token is (llm_arch_result.n_token_types); not read if the model knows no types. NULL:
     * all are 0. */
    const int32_t *type;
    /* [n]: of a text that is seen whole, how many of its tokens all see, from the first on; 0, or NULL: all. */
    const int32_t *seen;
    const float *const *
        share; /* [n]: the shares of each token, [llm_session_n_tasks], finite; NULL, here or there: llm_session_shares */
    /* [n][n_row], in a session of guesses, NULL in others: what the model gave for the token before each one (zeros
     * before the first), or a guess before that. */
    const float *row;
    /* [n][n_feature] in place of row: of a session that guesses for another model, what that gave for the token before. With
     * llm_arch_result.guess_stays it is always given, and row, too, for a guess after a guess. */
    const float *feature;
    /* Of a stage over rows, in place of token: values of each of its inputs (llm_session_rows_input), n rows each. NULL in other
     * sessions. */
    const float *const *input;
    /* A block of guesses (llm_arch_result.n_guess_block), which see each other: at most n_ubatch tokens, in one slot, and n_rows wanted. They have
     * neither row nor feature, and what their slot has of states begins with zeros. */
    bool is_block;
    /* [n]: tokens whose logits are wanted; NULL: only the last, or none with want_embedding */
    const bool *want;
    /* [n]: tokens whose embeddings are wanted; NULL: none. An embedding is what the model's last product
     * makes the logits from. Ubatches in which no logits are wanted compute none. */
    const bool *want_embedding;
    const bool *want_score; /* [n]: the same for scores; NULL: none */
    /* [n]: the same for alignments: which share of attention the token gives to each row that its slot reads, by heads that show when a
     * token is heard. Ubatches in which none are wanted compute none. */
    const bool *want_alignment;
    /* Called for each token of `want`, in order, with its logits [n_vocab], valid during the
     * call; if the batch is one ubatch with at most n_rows wanted tokens, until the next eval.
     * NULL: none. */
    void (*each)(void *ctx, int64_t i, const float *logits);
    /* The same for each token of `want_embedding`, with its embedding [n_embd]. */
    void (*each_embedding)(void *ctx, int64_t i, const float *embedding);
    void (*each_score)(void *ctx, int64_t i, const float *score); /* [n_score] */
    /* [n_aligned_heads][n_aligned_rows] */
    void (*each_alignment)(void *ctx, int64_t i, const float *share);
    /* In a session of guesses, called before `each` with what the next guess reads as its row, [n_row]. */
    void (*each_row)(void *ctx, int64_t i, const float *row);
    /* Called after each ubatch. Returning false stops there with GGL_OK; llm_session_n_past
     * gives the tokens done. NULL: none. */
    bool (*progress)(void *ctx, int64_t n_done, int64_t n);
    void *ctx;
} llm_batch;

/* Appends tokens to slots. Allocates nothing. Fails without doing anything with GGL_LIMIT (a slot
 * would exceed n_ctx, or the slots together need more than llm_session_n_free) or GGL_USAGE (a token or slot is out of range, a slot is
 * broken, or embeddings are wanted of a session without them).
 *
 * If a run fails or is cancelled midway, the slots return to the last point with no ubatch in
 * flight (see llm_session_n_past). With one backend that runs synchronously this is the end of
 * the previous ubatch; with several backends it is the start of the call, and with a device that
 * works asynchronously it may be. If the model has states, or caches that keep only a window of rows,
 * returning may be impossible. The slot is then broken: clear it, or overwrite it by
 * llm_session_restore or llm_session_copy. A states-only snapshot is enough for that restore,
 * because the cache's rows are still there. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status llm_session_eval(llm_session *s, const llm_batch *b,
                                                           ggl_error *err);

/* The inputs of a stage over rows. */
int llm_session_n_rows_inputs(const llm_session *s);
const llm_rows_input *llm_session_rows_input(const llm_session *s, int k);
/* Where the values of input k may be written, as many rows as the session computes at once; what is here is not copied when it is
 * given as llm_batch.input[k] or to llm_session_read_rows. The session has its memory. */
float *llm_session_input_place(llm_session *s, int k);
/* True if a row of a stage depends on no other row, and not on its number: its rows may then run in pieces. */
bool llm_session_is_by_row(const llm_session *s);
/* Returns logits [n_vocab] of the last wanted token of the last eval; valid until the next eval. */
const float *llm_session_logits(const llm_session *s);

/* Several batches under way. With several backends, each can work on another batch: while one batch is
 * on the second backend, the next one is on the first. llm_session_submit starts a batch and returns
 * while it is computed; llm_session_collect waits for it and calls each and each_embedding for its
 * wanted tokens. The batch must fit into one ubatch: at most llm_session_n_ubatch tokens, and
 * llm_session_n_rows wanted ones. Its arrays may be changed once it is submitted, and progress is not
 * called. At most llm_session_n_lanes batches are under way, one for each backend that has layers; with
 * one backend, llm_session_submit computes the batch. Each slot is in one of them at most.
 *
 * Until all are collected, no other session may use the backends, and llm_session_eval fails. Until a
 * slot's batch is collected, calls that change, copy or save the slot fail (GGL_USAGE). Results have the
 * same bits.
 *
 * llm_session_submit fails as llm_session_eval does before it does anything, and with GGL_USAGE if the batch is
 * too large, or too many are under way. If a run fails or is cancelled, llm_session_collect returns that
 * for this batch and for those after it, and their slots return to where they were, or are broken. */
GGL_NODISCARD ggl_status llm_session_submit(llm_session *s, const llm_batch *b, uint64_t *ticket,
                                            ggl_error *err);
GGL_NODISCARD ggl_status llm_session_collect(llm_session *s, uint64_t ticket, ggl_error *err);
int llm_session_n_lanes(const llm_session *s);
/* Returns how many tokens of n are computed at once, at most n_ubatch, by so many backends that share the layers and work at the same
 * time, if a batch costs `cost` tokens beside its own. Backends are idle for as long as the first and the last piece are on others, so short
 * pieces are better, but each has its cost: for r backends and p tokens in a piece, (n + (r - 1) p) (1 + cost / p) is least at
 * p = sqrt(cost n / (r - 1)). */
int64_t llm_session_piece(int64_t n, int64_t n_ubatch, int n_backends, double cost);
/* What a batch costs a processor beside its tokens, in tokens, if each token uses all weights: one thread of a Zen 4 reads 160, 153, 146 and 131 tokens of a prompt in a
 * second in batches of 512, 128, 64 and 32 (TinyLlama 1.1B Q4_0). */
#define LLM_PROCESSOR_BATCH_COST 8
/* Returns over how many batches under way n sequences that generate should be divided: one for each lane,
 * but with four sequences at least, because devices need hardly longer for four tokens than for one. */
int llm_session_n_parts(const llm_session *s, int64_t n);

/* --- slots ------------------------------------------------------------------------------------ */

int64_t llm_session_n_past(const llm_session *s, int slot); /* tokens in the slot */
/* Runs a token in slot 0, which must be empty, and forgets it: the system gives memory when it is first used, and reads what is
 * mapped, so that the first text would wait for both. Fails as llm_session_eval does. */
GGL_NODISCARD ggl_status llm_session_warm_up(llm_session *s, ggl_error *err);
GGL_INTERNAL_API GGL_NODISCARD ggl_status llm_session_clear(llm_session *s, int slot,
                                                            ggl_error *err);
GGL_NODISCARD ggl_status llm_session_copy(llm_session *s, int dst, int src, ggl_error *err);
/* Makes slot dst hold the first n_past tokens of slot src: it shares the pages of the KV cache, which
 * takes no room, and gets a copy of the states and of caches that are windows. Pages stay as long as
 * any slot has them. dst may be src: that cuts it. GGL_USAGE: src has fewer tokens,
 * or is broken. GGL_UNSUPPORTED, without any change: as for llm_session_cut to n_past tokens, so
 * with states n_past must be all of src's tokens, or 0. */
GGL_NODISCARD ggl_status llm_session_share(llm_session *s, int dst, int src, int64_t n_past,
                                           ggl_error *err);
/* Cuts the sequence back to its first n_past tokens. GGL_UNSUPPORTED, with the reason and
 * without any change: the model has states, which cannot be cut (restore a snapshot instead), or
 * its cache is a ring that has overwritten rows it would need. A ring remembers the highest
 * position ever written, even after cuts, copies, saves and restores. */
GGL_NODISCARD ggl_status llm_session_cut(llm_session *s, int slot, int64_t n_past, ggl_error *err);

/* llm_session_n_free: tokens for which pages of the KV cache are free, a multiple of 64.
 * llm_session_n_needed: those of them that appending n_new tokens to the slot takes: none if its
 * last page has room for all and no other slot has that page, as it would be copied. A batch for
 * several slots fails if the sum of what they need is more than what is free; slots that share a page and
 * are all appended to need a copy less. Models without a KV
 * cache, or with windows only, need none, and n_free is INT64_MAX. */
int64_t llm_session_n_free(const llm_session *s);
int64_t llm_session_n_needed(const llm_session *s, int slot, int64_t n_new);
/* llm_session_n_shared: tokens of a slot in whole pages that other slots have, too; 0 without pages.
 * llm_session_n_cached: tokens of all slots; those of a shared page count once. */
int64_t llm_session_n_shared(const llm_session *s, int slot);
int64_t llm_session_n_cached(llm_session *s);

/* How far llm_session_cut can go back from the highest position ever written; INT64_MAX: to any. A model
 * with states cannot be cut at all. */
int64_t llm_session_cut_limit(const llm_session *s);
bool llm_session_has_states(const llm_session *s);

/* Saves a slot as bytes: all of it, with the text that its tokens read, or with states_only just the states that cannot be cut back.
 * The latter is a small snapshot for the same slot, usable while the slot's first n_past tokens
 * are unchanged. The caller frees *data with ggl_free. */
GGL_NODISCARD ggl_status llm_session_save(llm_session *s, int slot, bool states_only, void **data,
                                          size_t *size, ggl_error *err);
/* Bytes that all of a slot takes when it is saved. */
size_t llm_session_save_size(const llm_session *s, int slot);
/* Restores a saved slot. GGL_FORMAT: the bytes are damaged, or from another model or cache type, or
 * saved with other adapters;
 * GGL_LIMIT: they hold more than n_ctx tokens, or more than pages are free for. */
GGL_NODISCARD ggl_status llm_session_restore(llm_session *s, int slot, const void *data,
                                             size_t size, ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
