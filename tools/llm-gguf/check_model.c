/* Checks a model against the descriptor of its architecture. */
#include <string.h>

#include "check.h"
#include "common/load.h"
#include "ggl/graph.h"
#include "llm/internal/adapter.h"
#include "llm/internal/model.h"

typedef struct missing_tensors {
    gguf_findings *c;
    const char *path;
    size_t n;
} missing_tensors;

static void on_missing(void *ctx, const char *name) {
    missing_tensors *m = ctx;
    if (m->n++ > 0) /* the first one is reported with advice */
        gguf_find(m->c, "tensor %s is missing in %s", name, m->path);
}

/* Builds the model's graph, which reads all keys and finds all tensors. missing: NULL, or where to
 * report the tensors that the file lacks; otherwise the first one is an error. */
static ggl_status build(const llm_model *m, missing_tensors *missing, ggl_error *err) {
    const llm_arch_source source = llm_arch_source_gguf(llm_model_file(m));
    const int64_t n_ctx = llm_model_n_ctx(m);
    ggl_graph_params gp = ggl_graph_default();
    gp.n_pos = n_ctx > 0 && n_ctx < gp.n_pos ? n_ctx : gp.n_pos;
    gp.n_batch = gp.n_batch < gp.n_pos ? gp.n_batch : gp.n_pos;
    ggl_graph *g = ggl_graph_new(&gp);
    const llm_arch_params ap = {
        .size = sizeof ap, .missing = missing ? on_missing : NULL, .ctx = missing};
    ggl_status s = g ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory");
    if (s == GGL_OK)
        s = llm_arch_build(llm_model_arch(m), &source, &ap, g, NULL, err);
    if (s == GGL_OK)
        s = ggl_graph_finish(g, err);
    ggl_graph_free(g);
    return s;
}

static void check_graph(gguf_findings *c, const char *path, const llm_model *m) {
    missing_tensors missing = {c, path, 0};
    ggl_error first = {0}, rest = {0};
    if (build(m, NULL, &first) == GGL_OK)
        return;
    gguf_find_error(c, &first);
    if (ggl_gguf_n_tensors(llm_model_file(m)) > 0 && build(m, &missing, &rest) != GGL_OK &&
        missing.n > 0)
        gguf_find_error(c, &rest);
}

static void check_tokenizer(gguf_findings *c, llm_model *m) {
    const llm_tokenizer *t;
    ggl_error err = {0};
    if (ggl_gguf_find(llm_model_file(m), "tokenizer.ggml.model") &&
        llm_model_tokenizer(m, &t, &err) != GGL_OK)
        gguf_find_error(c, &err);
}

static void check_opened(gguf_findings *c, const char *path, llm_model *m) {
    check_graph(c, path, m);
    check_tokenizer(c, m);
    llm_model_free(m);
}

void gguf_check_composed(gguf_findings *c, ggl_gguf *f) {
    ggl_error err = {0};
    ggl_str type = {"model", 5};
    llm_adapter *a = NULL;
    llm_model *m = NULL;
    (void)ggl_gguf_get_string(f, "general.type", &type, NULL);
    if (ggl_str_is(type, "adapter")) {
        if (llm_adapter_open_file(&a, f, &err) != GGL_OK)
            gguf_find_error(c, &err);
        llm_adapter_free(a);
    } else if (!ggl_str_is(type, "model")) {
        ggl_gguf_close(f);
    } else if (llm_model_open_file(&m, f, NULL, &err) != GGL_OK) {
        gguf_find_error(c, &err);
    } else {
        check_opened(c, ggl_gguf_name(f), m);
    }
}

void gguf_check_model(gguf_findings *c, const char *path, const ggl_gguf *f) {
    ggl_error err = {0};
    ggl_str type = {"model", 5};
    (void)ggl_gguf_get_string(f, "general.type", &type, NULL);
    if (ggl_str_is(type, "adapter")) {
        llm_adapter *a;
        if (llm_adapter_open(&a, path, NULL, &err) != GGL_OK)
            gguf_find_error(c, &err);
        llm_adapter_free(a);
        return;
    }
    if (!ggl_str_is(type, "model")) {
        tool_note("llm-gguf check", "general.type is '%.*s': not checked as a model", (int)type.n,
                  type.s);
        return;
    }
    llm_model *m;
    const ggl_gguf_params gp = {.size = sizeof gp, .meta_only = true};
    const llm_model_params mp = {.size = sizeof mp, .gguf = &gp};
    const bool is_builtin = strncmp(path, "builtin:", 8) == 0;
    if ((is_builtin ? tool_load_model(&m, path, &mp, 0, &err)
                    : llm_model_open(&m, path, &mp, &err)) != GGL_OK)
        gguf_find_error(c, &err);
    if (m)
        check_opened(c, path, m);
}
