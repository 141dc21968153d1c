/* A trainer's graphs: the model, its loss, and the gradients. */
#include <inttypes.h>
#include <string.h>

#include "ggl/compose.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/gradient.h"
#include "ggl/internal/graph.h"
#include "trainer_impl.h"

const char *const llm_trainer_input[TRAINER_INPUTS] = {"features", "given",    "token", "type",
                                                       "target",   "weight",   "pos",   "slot",
                                                       "end",      "gradient", "row"};

static bool is_known(const llm_trainer *t, const char *name) {
    bool known = false;
    for (int k = 0; k < TRAINER_INPUTS; k++)
        known |= strcmp(name, llm_trainer_input[k]) == 0;
    for (int k = 0; k < t->p.n_inputs; k++)
        known |= strcmp(name, t->p.input[k]) == 0;
    return known || llm_reader_gives(t, name);
}

/* The loss of the logits, times the token's weight. */
static ggl_tensor *of_logits(const llm_trainer *t, ggl_graph *g, ggl_tensor *logits) {
    ggl_tensor *target = ggl_graph_input(g, "target", GGL_I32, 0, NULL, true),
               *weight = ggl_graph_input(g, "weight", GGL_F32, 0, NULL, true);
    ggl_tensor *loss =
        t->p.loss ? t->p.loss(t->p.ctx, g, logits, target) : ggl_cross_entropy(g, logits, target);
    return ggl_binary(g, GGL_OP_MUL, loss, weight);
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

/* Copies the tokens that guesses are; llm_trainer_check_tokens compares them with the vocabulary, when that is known. */
static ggl_status copy_tokens(llm_trainer *t, const ggl_tensor *of, ggl_error *err) {
    int32_t *token;
    if (ggl_count(of) != t->guesses.n_scores)
        return ggl_fail(err, GGL_FORMAT,
                        "tensor %s has %" PRId64 " elements, but there are %" PRId64 " scores",
                        of->name, ggl_count(of), t->guesses.n_scores);
    const ggl_status st = llm_arch_guess_tokens(&token, of, INT32_MAX, err);
    t->guesses.token = token;
    return st;
}

ggl_status llm_trainer_check_tokens(const llm_trainer *t, ggl_error *err) {
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
    t->n_tokens = t->n_vocab;
    t->n_token_types = built->n_token_types;
    if (!t->p.guess)
        return GGL_OK;
    t->n_vocab = t->n_logits ? t->n_logits : built->n_vocab;
    t->n_token_types = built->n_token_types;
    t->n_tokens = built->n_vocab > 0 && built->n_vocab < t->n_vocab ? built->n_vocab : t->n_vocab;
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

ggl_status llm_trainer_build_model(llm_trainer *t, int layer, bool own, ggl_graph **out,
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
    /* rows that the tokens read at most */
    const int64_t n_kept =
        t->reader.is.is_own ? t->reader.stage[t->reader.n_sources - 1].n_most : 0;
    const llm_arch_params of = {.size = sizeof of,
                                .n_ctx = t->p.n_ctx,
                                .only = t->p.guess && !own ? "guess"
                                        : t->p.output      ? t->p.output
                                                           : "logits",
                                .rows = own && !t->p.other,
                                .tap = own && t->p.other ? t->tap : NULL,
                                .n_taps = own && t->p.other ? t->n_taps : 0,
                                .guess_layer = own ? 0 : layer,
                                .given = t->reader.is.is_there && !t->reader.is.is_own,
                                .n_read = t->reader.is.is_own ? n_kept : 0,
                                .n_reads = t->reader.is.is_own ? t->p.n_slots : 0,
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
    if (st == GGL_OK)
        st = llm_reader_note(t, g, &built, err);
    if (st == GGL_OK)
        llm_trainer_flatten(g);
    llm_arch_result_fini(&built);
    return st;
}

ggl_status llm_trainer_build(llm_trainer *t, int layer, ggl_graph **out, ggl_tensor **loss,
                             ggl_error *err) {
    const ggl_status st = llm_trainer_build_model(t, layer, false, out, err);
    if (st != GGL_OK)
        return st;
    ggl_graph *g = *out;
    ggl_tensor *through = ggl_graph_get_output(g, 0);
    *loss = t->p.output ? llm_trainer_of_gradient(g, "gradient", through, t->out.rows.n)
                        : of_logits(t, g, through);
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

/* Of a layer that guesses: what has the gradients of its loss and, by the rows that it returns, those that the program gives. */
static ggl_tensor *with_gradient(const llm_trainer *t, ggl_graph *g, ggl_tensor *loss) {
    return t->p.guess ? ggl_binary(g, GGL_OP_ADD, loss,
                                   llm_trainer_of_gradient(
                                       g, "gradient", ggl_graph_get_output(g, 1), t->guesses.n_row))
                      : loss;
}

/* The inputs by which a program that has what makes them needs the gradient, and the outputs that are these. */
static const struct {
    const char *input, *output;
    bool of_guess;
} passed[] = {{"row", ROW_GRADIENT, true},
              {"given_row", ROW_GRADIENT, false},
              {"given_more", MORE_GRADIENT, false}};
enum { PASSED = 3 };

/* Lists them in by[]. Returns their number. */
static int find_passed(const llm_trainer *t, ggl_graph *g, ggl_tensor **by) {
    int n = 0;
    for (int k = 0; k < PASSED; k++) {
        const bool is_wanted = passed[k].of_guess ? t->p.guess : t->reader.learns;
        ggl_tensor *x = is_wanted ? ggl_graph_find_input(g, passed[k].input) : NULL;
        if (x)
            by[n++] = x;
    }
    return n;
}

/* Gives the gradient by an input as an output. A layer that guesses has an output of rows, whose place it takes. */
static void pass(ggl_graph *g, const ggl_tensor *input, ggl_tensor *grad) {
    for (int k = 0; k < PASSED; k++) {
        if (strcmp(passed[k].input, input->name) != 0 || !grad)
            continue;
        if (passed[k].of_guess)
            ggl_graph_replace_output(g, 1, passed[k].output, grad);
        else
            ggl_graph_output(g, passed[k].output, grad);
    }
}

ggl_status llm_trainer_plan(llm_trainer *t, train_plan *p, int layer, bool gradients,
                            ggl_error *err) {
    ggl_tensor *loss;
    ggl_status st = llm_trainer_build(t, layer, &p->g, &loss, err);
    const int most = t->weights.n + t->reader.n_kept + PASSED;
    ggl_tensor **by = st == GGL_OK ? ggl_calloc((size_t)most * 4, sizeof(ggl_tensor *)) : NULL;
    if (!by)
        return st != GGL_OK ? st : ggl_fail(err, GGL_NOMEM, "out of memory for a trainer");
    ggl_tensor **into = by + most, **grad = into + most, **copy = grad + most;
    const int n_weights = llm_trainer_let_learn(t, p->g, by, copy);
    for (int k = 0; k < n_weights && gradients; k++) {
        const llm_train_weight *w = llm_train_weights_find(&t->weights, by[k]->name);
        into[k] = ggl_graph_variable(p->g, w->name, GGL_F32, w->n_dims, w->ne, w->grad);
    }
    const bool reads = gradients && t->reader.learns;
    const int n_kept = llm_reader_keep(t, p->g, by + n_weights, reads ? into + n_weights : NULL),
              n = n_weights + (reads ? n_kept : 0);
    add_up(t, p->g, loss);
    if (gradients) {
        const ggl_grad_params of = {
            .size = sizeof of, .keep = t->p.keep, .into = into, .copy = copy, .bf16 = t->p.bf16};
        const int n_passed = find_passed(t, p->g, by + n);
        ggl_graph_grad(p->g, with_gradient(t, p->g, loss), by, n + n_passed, &of, grad);
        for (int k = 0; k < n; k++)
            if (grad[k])
                ggl_graph_assign(p->g, into[k], grad[k]);
        for (int k = n; k < n + n_passed; k++)
            pass(p->g, by[k], grad[k]);
    }
    st = ggl_graph_error(p->g, err);
    const bool tells = ggl_graph_n_outputs(p->g) > 1; /* nobody asks for the loss of a token */
    ggl_free(by);
    return st == GGL_OK ? llm_train_plan(p, &t->p, tells ? t->p.n_batch : 1, err) : st;
}

ggl_status llm_trainer_plan_look(llm_trainer *t, train_plan *p, int layer, bool own,
                                 bool with_scores, ggl_error *err) {
    const int most = t->weights.n;
    ggl_tensor **weight = ggl_calloc((size_t)most * 2, sizeof(ggl_tensor *));
    ggl_status st = weight ? llm_trainer_build_model(t, layer, own, &p->g, err)
                           : ggl_fail(err, GGL_NOMEM, "out of memory for a trainer");
    if (st == GGL_OK && !own)
        llm_trainer_let_learn(t, p->g, weight, weight + most);
    if (st == GGL_OK && !with_scores)
        ggl_graph_replace_output(p->g, 0, "rows", ggl_graph_get_output(p->g, 1));
    if (st == GGL_OK)
        st = check_inputs(t, p->g, err);
    ggl_free(weight);
    return st == GGL_OK ? llm_train_plan(p, &t->p, t->p.n_batch, err) : st;
}
