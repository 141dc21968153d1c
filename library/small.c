/* Writes a model for small boards: llm_write_small. */
#include <stdio.h>
#include <string.h>

#include "ggl/backends.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/params.h"
#include "ggl/internal/pass.h"
#include "llm/internal/model.h"
#include "llm/internal/small.h"
#include "llm/internal/token_list.h"
#include "llm/small.h"
#include "loading.h"

static ggl_status read_type(ggl_type *out, const char *name, const char *value, ggl_error *err) {
    const ggl_type_info *t = value ? ggl_type_find(value) : ggl_type_get(GGL_F16);
    if (!t || !ggl_store_can_keep(t->type))
        return ggl_fail(err, GGL_USAGE, "%s: '%s' is none of f32, f16, bf16, q8_0 and q4_0", name,
                        value);
    *out = t->type;
    return GGL_OK;
}

/* Refuses models that write no texts, or write one about something that they read first. */
static ggl_status check_outputs(const llm_model *m, ggl_error *err) {
    const llm_arch *arch = llm_model_arch(m);
    const char *name = ggl_gguf_name(llm_model_file(m));
    if (llm_arch_reads_text(arch))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "%s: the model %s; small boards run models that continue a text", name,
                        llm_arch_reads_rows(arch)
                            ? "writes down what it hears, which llm-transcribe does"
                            : "reads a whole text before it writes another one");
    if (llm_arch_has_output(arch, "logits"))
        return GGL_OK;
    return ggl_fail(
        err, GGL_UNSUPPORTED,
        "%s: the model writes no texts: it makes %s; the runtime for small boards needs "
        "a model that gives logits",
        name,
        llm_arch_reads_rows(arch) ? "rows of pictures or sound for one that does"
                                  : "vectors or scores of them");
}

/* Says that a board chooses tokens which the file suppresses. */
static ggl_status note_suppressed(const llm_model *m, const llm_small_params *p, ggl_error *err) {
    llm_token_list l;
    char text[1024];
    const char *name = ggl_gguf_name(llm_model_file(m));
    const ggl_status st = llm_token_list_read(&l, llm_model_file(m), LLM_SUPPRESS_TOKENS, err);
    snprintf(text, sizeof text,
             "%.400s: the plan lacks the %zu tokens of " LLM_SUPPRESS_TOKENS
             ": set their logits to -INFINITY before small_greedy or small_draw",
             name, l.n);
    if (l.n > 0 && p->note)
        p->note(p->user, text);
    llm_token_list_fini(&l);
    return st;
}

static ggl_status write_model(const char *model, const char *path, const llm_small_params *p,
                              llm_small_bytes *bytes, ggl_error *err) {
    llm_small_source source = {.n_ctx = p->n_ctx};
    llm_model *m = NULL;
    ggl_error why = {0};
    llm_arch_source weights;
    const llm_loading loading = {.path = model,
                                 .model = {.size = sizeof loading.model},
                                 .type = p->type,
                                 .type_name = "type",
                                 .n_threads = p->n_threads,
                                 .note = p->note,
                                 .ctx = p->user};
    if (p->n_ctx < 0)
        return ggl_fail(err, GGL_USAGE, "n_ctx is %lld, but must be 0 or more",
                        (long long)p->n_ctx);
    ggl_status st = read_type(&source.type_k, "cache_type_k", p->cache_type_k, err);
    if (st == GGL_OK)
        st = read_type(&source.type_v, "cache_type_v", p->cache_type_v, err);
    if (st == GGL_OK)
        st = llm_load_named(&m, &loading, err);
    if (st == GGL_OK)
        st = check_outputs(m, err);
    if (st == GGL_OK)
        st = note_suppressed(m, p, err);
    if (st == GGL_OK) {
        llm_note_context(m, p->n_ctx, p->note, p->user);
        weights = llm_arch_source_gguf(llm_model_file(m));
        source.arch = llm_model_arch(m);
        source.weights = &weights;
        source.name = ggl_gguf_name(llm_model_file(m));
        source.ignore = llm_model_ignore(m);
        source.n_ctx = p->n_ctx ? p->n_ctx : llm_model_n_ctx(m);
        if (llm_model_tokenizer(m, &source.words, &why) == GGL_NOMEM)
            st = ggl_pass(err, &why);
    }
    if (st == GGL_OK)
        st = ggl_backend_open(&source.fold, "reference", NULL, err);
    if (st == GGL_OK)
        st = ggl_backend_open(&source.fold_products, "cpu", NULL, err);
    if (st == GGL_OK)
        st = llm_small_write(&source, path, bytes, err);
    if (st == GGL_OK && p->note && (!source.words || *bytes->no_words)) {
        char text[1024];
        if (source.words)
            snprintf(
                text, sizeof text,
                "%.400s: %s: small boards cannot have such a tokenizer, so the plan has none; "
                "tokenize elsewhere (llm-tokenize): the plan reads and gives numbers of tokens",
                source.name, bytes->no_words);
        else
            snprintf(text, sizeof text, "the plan has no tokenizer: %.900s", why.msg);
        p->note(p->user, text);
    }
    ggl_backend_close(source.fold_products);
    ggl_backend_close(source.fold);
    llm_model_free(m);
    return st;
}

ggl_status llm_write_small(const char *model, const char *path, const llm_small_params *params,
                           llm_small_result *result, ggl_error *err) {
    llm_small_params own = {.size = sizeof own};
    llm_small_bytes bytes;
    ggl_status st = GGL_READ_PARAMS(llm_small_params, &own, params, err);
    if (st == GGL_OK)
        st = write_model(model, path, &own, &bytes, err);
    if (st != GGL_OK || !result)
        return st;
    const llm_small_result all = {.size = sizeof all,
                                  .n_ctx = bytes.n_ctx,
                                  .n_ops = bytes.n_ops,
                                  .weights = bytes.weights,
                                  .words = bytes.words,
                                  .ram = bytes.ram,
                                  .cache = bytes.stores};
    const size_t size = result->size;
    ggl_params_fill(result, size, &all, sizeof all);
    return GGL_OK;
}
