/* Makes the program of a segment by the passes that program_impl.h lists. */
#include "program_impl.h"
#include "ggl/internal/graph.h"

/* GGL_LIMIT if a node has more sources than a step has room for. */
static ggl_status check_items(const builder *b, ggl_error *err) {
    if (b->too_wide)
        return ggl_fail(err, GGL_LIMIT, "%s has %d sources; at most %d are allowed",
                        b->too_wide->call ? b->too_wide->call : ggl_op_get(b->too_wide->op).name,
                        ggl_n_reads(b->too_wide), GGL_MAX_SRC);
    return GGL_OK;
}

/* Runs the passes and fills in *p; on failure p->step may be set, and the caller frees it. */
static ggl_status build(builder *b, ggl_program *p, ggl_error *err) {
    ggl_plan_flatten(b, b->s->node, b->s->n_node);
    ggl_status s = check_items(b, err);
    if (s != GGL_OK)
        return s;
    if (b->no_memory || !ggl_plan_insert_forms(b) || !ggl_plan_find_chains(b) ||
        !ggl_plan_order_in_waves(b) || !ggl_plan_find_groups(b) || !ggl_plan_find_tails(b))
        return ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
    s = ggl_plan_place(b, &p->arena_size, err);
    if (s != GGL_OK)
        return s;
    p->step = ggl_calloc(b->n, sizeof *p->step);
    if (!p->step)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
    for (size_t i = 0; i < b->n; i++)
        ggl_plan_make_step(b, &b->at[i], &p->step[i]);
    p->n_step = (int)b->n;
    p->n_max = b->s->n_max;
    return GGL_OK;
}

ggl_status ggl_program_build(ggl_program *p, const ggl_segment *s, const ggl_program_params *params,
                             ggl_error *err) {
    *p = (ggl_program){0};
    const size_t n = (size_t)ggl_graph_n_ids(s->graph);
    builder b = {.s = s, .p = params, .n_ids = n, .n_values = n};
    ggl_status status = ggl_grow(&b.value, &b.cap_value, n + 1, sizeof *b.value) &&
                                ggl_grow(&b.root, &b.cap_root, n + 1, sizeof *b.root)
                            ? build(&b, p, err)
                            : ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
    ggl_arena_fini(&b.arena);
    ggl_free(b.value);
    ggl_free(b.root);
    ggl_free(b.at);
    if (status != GGL_OK)
        ggl_program_fini(p);
    return status;
}

void ggl_program_fini(ggl_program *p) {
    ggl_free(p->step);
    *p = (ggl_program){0};
}
