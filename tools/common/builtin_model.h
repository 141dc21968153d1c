/* The model linked into llm-cli (models/builtin), so that it runs without a file. */
#ifndef TOOLS_BUILTIN_MODEL_H
#define TOOLS_BUILTIN_MODEL_H

#include <stddef.h>

extern const unsigned char llm_builtin_model[];
extern const size_t llm_builtin_model_size;

#endif
