#include "ggl/version.h"

#ifndef GGL_VERSION /* not built by CMakeLists.txt, which has the version */
#define GGL_VERSION "unknown"
#endif

const char *ggl_version(void) {
    return GGL_VERSION;
}
