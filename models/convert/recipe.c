#include "recipe.h"

#include "ggl/graph.h"

int64_t llm_recipe_count(const recipe *r) {
    return ggl_extents(r->ne, 0, r->n_dims, 1);
}

ggl_type llm_recipe_type(const recipe *r) {
    ggl_type type = GGL_F32;
    if (r->kind == RECIPE_WHOLE)
        return GGL_I32;
    if (r->kind == RECIPE_OFFSETS)
        return GGL_I64;
    if (r->kind == RECIPE_BYTES)
        return GGL_F16;
    if (r->kind == RECIPE_PACKED)
        return r->nearest;
    if (r->kind == RECIPE_SOURCE)
        return r->source->type == GGL_F16 || r->source->type == GGL_BF16 ? (ggl_type)r->source->type
                                                                         : GGL_F32;
    if (r->kind == RECIPE_TERNARY) {
        const ggl_type of = llm_recipe_type(r->part[0]);
        return of == GGL_F16 || of == GGL_BF16 ? of : GGL_F32;
    }
    if (r->kind == RECIPE_HELD || r->kind >= RECIPE_EXP)
        return GGL_F32;
    if (r->kind == RECIPE_PICK)
        return llm_recipe_type(r->part[0]);
    for (int k = 0; k < r->n_part; k++) {
        ggl_type t = llm_recipe_type(r->part[k]);
        if (k > 0 && t != type)
            return GGL_F32;
        type = t;
    }
    return type;
}

bool llm_recipe_has_factors(const recipe *r) {
    bool found =
        r->kind == RECIPE_PACKED || (r->kind == RECIPE_SOURCE && llm_recipe_blocks(r) >= 0);
    for (int k = 0; k < r->n_part && !found; k++)
        found = llm_recipe_has_factors(r->part[k]);
    return found;
}

/* Returns the part's row that becomes this row. */
static int64_t row_of(const recipe *r, int64_t row) {
    const int64_t n = r->ne[r->dim];
    if (r->kind == RECIPE_ROWS)
        return row + r->x;
    if (r->kind == RECIPE_PAIRS) {
        int64_t d = n / r->x, at = row % d;
        return row - at + at % 2 * (d / 2) + at / 2;
    }
    int64_t rest = n / (r->x * r->y), j = row / rest / r->x, i = row / rest % r->x;
    return (i * r->y + j) * rest + row % rest;
}

int64_t llm_recipe_row(const recipe *r, int64_t row, int64_t size) {
    const int64_t n = r->ne[r->dim];
    return (row / n * r->part[0]->ne[r->dim] + row_of(r, row % n)) * size;
}

int64_t llm_recipe_place(const recipe *r, int64_t first, const recipe **part, int64_t *run) {
    const int64_t inner = ggl_extents(r->ne, 0, r->dim, 1);
    *part = r->part[0];
    if (r->kind != RECIPE_JOIN) {
        *run = inner - first % inner;
        return llm_recipe_row(r, first / inner, inner) + first % inner;
    }
    const int64_t all = inner * r->ne[r->dim], turn = first / all;
    int64_t at = first % all, block = inner * r->part[0]->ne[r->dim];
    for (int i = 1; at >= block; i++) {
        at -= block;
        *part = r->part[i];
        block = inner * r->part[i]->ne[r->dim];
    }
    *run = block - at;
    return turn * block + at;
}

/* Returns the element of the part that is element `first` of a TRANSPOSE. */
static int64_t transposed_place(const recipe *r, int64_t first, int64_t *run) {
    const int a = r->dim, b = (int)r->x;
    const int64_t inner = ggl_extents(r->ne, 0, a, 1);
    const int64_t between = ggl_extents(r->ne, a + 1, b, 1);
    const int64_t i = first % inner, at_a = first / inner % r->ne[a];
    const int64_t rest = first / (inner * r->ne[a]), m = rest % between;
    const int64_t at_b = rest / between % r->ne[b], outer = rest / between / r->ne[b];
    *run = inner - i;
    return i + inner * (at_b + r->ne[b] * (m + between * (at_a + r->ne[a] * outer)));
}

bool llm_recipe_find(const recipe *r, int64_t first, recipe_spot *out) {
    int64_t run = INT64_MAX;
    double factor = 1;
    while (r->n_part > 0) {
        const recipe *part = r->part[0];
        int64_t k = INT64_MAX;
        switch (r->kind) {
        case RECIPE_RESHAPE:
            break;
        case RECIPE_MUL:
            factor *= r->number;
            break;
        case RECIPE_TRANSPOSE:
            first = transposed_place(r, first, &k);
            break;
        case RECIPE_PAIRS:
        case RECIPE_REGROUP:
        case RECIPE_ROWS:
        case RECIPE_JOIN:
            first = llm_recipe_place(r, first, &part, &k);
            break;
        default:
            return false;
        }
        run = k < run ? k : run;
        r = part;
    }
    const int64_t left = llm_recipe_count(r) - first;
    *out = (recipe_spot){r, first, run < left ? run : left, factor};
    return r->source && r->kind != RECIPE_WHOLE && r->kind != RECIPE_OFFSETS &&
           r->kind != RECIPE_BYTES && factor != 0;
}

bool llm_recipe_holds(const recipe *r) {
    bool holds = r->kind == RECIPE_TRANSPOSE || r->kind == RECIPE_TERNARY;
    for (int k = 0; k < r->n_part && !holds; k++)
        holds = llm_recipe_holds(r->part[k]);
    return holds;
}

const void *llm_recipe_in_place(const recipe *r, const st_tensor **from) {
    if (r->kind == RECIPE_SOURCE) {
        *from = r->source;
        return r->source->data;
    }
    const bool same = r->kind == RECIPE_RESHAPE || (r->kind == RECIPE_JOIN && r->n_part == 1);
    /* rows of the outermost dimension lie together */
    const bool rows = r->kind == RECIPE_ROWS && r->dim == r->n_dims - 1;
    const char *data = same || rows ? llm_recipe_in_place(r->part[0], from) : NULL;
    if (!data || same)
        return data;
    const ggl_type_info *type = ggl_type_get((*from)->type);
    const int64_t at = r->x * ggl_extents(r->ne, 0, r->dim, 1);
    return type && at % type->block == 0
               ? (const char *)data + (size_t)(at / type->block) * type->size
               : NULL;
}

int llm_recipe_blocks(const recipe *r) {
    const st_tensor *from;
    const ggl_type_info *type = llm_recipe_in_place(r, &from) ? ggl_type_get(from->type) : NULL;
    return type && type->quantized && r->ne[0] % type->block == 0 ? (int)type->type : -1;
}
