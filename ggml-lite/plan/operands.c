/* Gives steps their operands, with all addresses resolved. */
#include <assert.h>
#include <string.h>

#include "program_impl.h"

/* Returns the operand for t, whose elements are at v, in a step inside or outside a loop. */
static ggl_operand operand(builder *b, const ggl_tensor *t, const value *v, bool in_loop) {
    const root *r = &b->root[v->root->id];
    ggl_operand o = {.type = v->type, .region = r->loc.region, .offset = r->loc.offset + v->offset};
    memcpy(o.ne, t->ne, sizeof o.ne);
    memcpy(o.nb, v->nb, sizeof o.nb);
    if (in_loop && ggl_is_batched(t)) {
        o.ne[GGL_BATCH_DIM] = 1;
        o.loop = r->in_loop ? 0 : v->nb[GGL_BATCH_DIM];
        o.in_chunk = r->is_room;
    }
    return o;
}

/* Returns the operand for the weight of a product: the repacked copy, if the weight has one and the
 * product reads all of it, else the weight itself. Sets step->original if the copy may have to wait. */
static ggl_operand weight_operand(builder *b, ggl_step *step, const ggl_tensor *t, const value *v,
                                  bool in_loop) {
    ggl_operand o = operand(b, t, v, in_loop);
    const ggl_tensor *w = v->root;
    size_t nb[GGL_MAX_DIMS];
    if (!b->s->repacked || w->op != GGL_OP_WEIGHT || b->s->repacked[w->id].region < 0)
        return o;
    ggl_plan_dense(nb, w->type, w->ne);
    if (v->offset != 0 || memcmp(t->ne, w->ne, sizeof w->ne) != 0 ||
        memcmp(v->nb, nb, sizeof nb) != 0)
        return o;
    if (b->s->waits && o.region >= 0) {
        step->original.waits = &b->s->waits[w->id];
        step->original.loc = (ggl_loc){.region = o.region, .offset = o.offset};
    }
    o.region = b->s->repacked[w->id].region;
    o.offset = b->s->repacked[w->id].offset;
    o.repacked = true;
    return o;
}

/* The node of all steps that copy. */
static const ggl_tensor copy_node = {.op = GGL_OP_RESHAPE, .name = "copy", .ne = {1, 1, 1, 1}};

void ggl_plan_make_step(builder *b, const item *it, ggl_step *step) {
    const ggl_tensor *src[GGL_MAX_SRC];
    step->kind = it->kind;
    step->node = it->copy_of ? &copy_node : it->kind == GGL_STEP_FORM ? it->reader : it->node;
    step->end = it->end;
    step->wave =
        it->in_loop || it->kind == GGL_STEP_LOOP || it->kind == GGL_STEP_END ? 0 : it->wave;
    step->form = it->form;
    step->n_links = it->n_links > 0 && it->nth == 0 ? it->n_links : it->n_links > 0 ? 0 : 1;
    step->link = it->link - 1;
    step->n_members = it->joined || it->nth > 0 ? 0 : it->n_members > 0 ? it->n_members : 1;
    step->has_tail = it->has_tail;
    step->original.waits = NULL;
    step->n_src = ggl_plan_sources(it, src);
    const ggl_operand absent = {.region = -1};
    for (int k = 0; k < step->n_src; k++) {
        const value *v = src[k] ? ggl_plan_source_value(b, it, src[k]) : NULL;
        bool weight = k == 1 && step->node->op == GGL_OP_LINEAR && it->kind == GGL_STEP_NODE;
        step->src[k] = !v       ? absent
                       : weight ? weight_operand(b, step, src[k], v, it->in_loop)
                                : operand(b, src[k], v, it->in_loop);
        assert(!v || step->src[k].region >= 0);
        step->src[k].form = it->reads_form && k == it->form_src;
    }
    step->dst = ggl_plan_has_value(it)
                    ? operand(b, it->node, ggl_plan_result_of(b, it), it->in_loop)
                    : absent;
    step->dst.form = it->kind == GGL_STEP_FORM;
}
