/* Backends in shared objects: loaded by path, checked before use, unloaded when closed. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/os_fs.h"
#include "plugin.h"
#include "ggl/internal/os_library.h"

#define SYMBOL "ggl_backend_plugin"

/* A copy of a loaded backend's vtable in which close is replaced. It is the first member, so that
 * plugin_close finds the others through the backend's vtable pointer. */
typedef struct plugin {
    ggl_backend_vtable v;
    const ggl_backend_vtable *own;
    void *object;
} plugin;

bool ggl_plugin_is_path(const char *name) {
    return ggl_os_has_separator(name, strlen(name)) || ggl_os_library_is_name(name);
}

/* Loads the shared object at path. */
static ggl_status load(void **object, const char *path, ggl_error *err) {
    char
        here[OS_MOST_PATH]; /* a plain name would be searched for in the system's library folders */
    const bool is_plain = !ggl_os_has_separator(path, strlen(path));
    int n = snprintf(here, sizeof here, "%s%s", is_plain ? "./" : "", path);
    if (n < 0 || (size_t)n >= sizeof here)
        return ggl_fail(err, GGL_NOT_FOUND, "%.60s..: the path is too long", path);
    if (!ggl_os_may_read(here))
        return ggl_fail(err, errno == ENOENT ? GGL_NOT_FOUND : GGL_IO, "%s: %s", path,
                        strerror(errno));
    *object = ggl_os_library_open(here);
    if (*object)
        return GGL_OK;
    const char *why = ggl_os_library_error(); /* begins with the path */
    return ggl_fail(err, GGL_FORMAT, "it cannot be loaded: %s", why ? why : path);
}

/* Fails unless the plug-in was built for this interface. */
static ggl_status check_plugin(const ggl_plugin *p, const char *path, ggl_error *err) {
    if (!p)
        return ggl_fail(err, GGL_FORMAT, "%s is not a backend: it has no symbol '" SYMBOL "'",
                        path);
    if (p->abi != GGL_BACKEND_ABI)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "%s was built for version %" PRIu32
                        " of the interface of backends, but this program has version %d",
                        path, p->abi, GGL_BACKEND_ABI);
    if (p->vtable_size != sizeof(ggl_backend_vtable))
        return ggl_fail(
            err, GGL_UNSUPPORTED,
            "%s has a table of functions of %" PRIu32
            " bytes, but this program's has %zu, though both have version %d of the interface",
            path, p->vtable_size, sizeof(ggl_backend_vtable), GGL_BACKEND_ABI);
    const struct {
        const char *what;
        uint32_t of_plugin, own;
    } count[] = {{"operators", p->n_ops, GGL_OP_COUNT},
                 {"types of elements", p->n_types, GGL_TYPE_COUNT},
                 {"statuses", p->n_statuses, GGL_STATUS_COUNT}};
    for (size_t i = 0; i < sizeof count / sizeof *count; i++)
        if (count[i].of_plugin != count[i].own)
            return ggl_fail(err, GGL_UNSUPPORTED,
                            "%s knows %" PRIu32 " %s, but this program has %" PRIu32
                            "; build it again with this version",
                            path, count[i].of_plugin, count[i].what, count[i].own);
    if (!p->name || !p->open)
        return ggl_fail(err, GGL_FORMAT, "%s: '" SYMBOL "' has no %s", path,
                        p->name ? "function 'open'" : "name");
    return GGL_OK;
}

/* Returns the name of the first required function that is missing; NULL: none. */
static const char *missing(const ggl_backend_vtable *v) {
    const struct {
        const char *name;
        bool there;
    } function[] = {
        {"close", v->close},   {"alloc", v->alloc},       {"free", v->free},
        {"upload", v->upload}, {"download", v->download}, {"copy", v->copy},
        {"clear", v->clear},   {"refuses", v->refuses},   {"compile", v->compile},
        {"run", v->run},       {"wait", v->wait},         {"plan_free", v->plan_free},
    };
    for (size_t i = 0; i < sizeof function / sizeof *function; i++)
        if (!function[i].there)
            return function[i].name;
    const bool any = v->repack_size || v->repack || v->repack_layout,
               marks = v->mark || v->wait_for;
    return any && !v->repack_size     ? "repack_size"
           : any && !v->repack        ? "repack"
           : any && !v->repack_layout ? "repack_layout"
           : marks && !v->mark        ? "mark"
           : marks && !v->wait_for    ? "wait_for"
           : v->poll && !v->mark      ? "mark"
                                      : NULL;
}

static ggl_status check_backend(const ggl_backend *b, const char *path, ggl_error *err) {
    if (!b || !b->v)
        return ggl_fail(err, GGL_DEVICE, "%s: its 'open' reports success, but returns no %s", path,
                        b ? "functions" : "backend");
    const char *name = missing(b->v);
    if (name)
        return ggl_fail(err, GGL_DEVICE, "%s: backend '%.31s' has no function '%s'", path, b->name,
                        name);
    return GGL_OK;
}

static void plugin_close(ggl_backend *b) {
    plugin *p = (plugin *)(uintptr_t)b->v;
    void *object = p->object;
    b->v = p->own;
    b->v->close(b);
    ggl_free(p);
    ggl_os_library_close(object);
}

static ggl_status open_loaded(ggl_backend **out, void *object, const char *path,
                              const ggl_backend_params *params, ggl_error *err) {
    const ggl_plugin *found = ggl_os_library_find(object, SYMBOL);
    ggl_status st = check_plugin(found, path, err);
    if (st != GGL_OK)
        return st;
    plugin *p = ggl_calloc(1, sizeof *p);
    if (!p)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a backend");
    ggl_backend *b = NULL;
    st = found->open(&b, params, err);
    if (st != GGL_OK) {
        ggl_free(p);
        return ggl_within(err, st, "%s", path);
    }
    st = check_backend(b, path, err);
    if (st != GGL_OK) {
        if (b && b->v && b->v->close)
            b->v->close(b);
        ggl_free(p);
        return st;
    }
    b->name[sizeof b->name - 1] = b->description[sizeof b->description - 1] = '\0';
    *p = (plugin){*b->v, b->v, object};
    p->v.close = plugin_close;
    b->v = &p->v;
    *out = b;
    return GGL_OK;
}

ggl_status ggl_plugin_open(ggl_backend **out, const char *path, const ggl_backend_params *params,
                           ggl_error *err) {
    void *object;
    ggl_status st = load(&object, path, err);
    if (st != GGL_OK)
        return st;
    st = open_loaded(out, object, path, params, err);
    if (st != GGL_OK)
        ggl_os_library_close(object);
    return st;
}
