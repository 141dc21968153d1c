/* Layers of a model that guess the tokens after the next (multi-token prediction), in a file of their own: it has the model's keys, and of the tensors those
 * of these layers, as llama.cpp's convert_hf_to_gguf.py --mtp writes it.
 *
 * Threads: any number may call these at the same time, each for files of its own. */
#ifndef LLM_MTP_H
#define LLM_MTP_H

#include "ggl/gguf.h"

/* True if the file is one: it has layers, but not the first one, so it is no model by itself. */
bool llm_mtp_is(const char *path);
/* Replaces *file by one that has the layers of `path`, too, and, where keys of its architecture differ, the values of `path`; it owns both. gguf: how
 * `path` is read; NULL: the defaults. GGL_UNSUPPORTED: they are layers of another model, or it has them itself; GGL_NOMEM, or as ggl_gguf_open. On failure
 * *file is as before. */
GGL_NODISCARD ggl_status llm_mtp_join(ggl_gguf **file, const char *path,
                                      const ggl_gguf_params *gguf, ggl_error *err);

#endif
