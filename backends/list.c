#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "open.h"

#define BACKEND(name, kind, text)                                                                  \
    ggl_status ggl_##name##_open(ggl_backend **out, const ggl_backend_params *params,              \
                                 ggl_error *err);
#include "list.def"
#undef BACKEND

static const struct {
    const char *name, *text;
    ggl_backend_kind_t kind;
    ggl_status (*open)(ggl_backend **out, const ggl_backend_params *params, ggl_error *err);
} backend[] = {
#define BACKEND(name, kind, text) {#name, text, GGL_BACKEND_##kind, ggl_##name##_open},
#include "list.def"
#undef BACKEND
};
enum { N_BACKEND = sizeof backend / sizeof *backend };

const char *ggl_backend_name(int k) {
    return k >= 0 && k < N_BACKEND ? backend[k].name : NULL;
}

const char *ggl_backend_text(int k) {
    return k >= 0 && k < N_BACKEND ? backend[k].text : NULL;
}

ggl_backend_kind_t ggl_backend_kind(int k) {
    return k >= 0 && k < N_BACKEND ? backend[k].kind : GGL_BACKEND_HOST;
}

/* The number behind a name, "vulkan1": 1; none: -1. False: it is not of that backend. */
static bool is_named(const char *name, const char *base, int *device) {
    size_t n = strlen(base),
           digits = strspn(name + (strncmp(name, base, n) == 0 ? n : 0), "0123456789");
    if (strncmp(name, base, n) != 0 || name[n + digits] || digits > 3)
        return false;
    *device = digits ? atoi(name + n) : -1;
    return true;
}

ggl_status ggl_backend_open(ggl_backend **out, const char *name, const ggl_backend_params *params,
                            ggl_error *err) {
    char names[256] = "";
    size_t used = 0;
    ggl_backend_params p = params ? *params : (ggl_backend_params){0};
    bool traced = strncmp(name, "trace", 5) == 0 && (name[5] == ':' || !name[5]);
    *out = NULL;
    if (traced || p.trace)
        return trace_open(out, !traced ? name : name[5] && name[6] ? name + 6 : "cpu", &p, err);
    if (plugin_is_path(name))
        return plugin_open(out, name, &p, err);
    for (int i = 0, device; i < N_BACKEND; i++) {
        if (is_named(name, backend[i].name, &device)) {
            p.device = device > 0 ? device : 0;
            ggl_status st = backend[i].open(out, &p, err);
            if (st == GGL_OK && device >= 0)
                snprintf((*out)->name, sizeof(*out)->name, "%s%d", backend[i].name, device);
            return st;
        }
        int n = used < sizeof names ? snprintf(names + used, sizeof names - used, "%s%s",
                                               i ? ", " : "", backend[i].name)
                                    : 0;
        used += n > 0 ? (size_t)n : 0;
    }
    return ggl_fail(
        err, GGL_NOT_FOUND,
        "there is no backend '%s' in this build; there are: %s; trace:NAME, which writes down "
        "what NAME does; the path of a shared object",
        name, names);
}

void ggl_backend_close(ggl_backend *b) {
    if (b)
        b->v->close(b);
}
