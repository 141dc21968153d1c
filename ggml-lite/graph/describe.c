/* The graph's error, and texts about nodes for messages. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "graph_impl.h"

void *ggl_graph_fail(ggl_graph *g, ggl_status s, const char *fmt, ...) {
    if (g->error.status == GGL_OK) {
        va_list args;
        va_start(args, fmt);
        (void)ggl_failv(&g->error, s, fmt, args);
        va_end(args);
    }
    return NULL;
}

ggl_status ggl_graph_error(const ggl_graph *g, ggl_error *err) {
    if (g->error.status == GGL_OK)
        return GGL_OK;
    return ggl_fail(err, g->error.status, "%s", g->error.msg);
}

const char *ggl_shape_text(const ggl_tensor *t, char *buf, size_t size) {
    size_t n = (size_t)snprintf(buf, size, "[");
    for (int d = 0; d < t->n_dims && n < size; d++) {
        const char *name = t->dim_name[d];
        bool plain = !name || (name[0] >= '0' && name[0] <= '9');
        n += (size_t)snprintf(buf + n, size - n, "%s%s%s%" PRId64, d ? ", " : "", plain ? "" : name,
                              plain ? "" : " = ", t->ne[d]);
    }
    if (n < size)
        snprintf(buf + n, size - n, "]");
    return buf;
}

/* Returns a weight that the node reads, directly or through the first sources of nodes that do not
 * depend on the batch; NULL: none. */
static const ggl_tensor *weight_of(const ggl_tensor *t) {
    for (int k = 0; k < t->n_src; k++)
        for (const ggl_tensor *x = t->src[k]; x;
             x = x->n_src && !ggl_is_batched(x) ? x->src[0] : NULL)
            if (x->op == GGL_OP_WEIGHT)
                return x;
    return NULL;
}

const char *ggl_node_text(const ggl_tensor *t, char *buf, size_t size) {
    const char *op = t->call ? t->call : t->op == GGL_OP_CALL ? "a body" : ggl_op_get(t->op).name;
    int n = (int)strlen(op);
    if (!t->call && op[0] == '<' && strchr(op, '>')) { /* prints "<pick>" as "pick" */
        op++;
        n = (int)strcspn(op, ">");
    }
    const ggl_tensor *w = weight_of(t);
    char group[24] = "";
    if (!t->name && t->group >= 0)
        snprintf(group, sizeof group, "group %d ", t->group);
    snprintf(buf, size, "%s%s%.*s%s%s%s", t->name ? t->name : group, t->name ? " = " : "", n, op,
             w ? "(.., " : "(..)", w && w->name ? w->name : "", w ? ")" : "");
    return buf;
}
