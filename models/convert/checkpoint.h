/* Checkpoints of llama2.c: one file with a header and the weights of a Llama model, in a fixed order.
 * All numbers are little-endian. There are three versions:
 *
 *   0  | 7 i32: dim hidden_dim n_layers n_heads n_kv_heads vocab_size max_seq_len | f32 weights |
 *      A negative vocab_size says that the classifier is a matrix of its own, at the file's end. In
 *      front of it are max_seq_len * dim / n_heads numbers that no program needs (tables of rope).
 *   1  | "24ka" | i32 1 | the 7 i32 | u8: 1 if the classifier is tok_embeddings | 0 .. up to byte 256 |
 *      f32 weights |
 *   2  the same with i32 2, and after the u8 an i32: the size of a group. Vectors are f32. A
 *      matrix is all its codes as i8, then a f32 factor for each group of codes: w = factor * code.
 *
 * The weights of one kind stand together for all layers; the order of the kinds is in checkpoint.c.
 * Heads have rope's pairs in adjacent rows. The tokenizer is in another file: sentence_pieces.h. */
#ifndef LLM_CHECKPOINT_H
#define LLM_CHECKPOINT_H

#include "common/json.h"
#include "safetensors.h"

/* Returns true if the file begins like a checkpoint of one of the versions, whatever its size. */
bool llm_checkpoint_is(const char *path);

/* Opens a checkpoint as what a Hugging Face folder has. *out: its tensors, with the names of Meta's
 * files (layers.0.attention.wq.weight); those of version 2 have the type I8, and their factors are
 * NAME.scales. *config: the header as a config.json, with the architecture Llama2cCheckpoint. The
 * caller owns both; on failure they are NULL. how, bytes: as for llm_safetensors_open_other. GGL_FORMAT, GGL_LIMIT,
 * GGL_IO or GGL_NOMEM; the message begins with the path. */
GGL_NODISCARD ggl_status llm_checkpoint_open(llm_safetensors **out, llm_json **config,
                                             const char *path, const ggl_file_how *how,
                                             const ggl_str *bytes, ggl_error *err);

#endif
