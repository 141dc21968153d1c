#include "settings.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/nearest.h"

static const char *const force_name[] = {"idot", "half", "ahead", "matrix", NULL};

/* True if a list of names, separated by commas or spaces, contains the name or "all". list may be NULL. */
static bool is_in(const char *list, const char *name) {
    while (list && *list) {
        const size_t n = strcspn(list, ", ");
        if ((n == 3 && memcmp(list, "all", n) == 0) ||
            (strlen(name) == n && memcmp(name, list, n) == 0))
            return true;
        list += n + (list[n] != 0);
    }
    return false;
}

bool ggl_vk_is_forced(const char *name) {
    return is_in(getenv("GGL_VULKAN_FORCE"), name);
}

/* --- features by their names ------------------------------------------------------------------ */

#define FEATURE(name)                                                                              \
    { #name, offsetof(vk_features, name) }
static const struct {
    const char *name;
    size_t at; /* offset in vk_features */
} feature[] = {
    FEATURE(import), FEATURE(subgroup), FEATURE(idot),   FEATURE(storage16), FEATURE(storage8),
    FEATURE(half),   FEATURE(matrix),   FEATURE(repack), FEATURE(map),       FEATURE(budget),
    FEATURE(range),  FEATURE(ahead),    FEATURE(pace),   FEATURE(fuse),      FEATURE(peer),
};
#undef FEATURE
enum {
    N_FEATURE = sizeof feature / sizeof *feature,
    /* Features of the device, shown in its description; the others are ours. */
    N_DESCRIBED = 7
};

const char *ggl_vulkan_mask_name(int k);
const char *ggl_vulkan_mask_name(int k) {
    return k < N_FEATURE ? feature[k].name : k == N_FEATURE ? "all" : NULL;
}

static bool *feature_at(const vk_features *f, int i) {
    return (bool *)((uintptr_t)f + feature[i].at);
}

static void take_away(vk_features *f, const char *mask) {
    for (int i = 0; i < N_FEATURE; i++)
        if (is_in(mask, feature[i].name))
            *feature_at(f, i) = false;
}

void ggl_vk_mask_features(vk_features *f, const char *mask) {
    take_away(f, mask);
    take_away(f, getenv("GGL_VULKAN_MASK"));
}

void ggl_vk_list_features(const vk_features *f, char *text, size_t size) {
    size_t used = 0;
    for (int i = 0; i < N_DESCRIBED; i++) /* no partial names */
        if (*feature_at(f, i) && used + strlen(feature[i].name) + 1 < size)
            used += (size_t)snprintf(text + used, size - used, " %s", feature[i].name);
}

void ggl_vk_note_forced(const vk_features *f, const char *mask, const char *device) {
    static atomic_bool noted;
    for (const char *const *name = force_name; *name; name++)
        for (int i = 0; i < N_FEATURE; i++)
            if (strcmp(feature[i].name, *name) == 0 && !*feature_at(f, i) &&
                ggl_vk_is_forced(*name) && !is_in(mask, *name) &&
                !is_in(getenv("GGL_VULKAN_MASK"), *name) && !atomic_exchange(&noted, true))
                fprintf(stderr, "vulkan: GGL_VULKAN_FORCE: %s cannot have %s, which is not used\n",
                        device, *name);
}

/* --- values of the variables ------------------------------------------------------------------ */

bool ggl_vk_validates(void) {
    const char *value = getenv("GGL_VULKAN_VALIDATE");
    return value && strcmp(value, "1") == 0;
}

/* GGL_USAGE if no feature of that name can be forced. Allows "", which is between two commas. */
static ggl_status check_forced(const char *name, ggl_error *err) {
    ggl_nearest near = ggl_nearest_to(name);
    bool known = !*name || strcmp(name, "all") == 0;
    for (const char *const *s = force_name; *s && !known; s++) {
        known = strcmp(name, *s) == 0;
        ggl_nearest_try(&near, *s, SIZE_MAX);
    }
    if (known)
        return GGL_OK;
    return ggl_fail(
        err, GGL_USAGE,
        "GGL_VULKAN_FORCE: '%s' cannot be forced%s%s%s the known names are: all idot half "
        "ahead matrix",
        name, near.best ? "; did you mean '" : ";", near.best ? near.best : "",
        near.best ? "'?" : "");
}

ggl_status ggl_vk_check_settings(ggl_error *err) {
    const char *value = getenv("GGL_VULKAN_VALIDATE"), *list = getenv("GGL_VULKAN_FORCE");
    ggl_status st = GGL_OK;
    for (size_t n; list && *list && st == GGL_OK; list += n + (list[n] != 0)) {
        char name[64];
        n = strcspn(list, ", ");
        snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name), list);
        st = check_forced(name, err);
    }
    if (st == GGL_OK && value && *value && strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
        st = ggl_fail(err, GGL_USAGE,
                      "GGL_VULKAN_VALIDATE is '%.60s'; 1 turns Vulkan's validation on, 0 off",
                      value);
    return st;
}
