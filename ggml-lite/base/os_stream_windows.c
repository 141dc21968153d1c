/* os_stream.h for Windows, which has no such streams: a temporary file, which the system keeps in memory while it can, and
 * removes when it is closed. */
#include "ggl/internal/os_stream.h"

#include <fcntl.h>
#include <io.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <wchar.h>
#include <windows.h>

/* tmpfile() of the C library writes to the root of the disk, which most users may not. */
bool ggl_os_memory_stream_open(os_memory_stream *m) {
    wchar_t folder[MAX_PATH + 1], path[MAX_PATH + 1];
    *m = (os_memory_stream){0};
    const DWORD n = GetTempPathW(MAX_PATH + 1, folder);
    if (n == 0 || n > MAX_PATH || GetTempFileNameW(folder, L"ggl", 0, path) == 0)
        return false;
    const int fd =
        _wopen(path, _O_RDWR | _O_CREAT | _O_BINARY | _O_SHORT_LIVED | _O_TEMPORARY | _O_NOINHERIT,
               _S_IREAD | _S_IWRITE);
    if (fd < 0) {
        (void)_wremove(path);
        return false;
    }
    m->to = _fdopen(fd, "w+b");
    if (!m->to)
        (void)_close(fd);
    return m->to != NULL;
}

bool ggl_os_memory_stream_count(os_memory_stream *m) {
    const int64_t n = fflush(m->to) == 0 ? _ftelli64(m->to) : -1;
    m->n = n > 0 ? (size_t)n : 0;
    return n >= 0 && !ferror(m->to);
}

/* Reads all back; NULL: it cannot be read, or there is no memory. */
static char *read_all(os_memory_stream *m) {
    char *text = m->n < SIZE_MAX ? malloc(m->n + 1) : NULL;
    if (!text)
        return NULL;
    rewind(m->to);
    if (fread(text, 1, m->n, m->to) != m->n) {
        free(text);
        return NULL;
    }
    text[m->n] = 0;
    return text;
}

bool ggl_os_memory_stream_close(os_memory_stream *m) {
    char *text = ggl_os_memory_stream_count(m) ? read_all(m) : NULL;
    (void)fclose(m->to);
    *m = (os_memory_stream){.text = text, .n = text ? m->n : 0};
    return text != NULL;
}
