/* Takes recipes of weights apart into recipes for the halves of their pairs.
 *
 * A weight W of extents [in, out, ..] (innermost first) is rows [rank, out, ..] times columns
 * [in, rank]: W[i, o] = sum over k of columns[i, k] * rows[k, o]. What rearranges the dimensions of
 * `out` does the same to `rows`; what rearranges `in` does it to `columns`. Lengths of rows, which pairs may have, go with `rows`. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lora_impl.h"

typedef struct parts {
    recipe *columns, *rows;
    /* The lengths of the rows of the folder's matrix, [1, out, ..], as if they were `rows` of rank 1; across: those of its columns, [in, 1].
     * NULL: none are given. */
    recipe *magnitude;
    bool across;
} parts;

typedef struct taking {
    llm_lora *l;
    arch_conversion *c;
    const char *name; /* of the weight being taken apart */
    const lora_weight
        *instead; /* the pair of what the recipe reads; NULL: each source has its own */
    ggl_error *err;
    ggl_status status;
} taking;

/* Reports that the weight's recipe has no counterpart for pairs. */
static bool refuse(taking *t, const char *why) {
    if (t->status == GGL_OK)
        t->status =
            ggl_fail(t->err, GGL_UNSUPPORTED, "%s: %.200s cannot be made for an adapter: %s",
                     t->l->file_path, t->name, why);
    return false;
}

static bool no_memory(taking *t) {
    t->status = ggl_fail(t->err, GGL_NOMEM, "out of memory");
    return false;
}

/* Makes a recipe of `kind` from one part, of its shape. NULL: out of memory, reported. */
static recipe *from(taking *t, recipe_kind kind, recipe *part) {
    recipe *r = ggl_arena_alloc(&t->c->arena, 1, sizeof *r);
    recipe **list = ggl_arena_alloc(&t->c->arena, 1, sizeof *list);
    if (!r || !list)
        return no_memory(t), NULL;
    if (part)
        *r = *part;
    list[0] = part;
    r->kind = kind;
    r->part = list;
    r->n_part = part != NULL;
    r->held = NULL;
    r->matrix = 0;
    return r;
}

/* A matrix of the folder. */
static recipe *source(taking *t, const st_tensor *s) {
    recipe *r = from(t, RECIPE_SOURCE, NULL);
    if (r)
        *r = (recipe){.kind = RECIPE_SOURCE,
                      .n_dims = 2,
                      .ne = {s->ne[0], s->ne[1], 1, 1},
                      .part = r->part,
                      .dim = 1,
                      .source = s};
    return r;
}

static recipe *transposed(taking *t, recipe *part) {
    recipe *r = part ? from(t, RECIPE_TRANSPOSE, part) : NULL;
    if (r) {
        r->dim = 0;
        r->x = 1;
        r->ne[0] = part->ne[1];
        r->ne[1] = part->ne[0];
    }
    return r;
}

static recipe *reshaped(taking *t, recipe *part, int n_dims, const int64_t *ne) {
    recipe *r = part ? from(t, RECIPE_RESHAPE, part) : NULL;
    if (r) {
        r->n_dims = n_dims;
        for (int d = 0; d < GGL_MAX_DIMS; d++)
            r->ne[d] = d < n_dims ? ne[d] : 1;
    }
    return r;
}

/* Returns the pair of a tensor that recipes read; NULL: it has none. */
static const lora_weight *pair_of(const llm_lora *l, const st_tensor *t) {
    const size_t i = (size_t)(t - l->model->tensor);
    return !l->pair_of ? &l->weight[i] : l->pair_of[i] ? &l->weight[l->pair_of[i] - 1] : NULL;
}

/* True if some tensor that the recipe reads has a pair. */
static bool has_pair(const llm_lora *l, const recipe *r) {
    bool any = r->source && pair_of(l, r->source);
    for (int k = 0; k < r->n_part && !any; k++)
        any = has_pair(l, r->part[k]);
    return any;
}

/* Checks that a pair is for a matrix of the shape of r, whose source may be packed. False: reported. */
static bool pair_fits(taking *t, const recipe *r, const lora_weight *w) {
    const int64_t *want = t->l->weights->tensor[w - t->l->weight].ne;
    const int64_t rows = r->ne[r->n_dims - 1], columns = llm_recipe_count(r) / rows;
    if (r->source->n_dims == 2 && columns == want[0] && rows == want[1])
        return true;
    if (t->status == GGL_OK && r->source->n_dims != 2)
        t->status = ggl_fail(t->err, GGL_SHAPE,
                             "%s: the pair of %.300s is for a matrix, but the model's tensor has "
                             "%d dimension%s, not 2",
                             t->l->file_path, w->name.s, r->source->n_dims,
                             r->source->n_dims == 1 ? "" : "s");
    if (t->status == GGL_OK)
        t->status = ggl_fail(t->err, GGL_SHAPE,
                             "%s: the pair of %.300s is for a matrix of %" PRId64
                             " rows of %" PRId64 ", but the model's has %" PRId64 " of %" PRId64,
                             t->l->file_path, w->name.s, want[1], want[0], rows, columns);
    return false;
}

/* The halves of a pair, the right way round. */
static bool take_source(taking *t, const recipe *r, parts *out) {
    const lora_weight *w = t->instead ? t->instead : pair_of(t->l, r->source);
    if (!w)
        return refuse(t, "some of the matrices that it is made from have no pair");
    if (!pair_fits(t, r, w))
        return false;
    recipe *a = source(t, w->a), *b = a ? source(t, w->b) : NULL;
    if (b && w->factor != 1 && (b = from(t, RECIPE_MUL, b)))
        b->number = w->factor;
    if (!b)
        return false;
    *out = w->flipped ? (parts){.columns = transposed(t, b), .rows = transposed(t, a)}
                      : (parts){.columns = a, .rows = b};
    if (w->magnitude) {
        out->across = w->flipped;
        if (!(out->magnitude = source(t, w->magnitude)))
            return false;
        out->magnitude->ne[!w->flipped] = w->magnitude->ne[0];
        out->magnitude->ne[w->flipped] = 1;
    }
    return out->columns && out->rows;
}

static bool take(taking *t, recipe *r, parts *out);

/* The same rearrangement along r->dim of one half. */
static bool take_rows(taking *t, const recipe *r, parts *out) {
    recipe **list[3] = {r->dim == 0 ? &out->columns : &out->rows};
    int n = 1;
    if (r->dim == 2 && out->columns->n_dims == 3)
        list[n++] = &out->columns;
    if (out->magnitude && out->across == (r->dim == 0))
        list[n++] = &out->magnitude;
    for (int k = 0; k < n; k++) {
        recipe **half = list[k], *x = from(t, r->kind, *half);
        if (!x)
            return false;
        x->dim = r->dim;
        x->x = r->x;
        x->y = r->y;
        x->ne[r->dim] = r->ne[r->dim];
        *half = x;
    }
    return true;
}

/* Joins one half of all parts along a dimension, which may be a new one. */
static recipe *joined(taking *t, recipe **list, int n, int dim) {
    recipe *r = from(t, RECIPE_JOIN, list[0]);
    if (!r)
        return NULL;
    r->part = list;
    r->n_part = n;
    r->dim = dim;
    r->n_dims = dim < r->n_dims ? r->n_dims : dim + 1;
    r->ne[dim] = 0;
    for (int k = 0; k < n; k++)
        r->ne[dim] += dim < list[k]->n_dims ? list[k]->ne[dim] : 1;
    return r;
}

/* Each matrix of a stack transposed, where all have the same columns, which become rows: one copy for
 * each matrix. */
static bool transpose_each(taking *t, const recipe *r, parts *out) {
    const int n = (int)r->ne[2];
    recipe **copy = ggl_arena_alloc(&t->c->arena, (size_t)n, sizeof *copy);
    recipe *rows = copy ? transposed(t, out->columns) : NULL;
    recipe *columns = transposed(t, out->rows);
    if (!copy || !rows || !columns)
        return t->status == GGL_OK ? no_memory(t) : false;
    if (out->magnitude)
        return refuse(
            t, "it exchanges dimensions of a stack whose rows' lengths are given (\"use_dora\")");
    for (int k = 0; k < n; k++)
        copy[k] = rows;
    *out = (parts){.columns = columns, .rows = joined(t, copy, n, 2)};
    return out->rows != NULL;
}

static bool take_transpose(taking *t, const recipe *r, parts *out) {
    if (r->dim > 0 && out->columns->n_dims == 2) {
        recipe **list[] = {&out->rows, &out->magnitude};
        for (int k = 0; k < (out->magnitude && !out->across ? 2 : 1); k++) {
            recipe *of = *list[k], *x = from(t, RECIPE_TRANSPOSE, of);
            if (!x)
                return false;
            x->dim = r->dim;
            x->x = r->x;
            x->ne[r->dim] = of->ne[r->x];
            x->ne[r->x] = of->ne[r->dim];
            *list[k] = x;
        }
        return true;
    }
    if (r->dim == 0 && r->x == 1 && r->n_dims == 3 && out->columns->n_dims == 2 &&
        r->ne[2] <= ARCH_MAX_K)
        return transpose_each(t, r, out);
    if (r->dim != 0 || r->x != 1 || r->n_dims != 2)
        return refuse(t, "it exchanges dimensions of a stack");
    recipe *m = out->magnitude ? transposed(t, out->magnitude) : NULL;
    if (out->magnitude && !m)
        return false;
    *out = (parts){transposed(t, out->rows), transposed(t, out->columns), m, !out->across};
    return out->columns && out->rows;
}

static bool take_reshape(taking *t, const recipe *r, parts *out) {
    const recipe *part = r->part[0];
    int64_t ne[GGL_MAX_DIMS] = {out->rows->ne[0], r->ne[1], r->ne[2], r->ne[3]};
    if (r->ne[0] != part->ne[0] || r->n_dims < 2)
        return refuse(t, "it changes the length of the rows");
    if (out->columns->n_dims == 3)
        return refuse(t, "it changes the shape of a stack");
    out->rows = reshaped(t, out->rows, r->n_dims, ne);
    ne[0] = 1;
    if (out->magnitude && !out->across &&
        !(out->magnitude = reshaped(t, out->magnitude, r->n_dims, ne)))
        return false;
    return out->rows != NULL;
}

/* True if two recipes read the same numbers. */
static bool same(const recipe *a, const recipe *b) {
    bool equal = a->kind == b->kind && a->source == b->source && a->dim == b->dim && a->x == b->x &&
                 a->y == b->y && a->number == b->number && a->n_part == b->n_part &&
                 memcmp(a->ne, b->ne, sizeof a->ne) == 0;
    for (int k = 0; k < a->n_part && equal; k++)
        equal = same(a->part[k], b->part[k]);
    return equal;
}

/* Matrices one after the other: with the same columns, or the same rows; or a stack of them. */
static bool take_join(taking *t, const recipe *r, parts *out) {
    recipe **columns = ggl_arena_alloc(&t->c->arena, (size_t)r->n_part, sizeof *columns);
    recipe **rows = ggl_arena_alloc(&t->c->arena, (size_t)r->n_part, sizeof *rows);
    recipe **sizes = ggl_arena_alloc(&t->c->arena, (size_t)r->n_part, sizeof *sizes);
    bool same_columns = true, same_rows = true, same_rank = true, along = true;
    int n_sizes = 0;
    if (!columns || !rows || !sizes)
        return no_memory(t);
    for (int k = 0; k < r->n_part; k++) {
        parts p;
        if (!take(t, r->part[k], &p))
            return false;
        columns[k] = p.columns;
        rows[k] = p.rows;
        sizes[k] = p.magnitude;
        n_sizes += p.magnitude != NULL;
        along = along && (!p.magnitude || p.across == (r->dim == 0));
        same_columns = same_columns && same(p.columns, columns[0]);
        same_rows = same_rows && same(p.rows, rows[0]);
        same_rank = same_rank && p.rows->ne[0] == rows[0]->ne[0];
    }
    const bool stack = r->dim == 2 && r->part[0]->n_dims == 2;
    *out = (parts){.columns = columns[0], .rows = rows[0], .across = r->dim == 0};
    if (n_sizes > 0 && (n_sizes < r->n_part || !along))
        return refuse(t, "it joins matrices of which not all have lengths of the same rows");
    if (n_sizes > 0 && !(out->magnitude = joined(t, sizes, r->n_part, r->dim)))
        return false;
    if (!same_rank)
        return refuse(t, "it joins matrices whose pairs have different ranks");
    if (r->dim == 0 && !same_rows)
        return refuse(t, "it joins the columns of matrices that have pairs of their own");
    if (r->dim > 0 && !same_columns && !stack)
        return refuse(t, "it joins the rows of matrices that have pairs of their own");
    if (r->dim == 0 || (stack && !same_columns))
        out->columns = joined(t, columns, r->n_part, stack ? 2 : 0);
    if (r->dim > 0)
        out->rows = joined(t, rows, r->n_part, r->dim);
    return out->columns && out->rows;
}

static bool take_factor(taking *t, const recipe *r, parts *out) {
    if (!(out->rows = from(t, RECIPE_MUL, out->rows)))
        return false;
    out->rows->number = r->number;
    if (out->magnitude && !(out->magnitude = from(t, RECIPE_MUL, out->magnitude)))
        return false;
    if (out->magnitude) /* a length */
        out->magnitude->number = fabs(r->number);
    return true;
}

/* Sets *out to the halves of the weight that r makes. False: reported. */
static bool take(taking *t, recipe *r, parts *out) {
    static bool (*const how[])(taking *, const recipe *, parts *) = {
        [RECIPE_TRANSPOSE] = take_transpose, [RECIPE_RESHAPE] = take_reshape,
        [RECIPE_PAIRS] = take_rows,          [RECIPE_REGROUP] = take_rows,
        [RECIPE_ROWS] = take_rows,           [RECIPE_MUL] = take_factor};
    /* a source, maybe of a packed type: the pair itself is not packed */
    if (r->n_part == 0 && r->source && r->kind != RECIPE_WHOLE)
        return take_source(t, r, out);
    if (r->kind == RECIPE_JOIN)
        return take_join(t, r, out);
    if ((size_t)r->kind >= sizeof how / sizeof *how || !how[r->kind])
        return refuse(t, "its numbers are not only rearranged");
    return take(t, r->part[0], out) && how[r->kind](t, r, out);
}

/* Returns a tensor NAME.END with this recipe. */
static converted_tensor half(taking *t, const char *end, recipe *r) {
    converted_tensor x = {.name = ggl_arena_printf(&t->c->arena, "%s.%s", t->name, end),
                          .n_dims = r->n_dims,
                          .recipe = r,
                          .block_type = -1};
    memcpy(x.ne, r->ne, sizeof x.ne);
    if (!x.name && t->status == GGL_OK)
        t->status = ggl_fail(t->err, GGL_NOMEM, "out of memory");
    return x;
}

static bool is_embedding(const converted_tensor *t) {
    return strcmp(t->name, "token_embd.weight") == 0;
}

/* Puts the parts of w's pair into to[0..3), and their number into *n. False: reported. */
static bool put_parts(taking *t, const converted_tensor *w, parts *p, converted_tensor *to,
                      size_t *n) {
    to[0] = half(t, "lora_a", p->columns);
    to[1] = half(t, "lora_b", p->rows);
    *n = 2;
    if (!p->magnitude || t->status != GGL_OK)
        return t->status == GGL_OK;
    if (p->across)
        return refuse(t, "lengths are given of its columns, and not of its rows (\"use_dora\")");
    if (!(p->magnitude = reshaped(t, p->magnitude, w->n_dims - 1, &w->ne[1])))
        return false;
    to[2] = half(t, "lora_magnitude", p->magnitude);
    to[2].only_f32 = true;
    *n = 3;
    return t->status == GGL_OK;
}

/* The same for one weight, whose pair is taken apart. */
static bool take_apart(taking *t, const converted_tensor *w, converted_tensor *to, size_t *n) {
    parts p;
    t->name = w->name;
    if (w->n_dims < 2)
        return refuse(t, "it is not a matrix");
    if (!take(t, w->recipe, &p))
        return false;
    if (is_embedding(w)) { /* both the other way round */
        recipe *columns = transposed(t, p.columns);
        if (!columns)
            return false;
        if (p.magnitude)
            return refuse(t, "lengths of the embedding's rows (\"use_dora\") are not supported");
        p = (parts){.columns = p.rows, .rows = columns};
    } else if (w->n_dims != p.rows->n_dims) { /* dimensions of 1 */
        int64_t ne[GGL_MAX_DIMS] = {p.rows->ne[0], w->ne[1], w->ne[2], w->ne[3]};
        if (p.columns->n_dims != 2 || !(p.rows = reshaped(t, p.rows, w->n_dims, ne)))
            return refuse(t, "it changes the shape of a stack");
    }
    return put_parts(t, w, &p, to, n);
}

/* Returns the pair of the matrix for the output that no tensor of the folder has, as the model makes its output of the embedding; NULL: there is none. */
static lora_weight *find_head(const llm_lora *l) {
    for (size_t i = 0; i < l->n; i++)
        if (!l->weight[i].found && !l->weight[i].embedding && llm_lora_is_head(l->weight[i].name.s))
            return &l->weight[i];
    return NULL;
}

/* Sets *p to the parts of the pair of the output, of which the folder has no tensor. */
static bool take_head(taking *t, lora_weight *head, const converted_tensor *embedding, parts *p) {
    st_tensor *shape = &t->l->weights->tensor[head - t->l->weight];
    head->found = head->used = true;
    head->flipped = false; /* it is a Linear, whatever "fan_in_fan_out" says */
    shape->ne[0] = head->a->ne[0];
    shape->ne[1] = head->b->ne[1];
    t->instead = head;
    const bool ok = take(t, embedding->recipe, p);
    t->instead = NULL;
    return ok;
}

static bool multiply_rows(taking *t, parts *p, double number) {
    if (!(p->rows = from(t, RECIPE_MUL, p->rows)))
        return false;
    p->rows->number = number;
    return true;
}

/* Adds the ranks of q to p. The reader divides by the number of ranks, which are more then. */
static bool add_ranks(taking *t, parts *p, parts *q) {
    const double of_p = (double)p->columns->ne[1], of_q = (double)q->columns->ne[1];
    recipe **columns = ggl_arena_alloc(&t->c->arena, 2, sizeof *columns);
    recipe **rows = ggl_arena_alloc(&t->c->arena, 2, sizeof *rows);
    if (!columns || !rows)
        return no_memory(t);
    if (p->magnitude)
        return refuse(t, "the embedding that it is made of has a pair, too (\"use_dora\")");
    if (!multiply_rows(t, p, (of_p + of_q) / of_p) || !multiply_rows(t, q, (of_p + of_q) / of_q))
        return false;
    columns[0] = p->columns;
    columns[1] = q->columns;
    rows[0] = p->rows;
    rows[1] = q->rows;
    p->columns = joined(t, columns, 2, 1);
    p->rows = joined(t, rows, 2, 0);
    return p->columns && p->rows;
}

/* With PEFT, the output of a model that makes it of the embedding has the change of its own pair alone. Here, unless the model's file has a tensor for it (`made`), it has that of
 * the embedding's, too, which the pair of output.weight therefore takes away again. Puts that, if one is needed, as take_apart. */
static bool take_output(taking *t, const converted_tensor *embedding, bool made,
                        converted_tensor *to, size_t *n) {
    lora_weight *head = find_head(t->l);
    const bool both = !made && has_pair(t->l, embedding->recipe);
    parts p, away = {0};
    *n = 0;
    t->name = "output.weight";
    if (!head && !both)
        return true;
    if (both && (!take(t, embedding->recipe, &away) || !multiply_rows(t, &away, -1)))
        return false;
    if (head && (!take_head(t, head, embedding, &p) || (both && !add_ranks(t, &p, &away))))
        return false;
    const converted_tensor output = {
        .name = t->name, .n_dims = 2, .ne = {embedding->ne[0], embedding->ne[1], 1, 1}};
    return put_parts(t, &output, head ? &p : &away, to, n);
}

static const st_tensor *first_source(const recipe *r) {
    while (!r->source && r->n_part > 0)
        r = r->part[0];
    return r->source;
}

/* Returns the tensor of which a tied model makes its output: output.weight, or the embedding, whose source becomes l->embedding. NULL: none is made here. */
static const converted_tensor *find_output(llm_lora *l, const arch_conversion *c) {
    const converted_tensor *found[2] = {0};
    for (size_t i = 0; i < c->n_tensor; i++)
        for (int k = 0; k < 2; k++)
            if (strcmp(c->tensor[i].name, k ? "output.weight" : "token_embd.weight") == 0)
                found[k] = &c->tensor[i];
    if (found[0])
        l->embedding = first_source(found[0]->recipe);
    return found[1] && first_source(found[1]->recipe) == l->embedding ? found[1] : found[0];
}

/* Notes from which weights with pairs the model is made. */
static void note_used(llm_lora *l) {
    for (size_t i = 0; i < l->model->n_tensor; i++) {
        const lora_weight *w = pair_of(l, &l->model->tensor[i]);
        if (!w)
            continue;
        l->weight[w - l->weight].found = true;
        l->weight[w - l->weight].used = l->task || l->model->tensor[i].used;
    }
}

bool llm_lora_has_others(const llm_lora *l) {
    bool any = false;
    for (size_t i = 0; i < l->n; i++)
        any |= !l->weight[i].used;
    return any;
}

/* True if the pair changes nothing, as that of a module that nothing read while it learned: its lora_B has the zeros with which it began. */
static bool is_zero(const lora_weight *w) {
    const char *data = w->b->data;
    size_t i = 0;
    while (i < w->b->size && data[i] == 0)
        i++;
    return i == w->b->size;
}

ggl_status llm_lora_check_used(const llm_lora *l, const llm_lora *eye, const char *family,
                               const char **zeros, size_t *n_zeros, ggl_error *err) {
    *zeros = NULL;
    *n_zeros = 0;
    for (size_t i = 0; i < l->n; i++) {
        const lora_weight *w = &l->weight[i], *seen = eye ? &eye->weight[i] : w; /* the same pair */
        if (w->used || seen->used)
            continue;
        if (!w->found && !seen->found)
            return ggl_fail(err, GGL_NOT_FOUND, "%s: the model has no tensor %.300s", l->file_path,
                            w->name.s);
        if (l->tied && !l->embedding && llm_lora_is_head(w->name.s))
            return ggl_fail(err, GGL_UNSUPPORTED,
                            "%s: the model makes its output of the embedding, so that the pair of "
                            "%.300s needs the names and shapes of its weights: give a folder with "
                            "its safetensors as --base",
                            l->file_path, w->name.s);
        if (!is_zero(w))
            return ggl_fail(err, GGL_UNSUPPORTED,
                            "%s: no weight of %s is made from %.300s, for which there is a pair",
                            l->file_path, family, w->name.s);
        *zeros = *zeros ? *zeros : w->name.s;
        ++*n_zeros;
    }
    return GGL_OK;
}

ggl_status llm_lora_take_apart(llm_lora *l, arch_conversion *c, ggl_error *err) {
    taking t = {.l = l, .c = c, .err = err};
    note_used(l);
    converted_tensor *all = ggl_calloc(3 * c->n_tensor + 4, sizeof *all);
    if (!all)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    size_t n = 0, more = 0;
    const converted_tensor *output = NULL;
    if (l->tied)
        output = find_output(l, c);
    for (size_t i = 0; i < c->n_tensor && t.status == GGL_OK; i++)
        if ((&c->tensor[i] != output || is_embedding(output)) && has_pair(l, c->tensor[i].recipe) &&
            take_apart(&t, &c->tensor[i], &all[n], &more))
            n += more;
    if (t.status == GGL_OK && output &&
        take_output(&t, output, !is_embedding(output), &all[n], &more))
        n += more;
    if (t.status != GGL_OK) {
        ggl_free(all);
        return t.status;
    }
    ggl_free(c->tensor);
    c->tensor = all;
    c->cap_tensor = 3 * c->n_tensor + 4;
    c->n_tensor = n;
    return GGL_OK;
}
