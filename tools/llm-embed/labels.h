/* The names of the scores that a classifier gives, from the key ARCHITECTURE.classifier.output_labels of a model's file. */
#ifndef TOOLS_EMBED_LABELS_H
#define TOOLS_EMBED_LABELS_H

#include "llm/llm.h"

typedef struct labels {
    char **name; /* [n] */
    size_t n;    /* 0: the file names none */
} labels;

/* Returns -1, or an exit code. */
int labels_read(labels *l, const llm_context *c);
/* The name of score k; NULL: it has none. */
const char *labels_of(const labels *l, size_t k);
void labels_fini(labels *l);

#endif
