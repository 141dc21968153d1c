/* Streams that write to memory (base/os_stream_posix.c, base/os_stream_windows.c).
 *
 *     os_memory_stream m;
 *     if (!ggl_os_memory_stream_open(&m))
 *         .. out of memory ..
 *     fprintf(m.to, "%d", 7);
 *     if (!ggl_os_memory_stream_close(&m))
 *         .. out of memory ..
 *     .. m.text[0..m.n), and a NUL ..
 *     free(m.text);
 *
 * Threads: a stream belongs to one at a time. */
#ifndef GGL_OS_STREAM_H
#define GGL_OS_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* It must stay at its address while it is open. */
typedef struct os_memory_stream {
    FILE *to;   /* NULL: it is not open */
    char *text; /* what was written, after it was closed; free() frees it */
    size_t n;   /* bytes of it, after ggl_os_memory_stream_count or _close */
} os_memory_stream;

/* Returns false, and leaves all zeros, if there is no memory. */
bool ggl_os_memory_stream_open(os_memory_stream *m);
/* Sets n to the bytes that were written so far. False: some could not be written. */
bool ggl_os_memory_stream_count(os_memory_stream *m);
/* Closes it. False: something could not be written; there is no text then. */
bool ggl_os_memory_stream_close(os_memory_stream *m);

#ifdef __cplusplus
}
#endif
#endif
