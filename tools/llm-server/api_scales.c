#include "api_scales.h"

#include <math.h>
#include <stddef.h>

typedef struct scale_row {
    const json_value *id, *scale;
} scale_row;

static ggl_status read_row(scale_row *out, const json_value *v, ignored_fields *x, ggl_error *err) {
    static const shape_row rows[] = {
        {"id", SHAPE_NUMBER | SHAPE_REQUIRED, offsetof(scale_row, id), NULL},
        {"scale", SHAPE_NUMBER | SHAPE_REQUIRED, offsetof(scale_row, scale), NULL},
        /* so that what GET /lora-adapters gives can be sent back */
        {"path", SHAPE_IGNORED, 0, NULL},
        {"task_name", SHAPE_IGNORED, 0, NULL},
        {"prompt_prefix", SHAPE_IGNORED, 0, NULL},
        {0}};
    const ggl_status st = read_shape(out, sizeof *out, x, v, rows, err);
    if (st != GGL_OK)
        return st;
    if (!out->id->whole || out->id->number < 0)
        return ggl_fail(err, GGL_USAGE, "\"id\" is %.17g, but must be the number of an adapter",
                        out->id->number);
    return isfinite((float)out->scale->number)
               ? GGL_OK
               : ggl_fail(err, GGL_USAGE, "\"scale\" is %g, but must be finite",
                          out->scale->number);
}

ggl_status api_check_scales(const json_value *list, ignored_fields *x, ggl_error *err) {
    scale_row row;
    if (list->kind != JSON_ARRAY)
        return ggl_fail(err, GGL_USAGE,
                        "a list such as [{\"id\": 0, \"scale\": 0.5}] is expected, not %s",
                        llm_json_kind_text((json_kind)list->kind));
    for (uint32_t k = 0; k < list->n; k++) {
        const ggl_status st = read_row(&row, &list->item[k], x, err);
        if (st != GGL_OK)
            return ggl_within(err, st, "[%u]", k);
    }
    return GGL_OK;
}

void api_read_scale(const json_value *row, double *id, double *scale) {
    scale_row of;
    ignored_fields x = {0};
    *id = *scale = 0;
    if (read_row(&of, row, &x, NULL) == GGL_OK) {
        *id = of.id->number;
        *scale = of.scale->number;
    }
}
