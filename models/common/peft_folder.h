/* Folders in which PEFT saves adapters: adapter_config.json, and the weights beside it. */
#ifndef COMMON_PEFT_FOLDER_H
#define COMMON_PEFT_FOLDER_H

#include <stddef.h>

#include "ggl/status.h"

/* Fails with GGL_FORMAT if `path` is such a folder, or a file of weights in one: the message has the command that makes a GGUF file of it. */
GGL_NODISCARD ggl_status llm_peft_refuse(const char *path, ggl_error *err);
/* The same for all folders, none of which is an adapter's file. */
GGL_NODISCARD ggl_status llm_peft_refuse_folder(const char *path, ggl_error *err);

#endif
