/* Keeps a slot in a file, so that a later program need not run the same beginning of a prompt again.
 * A file is used only by a session that would compute the same bits: it records digests of the
 * model, of the graph that the descriptor makes of it, of where that runs, and the types of the KV
 * cache. Text with a cache is the text without, bit for bit.
 *
 *     llm_prompt_cache *c;
 *     llm_prompt_cache_params p = {.size = sizeof p, .model = model, .session = session};
 *     if (llm_prompt_cache_new(&c, &p, &err) != GGL_OK) ...
 *     int64_t n;
 *     if (llm_prompt_cache_load(c, "chat.cache", ids, n_ids, &n, &err) == GGL_OK && n > 0)
 *         st = llm_engine_adopt(e, 0, ids, n, &err);
 *     .. run the prompt in that slot, with this cache as llm_sequence_params.keeps, and generate ..
 *     const int32_t *all = llm_engine_tokens(e, 0, &n_all);
 *     st = llm_prompt_cache_save(c, "chat.cache", all, llm_session_n_past(session, 0), &err);
 *
 * A program that keeps several beginnings has a file for each. Threads and processes may load and
 * save the same file at once: whoever loads gets all of one version of it. */
#ifndef LLM_PROMPT_CACHE_H
#define LLM_PROMPT_CACHE_H

#include "llm/internal/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_prompt_cache llm_prompt_cache;

typedef struct llm_prompt_cache_params {
    size_t size;            /* sizeof(llm_prompt_cache_params): ggl/internal/params.h */
    const llm_model *model; /* borrowed until the cache is freed, as is all here */
    llm_session *session;   /* of that model, allocated */
    int slot;
    /* Whatever else the numbers depend on, as a text to show: "f16-as-bf16, lora tune.gguf*0.5".
     * NULL: nothing. At most 1000 bytes. */
    const char *also;
} llm_prompt_cache_params;

/* Identifies the model: by the file's size, its time of change, its tensors and a sample of their data
 * (ggl_gguf_identify); a file in memory by all its bytes. GGL_USAGE, GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_prompt_cache_new(llm_prompt_cache **out,
                                              const llm_prompt_cache_params *p, ggl_error *err);
void llm_prompt_cache_free(llm_prompt_cache *c); /* NULL is fine */

/* Of a model that reads a text before it writes: a load is of use only if the sequence of the file has read this one, which it then
 * need not read again. Borrowed until the cache is freed, or has another one. */
void llm_prompt_cache_text(llm_prompt_cache *c, const int32_t *id, size_t n);

/* The states of a model that has some, after the first n tokens of a sequence: llm_session_save of states only. */
typedef struct llm_prompt_states {
    int64_t n;
    const void *data;
    size_t size;
} llm_prompt_states;

/* The next save also writes these, from which other prompts may go on: [n], by rising tokens, all fewer than those saved. Borrowed until then. */
void llm_prompt_cache_put_states(llm_prompt_cache *c, const llm_prompt_states *x, size_t n);
/* Each restore hands those of the file to `take`, with the sequence's tokens, once the slot holds it: x->n of these are theirs. They have been checked. */
void llm_prompt_cache_take_states(llm_prompt_cache *c,
                                  void (*take)(void *ctx, const int32_t *id,
                                               const llm_prompt_states *x),
                                  void *ctx);

/* Sets the slot to as much of the file's sequence as id[0 .. n) begins with, but not all n tokens: the
 * last one has to run, because its logits are wanted. *n_held (may be 0) is the number of tokens in
 * the slot. Unless it returns GGL_OK, the slot is empty. GGL_NOT_FOUND: there is no such file, or it
 * is empty; GGL_UNSUPPORTED: it was made with another model, descriptor, placement, version ..;
 * GGL_FORMAT: it is damaged, or no prompt cache; GGL_LIMIT: it holds more tokens than the context
 * does; GGL_IO. The message begins with the path. */
GGL_NODISCARD ggl_status llm_prompt_cache_load(llm_prompt_cache *c, const char *path,
                                               const int32_t *id, size_t n, int64_t *n_held,
                                               ggl_error *err);

/* Sets the slot to the whole sequence of a file, for a prompt that is not known yet. *id: its *n tokens, and, up to *n_all,
 * those after them that had not run (llm_prompt_cache_save_all); to be freed with ggl_free. Statuses as of
 * llm_prompt_cache_load, but GGL_FORMAT if the file is empty; GGL_LIMIT also if too few pages of the KV cache are free: then *n is the number of tokens all the same. The slot is as before after a failure, unless the backend failed in the middle:
 * then it is empty. */
GGL_NODISCARD ggl_status llm_prompt_cache_restore(llm_prompt_cache *c, const char *path,
                                                  int32_t **id, size_t *n, size_t *n_all,
                                                  ggl_error *err);

/* --- files of a folder, for serve/prompt_folder.c -------------------------------------------------- */

/* From now on the cache is for another slot of the session, which must exist. */
void llm_prompt_cache_set_slot(llm_prompt_cache *c, int slot);
/* A digest of all that a file must have been made with. */
uint64_t llm_prompt_cache_digest(const llm_prompt_cache *c);
/* llm_prompt_cache_restore of a file's bytes, which are aligned to 8 bytes. */
GGL_NODISCARD ggl_status llm_prompt_cache_restore_bytes(llm_prompt_cache *c, const void *data,
                                                        size_t size, int32_t **id, size_t *n,
                                                        size_t *n_all, ggl_error *err);
/* Copies id[0 .. n), the first n tokens of the slot, to be written later. GGL_UNSUPPORTED: the slot has more, and cannot be cut. */
typedef struct llm_prompt_copy llm_prompt_copy;
GGL_NODISCARD ggl_status llm_prompt_copy_new(llm_prompt_copy **out, llm_prompt_cache *c,
                                             const int32_t *id, size_t n, ggl_error *err);
/* Writes the file as llm_prompt_cache_save does, in place of whatever is there. From any thread, while the cache lives. */
GGL_NODISCARD ggl_status llm_prompt_copy_write(const llm_prompt_copy *x, const char *path,
                                               ggl_error *err);
void llm_prompt_copy_free(llm_prompt_copy *x); /* NULL is fine */

/* True if the slot could not be cut back to a prompt later, because the model has states or keeps only a window. Then a copy is to be kept
 * before the prompt's last token. */
bool llm_prompt_cache_wants_copy(const llm_prompt_cache *c);
/* Keeps a copy of the slot, which holds the tokens `id`, llm_session_n_past of them; the one before is dropped. */
GGL_NODISCARD ggl_status llm_prompt_cache_keep_copy(llm_prompt_cache *c, const int32_t *id,
                                                    ggl_error *err);

/* Writes a file from which a load can begin with id[0 .. n), the first n tokens of the slot; n is at most
 * llm_session_n_past. If the slot cannot be saved at n, the copy that llm_prompt_cache_keep_copy
 * has kept is written instead. The file appears when it is complete and on the disk; until then, and
 * after a failure, the old one stays. GGL_USAGE: llm_prompt_cache_check refuses the path, or n is
 * wrong; GGL_UNSUPPORTED: nothing can be saved; GGL_IO, GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_prompt_cache_save(llm_prompt_cache *c, const char *path,
                                               const int32_t *id, size_t n, ggl_error *err);
/* The same with the tokens id[n .. n_all) that come next and have not run, which llm_prompt_cache_restore returns, too; a load
 * has no use for them. */
GGL_NODISCARD ggl_status llm_prompt_cache_save_all(llm_prompt_cache *c, const char *path,
                                                   const int32_t *id, size_t n, size_t n_all,
                                                   ggl_error *err);
/* The same for the prompt id[0 .. n) of which a copy was kept last, whatever the slot holds by now:
 * writes the copy that was kept. GGL_NOT_FOUND: no copy of this prompt was kept. */
GGL_NODISCARD ggl_status llm_prompt_cache_save_copy(llm_prompt_cache *c, const char *path,
                                                    const int32_t *id, size_t n, ggl_error *err);

/* GGL_USAGE: the file is no prompt cache, or that of a model with another name; saving would leave it
 * as it is. A cache of another version of the same file, of other settings or a damaged one is
 * replaced. GGL_IO. */
GGL_NODISCARD ggl_status llm_prompt_cache_check(const llm_prompt_cache *c, const char *path,
                                                ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
