/* llm_arch_build: finds the family and the vocabulary's size, makes the inputs, runs the
 * statements, sets the output and checks the result. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "ggl/internal/params.h"
#include "compile.h"

/* Reads one of the engine's own keys, {arch}.NAME, a whole number from 1 to `most`. *out is 0 if
 * it is absent. False: it has another value, which is reported. */
static bool engine_key(arch_eval *ev, const char *name, double most, int64_t *out) {
    char key[2 * ARCH_MAX_NAME + 16];
    llm_arch_key k;
    llm_arch_item item = {0};
    snprintf(key, sizeof key, "%s.%s", ev->family, name);
    *out = 0;
    if (!ev->src->find_key(ev->src->ctx, key, &k))
        return true;
    bool number =
        !k.is_list && k.type == LLM_ARCH_NUMBER && ev->src->get_item(ev->src->ctx, &k, 0, &item);
    if (!number)
        return llm_arch_source_error(ev, "key %s is %s, but a whole number is expected", key,
                                     k.is_list                   ? "a list"
                                     : k.type == LLM_ARCH_STRING ? "a string"
                                                                 : "true or false");
    if (!(item.number >= 1 && item.number <= most) || item.number != floor(item.number))
        return llm_arch_source_error(
            ev, "key %s is %.12g, but a whole number from 1 to %.12g is expected", key,
            isnan(item.number) ? NAN : item.number, most);
    *out = (int64_t)item.number;
    return true;
}

/* Refuses a tokenizer with more tokens than vocab_size. Otherwise the first prompt with one of
 * the extra tokens would fail. */
static bool has_rows_for_tokens(arch_eval *ev, int64_t own) {
    llm_arch_key k;
    if (own <= 0 || ev->convert || !ev->src->find_key(ev->src->ctx, "tokenizer.ggml.tokens", &k) ||
        !k.is_list || k.n <= (uint64_t)own)
        return true;
    const unsigned long long n = k.n, rows = (unsigned long long)own;
    llm_arch_source_error(ev,
                          "the tokenizer has %llu tokens, but %s.vocab_size is %llu: the model has "
                          "no rows for the last %llu, which a prompt may contain. Convert it again "
                          "with llm-convert --extra-tokens cut",
                          n, ev->family, rows, n - rows);
    return false;
}

/* Returns the vocabulary's size: {arch}.vocab_size (`own`, if > 0), the tokenizer's tokens, or
 * the rows of the embedding. -1: unknown. */
static int64_t find_n_vocab(arch_eval *ev, int64_t own) {
    llm_arch_key k;
    llm_arch_tensor t = {
        .name = "token_embd.weight", .optional = true, .n_dims = 2, .ne = {1, 1, 1, 1}};
    if (own > 0)
        return own;
    if (ev->src->find_key(ev->src->ctx, "tokenizer.ggml.tokens", &k) && k.is_list)
        return k.n >= 1 && (double)k.n <= ARCH_MAX_DIM ? (int64_t)k.n : -1;
    return ev->src->find_tensor(ev->src->ctx, &t) && t.n_dims == 2 ? t.ne[1] : -1;
}

/* Makes the inputs token, pos and slot, and gives the predefined names their values. */
static bool bind_predefined(arch_eval *ev) {
    static const int slots[] = {SLOT_TOKEN, SLOT_POS};
    static const char *const inputs[] = {"token", "pos", "slot"};
    for (int k = 0; k < 3; k++) {
        ggl_tensor *t = ggl_graph_input(ev->g, inputs[k], GGL_I32, 0, NULL, true);
        if (!t) {
            ev->status = ggl_graph_error(ev->g, ev->err);
            return false;
        }
        if (k < 2)
            ev->global[slots[k]].v = llm_arch_tensor_value(t);
    }
    ev->global[SLOT_TOKEN].v.range = ev->n_vocab;
    ev->global[SLOT_POS].v.range = ev->n_ctx;
    ev->global[SLOT_POS].v.number_too = true;
    ev->global[SLOT_N_CTX].v = llm_arch_number((double)ev->n_ctx);
    ev->global[SLOT_N_VOCAB].v = llm_arch_number((double)ev->n_vocab);
    ev->global[SLOT_N_CTX].v.text = "n_ctx";
    ev->global[SLOT_N_VOCAB].v.text = "n_vocab";
    for (int k = 0; k < SLOT_FIRST_FREE; k++)
        ev->global[k].bound = true;
    return true;
}

/* Finds family, context and vocabulary, and sets up the evaluator. False: reported. */
static bool prepare(arch_eval *ev, const llm_arch_params *params) {
    int64_t n_ctx, n_vocab;
    if (!llm_arch_find_family(ev) || !engine_key(ev, "context_length", 0x1p53, &n_ctx) ||
        !engine_key(ev, "vocab_size", INT32_MAX, &n_vocab))
        return false;
    ev->n_ctx = params && params->n_ctx ? params->n_ctx : ggl_graph_get_params(ev->g)->n_pos;
    if (!(params && params->n_vocab) && !has_rows_for_tokens(ev, n_vocab))
        return false;
    ev->n_vocab = params && params->n_vocab ? params->n_vocab : find_n_vocab(ev, n_vocab);
    if (ev->n_vocab < 1 || ev->n_vocab > INT32_MAX) {
        llm_arch_source_error(ev,
                              "the size of the vocabulary is unknown: there is no %s.vocab_size, "
                              "tokenizer.ggml.tokens or token_embd.weight",
                              ev->family);
        return false;
    }
    ggl_graph_set_group(ev->g, -1);
    return llm_arch_adapt_init(ev) && llm_arch_eval_init(ev) && bind_predefined(ev);
}

/* Checks that 'logits' is a score for each token of the vocabulary and makes it the graph's
 * output. */
static bool give_logits(arch_eval *ev) {
    const arch_slot *s = &ev->global[ev->arch->logits];
    char shape[128], text[256];
    arch_place end = {&ev->arch->text, (uint32_t)(ev->arch->text.n > 0 ? ev->arch->text.n - 1 : 0),
                      1};
    if (!s->bound) {
        llm_arch_error(ev, end,
                       "'logits' has no value at the end: it is assigned only in a layer, or in a "
                       "branch that is not taken");
        return false;
    }
    if (s->v.kind != VAL_TENSOR) {
        llm_arch_error(ev, s->place, "logits must be a tensor: %s",
                       llm_arch_value_text(&s->v, text, sizeof text));
        return false;
    }
    ggl_tensor *t = s->v.t;
    if (t->n_dims != 1 || t->ne[0] != ev->n_vocab || !ggl_is_batched(t)) {
        llm_arch_error_hint(
            ev, GGL_SHAPE, s->place,
            "mostly logits = linear(x, output); a model without scores for tokens, such as an "
            "encoder, cannot be described",
            "logits is %s%s, but must have a score for each of n_vocab = %lld tokens",
            ggl_is_batched(t) ? "" : "a constant ", ggl_shape_text(t, shape, sizeof shape),
            (long long)ev->n_vocab);
        return false;
    }
    ggl_graph_output(ev->g, "logits", t);
    return llm_arch_graph_ok(ev, s->place) && llm_arch_check_use(ev, t);
}

/* Finds the product that makes the logits t: goes back from node to source, of several sources to the first
 * that leads to one; a change by an adapter is the second. All parts of joined logits must be products with
 * the same state; constants, as for tokens that cannot follow, do not count. NULL if none.
 * *steps limits the search. */
static const ggl_tensor *last_product(const ggl_tensor *t, int *steps) {
    if (!t || !ggl_is_batched(t) || --*steps < 0)
        return NULL;
    if (t->op == GGL_OP_LINEAR)
        return t;
    const bool is_joined = t->op == GGL_OP_CONCAT;
    const bool is_cut = t->op == GGL_OP_RESHAPE || t->op == GGL_OP_SPLIT;
    const ggl_tensor *found = NULL;
    for (int k = 0; k < t->n_src && (is_joined || !found); k++) {
        const ggl_tensor *s = t->src[k];
        if (!s || !ggl_is_batched(s) || (!is_joined && !is_cut && s->ne[0] != t->ne[0]))
            continue;
        const ggl_tensor *product = last_product(s, steps);
        if (is_joined && (!product || (found && found->src[0] != product->src[0])))
            return NULL;
        found = found ? found : product;
    }
    return found;
}

/* Makes the graph's output "embedding", if it is wanted. */
static bool give_embedding(arch_eval *ev) {
    if (!ev->params || !ev->params->embedding)
        return true;
    const arch_slot *s = &ev->global[ev->arch->logits];
    int steps = 1000;
    const ggl_tensor *last = last_product(s->v.t, &steps);
    if (!last || last->src[0]->n_dims != 1 || !ggl_is_batched(last->src[0])) {
        llm_arch_error_hint(ev, GGL_UNSUPPORTED, s->place, NULL,
                            "the model gives no embeddings: its logits are not the product of a "
                            "state and a matrix");
        return false;
    }
    ev->n_embd = last->src[0]->ne[0];
    ggl_graph_output(ev->g, "embedding", last->src[0]);
    return llm_arch_graph_ok(ev, s->place);
}

ggl_status llm_arch_build(const llm_arch *arch, const llm_arch_source *source,
                          const llm_arch_params *params, ggl_graph *graph, llm_arch_result *result,
                          ggl_error *err) {
    llm_arch_params own = {.size = sizeof own};
    if (result)
        *result = (llm_arch_result){0};
    const ggl_status st = GGL_READ_PARAMS(llm_arch_params, &own, params, err);
    return st == GGL_OK ? llm_arch_build_with(arch, source, params ? &own : NULL, graph, result,
                                              NULL, NULL, err)
                        : st;
}

ggl_status llm_arch_build_with(const llm_arch *arch, const llm_arch_source *source,
                               const llm_arch_params *params, ggl_graph *graph,
                               llm_arch_result *result, const arch_converter *convert,
                               struct arch_conversion *conv, ggl_error *err) {
    arch_eval ev = {.arch = arch,
                    .src = source,
                    .g = graph,
                    .err = err,
                    .layer = -1,
                    .convert = convert,
                    .conv = conv};
    ev.request = params ? &params->ignore : NULL;
    ev.params = params;
    ev.arena.limit = ARCH_MAX_MEMORY;
    if (result)
        *result = (llm_arch_result){0};
    bool ok = prepare(&ev, params);
    if (ok && !(llm_arch_run(&ev, arch->body) && llm_arch_place_parts(&ev) && give_logits(&ev) &&
                give_embedding(&ev) && llm_arch_check_unused(&ev) && llm_arch_adapt_finish(&ev))) {
        ok = false;
        if (!convert)
            llm_arch_report_keys_before(&ev);
    }
    ok = ok && (convert ? convert->expand_ignored(&ev) : llm_arch_check_source(&ev));
    if (result) {
        *result = (llm_arch_result){.family = ev.family,
                                    .n_vocab = ev.n_vocab,
                                    .n_embd = ev.n_embd,
                                    .n_layer = ev.n_layer,
                                    .notes = ev.notes,
                                    .line_ran = ev.line_ran};
        ev.notes = NULL;
        ev.line_ran = NULL;
    }
    llm_arch_known_free(ev.known);
    llm_arch_adapt_fini(&ev);
    llm_arch_eval_fini(&ev);
    if (!ok && ev.status == GGL_OK)
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory", arch->text.name);
    return ev.status;
}

void llm_arch_result_fini(llm_arch_result *r) {
    ggl_free(r->notes);
    ggl_free(r->line_ran);
    *r = (llm_arch_result){0};
}
