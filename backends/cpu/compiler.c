#include "compiler.h"

int64_t ggl_cpu_compiler_n_max(const cpu_compiler *c) {
    return c->s->n_max;
}

const cpu_backend *ggl_cpu_compiler_backend(const cpu_compiler *c) {
    return c->b;
}

cpu_kept ggl_cpu_compiler_store(const cpu_compiler *c, const ggl_store *s) {
    return (cpu_kept){s, s ? c->s->store_loc[s->id] : (ggl_loc){.region = -1}};
}
