#include <stdio.h>
#include <string.h>

#include "ggl/internal/nearest.h"
#include "ggl/internal/pass.h"
#include "ggl/internal/text.h"
#include "ggl/internal/types.h"
#include "type_plan.h"

/* Returns the first digit of a type's name, which is its bits; '\0': it has none. */
static char bits_of(const char *name) {
    return name[strcspn(name, "0123456789")];
}

/* Compares the names of types and, if `mixes`, of mixes; bits: only those with this digit; '\0': all. */
static void try_all(ggl_nearest *near, bool mixes, char bits) {
    for (int pass = 0; mixes && pass < 2; pass++) /* of equally near mixes that of medium size */
        for (int k = 0; llm_quant_mix_at(k); k++) {
            const char *name = llm_quant_mix_at(k)->name;
            if ((!bits || bits == bits_of(name)) && (pass || name[strlen(name) - 1] == 'M'))
                ggl_nearest_try(near, name, SIZE_MAX);
        }
    for (int k = 0; ggl_type_at(k); k++)
        if (llm_quant_type_usable(ggl_type_at(k)) &&
            (!bits || bits == bits_of(ggl_type_at(k)->name)))
            ggl_nearest_try(near, ggl_type_at(k)->name, SIZE_MAX);
}

/* Fails with "'q8_9' is not a type", and the nearest name of a type or, if `mixes`, of a mix. Others publish files with names
 * such as UD-Q4_K_XL; a mix of that size is Q4_K_M. */
static ggl_status not_a_type(const char *name, bool mixes, ggl_error *err) {
    char wanted[32];
    const char *begin = ggl_case_compare_n(name, "UD-", 3) == 0 ? name + 3 : name;
    const size_t n = strlen(begin);
    const bool is_large = n > 3 && ggl_case_compare(begin + n - 3, "_XL") == 0;
    const int written = snprintf(wanted, sizeof wanted, "%.*s%s", (int)(is_large ? n - 2 : n),
                                 begin, is_large && mixes ? "M" : "");
    const bool cut = written < 0 || (size_t)written >= sizeof wanted;
    ggl_nearest near = ggl_nearest_to(cut ? name : wanted);
    const char bits = bits_of(near.wanted);
    if (bits && near.distance < 4)
        near.distance = 4; /* "q4" is near enough to q4_0 */
    /* what a person wants of a type is its bits: Q3_K_L is not near to Q4_K_XL */
    try_all(&near, mixes, bits);
    if (!near.best) {
        near.distance = ggl_nearest_to(near.wanted).distance;
        try_all(&near, mixes, '\0');
    }
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
                                         : ggl_pass(err, &why);
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
