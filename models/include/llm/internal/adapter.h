/* Low-rank adapters (LoRA). An adapter changes some matrices of a model: where the model computes
 * with W [in, out], a session that uses the adapter computes with W + scale * B * A, without touching
 * W: the result of a product becomes W x + scale * B (A x), and a row that is looked up gets the row
 * of scale * B * A added. Any number of sessions of one model may use any adapters, each with its own
 * scale; adapters apply in their order, and at scale 0 an adapter does nothing.
 *
 *     llm_adapter *a;
 *     if (llm_adapter_open(&a, "style.gguf", NULL, &err) != GGL_OK ||
 *         llm_adapter_check(a, model, &err) != GGL_OK) ...
 *     llm_adapter_use use[] = {{a, 1.0}};
 *     llm_session_params p = llm_session_default();
 *     p.adapter = use; p.n_adapters = 1;
 *     .. sessions ..
 *     llm_adapter_free(a);      // after the sessions
 *
 * The file is GGUF, as llama.cpp's convert_lora_to_gguf.py and llm-convert write it:
 *
 *     general.type = "adapter", adapter.type = "lora", general.architecture: that of the model
 *     adapter.lora.alpha        scale = the user's * alpha / rank; without it (or 0): the user's
 *     NAME.lora_a [in, rank], NAME.lora_b [rank, out]     for a weight NAME [in, out], of any type
 *                               that products accept; those of a stack of matrices [in, out, n] are
 *                               [in, rank, n] (or [in, rank], for all) and [rank, out, n]
 *     token_embd.weight.lora_a [rank, n_vocab], .lora_b [rank, n_embd]     the other way round
 *     NAME.lora_magnitude [out] or [out, n], f32, optional: the lengths of the changed rows (DoRA), so that the model computes
 *                               with magnitude * (W + scale * B * A) / |W + scale * B * A|, |..| being the length of each row. Not
 *                               of token_embd.weight
 *
 * Anything else in it is an error that names the key or tensor.
 *
 * A control vector is an adapter of another kind, and used in the same way: it adds scale * direction.N to the row that layer N hands on to layer N + 1 (layers
 * are counted from 0), of each token. The rows of layer 0 stay as they are. Its file is GGUF, as llama.cpp's cvector-generator and repeng write it:
 *
 *     general.architecture = "controlvector"
 *     controlvector.model_hint  optional: what kind of model it is for, in words of whoever made it. Other keys are not read
 *     direction.N [n_embd]      for layers N from 1 on, f32. No other tensors
 *
 * Threads: an opened adapter does not change, so any number may use it at the same time. */
#ifndef LLM_ADAPTER_H
#define LLM_ADAPTER_H

#include "llm/internal/arch.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_model llm_model; /* llm/internal/model.h */

/* Opens an adapter and checks all that can be checked without a model: keys, names, types, both
 * halves of each pair, and that their ranks agree. params may be NULL. On success the caller owns
 * *out, which never changes, so that threads may share it; on failure *out is NULL. GGL_FORMAT (it is
 * no adapter, a broken one, or one of PEFT, for which the message has the command that converts it), GGL_UNSUPPORTED (a kind of adapter that is not supported), GGL_SHAPE,
 * or as ggl_gguf_open. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status llm_adapter_open(llm_adapter **out, const char *path,
                                                           const ggl_gguf_params *params,
                                                           ggl_error *err);
/* The same for a file in memory that outlives the adapter. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status llm_adapter_open_memory(llm_adapter **out,
                                                                  const void *data, size_t size,
                                                                  const char *name, ggl_error *err);
/* The same for an opened file, which may have no data (ggl_gguf_compose). Takes over the file, also on failure. */
GGL_NODISCARD ggl_status llm_adapter_open_file(llm_adapter **out, ggl_gguf *file, ggl_error *err);
/* Opens a control vector, and checks that its tensors are directions of one length and of finite numbers. As llm_adapter_open. */
GGL_NODISCARD ggl_status llm_control_open(llm_adapter **out, const char *path,
                                          const ggl_gguf_params *params, ggl_error *err);
/* True if general.architecture says that the file is a control vector. */
bool llm_file_is_control(const ggl_gguf *file);
/* The same for a file in memory that outlives it. */
GGL_NODISCARD ggl_status llm_control_open_memory(llm_adapter **out, const void *data, size_t size,
                                                 const char *name, ggl_error *err);
/* NULL is fine. Sessions that use the adapter must be freed first. */
GGL_INTERNAL_API void llm_adapter_free(llm_adapter *a);

/* How many pairs of an adapter change a model, and how many the eye or ear beside it. */
typedef struct llm_adapter_parts {
    size_t n_model, n_eye;
} llm_adapter_parts;

/* Checks that a control vector fits the model: the numbers and the layers of its directions, and the range of layers in which it is used. Builds the model's
 * graph for that, without data. GGL_SHAPE, GGL_USAGE (the range), GGL_UNSUPPORTED (the model's layers hand on no row), or as llm_arch_build. */
GGL_NODISCARD ggl_status llm_control_check(const llm_adapter_use *use, const llm_model *m,
                                           ggl_error *err);

/* Checks that the adapter fits the model: the architecture, and for each pair that the model, or the eye or ear
 * beside it (NULL: there is none), has the weight, in this shape, and uses it only in ways that can be adapted. Builds
 * their graphs for that, without data. A session with this adapter fails with the same errors. *parts (may be NULL): if some
 * pairs are the eye's, sessions of both need llm_adapter_use.beside. GGL_FORMAT, GGL_SHAPE, GGL_UNSUPPORTED, or as
 * llm_arch_build. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status llm_adapter_check(const llm_adapter *a,
                                                            const llm_model *m,
                                                            const llm_model *eye,
                                                            llm_adapter_parts *parts,
                                                            ggl_error *err);
/* True if llm_adapter_use.varies is possible. It is not of adapters with magnitudes, which are no multiple of the scale; with pairs for an eye or an ear; of
 * models with a text that is read before they write; and where a weight is read otherwise than by products and lookups. Builds the model's graph, as
 * llm_adapter_check, which comes first. */
bool llm_adapter_can_vary(const llm_adapter *a, const llm_model *m);
/* Counts the pairs that change the model, which may be a text model, or an eye or an ear, and is alone. Pairs of tensors that it lacks are those of the other file if
 * llm_adapter_is_of_sense says so of their names, else GGL_NOT_FOUND; as is an adapter all of whose pairs are. Else as llm_adapter_check. */
GGL_NODISCARD ggl_status llm_adapter_count(const llm_adapter *a, const llm_model *m, size_t *n,
                                           ggl_error *err);

/* Calls fn for each weight of the model whose products are multiplied by a factor, the tensor NAME.scale
 * for the weight NAME.weight: the model computes with NAME.scale * NAME.weight, to which an adapter's
 * change is added. factor NULL: not all of its products are multiplied by it. The names are valid during
 * the call. Builds the model's graph, without data; fails as llm_arch_build. */
GGL_NODISCARD ggl_status llm_adapter_factors(const llm_model *m,
                                             void (*fn)(void *ctx, const char *weight,
                                                        const char *factor),
                                             void *ctx, ggl_error *err);

typedef struct llm_adapter_info {
    size_t n_pairs;               /* weights that it changes */
    size_t n_magnitudes;          /* those of them whose rows' lengths it sets (DoRA) */
    int64_t rank_min, rank_max;   /* the ranks of its pairs */
    double alpha;                 /* adapter.lora.alpha; 0: absent */
    size_t n_directions;          /* of a control vector, which has no pairs; 0: it is none */
    int64_t layer_min, layer_max; /* of these */
    size_t bytes;                 /* of all its tensors */
    ggl_str architecture, /* of a control vector: controlvector.model_hint, which may be empty */
        title;            /* general.name, which may be empty; both valid until it is freed */
} llm_adapter_info;
GGL_INTERNAL_API llm_adapter_info llm_adapter_describe(const llm_adapter *a);
/* True for a weight's name as the files of eyes and ears have them: it begins with v. or a., or with mm. or resampler. for what leads to the
 * text model. */
bool llm_adapter_is_of_sense(const char *name);
GGL_INTERNAL_API const ggl_gguf *llm_adapter_file(const llm_adapter *a);
/* Returns a number that differs for adapters with other tensors or another scale, mixed with that of
 * the adapters before it (0: none); at scale 0, `before`. What a session has computed, such as a
 * saved slot, is of use only to others with the same digest. Reads all of the adapter's data. */
uint64_t llm_adapter_digest(llm_adapter_use use, uint64_t before);

#ifdef __cplusplus
}
#endif
#endif
