/* Forms: what a backend makes from an operand before a step reads it, such as columns rounded to
 * bytes for products. Inserts a step that makes the form before the first step that reads it; later
 * steps that read the same form of the same elements share it. */
#include <string.h>

#include "program_impl.h"

/* A form that has been inserted: the tensor that stands for it, and what it was made from. */
typedef struct made {
    const ggl_tensor *tensor, *of[2];
    ggl_form form;
} made;

typedef struct forms {
    made *at;
    size_t n, cap;
    size_t first; /* those before were made outside of the loop, or in an earlier one */
    item *items;  /* of the program with the steps inserted */
    size_t n_items, cap_items;
} forms;

/* True if a and b, either of which may be NULL, are the same elements in the same shape. */
static bool same_elements(builder *b, const ggl_tensor *x, const ggl_tensor *y) {
    if (!x || !y)
        return x == y;
    const value *v = ggl_plan_value_of(b, x), *w = ggl_plan_value_of(b, y);
    return v->root == w->root && v->offset == w->offset && v->type == w->type &&
           memcmp(v->nb, w->nb, sizeof v->nb) == 0 && memcmp(x->ne, y->ne, sizeof x->ne) == 0;
}

/* Returns the form if a step has made it, or NULL. */
static const made *find(builder *b, const forms *f, const ggl_form *form,
                        const ggl_tensor *const *of) {
    for (size_t i = f->first; i < f->n; i++) {
        const made *m = &f->at[i];
        if (m->form.kind == form->kind && m->form.row_size == form->row_size &&
            m->form.num == form->num && same_elements(b, m->of[0], of[0]) &&
            same_elements(b, m->of[1], of[1]))
            return m;
    }
    return NULL;
}

/* Returns a new tensor, a root of its own, for a form of the elements of `of`: as many rows, of
 * 32-bit words. NULL: out of memory. */
static const ggl_tensor *new_tensor(builder *b, const ggl_form *form, const ggl_tensor *of,
                                    const ggl_tensor *loop) {
    ggl_tensor *t = ggl_plan_new_tensor(b);
    if (!t)
        return NULL;
    t->type = GGL_I32;
    memcpy(t->ne, of->ne, sizeof t->ne);
    t->ne[0] = (int64_t)(form->row_size / sizeof(int32_t));
    b->loop = loop;
    ggl_plan_own_root(b, t);
    b->root[t->id].is_form = true;
    b->loop = NULL;
    return t;
}

static bool push(forms *f, const item *it) {
    if (!ggl_grow(&f->items, &f->cap_items, f->n_items + 1, sizeof *f->items))
        return false;
    f->items[f->n_items++] = *it;
    return true;
}

/* Adds the form that the item reads, and the step that makes it. Returns NULL if out of memory. */
static const made *add(builder *b, forms *f, const item *it, const ggl_form *form,
                       const ggl_tensor *const *of) {
    if (!ggl_grow(&f->at, &f->cap, f->n + 1, sizeof *f->at))
        return NULL;
    const ggl_tensor *t = new_tensor(b, form, of[0], it->in_loop ? it->node : NULL);
    const item make = {.kind = GGL_STEP_FORM,
                       .node = t,
                       .form_of = {of[0], of[1]},
                       .form = form->kind,
                       .reader = it->node,
                       .in_loop = it->in_loop};
    if (!t || !push(f, &make))
        return NULL;
    f->at[f->n] = (made){t, {of[0], of[1]}, *form};
    return &f->at[f->n++];
}

/* If the backend wants a source of the item in a form, makes the item read it. Returns false if out
 * of memory. */
static bool read_form(builder *b, forms *f, item *it) {
    const ggl_tensor *src[GGL_MAX_SRC];
    ggl_step step = {.kind = GGL_STEP_NODE};
    ggl_plan_make_step(b, it, &step);
    const ggl_form form = b->p->form(b->p->backend, &step);
    if (form.kind == 0)
        return true;
    ggl_plan_sources(it, src);
    const ggl_tensor *of[2] = {src[form.src], form.with < 0 ? NULL : src[form.with]};
    const made *m = find(b, f, &form, of);
    m = m ? m : add(b, f, it, &form, of);
    it->reads_form = m ? m->tensor : NULL;
    it->form_src = form.src;
    return m;
}

bool ggl_plan_insert_forms(builder *b) {
    forms f = {0};
    bool ok = true;
    if (!b->p->form)
        return true;
    for (size_t i = 0; i < b->n && ok; i++) {
        item it = b->at[i];
        if (it.kind != GGL_STEP_NODE)
            f.first = f.n;
        else if (!it.copy_of)
            ok = read_form(b, &f, &it);
        ok = ok && push(&f, &it);
    }
    ggl_free(f.at);
    if (!ok) {
        ggl_free(f.items);
        return false;
    }
    ggl_free(b->at);
    b->at = f.items;
    b->n = f.n_items;
    b->cap = f.cap_items;
    return true;
}
