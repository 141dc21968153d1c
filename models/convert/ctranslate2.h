/* Folders that CTranslate2's converters write: model.bin, config.json, and the vocabulary. All numbers of model.bin are little-endian; nothing is
 * aligned:
 *
 *   | u32 version, 2 to 6 | text: the kind of model, "WhisperSpec" | u32 revision | u32 n, and n variables | from version 3 on, u32 n, and n
 *     pairs of texts: another name, and the variable that it stands for |
 *
 *   a text: | u16 length, with its NUL | bytes | NUL |
 *   a variable: | text: "encoder/conv1/weight" | u8 n_dims | n_dims u32, outermost first | u8 type | u32 bytes | data |
 *
 * The types are f32, i8, i16, i32, f16 and bf16 (0 to 5). Before version 4, there is the size of a number in place of the type, and the number of
 * them in place of the bytes. NAME_scale has the numbers by which those of NAME were multiplied before they were rounded to integers, one for each
 * row, or one for all. */
#ifndef LLM_CTRANSLATE2_H
#define LLM_CTRANSLATE2_H

#include "common/json.h"
#include "safetensors.h"

/* Returns true for a folder whose model.bin begins like such a file, and for that file. */
bool llm_ctranslate2_is(const char *path);

/* Opens it as what a Hugging Face folder has. *out: variables, named as "encoder.conv1.weight"; NAME_scale is NAME_divisor. *config:
 *
 *     {"architectures": ["WhisperSpec"], "version": 6, "revision": 3, "layers": {"encoder": 6},
 *      "variables": {"encoder_conv1_weight": [512, 80, 3], "encoder_num_heads": 8},
 *      "aliases": {"decoder_projection_weight": "decoder/embeddings/weight"}, "settings": (the folder's config.json, or {})}
 *
 * where single numbers are no tensors, but values, and of layers the first is listed. The caller owns both; on failure they are NULL. how, bytes: as
 * for llm_safetensors_open_other. GGL_FORMAT, GGL_LIMIT, GGL_UNSUPPORTED, GGL_IO or GGL_NOMEM; the message begins with the path. */
GGL_NODISCARD ggl_status llm_ctranslate2_open(llm_safetensors **out, llm_json **config,
                                              const char *path, const ggl_file_how *how,
                                              const ggl_str *bytes, ggl_error *err);

#endif
