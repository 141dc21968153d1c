/* os_stream.h for POSIX. */
#include "ggl/internal/os_stream.h"

#include <stdlib.h>

bool ggl_os_memory_stream_open(os_memory_stream *m) {
    *m = (os_memory_stream){0};
    m->to = open_memstream(&m->text, &m->n);
    return m->to != NULL;
}

bool ggl_os_memory_stream_count(os_memory_stream *m) {
    return fflush(m->to) == 0 && !ferror(m->to);
}

bool ggl_os_memory_stream_close(os_memory_stream *m) {
    const bool failed = ferror(m->to) != 0, closed = fclose(m->to) == 0;
    m->to = NULL;
    if (closed && !failed && m->text)
        return true;
    free(m->text);
    *m = (os_memory_stream){0};
    return false;
}
