/* Files of PyTorch that are pickles, which can run any program when they are read. They are refused by
 * name, with what to do. */
#ifndef LLM_PICKLE_H
#define LLM_PICKLE_H

#include <stdbool.h>

#include "ggl/status.h"

/* Returns true if the file begins like a pickle, or like a zip file with a pickle (torch.save). */
bool llm_pickle_is(const char *path);
/* Returns the name of a file in the folder that is named like a pickle of weights (pytorch_model.bin,
 * consolidated.00.pth, model.ckpt), in buf; NULL: there is none. */
const char *llm_pickle_in(const char *folder, char *buf, size_t size);
/* The advice in messages that refuse a pickle. */
#define LLM_PICKLE_ADVICE                                                                          \
    "a pickle can run programs when it is read, so it is not opened; take the safetensors "        \
    "version "                                                                                     \
    "of the model, or make one with PyTorch: "                                                     \
    "safetensors.torch.save_file(torch.load(FILE, weights_only=True), \"model.safetensors\")"

#endif
