/* Whether a backend computes a model right. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "context.h"
#include "ggl/backends.h"
#include "ggl/internal/backends.h"
#include "ggl/internal/fold.h"
#include "ggl/internal/graph.h"
#include "measure/verify.h"
#include "measuring.h"

enum { VERIFY_TOKENS = 8, MOST_VERIFY_TOKENS = 4096 };

typedef struct verification {
    llm_context *c;
    llm_verify_params p;
    ggl_backend *fast, *reference;
    ggl_graph *graph;
    llm_arch_result arch;
    int32_t *token; /* [n] */
    size_t n;
    verify_result result;
} verification;

static ggl_status build(verification *v, const llm_context *c, ggl_error *err) {
    const llm_arch_source source = llm_arch_source_gguf(llm_model_file(c->model));
    const llm_arch_params ap = {.size = sizeof ap,
                                .ignore = llm_model_ignore(c->model),
                                .adapter = c->adapter,
                                .n_adapters = c->n_adapters};
    ggl_graph_params gp = ggl_graph_default();
    gp.n_pos = gp.n_batch = (int64_t)v->n;
    v->graph = ggl_graph_new(&gp);
    if (!v->graph)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_status st = llm_arch_build(llm_model_arch(c->model), &source, &ap, v->graph, &v->arch, err);
    if (st == GGL_OK)
        st = ggl_graph_finish(v->graph, err);
    return st == GGL_OK ? ggl_graph_fold(v->graph, v->reference, err) : st;
}

static ggl_status set_tokens(verification *v, ggl_error *err) {
    const int64_t n_vocab = v->arch.n_vocab;
    if (n_vocab == 0) /* it reads rows alone, which are made up */
        return GGL_OK;
    for (size_t i = 0; i < v->n; i++)
        v->token[i] =
            v->p.id ? v->p.id[i] : (int32_t)((uint32_t)i * 2654435761u % (uint64_t)n_vocab);
    return llm_check_tokens(v->token, v->n, n_vocab, err);
}

static ggl_status open_device(verification *v, ggl_error *err) {
    const llm_verify_params *p = &v->p;
    const ggl_backend_params bp = {.size = sizeof bp, .n_threads = p->n_threads, .mask = p->mask};
    const ggl_status st = ggl_backend_open(&v->fast, p->device ? p->device : "cpu", &bp, err);
    return st == GGL_OK || !p->device_name ? st : ggl_within(err, st, "%s", p->device_name);
}

/* Tells of the progress; false: the call is to end. */
static bool go_on(void *ctx, size_t done, size_t n) {
    const verification *v = ctx;
    return !llm_context_is_cancelled(v->c) && (!v->p.progress || v->p.progress(v->p.user, done, n));
}

static ggl_status compare(verification *v, llm_context *c, ggl_error *err) {
    const verify_watch watch = {go_on, v};
    if (v->p.n > MOST_VERIFY_TOKENS)
        return ggl_fail(err, GGL_USAGE, "n is %zu, but at most %d tokens can be verified", v->p.n,
                        MOST_VERIFY_TOKENS);
    v->n = v->p.n > 0 ? v->p.n : VERIFY_TOKENS;
    v->token = ggl_calloc(v->n, sizeof *v->token);
    ggl_status st = v->token ? open_device(v, err) : ggl_fail(err, GGL_NOMEM, "out of memory");
    if (st == GGL_OK)
        st = ggl_backend_open(&v->reference, "reference", NULL, err);
    if (st == GGL_OK)
        st = build(v, c, err);
    if (st == GGL_OK && v->p.note && v->arch.notes)
        v->p.note(v->p.user, v->arch.notes);
    if (st == GGL_OK)
        st = set_tokens(v, err);
    return st == GGL_OK ? llm_verify_graph(&v->result, v->graph, v->fast, v->reference, v->token,
                                           (int)v->n, &watch, err)
                        : st;
}

static void tell_node(const verification *v, const verify_node *n) {
    char text[160], shape[160];
    const llm_verify_node node = {.text = ggl_node_text(n->node, text, sizeof text),
                                  .origin = n->node->origin ? n->node->origin : "",
                                  .what = n->what,
                                  .departure = n->departure,
                                  .token = n->token,
                                  .element = n->element,
                                  .got = n->got,
                                  .want = n->want,
                                  .error = n->error,
                                  .unit = n->unit,
                                  .shape = ggl_shape_text(n->node, shape, sizeof shape)};
    v->p.each(v->p.user, &node);
}

static llm_verify_result verified(const verification *v) {
    const verify_result *r = &v->result;
    llm_verify_result out = {.n_nodes = (int64_t)r->n,
                             .n_refused = (int64_t)r->n_refused,
                             .whole_departs = r->whole_departs,
                             .whole = r->whole,
                             .rounding = r->rounding,
                             .n_nan = (int64_t)r->n_nan_outputs,
                             .largest = r->size,
                             .n_logits = (int64_t)r->n_outputs};
    const ggl_tensor *nan = r->first_nan;
    char text[160];
    if (nan)
        snprintf(out.first_nan, sizeof out.first_nan, "%s%s%s",
                 ggl_node_text(nan, text, sizeof text), nan->origin ? ", " : "",
                 nan->origin ? nan->origin : "");
    snprintf(out.device, sizeof out.device, "%s: %s", v->fast->name, v->fast->description);
    for (size_t i = 0; i < r->n; i++) {
        const bool departs = r->at[i].departure > 1;
        out.n_departed += departs;
        out.worst = fmax(out.worst, r->at[i].departure);
        if (v->p.each && (departs || v->p.all))
            tell_node(v, &r->at[i]);
    }
    return out;
}

ggl_status llm_verify(llm_context *c, const llm_verify_params *params, llm_verify_result *result,
                      ggl_error *err) {
    verification v = {.c = c, .p = {.size = sizeof v.p}, .result.first = -1};
    llm_context_start_beside(c);
    ggl_status st = GGL_READ_PARAMS(llm_verify_params, &v.p, params, err);
    if (st == GGL_OK)
        st = CHECK_RESULT(llm_verify_result, result, err);
    if (st == GGL_OK)
        st = compare(&v, c, err);
    if (st == GGL_OK) {
        const llm_verify_result r = verified(&v);
        st = GGL_WRITE_PARAMS(llm_verify_result, result, &r, err);
    }
    if (st == GGL_OK)
        st = ggl_trace_end(v.fast, err);
    llm_verify_result_fini(&v.result);
    ggl_graph_free(v.graph);
    llm_arch_result_fini(&v.arch);
    ggl_backend_close(v.fast);
    ggl_backend_close(v.reference);
    ggl_free(v.token);
    return llm_context_end_beside(c, st);
}
