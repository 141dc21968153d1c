/* Runs statements. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "compile.h"
#include "ggl/internal/show.h"

/* --- names ------------------------------------------------------------------------------------ */

arch_slot *llm_arch_target_slot(arch_eval *ev, const arch_target *t) {
    return ev->frame ? &ev->frame->local[t->slot] : &ev->global[t->slot];
}

/* Names a node after the variable it is assigned to, for plans and messages. Keeps the first
 * name a node gets. */
static void name_node(arch_eval *ev, const arch_target *t, const arch_value *v) {
    bool leaf = v->t->op == GGL_OP_INPUT || v->t->op == GGL_OP_WEIGHT || v->t->op == GGL_OP_CONST ||
                v->t->op == GGL_OP_PARAM;
    if (leaf || t->place.text->prelude || (v->t->name && ev->frame))
        return;
    char buf[ARCH_MAX_NAME + 32];
    snprintf(buf, sizeof buf, "blk.%" PRId64 " %s", ev->layer, t->name);
    bool alias = (size_t)v->t->id < ev->cap_made && ev->made[v->t->id].t &&
                 ev->made[v->t->id].target && !ev->frame;
    if (!alias) {
        ggl_tensor_set_name(ev->g, v->t, ev->layer >= 0 ? buf : t->name);
        if (!ev->frame && (size_t)v->t->id < ev->cap_made)
            ev->made[v->t->id].target = t->name;
    }
}

bool llm_arch_bind(arch_eval *ev, const arch_target *t, const arch_value *v) {
    arch_slot *s = llm_arch_target_slot(ev, t);
    if (v->kind == VAL_FAIL)
        return false;
    if (s->state) {
        llm_arch_error(ev, t->place, "'%s' is a state: assign its new value by 'keep %s = ..'",
                       t->name, t->name);
        return false;
    }
    if (!ev->frame && ev->layer_name && strcmp(t->name, ev->layer_name) == 0 && ev->layer >= 0) {
        llm_arch_error(ev, t->place, "'%s' is the layer's number and cannot be assigned", t->name);
        return false;
    }
    if (!s->bound)
        s->in_layer = !ev->frame && ev->layer >= 0;
    s->bound = true;
    s->v = *v;
    s->place = t->place;
    if (v->kind == VAL_NUMBER && !ev->frame)
        s->v.text = t->name; /* messages call dimensions by this name */
    if (v->kind == VAL_TENSOR || v->kind == VAL_CACHE)
        name_node(ev, t, v);
    return true;
}

/* --- statements ------------------------------------------------------------------------------- */

static bool run_assign(arch_eval *ev, const arch_stmt *s) {
    const arch_expr *e = s->expr[0];
    if (s->n_target == 1) {
        arch_value v = llm_arch_eval_expr(ev, e);
        if (!llm_arch_bind(ev, &s->target[0], &v))
            return false;
        if (e->kind == EX_CALL && e->callee == CALL_OP && e->op == GGL_OP_STATE)
            llm_arch_target_slot(ev, &s->target[0])->state = v.t;
        return true;
    }
    int n;
    if (e->kind != EX_CALL) {
        llm_arch_error(ev, e->place, "one value for %d names: only a call gives several",
                       s->n_target);
        return false;
    }
    arch_value *v = llm_arch_call(ev, e, &n);
    if (!v)
        return false;
    if (n != s->n_target) {
        llm_arch_error(ev, e->mark, "%s gives %d result%s for %d names", e->name, n,
                       n == 1 ? "" : "s", s->n_target);
        return false;
    }
    for (int k = 0; k < n; k++)
        if (!llm_arch_bind(ev, &s->target[k], &v[k]))
            return false;
    return true;
}

/* Records for coverage that the statement's line ran, or which way its `if` went. */
static void mark_line(arch_eval *ev, const arch_stmt *s, int what) {
    if (ev->line_ran && !s->place.text->prelude)
        ev->line_ran[s->line - 1] |= (uint8_t)what;
}

static bool run_if(arch_eval *ev, const arch_stmt *s) {
    for (int k = 0; k < s->n_arm; k++) {
        bool yes = true;
        if (s->arm[k].cond) {
            arch_value v = llm_arch_eval_expr(ev, s->arm[k].cond);
            if (v.kind == VAL_FAIL || !llm_arch_want_bool(ev, s->arm[k].cond, &v, &yes))
                return false;
        }
        if (yes && k == 0)
            mark_line(ev, s, LLM_ARCH_LINE_TAKEN);
        if (yes)
            return llm_arch_run(ev, s->arm[k].body);
    }
    mark_line(ev, s, LLM_ARCH_LINE_PASSED);
    return true;
}

/* Clears the names assigned in the layer that ends. */
static void end_turn(arch_eval *ev) {
    for (int k = SLOT_FIRST_FREE; k < ev->arch->n_global; k++)
        if (ev->global[k].in_layer)
            ev->global[k] = (arch_slot){0};
}

static bool run_layer(arch_eval *ev, const arch_stmt *s) {
    arch_value n = llm_arch_eval_expr(ev, s->expr[0]);
    int64_t n_layer;
    if (n.kind == VAL_FAIL ||
        !llm_arch_want_whole(ev, s->expr[0], &n, 0, ARCH_MAX_LAYERS, &n_layer))
        return false;
    arch_slot *slot = llm_arch_target_slot(ev, &s->target[0]);
    if (slot->bound) {
        llm_arch_error(ev, s->target[0].place,
                       "'%s' already has a value: the layer's number needs a new name",
                       s->target[0].name);
        return false;
    }
    arch_carried carried;
    if (!llm_arch_carried_begin(ev, &carried))
        return false;
    ev->layer_name = s->target[0].name;
    ev->layers = s;
    for (ev->layer = 0; ev->layer < n_layer; ev->layer++) {
        llm_arch_carried_enter(ev, &carried);
        *slot =
            (arch_slot){.v = llm_arch_number((double)ev->layer), .bound = true, .in_layer = true};
        slot->v.text = ev->layer_name;
        ggl_graph_set_group(ev->g, (int)ev->layer);
        if (!llm_arch_step(ev, s->place, ev->arch->n_global) || !llm_arch_run(ev, s->arm[0].body) ||
            !llm_arch_carried_leave(ev, &carried)) {
            llm_arch_carried_free(&carried);
            return false;
        }
        end_turn(ev);
    }
    llm_arch_carried_end(ev, &carried);
    ev->layer = -1;
    ev->layer_name = NULL;
    ev->n_layer = n_layer > ev->n_layer ? n_layer : ev->n_layer;
    ggl_graph_set_group(ev->g, (int)ev->n_layer);
    return true;
}

/* Runs the body n times, in the scope around it, as an `if` does. The counter has a value only
 * in the body. */
static bool run_for(arch_eval *ev, const arch_stmt *s) {
    const arch_target *t = &s->target[0];
    arch_value n = llm_arch_eval_expr(ev, s->expr[0]);
    int64_t times;
    if (n.kind == VAL_FAIL || !llm_arch_want_whole(ev, s->expr[0], &n, 0, ARCH_MAX_LAYERS, &times))
        return false;
    if (llm_arch_target_slot(ev, t)->bound) {
        llm_arch_error(ev, t->place,
                       "'%s' already has a value: the counter of a 'for' needs a new name",
                       t->name);
        return false;
    }
    for (int64_t k = 0; k < times; k++) {
        *llm_arch_target_slot(ev, t) =
            (arch_slot){.v = llm_arch_number((double)k), .bound = true, .in_layer = ev->layer >= 0};
        if (!llm_arch_step(ev, s->place, 1) || !llm_arch_run(ev, s->arm[0].body))
            return false;
        const arch_value *now = &llm_arch_target_slot(ev, t)->v;
        if (now->kind != VAL_NUMBER || now->num != (double)k) {
            llm_arch_error(ev, t->place,
                           "'%s' is the counter of this 'for', and cannot be assigned in it",
                           t->name);
            return false;
        }
        *llm_arch_target_slot(ev, t) = (arch_slot){0};
    }
    return true;
}

static bool run_keep(arch_eval *ev, const arch_stmt *s) {
    const arch_target *t = &s->target[0];
    arch_slot *slot = llm_arch_target_slot(ev, t);
    if (!slot->state) {
        llm_arch_error(ev, t->place, "'%s' is not a state: 'keep' assigns to a result of state(..)",
                       t->name);
        return false;
    }
    if (slot->kept) {
        llm_arch_error(ev, t->place, "state '%s' has two 'keep's", t->name);
        return false;
    }
    arch_value v = llm_arch_eval_expr(ev, s->expr[0]);
    ggl_tensor *src[2] = {slot->state, v.kind == VAL_FAIL
                                           ? NULL
                                           : llm_arch_want_tensor(ev, s->expr[0]->place, &v,
                                                                  "the new value of a state")};
    if (!src[1])
        return false;
    ggl_tensor *keep = llm_arch_node(ev, t->place, GGL_OP_KEEP, src, 2, NULL, 0);
    if (!keep || !llm_arch_push(ev, &ev->keep, &ev->cap_keep, ev->n_keep + 1, sizeof *ev->keep))
        return false;
    ev->keep[ev->n_keep++] = keep;
    slot->kept = true;
    slot->v = llm_arch_tensor_value(src[1]);
    return true;
}

/* Evaluates the results into the frame, or the stage's. Always returns false, which stops the body. */
static bool run_return(arch_eval *ev, const arch_stmt *s) {
    arch_frame *f = ev->frame;
    if (!f && s->n_expr != 1) {
        llm_arch_error(ev, s->place, "a stage returns one value, but %d are given", s->n_expr);
        return false;
    }
    if (!f) {
        ev->stage_result = llm_arch_eval_expr(ev, s->expr[0]);
        return false;
    }
    /* `return f(..)` returns all results of f */
    if (s->n_expr == 1 && s->expr[0]->kind == EX_CALL) {
        arch_value *v = llm_arch_call(ev, s->expr[0], &f->n_result);
        f->result = v ? ggl_calloc((size_t)f->n_result + 1, sizeof *v) : NULL;
        if (f->result)
            memcpy(f->result, v, (size_t)f->n_result * sizeof *v);
        else if (v)
            llm_arch_nomem(ev);
        return false;
    }
    f->n_result = s->n_expr;
    f->result = ggl_calloc((size_t)s->n_expr + 1, sizeof *f->result);
    if (!f->result)
        llm_arch_nomem(ev);
    for (int k = 0; f->result && k < s->n_expr; k++) {
        f->result[k] = llm_arch_eval_expr(ev, s->expr[k]);
        if (f->result[k].kind == VAL_FAIL)
            break;
    }
    return false;
}

/* --- require ---------------------------------------------------------------------------------- */

/* Appends "size(w) = 64" for an operand, unless it is a literal. */
static void append_operand(arch_eval *ev, const arch_expr *e, char *buf, size_t size) {
    char quote[64];
    size_t n = strlen(buf);
    bool literal =
        e->kind == EX_NUMBER || e->kind == EX_STRING || e->kind == EX_BOOL || e->kind == EX_LIST;
    arch_value v = literal ? ARCH_FAIL : llm_arch_eval_expr(ev, e);
    llm_arch_quote(e->place, quote, sizeof quote);
    const char *sep = n ? ", " : ": ";
    if (v.kind == VAL_NUMBER)
        snprintf(buf + n, size - n, "%s%s = %.12g", sep, quote, v.num);
    else if (v.kind == VAL_STRING)
        snprintf(buf + n, size - n, "%s%s = \"%.*s\"", sep, quote,
                 (int)ggl_utf8_cut(v.str.s, v.str.n, 64), v.str.s);
}

/* True if the condition is true. False: it is not, or reported. */
static bool holds(arch_eval *ev, const arch_expr *e) {
    bool yes = false;
    const arch_value v = llm_arch_eval_expr(ev, e);
    return v.kind != VAL_FAIL && llm_arch_want_bool(ev, e, &v, &yes) && yes;
}

/* Of values of a folder, finds the part of a condition that does not hold, so that a message names no others. */
static const arch_expr *part_that_fails(arch_eval *ev, const arch_expr *e) {
    while (ev->convert && e->kind == EX_AND && ev->status == GGL_OK)
        e = holds(ev, e->a) ? e->b : e->a;
    return e;
}

static bool is_field(const arch_expr *e) {
    return e->kind == EX_FIELD || (e->kind == EX_OR_ELSE && e->a->kind == EX_FIELD);
}

/* Returns b of abs(a - b) < c: a value that another one is to be near; NULL: e is no such condition. */
static const arch_expr *middle(const arch_expr *e) {
    const bool is_near = e->kind == EX_BINARY && e->op == GGL_OP_LT && e->a->kind == EX_CALL &&
                         strcmp(e->a->name, "abs") == 0 && e->a->n_arg == 1;
    const arch_expr *x = is_near ? e->a->arg[0].value : NULL;
    return x && x->kind == EX_BINARY && x->op == GGL_OP_SUB ? x->b : NULL;
}

/* Appends the values of e, a list or one value, behind each other. */
static void append_values(arch_eval *ev, const arch_expr *e, char *buf, size_t size) {
    char text[96];
    const arch_value v = llm_arch_eval_expr(ev, e);
    for (size_t i = 0; i < (v.kind == VAL_LIST ? v.n : 1) && i < 16; i++) {
        const arch_value x = v.kind == VAL_LIST ? llm_arch_list_item(ev, e, &v, (int64_t)i) : v;
        const size_t had = strlen(buf);
        if (x.kind == VAL_NUMBER)
            snprintf(text, sizeof text, "%.12g", x.num);
        else if (x.kind == VAL_STRING)
            snprintf(text, sizeof text, "\"%.*s\"", (int)ggl_utf8_cut(x.str.s, x.str.n, 64),
                     x.str.s);
        else
            snprintf(text, sizeof text, "%s", x.kind == VAL_BOOL && x.flag ? "true" : "false");
        snprintf(buf + had, size - had, "%s%s", i ? ", " : "", text);
    }
}

/* Appends which values of a folder are right in place of those of a condition, if it says so itself: a list, one value, true or false. Of conditions of which one is enough
 * (is_one), each value has its name. */
static void append_right(arch_eval *ev, const arch_expr *e, bool is_one, bool *any, char *buf,
                         size_t size) {
    char quote[64];
    e = part_that_fails(ev, e);
    if (e->kind == EX_OR) {
        append_right(ev, e->a, true, any, buf, size);
        append_right(ev, e->b, true, any, buf, size);
        return;
    }
    const bool no = e->kind == EX_NOT;
    const bool lists = !no && (e->kind == EX_IN || (e->kind == EX_BINARY && e->op == GGL_OP_EQ));
    const arch_expr *of = no || lists ? e->a : e;
    const bool is_flag = is_field(of) && !lists;
    if ((!is_flag && !lists && !middle(e)) || (is_one && !is_field(of)))
        return;
    size_t n = strlen(buf);
    const arch_expr *name = of->kind == EX_OR_ELSE ? of->a : of;
    snprintf(buf + n, size - n, "%s%s%s", *any ? ", or " : "; accepted: ",
             is_one ? llm_arch_quote(name->place, quote, sizeof quote) : "", is_one ? " = " : "");
    *any = true;
    n = strlen(buf);
    if (is_flag)
        snprintf(buf + n, size - n, "%s", no ? "false" : "true");
    else
        append_values(ev, lists ? e->b : middle(e), buf, size);
}

static bool run_require(arch_eval *ev, const arch_stmt *s) {
    const arch_expr *e = s->expr[0];
    char values[512] = "", quote[96];
    if (holds(ev, e))
        return true;
    e = part_that_fails(ev, e);
    if (ev->status != GGL_OK)
        return false;
    ev->refused = true;
    if (ev->src->require_key)
        llm_arch_teach(ev, e, true);
    arch_value left = e->kind == EX_IN && s->string ? llm_arch_eval_expr(ev, e->a) : ARCH_FAIL;
    if (left.kind == VAL_STRING) {
        snprintf(values, sizeof values, " \"%.*s\"", (int)ggl_utf8_cut(left.str.s, left.str.n, 64),
                 left.str.s);
    } else if (e->kind == EX_BINARY || e->kind == EX_IN) {
        append_operand(ev, e->a, values, sizeof values);
        append_operand(ev, e->b, values, sizeof values);
    }
    bool any = false;
    if (ev->convert)
        append_right(ev, e, false, &any, values, sizeof values);
    if (s->string)
        llm_arch_error(ev, e->place, "%s%s", s->string, values);
    else
        llm_arch_error(ev, e->place, "this requirement does not hold: %s%s",
                       llm_arch_quote(e->place, quote, sizeof quote), values);
    return false;
}

/* --- stages ------------------------------------------------------------------------------------- */

bool llm_arch_run_block(arch_eval *ev, const arch_stmt *s, arch_slot *outer) {
    const size_t n_bytes = (size_t)ev->arch->n_global * sizeof *outer;
    const arch_target *t = &s->target[0];
    char text[256];
    ev->stage = s;
    ev->stage_result = ARCH_FAIL;
    const bool whole = llm_arch_run(ev, s->arm[0].body);
    ev->stage = NULL;
    memcpy(ev->global, outer, n_bytes);
    if (ev->status != GGL_OK)
        return false;
    if (!whole && ev->stage_result.kind == VAL_TENSOR && ggl_is_batched(ev->stage_result.t))
        return true;
    llm_arch_error(ev, t->place,
                   whole ? "the stage '%s' has no result: its last line must be return .."
                         : "the stage '%s' must return a value of each row: %s",
                   t->name, whole ? "" : llm_arch_value_text(&ev->stage_result, text, sizeof text));
    return false;
}

/* Returns which rows a name in the list of an input means. 0: none, reported. */
static int named_tap(arch_eval *ev, const arch_expr *e, ggl_str name) {
    static const struct {
        const char *name;
        int tap;
    } taps[] = {{"state", LLM_TAP_STATE}, {"window", LLM_TAP_WINDOW}, {"all", LLM_TAP_ALL}};
    for (size_t k = 0; k < sizeof taps / sizeof *taps; k++)
        if (name.n == strlen(taps[k].name) && memcmp(name.s, taps[k].name, name.n) == 0)
            return taps[k].tap;
    llm_arch_error(ev, e->place,
                   "a layer's number, \"state\", \"window\" or \"all\" is expected, not \"%.*s\"",
                   (int)ggl_utf8_cut(name.s, name.n, 64), name.s);
    return 0;
}

/* Rows that enter layers of another model. */
static bool run_input(arch_eval *ev, const arch_stmt *s) {
    if (s->of_rows)
        return llm_arch_run_rows_input(ev, s);
    arch_value n = llm_arch_eval_expr(ev, s->expr[0]), list = ARCH_FAIL;
    int64_t n_row, at;
    if (n.kind != VAL_FAIL)
        list = llm_arch_eval_expr(ev, s->other);
    if (list.kind == VAL_FAIL || !llm_arch_want_whole(ev, s->expr[0], &n, 1, ARCH_MAX_DIM, &n_row))
        return false;
    const uint64_t n_taps = list.kind == VAL_LIST ? list.n : 1;
    bool is_equal = true; /* rows that enter layers have the same length */
    if (ev->features || n_taps < 1 || n_taps > LLM_ARCH_MAX_TAPS) {
        llm_arch_error(ev, s->place,
                       ev->features ? "a descriptor has one input at most"
                                    : "an input from %llu layers: 1 to %d are allowed",
                       (unsigned long long)n_taps, LLM_ARCH_MAX_TAPS);
        return false;
    }
    for (uint64_t i = 0; i < n_taps; i++) {
        const arch_value v =
            list.kind == VAL_LIST ? llm_arch_list_item(ev, s->other, &list, (int64_t)i) : list;
        const int named = v.kind == VAL_STRING ? named_tap(ev, s->other, v.str) : 0;
        at = named;
        if (v.kind == VAL_FAIL || ev->status != GGL_OK ||
            (named == 0 && !llm_arch_want_whole(ev, s->other, &v, 0, ARCH_MAX_LAYERS, &at)))
            return false;
        is_equal = is_equal && named == 0;
        ev->tap[ev->n_taps++] = (int32_t)at;
    }
    if (is_equal && n_row % (int64_t)n_taps != 0) {
        llm_arch_error(ev, s->place,
                       "an input of %lld numbers from %llu layers, whose rows have the same length",
                       (long long)n_row, (unsigned long long)n_taps);
        return false;
    }
    ev->features = ggl_graph_input(ev->g, "features", GGL_F32, 1, &n_row, true);
    if (!llm_arch_graph_ok(ev, s->place))
        return false;
    const arch_value v = llm_arch_tensor_value(ev->features);
    return llm_arch_bind(ev, &s->target[0], &v);
}

/* --- texts whose rows see each other --- */

/* Makes the inputs of the stage. If tokens read it, they have inputs of their own, and two that say where their text is. */
static bool begin_rows(arch_eval *ev, const arch_stmt *s) {
    static const char *const own[] = {"stage.token", "stage.pos", "stage.slot",
                                      "stage.end",   "read.slot", "read.end"};
    if (!ev->arch->has_tokens) {
        ggl_graph_input(ev->g, "end", GGL_I32, 0, NULL, true);
        return llm_arch_graph_ok(ev, s->place);
    }
    for (size_t k = 0; k < sizeof own / sizeof *own; k++) {
        ggl_tensor *t = ggl_graph_input(ev->g, own[k], GGL_I32, 0, NULL, true);
        if (k < 2)
            ev->global[k == 0 ? SLOT_TOKEN : SLOT_POS].v.t = t;
    }
    ev->stage_pos = ev->global[SLOT_POS].v;
    return llm_arch_graph_ok(ev, s->place);
}

static bool run_text(arch_eval *ev, const arch_stmt *s, arch_slot *outer) {
    if (ev->n_stages++ > 0) {
        llm_arch_error(ev, s->place, LLM_ARCH_ONE_TEXT);
        return false;
    }
    const bool ok = begin_rows(ev, s) && llm_arch_run_block(ev, s, outer);
    if (ev->arch->has_tokens)
        ggl_graph_set_group(ev->g, -1); /* the tokens' part before their first layer */
    ev->stage_result.is_stage = true;
    return ok;
}

static bool run_stage(arch_eval *ev, const arch_stmt *s) {
    const arch_target *t = &s->target[0];
    if (llm_arch_target_slot(ev, t)->bound) {
        llm_arch_error(ev, t->place, "'%s' already has a value: a stage needs a new name", t->name);
        return false;
    }
    if (arch_guesses(s) && !llm_arch_count_guess_layers(ev, s))
        return false;
    const size_t n_bytes = (size_t)ev->arch->n_global * sizeof(arch_slot);
    arch_slot *outer = ggl_calloc(1, n_bytes);
    if (!outer)
        return llm_arch_nomem(ev), false;
    memcpy(outer, ev->global, n_bytes);
    const bool ok = s->of_rows        ? llm_arch_run_rows_stage(ev, s, outer)
                    : arch_guesses(s) ? llm_arch_run_over(ev, s, outer)
                                      : run_text(ev, s, outer);
    ggl_free(outer);
    return ok && llm_arch_bind(ev, t, &ev->stage_result);
}

/* --- running ---------------------------------------------------------------------------------- */

static bool run_one(arch_eval *ev, const arch_stmt *s) {
    switch (s->kind) {
    case ST_ASSIGN:
        return run_assign(ev, s);
    case ST_WEIGHT:
        return llm_arch_run_weight(ev, s);
    case ST_IF:
        return run_if(ev, s);
    case ST_LAYER:
        return run_layer(ev, s);
    case ST_FOR:
        return run_for(ev, s);
    case ST_STAGE:
        return run_stage(ev, s);
    case ST_INPUT:
        return run_input(ev, s);
    case ST_PREFIX:
        ev->prefix = s->string;
        return true;
    case ST_KEEP:
        return run_keep(ev, s);
    case ST_RETURN:
        return run_return(ev, s);
    case ST_REQUIRE:
        return run_require(ev, s);
    case ST_IGNORE:
        return llm_arch_run_ignore(ev, s);
    case ST_ABSENT:
        return true; /* a row of known_keys.arch, which is not run */
    }
    return false;
}

bool llm_arch_run(arch_eval *ev, const arch_stmt *s) {
    for (; s; s = s->next) {
        if (!llm_arch_step(ev, s->place, 1))
            return false;
        if (!s->place.text->prelude)
            ev->at = s;
        mark_line(ev, s, LLM_ARCH_LINE_RAN);
        if (!run_one(ev, s))
            return false;
    }
    return true;
}
