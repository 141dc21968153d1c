/* Source tensors that no line reads because they should be copies of others, as a matrix of the output is of the
 * embeddings: `copy "lm_head.weight" of token_embd`. One that differs is refused, because some programs compute with
 * it (transformers 5) and others do not (transformers 4, llama.cpp). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "conversion.h"

#define MAX_AT_ONCE 1024 /* numbers */

/* Returns the folder's tensor of which the line's weight is made, as it is there. NULL: there is none, or more than one. */
static const recipe *original_of(const arch_conversion *c, const arch_mapping *copy) {
    const recipe *r = NULL;
    for (size_t i = 0; i < c->n_tensor && !r; i++) {
        const arch_mapping *m = c->tensor[i].line;
        if (m && m->kind == MAP_WEIGHT && !m->bias && strcmp(m->name, copy->other) == 0)
            r = c->tensor[i].recipe;
    }
    while (r && r->n_part == 1)
        r = r->part[0];
    return r && r->n_part == 0 && r->source ? r : NULL;
}

const st_tensor *llm_arch_convert_original(const arch_conversion *c, const st_tensor *t) {
    const arch_mapping *line = t->used ? NULL : llm_arch_convert_ignored(c, t);
    const recipe *of = line && line->kind == MAP_COPY ? original_of(c, line) : NULL;
    return of ? of->source : NULL;
}

/* Makes the recipe of numbers as the folder has them. */
static recipe recipe_of(const st_tensor *t) {
    recipe r = {.kind = RECIPE_SOURCE, .n_dims = 1, .ne = {1, 1, 1, 1}, .source = t};
    for (int d = 0; d < t->n_dims; d++)
        r.ne[0] *= t->ne[d];
    return r;
}

/* True if the tensor has the shape of what the folder has for the weight; of codes, as many numbers. */
static bool same_shape(const recipe *of, const st_tensor *t) {
    const st_tensor *s = of->source;
    const recipe own = recipe_of(t);
    if (of->kind != RECIPE_SOURCE)
        return llm_recipe_count(of) == llm_recipe_count(&own);
    return s->n_dims == t->n_dims && memcmp(s->ne, t->ne, (size_t)s->n_dims * sizeof *s->ne) == 0;
}

static bool same_bytes(const recipe *a, const st_tensor *b) {
    return strcmp(a->source->dtype, b->dtype) == 0 && a->source->size == b->size &&
           memcmp(a->source->data, b->data, b->size) == 0;
}

/* Returns the first number that differs; -1: none does. value[]: those of a and b. */
static int64_t first_other(arch_eval *ev, recipe *a, recipe *b, float value[2]) {
    const int64_t n = llm_recipe_count(b);
    float x[MAX_AT_ONCE], y[MAX_AT_ONCE];
    for (int64_t i = 0, k; i < n; i += k) {
        k = n - i < MAX_AT_ONCE ? n - i : MAX_AT_ONCE;
        if (llm_recipe_read(a, i, k, x, ev->err) != GGL_OK ||
            llm_recipe_read(b, i, k, y, ev->err) != GGL_OK)
            return ev->status = GGL_FORMAT, -1;
        for (int64_t j = 0; j < k; j++)
            if (x[j] != y[j] && !(isnan(x[j]) && isnan(y[j]))) {
                value[0] = x[j];
                value[1] = y[j];
                return i + j;
            }
    }
    return -1;
}

/* --- the error -------------------------------------------------------------------------------- */

/* Returns the condition under which some line reads the tensor; NULL: none does. */
static const arch_expr *condition_of(arch_eval *ev, const arch_expr *e, const st_tensor *t) {
    if (!e || (e->kind != EX_IF && e->kind != EX_OR_ELSE))
        return NULL;
    const arch_expr *found = NULL, *branch[2] = {e->a, e->b};
    for (int k = 0; k < 2 && !found; k++) {
        const bool is_it = branch[k]->kind == EX_STRING && !strchr(branch[k]->name, '{') &&
                           llm_arch_convert_find_source(ev->conv, branch[k]->name, false) == t;
        found = is_it && e->kind == EX_IF ? e->c : condition_of(ev, branch[k], t);
    }
    return found;
}

static bool refuse(arch_eval *ev, const arch_mapping *copy, const st_tensor *t, const recipe *of,
                   const char *how) {
    const arch_expr *cond = NULL;
    for (const arch_mapping *m = ev->conv->section->map; m && !cond; m = m->next)
        cond = m->kind == MAP_WEIGHT ? condition_of(ev, m->expr, t) : NULL;
    /* a message about the condition begins with its values of config.json */
    llm_arch_error(ev, cond ? cond->place : copy->place,
                   "tensor %s should be a copy of %s, but %s: programs differ in which of the two "
                   "they compute with: "
                   "%s--ignore-tensor '%s' leaves %s out",
                   llm_safetensors_text(t), of ? llm_safetensors_text(of->source) : copy->other,
                   how, cond ? "let config.json say otherwise to compute with both; " : "",
                   t->name.s, t->name.s);
    return false;
}

static bool check(arch_eval *ev, const arch_mapping *copy, const st_tensor *t) {
    char how[200];
    float value[2];
    const recipe *of = original_of(ev->conv, copy);
    recipe own = recipe_of(t);
    if (!of)
        return refuse(ev, copy, t, of, "that is not one tensor of the folder");
    const bool alike = same_shape(of, t);
    if (alike && same_bytes(of, t))
        return true;
    if (!alike || t->type < 0)
        return refuse(ev, copy, t, of, alike ? "is of another type" : "has another shape");
    recipe original = *of;
    const int64_t at = first_other(ev, &original, &own, value);
    llm_recipe_drop(&original);
    if (at < 0)
        return ev->status == GGL_OK;
    snprintf(how, sizeof how, "has %g in place of %g as number %" PRId64, (double)value[1],
             (double)value[0], at);
    return refuse(ev, copy, t, of, how);
}

bool llm_arch_convert_check_copies(arch_eval *ev) {
    arch_conversion *c = ev->conv;
    for (size_t i = 0; i < c->source->n_tensor && !c->only_some && !c->partial; i++) {
        const st_tensor *t = &c->source->tensor[i];
        const arch_mapping *line = t->used ? NULL : llm_arch_convert_ignored(c, t);
        if (!line || line->kind != MAP_COPY || check(ev, line, t) || ev->convert->forgive(ev))
            continue;
        for (i++; i < c->source->n_tensor; i++) /* for hints at patterns that match nothing */
            if (!c->source->tensor[i].used)
                (void)llm_arch_convert_tensor_on_request(c, &c->source->tensor[i]);
        c->tensors_known = true;
        return false;
    }
    return true;
}
