/* Says why a folder is no model, and which file in it was probably meant. */
#ifndef COMMON_MODEL_FOLDER_H
#define COMMON_MODEL_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "ggl/status.h"

/* True for a folder, also for one without a model. */
bool llm_is_folder(const char *path);
/* True if the folder has a file of this name. */
bool llm_folder_has(const char *folder, const char *name);
/* True for a Hugging Face folder: one with config.json, unless its weights are those of GGUF files alone. */
bool llm_folder_is_model(const char *folder);

/* Reports a folder that is no model. *meant becomes the name of a GGUF file in it, the first of *n complete models, for the
 * caller to propose and to free by ggl_free; NULL: there is none. Returns GGL_IO, or GGL_NOMEM. */
ggl_status llm_folder_refuse(const char *folder, char **meant, size_t *n, ggl_error *err);
/* Reports a folder whose weights are in the form of their authors alone, with params.json and without config.json: GGL_IO. Any other: GGL_OK. */
ggl_status llm_folder_refuse_params(const char *folder, ggl_error *err);

#endif
