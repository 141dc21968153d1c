/* The example backend as a shared object in which something may be wrong: CMakeLists.txt says what.
 */
#ifdef WRONG_ROPE /* turns the other way round */
#include <math.h>
#define sin(x) (-sin(x))
#endif
#define ggl_backend_plugin mine_plugin
#include "../../examples/backend/mine.c"
#undef ggl_backend_plugin

#ifndef CHANGED_ABI
#define CHANGED_ABI GGL_BACKEND_ABI
#endif
#ifndef CHANGED_SIZE
#define CHANGED_SIZE sizeof(ggl_backend_vtable)
#endif
#ifndef CHANGED_TYPES
#define CHANGED_TYPES GGL_TYPE_COUNT
#endif
#ifndef CHANGED_NAME
#define CHANGED_NAME "mine"
#endif
#ifndef CHANGED_OPEN
#define CHANGED_OPEN changed_open
#endif

#ifdef SMALL_MEMORY /* a device without more memory; only weights are large */
static ggl_status small_alloc(ggl_backend *b, int region, size_t size, const void *host,
                              ggl_buffer **out, ggl_error *err) {
    if (!host && region >= GGL_REGION_WEIGHT && size > SMALL_MEMORY - SMALL_MEMORY / 10)
        return ggl_fail(err, GGL_NOMEM, "the device is full");
    return mine_alloc(b, region, size, host, out, err);
}
#endif

#ifdef ONLY_PRODUCTS
static const char *only_products(const ggl_backend *b, const ggl_tensor *node) {
    return node->op == GGL_OP_LINEAR ? mine_refuses(b, node) : "it has products only";
}
#endif

#ifdef HALF_MARKS
static ggl_status half_wait_for(ggl_backend *b, uint64_t mark, ggl_error *err) {
    (void)mark;
    return mine_wait(b, err);
}
#endif

#ifndef NO_SYMBOL
__attribute__((unused)) static ggl_status changed_open(ggl_backend **out,
                                                       const struct ggl_backend_params *params,
                                                       ggl_error *err) {
#ifdef FAILS
    *out = NULL;
    (void)params;
    return ggl_fail(err, GGL_DEVICE, "the device is asleep");
#elif defined NO_BACKEND
    (void)params, (void)err;
    *out = NULL;
    return GGL_OK;
#else
    static ggl_backend_vtable changed;
    ggl_status st = mine_open(out, params, err);
    if (st != GGL_OK)
        return st;
    changed = *(*out)->v;
#ifdef CHANGED_VTABLE
    changed CHANGED_VTABLE = NULL;
#endif
#ifdef HALF_REPACK
    changed.repack_layout = "half";
#endif
#ifdef HALF_MARKS
    changed.wait_for = half_wait_for;
#endif
#ifdef MAX_BUFFER
    (*out)->max_buffer = MAX_BUFFER;
#endif
#ifdef SMALL_MEMORY
    (*out)->memory = SMALL_MEMORY;
    changed.alloc = small_alloc;
#endif
#ifdef ONLY_PRODUCTS
    changed.refuses = only_products;
#endif
    (*out)->v = &changed;
    return GGL_OK;
#endif
}

GGL_API extern const ggl_plugin ggl_backend_plugin;
const ggl_plugin ggl_backend_plugin = {CHANGED_ABI,      CHANGED_SIZE, GGL_OP_COUNT, CHANGED_TYPES,
                                       GGL_STATUS_COUNT, CHANGED_NAME, CHANGED_OPEN};
#endif
