/* Tells by a file's name whether it belongs to a model, and what it is for. */
#ifndef COMMON_MODEL_NAME_H
#define COMMON_MODEL_NAME_H

#include <stdbool.h>

/* True for the name of a file that is read from a Hugging Face folder beside the weights, such as config.json, tokenizer.model or
 * 1_Pooling/config.json. */
bool llm_model_name_of_folder(const char *name);

/* True for a GGUF file that is not a language model itself: a projector for images (mmproj) or an
 * importance matrix. `path` may have folders, which do not count. */
bool llm_model_name_is_aside(const char *path);

/* True if the name ends with `end`, such as ".gguf". */
bool llm_ends_with(const char *name, const char *end);

#endif
