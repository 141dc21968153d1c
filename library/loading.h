/* Opens a model by its path, or by the name of a built-in one or of a repository. */
#ifndef LIBRARY_LOADING_H
#define LIBRARY_LOADING_H

#include "llm/internal/model.h"

/* What can be said about reading a model's file. All pointers are borrowed. */
typedef struct llm_loading {
    /* A GGUF file, a folder or checkpoint that is converted, "builtin:NAME", or "hf:USER/REPO[:QUANT]" */
    const char *path;
    llm_model_params model; /* `load` is not read */
    bool eye;               /* as llm_load_params.eye */
    const ggl_gguf *target; /* as llm_load_params.target */
    const char *type;       /* as llm_load_params.type */
    const char *type_name;  /* how messages name `type`: "--type" */
    int n_threads;          /* that convert; 0: all that we may use */
    const char *hub_token;
    bool offline;
    /* As llm_open_params.progress and note. */
    bool (*progress)(void *ctx, size_t done, size_t total);
    void (*note)(void *ctx, const char *text);
    void *ctx;
} llm_loading;

/* Statuses as of llm_open. */
ggl_status llm_load_named(llm_model **out, const llm_loading *l, ggl_error *err);

/* True also of other names of one file, and if both are NULL. */
bool llm_is_same_path(const char *a, const char *b);
/* True if both read the same files in the same way, so that what one of them opens can be shared (llm_model_beside), if the files have not
 * changed since. */
bool llm_loading_is_same(const llm_loading *a, const llm_loading *b);

/* Says so if a context of n_ctx tokens is longer than that of the training. note: NULL, or called once at most. */
void llm_note_context(const llm_model *m, int64_t n_ctx, void (*note)(void *ctx, const char *text),
                      void *ctx);

#endif
