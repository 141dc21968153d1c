#include "ranks.h"

#include "ggl/internal/backends.h"
#include "color.h"
#include "report.h"

static void say(const char *text) {
    tool_note(NULL, "%s", text);
}

int tool_join_job(const char *tool) {
    ggl_error err = {0};
    int code = -1;
    tool_set_name(tool);
    if (ggl_ranks_begin(&code, say, &err) != GGL_OK)
        return tool_error(tool, 1, "%s", err.msg);
    if (ggl_ranks_count() > 1 || ggl_ranks_has_launcher())
        tool_color_unknown();
    return code;
}
