/* Functions that the commands of llm-gguf share. */
#ifndef TOOLS_GGUF_TOOL_H
#define TOOLS_GGUF_TOOL_H

#include "common/args.h"
#include "common/gguf_copy.h"
#include "common/pattern.h"

enum { GGUF_PAGE = 50 }; /* defects and findings that are printed as text; JSON has all */

/* A command; argv[0] is its name, such as "check". Returns the exit code. */
typedef int gguf_command(int argc, char **argv);
gguf_command gguf_check, gguf_diff, gguf_extract, gguf_get, gguf_hash, gguf_merge, gguf_set,
    gguf_show, gguf_split, gguf_unset;

/* Checks that a GGUF file is there and may be read. Returns -1, or an exit code after a message, which is copied to wrong. */
int gguf_check_path(const char *tool, const char *path, char *wrong, size_t size);

/* Patterns for names: regular expressions, any of which may match anywhere in the name. */
typedef struct gguf_patterns {
    llm_pattern **r;
    size_t n;
    bool *matched; /* [n]: whether gguf_patterns_match found a name for it */
} gguf_patterns;
/* Compiles the list. Returns -1, or an exit code after a message that names the flag. */
int gguf_patterns_open(const char *tool, const char *flag, const arg_list *list,
                       gguf_patterns *out);
/* True if a pattern matches, or without patterns. */
bool gguf_patterns_match(const gguf_patterns *p, ggl_str name);
/* Warns about each pattern of the list that has matched none of the things ("key", "tensor"). */
void gguf_patterns_warn(const char *tool, const char *flag, const arg_list *list,
                        const gguf_patterns *p, const char *thing);
void gguf_patterns_close(gguf_patterns *p);

#endif
