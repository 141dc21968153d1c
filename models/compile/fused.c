/* `attn_q, attn_k, attn_v from "attn_qkv"`: a tensor of the source whose rows are several declared
 * tensors, one after the other.
 *
 * A declared tensor that the source lacks is looked up in these lines. If the source has the
 * tensor named after `from`, the declared one gets some of its rows, but only after the
 * descriptor has run: the sizes of all parts are known only then, because they may be declared
 * in any order. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "compile.h"

/* --- the parts of one tensor ------------------------------------------------------------------ */

/* A source tensor with declared parts. */
typedef struct arch_whole {
    const arch_fused *f;
    llm_arch_tensor t; /* in the source */
    bool flat;         /* has one dimension; each element counts as a row */
    int64_t rows;
    int64_t *taken; /* rows of each part; 0: not declared */
    size_t *size;   /* bytes of each part */
} arch_whole;

/* Returns the rows of a shape, or its elements if w is flat. */
static int64_t rows_of(const arch_whole *w, const int64_t *ne) {
    return ggl_extents(ne, w->flat ? 0 : 1, GGL_MAX_DIMS, 1);
}

static int64_t rows_taken(const arch_whole *w) {
    int64_t sum = 0;
    for (int k = 0; k < w->f->n_part; k++)
        sum += w->taken[k];
    return sum;
}

/* Returns where the part's own name begins in a full name: after "blk.N.", also behind a prefix ("v.blk.N."). */
static size_t begin_of(const char *name) {
    for (const char *at = name; (at = strstr(at, "blk.")) != NULL; at++) {
        const size_t digits = strspn(at + 4, "0123456789");
        if ((at == name || at[-1] == '.') && digits > 0 && at[4 + digits] == '.')
            return (size_t)(at - name) + 4 + digits + 1;
    }
    return 0;
}

/* Returns the index of the part of f with this full name and writes the full name of the whole
 * tensor; -1: f has no such part. */
static int part_named(const arch_fused *f, const char *name, char *whole, size_t size) {
    const size_t begin = begin_of(name);
    const char *dot = strrchr(name + begin, '.');
    if (!dot || (strcmp(dot, ".weight") != 0 && strcmp(dot, ".bias") != 0))
        return -1;
    const size_t n = (size_t)(dot - name) - begin;
    for (int k = 0; k < f->n_part; k++)
        if (strlen(f->part[k]) == n && memcmp(f->part[k], name + begin, n) == 0) {
            snprintf(whole, size, "%.*s%s%s", (int)begin, name, f->whole, dot);
            return k;
        }
    return -1;
}

/* Finds the source tensor of this name in ev, or adds it. NULL: the source lacks it, or ev has
 * an error. */
static arch_whole *whole_named(arch_eval *ev, const arch_fused *f, const char *name, arch_place p) {
    const arch_weight *before = llm_arch_find_weight(ev, name);
    llm_arch_tensor t = {.name = name, .optional = true};
    if (before)
        return before->whole;
    if (!ev->src->find_tensor(ev->src->ctx, &t) || !(t.name = llm_arch_strdup(ev, name)))
        return NULL;
    arch_whole *w = ggl_arena_alloc(&ev->arena, 1, sizeof *w);
    if (!w || !(w->taken = ggl_arena_alloc(&ev->arena, (size_t)f->n_part, sizeof *w->taken)) ||
        !(w->size = ggl_arena_alloc(&ev->arena, (size_t)f->n_part, sizeof *w->size)))
        return llm_arch_nomem(ev), NULL;
    w->f = f;
    w->t = t;
    w->flat = ggl_extents(t.ne, 1, GGL_MAX_DIMS, 1) == 1;
    w->rows = rows_of(w, t.ne);
    arch_weight *own = llm_arch_add_weight(ev, t.name, NULL, p, false);
    if (own)
        own->whole = w;
    return own ? w : NULL;
}

bool llm_arch_find_part(arch_eval *ev, arch_place p, bool is_bias, llm_arch_tensor *t,
                        arch_part *out) {
    char name[3 * ARCH_MAX_NAME];
    /* made-up models have every tensor, so they need no parts */
    const arch_fused *f = ev->conv || !ev->src->tensor_at ? NULL : ev->arch->fused;
    for (; f && llm_arch_step(ev, p, 1 + f->n_part / 4); f = f->next) {
        const int k = f->own ? -1 : part_named(f, t->name, name, sizeof name);
        arch_whole *w = k < 0 ? NULL : whole_named(ev, f, name, p);
        if (ev->status != GGL_OK)
            return false;
        if (!w || w->f != f || (t->optional && w->taken[k] == 0 && rows_taken(w) == w->rows))
            continue;
        *out = (arch_part){NULL, w, k};
        t->name = w->t.name;
        t->type = w->t.type;
        const bool matrix = w->t.ne[0] == t->ne[0] && w->rows == w->t.ne[1];
        const bool fits = w->flat ? is_bias || t->n_dims < 2 : matrix;
        if (!fits) /* the caller reports the mismatch */
            *t = w->t;
        t->data = NULL; /* llm_arch_place_parts sets it */
        return true;
    }
    return false;
}

const char *llm_arch_whole_name(const arch_part *part) {
    return part->whole->t.name;
}

bool llm_arch_take_part(arch_eval *ev, arch_place p, const arch_part *part) {
    arch_whole *w = part->whole;
    const ggl_tensor *t = part->t;
    const int64_t rows = rows_of(w, t->ne);
    if (w->taken[part->k] != 0 && w->taken[part->k] != rows) {
        llm_arch_error(ev, p,
                       "%s was declared with %" PRId64 " rows of %s, but has %" PRId64 " here",
                       t->name, w->taken[part->k], w->t.name, rows);
        return false;
    }
    w->taken[part->k] = rows;
    w->size[part->k] = t->size;
    if (!llm_arch_push(ev, &ev->part, &ev->cap_part, ev->n_part + 1, sizeof *ev->part))
        return false;
    ev->part[ev->n_part++] = *part;
    return true;
}

const llm_arch_tensor *llm_arch_whole_tensor(const arch_part *part, int64_t *rows) {
    *rows = part->whole->rows;
    return &part->whole->t;
}

int64_t llm_arch_rows_before(const arch_part *part) {
    int64_t sum = 0;
    for (int k = 0; k < part->k; k++)
        sum += part->whole->taken[k];
    return sum;
}

/* --- places ----------------------------------------------------------------------------------- */

/* Writes "attn_q, attn_k and attn_v take 32 + 16 + 16" for the declared parts. */
static void text_of_parts(const arch_whole *w, char *buf, size_t size) {
    size_t n = 0;
    int left = 0, all = 0;
    for (int k = 0; k < w->f->n_part; k++)
        all += w->taken[k] != 0;
    left = all;
    buf[0] = 0;
    for (int k = 0; k < w->f->n_part && n < size; k++)
        if (w->taken[k] != 0) {
            const char *between = left == all ? "" : left == 1 ? " and " : ", ";
            n += (size_t)snprintf(buf + n, size - n, "%s%s", between, w->f->part[k]);
            left--;
        }
    const char *sign = all == 1 ? " takes " : " take ";
    for (int k = 0; k < w->f->n_part && n < size; k++)
        if (w->taken[k] != 0) {
            n += (size_t)snprintf(buf + n, size - n, "%s%" PRId64, sign, w->taken[k]);
            sign = " + ";
        }
}

/* True if only the last parts are undeclared and the descriptor ignores tensors of their names.
 * They own the remaining rows. */
static bool ignores_rest(arch_eval *ev, const arch_whole *w) {
    char name[4 * ARCH_MAX_NAME];
    const char *dot = strrchr(w->t.name, '.');
    const size_t begin = (size_t)(dot - w->t.name) - strlen(w->f->whole);
    int k = w->f->n_part;
    for (; k > 0 && w->taken[k - 1] == 0; k--) {
        const int n =
            snprintf(name, sizeof name, "%.*s%s%s", (int)begin, w->t.name, w->f->part[k - 1], dot);
        const ggl_str part = {name, (size_t)n};
        if (!llm_arch_step_patterns(ev, ev->n_ignore, part) ||
            !arch_match_any(ev->ignore, ev->n_ignore, part))
            return false;
    }
    for (int i = 0; i < k; i++)
        if (w->taken[i] == 0)
            return false;
    return k > 0 && k < w->f->n_part && rows_taken(w) < w->rows;
}

/* Checks that a bias has an element for each row of the weight beside it, if that is in parts, too.
 * Without this a bias that ends with a part would count as absent for the other parts. False:
 * reported. */
static bool bias_fits(arch_eval *ev, const arch_weight *x) {
    char name[4 * ARCH_MAX_NAME];
    const size_t n = strlen(x->name), end = strlen(".bias");
    if (n < end || strcmp(x->name + n - end, ".bias") != 0)
        return true;
    snprintf(name, sizeof name, "%.*s.weight", (int)(n - end), x->name);
    const arch_weight *y = llm_arch_find_weight(ev, name);
    if (!y || !y->whole || y->whole->rows == x->whole->rows)
        return true;
    ev->status = llm_arch_fail(ev->err, GGL_SHAPE, x->place, x->chain, NULL,
                               "%s has %" PRId64 " elements, and %s has %" PRId64 " rows", x->name,
                               x->whole->rows, name, y->whole->rows);
    llm_arch_lead_with_file(ev, x->place);
    return false;
}

/* Checks that the declared parts make up all rows of x. False: reported. */
static bool rows_fit(arch_eval *ev, const arch_weight *x) {
    const arch_whole *w = x->whole;
    char parts[500], quote[160], hint[300];
    int line, col;
    if (rows_taken(w) == w->rows || ignores_rest(ev, w))
        return true;
    if (ev->status != GGL_OK)
        return false;
    text_of_parts(w, parts, sizeof parts);
    llm_arch_line_col(w->f->place, &line, &col);
    snprintf(hint, sizeof hint, "%s (%.80s:%d)", llm_arch_quote(w->f->place, quote, sizeof quote),
             w->f->place.text->name, line);
    ev->status =
        llm_arch_fail(ev->err, GGL_SHAPE, x->place, x->chain, hint, "%s has %" PRId64 " %s; %s",
                      x->name, w->rows, w->flat ? "elements" : "rows", parts);
    llm_arch_lead_with_file(ev, x->place);
    return false;
}

bool llm_arch_place_parts(arch_eval *ev) {
    for (size_t i = 0; i < ev->n_weight && ev->n_part > 0; i++)
        if (ev->weight[i]->whole && !(rows_fit(ev, ev->weight[i]) && bias_fits(ev, ev->weight[i])))
            return false;
    for (size_t i = 0; i < ev->n_part; i++) {
        const arch_part *x = &ev->part[i];
        const char *data = x->whole->t.data;
        for (int k = 0; data && k < x->k; k++)
            data += x->whole->size[k];
        x->t->data = data;
    }
    return true;
}
