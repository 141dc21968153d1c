/* Checks that everything declared and computed reaches an output.
 *
 * The walk goes from the outputs back through the nodes. It enters the body of a CALL at its
 * result, goes from a parameter to the call's source, from a state to its KEEP, and from the arm
 * of a choice that was taken to the other arm. Nodes that it does not reach are unused. In a
 * chain of unused nodes, the last one, which nothing reads, is reported: the mistake is there. */
#include <string.h>

#include "compile.h"
#include "ggl/internal/graph.h"

typedef struct walk {
    arch_eval *ev;
    uint8_t *mark;      /* by id: 1 reached, 2 unused but read by an unused node */
    ggl_tensor **owner; /* of a parameter: the call's source; of a state: its KEEP */
    ggl_tensor **stack;
    /* edge: per id, 1 + the first index in ev->read, 0: none; next: per edge, the one after it */
    size_t *edge, *next;
    size_t n, n_ids;
} walk;

static void visit(walk *w, ggl_tensor *t) {
    if (t && !w->mark[t->id]) {
        w->mark[t->id] = 1;
        w->stack[w->n++] = t; /* each node is pushed once: the stack cannot overflow */
    }
}

/* Visits everything reachable from the nodes on the stack. */
static void spread(walk *w) {
    while (w->n > 0) {
        ggl_tensor *t = w->stack[--w->n];
        visit(w, w->owner[t->id]);
        for (size_t i = w->edge[t->id]; i > 0; i = w->next[i - 1])
            visit(w, w->ev->read[i - 1].to);
        if (t->op == GGL_OP_CALL) { /* a source counts only if the body reads it */
            visit(w, t->body->result);
            continue;
        }
        for (int k = 0; k < t->n_src; k++)
            visit(w, t->src[k]);
    }
}

static bool walk_init(walk *w, arch_eval *ev) {
    w->ev = ev;
    w->n_ids = (size_t)ggl_graph_n_ids(ev->g);
    w->mark = ggl_calloc(w->n_ids, sizeof *w->mark);
    w->owner = ggl_calloc(w->n_ids, sizeof *w->owner);
    w->stack = ggl_calloc(w->n_ids, sizeof *w->stack);
    w->edge = ggl_calloc(w->n_ids, sizeof *w->edge);
    w->next = ggl_calloc(ev->n_read, sizeof *w->next);
    if (!w->mark || !w->owner || !w->stack || !w->edge || !w->next)
        return llm_arch_nomem(ev), false;
    for (size_t i = 0; i < ev->n_read; i++)
        if (ev->read[i].from) {
            w->next[i] = w->edge[ev->read[i].from->id];
            w->edge[ev->read[i].from->id] = i + 1;
        }
    for (size_t i = 0; i < ev->n_call; i++)
        for (int k = 0; k < ev->call[i]->n_src; k++)
            w->owner[ev->call[i]->body->param[k]->id] = ev->call[i]->src[k];
    for (size_t i = 0; i < ev->n_keep; i++)
        w->owner[ev->keep[i]->src[0]->id] = ev->keep[i];
    return true;
}

static void walk_fini(walk *w) {
    ggl_free(w->mark);
    ggl_free(w->owner);
    ggl_free(w->stack);
    ggl_free(w->edge);
    ggl_free(w->next);
}

static arch_made *made_at(arch_eval *ev, size_t id) {
    return id < ev->cap_made && ev->made[id].t ? &ev->made[id] : NULL;
}

/* Marks all results of a call as used if one of them is. Goes from the last node to the first,
 * because an earlier one may be a source of a later one. */
static void spread_siblings(walk *w) {
    arch_eval *ev = w->ev;
    uint8_t *used = ggl_calloc((size_t)ev->n_siblings + 1, 1);
    if (!used) {
        llm_arch_nomem(ev);
        return;
    }
    for (size_t id = w->n_ids; id-- > 0;) {
        arch_made *m = made_at(ev, id);
        if (m && w->mark[id] && m->siblings)
            used[m->siblings] = 1;
    }
    for (size_t id = w->n_ids; id-- > 0;) {
        arch_made *m = made_at(ev, id);
        if (!m || !m->siblings)
            continue;
        if (w->mark[id])
            used[m->siblings] = 1;
        else if (used[m->siblings])
            visit(w, m->t);
        spread(w);
    }
    ggl_free(used);
}

/* Marks the sources of unused nodes with 2, so that only the ends of chains are reported. */
static void mark_inner(walk *w) {
    for (size_t id = 0; id < w->n_ids; id++) {
        arch_made *m = made_at(w->ev, id);
        if (!m || w->mark[id] == 1)
            continue;
        if (m->t->op == GGL_OP_CALL && w->mark[m->t->body->result->id] != 1)
            w->mark[m->t->body->result->id] = 2;
        for (int k = 0; k < m->t->n_src; k++) {
            ggl_tensor *s = m->t->src[k];
            if (s && w->mark[s->id] != 1)
                w->mark[s->id] = 2;
            if (s && s->op == GGL_OP_CAST && s->src[0] && w->mark[s->src[0]->id] != 1)
                w->mark[s->src[0]->id] = 2; /* the builder added the cast */
        }
    }
}

/* Returns a reason why nothing may be used, for messages, or "". */
static const char *no_layers(const arch_eval *ev) {
    return ev->n_layer == 0 ? "; the model has no layers (n_layer is 0)" : "";
}

/* Returns what values must reach, for messages. */
static const char *outputs_text(const arch_eval *ev) {
    for (int k = 0; k < OUT_COUNT; k++)
        if (k != OUT_LOGITS && ev->arch->output[k] >= 0)
            return "an output";
    return "the logits";
}

/* Reports the first unused end of a chain: a KEEP if `kept`, else another node. KEEPs are
 * reported last, because the unused call that contains them is usually the mistake. */
static bool report_value(walk *w, bool kept) {
    arch_eval *ev = w->ev;
    for (size_t id = 0; id < w->n_ids; id++) {
        arch_made *m = made_at(ev, id);
        if (!m || w->mark[id] || (m->t->op == GGL_OP_KEEP) != kept)
            continue;
        if (m->t->op == GGL_OP_CACHE)
            llm_arch_error(ev, m->place, "no attend reads what is cached here");
        else if (m->target)
            llm_arch_error(ev, m->place, "the value of '%s' does not reach %s%s", m->target,
                           outputs_text(ev), no_layers(ev));
        else
            llm_arch_error(ev, m->place, "this value does not reach %s%s", outputs_text(ev),
                           no_layers(ev));
        return false;
    }
    return true;
}

/* Reports the first declared tensor whose mark is `left`. */
static bool report_weight(walk *w, uint8_t left) {
    arch_eval *ev = w->ev;
    for (size_t i = 0; i < ev->n_weight; i++) {
        const arch_weight *x = ev->weight[i];
        /* a tensor read in parts has no t; its parts are checked */
        if (!x->t || w->mark[x->t->id] != left)
            continue;
        const char *hint = x->is_bias ? "linear(x, w) adds it, and w.bias is its value"
                                      : "use it, or remove the line";
        ev->status = llm_arch_fail(ev->err, GGL_FORMAT, x->place, x->chain, hint,
                                   "tensor %s is declared but does not reach %s%s", x->name,
                                   outputs_text(ev), no_layers(ev));
        llm_arch_lead_with_file(ev, x->place);
        return false;
    }
    return true;
}

bool llm_arch_check_use(arch_eval *ev, ggl_tensor *const *output, int n) {
    walk w = {0};
    bool ok = walk_init(&w, ev);
    if (ok) {
        for (int k = 0; k < n; k++)
            visit(&w, output[k]);
        spread(&w);
        for (size_t i = 0; i < ev->n_read; i++)
            if (!ev->read[i].from)
                visit(&w, ev->read[i].to);
        spread(&w);
        spread_siblings(&w);
        mark_inner(&w);
        ok = ev->status == GGL_OK && report_weight(&w, 0) && report_value(&w, false) &&
             report_value(&w, true) && report_weight(&w, 2);
    }
    walk_fini(&w);
    return ok;
}

bool llm_arch_check_unused(arch_eval *ev) {
    const arch_target *t = ev->arch->unused;
    if (t && ev->arch->language < 2) {
        int line, col;
        llm_arch_line_col(t->place, &line, &col);
        llm_arch_note(ev, "%s:%d:%d: nothing reads '%s', which is an error from language 2 on",
                      ev->arch->text.name, line, col, t->name);
        return true;
    }
    if (t)
        llm_arch_error(ev, t->place,
                       "nothing reads '%s': use it, or remove the line; for a key without effect, "
                       "write 'ignore'",
                       t->name);
    return !t;
}
