/* llm-arch embed: stores a descriptor in a model, as its key general.descriptor. */
#include <string.h>

#include "common/load.h"
#include "common/paths.h"
#include "ggl/internal/gguf.h"
#include "tool.h"

#define TOOL "llm-arch embed"

/* True if a key is no longer true of the new file. */
static bool is_dropped(ggl_str key) {
    return ggl_str_is(key, "general.descriptor") || (key.n > 6 && memcmp(key.s, "split.", 6) == 0);
}

static ggl_status write_model(const ggl_gguf *f, const char *text, size_t n, const char *path,
                              ggl_error *err) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    if (!w)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    for (size_t i = 0; i < ggl_gguf_n_values(f); i++)
        if (!is_dropped(ggl_gguf_value_at(f, i)->key))
            ggl_gguf_put_value(w, ggl_gguf_value_at(f, i));
    if (n > 0)
        ggl_gguf_put_string(w, "general.descriptor", text, n);
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)t->name.n, t->name.s);
        ggl_gguf_put_tensor(w, name, t->type, t->n_dims, t->ne, t->data);
    }
    ggl_status st = ggl_gguf_writer_write(w, path, err);
    ggl_gguf_writer_free(w);
    return st;
}

static int embed(const llm_arch *arch, const char *model, const char *out,
                 const tool_ignore *ignore) {
    ggl_error err = {0};
    ggl_gguf *f;
    arch_built b = {0};
    if (tool_open_gguf(&f, model, NULL, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    llm_arch_source source = llm_arch_source_gguf(f);
    size_t n;
    const char *text = llm_arch_text(arch, &n);
    /* check that it fits */
    ggl_status st =
        arch_build(&b, arch, &source, ignore, NULL, false, arch_context(f, 64), 16, NULL, &err);
    arch_print_notes(&b);
    if (st == GGL_OK)
        st = write_model(f, text, n, out, &err);
    if (st == GGL_OK)
        printf("%s: %s with %s (%zu bytes)\n", out, model, llm_arch_name(arch), n);
    else
        tool_error(TOOL, 1, "%s", err.msg);
    arch_built_fini(&b);
    ggl_gguf_close(f);
    return st == GGL_OK ? 0 : 1;
}

int arch_embed(int argc, char **argv) {
    arg_list files = {0};
    tool_ignore ignore = {0};
    const arg_option options[] = {IGNORE_OPTIONS(ignore), {0}};
    static const args_example examples[] = {
        {"llm-arch embed my.arch model.gguf with-descriptor.gguf",
         "writes a model that brings its descriptor along"},
        {0}};
    const args_spec spec = {
        TOOL,
        "FILE MODEL OUT [options]",
        "Writes OUT, which is MODEL with the descriptor FILE as its key "
        "general.descriptor, so that it runs on every\nengine that knows the language. "
        "The descriptor must fit the model. A split model becomes one file.",
        options,
        &files,
        NULL,
        .examples = examples};
    int code = arch_args(&spec, 3, 3, argc, argv);
    if (code >= 0)
        return code;
    const tool_path paths[] = {{"FILE", files.s[0], .written = false},
                               {"MODEL", files.s[1], .written = false},
                               {"OUT", files.s[2], .written = true}};
    code = tool_check_paths(TOOL, paths, 3);
    llm_arch *arch = code < 0 ? arch_open(TOOL, files.s[0]) : NULL;
    if (code < 0)
        code = arch ? embed(arch, files.s[1], files.s[2], &ignore) : 1;
    llm_arch_free(arch);
    args_list_fini(&files);
    ignore_fini(&ignore);
    return code;
}
