/* Declarations of Vulkan's types and constants, from api.def. They stand for <vulkan/vulkan_core.h>,
 * which a machine without development packages lacks. */
#ifndef VULKAN_API_H
#define VULKAN_API_H

#include <stddef.h>
#include <stdint.h>

typedef uint32_t VkBool32, VkFlags;
typedef uint64_t VkDeviceSize;

#define NUMBER(name, value) enum { name = value };
#define SIZE(name, value)   static const VkDeviceSize name = value;
#define NAME(name, text)    static const char name[] = text;
#define HANDLE(type)        typedef struct type##_object *type;
#if UINTPTR_MAX > UINT32_MAX
#define OBJECT(type) HANDLE(type)
#else
#define OBJECT(type) typedef uint64_t type;
#endif
#define FLAGS(type)        typedef VkFlags type;
#define ENUM(type)         typedef enum type {
#define VALUE(name, value) name = value,
#define END_ENUM(type)                                                                             \
    }                                                                                              \
    type;                                                                                          \
    _Static_assert(sizeof(type) == 4, "enums are 32 bits wide in Vulkan's interface");
#define OPAQUE(type)             typedef struct type type;
#define STRUCT(type)             typedef struct type {
#define MEMBER(type, name)       type name;
#define ARRAY(type, name, count) type name[count];
#define END_STRUCT(type)                                                                           \
    }                                                                                              \
    type;
#define POINTER(result, type, parameters) typedef result(*type) parameters;
#include "api.def"

#endif
