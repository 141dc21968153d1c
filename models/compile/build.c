/* llm_arch_build: finds the family and the vocabulary's size, makes the inputs, runs the
 * statements, sets the output and checks the result. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "ggl/internal/params.h"
#include "compile.h"
#include "rotate.h"

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
    if (!(item.number >= 1) || item.number != floor(item.number))
        return llm_arch_source_error(
            ev, "key %s is %.12g, but a whole number of at least 1 is expected", key,
            isnan(item.number) ? NAN : item.number);
    if (item.number > most)
        return llm_arch_source_error(ev, "key %s is %.12g, but at most %.0f is expected", key,
                                     item.number, most);
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
    if (!llm_arch_adapt_input(ev))
        return false;
    ev->global[SLOT_TOKEN].v.range = ev->n_vocab;
    ev->global[SLOT_POS].v.range = llm_arch_only_stage(ev) ? 1 : ev->n_ctx;
    ev->global[SLOT_POS].v.number_too = true;
    ev->global[SLOT_N_CTX].v = llm_arch_number((double)ev->n_ctx);
    ev->global[SLOT_N_VOCAB].v = llm_arch_number((double)ev->n_vocab);
    ev->global[SLOT_N_CTX].v.text = "n_ctx";
    ev->global[SLOT_N_VOCAB].v.text = "n_vocab";
    for (int k = 0; k < SLOT_FIRST_FREE; k++)
        ev->global[k].bound = true;
    return true;
}

/* True if the model computes with rows alone. */
static bool has_no_tokens(const llm_arch *arch) {
    return !arch->has_tokens && arch->last_stage && arch->last_stage->of_rows;
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
    if (ev->n_vocab < 1 && has_no_tokens(ev->arch))
        ev->n_vocab = 0;
    else if (ev->n_vocab < 1 || ev->n_vocab > INT32_MAX) {
        llm_arch_source_error(ev,
                              "the size of the vocabulary is unknown: there is no %s.vocab_size, "
                              "tokenizer.ggml.tokens or token_embd.weight",
                              ev->family);
        return false;
    }
    ggl_graph_set_group(ev->g, -1);
    return llm_arch_rotate_init(ev) && llm_arch_adapt_init(ev) && llm_arch_eval_init(ev) &&
           bind_predefined(ev);
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
    if (params && (params->n_taps < 0 || params->n_taps > LLM_ARCH_MAX_TAPS))
        return ggl_fail(err, GGL_LIMIT, "n_taps is %d, but must be 0 to %d", params->n_taps,
                        LLM_ARCH_MAX_TAPS);
    bool ok = prepare(&ev, params);
    if (ok && !((ev.ran = llm_arch_run(&ev, arch->body)) && llm_arch_place_parts(&ev) &&
                llm_arch_give_outputs(&ev) && llm_arch_check_unused(&ev) &&
                llm_arch_steer_finish(&ev) && llm_arch_adapt_finish(&ev))) {
        ok = false;
        if (!convert)
            llm_arch_report_keys_before(&ev);
    }
    ok = ok && (convert ? convert->finish(&ev) : llm_arch_check_source(&ev));
    if (result) {
        *result = (llm_arch_result){
            .family = ev.family,
            .n_vocab = ev.n_vocab,
            .n_embd = ev.output[OUT_EMBEDDING].n,
            .logits = ev.output[OUT_LOGITS],
            .embedding = ev.output[OUT_EMBEDDING],
            .score = ev.output[OUT_SCORE],
            .guess = ev.output[OUT_GUESS],
            .rows = ev.output[OUT_ROWS],
            .alignment = ev.output[OUT_ALIGNMENT],
            .n_row = ev.n_row ? ev.n_row : ev.output[OUT_ROWS].n,
            .n_feature = ev.features && !llm_arch_is_turn(&ev) ? ev.features->ne[0] : 0,
            .n_taps = ev.n_taps,
            .from_second = ev.over_from_second,
            .n_guess_layers = ev.n_guess_layers,
            .guess_apart = ev.guess_apart,
            .guess_stays = ev.guess_stays,
            .n_guess_block = ev.n_guess_block,
            .guess_first = ev.guess_first,
            .guess_in_turn = ev.in_turn != NULL,
            .guess_names = ev.guess_names,
            .guess_chance = ev.guess_chance,
            .guess_token = ev.guess_token,
            .sees_all = ev.n_stages > 0 && (!arch->has_tokens || ev.gives_stage) && !ev.is_causal,
            .is_causal = ev.is_causal,
            .reads_text = ev.n_stages > 0 && arch->has_tokens,
            .n_sources = ev.n_sources,
            .n_given = ev.n_given,
            .n_given_more = ev.n_given_more,
            .has_places = ev.has_places,
            .n_token_types = ev.n_token_types,
            .given_together = ev.given_together,
            .given_added = ev.given_added,
            .n_layer = ev.n_layer,
            .notes = ev.notes,
            .line_ran = ev.line_ran};
        memcpy(result->tap, ev.tap, sizeof ev.tap);
        for (int k = 0; k < ev.n_sources; k++)
            result->source[k] = ev.source[k].row;
        ev.notes = NULL;
        ev.line_ran = NULL;
    }
    llm_arch_known_free(ev.known);
    llm_arch_adapt_fini(&ev);
    llm_arch_rotate_fini(&ev);
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
