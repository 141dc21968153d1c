/* Finds the changes that adapters make to the weights of a model, and checks that each pair of each
 * adapter is one. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "adapt.h"
#include "rotate.h"
#include "ggl/internal/graph.h"

/* --- errors ----------------------------------------------------------------------------------- */

bool llm_arch_adapt_refuse(arch_eval *ev, ggl_status st, const llm_adapter *a, const char *fmt,
                           ...) {
    if (ev->status != GGL_OK)
        return false;
    va_list args;
    va_start(args, fmt);
    ev->status = ggl_failv(ev->err, st, fmt, args);
    va_end(args);
    (void)ggl_within(ev->err, st, "%s", llm_adapter_name(a));
    return false;
}

/* Writes the extents of a tensor of a file to buf; returns buf. */
static const char *extents_text(const int64_t *ne, int n, char *buf, size_t size) {
    size_t at = 0;
    for (int d = 0; d < n && at < size; d++)
        at += (size_t)snprintf(buf + at, size - at, "%s%" PRId64, d ? ", " : "[", ne[d]);
    if (at < size)
        snprintf(buf + at, size - at, "]");
    return buf;
}

static bool refuse_shape(arch_eval *ev, const llm_adapter *a, const arch_pair *p, const char *name,
                         int n_dims, const int64_t *ne) {
    char lora_a[100], lora_b[100], model[100];
    return llm_arch_adapt_refuse(
        ev, GGL_SHAPE, a,
        "%.200s.lora_a is %s and .lora_b is %s, which does not fit %.200s %s of %.200s", p->name.s,
        extents_text(p->a->ne, p->a->n_dims, lora_a, sizeof lora_a),
        extents_text(p->b->ne, p->b->n_dims, lora_b, sizeof lora_b), name,
        extents_text(ne, n_dims, model, sizeof model), ev->src->name);
}

/* --- changes of a weight ---------------------------------------------------------------------- */

static const arch_pair *pair_named(const llm_adapter *a, const char *name, size_t *at) {
    *at = ggl_index_find(&a->index, a->pair, (ggl_str){name, strlen(name)});
    return *at == SIZE_MAX ? NULL : &a->pair[*at];
}

/* Makes a leaf for a tensor of the adapter, named like the tensor. NULL: reported. */
static ggl_tensor *leaf(arch_eval *ev, const ggl_gguf_tensor *t, int n_dims, const int64_t *ne,
                        const void *data) {
    char name[3 * ARCH_MAX_NAME];
    snprintf(name, sizeof name, "%.*s", (int)t->name.n, t->name.s);
    ggl_tensor *w = ggl_graph_weight(ev->g, name, t->type, n_dims, ne, data);
    return llm_arch_graph_ok(ev, ev->at->place) ? w : NULL;
}

/* Adds a change of weight w to the end of the list: magnitudes multiply what the adapters before them have made. False: reported. */
static bool add_change(arch_eval *ev, const ggl_tensor *w, arch_change c, size_t use) {
    struct arch_adapt *x = ev->adapt;
    const size_t i = x->n_change;
    if (!c.rows || !c.columns || (c.pair->magnitude && !c.magnitude) ||
        !llm_arch_push(ev, &x->change, &x->cap_change, i + 1, sizeof *x->change))
        return false;
    c.next = 0;
    c.w = (ggl_tensor *)w;
    c.size = NULL;
    x->change[x->n_change++] = c;
    size_t *end = &x->first[w->id], first = *end > 1 ? *end - 1 : 0;
    for (; first > 0; first = *end)
        end = &x->change[first - 1].next;
    *end = end == &x->first[w->id] ? i + 2 : i + 1;
    x->hit[use][c.pair - c.adapter->pair] = true;
    return true;
}

/* Makes a leaf for the magnitudes of the weight w, as one dimension: optimizers take them for a vector, also those of a stack. NULL: there
 * are none, or reported. */
static ggl_tensor *magnitude_leaf(arch_eval *ev, const arch_pair *p, const ggl_tensor *w,
                                  const void *data) {
    const int64_t n = ggl_extents(w->ne, 1, GGL_MAX_DIMS, 1);
    return p->magnitude ? leaf(ev, p->magnitude, 1, &n, data) : NULL;
}

static double scale_of(const llm_adapter_use *u, const arch_pair *p) {
    const double alpha = u->adapter->alpha, scale = u->varies ? 1 : u->scale;
    return alpha != 0 ? scale * alpha / (double)p->rank : scale;
}

/* True if the pair's extents are those of a weight with `ne`. */
static bool pair_fits(const arch_pair *p, int n_dims, const int64_t *ne) {
    const ggl_gguf_tensor *rows = arch_pair_rows(p), *columns = arch_pair_columns(p);
    const bool one = columns->ne[2] == 1; /* for a whole stack */
    return n_dims >= 2 && n_dims <= 3 && columns->ne[p->embedding] == ne[0] &&
           rows->ne[1] == ne[1] && rows->ne[2] == ne[2] && (one || columns->ne[2] == ne[2]);
}

/* Adds the change by pair p of the weight w. False: reported. */
static bool change_by(arch_eval *ev, ggl_tensor *w, size_t use, const arch_pair *p) {
    const llm_adapter_use *u = &ev->adapt->use[use];
    const ggl_gguf_tensor *rows = arch_pair_rows(p), *columns = arch_pair_columns(p);
    if (!pair_fits(p, w->n_dims, w->ne))
        return refuse_shape(ev, u->adapter, p, w->name, w->n_dims, w->ne);
    const int n = columns->ne[2] == 1 && w->ne[2] != 1 ? 2 : w->n_dims;
    arch_change c = {.flipped = p->embedding,
                     .scale = scale_of(u, p),
                     .task = u->task,
                     .adapter = u->adapter,
                     .pair = p};
    c.rows = leaf(ev, rows, w->n_dims, rows->ne, rows->data);
    c.columns = leaf(ev, columns, n, columns->ne, columns->data);
    c.magnitude = magnitude_leaf(ev, p, w, p->magnitude ? p->magnitude->data : NULL);
    return add_change(ev, w, c, use);
}

/* Looks up the changes of the weight w, unless that was done before. False: reported. */
static bool find_changes(arch_eval *ev, ggl_tensor *w) {
    struct arch_adapt *x = ev->adapt;
    if (!llm_arch_push(ev, &x->first, &x->cap_first, (size_t)w->id + 1, sizeof *x->first))
        return false;
    if (x->first[w->id] != 0)
        return true;
    x->first[w->id] = 1;
    for (size_t i = 0, at; i < x->n; i++) {
        const arch_pair *p = pair_named(x->use[i].adapter, w->name, &at);
        if (p && !change_by(ev, w, i, p))
            return false;
    }
    return true;
}

arch_scaling *llm_arch_adapt_scaling(arch_eval *ev, ggl_tensor *w) {
    struct arch_adapt *x = ev->adapt;
    if (!llm_arch_push(ev, &x->scaling, &x->cap_scaling, (size_t)w->id + 1, sizeof *x->scaling))
        return NULL;
    x->scaling[w->id].w = w;
    return &x->scaling[w->id];
}

/* --- which weight a node reads ---------------------------------------------------------------- */

ggl_tensor *llm_arch_adapt_weight(const arch_eval *ev, const ggl_tensor *t) {
    const struct arch_adapt *x = ev->adapt;
    while (t && t->op != GGL_OP_WEIGHT)
        t = arch_is_cut(t)                                           ? t->src[0]
            : t->op == GGL_OP_PARAM && (size_t)t->id < x->cap_source ? x->source[t->id]
                                                                     : NULL;
    return (ggl_tensor *)t;
}

size_t llm_arch_adapt_changes(arch_eval *ev, const ggl_tensor *t) {
    ggl_tensor *w = llm_arch_adapt_weight(ev, t);
    return w && find_changes(ev, w) && ev->adapt->first[w->id] > 1 ? ev->adapt->first[w->id] - 1
                                                                   : 0;
}

bool llm_arch_is_adapted(const arch_eval *ev, const ggl_tensor *t) {
    return ev->adapt && t && llm_arch_adapt_changes((arch_eval *)ev, t) != 0;
}

bool llm_arch_adapt_param(arch_eval *ev, const ggl_tensor *param, const ggl_tensor *source) {
    struct arch_adapt *x = ev->adapt;
    if (!x)
        return true;
    if (!llm_arch_push(ev, &x->source, &x->cap_source, (size_t)param->id + 1, sizeof *x->source))
        return false;
    x->source[param->id] = source;
    return true;
}

/* --- tensors under another name --------------------------------------------------------------- */

/* True if an adapter changes the weight `name`. A pair at scale 0 only has to fit `other`; it must not
 * cost a weight of its own, which could have other bits. */
static bool changes_name(arch_eval *ev, const char *name, const ggl_tensor *other) {
    const struct arch_adapt *x = ev->adapt;
    bool any = false;
    for (size_t i = 0, at; i < x->n && ev->status == GGL_OK; i++) {
        const arch_pair *p = pair_named(x->use[i].adapter, name, &at);
        if (!p)
            continue;
        if (!pair_fits(p, other->n_dims, other->ne))
            return refuse_shape(ev, x->use[i].adapter, p, name, other->n_dims, other->ne);
        x->hit[i][at] = true;
        any |= scale_of(&x->use[i], p) != 0;
    }
    return any;
}

/* Adds the changes of the weight `other` to w, which stands for it. False: reported. */
static bool share_changes(arch_eval *ev, ggl_tensor *other, ggl_tensor *w) {
    const struct arch_adapt *x = ev->adapt;
    arch_scaling *s = llm_arch_adapt_scaling(ev, w);
    if (!s || !find_changes(ev, other) || !find_changes(ev, w))
        return false;
    s->whole = other->name;
    for (size_t i = x->first[other->id] - 1, use = 0; i > 0; i = x->change[i - 1].next, use = 0) {
        while (x->use[use].adapter != x->change[i - 1].adapter)
            use++;
        if (!add_change(ev, w, x->change[i - 1], use))
            return false;
    }
    return true;
}

ggl_tensor *llm_arch_adapt_other(arch_eval *ev, const char *name, ggl_tensor *other) {
    if (!ev->adapt || other->op != GGL_OP_WEIGHT || !changes_name(ev, name, other))
        return ev->status == GGL_OK ? other : NULL;
    ggl_tensor *t =
        ggl_graph_weight(ev->g, name, other->type, other->n_dims, other->ne, other->data);
    if (!llm_arch_graph_ok(ev, ev->at->place) || !t)
        return NULL;
    for (int d = 0; d < other->n_dims; d++)
        if (other->dim_name[d])
            ggl_tensor_set_dim_name(ev->g, t, d, other->dim_name[d]);
    return llm_arch_rotate_same(ev, t, other) && share_changes(ev, other, t) ? t : NULL;
}

/* Adds the change of a part by pair p of the source tensor that it is from. False: reported. */
static bool change_part(arch_eval *ev, const arch_part *part, size_t use, const arch_pair *p) {
    struct arch_adapt *x = ev->adapt;
    const llm_adapter_use *u = &x->use[use];
    ggl_tensor *w = part->t;
    int64_t n_rows, ne[GGL_MAX_DIMS] = {p->rank, w->ne[1], w->ne[2], w->ne[3]};
    const llm_arch_tensor *whole = llm_arch_whole_tensor(part, &n_rows);
    if (w->n_dims < 2 || p->a->ne[0] != whole->ne[0] || p->a->ne[2] != 1 ||
        ggl_extents(p->b->ne, 1, GGL_MAX_DIMS, 1) != n_rows)
        return refuse_shape(ev, u->adapter, p, whole->name, whole->n_dims, whole->ne);
    arch_change c = {.scale = scale_of(u, p), .task = u->task, .adapter = u->adapter, .pair = p};
    for (size_t i = 0; i < x->n_later && !c.columns; i++) /* the first part's are everybody's */
        if (x->later[i].from == p && x->later[i].part.whole == part->whole)
            c.columns = x->later[i].columns;
    c.rows = leaf(ev, p->b, w->n_dims, ne, NULL);
    c.columns = c.columns ? c.columns : leaf(ev, p->a, 2, p->a->ne, p->a->data);
    c.magnitude = magnitude_leaf(ev, p, w, NULL);
    if (!add_change(ev, w, c, use) ||
        !llm_arch_push(ev, &x->later, &x->cap_later, x->n_later + 1, sizeof *x->later))
        return false;
    x->later[x->n_later++] = (arch_later){c.rows, c.columns, c.magnitude, p, *part};
    return true;
}

bool llm_arch_adapt_part(arch_eval *ev, const arch_part *part) {
    const struct arch_adapt *x = ev->adapt;
    int64_t n_rows;
    if (!x)
        return true;
    const char *whole = llm_arch_whole_tensor(part, &n_rows)->name;
    arch_scaling *s = llm_arch_adapt_scaling(ev, part->t);
    bool ok = s && find_changes(ev, part->t);
    if (ok)
        s->whole = whole;
    for (size_t i = 0, at; i < x->n && ok; i++) {
        const arch_pair *p = pair_named(x->use[i].adapter, whole, &at);
        ok = !p || change_part(ev, part, i, p);
    }
    return ok;
}

/* --- begin and end ---------------------------------------------------------------------------- */

/* True if all pairs are for an eye or an ear. */
static bool is_of_senses(const llm_adapter *a) {
    bool all = true;
    for (size_t i = 0; i < a->n_pairs && all; i++)
        all = llm_adapter_is_of_sense(a->pair[i].name.s);
    return all;
}

/* Checks what can be checked of an adapter before the build. False: reported. */
static bool check_use(arch_eval *ev, const llm_adapter_use *u) {
    const ggl_str own = u->adapter->architecture;
    if (!isfinite(u->scale))
        return llm_arch_adapt_refuse(ev, GGL_USAGE, u->adapter,
                                     "the scale %g is not a finite number", u->scale);
    if (u->adapter->n_directions > 0) /* its file knows no architecture, only a hint in any words */
        return true;
    /* an eye or an ear, which has no tokens, is used with the text model's adapters */
    if (ggl_str_is(own, ev->family) || (u->beside && !ev->arch->has_tokens))
        return true;
    /* such as one that was extracted from two files of eyes; of a text model it changes nothing */
    if (ev->arch->has_tokens && is_of_senses(u->adapter))
        return true;
    return llm_arch_adapt_refuse(
        ev, GGL_FORMAT, u->adapter,
        "the adapter is for models of the architecture %.*s, but %.200s has the "
        "architecture %s",
        (int)(own.n < 100 ? own.n : 100), own.s, ev->src->name, ev->family);
}

bool llm_arch_adapt_init(arch_eval *ev) {
    const llm_arch_params *p = ev->params;
    if (!p || (p->n_adapters == 0 && !p->scaled))
        return true;
    struct arch_adapt *x = ggl_arena_alloc(&ev->arena, 1, sizeof *x);
    if (!x)
        return llm_arch_nomem(ev), false;
    x->use = p->adapter;
    x->n = p->n_adapters;
    x->hit = ggl_arena_alloc(&ev->arena, x->n + 1, sizeof *x->hit);
    for (size_t i = 0; i < x->n && x->hit; i++) {
        if (!check_use(ev, &x->use[i]))
            return false;
        if (!(x->hit[i] = ggl_arena_alloc(&ev->arena, x->use[i].adapter->n_pairs + 1, 1)))
            x->hit = NULL;
    }
    if (!x->hit)
        return llm_arch_nomem(ev), false;
    ev->adapt = x;
    return true;
}

bool llm_arch_adapt_input(arch_eval *ev) {
    struct arch_adapt *x = ev->adapt;
    int64_t n = 0;
    for (size_t i = 0; x && i < x->n; i++)
        n = x->use[i].task > n ? x->use[i].task : n;
    if (n > LLM_ARCH_MAX_TASKS) {
        ev->status = ggl_fail(ev->err, GGL_LIMIT,
                              "there are adapters for %" PRId64 " tasks; at most %d are supported",
                              n, LLM_ARCH_MAX_TASKS);
        return false;
    }
    if (n > 0 && !(x->task = ggl_graph_input(ev->g, "task", GGL_F32, 1, &n, true)))
        ev->status = ggl_graph_error(ev->g, ev->err);
    return ev->status == GGL_OK;
}

void llm_arch_adapt_fini(arch_eval *ev) {
    struct arch_adapt *x = ev->adapt;
    if (!x)
        return;
    ggl_free(x->change);
    ggl_free(x->first);
    ggl_free(x->source);
    ggl_free(x->product);
    ggl_free(x->scaling);
    ggl_free(x->later);
    ggl_free(x->shared);
    ggl_free(x->read);
    ev->adapt = NULL;
}

/* Finds the tensors that nodes of the graph read. */
static bool find_read(arch_eval *ev) {
    struct arch_adapt *x = ev->adapt;
    if (x->read)
        return true;
    x->read = ggl_calloc((size_t)ggl_graph_n_ids(ev->g) + 1, sizeof *x->read);
    if (!x->read)
        return llm_arch_nomem(ev), false;
    for (int i = 0; i < ggl_graph_n_nodes(ev->g); i++) {
        const ggl_tensor *t = ggl_graph_node(ev->g, i);
        for (int k = 0; k < t->n_src; k++)
            if (t->src[k])
                x->read[t->src[k]->id] = true;
    }
    return true;
}

/* Reports a pair that changes nothing, with the reason, unless it may be for another file, or is for a weight that this graph has and does not
 * read (such as matrices for rows of pictures while no eye is open). Returns false if it has reported. */
static bool refuse_unused(arch_eval *ev, const llm_adapter_use *use, const arch_pair *p) {
    llm_arch_tensor t = {.name = p->name.s, .optional = true};
    const llm_adapter *a = use->adapter;
    const arch_weight *w = llm_arch_find_weight(ev, p->name.s);
    if (!find_read(ev))
        return false;
    if (w && w->t && !ev->adapt->read[w->t->id])
        return pair_fits(p, w->t->n_dims, w->t->ne) ||
               refuse_shape(ev, a, p, w->name, w->t->n_dims, w->t->ne);
    if (ev->src->tensor_at && ev->src->find_tensor(ev->src->ctx, &t))
        return llm_arch_adapt_refuse(
            ev, GGL_UNSUPPORTED, a,
            "%.200s.lora_a: %.200s has this tensor, but does not compute with it", p->name.s,
            ev->src->name);
    if (use->beside)
        return true;
    if (llm_adapter_is_of_sense(p->name.s))
        return llm_arch_adapt_refuse(
            ev, GGL_NOT_FOUND, a,
            "%.200s.lora_a: %.200s has no tensor %.200s, a name of eyes and ears: the "
            "file of the eye or the ear is missing (mmproj, or --mmproj)",
            p->name.s, ev->src->name, p->name.s);
    ggl_nearest near = ggl_nearest_to(p->name.s);
    for (size_t i = 0; i < ev->n_weight; i++)
        ggl_nearest_try(&near, ev->weight_name[i].s, ev->weight_name[i].n);
    return llm_arch_adapt_refuse(
        ev, GGL_NOT_FOUND, a, "%.200s.lora_a: %.200s has no tensor %.200s%s%.200s%s", p->name.s,
        ev->src->name, p->name.s, near.best ? "; did you mean " : "", near.best ? near.best : "",
        near.best ? "?" : "; is it another model's adapter?");
}

/* Reports the factors of weights to the caller. Of a part of a tensor, it is not known what the
 * factor is for the whole. */
static void report_factors(const arch_eval *ev) {
    const struct arch_adapt *x = ev->adapt;
    for (size_t i = 0; i < x->cap_scaling; i++) {
        const arch_scaling *s = &x->scaling[i];
        if (!s->factor && !s->unknown)
            continue;
        const bool all = s->n_scaled == s->n && !s->unknown;
        ev->params->scaled(ev->params->ctx, s->w->name, all ? s->factor->name : NULL);
        if (s->whole)
            ev->params->scaled(ev->params->ctx, s->whole, NULL);
    }
}

bool llm_arch_adapt_finish(arch_eval *ev) {
    const struct arch_adapt *x = ev->adapt;
    if (x && ev->params->scaled)
        report_factors(ev);
    for (size_t i = 0; x && i < x->n_later; i++) {
        const arch_later *l = &x->later[i];
        const ggl_gguf_tensor *b = l->from->b, *m = l->from->magnitude;
        const size_t before = (size_t)llm_arch_rows_before(&l->part);
        if (b->data)
            l->rows->data = (const char *)b->data + ggl_row_size(b->type, b->ne[0]) * before;
        if (m && m->data)
            l->magnitude->data = (const float *)m->data + before;
    }
    for (size_t i = 0; x && i < x->n; i++)
        for (size_t k = 0; k < x->use[i].adapter->n_pairs; k++)
            if (!x->hit[i][k] && !refuse_unused(ev, &x->use[i], &x->use[i].adapter->pair[k]))
                return false;
    if (x && x->n > 0 && ev->params->used)
        memcpy(ev->params->used, x->hit[0], x->use[0].adapter->n_pairs * sizeof(bool));
    return true;
}
