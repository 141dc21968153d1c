#include "ranks.h"

#include "ggl/internal/backends.h"
#include "report.h"

int tool_join_job(const char *tool) {
    ggl_error err = {0};
    int code = -1;
    return ggl_ranks_begin(&code, &err) == GGL_OK ? code : tool_error(tool, 1, "%s", err.msg);
}
