/* Speech models in ggml's format before GGUF. All numbers are little-endian; nothing is aligned:
 *
 *   | "lmgg" | 11 i32: n_vocab n_audio_ctx n_audio_state n_audio_head n_audio_layer n_text_ctx n_text_state n_text_head n_text_layer
 *     n_mels ftype | i32 n_mel, i32 n_bin, n_mel * n_bin f32: the bands of the spectrogram | i32 n, and for each of n tokens its length,
 *     u32, and its bytes | tensors up to the file's end |
 *
 *   a tensor: | i32 n_dims, i32 length of the name, i32 type | n_dims i32: the extents, innermost first | name | data |
 *
 * ftype is the type of most tensors, plus 1000 times the version of the quantized types. Types have GGUF's numbers. The file has the
 * tokens of texts, in the order of their ids; the special ones are behind them, and have no names in the file (legacy_tokens.c). Other
 * models of that time have the same magic number, and another header. */
#ifndef LLM_LEGACY_H
#define LLM_LEGACY_H

#include "common/json.h"
#include "safetensors.h"

/* Returns true if the file begins like such a model: its header names the same number of bands twice. */
bool llm_legacy_is(const char *path);

/* Opens a file as what a Hugging Face folder has. *out: its tensors, of the file's types, and mel_filters if the bands are not Slaney's.
 * *config: the header as a config.json, with the architecture LegacySpeechModel. The caller owns both; on failure they are NULL. how,
 * bytes: as for llm_safetensors_open_other. GGL_FORMAT, GGL_LIMIT, GGL_UNSUPPORTED, GGL_IO or GGL_NOMEM; the message begins with the path. */
GGL_NODISCARD ggl_status llm_legacy_open(llm_safetensors **out, llm_json **config, const char *path,
                                         const ggl_file_how *how, const ggl_str *bytes,
                                         ggl_error *err);

/* Where the special tokens of a vocabulary are. */
typedef struct legacy_specials {
    int64_t end; /* the first special token, which ends a text; the start of a transcript follows */
    int64_t languages; /* their number */
} legacy_specials;
enum { LEGACY_LANGUAGES = 100 };
/* Finds them by the number of the model's tokens. False: no published vocabulary has that many. */
bool llm_legacy_find_specials(int64_t n_vocab, legacy_specials *out);

/* Returns the heads of attention that show when a token is heard, "layer,head,layer,head,..", of the published model whose decoder has these sizes; NULL: none
 * has. */
const char *llm_legacy_heads(int64_t n_layer, int64_t n_head, int64_t n_state, int64_t n_vocab);

/* Sets token[] to the bytes of the *n tokens in the file, which stay in `data`; the array is in the arena. For a file that llm_legacy_open
 * has opened. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_legacy_tokens(const void *data, ggl_arena *arena, ggl_str **token,
                                           int64_t *n, ggl_error *err);

#endif
