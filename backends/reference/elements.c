/* Elements, rows and stores, as numbers of double precision; see reference.h. */
#include <math.h>
#include <string.h>

#include "ggl/internal/types.h"
#include "reference.h"

char *ggl_ref_store(const step_args *a, const ggl_store *s) {
    const ggl_loc at = a->store_loc[s->id];
    return a->region[at.region]->data + at.offset;
}

static char *row_at(const view *v, int64_t j, int64_t k, int64_t l) {
    return v->data + (size_t)(v->ne[1] == 1 ? 0 : j) * v->nb[1] +
           (size_t)(v->ne[2] == 1 ? 0 : k) * v->nb[2] + (size_t)(v->ne[3] == 1 ? 0 : l) * v->nb[3];
}

double ggl_ref_get(const view *v, int64_t i, int64_t j, int64_t k, int64_t l) {
    const char *row = row_at(v, j, k, l);
    size_t e = (size_t)(v->ne[0] == 1 ? 0 : i);
    switch (v->type) {
    case GGL_F64:
        return ((const double *)row)[e];
    case GGL_F32:
        return ((const float *)row)[e];
    case GGL_I32:
        return ((const int32_t *)row)[e];
    case GGL_F16:
        return ggl_f16_to_f32(((const uint16_t *)row)[e]);
    case GGL_BF16:
        return ggl_bf16_to_f32(((const uint16_t *)row)[e]);
    default:
        break;
    }
    const ggl_type_info *t = ggl_type_get(v->type);
    const int64_t in_block = (int64_t)e % t->block;
    float block[256];
    ggl_to_float(t, row, v->ne[0], (int64_t)e - in_block, t->block, block);
    return block[in_block];
}

void ggl_ref_set(const view *v, int64_t i, int64_t j, int64_t k, int64_t l, double x) {
    char *row = row_at(v, j, k, l);
    if (v->type == GGL_F64)
        ((double *)row)[i] = x;
    else if (v->type == GGL_F32)
        ((float *)row)[i] = (float)x;
    else if (v->type == GGL_I32)
        ((int32_t *)row)[i] = isnan(x) ? -1 : (int32_t)x; /* NaN: PICK's index was out of range */
    else if (v->type == GGL_F16)
        ((uint16_t *)row)[i] = ggl_f32_to_f16((float)x);
}

void ggl_ref_get_row(const view *v, int64_t j, int64_t k, int64_t l, double *row) {
    const ggl_type_info *t = ggl_type_get(v->type);
    const char *at = row_at(v, j, k, l);
    int64_t n = v->ne[0];
    float block[256];
    switch (v->type) {
    case GGL_F64:
        memcpy(row, at, (size_t)n * sizeof *row);
        return;
    case GGL_F32:
        for (int64_t i = 0; i < n; i++)
            row[i] = ((const float *)at)[i];
        return;
    default:
        break;
    }
    if (!t->quantized) {
        for (int64_t i = 0; i < n; i++)
            row[i] = ggl_ref_get(v, i, j, k, l);
        return;
    }
    for (int64_t i = 0; i < n; i += t->block) {
        ggl_to_float(t, at, n, i, t->block, block);
        for (int64_t e = 0; e < t->block; e++)
            row[i + e] = block[e];
    }
}
