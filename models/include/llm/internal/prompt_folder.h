/* A folder of prompt caches that several engines, programs and machines share: what one of them has computed of a beginning that prompts
 * have in common, the others load. An engine with a folder (llm_engine_params.prompts) uses it by itself:
 *
 * - A beginning is saved once two prompts have had it and went on differently, or when a sequence says that others will begin so
 *   (llm_sequence_params.n_beginning). Files are copied between two steps, and written by a thread.
 * - A sequence whose tokens begin as a file's do, with more of them than a slot has, gets a slot that the file has filled.
 *
 * A file is named by digests of the model with its settings, and of the tokens, so that all writers give the same beginning the same name;
 * it has both, and they are compared when it is read. It appears when it is complete. It is read into memory, so that nothing that others do to
 * it later matters. Tokens and bits are those without the folder. Whoever may write to the folder must be trusted: a digest finds damage, not malice.
 *
 * The folder is kept below a number of bytes: after each file that is written, those that were not used for the longest time are
 * removed (their time of change is that of their last use), as are files that a killed writer has left unfinished an hour ago. */
#ifndef LLM_PROMPT_FOLDER_H
#define LLM_PROMPT_FOLDER_H

#include "llm/internal/prompt_cache.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_prompt_folder llm_prompt_folder;

typedef struct llm_prompt_folder_params {
    size_t size;      /* sizeof(llm_prompt_folder_params): ggl/internal/params.h */
    const char *path; /* of the folder, which exists; copied */
    uint64_t n_bytes; /* of all of its caches; 0: 4 GiB */
    /* of one cache, which is copied to be written, and read into memory; 0: an eighth of n_bytes */
    uint64_t n_copy_bytes;
    llm_prompt_cache_params cache; /* its slot is not read */
    /* Called with a sentence when a file cannot be written or used, and once if a beginning is larger than n_copy_bytes, from any thread.
     * NULL: none. */
    void (*report)(void *ctx, const char *sentence);
    void *ctx;
} llm_prompt_folder_params;

/* Of one engine, for the session of its `cache`. GGL_USAGE: path is no folder that may be written; GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_prompt_folder_new(llm_prompt_folder **out,
                                               const llm_prompt_folder_params *p, ggl_error *err);
/* After the engine. Waits for the file that is being written. NULL is fine. */
void llm_prompt_folder_free(llm_prompt_folder *f);
/* Waits until all that was copied is written, or has failed. */
void llm_prompt_folder_settle(llm_prompt_folder *f);

typedef struct llm_prompt_folder_stats {
    int64_t n_loaded, n_loaded_tokens; /* files that were used, and their tokens */
    int64_t n_saved, n_removed;        /* files */
    int64_t n_failed;                  /* files that could not be written or used */
} llm_prompt_folder_stats;
llm_prompt_folder_stats llm_prompt_folder_get_stats(llm_prompt_folder *f);

/* --- for the engine, on its thread ---------------------------------------------------------------- */

enum { LLM_PROMPT_FOLDER_LEAST = 128 }; /* tokens of the shortest beginning that is saved */

/* Returns how many of these tokens the longest cache has that begins as they do: n_least or more; 0: there is none. */
int64_t llm_prompt_folder_find(llm_prompt_folder *f, const int32_t *token, int64_t n,
                               int64_t n_least);
/* Fills an empty slot with the cache of the first n tokens. *id: these, to be freed with ggl_free. GGL_LIMIT: too few pages of
 * the KV cache are free; after another failure the cache is not found again. The slot is empty after a failure. */
GGL_NODISCARD ggl_status llm_prompt_folder_load(llm_prompt_folder *f, int slot,
                                                const int32_t *token, int64_t n, int32_t **id,
                                                ggl_error *err);
/* Returns the longest beginning of at most n tokens that may be saved, if it is not there yet; else 0. */
int64_t llm_prompt_folder_wants(llm_prompt_folder *f, const int32_t *token, int64_t n);
/* Copies the first n tokens of a slot, of which llm_prompt_folder_wants has told, and lets them be written. */
void llm_prompt_folder_save(llm_prompt_folder *f, int slot, const int32_t *token, int64_t n);

#ifdef __cplusplus
}
#endif
#endif
