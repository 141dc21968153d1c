#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cores.h"
#include "ggl/internal/backends.h"
#include "ggl/internal/nearest.h"
#include "ggl/internal/params.h"
#include "ggl/internal/text.h"
#include "plugin.h"
#include "ranks/ranks.h"
#include "trace/trace.h"

#define BACKEND(name, kind, text)                                                                  \
    ggl_status ggl_##name##_open(ggl_backend **out, const ggl_backend_params *params,              \
                                 ggl_error *err);                                                  \
    const char *ggl_##name##_mask_name(int k);
#include "list.def"
#undef BACKEND

static const struct {
    const char *name, *text;
    ggl_backend_kind_t kind;
    ggl_status (*open)(ggl_backend **out, const ggl_backend_params *params, ggl_error *err);
    const char *(*mask_name)(int k);
} backend[] = {
#define BACKEND(name, kind, text)                                                                  \
    {#name, text, GGL_BACKEND_##kind, ggl_##name##_open, ggl_##name##_mask_name},
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

int ggl_backend_default_threads(void) {
    return ggl_cpu_default_threads().token;
}

int ggl_backend_default_threads_batch(void) {
    return ggl_cpu_default_threads().batch;
}

int ggl_backend_allowed_cpus(void) {
    return ggl_cpu_allowed();
}

/* Returns true if name is `base`, in any case, with or without a number, and sets *device to the
 * number (1 for "vulkan1"), or to -1 without one. A number has no leading zeros. */
static bool is_named(const char *name, const char *base, int *device) {
    const size_t n = strlen(base);
    if (ggl_case_compare_n(name, base, n) != 0)
        return false;
    const size_t digits = strspn(name + n, "0123456789");
    if (name[n + digits] || digits > 3 || (digits > 1 && name[n] == '0'))
        return false;
    *device = digits ? atoi(name + n) : -1;
    return true;
}

/* --- masks ------------------------------------------------------------------------------------ */

/* True if backend i knows the mask name s[0..n). */
static bool mask_has_name(int i, const char *s, size_t n) {
    const char *name;
    for (int k = 0; (name = backend[i].mask_name(k)); k++)
        if (strlen(name) == n && memcmp(name, s, n) == 0)
            return true;
    return false;
}

/* Writes the mask names of backends first to last to buf, "cpu: all avx2 ..; vulkan: import ..", and
 * those of one backend without its name; returns buf. Compares all of them with near->wanted. */
static const char *mask_names(int first, int last, ggl_nearest *near, char *buf, size_t size) {
    size_t n = 0;
    snprintf(buf, size, "no names");
    for (int i = first; i <= last; i++)
        for (int k = 0; backend[i].mask_name(k) && n < size; k++) {
            if (k == 0 && first < last)
                n += (size_t)snprintf(buf + n, size - n, "%s%s:", n ? "; " : "", backend[i].name);
            if (n < size)
                n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? " " : "",
                                      backend[i].mask_name(k));
            ggl_nearest_try(near, backend[i].mask_name(k), SIZE_MAX);
        }
    return buf;
}

/* Names of instruction sets are alike: avx1024 is no misspelled avx2. */
enum { MOST_TYPOS = 2 };

/* GGL_USAGE if the mask contains a name that none of the backends first to last knows. `what` names
 * the mask in the message. */
static ggl_status check_mask(const char *what, const char *mask, int first, int last,
                             ggl_error *err) {
    for (size_t n; mask && *mask; mask += n + (mask[n] != 0)) {
        n = strcspn(mask, ", ");
        bool known = n == 0;
        for (int i = first; i <= last && !known; i++)
            known = mask_has_name(i, mask, n);
        if (known)
            continue;
        char names[512], name[80];
        snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), mask);
        ggl_nearest near = ggl_nearest_to(name);
        if (near.distance > MOST_TYPOS + 1)
            near.distance = MOST_TYPOS + 1;
        mask_names(first, last, &near, names, sizeof names);
        return ggl_fail(err, GGL_USAGE, "%s: '%s' cannot be masked%s%s%s the known names are: %s",
                        what, name, near.best ? "; did you mean '" : ";",
                        near.best ? near.best : "", near.best ? "'?" : "", names);
    }
    return GGL_OK;
}

/* Checks both masks of backend i: params->mask, which all backends share, and the environment
 * variable GGL_<NAME>_MASK, which is for this backend only. */
static ggl_status check_masks(int i, const ggl_backend_params *p, ggl_error *err) {
    char variable[32] = "GGL_";
    size_t n = strlen(variable);
    for (const char *c = backend[i].name; *c && n < 24; c++)
        variable[n++] = (char)(*c - 'a' + 'A');
    snprintf(variable + n, sizeof variable - n, "_MASK");
    ggl_status st = check_mask("the mask (--cpu-mask-isa)", p->mask, 0, N_BACKEND - 1, err);
    return st == GGL_OK ? check_mask(variable, getenv(variable), i, i, err) : st;
}

/* Fails for a name that no backend has, with the nearest one that there is. A number after the name
 * does not count. */
static ggl_status no_backend(const char *name, ggl_error *err) {
    char names[256] = "", base[64];
    size_t used = 0, n = strcspn(name, "0123456789");
    snprintf(base, sizeof base, "%.*s", (int)(n < sizeof base ? n : sizeof base - 1), name);
    ggl_nearest near = ggl_nearest_to(base);
    for (int i = 0; i < N_BACKEND && used < sizeof names; i++) {
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                                 backend[i].name);
        if (ggl_case_compare_n(base, backend[i].name, 1) == 0) /* gpu is no misspelled cpu */
            ggl_nearest_try(&near, backend[i].name, SIZE_MAX);
    }
    return ggl_fail(
        err, GGL_NOT_FOUND,
        "this build has no backend '%s'%s%s%s it has: %s; trace:NAME, which records what "
        "NAME does; or give the path of a shared object",
        name, near.best ? "; did you mean '" : ";", near.best ? near.best : "",
        near.best ? "'?" : "", names);
}

/* Opens a traced backend. One of another rank writes down there what it does, which comes to this timeline. */
static ggl_status open_traced(ggl_backend **out, const char *name, const ggl_backend_params *p,
                              ggl_error *err) {
    const ggl_status st = ggl_trace_open(out, ggl_backend_open, name, p, err);
    if (st != GGL_OK || !ggl_rank_is_name(name))
        return st;
    char row[128];
    ggl_backend *rank = ggl_trace_inner(*out);
    const bool is_async = ggl_rank_place(rank, row, sizeof row);
    ggl_trace_far(*out, row, is_async);
    ggl_rank_set_events(rank, ggl_trace_far_event, *out);
    return GGL_OK;
}

ggl_status ggl_backend_open(ggl_backend **out, const char *name, const ggl_backend_params *params,
                            ggl_error *err) {
    ggl_backend_params p = {.size = sizeof p};
    bool traced = strncmp(name, "trace", 5) == 0 && (name[5] == ':' || !name[5]);
    *out = NULL;
    ggl_status st = GGL_READ_PARAMS(ggl_backend_params, &p, params, err);
    if (st != GGL_OK)
        return st;
    if (traced || p.trace)
        return open_traced(out, !traced ? name : name[5] && name[6] ? name + 6 : "cpu", &p, err);
    if (ggl_plugin_is_path(name))
        return ggl_plugin_open(out, name, &p, err);
    if (ggl_rank_is_name(name))
        return ggl_rank_open(out, name, &p, err);
    for (int i = 0, device; i < N_BACKEND; i++) {
        if (is_named(name, backend[i].name, &device)) {
            p.device = device > 0 ? device : 0;
            st = check_masks(i, &p, err);
            if (st == GGL_OK)
                st = backend[i].open(out, &p, err);
            if (st == GGL_OK && device >= 0)
                snprintf((*out)->name, sizeof(*out)->name, "%s%d", backend[i].name, device);
            return st;
        }
    }
    return no_backend(name, err);
}
