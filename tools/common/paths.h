/* Checks a run's files before anything is loaded: outputs can be written and are not inputs.
 *
 *     const tool_path paths[] = {{"-m", model}, {"--logits", logits, .written = true}};
 *     int code = tool_check_paths(TOOL, paths, 2); */
#ifndef TOOLS_PATHS_H
#define TOOLS_PATHS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct tool_path {
    const char *flag; /* for messages: "--logits", "OUT" */
    /* NULL: not given. Inputs may be "-" (standard input), a folder (all files in it except
     * *.gguf), or PREFIX-00001-of-0000N.gguf (all parts of the model). */
    const char *path;
    bool written;
    /* Written, but the run goes on without it if it cannot be written; not checked. */
    bool optional;
    bool needed; /* read, and must exist before anything else is loaded */
    /* needed, and a GGUF file or a Hugging Face folder: for parts of a folder the message says what
     * to give */
    bool model;
    bool no_folder;   /* a model, but no folder: the message has llm-convert's command.. */
    const char *also; /* ..and this; may be NULL */
    /* for `needed`: without a slash it may also be a name, which is looked up later */
    bool or_name;
} tool_path;

/* Returns -1 to continue, else the exit code after a message: 1 if an output cannot be written
 * or a needed input cannot be read; 2 if an output is also an input, is written twice, is where
 * stdout or stderr go, or is "-". */
int tool_check_paths(const char *tool, const tool_path *paths, size_t n);

#endif
