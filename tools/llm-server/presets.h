/* Where --models finds models: in a folder, or in a file of presets. */
#ifndef LLM_SERVER_PRESETS_H
#define LLM_SERVER_PRESETS_H

#include "models.h"

/* Adds a row for each model that --models names. argc, argv: the command line, whose flags are those of all models. What
 * is no model, or is damaged, gets a note. Returns -1, or an exit code after a message. */
int models_list(models *t, int argc, char **argv);

enum {
    ROW_LOADS = 1,    /* the model is loaded at the start */
    ROW_EYE_CAME = 2, /* server_options.mmproj_came */
    ROW_OWN_SIZES = 4 /* its own flags limit the tokens of pictures, not those for all models */
};

/* Adds a row. flags: those that are added to the command line's; borrowed as long as the table lives. tool: the beginning of messages. what: of
 * the above. (models_row.c) */
int models_list_add(models *t, const char *tool, const char *name, int argc, char **argv,
                    const char *const *flag, size_t n_flags, unsigned what);

/* Reads a file of presets:
 *
 *     # for all models
 *     [*]
 *     ctx-size = 8192
 *
 *     [qwen]                      ; the name of the model
 *     model = models/qwen.gguf
 *     temp = 0.7
 *     no-mmap                     ; the same as no-mmap = true
 *     load-on-startup = true
 *
 * text ends with a NUL; it is changed, and lives as long as the table. (presets.c) */
int presets_read(models *t, const char *path, char *text, int argc, char **argv);

#endif
