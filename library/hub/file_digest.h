/* The digest by which a hub knows a file: SHA-256 of its bytes, or the name that Git gives them.
 *
 *     file_digest d;
 *     char text[FILE_DIGEST];
 *     llm_file_digest_begin(&d, wanted, size);
 *     llm_file_digest_add(&d, data, size);
 *     llm_file_digest_end(&d, text);        // equal to `wanted` if the file is the one */
#ifndef HUB_FILE_DIGEST_H
#define HUB_FILE_DIGEST_H

#include <stdbool.h>

#include "sha1.h"
#include "common/sha256.h"

enum { FILE_DIGEST = SHA256_HEX };

typedef struct file_digest {
    bool is_git;
    union {
        sha256 bytes;
        sha1 blob;
    } of;
} file_digest;

/* True for 64 hexadecimal digits, a SHA-256. */
bool llm_file_digest_is_sha256(const char *s);
/* True for "git-" and 40 hexadecimal digits: the SHA-1 of the text "blob SIZE", a NUL and the file's bytes. */
bool llm_file_digest_is_git(const char *s);

/* Begins a digest of the kind of `wanted`; NULL: a SHA-256. size: the number of bytes that the file has. */
void llm_file_digest_begin(file_digest *d, const char *wanted, uint64_t size);
void llm_file_digest_add(file_digest *d, const void *data, size_t n);
void llm_file_digest_end(file_digest *d, char text[FILE_DIGEST]);

#endif
