#include "user_path.h"
#include "ggl/internal/os_fs.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/text.h"
#include "ggl/internal/os_process.h"

char *llm_user_path(const char *variable, const char *under_home, const char *rest) {
    const char *value = getenv(variable), *home = ggl_os_home();
    const bool has_value = value && ggl_os_is_absolute(value);
    const char *folder = has_value ? value : home;
    if (!folder || !ggl_os_is_absolute(folder))
        return NULL;
    const size_t size = strlen(folder) + strlen(under_home) + strlen(rest) + 16;
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%s%s%s/ggml-lite%s%s", folder, has_value ? "" : "/",
                 has_value ? "" : under_home, *rest ? "/" : "", rest);
    return path;
}
