/* unit.version: the library says the version of CMakeLists.txt. */
#include "ggl/version.h"
#include "test.h"

TEST(is_the_projects) {
    CHECK_STR(ggl_version(), PROJECT_VERSION);
}
