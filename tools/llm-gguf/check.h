/* What `llm-gguf check` looks at. Each function reports what it finds. */
#ifndef TOOLS_GGUF_CHECK_H
#define TOOLS_GGUF_CHECK_H

#include "tool.h"

typedef struct gguf_findings {
    size_t n;
    bool json;
    bool keeps;      /* findings are not printed, but kept in text */
    bool is_missing; /* one could not be kept: out of memory */
    char **text;     /* [n_text] */
    size_t n_text, cap;
} gguf_findings;
/* Frees what is kept. */
void gguf_findings_fini(gguf_findings *c);

/* Prints or keeps a finding: a sentence that names the key or tensor. Those after a page are only counted, if they are printed. */
void gguf_find(gguf_findings *c, const char *fmt, ...) GGL_PRINTF(2, 3);
/* The same for an error: its first line, and if that announces a list, the list, in one line; the text of a descriptor that it quotes
 * is left out. */
void gguf_find_error(gguf_findings *c, const ggl_error *err);

/* The places of tensors: gaps, order, bytes after the last one. */
void gguf_check_places(gguf_findings *c, const ggl_gguf *f);
/* Names and shapes: names that others do not read, dimensions of 0. */
void gguf_check_tensors(gguf_findings *c, const ggl_gguf *f);
/* Values: numbers that are NaN, infinite or out of range, text that is not UTF-8, lengths of the vocabulary. */
void gguf_check_keys(gguf_findings *c, const ggl_gguf *f);
/* The descriptor of the architecture: builds the graph of the model without its data. */
void gguf_check_model(gguf_findings *c, const char *path, const ggl_gguf *f);
/* The same for a file that was never written; takes it over. */
void gguf_check_composed(gguf_findings *c, ggl_gguf *f);
/* Decodes all weights on n_threads threads and looks for NaN and infinities, and in a model for matrices of zero bytes. False:
 * interrupted, or out of memory, after a message. */
bool gguf_check_data(gguf_findings *c, const ggl_gguf *f, int n_threads);

#endif
