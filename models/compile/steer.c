/* Control vectors (control.c) are added to the rows that layers hand on, while a descriptor is built: at the end of layer N, to what leaves it,
 *
 *     x = x + (scale * direction.N of the first vector + scale * direction.N of the second + ..)
 *
 * The sum in brackets is a constant, which a session computes once (ggl/internal/fold.h). Nothing is ever added to layer 0. If the residual stream
 * has several rows, each gets the sum. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "adapt.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/show.h"

static bool is_control(const llm_adapter_use *u) {
    return u->adapter->n_directions > 0;
}

/* Says for which model a vector was made, if its file does; returns buf. */
static const char *made_for(const llm_adapter *a, char *buf, size_t size) {
    const ggl_str hint = a->architecture;
    *buf = 0;
    if (hint.n > 0)
        snprintf(buf, size, "; it was made for a model of the kind %.*s",
                 (int)ggl_utf8_cut(hint.s, hint.n, 60), hint.s);
    return buf;
}

/* --- what is added ------------------------------------------------------------------------------ */

static bool counts(const llm_adapter_use *u, int64_t layer) {
    return u->scale != 0 && layer >= u->first && (u->last == 0 || layer <= u->last);
}

/* Returns the index of the first direction of the layer, or of what follows it. */
static size_t find_direction(const llm_adapter *a, int64_t layer) {
    size_t from = 0, to = a->n_directions;
    while (from < to) {
        const size_t mid = from + (to - from) / 2;
        if (a->direction[mid].layer < layer)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

/* Returns scale * direction as a constant. NULL: reported. */
static ggl_tensor *scaled(arch_eval *ev, const llm_adapter_use *u, const ggl_gguf_tensor *t) {
    char name[3 * ARCH_MAX_NAME];
    snprintf(name, sizeof name, "%.*s", (int)t->name.n, t->name.s);
    ggl_tensor *src[2] = {ggl_graph_weight(ev->g, name, t->type, 1, t->ne, t->data),
                          u->scale != 1 ? ggl_graph_number(ev->g, u->scale) : NULL};
    if (!llm_arch_graph_ok(ev, ev->at->place) || !src[1])
        return src[0];
    return llm_arch_plain_node(ev, ev->at->place, GGL_OP_MUL, src, 2, NULL, 0);
}

/* Checks that the direction fits the rows of x. False: reported. */
static bool check_length(arch_eval *ev, const llm_adapter_use *u, const ggl_gguf_tensor *t,
                         const ggl_tensor *x) {
    char hint[100];
    return t->ne[0] == x->ne[0] ||
           llm_arch_adapt_refuse(ev, GGL_SHAPE, u->adapter,
                                 "%.*s has %" PRId64 " numbers, but the rows that layer %" PRId64
                                 " of %.200s hands on have %" PRId64 "%s",
                                 (int)t->name.n, t->name.s, t->ne[0], ev->layer, ev->src->name,
                                 x->ne[0], made_for(u->adapter, hint, sizeof hint));
}

/* Adds the directions that one vector has for this layer to *sum, unless its range or scale leaves them out. False: reported. */
static bool add_directions(arch_eval *ev, const llm_adapter_use *u, const ggl_tensor *x,
                           ggl_tensor **sum) {
    const llm_adapter *a = u->adapter;
    for (size_t i = find_direction(a, ev->layer);
         i < a->n_directions && a->direction[i].layer == ev->layer; i++) {
        const ggl_gguf_tensor *t = a->direction[i].t;
        if (!check_length(ev, u, t, x))
            return false;
        if (!counts(u, ev->layer))
            continue;
        ggl_tensor *src[2] = {*sum, scaled(ev, u, t)};
        if (!src[1])
            return false;
        *sum = *sum ? llm_arch_plain_node(ev, ev->at->place, GGL_OP_ADD, src, 2, NULL, 0) : src[1];
        if (!*sum)
            return false;
    }
    return true;
}

/* Returns the row or rows x with the sum added to each. NULL: reported. */
static ggl_tensor *with_sum(arch_eval *ev, ggl_tensor *x, ggl_tensor *sum) {
    const double one_row[2] = {(double)x->ne[0], 1};
    if (x->n_dims == 2)
        sum = llm_arch_plain_node(ev, ev->at->place, GGL_OP_RESHAPE, &sum, 1, one_row, 2);
    ggl_tensor *src[2] = {x, sum};
    return sum ? llm_arch_plain_node(ev, ev->at->place, GGL_OP_ADD, src, 2, NULL, 0) : NULL;
}

/* --- during the build --------------------------------------------------------------------------- */

bool llm_arch_steers(const arch_eval *ev) {
    bool any = false;
    for (size_t i = 0; ev->adapt && i < ev->adapt->n; i++)
        any |= is_control(&ev->adapt->use[i]);
    return any && !(ev->stage && (arch_guesses(ev->stage) || ev->stage->of_rows));
}

bool llm_arch_steer(arch_eval *ev, arch_slot *slot) {
    const struct arch_adapt *x = ev->adapt;
    ggl_tensor *sum = NULL;
    char name[ARCH_MAX_NAME];
    for (size_t i = 0; slot && i < x->n; i++)
        if (is_control(&x->use[i]) && !add_directions(ev, &x->use[i], slot->v.t, &sum))
            return false;
    if (!sum)
        return true;
    ggl_tensor *t = with_sum(ev, slot->v.t, sum);
    if (!t)
        return false;
    snprintf(name, sizeof name, "blk.%" PRId64 " steered", ev->layer);
    ggl_tensor_set_name(ev->g, t, name);
    slot->v.t = t;
    return true;
}

void llm_arch_steer_loop(arch_eval *ev, int64_t n_turns) {
    struct arch_adapt *x = ev->adapt;
    if (n_turns == 0)
        return;
    x->n_loops[ev->stage != NULL]++;
    x->n_layers = n_turns > x->n_layers ? n_turns : x->n_layers;
}

/* Checks a vector, now that the number of layers is known. False: reported. */
static bool check_layers(arch_eval *ev, const llm_adapter_use *u) {
    const llm_adapter *a = u->adapter;
    const int64_t n = ev->adapt->n_layers, least = a->direction[0].layer,
                  most = a->direction[a->n_directions - 1].layer;
    const int64_t first = u->first > 1 ? u->first : 1, last = u->last ? u->last : n - 1;
    char hint[100];
    if (u->first >= n || u->last > n)
        return llm_arch_adapt_refuse(ev, GGL_USAGE, a,
                                     "the range of layers is %" PRId64 " to %" PRId64
                                     ", but %.200s has %" PRId64 " layers: 1 to %" PRId64
                                     " can be steered",
                                     first, last, ev->src->name, n, n - 1);
    if (most >= n)
        return llm_arch_adapt_refuse(
            ev, GGL_SHAPE, a,
            "direction.%" PRId64 " is for layer %" PRId64 ", but %.200s has %" PRId64
            " layers: 1 to %" PRId64 " can be steered%s",
            most, most, ev->src->name, n, n - 1, made_for(a, hint, sizeof hint));
    const size_t at = find_direction(a, first);
    if (at == a->n_directions || a->direction[at].layer > last)
        return llm_arch_adapt_refuse(
            ev, GGL_USAGE, a,
            "it has directions for some layers from %" PRId64 " to %" PRId64
            ", none of which is in the range of layers, %" PRId64 " to %" PRId64,
            least, most, first, last);
    return true;
}

bool llm_arch_steer_finish(arch_eval *ev) {
    const struct arch_adapt *x = ev->adapt;
    for (size_t i = 0; x && i < x->n; i++) {
        const llm_adapter_use *u = &x->use[i];
        if (!is_control(u))
            continue;
        if (x->n_loops[0] > 1 || x->n_loops[1] > 1)
            return llm_arch_adapt_refuse(
                ev, GGL_UNSUPPORTED, u->adapter,
                "models of the architecture %s have two loops over layers, so that a "
                "layer's number may mean one of each: they cannot be steered",
                ev->family);
        if (x->n_layers == 0)
            return llm_arch_adapt_refuse(
                ev, GGL_UNSUPPORTED, u->adapter,
                "models of the architecture %s have no layers that hand on a row of each "
                "token, to which a direction could be added",
                ev->family);
        if (!check_layers(ev, u))
            return false;
    }
    return true;
}
