#include "ggl/backend.h"

const char *ggl_refusal(const ggl_backend *b, const ggl_tensor *node, const ggl_tensor **part) {
    const char *why = b->v->refuses(b, node);
    if (part)
        *part = why ? node : NULL;
    if (!why || node->op != GGL_OP_CALL)
        return why;
    why = NULL;
    for (int i = 0; i < node->body->n_node && !why; i++)
        why = ggl_refusal(b, node->body->node[i], part);
    if (part && !why)
        *part = NULL;
    return why;
}
