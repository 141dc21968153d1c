#include "common/input.h"
#include "common/load.h"
#include "common/paths.h"
#include "ggl/internal/os_fs.h"
#include "tool.h"

#include <stdlib.h>
#include <string.h>

#include "ggl/internal/fold.h"
#include "llm/internal/load.h"

int arch_args(const args_spec *spec, size_t least, size_t most, int argc, char **argv) {
    static const arg_option none[] = {{0}};
    args_spec with_options = *spec;
    if (!spec->options)
        with_options.options = none;
    int code = args_parse_between(&with_options, least, most, argc, argv);
    for (size_t i = 0; code < 0 && spec->positional && i < spec->positional->n; i++) {
        const tool_path path = {"FILE", spec->positional->s[i],
                                .model = !llm_load_converts(spec->positional->s[i])};
        code = tool_check_paths(spec->tool, &path, 1);
    }
    return code;
}

bool arch_is_model(const char *path) {
    char magic[4] = "";
    if (strncmp(path, "builtin:", 8) == 0)
        return true;
    /* a pipe can be read only once */
    FILE *f = ggl_os_is_file(path) ? ggl_os_fopen(path, "rb") : NULL;
    const bool is = f && fread(magic, 1, sizeof magic, f) == sizeof magic &&
                    memcmp(magic, "GGUF", sizeof magic) == 0;
    if (f)
        fclose(f);
    return is;
}

llm_arch *arch_open(const char *tool, const char *file) {
    llm_arch *arch = NULL;
    ggl_error err = {0};
    if (arch_is_model(file)) {
        tool_error(tool, 1,
                   "%s: this is a model, but a descriptor is expected here: NAME.arch, or the name "
                   "of a built-in one ('llm-arch list'); 'llm-arch show %s' names the model's own",
                   file, file);
        return NULL;
    }
    if (strcmp(file, "-") != 0) {
        if (llm_arch_open_given(&arch, file, NULL, &err) != GGL_OK)
            tool_error(tool, 1, "%s", err.msg);
        return arch;
    }
    size_t n;
    char *text = tool_read_file(tool, file, &n);
    if (text && llm_arch_parse(&arch, text, n, file, &err) != GGL_OK)
        tool_error(tool, 1, "%s", err.msg);
    free(text);
    return arch;
}

ggl_status arch_build_graph(arch_built *out, const llm_arch *arch, const llm_arch_source *source,
                            const tool_ignore *ignore, const char *only, bool given,
                            const ggl_graph_params *params, int64_t n_vocab, ggl_backend *fold,
                            ggl_error *err) {
    llm_arch_params ap = {.size = sizeof ap, .n_vocab = n_vocab, .only = only, .given = given};
    if (ignore)
        ap.ignore = ignore_of(ignore);
    *out = (arch_built){.graph = ggl_graph_new(params)};
    if (!out->graph)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_status st = llm_arch_build(arch, source, &ap, out->graph, &out->result, err);
    if (st == GGL_OK)
        st = ggl_graph_finish(out->graph, err);
    if (st == GGL_OK && fold)
        st = ggl_graph_fold(out->graph, fold, err);
    if (st != GGL_OK)
        arch_built_fini(out);
    return st;
}

int64_t arch_context(const ggl_gguf *file, int64_t n_ctx) {
    const int64_t trained = file ? llm_model_file_n_ctx(file) : 0;
    return trained > 0 && trained < n_ctx ? trained : n_ctx;
}

ggl_status arch_build(arch_built *out, const llm_arch *arch, const llm_arch_source *source,
                      const tool_ignore *ignore, const char *only, bool given, int64_t n_ctx,
                      int64_t n_batch, ggl_backend *fold, ggl_error *err) {
    ggl_graph_params p = ggl_graph_default();
    p.n_pos = n_ctx;
    p.n_batch = n_batch < n_ctx ? n_batch : n_ctx;
    return arch_build_graph(out, arch, source, ignore, only, given, &p, 0, fold, err);
}

void arch_print_notes(const arch_built *b) {
    if (b->result.notes)
        tool_print_notes(b->result.notes);
}

void arch_built_fini(arch_built *b) {
    ggl_graph_free(b->graph);
    llm_arch_result_fini(&b->result);
    *b = (arch_built){0};
}

static bool open_named(const char *tool, const arg_list *names, const ggl_backend_params *params,
                       arch_backends *b) {
    ggl_error err = {0};
    if (names->n > ARCH_TOOL_BACKENDS)
        return tool_error(tool, 2, "--backend: %zu backends, at most %d are allowed", names->n,
                          ARCH_TOOL_BACKENDS) < 0;
    for (size_t i = 0; i < (names->n ? names->n : 1); i++, b->n_other++)
        if (ggl_backend_open(&b->other[i], names->n ? names->s[i] : "cpu", params, &err) != GGL_OK)
            return tool_error(tool, 1, "--backend: %s", err.msg) < 0;
    return true;
}

static bool open_all(const char *tool, const ggl_backend_params *params, arch_backends *b) {
    const char *name;
    ggl_error err = {0};
    for (int k = 0; (name = ggl_backend_name(k)) && b->n_other < ARCH_TOOL_BACKENDS; k++) {
        if (strcmp(name, "reference") == 0)
            continue;
        if (ggl_backend_open(&b->other[b->n_other], name, params, &err) == GGL_OK)
            b->n_other++;
        else
            tool_note(tool, "backend %s is skipped: %s", name, err.msg);
    }
    return b->n_other > 0 || tool_error(tool, 1, "there is no backend to run on") < 0;
}

bool arch_backends_open(const char *tool, const arg_list *names, bool all, arch_backends *b) {
    ggl_error err = {0};
    ggl_backend_params params = {.size = sizeof params,
                                 .n_threads = 1}; /* only small graphs are run here */
    *b = (arch_backends){0};
    if (ggl_backend_open(&b->reference, "reference", &params, &err) != GGL_OK)
        return tool_error(tool, 1, "%s", err.msg) < 0;
    if (all ? open_all(tool, &params, b) : open_named(tool, names, &params, b))
        return true;
    arch_backends_close(b);
    return false;
}

void arch_backends_close(arch_backends *b) {
    for (int i = 0; i < b->n_other; i++)
        ggl_backend_close(b->other[i]);
    ggl_backend_close(b->reference);
    *b = (arch_backends){0};
}

void arch_tokens(int32_t *token, int n, int64_t n_vocab) {
    for (int i = 0; i < n; i++)
        token[i] = n_vocab > 0 ? (int32_t)((uint32_t)i * 2654435761u % (uint64_t)n_vocab) : 0;
}

void arch_note_truncated(const char *path) {
    ggl_error err = {0};
    ggl_gguf *f = NULL;
    if (llm_load_converts(path))
        return; /* opening a folder has checked the lengths of its files */
    if (tool_open_gguf(&f, path, NULL, &err) != GGL_OK)
        tool_note(NULL, "%s", err.msg);
    ggl_gguf_close(f);
}
