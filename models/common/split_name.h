/* Names of the files of split models: PREFIX-00001-of-00003.gguf to PREFIX-00003-of-00003.gguf. */
#ifndef COMMON_SPLIT_NAME_H
#define COMMON_SPLIT_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* Returns how many parts the model of a file has; 1: the name is not that of a part. */
int llm_split_n_parts(const char *path);
/* Writes the path of part k, from 1, of the same model; the path itself if it is no part. The result is as long as the path. */
void llm_split_part_path(char *buf, size_t size, const char *path, int k);
/* True unless the file is a later part of a split model. */
bool llm_split_is_first(const char *path);

#endif
