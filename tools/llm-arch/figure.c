#include "figure.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/gguf_text.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/show.h"
#include "ggl/internal/steps.h"

typedef struct maker {
    const ggl_graph *g;
    const ggl_backend *b;
    int n_layer;
    int *users;               /* [id]: how many nodes read it */
    int *shown, *shown_in;    /* [id]: its node in a block, and the block; see shown_as */
    int *in_group, *group_at; /* nodes of group g: in_group[group_at[g + 1] .. group_at[g + 2]) */
    bool *counted;            /* [id]: a weight already counted in a block's parameters */
    bool *crosses;            /* [id]: another part reads it */
    bool of_stage;            /* the part: rows of the stage that tokens read, else the main rows */
    figure_block *block;
    int group;
} maker;

/* Returns the node that shows t in the block being made; -1: none. */
static int shown_as(const maker *m, const ggl_tensor *t) {
    return m->shown_in[t->id] == m->group ? m->shown[t->id] : -1;
}

static int show_as(maker *m, const ggl_tensor *t, int node) {
    m->shown_in[t->id] = m->group;
    return m->shown[t->id] = node;
}

static bool is_drawn(const ggl_tensor *t) {
    return t->needed && !ggl_is_leaf(t) && (ggl_is_batched(t) || t->op == GGL_OP_CACHE);
}

/* True if t is computed for the rows of a stage that tokens read. */
static bool is_of_stage(const ggl_tensor *t) {
    return t->rows == GGL_ROWS_STAGE;
}

static bool is_mine(const maker *m, const ggl_tensor *t) {
    return is_drawn(t) && is_of_stage(t) == m->of_stage;
}

/* True if t is a move without a node of its own; the shape at the edge shows it. */
static bool is_passed(const ggl_tensor *t) {
    return t->op == GGL_OP_RESHAPE || t->op == GGL_OP_SPLIT || t->gather;
}

/* Returns t if it is a weight, or the weight that t is a reshape or a split of; else NULL. */
static const ggl_tensor *weight_of(const ggl_tensor *t) {
    while (t && (t->op == GGL_OP_RESHAPE || t->op == GGL_OP_SPLIT) && !ggl_is_batched(t))
        t = t->src[0];
    return t && t->op == GGL_OP_WEIGHT ? t : NULL;
}

/* --- texts ------------------------------------------------------------------------------------ */

static void add_line(figure_node *n, const char *fmt, ...) GGL_PRINTF(2, 3);
static void add_line(figure_node *n, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    if (n->n_lines < FIGURE_LINES)
        ggl_vformat(n->line[n->n_lines++], sizeof n->line[0], fmt, args);
    va_end(args);
}

/* Adds the weight as descriptors name it: "enc.attn_q" for "enc.blk.3.attn_q.weight", so that layers that are alike have the same lines. */
static void weight_line(figure_node *n, const char *before, const ggl_tensor *w) {
    char shape[64] = "";
    size_t at = 0;
    for (int d = 0; d < w->n_dims && at < sizeof shape; d++)
        at += (size_t)snprintf(shape + at, sizeof shape - at, "%s%" PRId64, d ? "×" : "", w->ne[d]);
    const ggl_str name = {w->name, strlen(w->name)};
    const size_t end = sizeof ".weight" - 1, of_part = tensor_layer_at(name);
    ggl_str own = name;
    if (of_part != SIZE_MAX)
        (void)tensor_layer((ggl_str){name.s + of_part, name.n - of_part}, &own);
    if (own.n > end && memcmp(own.s + own.n - end, ".weight", end) == 0)
        own.n -= end;
    add_line(n, "%s%.*s%.*s  %s %s", before, of_part != SIZE_MAX ? (int)of_part : 0, name.s,
             (int)own.n, own.s, shape, ggl_type_get(w->type)->name);
}

static void number_line(figure_node *n, const ggl_tensor *t) {
    ggl_op_info info = ggl_op_get(t->op);
    char text[96] = "";
    size_t at = 0;
    for (int i = 0, k = 0; k < info.n_params && i < t->n_num; k++) {
        ggl_param p = ggl_op_param(t->op, k);
        if (p.kind != GGL_PARAM_NUMBER || p.variadic)
            continue;
        if (!isnan(t->num[i]) && t->num[i] != p.fallback && at < sizeof text)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%s %.6g", at ? ", " : "", p.name,
                                   t->num[i]);
        i++;
    }
    if (at)
        add_line(n, "%s", text);
}

static void shape_text(const ggl_tensor *t, char *buf, size_t size) {
    size_t n = 0;
    buf[0] = '\0';
    for (int d = 0; d < t->n_dims && n < size; d++)
        n += (size_t)snprintf(buf + n, size - n, "%s%" PRId64, d ? "×" : "", t->ne[d]);
    if (t->n_dims == 0 && t->op != GGL_OP_CACHE)
        snprintf(buf, size, "1");
}

/* Returns the descriptor's name for a value: "q" for "blk.3 q". */
static const char *value_name(const ggl_tensor *t) {
    const char *space = t->name ? strchr(t->name, ' ') : NULL;
    return !t->name ? "" : space ? space + 1 : t->name;
}

/* True if the body computes along rows. */
static bool sums(const ggl_body *b) {
    for (int i = 0; i < b->n_node; i++)
        if (ggl_op_get(b->node[i]->op).kind == GGL_KIND_ROW ||
            (b->node[i]->body && sums(b->node[i]->body)))
            return true;
    return false;
}

static figure_kind kind_of(const ggl_tensor *t) {
    switch (ggl_op_get(t->op).kind) {
    case GGL_KIND_PRODUCT:
        return FIGURE_PRODUCT;
    case GGL_KIND_ATTENTION:
        return FIGURE_ATTENTION;
    case GGL_KIND_POSITION:
        return FIGURE_POSITION;
    case GGL_KIND_ROW:
        return FIGURE_ROW;
    case GGL_KIND_CHOICE:
        return FIGURE_CHOICE;
    case GGL_KIND_MOVE:
        return FIGURE_MOVE;
    case GGL_KIND_STATE:
        return FIGURE_STATE;
    case GGL_KIND_CALL:
        return t->body->recurrent ? FIGURE_STATE : sums(t->body) ? FIGURE_ROW : FIGURE_CURVE;
    case GGL_KIND_LEAF:
    case GGL_KIND_ELEMENT:
        break;
    }
    return t->n_src == 2 ? FIGURE_PLUS : FIGURE_CURVE;
}

/* --- one block -------------------------------------------------------------------------------- */

static figure_node *new_node(maker *m, figure_kind kind, const ggl_tensor *t, const char *title) {
    figure_node *n = &m->block->node[m->block->n++];
    *n = (figure_node){.kind = kind, .t = t};
    snprintf(n->title, sizeof n->title, "%s", title);
    return n;
}

static int add_port(maker *m, const ggl_tensor *t) {
    const char *name = value_name(t);
    figure_node *n = new_node(m, FIGURE_PORT, t,
                              name[0]                 ? name
                              : t->op == GGL_OP_CACHE ? "cache"
                                                      : "value");
    const char *rows = t->op == GGL_OP_INPUT ? strstr(t->name, "rows.") : NULL;
    if (rows) {
        snprintf(n->of_stage, sizeof n->of_stage, "%.*s", (int)strcspn(rows + 5, "."), rows + 5);
        add_line(n, "rows of %s", n->of_stage);
    } else if (t->op != GGL_OP_INPUT && is_of_stage(t) != m->of_stage) {
        n->passes = t;
        add_line(n, "from the stage");
    } else if (t->op != GGL_OP_INPUT && m->group == m->n_layer)
        add_line(n, "from the last layer");
    else if (t->op != GGL_OP_INPUT && (t->group == m->group - 1 || t->group < 0))
        add_line(n, m->block->n_layers > 0 ? "from the layer before" : "from above");
    else if (t->op != GGL_OP_INPUT && t->group >= m->n_layer)
        add_line(n, "from after the layers");
    else if (t->op != GGL_OP_INPUT)
        add_line(n, "from layer %d", t->group);
    return show_as(m, t, m->block->n - 1);
}

/* True for the inputs that say where rows are, of all parts: "pos", "stage.pos", "read.end", "page". */
static bool is_place(const char *name) {
    static const char *const places[] = {"pos", "slot", "end", "page"};
    const char *own = strncmp(name, "stage.", 6) == 0  ? name + 6
                      : strncmp(name, "read.", 5) == 0 ? name + 5
                                                       : name;
    bool found = false;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        found |= strcmp(own, places[i]) == 0;
    return found;
}

/* Returns the node that shows x, or the value that x is a part of; -1: nothing that is drawn. */
static int shown_source(maker *m, const ggl_tensor *x) {
    if (x->op == GGL_OP_INPUT)
        return is_place(x->name) ? -1 : shown_as(m, x) >= 0 ? shown_as(m, x) : add_port(m, x);
    if (!is_drawn(x))
        return -1;
    if (shown_as(m, x) >= 0)
        return shown_as(m, x);
    if (is_passed(x) && is_mine(m, x))
        return shown_source(m, x->op == GGL_OP_PICK ? x->src[1] : x->src[0]);
    return add_port(m, x);
}

/* Adds an input edge to a node. `via`: the value read, for the shape at the edge. Moves without
 * a node are skipped; for a picked matrix the edge comes from the indices. */
static void add_in(maker *m, figure_node *n, int from, const ggl_tensor *via) {
    if (from < 0 || n->n_in == FIGURE_INS)
        return;
    char shape[48];
    shape_text(via->op == GGL_OP_PICK && is_passed(via) ? via->src[1] : via, shape, sizeof shape);
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] == from && strcmp(n->in_shape[i], shape) == 0)
            return;
    n->in[n->n_in] = from;
    memcpy(n->in_shape[n->n_in++], shape, sizeof shape);
    (void)m;
}

/* Returns the matrix, also of picked ones. */
static const ggl_tensor *matrix_of(const ggl_tensor *x) {
    return x->op == GGL_OP_PICK && is_passed(x) ? weight_of(x->src[0]) : weight_of(x);
}

/* Adds "x * w", "x + b" or "x * 8" as a line to the node that made x, if nothing else reads x. */
static bool join_arithmetic(maker *m, const ggl_tensor *t) {
    static const struct {
        ggl_op op;
        const char *symbol;
    } joined[] = {{GGL_OP_MUL, "× "}, {GGL_OP_ADD, "+ "}, {GGL_OP_SUB, "− "}, {GGL_OP_DIV, "÷ "}};
    const char *symbol = NULL;
    for (size_t i = 0; i < sizeof joined / sizeof *joined; i++)
        symbol = joined[i].op == t->op ? joined[i].symbol : symbol;
    if (!symbol || !t->src[0] || !t->src[1])
        return false;
    int k = ggl_is_batched(t->src[0]) ? 0 : 1;
    const ggl_tensor *x = t->src[k], *w = t->src[1 - k];
    bool constant = w->op == GGL_OP_CONST, scalar = constant && ggl_count(w) == 1;
    if (ggl_is_batched(w) || (!weight_of(w) && !constant) || (k == 1 && t->op == GGL_OP_DIV))
        return false;
    const ggl_tensor *made = x;
    while (is_passed(made) && m->users[made->id] == 1 && ggl_is_batched(made->src[0]))
        made = made->src[0];
    int at = shown_as(m, made);
    if (at < 0 || m->users[made->id] > 1 || m->users[x->id] > 1 ||
        m->block->node[at].kind == FIGURE_PORT || m->block->node[at].n_lines == FIGURE_LINES)
        return false;
    figure_node *n = &m->block->node[at];
    if (weight_of(w))
        weight_line(n, symbol, weight_of(w));
    else if (scalar)
        add_line(n, "%s%.6g", symbol,
                 w->type == GGL_F64 ? *(const double *)w->data : (double)*(const float *)w->data);
    else
        add_line(n, "%sa constant", symbol);
    show_as(m, t, at);
    n->t = t;
    return true;
}

/* Adds a row function to the node of another that only it reads: "center · rms". */
static bool join_rows(maker *m, const ggl_tensor *t) {
    if (t->op != GGL_OP_CALL || kind_of(t) != FIGURE_ROW || t->n_src < 1 || !t->src[0])
        return false;
    int at = shown_as(m, t->src[0]);
    if (at < 0 || m->users[t->src[0]->id] > 1 || m->block->node[at].kind != FIGURE_ROW ||
        m->block->node[at].n_lines > 0)
        return false;
    figure_node *n = &m->block->node[at];
    size_t used = strlen(n->title);
    snprintf(n->title + used, sizeof n->title - used, " · %s", t->call ? t->call : "body");
    show_as(m, t, at);
    n->t = t;
    return true;
}

static void add_node(maker *m, const ggl_tensor *t) {
    if (is_passed(t)) {
        const ggl_tensor *x = t->op == GGL_OP_PICK ? t->src[1] : t->src[0];
        show_as(m, t, shown_source(m, x));
        return;
    }
    if (join_arithmetic(m, t) || join_rows(m, t))
        return;
    figure_node fresh = {.kind = kind_of(t), .t = t};
    const char *op = ggl_op_get(t->op).name, *name = t->call                ? t->call
                                                     : t->op == GGL_OP_CALL ? "body"
                                                                            : op;
    if (name[0] == '<' && strlen(name) > 2)
        snprintf(fresh.title, sizeof fresh.title, "%.*s", (int)strlen(name) - 2, name + 1);
    else
        snprintf(fresh.title, sizeof fresh.title, "%s",
                 t->op == GGL_OP_MUL   ? "×"
                 : t->op == GGL_OP_SUB ? "−"
                                       : name);
    for (int k = 0; k < t->n_src; k++) {
        const ggl_tensor *x = t->src[k];
        if (!x)
            continue;
        add_in(m, &fresh, shown_source(m, x), x);
        bool bias = t->op == GGL_OP_LINEAR && k == 2;
        if (matrix_of(x))
            weight_line(&fresh,
                        bias                   ? "+ "
                        : x->op == GGL_OP_PICK ? "chosen of "
                                               : "",
                        matrix_of(x));
    }
    number_line(&fresh, t);
    fresh.by_body = t->op == GGL_OP_CALL && m->b && m->b->v->refuses(m->b, t);
    const char *colon = t->origin ? strrchr(t->origin, ':') : NULL;
    snprintf(fresh.origin, sizeof fresh.origin, "%s", colon ? colon + 1 : "");
    m->block->node[m->block->n++] = fresh; /* ports may have been added before it */
    show_as(m, t, m->block->n - 1);
}

/* Adds ports at the bottom for values that other groups read. */
static void add_exits(maker *m, const bool *leaves) {
    for (int i = m->group_at[m->group + 1]; i < m->group_at[m->group + 2]; i++) {
        const ggl_tensor *t = ggl_graph_node(m->g, m->in_group[i]);
        if (!is_mine(m, t) || !leaves[t->id] || shown_as(m, t) < 0)
            continue;
        figure_node *n = new_node(m, FIGURE_PORT, NULL, value_name(t)[0] ? value_name(t) : "value");
        bool logits = m->group == m->n_layer;
        if (t->op == GGL_OP_CACHE)
            snprintf(n->title, sizeof n->title, "cache");
        if (m->crosses[t->id])
            n->passes = t;
        add_line(n, m->crosses[t->id]       ? "to the tokens"
                    : logits                ? "the result"
                    : t->op == GGL_OP_CACHE ? "to later layers"
                    : m->group < 0          ? "to the layers"
                                            : "to the next layer");
        n->in[0] = shown_as(m, t);
        n->n_in = 1;
        shape_text(t, n->in_shape[0], sizeof n->in_shape[0]);
    }
}

/* Counts each weight where it is first used, so that tied ones count once. */
static void count_params(maker *m, const ggl_tensor *t) {
    for (int k = 0; k < t->n_src; k++) {
        const ggl_tensor *x = t->src[k], *w = x ? matrix_of(x) : NULL;
        if (!w || m->counted[w->id])
            continue;
        m->counted[w->id] = true;
        m->block->params += (uint64_t)ggl_count(w);
    }
}

static bool make_block(maker *m, figure_block *b, int group, const bool *leaves) {
    int first = m->group_at[group + 1], last = m->group_at[group + 2];
    m->block = b;
    m->group = group;
    b->node = calloc((size_t)(last - first) * 4 + 16, sizeof *b->node); /* room for ports as well */
    for (int i = first; i < last && b->node; i++) {
        const ggl_tensor *t = ggl_graph_node(m->g, m->in_group[i]);
        GGL_STEPS(1);
        if (!is_mine(m, t))
            continue;
        add_node(m, t);
        count_params(m, t);
    }
    if (b->node)
        add_exits(m, leaves);
    return b->node != NULL;
}

/* Sorts the nodes by group, from -1 to n_layer. False: out of memory. */
static bool find_groups(maker *m) {
    int n = ggl_graph_n_nodes(m->g);
    m->in_group = calloc((size_t)n + 1, sizeof *m->in_group);
    m->group_at = calloc((size_t)m->n_layer + 4, sizeof *m->group_at);
    if (!m->in_group || !m->group_at)
        return false;
    /* at[g]: first the number of nodes, then where the group ends, and after filling where it
     * begins */
    int *at = m->group_at + 2;
    for (int i = 0; i < n; i++)
        at[ggl_graph_node(m->g, i)->group]++;
    for (int g = 0; g <= m->n_layer; g++)
        at[g] += at[g - 1];
    for (int i = n - 1; i >= 0; i--)
        m->in_group[--at[ggl_graph_node(m->g, i)->group]] = i;
    for (int g = -1; g <= m->n_layer; g++)
        at[g - 1] = at[g];
    at[m->n_layer] = n;
    for (int i = 0; i < ggl_graph_n_ids(m->g); i++)
        m->shown_in[i] = -2;
    return true;
}

/* --- kinds of layers -------------------------------------------------------------------------- */

/* Returns an FNV-1a hash of what `alike` compares, so that few blocks need to be compared. */
static uint64_t digest_of(const figure_block *b) {
    uint64_t h = 0xcbf29ce484222325u;
    for (int i = 0; i < b->n; i++) {
        const figure_node *x = &b->node[i];
        for (int k = 0; k < x->n_in; k++)
            h = (h ^ (uint64_t)x->in[k]) * 0x100000001b3u;
        for (int k = -1; k < x->n_lines && (k < 0 || x->kind != FIGURE_PORT); k++)
            for (const char *s = k < 0 ? x->title : x->line[k]; *s; s++)
                h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    }
    return h;
}

/* True if two layers have the same drawing. */
static bool alike(const figure_block *a, const figure_block *b) {
    if (a->n != b->n || a->digest != b->digest)
        return false;
    for (int i = 0; i < a->n; i++) {
        const figure_node *x = &a->node[i], *y = &b->node[i];
        bool same = x->kind == y->kind && x->n_in == y->n_in && x->n_lines == y->n_lines &&
                    strcmp(x->title, y->title) == 0;
        for (int k = 0; k < x->n_in && same; k++)
            same = x->in[k] == y->in[k] && strcmp(x->in_shape[k], y->in_shape[k]) == 0;
        for (int k = 0; k < x->n_lines && same && x->kind != FIGURE_PORT; k++)
            same = strcmp(x->line[k], y->line[k]) == 0;
        if (!same)
            return false;
    }
    return true;
}

static void title_layers(figure_block *b, const int *kind, int k, int n_layer) {
    char list[96] = "";
    size_t n = 0;
    int shown = 0;
    b->n_layers = 0;
    for (int l = 0; l < n_layer; l++) {
        if (kind[l] != k)
            continue;
        int last = l;
        while (last + 1 < n_layer && kind[last + 1] == k)
            last++;
        b->n_layers += last - l + 1;
        if (n < sizeof list - 16 && ++shown <= 6)
            n += (size_t)snprintf(list + n, sizeof list - n, last > l ? "%s%d to %d" : "%s%d",
                                  n ? ", " : "", l, last);
        else if (shown == 7)
            n += (size_t)snprintf(list + n, sizeof list - n, ", ..");
        l = last;
    }
    snprintf(b->title, sizeof b->title, "%s %s%s", b->n_layers > 1 ? "layers" : "layer", list, "");
}

/* Notes which values the ports of a layer or a part pass, which block `number` shows. False: out of memory. */
static bool note_passed(figure *f, const figure_block *b, int number) {
    for (int i = 0; i < b->n; i++)
        if (b->node[i].passes) {
            if (!ggl_grow(&f->passed, &f->cap_passed, f->n_passed + 1, sizeof *f->passed))
                return false;
            f->passed[f->n_passed++] = (figure_passed){b->node[i].passes, number, i};
        }
    return true;
}

static int by_port(const void *a, const void *b) {
    const figure_passed *x = a, *y = b;
    const int port = x->block != y->block ? x->block - y->block : x->node - y->node;
    return port ? port : x->t->id - y->t->id;
}

/* Sets leaves[id] for values that another group reads, or that are outputs. */
static void find_leaving(maker *m, bool *leaves) {
    for (int i = 0; i < ggl_graph_n_nodes(m->g); i++) {
        const ggl_tensor *t = ggl_graph_node(m->g, i);
        for (int k = 0; k < t->n_src && t->needed; k++)
            if (t->src[k]) {
                m->users[t->src[k]->id]++;
                m->crosses[t->src[k]->id] |=
                    is_of_stage(t->src[k]) && is_drawn(t) && !is_of_stage(t);
                leaves[t->src[k]->id] |= t->src[k]->group != t->group || m->crosses[t->src[k]->id];
            }
    }
    for (int i = 0; i < ggl_graph_n_outputs(m->g); i++)
        leaves[ggl_graph_get_output(m->g, i)->id] = true;
}

bool figure_has_stage(const ggl_graph *g) {
    bool has = false;
    for (int i = 0; i < ggl_graph_n_nodes(g); i++)
        has |= is_drawn(ggl_graph_node(g, i)) && is_of_stage(ggl_graph_node(g, i));
    return has;
}

bool figure_make(figure *f, const ggl_graph *g, bool of_stage, const char *name, int n_layer,
                 const ggl_backend *b) {
    size_t n_ids = (size_t)ggl_graph_n_ids(g);
    maker m = {.g = g,
               .b = b,
               .n_layer = n_layer,
               .users = calloc(n_ids, sizeof(int)),
               .shown = calloc(n_ids, sizeof(int)),
               .shown_in = calloc(n_ids, sizeof(int)),
               .counted = calloc(n_ids, sizeof(bool)),
               .crosses = calloc(n_ids, sizeof(bool)),
               .of_stage = of_stage};
    bool *leaves = calloc(n_ids, sizeof *leaves);
    int *kind = calloc((size_t)n_layer + 1, sizeof *kind);
    *f = (figure){.block = calloc((size_t)n_layer + 2, sizeof *f->block)};
    snprintf(f->name, sizeof f->name, "%s", name);
    bool ok = m.users && m.shown && m.shown_in && m.counted && m.crosses && leaves && kind &&
              f->block && find_groups(&m);
    if (ok)
        find_leaving(&m, leaves);
    ok = ok && make_block(&m, &f->block[f->n++], -1, leaves) && note_passed(f, &f->block[0], 0);
    for (int l = 0; l < n_layer && ok; l++) {
        figure_block *mine = &f->block[f->n];
        *mine = (figure_block){.first_layer = l, .n_layers = 1};
        ok = make_block(&m, mine, l, leaves);
        if (ok && mine->n == 0) { /* another part has more layers */
            free(mine->node);
            continue;
        }
        mine->digest = ok ? digest_of(mine) : 0;
        kind[l] = f->n;
        for (int k = 1; k < f->n && ok; k++)
            if (alike(&f->block[k], mine))
                kind[l] = k;
        ok = ok && note_passed(f, mine, kind[l]);
        if (kind[l] < f->n)
            free(mine->node);
        else
            f->n++;
    }
    for (int k = 1; k < f->n && ok; k++)
        title_layers(&f->block[k], kind, k, n_layer);
    if (ok) {
        f->block[f->n] = (figure_block){0};
        ok = make_block(&m, &f->block[f->n++], n_layer, leaves) &&
             note_passed(f, &f->block[f->n - 1], f->n - 1);
        snprintf(f->block[0].title, sizeof f->block[0].title, "before the layers");
        snprintf(f->block[f->n - 1].title, sizeof f->block[0].title, "after the layers");
    }
    if (f->n_passed > 0)
        qsort(f->passed, f->n_passed, sizeof *f->passed, by_port);
    for (int k = 0; k < f->n && ok && *name; k++) {
        char title[160];
        memcpy(title, f->block[k].title, sizeof title);
        snprintf(f->block[k].title, sizeof f->block[k].title, "%.40s: %.110s", name, title);
    }
    free(m.users);
    free(m.shown);
    free(m.shown_in);
    free(m.in_group);
    free(m.group_at);
    free(m.counted);
    free(m.crosses);
    free(leaves);
    free(kind);
    if (!ok)
        figure_fini(f);
    return ok;
}

void figure_fini(figure *f) {
    for (int i = 0; f->block && i < f->n; i++)
        free(f->block[i].node);
    free(f->block);
    ggl_free(f->passed);
    *f = (figure){0};
}
