/* Files of PyTorch that are pickles, which can run any program when they are read. They are refused by
 * name, with what to do. */
#ifndef LLM_PICKLE_H
#define LLM_PICKLE_H

#include <stdbool.h>

#include "ggl/status.h"

/* Returns true if the file begins like a pickle, or like a zip file with a pickle (torch.save). */
bool llm_pickle_is(const char *path);
/* Returns true for the name of a file that is a pickle of weights (pytorch_model.bin, its index,
 * consolidated.00.pth, model.ckpt). */
bool llm_pickle_is_name(const char *name);
/* Returns the first such name in the folder, in buf; NULL if none. */
const char *llm_pickle_in(const char *folder, char *buf, size_t size);
/* Writes what to do instead of opening the pickle of that name, for messages; returns buf. The command
 * for a part of several (pytorch_model-00001-of-00002.bin) keeps the part's number. */
#define LLM_PICKLE_ADVICE 700 /* bytes that are enough */
const char *llm_pickle_advice(const char *name, char buf[LLM_PICKLE_ADVICE]);

#endif
