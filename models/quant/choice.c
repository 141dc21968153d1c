#include <string.h>
#include <strings.h>

#include "ggl/nearest.h"
#include "plan.h"

/* Returns the mix or type whose name is nearest; NULL: none is near. */
static const char *nearest(const char *name) {
    ggl_nearest near = ggl_nearest_to(name);
    for (int k = 0; llm_quant_mix_at(k); k++)
        ggl_nearest_try(&near, llm_quant_mix_at(k)->name, SIZE_MAX);
    for (int k = 0; ggl_type_at(k); k++)
        if (llm_quant_type_usable(ggl_type_at(k)))
            ggl_nearest_try(&near, ggl_type_at(k)->name, SIZE_MAX);
    return near.best;
}

static bool is_type(const char *name) {
    for (int k = 0; ggl_type_at(k); k++)
        if (strcasecmp(ggl_type_at(k)->name, name) == 0)
            return true;
    return false;
}

const char *llm_quant_type_named(const char *name) {
    for (int k = 0; ggl_type_at(k); k++)
        if (llm_quant_type_usable(ggl_type_at(k)) && strcasecmp(ggl_type_at(k)->name, name) == 0)
            return ggl_type_at(k)->name;
    return NULL;
}

ggl_status llm_quant_choice_read(quant_choice *c, const char *name, ggl_error *err) {
    *c = (quant_choice){.mix = llm_quant_mix_find(name), .type = llm_quant_type_named(name)};
    if (c->mix)
        return GGL_OK;
    if (!is_type(name)) {
        const char *near = nearest(name);
        return ggl_fail(err, GGL_NOT_FOUND, "'%s' is not a type%s%s%s", name,
                        near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    const ggl_type_info *t = llm_quant_type_find(name, err);
    if (!t)
        return GGL_UNSUPPORTED;
    c->type = t->name;
    return GGL_OK;
}
