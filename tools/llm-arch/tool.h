/* Functions that the commands of llm-arch share. */
#ifndef TOOLS_ARCH_TOOL_H
#define TOOLS_ARCH_TOOL_H

#include "common/args.h"
#include "common/ignore.h"
#include "ggl/backends.h"
#include "ggl/sched.h"
#include "llm/internal/model.h"

#define ARCH_TOOL_BACKENDS 8

/* A command; argv[0] is "llm-arch check", for example. Returns the exit code. */
typedef int arch_command(int argc, char **argv);
arch_command arch_check, arch_compile, arch_diff, arch_doctor, arch_embed, arch_graph, arch_init,
    arch_list, arch_show, arch_verify;

/* Reads a command's line: options, which may be NULL, and from `least` to `most` positional
 * arguments. Returns -1 with *spec->positional set (free with args_list_fini), or an exit code. */
int arch_args(const args_spec *spec, size_t least, size_t most, int argc, char **argv);

/* Returns true if the file begins like a GGUF file, or for the name of a built-in model. Does not read pipes. */
bool arch_is_model(const char *path);
/* Opens a descriptor: a file, or the name of a built-in one ("llama"). NULL after an error
 * message. */
llm_arch *arch_open(const char *tool, const char *file);

/* Returns n_ctx, or the context of the model's file (NULL: a made-up model) if that is less. */
int64_t arch_context(const ggl_gguf *file, int64_t n_ctx);

/* The finished and folded graph of a descriptor and a source. */
typedef struct arch_built {
    ggl_graph *graph;
    llm_arch_result result;
} arch_built;
/* Builds it; `ignore` may be NULL, `only` (llm_arch_params) too. */
ggl_status arch_build(arch_built *out, const llm_arch *arch, const llm_arch_source *source,
                      const tool_ignore *ignore, const char *only, bool given, int64_t n_ctx,
                      int64_t n_batch, ggl_backend *fold, ggl_error *err);
/* The same with all parameters of the graph, the number of tokens (0: the source's), and the
 * backend that folds it (NULL: it is not folded). */
ggl_status arch_build_graph(arch_built *out, const llm_arch *arch, const llm_arch_source *source,
                            const tool_ignore *ignore, const char *only, bool given,
                            const ggl_graph_params *params, int64_t n_vocab, ggl_backend *fold,
                            ggl_error *err);
void arch_print_notes(const arch_built *b); /* prints them on stderr */
void arch_built_fini(arch_built *b);

/* The reference, and the backends that are compared with it. */
typedef struct arch_backends {
    ggl_backend *reference, *other[ARCH_TOOL_BACKENDS];
    int n_other;
} arch_backends;
/* Opens the reference and the named backends, the CPU if none is named; `all`: all of this
 * build. False after an error message. */
bool arch_backends_open(const char *tool, const arg_list *names, bool all, arch_backends *b);
void arch_backends_close(arch_backends *b);

/* Prints a note on stderr if the file is truncated; for commands that do not read its data. */
void arch_note_truncated(const char *path);

/* Writes n tokens from a fixed sequence, all below n_vocab. */
void arch_tokens(int32_t *token, int n, int64_t n_vocab);

#endif
