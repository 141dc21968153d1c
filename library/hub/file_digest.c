#include "file_digest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define GIT "git-"

static bool is_hex(const char *s, size_t n) {
    return strlen(s) == n && strspn(s, "0123456789abcdef") == n;
}

bool llm_file_digest_is_sha256(const char *s) {
    return is_hex(s, SHA256_HEX - 1);
}

bool llm_file_digest_is_git(const char *s) {
    return strncmp(s, GIT, strlen(GIT)) == 0 && is_hex(s + strlen(GIT), SHA1_HEX - 1);
}

void llm_file_digest_begin(file_digest *d, const char *wanted, uint64_t size) {
    char head[32];
    *d = (file_digest){.is_git = wanted && llm_file_digest_is_git(wanted)};
    if (!d->is_git) {
        llm_sha256_begin(&d->of.bytes);
        return;
    }
    llm_sha1_begin(&d->of.blob);
    const int n = snprintf(head, sizeof head, "blob %" PRIu64, size);
    llm_sha1_add(&d->of.blob, head, (size_t)n + 1); /* with the NUL */
}

void llm_file_digest_add(file_digest *d, const void *data, size_t n) {
    if (d->is_git)
        llm_sha1_add(&d->of.blob, data, n);
    else
        llm_sha256_add(&d->of.bytes, data, n);
}

void llm_file_digest_end(file_digest *d, char text[FILE_DIGEST]) {
    if (d->is_git) {
        memcpy(text, GIT, strlen(GIT));
        llm_sha1_end(&d->of.blob, text + strlen(GIT));
    } else {
        llm_sha256_end(&d->of.bytes, text);
    }
}
