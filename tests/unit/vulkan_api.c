/* The declarations of backends/vulkan/api.def and functions.def, compared with Vulkan's own headers
 * where these are installed. */
#include "test.h"

#if __has_include(<vulkan/vulkan_core.h>)
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>
#endif

#ifndef VK_KHR_cooperative_matrix
#define GGL_VK_OLD_HEADERS
#endif

#ifdef VK_VERSION_1_3
/* Each structure once more, from its row, with the members' types of the installed headers. */
#define NUMBER(name, value)
#define SIZE(name, value)
#define NAME(name, text)
#define HANDLE(type)
#define OBJECT(type)
#define FLAGS(type)
#define ENUM(type)
#define VALUE(name, value)
#define END_ENUM(type)
#define OPAQUE(type)
#define STRUCT(type)             struct our_##type {
#define MEMBER(type, name)       type name;
#define ARRAY(type, name, count) type name[count];
#define END_STRUCT(type)                                                                           \
    }                                                                                              \
    ;
#define POINTER(result, type, parameters)
#include "api.def"

/* True if `expression`, which is not evaluated, has this type. */
#define HAS_TYPE(expression, ...) _Generic((expression), __VA_ARGS__ : true, default : false)

#endif

TEST(as_installed) {
#ifndef VK_VERSION_1_3
    SKIP("the headers of Vulkan 1.3 or later are not installed (Debian: libvulkan-dev)");
#else
    int rows = 0;
#define ROW(check)          rows++, (void)(check);
#define NUMBER(name, value) ROW(CHECK_INT(name, value))
#define SIZE(name, value)   ROW(CHECK(name == (value) && sizeof name == sizeof(VkDeviceSize)))
#define NAME(name, text)    ROW(CHECK_STR(name, text))
#define HANDLE(type)        ROW(CHECK_INT(sizeof(type), sizeof(void *)))
#define OBJECT(type)        ROW(CHECK_INT(sizeof(type), 8))
#define FLAGS(type)         ROW(CHECK(HAS_TYPE((type)0, VkFlags)))
#define ENUM(type)          ROW(CHECK_INT(sizeof(type), 4))
#define VALUE(name, value)  ROW(CHECK_INT(name, value))
#define END_ENUM(type)
#define OPAQUE(type) ROW(CHECK(HAS_TYPE((type *)NULL, struct type *)))
#define STRUCT(type)                                                                               \
    {                                                                                              \
        typedef type theirs;                                                                       \
        typedef struct our_##type ours;                                                            \
        ROW(CHECK_INT(sizeof(ours), sizeof(theirs)))
#define MEMBER(type, name)                                                                         \
    (void)CHECK_INT(offsetof(ours, name), offsetof(theirs, name));                                 \
    (void)CHECK(HAS_TYPE(&((theirs *)NULL)->name, type *));
#define ARRAY(type, name, count)                                                                   \
    (void)CHECK_INT(offsetof(ours, name), offsetof(theirs, name));                                 \
    (void)CHECK(HAS_TYPE(&((theirs *)NULL)->name, type(*)[count]));
#define END_STRUCT(type)                  }
#define POINTER(result, type, parameters) ROW(CHECK(HAS_TYPE((type)NULL, result(*) parameters)))
#include "api.def"
#define FUNCTION(level, result, name, parameters)                                                  \
    ROW(CHECK(HAS_TYPE((PFN_vk##name)NULL, result(*) parameters)))
#include "functions.def"
#undef FUNCTION
    printf("compared %d declarations with Vulkan's headers, version %d\n", rows, VK_HEADER_VERSION);
#ifdef GGL_VK_OLD_HEADERS
    printf("not compared: api_matrix.def, which is newer than these headers\n");
#endif
    CHECK(rows > 300);
#endif
}
