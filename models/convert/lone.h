/* Models that are published as one file, safetensors or ONNX, without a config.json: lone_files.txt says by which tensors each is known. */
#ifndef LLM_LONE_H
#define LLM_LONE_H

#include "common/json.h"
#include "safetensors.h"

/* Returns true if the file is one of those, or some ONNX file. */
bool llm_lone_is(const char *path);

/* Opens it as what a Hugging Face folder has. *config: {"architectures": [CLASS]}. The caller owns both; on failure they are NULL. how, bytes, and statuses:
 * as for llm_safetensors_open_other. */
GGL_NODISCARD ggl_status llm_lone_open(llm_safetensors **out, llm_json **config, const char *path,
                                       const ggl_file_how *how, const ggl_str *bytes,
                                       ggl_error *err);

#endif
