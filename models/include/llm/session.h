/* A session runs a model: it owns the graph, the plans, and the slots. A slot is one sequence of
 * tokens and what the model keeps of it; tokens are appended to slots, several slots may share a
 * batch, and no sequence's bits depend on that.
 *
 *     llm_session_params p = llm_session_default();
 *     p.backend = (ggl_backend *[]){cpu}; p.n_backends = 1; p.fold = reference;
 *     if (llm_session_new(&s, model, &p, &err) != GGL_OK ||
 *         llm_session_alloc(s, &err) != GGL_OK) ...
 *     llm_session_eval(s, &(llm_batch){.n = n, .token = ids}, &err);
 *     const float *logits = llm_session_logits(s); // [n_vocab], of the last token
 */
#ifndef LLM_SESSION_H
#define LLM_SESSION_H

#include "ggl/sched.h"
#include "llm/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_session llm_session;

typedef struct llm_session_params {
    int64_t n_ctx;    /* most tokens of a slot; 0: the model's own (4096 if it does not say) */
    int64_t n_ubatch; /* most tokens computed at once; default 512 */
    int64_t n_slots;  /* default 1 */
    int64_t n_rows; /* logits wanted of one ubatch are computed so many at a time; default 1. Speed
                       and memory only */
    ggl_type type_k, type_v;     /* of the cache: f16 (default), f32, bf16, q8_0, q4_0 */
    ggl_backend *const *backend; /* borrowed until the session is freed */
    int n_backends;
    ggl_backend *fold; /* computes constants, in double, once: the reference backend */
    /* Which backend (index) runs a layer (-1: what comes before the first; n_layer: what follows the
     * last), or, with the name of a weight, what of the layer reads that (-1: no wish). NULL: the
     * first runs all. Called by llm_session_new. */
    int (*place)(void *ctx, int layer, int n_layer, const char *weight);
    void *place_ctx;
    bool strict; /* what a backend refuses is an error, and does not run on another one */
    /* Weights of products, laid out anew for the backend (ggl/sched.h): faster, and read from the
     * file once, at load. no_repack: used as the file has them, nothing is read before it is
     * wanted, and sessions and processes share the file's pages. */
    bool no_repack;
    /* While llm_session_alloc lays them out: bytes done, and of all. false: stop, GGL_CANCELLED.
     * NULL: none. */
    bool (*progress)(void *ctx, size_t done, size_t total);
    void *progress_ctx;
    /* Asked between the steps of a run: true ends llm_session_eval with GGL_CANCELLED. NULL: none. */
    bool (*cancelled)(void *ctx);
    void *cancelled_ctx;
    /* A file that keeps them for the next session, which maps it; rewritten when it does not fit
     * the model. "": the model's path with ".repack" after it. NULL: none. Needs a model that was
     * opened from a file. */
    const char *repack_cache;
} llm_session_params;

GGL_API llm_session_params llm_session_default(void);

/* Builds the graph and compiles it: all sizes are known after it, and can be printed, but nothing
 * is allocated. Errors as llm_arch_build and ggl_sched_new; GGL_LIMIT: n_ctx. */
GGL_API GGL_NODISCARD ggl_status llm_session_new(llm_session **out, const llm_model *m,
                                                 const llm_session_params *p, ggl_error *err);
GGL_API GGL_NODISCARD ggl_status llm_session_alloc(llm_session *s, ggl_error *err);
GGL_API void llm_session_free(llm_session *s);

GGL_API const ggl_sched *llm_session_sched(const llm_session *s);
GGL_API const char *llm_session_notes(
    const llm_session *s); /* what is worth a line each; "" if nothing */
/* The same of llm_session_alloc: what became of repack_cache. */
GGL_API const char *llm_session_load_notes(const llm_session *s);
GGL_API int64_t llm_session_n_ctx(const llm_session *s);
GGL_API int64_t llm_session_n_vocab(const llm_session *s);
GGL_API int64_t llm_session_n_layer(const llm_session *s);

typedef struct llm_batch {
    int64_t n;            /* any number; cut into ubatches */
    const int32_t *token; /* [n] */
    const int32_t *slot;  /* [n]: to which slot each is appended; NULL: all to slot 0 */
    const bool *want;     /* [n]: of which tokens logits are wanted; NULL: of the last */
    /* Called in order for each token of `want`, with its logits [n_vocab], valid during the call.
     * NULL: none. */
    void (*each)(void *ctx, int64_t i, const float *logits);
    /* Called after each ubatch; false: stop there (GGL_OK; llm_session_n_past says how far it
     * came). NULL: none. */
    bool (*progress)(void *ctx, int64_t n_done, int64_t n);
    void *ctx;
} llm_batch;

/* Appends tokens to slots. GGL_LIMIT: a slot would pass n_ctx (nothing is done); GGL_USAGE: a token
 * or slot is out of range, or a slot is broken (nothing is done). Allocates nothing.
 *
 * If a run fails on the way, or is cancelled, slots go back to the last moment when no ubatch was in
 * flight (llm_session_n_past): with one backend whose run waits, after the ubatch before; with several,
 * or a device that works by itself, this may be where the call began. Where that is not possible, because the model keeps states or a window of
 * rows that have moved on, the slot is broken: it must be cleared, or overwritten by
 * llm_session_restore or llm_session_copy, before it is used again. After a failed run
 * a snapshot of its states is enough for llm_session_restore, as the rows are still there. */
GGL_API GGL_NODISCARD ggl_status llm_session_eval(llm_session *s, const llm_batch *b,
                                                  ggl_error *err);
/* Logits [n_vocab] of the last token of the last eval for which they were wanted; valid until the
 * next. */
GGL_API const float *llm_session_logits(const llm_session *s);

/* --- slots ------------------------------------------------------------------------------------ */

GGL_API int64_t llm_session_n_past(const llm_session *s, int slot); /* tokens in the slot */
GGL_API GGL_NODISCARD ggl_status llm_session_clear(llm_session *s, int slot, ggl_error *err);
GGL_API GGL_NODISCARD ggl_status llm_session_copy(llm_session *s, int dst, int src, ggl_error *err);
/* Cuts the sequence back to its first n_past tokens. GGL_UNSUPPORTED, with the reason: the model
 * keeps states, which cannot be cut (restore a snapshot instead), or the cache is a ring that no
 * longer has the rows: it counts from the highest position that was ever written, however often the
 * sequence has been cut, copied, or saved and restored since. Then nothing is done. */
GGL_API GGL_NODISCARD ggl_status llm_session_cut(llm_session *s, int slot, int64_t n_past,
                                                 ggl_error *err);

/* A slot as bytes: all of it, or only what cannot be cut back (its states: a small snapshot, to be
 * restored into the same slot while its first n_past tokens are still in place). *data is the
 * caller's (ggl_free). */
GGL_API GGL_NODISCARD ggl_status llm_session_save(llm_session *s, int slot, bool states_only,
                                                  void **data, size_t *size, ggl_error *err);
/* GGL_FORMAT: the bytes are not of such a session (model, types of the cache), or damaged;
 * GGL_LIMIT: they hold more than n_ctx. */
GGL_API GGL_NODISCARD ggl_status llm_session_restore(llm_session *s, int slot, const void *data,
                                                     size_t size, ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
