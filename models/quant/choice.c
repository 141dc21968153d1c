#include "ggl/nearest.h"
#include "plan.h"

/* Fails with "'q8_9' is not a type", and the nearest name of a type or, if `mixes`, of a mix. */
static ggl_status not_a_type(const char *name, bool mixes, ggl_error *err) {
    ggl_nearest near = ggl_nearest_to(name);
    for (int k = 0; mixes && llm_quant_mix_at(k); k++)
        ggl_nearest_try(&near, llm_quant_mix_at(k)->name, SIZE_MAX);
    for (int k = 0; ggl_type_at(k); k++)
        if (llm_quant_type_usable(ggl_type_at(k)))
            ggl_nearest_try(&near, ggl_type_at(k)->name, SIZE_MAX);
    return near.best ? ggl_fail(err, GGL_NOT_FOUND, "'%s' is not a type; did you mean '%s'?", name,
                                near.best)
                     : ggl_fail(err, GGL_NOT_FOUND, "'%s' is not a type", name);
}

/* Finds a type; on failure, the message suggests mixes, too, if they may be given. */
static ggl_status find_type(const ggl_type_info **out, const char *name, bool mixes,
                            ggl_error *err) {
    ggl_error why = {0};
    *out = llm_quant_type_find(name, &why);
    return *out                          ? GGL_OK
           : why.status == GGL_NOT_FOUND ? not_a_type(name, mixes, err)
                                         : ggl_fail(err, why.status, "%s", why.msg);
}

ggl_status llm_quant_type_read(const ggl_type_info **out, const char *name, ggl_error *err) {
    return find_type(out, name, false, err);
}

ggl_status llm_quant_choice_read(quant_choice *c, const char *name, ggl_error *err) {
    const ggl_type_info *type;
    const ggl_status s = find_type(&type, name, true, err);
    *c = (quant_choice){.mix = llm_quant_mix_find(name), .type = type ? type->name : NULL};
    return c->mix ? GGL_OK : s;
}
