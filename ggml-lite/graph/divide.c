#include "ggl/internal/divide.h"

#include <string.h>

#include "divide_cuts.h"
#include "ggl/internal/types.h"

typedef struct divider {
    cuts c;
    node_list nodes; /* the graph's new ones */
    ggl_tensor *
        *made; /* [id of a leaf of the graph][part]: a part of it that several products may read */
    int n_divided;
} divider;

static bool no_memory(divider *d) {
    return ggl_graph_fail(d->c.g, GGL_NOMEM, "out of memory for parts of products") != NULL;
}

static bool push(divider *d, ggl_tensor *t) {
    if (!ggl_grow(&d->nodes.at, &d->nodes.cap, d->nodes.n + 1, sizeof *d->nodes.at))
        return no_memory(d);
    d->nodes.at[d->nodes.n++] = t;
    return true;
}

/* --- tensors ----------------------------------------------------------------------------------- */

/* A tensor with the extents and the place of `like`, and room for sources and numbers; NULL: out of memory. */
static ggl_tensor *tensor_like(divider *d, const ggl_tensor *like, ggl_op op, int n_src,
                               int n_num) {
    ggl_graph *g = d->c.g;
    ggl_tensor *t = ggl_arena_alloc(&g->arena, 1, sizeof *t);
    ggl_tensor **src = ggl_arena_alloc(&g->arena, (size_t)n_src + 1, sizeof *src);
    double *num = ggl_arena_alloc(&g->arena, (size_t)n_num + 1, sizeof *num);
    if (!t || !src || !num) {
        no_memory(d);
        return NULL;
    }
    *t = (ggl_tensor){.op = op,
                      .type = like->type,
                      .id = g->n_ids++,
                      .n_dims = like->n_dims,
                      .group = like->group,
                      .origin = like->origin,
                      .src = src,
                      .n_src = n_src,
                      .num = num,
                      .n_num = n_num,
                      .rows = like->rows,
                      .scope = like->scope,
                      .needed = true};
    memcpy(t->ne, like->ne, sizeof t->ne);
    return t;
}

/* Names a part after what it is a part of. False: out of memory. */
static bool name_part(divider *d, ggl_tensor *t, const char *whole, int part) {
    if (whole &&
        !(t->name = ggl_arena_printf(&d->c.g->arena, "%s%c%d", whole, GGL_PART_MARK, part)))
        return no_memory(d);
    return true;
}

/* Elements first .. first + n - 1 of a weight or constant along its last dimension: a leaf of its own. NULL: out of memory. */
static ggl_tensor *elements_of(divider *d, const ggl_tensor *w, int part, int64_t first,
                               int64_t n) {
    int64_t before;
    const ggl_tensor *leaf = ggl_cut_leaf(w, &before);
    ggl_tensor **made =
        w->id < d->c.n_ids ? &d->made[(size_t)w->id * (size_t)d->c.n_parts + (size_t)part] : NULL;
    const int dim = w->n_dims - 1;
    const size_t size = leaf->size / (size_t)leaf->ne[dim];
    const void *data = (const char *)leaf->data + size * (size_t)(before + first);
    if (made && *made && (*made)->ne[dim] == n && (*made)->data == data)
        return *made;
    ggl_tensor *t = tensor_like(d, leaf, leaf->op, 0, 0);
    if (!t)
        return NULL;
    if (made)
        *made = t;
    t->group = w->group;
    t->ne[dim] = n;
    t->size = size * (size_t)n;
    t->data = data;
    ggl_facts_init(t);
    return name_part(d, t, leaf->name, part) && push(d, t) ? t : NULL;
}

/* --- parts ------------------------------------------------------------------------------------- */

/* Makes *list if it is not made: an element for each part. */
static bool has_list(divider *d, ggl_tensor ***list) {
    return *list ||
           (*list = ggl_arena_alloc(&d->c.g->arena, (size_t)d->c.n_parts, sizeof **list)) ||
           no_memory(d);
}

/* Puts `now` in the place of t, whose readers keep it, at the end of the nodes. */
static bool replace(divider *d, ggl_tensor *t, ggl_tensor *now) {
    now->id = t->id;
    now->name = t->name;
    memcpy(now->dim_name, t->dim_name, sizeof now->dim_name);
    *t = *now;
    return push(d, t);
}

static bool is_cut(const divider *d, const ggl_tensor *t) {
    return t->id < d->c.n_ids && d->c.at[t->id].first;
}

static ggl_tensor *part_of(const divider *d, const ggl_tensor *t, int part) {
    return t->id < d->c.n_ids && d->c.at[t->id].part ? d->c.at[t->id].part[part] : NULL;
}

/* --- experts ----------------------------------------------------------------------------------- */

/* Looks up the experts of an index in a table: by_number, of a part's own experts their number among these, and -1 of the others;
 * else 1 and 0. A new node; NULL: out of memory. */
static ggl_tensor *look_up(divider *d, const ggl_tensor *index, const int64_t *first, int part,
                           bool by_number) {
    const int64_t n = first[d->c.n_parts];
    ggl_tensor *table = tensor_like(d, index, GGL_OP_CONST, 0, 0),
               *y = tensor_like(d, index, GGL_OP_PICK, 2, 0);
    int32_t *number = ggl_arena_alloc(&d->c.g->arena, (size_t)n + 1, sizeof *number);
    float *mark = (float *)(void *)number; /* as long */
    if (!table || !y || !number) {
        no_memory(d);
        return NULL;
    }
    for (int64_t i = 0; i < n; i++) {
        const bool own = i >= first[part] && i < first[part + 1];
        if (by_number)
            number[i] = own ? (int32_t)(i - first[part]) : -1;
        else
            mark[i] = own;
    }
    table->data = number;
    table->size = (size_t)n * sizeof *number;
    table->ne[0] = n;
    table->ne[GGL_BATCH_DIM] = 1;
    table->type = y->type = by_number ? GGL_I32 : GGL_F32;
    y->src[PICK_T] = table;
    y->src[PICK_I] = (ggl_tensor *)(uintptr_t)index;
    return push(d, table) && push(d, y) ? y : NULL;
}

/* The matrices that a part picks from its own experts; NULL: out of memory. */
static ggl_tensor *pick_own(divider *d, const ggl_tensor *pick, const int64_t *first, int part) {
    const ggl_tensor *stack = pick->src[PICK_T], *index = pick->src[PICK_I];
    cut *of_index = &d->c.at[index->id];
    if (!has_list(d, &of_index->own_index))
        return NULL;
    ggl_tensor **own = &of_index->own_index[part];
    if (!*own || (*own)->src[PICK_T]->ne[0] != stack->ne[2])
        *own = look_up(d, index, first, part, true);
    ggl_tensor *y = *own ? tensor_like(d, pick, GGL_OP_PICK, 2, 0) : NULL;
    if (!y ||
        !(y->src[PICK_T] = elements_of(d, stack, part, first[part], first[part + 1] - first[part])))
        return NULL;
    y->src[PICK_I] = *own;
    ggl_facts_init(y);
    return push(d, y) ? y : NULL;
}

/* Returns y with the columns of a part's experts in their places: t itself, if it is the last part; NULL: out of memory. */
static ggl_tensor *put_columns(divider *d, ggl_tensor *t, ggl_tensor *y, int part, bool is_last) {
    const cut own = d->c.at[t->id];
    ggl_tensor *mark = look_up(d, own.experts, own.first, part, false),
               *column = mark ? tensor_like(d, mark, GGL_OP_RESHAPE, 1, 2) : NULL,
               *both = column ? tensor_like(d, t, GGL_OP_WHERE, 3, 0) : NULL;
    if (!both)
        return NULL;
    column->n_dims = 2;
    column->ne[0] = 1;
    column->ne[1] = t->ne[1];
    column->num[0] = 1;
    column->num[1] = (double)t->ne[1];
    column->src[0] = mark;
    both->type = GGL_F32;
    both->src[0] = column;
    both->src[1] = own.part[part];
    both->src[2] = y;
    if (!push(d, column) || !(is_last ? replace(d, t, both) : push(d, both)))
        return NULL;
    return is_last ? t : both;
}

static bool join_experts(divider *d, ggl_tensor *t) {
    const cut own = d->c.at[t->id];
    ggl_tensor *y = NULL;
    for (int part = 0; part < d->c.n_parts; part++) {
        if (!own.part[part])
            continue;
        y = y ? put_columns(d, t, y, part, own.first[part + 1] == own.first[d->c.n_parts])
              : own.part[part];
        if (!y)
            return false;
    }
    return true;
}

/* --- joining, and making parts ------------------------------------------------------------------ */

/* Makes t, which is cut, the concatenation of its parts, for those who read all of it. */
static bool join(divider *d, ggl_tensor *t) {
    cut *own = &d->c.at[t->id];
    ggl_tensor *before = NULL;
    int64_t done = 0;
    if (own->is_joined)
        return true;
    own->is_joined = true;
    if (own->experts)
        return join_experts(d, t);
    for (int part = 0; part < d->c.n_parts; part++) {
        ggl_tensor *y = own->part[part];
        if (!y)
            continue;
        done += y->ne[own->dim];
        if (!before) {
            before = y;
            continue;
        }
        ggl_tensor *like = tensor_like(d, t, GGL_OP_CONCAT, 2, 1);
        if (!like)
            return false;
        like->src[0] = before;
        like->src[1] = y;
        like->num[CONCAT_DIM] = own->dim;
        like->ne[own->dim] = done;
        like->type = GGL_F32;
        const bool is_last = done == own->first[d->c.n_parts];
        if (!(is_last ? replace(d, t, like) : push(d, like)))
            return false;
        before = like;
    }
    return true;
}

static ggl_tensor *make_part(divider *d, const ggl_tensor *t, int part);

/* What a part of t reads as its k-th source; NULL: out of memory. */
static ggl_tensor *source_of(divider *d, const ggl_tensor *t, int k, int part) {
    ggl_tensor *s = t->src[k];
    const int last = t->op == GGL_OP_ATTEND || t->op == GGL_OP_CACHE ? 0 : t->n_dims - 1;
    const cut *own = &d->c.at[t->id];
    int64_t first;
    const bool same_kind = own->experts ? ggl_experts_of(&d->c, s) == own->experts
                                        : ggl_cut_reads_part(t, k) && ggl_cut_of(&d->c, s);
    if (same_kind && part_of(d, s, part))
        return part_of(d, s, part);
    if (own->experts && t->op == GGL_OP_LINEAR && k == LINEAR_W)
        return pick_own(d, s, own->first, part);
    if (is_cut(d, s))
        return join(d, s) ? s : NULL;
    if (!ggl_cut_leaf(s, &first))
        return s;
    const cut *as = t->op == GGL_OP_CALL ? &d->c.at[t->body->param[k]->id] : own;
    const int64_t *at = as->first;
    const bool in_part = own->experts           ? false
                         : t->op == GGL_OP_CALL ? at != NULL
                         : t->op == GGL_OP_LINEAR
                             ? k != LINEAR_X
                             : ggl_cut_reads_part(t, k) && s->n_dims == last + 1 && s->ne[last] > 1;
    if (in_part)
        return elements_of(d, s, part, at[part], at[part + 1] - at[part]);
    /* so that the part's place has a weight of its own to go by */
    return s->op == GGL_OP_WEIGHT ? elements_of(d, s, part, 0, s->ne[s->n_dims - 1]) : s;
}

/* A part's own stores, which have its heads. */
static bool make_stores(divider *d, ggl_tensor *y, const ggl_tensor *t, int part) {
    ggl_graph *g = d->c.g;
    for (int k = 0; k < 2; k++) {
        const ggl_store *like = t->store[k];
        if (!like)
            continue;
        ggl_store *s = ggl_arena_alloc(&g->arena, 1, sizeof *s);
        if (!s || !ggl_grow(&g->store, &g->cap_stores, g->n_stores + 1, sizeof *g->store))
            return no_memory(d);
        *s = *like;
        s->ne[1] = y->src[k]->ne[1];
        if (like->name &&
            !(s->name = ggl_arena_printf(&g->arena, "%s%c%d", like->name, GGL_PART_MARK, part)))
            return no_memory(d);
        g->store[g->n_stores++] = y->store[k] = s;
    }
    return true;
}

/* Makes a part of a body. Its own tensors are copied, too, so that each body has its own. */
static ggl_body *make_body(divider *d, const ggl_tensor *t, const ggl_tensor *y, int part) {
    const ggl_body *from = t->body;
    ggl_body *b = ggl_arena_alloc(&d->c.g->arena, 1, sizeof *b);
    ggl_tensor **param = ggl_arena_alloc(&d->c.g->arena, (size_t)from->n_param + 1, sizeof *param),
               **node = ggl_arena_alloc(&d->c.g->arena, (size_t)from->n_node + 1, sizeof *node);
    bool ok = b && param && node;
    for (int k = 0; k < from->n_param && ok; k++) {
        const ggl_tensor *p = from->param[k];
        cut *own = &d->c.at[p->id];
        param[k] = tensor_like(d, p, p->op, 0, 0);
        ok = param[k] && has_list(d, &own->part);
        if (!ok)
            break;
        own->part[part] = param[k];
        memcpy(param[k]->ne, y->src[k]->ne, sizeof param[k]->ne);
        param[k]->name = p->name;
    }
    for (int i = 0; i < from->n_node && ok; i++)
        ok = (node[i] = make_part(d, from->node[i], part)) != NULL;
    if (!ok) {
        no_memory(d);
        return NULL;
    }
    ggl_tensor *result = part_of(d, from->result, part);
    *b = *from;
    b->param = param;
    b->node = node;
    b->result = result ? result : from->result;
    return b;
}

/* What a body's node reads: the copy of what t reads. */
static ggl_tensor *source_in_body(divider *d, const ggl_tensor *t, int k, int part) {
    ggl_tensor *copy = part_of(d, t->src[k], part);
    return copy ? copy : t->src[k];
}

/* Makes a part of t, or, in a body, a copy if it is whole. NULL: out of memory. */
static ggl_tensor *make_part(divider *d, const ggl_tensor *t, int part) {
    cut *own = &d->c.at[t->id];
    if (!has_list(d, &own->part))
        return NULL;
    const bool is_reshape = t->op == GGL_OP_RESHAPE && own->first;
    ggl_tensor *y = tensor_like(d, t, t->op, t->n_src, is_reshape ? t->n_dims : t->n_num);
    if (!y)
        return NULL;
    y->call = t->call;
    y->data = t->data; /* of constants in bodies */
    y->size = t->size;
    y->keeps_state = t->keeps_state;
    y->gather = t->gather;
    y->dense = t->dense;
    if (own->first && own->dim >= 0)
        y->ne[own->dim] = own->first[part + 1] - own->first[part];
    for (int k = 0; k < y->n_num; k++)
        y->num[k] = is_reshape ? (double)y->ne[k] : t->num[k];
    for (int k = 0; k < t->n_src; k++)
        if (t->src[k] &&
            !(y->src[k] = t->scope ? source_in_body(d, t, k, part) : source_of(d, t, k, part)))
            return NULL;
    if (t->body && !(y->body = make_body(d, t, y, part)))
        return NULL;
    if (t->op == GGL_OP_CACHE && !make_stores(d, y, t, part))
        return NULL;
    own->part[part] = y;
    return name_part(d, y, t->name, part) ? y : NULL;
}

/* Makes the parts of t in its place, or, if it is whole, joins what it reads. What nobody needs goes. */
static bool divide(divider *d, ggl_tensor *t) {
    const cut *own = &d->c.at[t->id];
    if (!t->needed && !ggl_is_leaf(t))
        return true;
    if (!own->first) {
        for (int k = 0; k < t->n_src; k++)
            if (t->src[k] && is_cut(d, t->src[k]) && !join(d, t->src[k]))
                return false;
        return push(d, t);
    }
    d->n_divided += t->op == GGL_OP_LINEAR;
    for (int part = 0; part < d->c.n_parts; part++) {
        if (own->first[part] == own->first[part + 1])
            continue;
        ggl_tensor *y = make_part(d, t, part);
        if (!y || !push(d, y))
            return false;
    }
    return true;
}

ggl_status ggl_graph_divide(ggl_graph *g, const double *share, int n_parts, size_t least,
                            int64_t unit, int *n, ggl_error *err) {
    divider d = {.c = {.g = g,
                       .n_ids = g->n_ids,
                       .share = share,
                       .n_parts = n_parts,
                       .least = least,
                       .unit = unit}};
    const size_t n_ids = (size_t)g->n_ids;
    d.made = n_parts > 0 ? ggl_calloc(n_ids * (size_t)n_parts + 1, sizeof *d.made) : NULL;
    d.c.at = ggl_calloc(n_ids + 1, sizeof *d.c.at);
    bool ok = d.made && d.c.at ? ggl_cuts_find(&d.c) : no_memory(&d);
    for (size_t i = 0; i < g->nodes.n && ok; i++)
        ok = divide(&d, g->nodes.at[i]);
    for (size_t i = 0; i < g->outputs.n && ok; i++)
        ok = !is_cut(&d, g->outputs.at[i]) || join(&d, g->outputs.at[i]);
    if (ok) {
        ggl_free(g->nodes.at);
        g->nodes = d.nodes;
        ggl_graph_mark(g);
        ok = ggl_graph_size_stores(g); /* parts of caches have their own */
    } else {
        ggl_free(d.nodes.at);
    }
    ggl_free(d.made);
    ggl_free(d.c.at);
    *n = d.n_divided;
    return ok ? GGL_OK : ggl_graph_error(g, err);
}
