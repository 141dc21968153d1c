/* Opens the model that a tool was given: a GGUF file, a Hugging Face folder, with progress and notes, or one of those
 * that are linked into the program, such as builtin:chat. */
#ifndef TOOLS_LOAD_H
#define TOOLS_LOAD_H

#include "llm/internal/model.h"
#include "loading.h"
#include "opening.h"
#include "tool_path.h"

/* The row of --type; `type` is an int, 0: none. */
#define LOAD_TYPE_OPTION(type)                                                                     \
    {                                                                                              \
        "--type", ARG_CHOICE, &(type), .value = "TYPE", .choices = tool_load_types(),              \
                                       .no_choice = "llm-quantize --help lists mixes and types",   \
                                       .help = "quantize the weights while they are loaded, to a " \
                                               "mix or type of llm-quantize, such as q4_k_m: for " \
                                               "folders, and files of f32, f16 or bf16"            \
    }
const char *const *tool_load_types(void); /* ends with NULL */

/* How a tool opens a model that runs, unless its options say more (open_options.h): for a folder it shows progress, prints the notes of its
 * conversion, and uses all processors. */
llm_opening tool_opening(const char *path);
/* llm_open_params.note, of a model of this path. */
void tool_load_note(void *path, const char *text);
/* Begins the line of progress of a model that is converted; true: it has begun, and progress_end ends it. */
bool tool_loading_begin(const char *path, const char *type);
/* Adds the command of llm-convert to the error of a failed conversion if it names flags of that. st: the status, which is returned.
 * path may be NULL. */
ggl_status tool_load_advise(ggl_status st, const char *path, ggl_error *err);
/* Loads with all of that. GGL_CANCELLED: process_stopped was set; GGL_NOT_FOUND: no model is built in under this name;
 * GGL_USAGE: --type was given for one that is. */
ggl_status tool_load_model(llm_model **out, const char *path, const llm_model_params *p, int type,
                           ggl_error *err);
/* Loads only the file, by llm_load. vocab_only: only keys and tokenizer of a
 * folder. */
ggl_status tool_load_file(ggl_gguf **out, const char *path, const ggl_gguf_params *p,
                          bool vocab_only, ggl_error *err);
/* Reports an unknown name that begins with "builtin:". Returns 2, or -1 for any other name. */
int tool_check_builtin(const char *tool, const char *name);
/* Does what ggl_gguf_open does, also for a model that is built in; for tools that convert nothing. */
ggl_status tool_open_gguf(ggl_gguf **out, const char *path, const ggl_gguf_params *p,
                          ggl_error *err);

/* Refuses a model that is no GGUF file: what would be converted while it is loaded, with llm-convert's
 * command, or what cannot be converted either. Returns -1 if the file may be one, or the exit code after
 * a message. Only path, flag and also of `p` count. */
int tool_refuse_converted(const char *tool, const tool_path *p);

#endif
