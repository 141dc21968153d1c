/* Stages that guess: over a value of each token, they foretell from a token and that value of the token before. The value is an input of the graph,
 * because when the stage guesses on, its own result takes the value's place. In blocks, all guesses are made at once; but what the descriptor computes
 * from in_turn(x) is then computed for one guess after the other, as a graph of its own, which knows the guess before. */
#include "compile.h"
#include "ggl/internal/graph.h"

/* Sets ev->row, what the stage reads of the token before: an input; of a model that guesses for another one, in elements where that is
 * not given, what is made from the other's rows. */
static bool make_row(arch_eval *ev, const arch_stmt *s) {
    if (s->in_block) { /* elements of a block read no rows; what is stored of the others is made from the other model's */
        ggl_graph_input(ev->g, "end", GGL_I32, 0, NULL, true);
        ev->in_block = ggl_graph_input(ev->g, "given", GGL_F32, 0, NULL, true);
        ev->row = ev->over;
        return llm_arch_graph_ok(ev, s->place);
    }
    ev->row = ggl_graph_input(ev->g, "row", GGL_F32, 1, ev->over->ne, true);
    if (ev->features) {
        ggl_tensor *src[] = {ggl_graph_input(ev->g, "given", GGL_F32, 0, NULL, true), ev->row,
                             ev->over};
        ev->row = ggl_graph_op(ev->g, GGL_OP_WHERE, src, 3, NULL, 0);
        if (!llm_arch_graph_ok(ev, s->place) || !llm_arch_set_rows(ev, ev->row, ROWS_GUESS))
            return false;
        llm_arch_note_made(ev, s->place, ev->row);
    }
    return llm_arch_graph_ok(ev, s->place);
}

bool llm_arch_check_guess_layer(arch_eval *ev) {
    const int at = ev->params ? ev->params->guess_layer : 0, n = ev->n_guess_layers;
    if (n == 0 || (at >= 0 && at < n))
        return true;
    ev->status =
        ggl_fail(ev->err, GGL_LIMIT, "%s: layer %d that guesses does not exist: there %s %d",
                 ev->family, at, n == 1 ? "is" : "are", n);
    return false;
}

/* Sets ev->guess_first. False: reported. */
static bool read_first(arch_eval *ev, const arch_stmt *s) {
    int64_t first = s->in_block;
    if (s->other) {
        const arch_value v = llm_arch_eval_expr(ev, s->other);
        if (v.kind == VAL_FAIL || !llm_arch_want_whole(ev, s->other, &v, 0, 1, &first))
            return false;
    }
    ev->guess_first = (int)first;
    return true;
}

bool llm_arch_count_guess_layers(arch_eval *ev, const arch_stmt *s) {
    const int at = ev->params ? ev->params->guess_layer : 0;
    int64_t n = 1;
    if (s->n_expr > 1) {
        const arch_target *t = &s->target[1];
        const arch_value v = llm_arch_eval_expr(ev, s->expr[1]);
        if (v.kind == VAL_FAIL || !llm_arch_want_whole(ev, s->expr[1], &v, 1, ARCH_MAX_LAYERS, &n))
            return false;
        if (llm_arch_target_slot(ev, t)->bound) {
            llm_arch_error(ev, t->place,
                           "'%s' already has a value: the layer's number needs a new name",
                           t->name);
            return false;
        }
    }
    ev->n_guess_block = s->in_block ? n : 0;
    n = s->in_block ? 1 : n;
    ev->n_guess_layers = (int)n;
    ev->guess_apart = s->apart;
    /* whether there are turns, which are one layer more, is known behind the stage */
    return read_first(ev, s) && (at <= s->in_block || llm_arch_check_guess_layer(ev));
}

/* Runs the block for layer k, and checks what it returns. False: reported. */
static bool run_guess_layer(arch_eval *ev, const arch_stmt *s, int k, arch_slot *outer) {
    const arch_expr *over = s->expr[0];
    char text[256];
    if (s->n_expr > 1) {
        const arch_slot number = {.v = s->in_block ? llm_arch_tensor_value(ev->in_block)
                                                   : llm_arch_number(k),
                                  .bound = true};
        *llm_arch_target_slot(ev, &s->target[1]) = number;
        outer[s->target[1].slot] = number;
    }
    ev->global[over->global].v = llm_arch_tensor_value(ev->row);
    if (!llm_arch_run_block(ev, s, outer))
        return false;
    ev->foretold = ev->stage_result.t;
    if (llm_arch_rows(ev, ev->foretold) == ROWS_GUESS && ev->foretold->n_dims == 1 &&
        ev->foretold->ne[0] == ev->over->ne[0])
        return true;
    llm_arch_error(ev, s->target[0].place,
                   "the stage '%s' must return a row like that of '%s', in whose place it is "
                   "read to guess one more token: %s",
                   s->target[0].name, over->name,
                   llm_arch_value_text(&ev->stage_result, text, sizeof text));
    return false;
}

/* Runs the block for all layers, so that the tensors of each are known; the one that params.guess_layer asks for is the last. */
static bool run_guess_layers(arch_eval *ev, const arch_stmt *s, arch_slot *outer) {
    const int at = ev->params ? ev->params->guess_layer : 0;
    for (int k = 0; k < ev->n_guess_layers; k++) {
        if (k == at)
            continue;
        if (!run_guess_layer(ev, s, k, outer) || !llm_arch_add_edge(ev, NULL, ev->foretold))
            return false;
    }
    return run_guess_layer(ev, s, at, outer);
}

bool llm_arch_run_over(arch_eval *ev, const arch_stmt *s, arch_slot *outer) {
    const arch_value v = llm_arch_eval_expr(ev, s->expr[0]);
    char text[256];
    if (v.kind == VAL_FAIL)
        return false;
    if (v.kind != VAL_TENSOR || v.t->n_dims != 1 || llm_arch_rows(ev, v.t) != ROWS_EACH) {
        if (v.kind == VAL_ROWS)
            llm_arch_error(
                ev, s->expr[0]->place,
                "'ahead' is for a value of each token; a stage over the rows of '%s' has "
                "the options 'every' and 'from'",
                s->expr[0]->name);
        else
            llm_arch_error(ev, s->expr[0]->place,
                           "a stage is over a row of numbers of each token: %s",
                           llm_arch_value_text(&v, text, sizeof text));
        return false;
    }
    if (ev->over) {
        llm_arch_error(ev, s->place, "a descriptor has one stage over a value at most");
        return false;
    }
    if (s->in_block && (!ev->features || !s->optional)) {
        llm_arch_error(ev, s->place,
                       "only a model that guesses for another one, from = 1, guesses in blocks");
        return false;
    }
    if (ev->features && s->n_expr > 1 && !s->in_block) {
        llm_arch_error(ev, s->target[1].place,
                       "a model that guesses for another one has one layer that does: the layers "
                       "in it are a loop in the stage");
        return false;
    }
    ev->over = v.t;
    ev->over_from_second = s->optional;
    ev->guess_stays = s->stays;
    if (s->stays && !ev->features) {
        llm_arch_error(ev, s->place, "only a model that guesses for another one can have stay = 1");
        return false;
    }
    if (!make_row(ev, s) || !llm_arch_add_edge(ev, NULL, ev->over))
        return false;
    return run_guess_layers(ev, s, outer);
}

/* --- one guess after the other ------------------------------------------------------------------ */

bool llm_arch_is_turn(const arch_eval *ev) {
    return ev->in_turn && ev->params && ev->params->guess_layer == 1;
}

arch_value llm_arch_in_turn(arch_eval *ev, const arch_expr *e, ggl_tensor *x) {
    char shape[128];
    if (ev->stage || ev->n_guess_block == 0 || ev->in_turn || x->n_dims != 1 ||
        llm_arch_rows(ev, x) != ROWS_GUESS)
        return llm_arch_error(
            ev, e->mark,
            "in_turn(x) stands once, behind a stage that guesses in blocks, for a "
            "row of each guess, and x is %s",
            ggl_shape_text(x, shape, sizeof shape));
    ev->in_turn = x;
    ev->n_guess_layers = 2;
    ev->turn_row = llm_arch_input(ev, e->mark, "row", GGL_F32, 1, x->ne);
    ev->turn_before = llm_arch_input(ev, e->mark, "before", GGL_I32, 0, NULL);
    return ev->turn_row && ev->turn_before && llm_arch_add_edge(ev, NULL, x)
               ? llm_arch_tensor_value(ev->turn_row)
               : ARCH_FAIL;
}

arch_value llm_arch_guess_before(arch_eval *ev, const arch_expr *e) {
    if (!ev->in_turn)
        return llm_arch_error(
            ev, e->mark, "guess_before() is known when a guess's turn comes: behind in_turn(x)");
    arch_value v = llm_arch_tensor_value(ev->turn_before);
    v.range = ev->n_vocab;
    return v;
}
