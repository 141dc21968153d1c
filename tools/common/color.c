#include "color.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_terminal.h"

#include <stdlib.h>
#include <string.h>

const char *const tool_color_choices[] = {"auto", "always", "never", "on", "off", NULL};

static bool is_unknown; /* whether output goes to a terminal */

void tool_color_unknown(void) {
    is_unknown = true;
}

bool tool_is_terminal(FILE *f) {
    return !is_unknown && ggl_os_is_terminal(ggl_os_fileno(f));
}

static bool is_set(const char *name) {
    const char *value = getenv(name);
    return value && *value;
}

bool tool_color(const char *when, FILE *f) {
    const char *term = getenv("TERM");
    if (when && *when && strcmp(when, "auto") != 0)
        return strcmp(when, "always") == 0 || strcmp(when, "on") == 0;
    return tool_is_terminal(f) && !is_set("NO_COLOR") && !(term && strcmp(term, "dumb") == 0);
}
