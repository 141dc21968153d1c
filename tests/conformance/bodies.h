/* For tests of backends with kernels for composites: which composites run by their bodies. */
#ifndef CONFORMANCE_BODIES_H
#define CONFORMANCE_BODIES_H

#include "conform/case.h"
#include "ggl/program.h"
#include "test.h"

static const char *const composite_name[GGL_COMPOSITE_COUNT] = {
#define COMPOSITE(ID, name, n_src, n_num, recurrent, fits) [GGL_COMPOSITE_##ID] = name,
#include "ggl/composites.def"
#undef COMPOSITE
};

/* Returns the composite of that name; GGL_COMPOSITE_NONE: there is none. */
static inline int composite_of_name(const char *name) {
    int c = GGL_COMPOSITE_COUNT - 1;
    while (c > GGL_COMPOSITE_NONE && (!name || strcmp(composite_name[c], name) != 0))
        c--;
    return c;
}

/* Checks that exactly the composites that the backend's ops.def lists as BODY run by their bodies:
 * else a case would test the body where a kernel is meant. by_body: by ggl_composite. */
TEST_UNUSED static void check_bodies(ggl_backend *b, const bool *by_body) {
    for (int k = 0; conform_kind_at(k); k++)
        for (int i = 0; i < conform_kind_at(k)->n_cases; i++) {
            const conform_case *info = &conform_kind_at(k)->cases[i];
            const int c = composite_of_name(info->call);
            conform_result r;
            if (c != GGL_COMPOSITE_NONE && CHECK_MSG(conform_check(info, 0, b, &r) == CONFORM_RIGHT,
                                                     "%s: %s", info->name, r.text))
                CHECK_MSG(r.by_body == by_body[c],
                          "%s runs %s: the backend's ops.def says otherwise", info->name,
                          r.by_body ? "its body" : "by a kernel");
        }
}

#endif
