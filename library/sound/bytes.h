/* The bytes of a sound: of a file, a pipe, or memory. Reading needs memory of 64 KiB.
 *
 * Threads: it belongs to one at a time. */
#ifndef LIBRARY_SOUND_BYTES_H
#define LIBRARY_SOUND_BYTES_H

#include <stdbool.h>
#include <stdint.h>

#include "ggl/status.h"

typedef struct sound_bytes {
    const char *name; /* for messages; borrowed */
    int64_t size;     /* -1: a pipe or a device, whose size nobody knows */
    int fd;           /* -1: memory */
    bool owns_fd;
    int64_t begin;               /* the place of byte 0 in the file */
    const unsigned char *buffer; /* bytes first .. first + n - 1 */
    unsigned char *own;          /* the same for a file, of a fixed size */
    int64_t first, n, at;        /* at: the next byte's number */
    bool (*cancelled)(
        void *ctx); /* asked while a pipe or another program is waited for; NULL: it is not */
    void *cancelled_ctx;
} sound_bytes;

/* path "-": standard input. GGL_IO, GGL_NOMEM; the message begins with the name. */
GGL_NODISCARD ggl_status llm_sound_bytes_open(sound_bytes *b, const char *path, ggl_error *err);
/* Bytes in memory, which are borrowed. */
void llm_sound_bytes_memory(sound_bytes *b, const void *data, size_t n, const char *name);
void llm_sound_bytes_close(sound_bytes *b); /* all zeros are fine */

/* Reads what is there, at least one of n bytes; *got is 0 at the end only. GGL_IO, GGL_CANCELLED. */
GGL_NODISCARD ggl_status llm_sound_bytes_some(sound_bytes *b, void *to, size_t n, size_t *got,
                                              ggl_error *err);
/* Reads n bytes; *got is smaller at the end only. GGL_IO, GGL_CANCELLED. */
GGL_NODISCARD ggl_status llm_sound_bytes_read(sound_bytes *b, void *to, size_t n, size_t *got,
                                              ggl_error *err);
/* Goes to byte `at`, which may lie beyond the end. A pipe goes forward, and back only within the last 64 KiB at most, surely to 0 while less
 * has been read. GGL_UNSUPPORTED: a pipe cannot go back; GGL_IO. */
GGL_NODISCARD ggl_status llm_sound_bytes_seek(sound_bytes *b, int64_t at, ggl_error *err);

#endif
