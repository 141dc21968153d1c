/* A trainer: which weights can learn, the graphs of loss and gradients, and their runs. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "compile/compile.h"
#include "ggl/compose.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/gradient.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/params.h"
#include "ggl/internal/sched.h"
#include "step.h"
#include "train_impl.h"

struct llm_trainer {
    const llm_arch *arch;
    const llm_arch_source *source;
    llm_train_params p;
    train_weights weights;
    train_plan *learn;         /* [layers that guess], of others one */
    train_plan evaluate, look; /* `evaluate` and `look` are made when first asked for */
    train_step step;
    /* Of layers that guess, made when first asked for: the model itself; and [n_layers] what they return, and that with their scores. */
    train_plan hear, *told, *guessed;
    int64_t n_steps, n_vocab;
    llm_train_output out;
    llm_train_guesses guesses;
    int64_t n_logits; /* of the model itself, beside layers that guess */
    int32_t tap[LLM_ARCH_MAX_TAPS];
    int n_taps;
    float *loss; /* [n_slots], a variable: the sums of the losses of a run's sequences */
    int32_t *pos, *slot, *end; /* of the tokens of a run; end: of their sequences */
    int32_t *page;             /* [n_slots][pages of a slot] */
    float *weight;             /* of tokens */
    float *zeros;              /* [n_batch][n_row], of layers that guess */
};

/* What a run sets. "end" is an input of models that see texts whole. */
static const char *const input[] = {"features", "given", "token", "target",   "weight",
                                    "pos",      "slot",  "end",   "gradient", "row"};
/* An output of layers that guess; without it, nothing depends on the rows that they read. */
#define ROW_GRADIENT "row_gradient"
enum { N_INPUTS = sizeof input / sizeof *input };

/* --- graphs ----------------------------------------------------------------------------------- */

static bool is_known(const llm_trainer *t, const char *name) {
    bool known = false;
    for (int k = 0; k < N_INPUTS; k++)
        known |= strcmp(name, input[k]) == 0;
    for (int k = 0; k < t->p.n_inputs; k++)
        known |= strcmp(name, t->p.input[k]) == 0;
    return known;
}

/* The loss of the logits, times the token's weight. */
static ggl_tensor *of_logits(const llm_trainer *t, ggl_graph *g, ggl_tensor *logits) {
    ggl_tensor *target = ggl_graph_input(g, "target", GGL_I32, 0, NULL, true),
               *weight = ggl_graph_input(g, "weight", GGL_F32, 0, NULL, true);
    ggl_tensor *loss =
        t->p.loss ? t->p.loss(t->p.ctx, g, logits, target) : ggl_cross_entropy(g, logits, target);
    return ggl_binary(g, GGL_OP_MUL, loss, weight);
}

/* What has the gradient that the program gives: the product of the n numbers with it. */
static ggl_tensor *of_gradient(ggl_graph *g, ggl_tensor *out, int64_t n) {
    ggl_tensor *gradient = ggl_graph_input(g, "gradient", GGL_F32, 1, &n, true),
               *flat = ggl_reshape(g, out, 1, &n);
    return ggl_unary(g, GGL_OP_SUM, ggl_binary(g, GGL_OP_MUL, flat, gradient));
}

static ggl_status check_inputs(const llm_trainer *t, const ggl_graph *g, ggl_error *err) {
    for (int i = 0; i < ggl_graph_n_inputs(g); i++) {
        const char *name = ggl_graph_get_input(g, i)->name;
        if (!is_known(t, name))
            return ggl_fail(err, GGL_UNSUPPORTED,
                            "the model has an input '%s', which texts do not give it", name);
    }
    return ggl_graph_error(g, err);
}

/* Copies the tokens that guesses are. */
static ggl_status copy_tokens(llm_trainer *t, const ggl_tensor *of, ggl_error *err) {
    const int64_t n = t->guesses.n_scores;
    int32_t *token = ggl_calloc((size_t)n, sizeof *token);
    if (!token)
        return ggl_fail(err, GGL_NOMEM, "out of memory for tokens");
    for (int64_t i = 0; i < n; i++)
        token[i] = of->type == GGL_I64 ? (int32_t)((const int64_t *)of->data)[i]
                                       : ((const int32_t *)of->data)[i];
    t->guesses.token = token;
    return GGL_OK;
}

/* Checks that the scores are of tokens of the model. */
static ggl_status check_tokens(const llm_trainer *t, ggl_error *err) {
    const llm_train_guesses *g = &t->guesses;
    if (g->token ? g->n_scores > t->n_vocab : g->n_scores != t->n_vocab)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "there are %" PRId64 " scores of guesses, and the model has %" PRId64
                        " tokens",
                        g->n_scores, t->n_vocab);
    for (int64_t i = 0; g->token && i < g->n_scores; i++)
        if (g->token[i] < 0 || g->token[i] >= t->n_vocab)
            return ggl_fail(err, GGL_FORMAT,
                            "score %" PRId64
                            " of guesses is of token %d; the model has 0 to %" PRId64,
                            i, g->token[i], t->n_vocab - 1);
    return GGL_OK;
}

/* Notes what the graph that learns says of the model. */
static ggl_status note_built(llm_trainer *t, const llm_arch_result *built, ggl_error *err) {
    t->out.sees_all = built->sees_all;
    t->out.rows = t->p.guess                          ? built->guess
                  : !t->p.output                      ? built->logits
                  : strcmp(t->p.output, "score") == 0 ? built->score
                                                      : built->embedding;
    t->n_vocab = t->p.output ? built->n_vocab : t->out.rows.n;
    if (!t->p.guess)
        return GGL_OK;
    t->n_vocab = t->n_logits ? t->n_logits : built->n_vocab;
    if (!built->n_feature == (t->p.other != NULL))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        t->p.other ? "%s: the model does not guess for another one"
                                   : "%s: the model guesses for another one, which has to be given",
                        built->family);
    if (built->guess_stays || built->n_guess_block > 0)
        return ggl_fail(
            err, GGL_UNSUPPORTED,
            "%s: only models that make one guess after the other can learn, each in the "
            "place behind the one before",
            built->family);
    t->guesses = (llm_train_guesses){.n_layers = built->n_guess_layers,
                                     .apart = built->guess_apart,
                                     .from_second = built->from_second,
                                     .n_row = built->n_row,
                                     .n_heard = built->n_feature ? built->n_feature : built->n_row,
                                     .n_scores = built->guess.n,
                                     .token = t->guesses.token};
    t->n_taps = built->n_taps;
    memcpy(t->tap, built->tap, sizeof t->tap);
    return t->guesses.token || !built->guess_token ? GGL_OK
                                                   : copy_tokens(t, built->guess_token, err);
}

/* Makes the model's graph, with the output through which it learns, or that of a layer that guesses; or, own: that of the model itself, and what such
 * layers read. */
static ggl_status build_model(llm_trainer *t, int layer, bool own, ggl_graph **out,
                              ggl_error *err) {
    /* Slots share pages: as many as the batch fills, when each slot leaves a part of its last one empty. */
    const int64_t all = t->p.n_ctx * t->p.n_slots,
                  pool = (t->p.n_batch / GGL_PAGE + t->p.n_slots) * GGL_PAGE;
    const ggl_graph_params params = {.size = sizeof params,
                                     .n_pos = t->p.n_ctx,
                                     .n_batch = t->p.n_batch,
                                     .n_slots = t->p.n_slots,
                                     .n_pool = pool < all ? pool : 0,
                                     .type_k = GGL_F32,
                                     .type_v = GGL_F32};
    const llm_arch_params of = {.size = sizeof of,
                                .n_ctx = t->p.n_ctx,
                                .only = t->p.guess && !own ? "guess"
                                        : t->p.output      ? t->p.output
                                                           : "logits",
                                .rows = own && !t->p.other,
                                .tap = own && t->p.other ? t->tap : NULL,
                                .n_taps = own && t->p.other ? t->n_taps : 0,
                                .guess_layer = own ? 0 : layer,
                                .adapter = t->p.adapter,
                                .n_adapters = t->p.n_adapters};
    llm_arch_result built;
    ggl_graph *g = *out = ggl_graph_new(&params);
    if (!g)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a graph");
    const bool other = own && t->p.other;
    ggl_status st = llm_arch_build(other ? t->p.other : t->arch,
                                   other ? t->p.other_source : t->source, &of, g, &built, err);
    if (st == GGL_OK && other && built.n_row != t->guesses.n_heard)
        st = ggl_fail(err, GGL_UNSUPPORTED,
                      "the rows of the model have %" PRId64 " numbers, and %" PRId64
                      " are read to guess",
                      built.n_row, t->guesses.n_heard);
    if (st == GGL_OK && own)
        t->n_vocab = t->n_logits = built.logits.n;
    else if (st == GGL_OK)
        st = note_built(t, &built, err);
    llm_arch_result_fini(&built);
    return st;
}

/* Makes the graph of the loss. *loss: that of each token. */
static ggl_status build(llm_trainer *t, int layer, ggl_graph **out, ggl_tensor **loss,
                        ggl_error *err) {
    const ggl_status st = build_model(t, layer, false, out, err);
    if (st != GGL_OK)
        return st;
    ggl_graph *g = *out;
    ggl_tensor *through = ggl_graph_get_output(g, 0);
    *loss = t->p.output ? of_gradient(g, through, t->out.rows.n) : of_logits(t, g, through);
    ggl_graph_replace_output(g, 0, "loss", *loss); /* the output may then be overwritten */
    return check_inputs(t, g, err);
}

/* Lets each run add the losses of a sequence's tokens to the sequence's number of t->loss. */
static void add_up(llm_trainer *t, ggl_graph *g, ggl_tensor *loss) {
    const double n = (double)t->p.n_slots, one = 1;
    const int64_t ne[3] = {1, 1, t->p.n_slots};
    ggl_tensor *slot = ggl_graph_find_input(g, "slot"),
               *sum = ggl_graph_variable(g, "loss", GGL_F32, 3, ne, t->loss),
               *src[] = {ggl_reshape(g, loss, 1, ne), ggl_graph_const(g, 1, ne, &one),
                         slot ? slot : ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true), sum};
    ggl_graph_assign(g, sum, ggl_graph_op(g, GGL_OP_OUTER_SUM, src, 4, &n, 1));
}

/* Makes the weights of the graph that learn variables: from now on they are read where t keeps them. */
static int let_learn(const llm_trainer *t, ggl_graph *g, ggl_tensor **weight) {
    int n = 0;
    for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
        ggl_tensor *w = ggl_graph_node(g, i);
        llm_train_weight *of =
            w->op == GGL_OP_WEIGHT && w->name ? llm_train_weights_find(&t->weights, w->name) : NULL;
        if (!of ||
            w->data != of->origin) /* an adapter that does not learn may have the same names */
            continue;
        w->type = GGL_F32;
        w->data = of->data;
        w->variable = true;
        weight[n++] = w;
    }
    return n;
}

/* Of a layer that guesses: what has the gradients of its loss and, by the rows that it returns, those that the program gives. */
static ggl_tensor *with_gradient(const llm_trainer *t, ggl_graph *g, ggl_tensor *loss) {
    return t->p.guess ? ggl_binary(g, GGL_OP_ADD, loss,
                                   of_gradient(g, ggl_graph_get_output(g, 1), t->guesses.n_row))
                      : loss;
}

/* Makes the plan that adds up losses, and gradients if they are wanted; of a layer that guesses, it has the output of the gradient by the rows that the layer
 * reads. */
static ggl_status plan(llm_trainer *t, train_plan *p, int layer, bool gradients, ggl_error *err) {
    const int most = t->weights.n + 1;
    ggl_tensor *loss, **weight = ggl_calloc((size_t)most * 3, sizeof(ggl_tensor *));
    ggl_status st = weight ? build(t, layer, &p->g, &loss, err)
                           : ggl_fail(err, GGL_NOMEM, "out of memory for a trainer");
    const int n = st == GGL_OK ? let_learn(t, p->g, weight) : 0;
    ggl_tensor **into = weight ? weight + most : NULL, **grad = weight ? into + most : NULL;
    for (int k = 0; k < n && gradients; k++) {
        const llm_train_weight *w = llm_train_weights_find(&t->weights, weight[k]->name);
        into[k] = ggl_graph_variable(p->g, w->name, GGL_F32, w->n_dims, w->ne, w->grad);
    }
    if (st == GGL_OK)
        add_up(t, p->g, loss);
    if (st == GGL_OK && gradients) {
        const ggl_grad_params of = {.size = sizeof of, .keep = t->p.keep, .into = into};
        const int n_by = n + (t->p.guess ? 1 : 0);
        if (t->p.guess)
            weight[n] = ggl_graph_find_input(p->g, "row");
        ggl_graph_grad(p->g, with_gradient(t, p->g, loss), weight, n_by, &of, grad);
        for (int k = 0; k < n; k++)
            if (grad[k])
                ggl_graph_assign(p->g, into[k], grad[k]);
        if (n_by > n && grad[n])
            ggl_graph_replace_output(p->g, 1, ROW_GRADIENT, grad[n]);
        st = ggl_graph_error(p->g, err);
    }
    ggl_free(weight);
    return st == GGL_OK
               ? llm_train_plan(p, &t->p,
                                t->p.guess ? t->p.n_batch : 1 /* nobody asks for logits */, err)
               : st;
}

/* Makes the plan that computes the output; of a layer that guesses, with_scores or the rows alone; own: of the model itself. */
static ggl_status plan_look(llm_trainer *t, train_plan *p, int layer, bool own, bool with_scores,
                            ggl_error *err) {
    const int most = t->weights.n;
    ggl_tensor **weight = ggl_calloc((size_t)most, sizeof(ggl_tensor *));
    ggl_status st = weight ? build_model(t, layer, own, &p->g, err)
                           : ggl_fail(err, GGL_NOMEM, "out of memory for a trainer");
    if (st == GGL_OK && !own)
        let_learn(t, p->g, weight);
    if (st == GGL_OK && !with_scores)
        ggl_graph_replace_output(p->g, 0, "rows", ggl_graph_get_output(p->g, 1));
    if (st == GGL_OK)
        st = check_inputs(t, p->g, err);
    ggl_free(weight);
    return st == GGL_OK ? llm_train_plan(p, &t->p, t->p.n_batch, err) : st;
}

/* --- which weights learn ---------------------------------------------------------------------- */

/* True if numbers of the type could be changed a little, and products read them. */
static bool is_of_numbers(ggl_type of) {
    const ggl_type_info *type = ggl_type_get(of);
    return type && (type->quantized || of == GGL_F32 || of == GGL_F16 || of == GGL_BF16);
}

static bool has_numbers(const ggl_tensor *w) {
    return w->op == GGL_OP_WEIGHT && w->name && w->data && w->n_dims < GGL_MAX_DIMS &&
           is_of_numbers(w->type);
}

static bool is_of_adapter(const char *name) {
    const size_t n = strlen(name), n_end = sizeof ".lora_a" - 1;
    return n > n_end &&
           (strcmp(name + n - n_end, ".lora_a") == 0 || strcmp(name + n - n_end, ".lora_b") == 0);
}

static bool is_asked(const llm_train_params *p, const char *name) {
    if (p->only_adapters && !is_of_adapter(name))
        return false;
    return p->n_learn == 0 ||
           llm_arch_match_first(p->learn, p->n_learn, (ggl_str){name, strlen(name)}, NULL) <
               p->n_learn;
}

/* Fails if a pattern fits none of the n weights. */
static ggl_status check_patterns(const llm_train_params *p, ggl_tensor *const *weight, int n,
                                 ggl_error *err) {
    for (size_t i = 0; i < p->n_learn; i++) {
        bool fits = false;
        for (int k = 0; k < n && !fits; k++)
            fits = llm_arch_match_first(&p->learn[i], 1,
                                        (ggl_str){weight[k]->name, strlen(weight[k]->name)},
                                        NULL) == 0;
        if (!fits)
            return ggl_fail(err, GGL_NOT_FOUND, "'%s' fits the name of no weight that can learn",
                            p->learn[i]);
    }
    return n > 0 ? GGL_OK
                 : ggl_fail(err, GGL_UNSUPPORTED,
                            "no weight learns: the loss depends on none that can");
}

/* The weights that may learn, and the graphs that they are nodes of. */
typedef struct choice {
    ggl_graph **g;
    size_t n_graphs, cap_graphs;
    ggl_tensor **weight;
    size_t n, cap;
    ggl_graph *own; /* of layers that guess: that of the model itself, finished */
} choice;

/* True if the model itself reads the weight. */
static bool is_read(const ggl_graph *own, const ggl_tensor *w) {
    bool any = false;
    for (int i = 0; own && i < ggl_graph_n_nodes(own) && !any; i++) {
        const ggl_tensor *x = ggl_graph_node(own, i);
        any = x->op == GGL_OP_WEIGHT && x->needed && x->data == w->data;
    }
    return any;
}

static bool has(const choice *c, const ggl_tensor *w) {
    bool any = false;
    for (size_t k = 0; k < c->n && !any; k++)
        any = c->weight[k]->data == w->data && strcmp(c->weight[k]->name, w->name) == 0;
    return any;
}

/* Adds the weights of a layer's graph that have gradients, and are asked for. */
static ggl_status choose_some(llm_trainer *t, int layer, choice *c, ggl_error *err) {
    ggl_tensor *loss, **weight = NULL, **grad = NULL;
    if (!ggl_grow(&c->g, &c->cap_graphs, c->n_graphs + 1, sizeof(ggl_graph *)))
        return ggl_fail(err, GGL_NOMEM, "out of memory for a trainer");
    c->g[c->n_graphs] = NULL;
    ggl_status st = build(t, layer, &c->g[c->n_graphs], &loss, err);
    ggl_graph *g = c->g[c->n_graphs++];
    const int n_nodes = st == GGL_OK ? ggl_graph_n_nodes(g) : 0;
    int n = 0;
    if (st == GGL_OK) {
        weight = ggl_calloc((size_t)n_nodes, sizeof(ggl_tensor *));
        grad = ggl_calloc((size_t)n_nodes, sizeof(ggl_tensor *));
        if (!weight || !grad ||
            !ggl_grow(&c->weight, &c->cap, c->n + (size_t)n_nodes, sizeof *weight))
            st = ggl_fail(err, GGL_NOMEM, "out of memory for a trainer");
    }
    for (int i = 0; i < n_nodes && st == GGL_OK; i++) {
        ggl_tensor *w = ggl_graph_node(g, i);
        if (has_numbers(w) && is_asked(&t->p, w->name) && !is_read(c->own, w))
            weight[n++] = w;
    }
    if (st == GGL_OK && n > 0) {
        ggl_graph_grad(g, loss, weight, n, NULL, grad);
        st = ggl_graph_error(g, err);
    }
    for (int k = 0; k < n && st == GGL_OK; k++)
        if (grad[k] && !(layer > 0 && has(c, weight[k])))
            c->weight[c->n++] = weight[k];
    ggl_free(weight);
    ggl_free(grad);
    return st;
}

/* Makes the list of the weights that learn, by the gradients of graphs that are not run: those that have one. */
static ggl_status choose(llm_trainer *t, ggl_error *err) {
    choice c = {0};
    ggl_graph *first = NULL; /* tells what is read of the other model */
    ggl_status st = t->p.other ? build_model(t, 0, false, &first, err) : GGL_OK;
    ggl_graph_free(first);
    if (st == GGL_OK && t->p.guess)
        st = build_model(t, 0, true, &c.own, err);
    if (st == GGL_OK && c.own)
        st = ggl_graph_finish(c.own, err);
    t->guesses.n_layers = 1;
    for (int k = 0; k < t->guesses.n_layers && st == GGL_OK; k++) /* the first one tells how many */
        st = choose_some(t, k, &c, err);
    if (st == GGL_OK && t->p.guess)
        st = check_tokens(t, err);
    if (st == GGL_OK)
        st = check_patterns(&t->p, c.weight, (int)c.n, err);
    if (st == GGL_OK)
        st = llm_train_weights_init(&t->weights, c.weight, (int)c.n, &t->p, err);
    for (size_t k = 0; k < c.n_graphs; k++)
        ggl_graph_free(c.g[k]);
    ggl_graph_free(c.own);
    ggl_free(c.g);
    ggl_free(c.weight);
    return st;
}

/* --- making ----------------------------------------------------------------------------------- */

static ggl_status check(llm_train_params *p, ggl_error *err) {
    if (!p->backend || !p->reference)
        return ggl_fail(err, GGL_USAGE, "a trainer needs a backend, and the reference backend");
    p->n_ctx = p->n_ctx ? p->n_ctx : 256;
    p->n_batch = p->n_batch ? p->n_batch : p->n_ctx;
    p->beta1 = p->beta1 != 0 ? p->beta1 : p->optimizer == LLM_TRAIN_MUON ? 0.95 : 0.9;
    p->beta2 = p->beta2 != 0 ? p->beta2 : 0.999;
    p->eps = p->eps != 0 ? p->eps : 1e-8;
    if (p->n_ctx < 1 || p->n_batch < p->n_ctx || p->n_batch > INT32_MAX)
        return ggl_fail(err, GGL_USAGE,
                        "batches of %" PRId64 " tokens with sequences of up to %" PRId64
                        ": a sequence must fit into a batch",
                        p->n_batch, p->n_ctx);
    if (p->guess && (p->output || p->n_adapters > 0))
        return ggl_fail(err, GGL_USAGE,
                        "layers that guess ahead learn by themselves: neither through the output "
                        "'%s' nor beside an adapter",
                        p->output ? p->output : "logits");
    if (p->output && (p->loss || p->n_inputs > 0))
        return ggl_fail(err, GGL_USAGE, "the loss of the output '%s' is the program's", p->output);
    const ggl_type_info *rounded = ggl_type_get(p->rounded);
    if (!rounded || !rounded->from_float || !is_of_numbers(p->rounded))
        return ggl_fail(err, GGL_USAGE, "numbers cannot be rounded to %s",
                        rounded ? rounded->name : "a type that does not exist");
    if (p->optimizer < 0 || p->optimizer > LLM_TRAIN_MUON)
        return ggl_fail(err, GGL_USAGE, "there is no optimizer %d", (int)p->optimizer);
    if (p->optimizer_bits != 0 && p->optimizer_bits != 8 && p->optimizer_bits != 32)
        return ggl_fail(err, GGL_USAGE, "an optimizer that remembers %d bits: 8 or 32 can be",
                        p->optimizer_bits);
    if (p->n_slots < 0 || p->n_slots > p->n_batch || p->n_inputs < 0)
        return ggl_fail(err, GGL_USAGE,
                        "a trainer with %" PRId64 " sequences in a batch of %" PRId64
                        " tokens, and %d inputs",
                        p->n_slots, p->n_batch, p->n_inputs);
    if (p->n_slots == 0) {
        const int64_t whole = p->n_batch / p->n_ctx, pages = p->n_batch / GGL_PAGE;
        p->n_slots = whole > pages ? whole : pages;
    }
    if (!(p->beta1 >= 0 && p->beta1 < 1 && p->beta2 >= 0 && p->beta2 < 1 && p->eps > 0 &&
          p->decay >= 0 && isfinite(p->decay) && p->max_norm >= 0))
        return ggl_fail(
            err, GGL_USAGE,
            "AdamW with beta1 %g, beta2 %g, eps %g, decay %g, max_norm %g: betas must be "
            "from 0 to below 1, eps more than 0, and the others not negative",
            p->beta1, p->beta2, p->eps, p->decay, p->max_norm);
    return GGL_OK;
}

static ggl_status make(llm_trainer *t, ggl_error *err) {
    ggl_status st = check(&t->p, err);
    if (st != GGL_OK)
        return st;
    const int64_t n_pages = t->p.n_slots * ((t->p.n_ctx + GGL_PAGE - 1) / GGL_PAGE);
    t->loss = ggl_calloc((size_t)t->p.n_slots, sizeof *t->loss);
    t->page = ggl_calloc((size_t)n_pages, sizeof *t->page);
    t->pos = ggl_calloc((size_t)t->p.n_batch, sizeof *t->pos);
    t->slot = ggl_calloc((size_t)t->p.n_batch, sizeof *t->slot);
    t->end = ggl_calloc((size_t)t->p.n_batch, sizeof *t->end);
    t->weight = ggl_calloc((size_t)t->p.n_batch, sizeof *t->weight);
    if (!t->loss || !t->page || !t->pos || !t->slot || !t->end || !t->weight)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a trainer");
    st = choose(t, err);
    if (st != GGL_OK)
        return st;
    const size_t n_layers = (size_t)t->guesses.n_layers;
    t->learn = ggl_calloc(n_layers, sizeof *t->learn);
    t->told = ggl_calloc(n_layers, sizeof *t->told);
    t->guessed = ggl_calloc(n_layers, sizeof *t->guessed);
    t->zeros = ggl_calloc((size_t)(t->p.n_batch * (t->guesses.n_row + 1)), sizeof *t->zeros);
    if (!t->learn || !t->told || !t->guessed || !t->zeros)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a trainer");
    for (int k = 0; k < t->guesses.n_layers && st == GGL_OK; k++)
        st = plan(t, &t->learn[k], k, true, err);
    return st == GGL_OK ? llm_train_step_init(&t->step, &t->weights, &t->p, err) : st;
}

ggl_status llm_trainer_new(llm_trainer **out, const llm_arch *arch, const llm_arch_source *source,
                           const llm_train_params *params, ggl_error *err) {
    llm_train_params p = {.size = sizeof p};
    ggl_status st = GGL_READ_PARAMS(llm_train_params, &p, params, err);
    llm_trainer *t = st == GGL_OK ? ggl_calloc(1, sizeof *t) : NULL;
    *out = NULL;
    if (!t)
        return st != GGL_OK ? st : ggl_fail(err, GGL_NOMEM, "out of memory for a trainer");
    t->arch = arch;
    t->source = source;
    t->p = p;
    st = make(t, err);
    t->p.learn = NULL; /* the caller's */
    t->p.n_learn = 0;
    if (st != GGL_OK)
        llm_trainer_free(t);
    else
        *out = t;
    return st;
}

void llm_trainer_free(llm_trainer *t) {
    if (!t)
        return;
    for (int k = 0; k < t->guesses.n_layers && t->learn && t->told && t->guessed; k++) {
        llm_train_plan_fini(&t->learn[k]);
        llm_train_plan_fini(&t->told[k]);
        llm_train_plan_fini(&t->guessed[k]);
    }
    ggl_free(t->learn);
    ggl_free(t->told);
    ggl_free(t->guessed);
    ggl_free(t->zeros);
    ggl_free((int32_t *)t->guesses.token);
    llm_train_plan_fini(&t->hear);
    llm_train_plan_fini(&t->evaluate);
    llm_train_plan_fini(&t->look);
    llm_train_step_fini(&t->step);
    llm_train_weights_fini(&t->weights);
    ggl_free(t->loss);
    ggl_free(t->page);
    ggl_free(t->pos);
    ggl_free(t->slot);
    ggl_free(t->end);
    ggl_free(t->weight);
    ggl_free(t);
}

/* --- runs ------------------------------------------------------------------------------------- */

static bool is_token(const llm_trainer *t, int32_t id) {
    return id >= 0 && id < t->n_vocab;
}

/* Fails if a length, a token or, with a loss, a target is out of range, or the layer is. */
static ggl_status check_batch(const llm_trainer *t, const llm_train_batch *b, bool loss,
                              ggl_error *err) {
    const int64_t n_targets = t->p.guess ? t->guesses.n_scores : t->n_vocab;
    int64_t n = 0;
    if (b->layer < 0 || b->layer >= t->guesses.n_layers)
        return ggl_fail(err, GGL_USAGE, "layer %d that guesses does not exist; there %s %d",
                        b->layer, t->guesses.n_layers == 1 ? "is" : "are", t->guesses.n_layers);
    if (loss && t->p.n_inputs > 0 && !b->input)
        return ggl_fail(err, GGL_USAGE, "the batch lacks the loss's input '%s'", t->p.input[0]);
    for (int64_t i = 0; i < b->n_seq; n += b->length[i++])
        if (b->length[i] < 1 || b->length[i] > t->p.n_ctx)
            return ggl_fail(err, GGL_USAGE,
                            "sequence %" PRId64 " of the batch has %" PRId64
                            " tokens; it must have 1 to %" PRId64,
                            i, b->length[i], t->p.n_ctx);
    for (int64_t i = 0; i < n; i++) {
        if (!is_token(t, b->token[i]))
            return ggl_fail(err, GGL_USAGE,
                            "token %" PRId64
                            " of the batch is %d; the vocabulary has 0 to %" PRId64,
                            i, b->token[i], t->n_vocab - 1);
        if (loss && !t->p.output && !(b->target[i] >= 0 && b->target[i] < n_targets))
            return ggl_fail(err, GGL_USAGE,
                            "token %" PRId64 " of the batch is to be followed by %d; the "
                            "vocabulary has 0 to %" PRId64,
                            i, b->target[i], n_targets - 1);
    }
    return GGL_OK;
}

/* Returns how many sequences from the first on fit into a run; sets pos and slot, and *n to their tokens. */
static int64_t fill(llm_trainer *t, const int64_t *length, int64_t n_seq, int64_t *n) {
    int64_t i = 0;
    *n = 0;
    for (; i < n_seq && i < t->p.n_slots && *n + length[i] <= t->p.n_batch; i++)
        for (int64_t k = 0; k < length[i]; k++, ++*n) {
            t->pos[*n] = (int32_t)k;
            t->slot[*n] = (int32_t)i;
            t->end[*n] = (int32_t)length[i];
        }
    return i;
}

/* Gives each of the n slots the pages for so many tokens. */
static ggl_status set_pages(llm_trainer *t, const ggl_graph *g, ggl_sched *s, const int64_t *length,
                            int64_t n, ggl_error *err) {
    const ggl_tensor *page = ggl_graph_find_input(g, "page");
    int64_t used = 0;
    for (int64_t i = 0; i < n && page; i++)
        for (int64_t k = 0; k * GGL_PAGE < length[i]; k++)
            t->page[i * page->ne[0] + k] = (int32_t)used++;
    return page ? ggl_sched_set(s, "page", t->page, (size_t)ggl_count(page) * sizeof *t->page, 1,
                                err)
                : GGL_OK;
}

/* Numbers for each token in llm_train_batch.gradient, and .row. */
static int64_t n_gradient(const llm_trainer *t) {
    return t->p.guess ? t->guesses.n_row : t->out.rows.n;
}

/* Sets what the batch says of n tokens from `at` on. */
static ggl_status set_tokens(llm_trainer *t, const ggl_graph *g, ggl_sched *s,
                             const llm_train_batch *b, int64_t at, int64_t n, ggl_error *err) {
    const void *data[N_INPUTS] = {b->feature ? b->feature + at * t->guesses.n_heard : NULL,
                                  b->given ? b->given + at : NULL,
                                  b->token + at,
                                  b->target ? b->target + at : NULL,
                                  t->weight,
                                  t->pos,
                                  t->slot,
                                  t->end,
                                  b->gradient ? b->gradient + at * n_gradient(t) : t->zeros,
                                  b->row ? b->row + at * n_gradient(t) : NULL};
    ggl_status st = GGL_OK;
    for (int k = 0; k < N_INPUTS && st == GGL_OK; k++) {
        const ggl_tensor *x = ggl_graph_find_input(g, input[k]);
        if (x && data[k]) /* else nothing that is computed reads it */
            st = ggl_sched_set(s, input[k], data[k], (size_t)(n * ggl_count(x)) * 4, n, err);
    }
    for (int k = 0; k < t->p.n_inputs && b->input && st == GGL_OK; k++) {
        const ggl_tensor *x = ggl_graph_find_input(g, t->p.input[k]);
        const size_t each = x ? (size_t)ggl_count(x) * 4 : 0;
        if (x)
            st = ggl_sched_set(s, t->p.input[k], (const char *)b->input[k] + (size_t)at * each,
                               (size_t)n * each, n, err);
    }
    return st;
}

/* Runs n tokens from `at` on, in n_seq slots; with the outputs of the first n_rows. */
static ggl_status run_some(llm_trainer *t, const train_plan *p, const llm_train_batch *b,
                           int64_t at, int64_t n, const int64_t *length, int64_t n_seq,
                           int64_t n_rows, ggl_error *err) {
    const bool has_pos = ggl_graph_n_stores(p->g) > 0; /* what a run leaves there */
    ggl_status st = set_pages(t, p->g, p->s, length, n_seq, err);
    for (int64_t i = 0; i < n; i++)
        t->weight[i] = b->weight ? b->weight[at + i] : 1;
    for (int64_t i = 0; i < n_seq && has_pos && st == GGL_OK; i++)
        st = ggl_sched_clear_slot(p->s, (int)i, err);
    if (st == GGL_OK)
        st = set_tokens(t, p->g, p->s, b, at, n, err);
    return st == GGL_OK ? ggl_sched_run(p->s, n, n_rows ? NULL : t->pos, n_rows, err) : st;
}

static ggl_status run(llm_trainer *t, const train_plan *p, const llm_train_batch *b, double *loss,
                      double *each, ggl_error *err) {
    ggl_status st = check_batch(t, b, true, err);
    const bool asked = b->row_gradient && ggl_graph_n_outputs(p->g) > 1 &&
                       strcmp(ggl_graph_get_output(p->g, 1)->name, ROW_GRADIENT) == 0;
    const size_t n_row = (size_t)t->guesses.n_row;
    double sum = 0;
    int64_t at = 0, n;
    for (int64_t i = 0, n_seq; i < b->n_seq && st == GGL_OK; i += n_seq, at += n) {
        n_seq = fill(t, b->length + i, b->n_seq - i, &n);
        memset(t->loss, 0, (size_t)t->p.n_slots * sizeof *t->loss);
        st = run_some(t, p, b, at, n, b->length + i, n_seq, asked ? n : 0, err);
        if (st == GGL_OK && b->row_gradient)
            memcpy(b->row_gradient + (size_t)at * n_row,
                   asked ? ggl_sched_output(p->s, 1) : t->zeros, (size_t)n * n_row * sizeof(float));
        for (int64_t k = 0; k < n_seq; k++) {
            sum += (double)t->loss[k];
            if (each)
                each[i + k] = (double)t->loss[k];
        }
    }
    if (st == GGL_OK && loss)
        *loss = sum;
    return st;
}

/* Fails unless the batch is one of layers that guess. */
static ggl_status check_guess(const llm_trainer *t, const llm_train_batch *b, ggl_error *err) {
    const ggl_status st = check_batch(t, b, false, err);
    if (st == GGL_OK && t->p.other && !(b->feature && b->given))
        return ggl_fail(err, GGL_USAGE, "the batch lacks what the other model says");
    if (st == GGL_OK && !(t->p.guess && b->row))
        return ggl_fail(err, GGL_USAGE,
                        t->p.guess ? "the batch lacks the rows that the layer reads"
                                   : "no layer that guesses learns");
    return st;
}

ggl_status llm_trainer_add(llm_trainer *t, const llm_train_batch *b, double *loss, ggl_error *err) {
    if (t->p.output && !b->gradient)
        return ggl_fail(err, GGL_USAGE, "the batch lacks the gradient by the output '%s'",
                        t->p.output);
    const ggl_status st = t->p.guess ? check_guess(t, b, err) : check_batch(t, b, false, err);
    return st == GGL_OK ? run(t, &t->learn[b->layer], b, loss, NULL, err) : st;
}

/* Where an output of all tokens goes; NULL: it is not wanted. */
typedef struct wanted {
    float *to;
    int64_t n; /* numbers for each token */
} wanted;

/* Computes outputs 0 and 1 of a plan, which is made if it is not there. */
static ggl_status look(llm_trainer *t, train_plan *p, bool own, bool with_scores,
                       const llm_train_batch *b, const wanted out[2], ggl_error *err) {
    ggl_status st = check_batch(t, b, false, err);
    if (st == GGL_OK && !p->s)
        st = plan_look(t, p, b->layer, own, with_scores, err);
    if (st != GGL_OK && !p->s)
        llm_train_plan_fini(p);
    for (int64_t i = 0, at = 0, n, n_seq; i < b->n_seq && st == GGL_OK; i += n_seq, at += n) {
        n_seq = fill(t, b->length + i, b->n_seq - i, &n);
        st = run_some(t, p, b, at, n, b->length + i, n_seq, n, err);
        for (int k = 0; k < 2 && st == GGL_OK; k++)
            if (out[k].to)
                memcpy(out[k].to + at * out[k].n, ggl_sched_output(p->s, k),
                       (size_t)(n * out[k].n) * sizeof(float));
    }
    return st;
}

ggl_status llm_trainer_look(llm_trainer *t, const llm_train_batch *b, float *row, ggl_error *err) {
    const wanted out[2] = {{row, n_gradient(t)}};
    if (!t->p.guess)
        return look(t, &t->look, false, true, b, out, err);
    const ggl_status st = check_guess(t, b, err);
    return st == GGL_OK ? look(t, &t->told[b->layer], false, false, b, out, err) : st;
}

ggl_status llm_trainer_guess(llm_trainer *t, const llm_train_batch *b, float *row, float *score,
                             ggl_error *err) {
    const wanted out[2] = {{score, t->out.rows.n}, {row, t->guesses.n_row}};
    const ggl_status st = check_guess(t, b, err);
    return st == GGL_OK ? look(t, &t->guessed[b->layer], false, true, b, out, err) : st;
}

ggl_status llm_trainer_hear(llm_trainer *t, const llm_train_batch *b, float *row, float *logits,
                            ggl_error *err) {
    const wanted out[2] = {{logits, t->n_logits}, {row, t->guesses.n_heard}};
    return t->p.guess ? look(t, &t->hear, true, true, b, out, err)
                      : ggl_fail(err, GGL_USAGE, "no layer that guesses learns");
}

ggl_status llm_trainer_evaluate(llm_trainer *t, const llm_train_batch *b, double *loss,
                                double *each, ggl_error *err) {
    ggl_status st =
        t->p.guess ? ggl_fail(err, GGL_USAGE, "layers that guess have scores (llm_trainer_guess)")
        : t->evaluate.s ? GGL_OK
                        : plan(t, &t->evaluate, 0, false, err);
    if (st != GGL_OK)
        llm_train_plan_fini(&t->evaluate);
    return st == GGL_OK ? run(t, &t->evaluate, b, loss, each, err) : st;
}

/* Returns the length of the gradient; infinite or NaN if a number of it is. There are several sums, so that none waits for another. */
static double length_of(const train_weights *list) {
    enum { SUMS = 16 };
    double sum[SUMS] = {0}, all = 0;
    for (int k = 0; k < list->n; k++) {
        const llm_train_weight *w = &list->at[k].w;
        const int64_t n = llm_train_weight_count(w), whole = n / SUMS * SUMS;
        for (int64_t i = 0; i < whole; i += SUMS)
            for (int j = 0; j < SUMS; j++)
                sum[j] += (double)w->grad[i + j] * (double)w->grad[i + j];
        for (int64_t i = whole; i < n; i++)
            sum[i - whole] += (double)w->grad[i] * (double)w->grad[i];
    }
    for (int j = 0; j < SUMS; j++)
        all += sum[j];
    return sqrt(all);
}

ggl_status llm_trainer_step(llm_trainer *t, double rate, double *norm, ggl_error *err) {
    const double steps = (double)(t->n_steps + 1), length = length_of(&t->weights);
    const bool is_long = t->p.max_norm > 0 && length > t->p.max_norm;
    const float in[STEP_INPUTS] = {[STEP_RATE] = (float)rate,
                                   [STEP_SHORTEN] = (float)(is_long ? t->p.max_norm / length : 1),
                                   [STEP_MEAN_BY] = (float)(1 / (1 - pow(t->p.beta1, steps))),
                                   [STEP_SQUARE_BY] = (float)(1 / (1 - pow(t->p.beta2, steps)))};
    ggl_status st = isfinite(rate) ? GGL_OK
                                   : ggl_fail(err, GGL_USAGE,
                                              "a step with the rate %g: a number is needed", rate);
    if (norm)
        *norm = length;
    if (isfinite(length) && st == GGL_OK) {
        st = llm_train_step_run(&t->step, in, err);
        t->n_steps += st == GGL_OK;
        llm_train_weights_round(&t->weights);
    }
    if (st == GGL_OK)
        llm_trainer_forget(t);
    return st;
}

void llm_trainer_forget(llm_trainer *t) {
    for (int k = 0; k < t->weights.n; k++) {
        const llm_train_weight *w = &t->weights.at[k].w;
        memset(w->grad, 0, (size_t)llm_train_weight_count(w) * sizeof *w->grad);
    }
}

/* --- weights ---------------------------------------------------------------------------------- */

size_t llm_trainer_value_bytes(const llm_trainer *t) {
    size_t sum = llm_train_plan_bytes(&t->evaluate) + llm_train_plan_bytes(&t->look) +
                 llm_train_plan_bytes(&t->hear) + llm_train_step_bytes(&t->step);
    for (int k = 0; k < t->guesses.n_layers; k++)
        sum += llm_train_plan_bytes(&t->learn[k]) + llm_train_plan_bytes(&t->told[k]) +
               llm_train_plan_bytes(&t->guessed[k]);
    return sum;
}

int64_t llm_trainer_n_vocab(const llm_trainer *t) {
    return t->n_vocab;
}

llm_train_output llm_trainer_output(const llm_trainer *t) {
    return t->out;
}

llm_train_guesses llm_trainer_guesses(const llm_trainer *t) {
    return t->guesses;
}

int llm_trainer_n_weights(const llm_trainer *t) {
    return t->weights.n;
}

llm_train_weight llm_trainer_weight(const llm_trainer *t, int k) {
    return t->weights.at[k].w;
}

int64_t llm_trainer_n_steps(const llm_trainer *t) {
    return t->n_steps;
}

void llm_trainer_set_steps(llm_trainer *t, int64_t n) {
    t->n_steps = n > 0 ? n : 0;
    llm_train_weights_round(&t->weights);
}
