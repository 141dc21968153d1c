/* --merge-experts: files of 2023 have a tensor per expert, blk.0.ffn_up.0.weight,
 * blk.0.ffn_up.1.weight, ..; joins them into blk.0.ffn_up_exps.weight, with the experts along
 * the last dimension. */
#include <stdio.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/index.h"
#include "type_plan.h"

typedef struct stack {
    ggl_str name; /* of the joined tensor */
    size_t first; /* index in the plan of the first of them in the file */
    size_t n, put;
    const ggl_gguf_tensor **part; /* [expert's number] */
} stack;

typedef struct merge {
    quant_plan *plan;
    size_t *stack_of; /* [tensor]: index of its stack; SIZE_MAX: it is not an expert's */
    size_t *expert;
    stack *stack;
    size_t n_stack, cap_stack;
    ggl_index by_name;
    ggl_error *err;
} merge;

static bool is_number(const char *s, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (s[i] < '0' || s[i] > '9')
            return false;
    return n > 0 && n < 7;
}

/* Splits blk.0.ffn_up.3.weight into 3 and `whole`, blk.0.ffn_up_exps.weight. False: not such a
 * name. */
static bool is_expert(const char *name, size_t *expert, char *whole, size_t size) {
    const char *dot[5] = {NULL};
    int n = 0;
    for (const char *s = name; *s; s++)
        if (*s == '.' && n < 5)
            dot[n++] = s;
    if (n != 4 || !is_number(dot[0] + 1, (size_t)(dot[1] - dot[0] - 1)) ||
        is_number(dot[1] + 1, (size_t)(dot[2] - dot[1] - 1)) ||
        !is_number(dot[2] + 1, (size_t)(dot[3] - dot[2] - 1)))
        return false;
    *expert = 0;
    for (const char *s = dot[2] + 1; s < dot[3]; s++)
        *expert = 10 * *expert + (size_t)(*s - '0');
    snprintf(whole, size, "%.*s_exps%s", (int)(dot[2] - name), name, dot[3]);
    return true;
}

static ggl_status no_memory(const merge *m) {
    return ggl_fail(m->err, GGL_NOMEM, "out of memory");
}

/* Finds the stack of each tensor. */
static ggl_status find_stacks(merge *m) {
    quant_plan *p = m->plan;
    char whole[160];
    for (size_t i = 0; i < p->n; i++) {
        m->stack_of[i] = SIZE_MAX;
        if (!is_expert(p->tensor[i].name, &m->expert[i], whole, sizeof whole))
            continue;
        const ggl_str name = {whole, strlen(whole)};
        size_t k = ggl_index_find(&m->by_name, m->stack, name);
        if (k == SIZE_MAX) {
            char *own = ggl_arena_strndup(&p->made, whole, name.n);
            if (!own || !ggl_grow(&m->stack, &m->cap_stack, m->n_stack + 1, sizeof *m->stack))
                return no_memory(m);
            m->stack[k = m->n_stack++] = (stack){.name = {own, name.n}, .first = i};
            ggl_index_put(&m->by_name, m->stack, k);
        }
        m->stack[k].n++;
        m->stack_of[i] = k;
    }
    return m->n_stack ? GGL_OK
                      : ggl_fail(m->err, GGL_NOT_FOUND,
                                 "--merge-experts: no tensor belongs to a single expert, such as "
                                 "blk.0.ffn_up.0.weight");
}

static bool alike(const ggl_gguf_tensor *a, const ggl_gguf_tensor *b) {
    return a->type == b->type && a->n_dims == b->n_dims && a->size == b->size &&
           memcmp(a->ne, b->ne, sizeof a->ne) == 0;
}

/* Puts tensor i into its stack at the place of its number. */
static ggl_status put_part(merge *m, size_t i) {
    stack *s = &m->stack[m->stack_of[i]];
    const quant_tensor *t = &m->plan->tensor[i];
    if (!s->part && !(s->part = ggl_arena_alloc(&m->plan->made, s->n, sizeof *s->part)))
        return no_memory(m);
    if (m->expert[i] >= s->n || s->part[m->expert[i]])
        return ggl_fail(
            m->err, GGL_FORMAT,
            "tensor '%s': %s would have %zu parts, but they are not numbered from 0 to %zu",
            t->shown, s->name.s, s->n, s->n - 1);
    if (!alike(t->from, m->plan->tensor[s->first].from) || t->from->n_dims >= GGL_MAX_DIMS)
        return ggl_fail(m->err, GGL_FORMAT,
                        "tensor '%s' has another type or shape than '%s', or too many dimensions: "
                        "they cannot be joined",
                        t->shown, m->plan->tensor[s->first].shown);
    s->part[m->expert[i]] = t->from;
    return GGL_OK;
}

/* Makes one tensor of a stack, in the place of its first part. */
static ggl_status make_whole(merge *m, const stack *s, quant_tensor *to) {
    ggl_gguf_tensor *whole = ggl_arena_alloc(&m->plan->made, 1, sizeof *whole);
    if (!whole)
        return no_memory(m);
    *whole = *s->part[0];
    whole->name = s->name;
    if (whole->n_dims == 1 && whole->ne[0] == 1) /* a factor (NAME.scale): one number for each */
        whole->n_dims = 0;
    whole->ne[whole->n_dims++] = (int64_t)s->n;
    if (!ggl_size_mul(whole->size, s->n, &whole->size))
        return ggl_fail(m->err, GGL_LIMIT, "tensor '%s' would be too large", s->name.s);
    *to = (quant_tensor){.from = whole, .part = s->part, .n_part = s->n};
    return GGL_OK;
}

static ggl_status put_stacks(merge *m) {
    quant_plan *p = m->plan;
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        ggl_status s = m->stack_of[i] == SIZE_MAX ? GGL_OK : put_part(m, i);
        if (s != GGL_OK)
            return s;
    }
    for (size_t i = 0; i < p->n; i++) { /* in place: the number only gets smaller */
        const stack *s = m->stack_of[i] == SIZE_MAX ? NULL : &m->stack[m->stack_of[i]];
        ggl_status made = GGL_OK;
        if (!s)
            p->tensor[n++] = p->tensor[i];
        else if (s->first == i)
            made = make_whole(m, s, &p->tensor[n++]);
        if (made != GGL_OK)
            return made;
    }
    p->n = n;
    return GGL_OK;
}

ggl_status llm_quant_merge_experts(quant_plan *p, ggl_error *err) {
    merge m = {.plan = p, .err = err};
    m.stack_of = ggl_calloc(p->n + 1, sizeof *m.stack_of);
    m.expert = ggl_calloc(p->n + 1, sizeof *m.expert);
    ggl_status s = m.stack_of && m.expert ? GGL_OK : no_memory(&m);
    if (s == GGL_OK)
        s = ggl_index_init(&m.by_name, p->n, sizeof *m.stack, GGL_INDEX_STRINGS, err);
    if (s == GGL_OK)
        s = find_stacks(&m);
    if (s == GGL_OK)
        s = put_stacks(&m);
    ggl_free(m.stack_of);
    ggl_free(m.expert);
    ggl_free(m.stack);
    ggl_index_fini(&m.by_name);
    return s;
}
