#include "ggl/version.h"

#ifndef GGL_VERSION /* CMakeLists.txt defines it; other builds may not */
#define GGL_VERSION "unknown"
#endif

const char *ggl_version(void) {
    return GGL_VERSION;
}
