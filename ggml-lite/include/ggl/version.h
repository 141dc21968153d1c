/* Which version of the library a program is linked with. */
#ifndef GGL_VERSION_H
#define GGL_VERSION_H

#include "ggl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0": major, minor, patch, as project() in CMakeLists.txt has them. Never NULL; the library's.
 */
GGL_API const char *ggl_version(void);

#ifdef __cplusplus
}
#endif
#endif
