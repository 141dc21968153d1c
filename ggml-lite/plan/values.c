/* Where tensors are: values and their roots; and what steps read and write. */
#include <assert.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "ggl/internal/op_args.h"
#include "program_impl.h"

bool ggl_plan_is_private(const builder *b, const ggl_tensor *t) {
    return (size_t)t->id >= b->n_ids || b->s->loc[t->id].region < 0;
}

void ggl_plan_dense(size_t *nb, ggl_type type, const int64_t *ne) {
    nb[0] = ggl_type_get(type)->size;
    nb[1] = ggl_row_size(type, ne[0]);
    nb[2] = nb[1] * (size_t)ne[1];
    nb[3] = nb[2] * (size_t)ne[2];
}

void ggl_plan_own_root(builder *b, const ggl_tensor *t) {
    value *v = &b->value[t->id];
    root *r = &b->root[t->id];
    const bool placed = !ggl_plan_is_private(b, t);
    *r = (root){.placed = placed,
                .in_loop = b->loop && !ggl_is_leaf(t),
                .loc = placed ? b->s->loc[t->id] : (ggl_loc){.region = GGL_REGION_ARENA}};
    bool computed = !ggl_is_leaf(t), number = t->type != GGL_I32;
    v->root = t;
    v->offset = 0;
    v->type = computed && number && !placed ? b->p->value_type : t->type;
    ggl_plan_dense(v->nb, v->type, t->ne);
    if (!ggl_extents_bytes(v->type, t->ne, r->in_loop ? 1 : b->s->n_max, &r->size))
        b->too_large = true;
}

ggl_tensor *ggl_plan_new_tensor(builder *b) {
    ggl_tensor *t = ggl_arena_alloc(&b->arena, 1, sizeof *t);
    const size_t n = b->n_values + 1;
    if (!t || !ggl_grow(&b->value, &b->cap_value, n, sizeof *b->value) ||
        !ggl_grow(&b->root, &b->cap_root, n, sizeof *b->root))
        return NULL;
    t->op = GGL_OP_RESHAPE; /* any but a leaf */
    t->id = (int)b->n_values++;
    return t;
}

void ggl_plan_own_room(builder *b, const ggl_tensor *t) {
    value *v = &b->value[t->id];
    root *r = &b->root[t->id];
    *v = (value){.root = t, .type = GGL_F32};
    *r = (root){.is_room = true, .loc = {.region = GGL_REGION_ARENA}};
    ggl_plan_dense(v->nb, v->type, t->ne);
    if (!ggl_extents_bytes(v->type, t->ne, 1, &r->size))
        b->too_large = true;
}

int ggl_plan_end_of_loop(const builder *b, int i) {
    while (b->at[i].kind != GGL_STEP_END)
        i++;
    if ((size_t)i + 1 < b->n && b->at[i + 1].kind == GGL_STEP_LOOP &&
        b->at[i + 1].node == b->at[i].node)
        return ggl_plan_end_of_loop(b, i + 1);
    return i;
}

const value *ggl_plan_value_of(builder *b, const ggl_tensor *t) {
    if (!b->value[t->id].root) {
        const ggl_tensor *loop = b->loop;
        assert(ggl_is_leaf(t) || !ggl_plan_is_private(b, t));
        b->loop = NULL;
        ggl_plan_own_root(b, t);
        b->loop = loop;
    }
    return &b->value[t->id];
}

/* Returns the slot of each element of the batch if the body runs in chunks; NULL: it does not, or has no state. */
static const ggl_tensor *slot_of(const ggl_body *body) {
    for (int i = 0; body->chunk > 0 && i < body->n_node; i++)
        if (body->node[i]->op == GGL_OP_STATE)
            return body->node[i]->src[0];
    return NULL;
}

/* As ggl_plan_sources, with the result of the link before (in a chain) and of the group (in its
 * tail). */
static int all_sources(const item *it, const ggl_tensor **src) {
    const ggl_tensor *t = it->node;
    if (it->kind == GGL_STEP_LOOP || it->kind == GGL_STEP_END) {
        src[0] = it->kind == GGL_STEP_LOOP ? slot_of(t->body) : NULL;
        return src[0] ? 1 : 0;
    }
    if (it->copy_of) {
        src[0] = it->copy_of;
        return 1;
    }
    if (it->kind == GGL_STEP_FORM) {
        memcpy(src, it->form_of, sizeof it->form_of);
        return 2;
    }
    int n = ggl_n_reads(t);
    for (int k = 0; k < n; k++) {
        const ggl_tensor *x = ggl_read(t, k);
        bool no_value = x && (x->op == GGL_OP_CACHE || (t->op == GGL_OP_KEEP && k == 0));
        src[k] = no_value ? NULL : x;
    }
    if (it->reads_form)
        src[it->form_src] = it->reads_form;
    if (!it->room)
        return n;
    src[t->op == GGL_OP_KEEP ? KEEP_STATE : n] = it->room;
    return t->op == GGL_OP_KEEP ? n : n + 1;
}

int ggl_plan_sources(const item *it, const ggl_tensor **src) {
    const int n = all_sources(it, src);
    if (it->link > 0)
        src[it->link - 1] = NULL;
    for (int k = 0; k < n; k++)
        src[k] = it->hidden >> k & 1 ? NULL : src[k];
    return n;
}

const value *ggl_plan_source_value(builder *b, const item *it, const ggl_tensor *t) {
    return it->copy_of ? &it->from : ggl_plan_value_of(b, t);
}

const value *ggl_plan_result_of(builder *b, const item *it) {
    return it->copy_of ? &it->to : ggl_plan_value_of(b, it->node);
}

bool ggl_plan_has_value(const item *it) {
    return it->kind == GGL_STEP_FORM ||
           (it->kind == GGL_STEP_NODE && it->node->op != GGL_OP_CACHE &&
            it->node->op != GGL_OP_KEEP);
}

bool ggl_plan_uses_stores(const item *it) {
    const ggl_tensor *t = it->node;
    return it->kind == GGL_STEP_NODE && !it->copy_of &&
           (t->op == GGL_OP_CACHE || ggl_cache_of(t) || t->op == GGL_OP_STATE ||
            t->op == GGL_OP_KEEP || t->keeps_state);
}
