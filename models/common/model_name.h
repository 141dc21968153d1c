/* Tells by a file's name whether it belongs to a model, and what it is for. */
#ifndef COMMON_MODEL_NAME_H
#define COMMON_MODEL_NAME_H

#include <stdbool.h>

/* True for the name of a file that is read from a Hugging Face folder, or from a folder in it, beside the weights, such as config.json or
 * tokenizer.model. */
bool llm_model_name_of_folder(const char *name);

/* True for a GGUF file that is not a language model itself: a projector for images (mmproj) or an
 * importance matrix. `path` may have folders, which do not count. */
bool llm_model_name_is_aside(const char *path);

/* Of several eyes (mmproj) of a model, that of the lowest number is taken: by the type of its weights in the file's name, f16, else bf16, q8_0, f32,
 * or another. -1: the name is no eye's. */
int llm_model_name_eye_rank(const char *path);

#endif
