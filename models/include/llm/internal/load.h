/* Opens what a person has as a GGUF file: a GGUF file itself, a Hugging Face folder (config.json,
 * safetensors, tokenizer), a checkpoint of llama2.c, or a speech model in ggml's format before GGUF, without writing one. With vocab_only,
 * a tokenizer.json alone, too.
 *
 *     llm_load_params p = {.size = sizeof p, .n_threads = 8,
 *                          .open_backend = ggl_backend_open, .close_backend = ggl_backend_close};
 *     ggl_gguf *f;
 *     if (llm_load(&f, "Qwen3-0.6B", NULL, &p, &err) == GGL_OK) ..
 *     ggl_gguf_close(f);
 *
 * A folder goes through the convert section of its descriptor (llm/internal/convert.h), and has the keys and
 * tensors, to the last bit, of the file that llm_converter_write makes of it. Tensors that the
 * conversion does not change stay in the mapped files; all others are made in memory. `type` quantizes
 * in memory, to the bits of the file that llm-quantize makes.
 *
 * Threads: any number may call llm_load at the same time. */
#ifndef LLM_LOAD_H
#define LLM_LOAD_H

#include "ggl/backend.h"
#include "ggl/gguf.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ggl_backend_params; /* of ggl/backends.h */

typedef struct llm_load_params {
    size_t size; /* sizeof(llm_load_params): ggl/internal/params.h */
    /* Of a folder: the descriptor whose convert section is used, and the section's name, as in
     * llm_convert_params; NULL: those that config.json names. */
    const char *arch_path, *arch_class;
    /* Open and close the backend "reference", which computes constants of some conversions in double:
     * ggl_backend_open and ggl_backend_close of ggl/backends.h. NULL: such a folder is refused. */
    ggl_status (*open_backend)(ggl_backend **out, const char *name,
                               const struct ggl_backend_params *params, ggl_error *err);
    void (*close_backend)(ggl_backend *b);
    int n_threads; /* make tensors; 0: one. The result does not depend on it */
    /* What the weights become while they are loaded: "auto", "f32", "f16" or "bf16", as by llm-convert,
     * or a mix or type of llm-quantize, such as "q4_k_m", in any case. For a folder, or a GGUF file of
     * f32, f16 or bf16. Then all tensors are copied to memory. NULL: "auto", which changes no file. */
    const char *type;
    bool eye; /* of a folder: the eye beside the text model, as llm_convert_params.eye */
    bool ear; /* with `eye`: the ear that there is beside that eye */
    const ggl_gguf *target; /* of a folder: as llm_convert_params.target */
    bool vocab_only; /* of a folder: only keys and tokenizer, no tensors, which it may lack */
    /* Called in the caller's thread while tensors are made, with bytes done and in all; false ends
     * it with GGL_CANCELLED. May be NULL. */
    bool (*progress)(void *ctx, size_t done, size_t total);
    /* Called for each note about a folder: a line of text. May be NULL. */
    void (*note)(void *ctx, const char *text);
    void *ctx;
    /* As in llm_convert_params: tells, with vocab_only, that it failed because a key depends on the weights,
     * which are not there. May be NULL. */
    bool *needs_weights;
} llm_load_params;

/* Returns true if llm_load would convert what is at the path (or refuse it as a pickle), false if it
 * would open it as a GGUF file. */
bool llm_load_converts(const char *path);
/* Returns true if the path is a tokenizer.json, of whatever name, which llm_load opens with vocab_only. */
bool llm_load_is_tokenizer(const char *path);

/* Fails with GGL_USAGE and the nearest name if `type` (llm_load_params) is none. */
GGL_NODISCARD ggl_status llm_load_check_type(const char *type, ggl_error *err);

/* Opens a file or folder. gguf: how files are read; NULL: the defaults; with meta_only no tensor is
 * made, and those of a folder have no data. params: may be NULL. On failure *out is NULL. Fails as
 * ggl_gguf_open, or as llm_converter_open and llm_converter_write do; GGL_CANCELLED; GGL_USAGE: `type` is
 * none, or the file is quantized already.
 * ggl_gguf_name gives the path, without '/' at the end. ggl_gguf_digest is that of the converted
 * file. ggl_gguf_identify identifies the folder's safetensors and what was made of them. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status llm_load(ggl_gguf **out, const char *path,
                                                   const ggl_gguf_params *gguf,
                                                   const llm_load_params *params, ggl_error *err);

/* The same for a GGUF file in memory, which outlives *out; see ggl_gguf_open_memory. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status llm_load_memory(ggl_gguf **out, const void *data,
                                                          size_t size, const char *name,
                                                          const llm_load_params *params,
                                                          ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
