/* Opens the model that a tool was given: a GGUF file, or a Hugging Face folder, with progress and notes. */
#ifndef TOOLS_LOAD_H
#define TOOLS_LOAD_H

#include "llm/model.h"

/* Does what llm_model_open does; p.load is set here. For a folder it shows progress, prints the notes of its
 * conversion, and uses all processors. GGL_CANCELLED: process_stopped was set. */
ggl_status tool_load_model(llm_model **out, const char *path, const llm_model_params *p,
                           ggl_error *err);
/* The same by llm_load, for a tool that needs only the file. vocab_only: only keys and tokenizer of a
 * folder. */
ggl_status tool_load_file(ggl_gguf **out, const char *path, const ggl_gguf_params *p,
                          bool vocab_only, ggl_error *err);

#endif
