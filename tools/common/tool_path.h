/* A path of a tool's command line, with what the tool does with the file. */
#ifndef TOOLS_TOOL_PATH_H
#define TOOLS_TOOL_PATH_H

#include <stdbool.h>

typedef struct tool_path {
    const char *flag; /* for messages: "--logits", "OUT" */
    /* NULL: not given. Inputs may be "-" (standard input), a folder (all files in it except
     * *.gguf), or PREFIX-00001-of-0000N.gguf (all parts of the model). */
    const char *path;
    bool written;
    /* Written, but the run goes on without it if it cannot be written; not checked. */
    bool optional;
    bool needed; /* read, and must exist before anything else is loaded */
    /* needed, and a GGUF file, a Hugging Face folder, or a name like builtin:chat: for parts of a folder
     * the message says what to give */
    bool model;
    bool no_folder;   /* a model, but no folder: the message has llm-convert's command.. */
    const char *also; /* ..and this; may be NULL */
    /* for `needed`: without a slash it may also be a name, which is looked up later */
    bool or_name;
} tool_path;

#endif
