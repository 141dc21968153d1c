/* What the commands of llm-arch share. */
#ifndef TOOLS_ARCH_TOOL_H
#define TOOLS_ARCH_TOOL_H

#include "common/args.h"
#include "common/ignore.h"
#include "ggl/backends.h"
#include "ggl/sched.h"
#include "llm/model.h"

#define ARCH_TOOL_BACKENDS 8

/* A command gets its own arguments: argv[0] is "llm-arch check". Returns the exit code. */
typedef int arch_command(int argc, char **argv);
arch_command arch_check, arch_diff, arch_doctor, arch_embed, arch_graph, arch_init, arch_list,
    arch_show, arch_verify;

/* Reads a command's line: options may be empty; between least and most positional arguments, as `usage` names them. -1: go
 * on, and *out has them (args_list_fini). */
int arch_args(const char *tool, const char *usage, const char *about, const arg_option *options,
              size_t least, size_t most, int argc, char **argv, arg_list *out);

/* A descriptor: a file, or else the name of a built-in one ("llama"). Prints errors; NULL after one. */
llm_arch *arch_open(const char *tool, const char *file);

/* The graph of a descriptor and a source, finished and folded; `ignore` may be NULL. */
typedef struct arch_built {
    ggl_graph *graph;
    llm_arch_result result;
} arch_built;
ggl_status arch_build(arch_built *out, const llm_arch *arch, const llm_arch_source *source,
                      const tool_ignore *ignore, int64_t n_ctx, int64_t n_batch, ggl_backend *fold,
                      ggl_error *err);
/* The same, with more than the sizes said. */
ggl_status arch_build_graph(arch_built *out, const llm_arch *arch, const llm_arch_source *source,
                            const tool_ignore *ignore, const ggl_graph_params *params,
                            ggl_backend *fold, ggl_error *err);
void arch_print_notes(const arch_built *b); /* on stderr */
void arch_built_fini(arch_built *b);

/* The reference, and those that are compared with it. */
typedef struct arch_backends {
    ggl_backend *reference, *other[ARCH_TOOL_BACKENDS];
    int n_other;
} arch_backends;
/* Opens the reference and those named, the CPU if none is; or all of this build. False after an error, which is printed. */
bool arch_backends_open(const char *tool, const arg_list *names, bool all, arch_backends *b);
void arch_backends_close(arch_backends *b);

/* For commands that read no data: a note on stderr if the file's is not whole. */
void arch_note_truncated(const char *path);

/* n tokens that any model has: a fixed sequence below n_vocab. */
void arch_tokens(int32_t *token, int n, int64_t n_vocab);

/* The operator, and what it reads: "linear blk.0.attn_q.weight:q8_0", "attend scale 0.25 window 4096". */
const char *arch_node_op(const ggl_tensor *t, char *buf, size_t size);

#endif
