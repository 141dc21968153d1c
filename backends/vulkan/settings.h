/* Names of features, and environment variables of this backend. docs/vulkan.md lists them. */
#ifndef GGL_VULKAN_SETTINGS_H
#define GGL_VULKAN_SETTINGS_H

#include <stdbool.h>

#include "vulkan.h"

/* GGL_USAGE if GGL_VULKAN_FORCE has an unknown name, or GGL_VULKAN_VALIDATE an unknown value. */
ggl_status ggl_vk_check_settings(ggl_error *err);
/* True if GGL_VULKAN_FORCE contains the name. */
bool ggl_vk_is_forced(const char *name);
/* Disables the features that the mask (may be NULL) or GGL_VULKAN_MASK names. Ignores other names, because
 * several backends share a mask. */
void ggl_vk_mask_features(vk_features *f, const char *mask);
/* Writes the names of those features that depend on the device, each after a space. */
void ggl_vk_list_features(const vk_features *f, char *text, size_t size);
/* Prints, once in a process, which feature is forced and not masked, though the device cannot have it. */
void ggl_vk_note_forced(const vk_features *f, const char *mask, const char *device);
/* True if GGL_VULKAN_VALIDATE asks for the validation layer. */
bool ggl_vk_validates(void);

#endif
