/* How much can still be written.
 *
 * Threads: any number may call this function at the same time. */
#ifndef GGL_INTERNAL_DISK_LEFT_H
#define GGL_INTERNAL_DISK_LEFT_H

#include <stdbool.h>
#include <stdint.h>

/* Sets *bytes to what can still be written to the disk on which the file of that path is, or would be; its folders need not exist. *disk (may
 * be NULL) becomes a number of that disk. False: it is not known, as where a file system does not say, or the path is no file's. The
 * environment variable GGL_DISK_LEFT, in bytes, replaces the measurement; tests set it. */
bool ggl_disk_left(const char *path, uint64_t *bytes, uint64_t *disk);

#endif
