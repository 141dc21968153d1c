/* The version of the library that a program is linked with.
 *
 * Threads: any number may ask at the same time.
 *
 * Tier: stable (docs/library.md says what that promises). */
#ifndef GGL_VERSION_H
#define GGL_VERSION_H

#include "ggl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns major, minor and patch, such as "0.1.0", from project() in CMakeLists.txt. Never NULL;
 * the string is static. */
GGL_API const char *ggl_version(void);

#ifdef __cplusplus
}
#endif
#endif
