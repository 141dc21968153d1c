#include "shape_types.h"
#include "ggl/internal/types.h"

#include <stdio.h>
#include <string.h>

/* True if weights can have the type and numbers can be converted to it. */
static bool writable(const ggl_type_info *t) {
    return t->from_float && ggl_type_has_products(t->type);
}

ggl_status bench_type_find(const char *name, ggl_type *out, ggl_error *err) {
    const ggl_type_info *t = ggl_type_find(name);
    char known[256] = "";
    size_t n = 0;
    if (t && writable(t)) {
        *out = t->type;
        return GGL_OK;
    }
    for (int k = 0; (t = ggl_type_at(k)) != NULL; k++)
        if (writable(t) && n < sizeof known)
            n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", t->name);
    return ggl_fail(err, GGL_NOT_FOUND, "weights cannot be written as '%s', only as %s", name,
                    known);
}

ggl_type bench_type_of(ggl_type wanted, const char *tensor, int n_dims, const int64_t *ne) {
    (void)tensor;
    size_t size;
    if (n_dims < 2)
        return GGL_F32;
    if (ggl_row_size_checked(wanted, ne[0], &size))
        return wanted;
    return ggl_row_size_checked(GGL_Q8_0, ne[0], &size) ? GGL_Q8_0 : GGL_F16;
}
