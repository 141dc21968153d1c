/* The name, the SPIR-V and its size of each shader of this build. The table is static: few files include it. */
#ifndef VULKAN_SHADER_TABLE_H
#define VULKAN_SHADER_TABLE_H

#include <stddef.h>

#include "vulkan.h"

#define SHADER(ID, file, defines)                                                                  \
    extern const unsigned char ggl_vk_spirv_##ID[];                                                \
    extern const size_t ggl_vk_spirv_##ID##_size;
#include "shaders.def"
#undef SHADER

static const struct {
    const char *name;
    const unsigned char *code;
    const size_t *size;
} shader[VK_SHADER_COUNT] = {
#define SHADER(ID, file, defines) {#ID, ggl_vk_spirv_##ID, &ggl_vk_spirv_##ID##_size},
#include "shaders.def"
#undef SHADER
};

#endif
