/* Downloads a file into a cache: resumes, checks size and SHA-256, and gives the file its name only then.
 *
 * Beside PATH there may be
 *   PATH.version       which version PATH is, in one line
 *   PATH.XXXXXXXX.part the beginning of a version (XXXXXXXX: the first digits of its digest), from which the next run goes on
 * Processes that fetch the same file wait for each other. */
#ifndef TOOLS_FETCH_H
#define TOOLS_FETCH_H

#include <stdbool.h>

#include "ggl/status.h"

typedef struct fetch_file {
    const char *url, *path;
    const char *token;   /* NULL: none */
    uint64_t size;       /* the number of bytes that must come */
    const char *version; /* a line of text that changes when the file does */
    const char *sha256;  /* 64 digits that must come out; NULL: not known */
} fetch_file;

/* True if PATH is there, complete and of that version. Without PATH.version, its size and SHA-256 decide, and the file is then
 * written. */
bool fetch_is_current(const char *tool, const fetch_file *f);

/* Downloads f, unless it is current. Progress and notes go to standard error: on a terminal in one line, else in a few lines.
 * A broken connection is tried again some times. GGL_CANCELLED: process_stopped is set. After an error other than a wrong
 * digest, what has come stays for the next run. */
GGL_NODISCARD ggl_status fetch(const char *tool, const fetch_file *f, ggl_error *err);

/* Checks that what is missing of n files fits on the disk. GGL_LIMIT. */
GGL_NODISCARD ggl_status fetch_check_space(const fetch_file *f, size_t n, ggl_error *err);

#endif
