/* Converts an adapter that Hugging Face's PEFT has saved: adapter_config.json and
 * adapter_model.safetensors, with pairs NAME.lora_A.weight [rank, in] and NAME.lora_B.weight
 * [out, rank] (in numpy's order) for modules of the model.
 *
 * The convert section of the model's class says how the model's weights are made from NAME.weight, and
 * each rearrangement of a matrix is one of its pair: a permutation of rows is one of B's rows, and so
 * on. So the section runs on the model's folder, or, if that has no tensors, on a made-up one that has
 * exactly the weights with pairs; of these only names and shapes matter. Each recipe is then taken
 * apart into recipes for the two halves. */
#ifndef LLM_CONVERT_LORA_H
#define LLM_CONVERT_LORA_H

#include "conversion.h"
#include "ggl/internal/gguf.h"

typedef struct llm_lora llm_lora;

/* Opens a PEFT folder and checks its config and tensors. *out is NULL on failure. GGL_UNSUPPORTED:
 * something that the GGUF form cannot express, by name. `ignore`: patterns for values of the config
 * that may be ignored. */
GGL_NODISCARD ggl_status llm_lora_open(llm_lora **out, const char *folder,
                                       const llm_arch_ignore *ignore, ggl_error *err);
/* Opens the adapter for a task that the model's folder has itself, with its config.json. The caller frees
 * *out, after a failure, too. GGL_USAGE: there is no such task. */
GGL_NODISCARD ggl_status llm_lora_open_task(llm_lora **out, const char *folder,
                                            const json_value *config, const char *task,
                                            ggl_error *err);
void llm_lora_free(llm_lora *l);
/* Checks what depends on the model: `config` is its config.json. writes: it has scores for tokens, which may be made from the embedding. */
GGL_NODISCARD ggl_status llm_lora_check_model(llm_lora *l, const json_value *config,
                                              const arch_convert *section, bool writes,
                                              ggl_error *err);
/* Checks, after llm_lora_take_apart, that whole weights beside the pairs are the model's own, in its folder. Sets note[size] to a line about them, or "". GGL_UNSUPPORTED:
 * one is not, or, if no pair is for it, cannot be compared. */
GGL_NODISCARD ggl_status llm_lora_check_copies(const llm_lora *l, const arch_convert *section,
                                               const char *folder, char *note, size_t size,
                                               ggl_error *err);
/* Chooses the tensors that recipes are made from. `opened`: the status of opening those of the
 * model's folder, *source. Without weights there (GGL_NOT_FOUND), sets *source to the weights with
 * pairs, which l owns, and c->partial. Else finds the weights in *source. Statuses: GGL_NOMEM, and `opened`. */
GGL_NODISCARD ggl_status llm_lora_choose_source(llm_lora *l, arch_conversion *c,
                                                llm_safetensors **source, ggl_status opened,
                                                ggl_error *err);
/* Checks that each pair is for a weight from which l's model, or the eye beside it, is made, or is one of zeros, and sets *zeros to the first weight of these (NULL: there is none) and
 * *n_zeros to their number. `eye`: the same adapter, taken apart for that eye; NULL: there is none. GGL_NOT_FOUND, GGL_UNSUPPORTED: it is not, for a model of this family. */
GGL_NODISCARD ggl_status llm_lora_check_used(const llm_lora *l, const llm_lora *eye,
                                             const char *family, const char **zeros,
                                             size_t *n_zeros, ggl_error *err);
/* True if it has pairs for other weights than those from which l's model is made. */
bool llm_lora_has_others(const llm_lora *l);
/* Replaces c's tensors by two for each that is made from a weight with a pair, NAME.lora_a and
 * NAME.lora_b, and with "use_dora" NAME.lora_magnitude; drops the others. GGL_SHAPE: a pair does not fit the model's matrix;
 * GGL_UNSUPPORTED, GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_lora_take_apart(llm_lora *l, arch_conversion *c, ggl_error *err);
/* Puts the keys of an adapter. */
void llm_lora_put_keys(const llm_lora *l, ggl_gguf_writer *w);

#endif
