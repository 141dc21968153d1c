/* Downloads a file into a cache. An interrupted download is resumed. The file gets its name only after its size and SHA-256
 * were checked.
 *
 * Two files may lie beside PATH:
 *   PATH.version       the version of PATH, in one line
 *   PATH.XXXXXXXX.part a partial download, which the next run continues (XXXXXXXX: the first digits of the version's digest)
 * If several processes download the same file, one does, and the others wait for it. */
#ifndef HUB_FETCH_H
#define HUB_FETCH_H

#include <stdbool.h>

#include "watch.h"

typedef struct fetch_file {
    const char *url, *path;
    const char *name;    /* for messages; NULL: the end of the path */
    const char *token;   /* NULL: none */
    uint64_t size;       /* the number of bytes that the file must have */
    const char *version; /* a line of text that changes when the file does */
    const char *digest;  /* what the file must have (file_digest.h); NULL: not known */
    const char
        *etag; /* the file's strong ETag, by which a server knows this version; NULL: not known */
    bool is_whole; /* parts of two versions cannot be told apart: never continue a download */
} fetch_file;

/* True if PATH exists, is complete and has that version. If PATH.version is missing, the size and digest of PATH are compared
 * instead, and PATH.version is written if they match. Without a digest such a file is of an unknown version, so not current. */
bool llm_fetch_is_current(const hub_watch *w, const fetch_file *f);

/* Downloads f, unless it is current. A broken connection is retried a few times. GGL_CANCELLED: w stops it. After any error but a wrong digest, the
 * partial download stays for the next run. */
GGL_NODISCARD ggl_status llm_fetch(const hub_watch *w, const fetch_file *f, ggl_error *err);

/* Checks that the missing bytes of n files fit on the disk. GGL_LIMIT: they do not. */
GGL_NODISCARD ggl_status llm_fetch_check_space(const fetch_file *f, size_t n, ggl_error *err);

#endif
