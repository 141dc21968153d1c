/* Makes the outputs of the graph: those that the descriptor names, and the embedding that is found behind
 * its logits if it names none. */
#include <inttypes.h>
#include <string.h>

#include "compile.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/graph.h"

/* Returns the place where values of the whole text are missing: its end. */
static arch_place end_of_text(const arch_eval *ev) {
    const arch_text *t = &ev->arch->text;
    return (arch_place){t, (uint32_t)(t->n > 0 ? t->n - 1 : 0), 1};
}

/* Returns the tensor, of n numbers, that the descriptor gives besides its guesses; NULL: none. */
static ggl_tensor *beside_guess(const arch_eval *ev, int slot, int64_t n) {
    const arch_value *v = slot >= 0 && ev->global[slot].bound ? &ev->global[slot].v : NULL;
    return v && v->kind == VAL_TENSOR && v->t->n_dims <= 1 && ggl_count(v->t) == n ? v->t : NULL;
}

/* True if the descriptor says which token each of the guesses is. Sets ev->guess_token, if a tensor of the file does. */
static bool names_tokens(arch_eval *ev, const ggl_tensor *guess) {
    ggl_tensor *t = beside_guess(ev, ev->arch->guess_token, guess->ne[0]);
    if (!t || (t->op != GGL_OP_WEIGHT && llm_arch_rows(ev, t) != llm_arch_rows(ev, guess)))
        return false;
    ev->guess_token = t->op == GGL_OP_WEIGHT ? t : NULL;
    return llm_arch_add_edge(ev, NULL, t);
}

/* Checks the shape of an output. */
static bool check_shape(arch_eval *ev, int k, const arch_slot *s, const ggl_tensor *t) {
    const char *name = llm_arch_output_names[k];
    char shape[128];
    const bool of_tokens = k == OUT_LOGITS || k == OUT_GUESS;
    const int rows = ggl_is_batched(t) ? llm_arch_rows(ev, t) : ROWS_NONE;
    const bool is_guess = rows == ROWS_TURN || (rows == ROWS_GUESS && !ev->in_turn);
    ggl_shape_text(t, shape, sizeof shape);
    if (is_guess != (k == OUT_GUESS))
        llm_arch_error(ev, s->place,
                       is_guess ? "%s is computed from a stage that guesses: only 'guess' can be"
                       : ev->in_turn
                           ? "%s must be computed from in_turn(x)"
                           : "%s must be computed from a stage over a value of each token",
                       name);
    else if (t->n_dims == 1 && ggl_is_batched(t) &&
             (!of_tokens || (k == OUT_GUESS && names_tokens(ev, t)) || t->ne[0] == ev->n_vocab))
        return true;
    else if (of_tokens)
        llm_arch_error_hint(ev, GGL_SHAPE, s->place,
                            "mostly logits = linear(x, output); a model that gives vectors or "
                            "scores has embedding = .. or score = ..",
                            "%s is %s%s, but must have a score for each of n_vocab = %lld tokens",
                            name, ggl_is_batched(t) ? "" : "a constant ", shape,
                            (long long)ev->n_vocab);
    else
        llm_arch_error_hint(ev, GGL_SHAPE, s->place, NULL,
                            "%s is %s%s, but must be a row of numbers that depends on the text",
                            name, ggl_is_batched(t) ? "" : "a constant ", shape);
    return false;
}

/* Notes what the result has to say of the output. */
static void note_output(arch_eval *ev, int k, const ggl_tensor *t) {
    const int rows = llm_arch_rows(ev, t);
    ev->gives_stage |= rows == ROWS_STAGE;
    llm_arch_output *o = &ev->output[k];
    o->n = t->ne[0];
    o->one_row = rows >= ROWS_PICKED;
    o->row = o->one_row ? ev->picked[rows - ROWS_PICKED] : 0;
}

/* Checks the chance that the descriptor gives besides its guesses, if it gives one. False: reported. */
static bool use_chance(arch_eval *ev, const ggl_tensor *guess) {
    const int slot = ev->arch->guess_chance;
    if (slot < 0 || !ev->global[slot].bound)
        return true;
    ggl_tensor *t = beside_guess(ev, slot, 1);
    if (t && llm_arch_rows(ev, t) == llm_arch_rows(ev, guess))
        return llm_arch_add_edge(ev, NULL, t);
    llm_arch_error(ev, ev->global[slot].place, "guess_chance must be one number of each guess");
    return false;
}

/* Makes output k, if the descriptor gives it; *out is NULL if not. False: reported. */
static bool give(arch_eval *ev, int k, ggl_tensor **out) {
    const int slot = ev->arch->output[k];
    const arch_slot *s = slot >= 0 ? &ev->global[slot] : NULL;
    char text[256];
    *out = NULL;
    if (!s || !s->bound)
        return true;
    if (s->v.kind == VAL_ROWS)
        return llm_arch_error(ev, s->place,
                              "%s: these rows are for another stage; only those of the last stage "
                              "can be an output",
                              llm_arch_output_names[k]),
               false;
    if (s->v.kind != VAL_TENSOR)
        return llm_arch_error(ev, s->place, "%s must be a tensor: %s", llm_arch_output_names[k],
                              llm_arch_value_text(&s->v, text, sizeof text)),
               false;
    *out = s->v.t;
    return check_shape(ev, k, s, *out) && (k != OUT_GUESS || use_chance(ev, *out));
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

/* Sets *out to what the last product on the way to the logits reads. False: reported. */
static bool find_embedding(arch_eval *ev, const ggl_tensor *logits, ggl_tensor **out) {
    int steps = 1000;
    const ggl_tensor *last = last_product(logits, &steps);
    if (!last || last->src[0]->n_dims != 1 || !ggl_is_batched(last->src[0])) {
        llm_arch_error_hint(ev, GGL_UNSUPPORTED, ev->global[ev->arch->output[OUT_LOGITS]].place,
                            NULL,
                            "the model gives no embeddings: its logits are not the product of a "
                            "state and a matrix");
        return false;
    }
    *out = last->src[0];
    return true;
}

static ggl_tensor *side_by_side(arch_eval *ev, ggl_tensor *a, ggl_tensor *b) {
    return a ? ggl_graph_op(ev->g, GGL_OP_CONCAT, (ggl_tensor *[]){a, b}, 2, (double[]){0}, 1) : b;
}

static ggl_tensor *as_row(arch_eval *ev, ggl_tensor *t) {
    double n = 1;
    for (int d = 0; d < t->n_dims; d++)
        n *= (double)t->ne[d];
    return t->n_dims == 1 ? t : ggl_graph_op(ev->g, GGL_OP_RESHAPE, &t, 1, &n, 1);
}

/* Puts what the descriptor computes besides the scores behind them. NULL: reported. */
static ggl_tensor *join_guess(arch_eval *ev, ggl_tensor *scores) {
    ggl_tensor *more[] = {ev->guess_token ? NULL
                                          : beside_guess(ev, ev->arch->guess_token, scores->ne[0]),
                          beside_guess(ev, ev->arch->guess_chance, 1)};
    ev->guess_names = more[0] != NULL;
    ev->guess_chance = more[1] != NULL;
    for (int k = 0; k < 2; k++)
        if (more[k]) /* tokens are indices */
            scores = side_by_side(
                ev, scores, as_row(ev, ggl_graph_op(ev->g, GGL_OP_CAST, &more[k], 1, NULL, 0)));
    return llm_arch_graph_ok(ev, ev->global[ev->arch->output[OUT_GUESS]].place) ? scores : NULL;
}

/* --- rows for a model that guesses --- */

static void *no_rows(arch_eval *ev, const char *why) {
    ev->status = ggl_fail(ev->err, GGL_UNSUPPORTED, "%s: %s", ev->family, why);
    return NULL;
}

/* Returns what the last attention with, or without, a window stores of a token. NULL: reported. */
static ggl_tensor *stored_rows(arch_eval *ev, bool window) {
    const ggl_tensor *last = NULL;
    for (size_t i = 0; i < ev->cap_made; i++) {
        const ggl_tensor *t = ev->made[i].t;
        if (t && t->op == GGL_OP_ATTEND && (ggl_attend_window(t) > 0) == window &&
            llm_arch_rows(ev, t) == ROWS_EACH)
            last = t;
    }
    const ggl_tensor *cache = last ? last->src[ATTEND_KV] : NULL;
    if (!cache || cache->op != GGL_OP_CACHE)
        return no_rows(
            ev, window
                    ? "the model has no attention with a window, whose keys and values are wanted"
                    : "the model has no attention that sees everything, whose keys and values are "
                      "wanted");
    ggl_tensor *row = NULL;
    for (int k = 0; k < cache->n_src; k++)
        if (cache->src[k] && !ggl_op_supplies(GGL_OP_CACHE, k))
            row = side_by_side(ev, row, as_row(ev, cache->src[k]));
    return row;
}

/* Returns one row for what a layer hands on: of the rows of hyper-connections the mean, as llama.cpp tells it. NULL: reported. */
static ggl_tensor *one_row(arch_eval *ev, ggl_tensor *t) {
    char key[2 * ARCH_MAX_NAME];
    llm_arch_key k;
    snprintf(key, sizeof key, "%s.hyper_connection.count", ev->family);
    if (!t || (t->n_dims > 1 && !ev->src->find_key(ev->src->ctx, key, &k)))
        return no_rows(ev, "the model's layers do not hand on one row of each token");
    if (t->n_dims == 1)
        return t;
    ggl_tensor *src[2] = {ggl_graph_op(ev->g, GGL_OP_SUM, &t, 1, (double[]){1}, 1),
                          ggl_graph_number(ev->g, (double)t->ne[1])};
    return ggl_graph_op(ev->g, GGL_OP_DIV, src, 2, NULL, 0);
}

/* Returns the rows of params.tap[k]. NULL: reported. */
static ggl_tensor *tapped_rows(arch_eval *ev, int k) {
    const int at = ev->params->tap[k];
    const int logits = ev->arch->output[OUT_LOGITS];
    ggl_tensor *t = NULL;
    if (at == LLM_TAP_STATE && (logits < 0 || ev->global[logits].v.kind != VAL_TENSOR))
        return no_rows(ev, "the model gives no logits");
    if (at == LLM_TAP_STATE)
        return find_embedding(ev, ev->global[logits].v.t, &t) ? t : NULL;
    if (at == LLM_TAP_WINDOW || at == LLM_TAP_ALL)
        return stored_rows(ev, at == LLM_TAP_WINDOW);
    if (at < 0 || at > ev->n_layer) {
        ev->status = ggl_fail(ev->err, GGL_LIMIT, "%s: layer %d does not exist: the model has %lld",
                              ev->family, at, (long long)ev->n_layer);
        return NULL;
    }
    if (at == ev->n_layer && ev->left)
        return one_row(ev, ev->left);
    if (ev->tapped_twice)
        return no_rows(
            ev,
            "the model has two loops over layers, so that a layer's number may mean one of each");
    return one_row(ev, ev->tapped[k]);
}

/* Returns the rows params.tap, side by side. NULL: reported. */
static ggl_tensor *join_taps(arch_eval *ev) {
    ggl_tensor *t = NULL;
    for (int k = 0; k < ev->params->n_taps; k++) {
        ggl_tensor *next = tapped_rows(ev, k);
        if (!next)
            return NULL;
        t = side_by_side(ev, t, next);
    }
    return llm_arch_graph_ok(ev, end_of_text(ev)) ? t : NULL;
}

/* Returns what the stage over rows returned that is meant by params.only; NULL: an output is meant. */
static ggl_tensor *only_stage(const arch_eval *ev) {
    const char *only = ev->params ? ev->params->only : NULL;
    for (int k = 0; only && k < ev->n_sources; k++)
        if (ev->source[k].result && strcmp(ev->source[k].row.name, only) == 0)
            return ev->source[k].result;
    return NULL;
}

/* Makes the output "rows" of a stage. False: reported. */
static bool put_stage(arch_eval *ev, ggl_tensor *t) {
    ev->n_row = ggl_count(t);
    ev->gives_stage |= llm_arch_rows(ev, t) == ROWS_STAGE;
    t = ggl_graph_op(ev->g, GGL_OP_CAST, &t, 1, NULL, 0);
    ggl_graph_output(ev->g, "rows", t);
    return llm_arch_graph_ok(ev, end_of_text(ev));
}

/* Makes the output "rows": what the stage that guesses is over, or, with its guesses, what takes that value's place.
 * False: reported. */
static bool put_rows(arch_eval *ev) {
    const bool guesses = ev->output[OUT_GUESS].n > 0;
    ggl_tensor *t = guesses ? ev->foretold : ev->over;
    if (guesses && llm_arch_is_turn(ev)) {
        ev->n_row = ev->in_turn->ne[0];
        return true;
    }
    if (guesses && ev->in_turn)
        t = ev->in_turn;
    if (!guesses && ev->params && ev->params->n_taps > 0) {
        if (!(t = join_taps(ev)))
            return false;
    } else if (!guesses && !(ev->params && ev->params->rows)) {
        return true;
    } else if (!ev->over) {
        ev->status = ggl_fail(ev->err, GGL_UNSUPPORTED,
                              "%s: the model has no layers that guess the tokens after the next",
                              ev->family);
        return false;
    }
    ev->n_row = t->ne[0];
    t = ggl_graph_op(ev->g, GGL_OP_CAST, &t, 1, NULL,
                     0); /* it may be the output "embedding", too */
    ggl_graph_output(ev->g, "rows", t);
    return llm_arch_graph_ok(ev, end_of_text(ev));
}

static bool put(arch_eval *ev, int k, ggl_tensor *t) {
    note_output(ev, k, t);
    if (k == OUT_GUESS && ev->in_turn && !llm_arch_is_turn(ev))
        return true; /* its rows are an output in this place */
    if (k == OUT_GUESS && !(t = join_guess(ev, t)))
        return false;
    ggl_graph_output(ev->g, llm_arch_output_names[k], t);
    const int slot = ev->arch->output[k];
    return llm_arch_graph_ok(ev, slot >= 0 ? ev->global[slot].place : end_of_text(ev));
}

bool llm_arch_give_outputs(arch_eval *ev) {
    ggl_tensor *t[OUT_COUNT] = {NULL}, *given[OUT_COUNT];
    int n = 0;
    for (int k = 0; k < OUT_COUNT; k++) {
        if (!give(ev, k, &t[k]))
            return false;
        if (t[k])
            given[n++] = t[k];
    }
    if (n == 0) {
        int k = 0;
        while (k < OUT_COUNT && ev->arch->output[k] < 0)
            k++;
        if (k == OUT_COUNT) {
            llm_arch_error(ev, end_of_text(ev),
                           "the descriptor has no output: other lines read what has an output's "
                           "name");
            return false;
        }
        llm_arch_error(ev, end_of_text(ev),
                       "'%s' has no value at the end: it is assigned only in a layer, or in a "
                       "branch that is not taken",
                       llm_arch_output_names[k]);
        return false;
    }
    if (!llm_arch_check_guess_layer(ev) || !llm_arch_check_use(ev, given, n))
        return false;
    const bool read_only = ev->params && ev->params->read_only;
    ggl_tensor *stage = read_only ? llm_arch_read_rows(ev) : only_stage(ev);
    if (stage || read_only)
        return stage && put_stage(ev, stage);
    if (ev->params && ev->params->given && ev->n_given == 0) {
        ev->status = ggl_fail(ev->err, GGL_UNSUPPORTED,
                              "%s: the model takes no rows in place of tokens", ev->family);
        return false;
    }
    const char *only = ev->params ? ev->params->only : NULL;
    const bool wanted = llm_arch_is_asked(ev, OUT_EMBEDDING);
    if (llm_arch_is_asked(ev, OUT_ALIGNMENT) && !t[OUT_ALIGNMENT]) {
        ev->status =
            ggl_fail(ev->err, GGL_UNSUPPORTED,
                     "%s: the model's descriptor does not say which of its attention shows "
                     "when a token is heard (the output 'alignment')",
                     ev->family);
        return false;
    }
    if (!llm_arch_is_asked(ev, OUT_ALIGNMENT))
        t[OUT_ALIGNMENT] = NULL;
    if (wanted && !t[OUT_EMBEDDING] && t[OUT_LOGITS] &&
        !find_embedding(ev, t[OUT_LOGITS], &t[OUT_EMBEDDING]))
        return false;
    if (!wanted && t[OUT_LOGITS])
        t[OUT_EMBEDDING] = NULL;
    /* those of a stage that tokens read, and guesses beside others, are made alone */
    for (int k = 0; k < OUT_COUNT; k++)
        if (t[k] && !only &&
            ((llm_arch_rows(ev, t[k]) == ROWS_STAGE && t[OUT_LOGITS]) || (k == OUT_GUESS && n > 1)))
            t[k] = NULL;
    n = 0;
    for (int k = 0; k < OUT_COUNT; k++)
        if (t[k] && (!only || strcmp(only, llm_arch_output_names[k]) == 0)) {
            if (!put(ev, k, t[k]))
                return false;
            n++;
        }
    if (n == 0)
        ev->status = ggl_fail(ev->err, GGL_UNSUPPORTED,
                              strcmp(only, llm_arch_output_names[OUT_SCORE]) == 0
                                  ? "%s: the model gives no %s: it is no reranker or classifier"
                                  : "%s: the model gives no %s",
                              ev->family, only);
    return n > 0 && put_rows(ev);
}

ggl_status llm_arch_guess_tokens(int32_t **out, const ggl_tensor *t, int64_t n_vocab,
                                 ggl_error *err) {
    *out = NULL;
    if (!t->data)
        return ggl_fail(err, GGL_UNSUPPORTED, "tensor %s is needed, but its data was not read",
                        t->name);
    if (t->type != GGL_I32 && t->type != GGL_I64)
        return ggl_fail(err, GGL_FORMAT, "tensor %s has type %s, but tokens are i32 or i64",
                        t->name, ggl_type_get((int)t->type)->name);
    int32_t *token = ggl_calloc((size_t)t->ne[0], sizeof *token);
    if (!token)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the tokens of guesses");
    for (int64_t i = 0; i < t->ne[0]; i++) {
        int64_t id = 0;
        int32_t small = 0; /* a file need not align them */
        if (t->type == GGL_I64)
            memcpy(&id, (const char *)t->data + i * 8, sizeof id);
        else
            memcpy(&small, (const char *)t->data + i * 4, sizeof small);
        id = t->type == GGL_I64 ? id : small;
        if (id < 0 || id >= n_vocab) {
            ggl_free(token);
            return ggl_fail(err, GGL_FORMAT,
                            "element %" PRId64 " of tensor %s is %" PRId64
                            ", but there are %" PRId64 " tokens",
                            i, t->name, id, n_vocab);
        }
        token[i] = (int32_t)id;
    }
    *out = token;
    return GGL_OK;
}
