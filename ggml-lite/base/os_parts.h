/* Parts of mapped files in private memory. A part has the same bytes whether it is the file's pages or private memory, at
 * the same address, and changes from one to the other at once, also while other threads read it. Private memory is
 * filled past the system's cache of files, if the file system can: what is read once for each token would only drive from
 * that cache what is needed sooner. Private to ggml-lite. */
#ifndef GGL_OS_PARTS_H
#define GGL_OS_PARTS_H

#include <stdbool.h>
#include <stddef.h>

/* A mapped file. */
typedef struct os_parts os_parts;

/* For os_file.c: notes that the file `fd` is mapped at `data`, and takes the descriptor. False: out of memory, and the
 * descriptor stays the caller's. */
bool ggl_os_parts_add(const void *data, size_t size, int fd);
/* Before the file is unmapped, by anybody who had claimed it, too. Does nothing for other files. */
void ggl_os_parts_remove(const void *data);
/* Drops whole pages of a mapped file, unless somebody has claimed the file. */
void ggl_os_parts_drop(void *pages, size_t size);

/* Returns the mapped file around `data`, which is then the caller's to fill and empty until it releases it. NULL: there is none,
 * it is claimed already or locked in memory, or the system cannot do this. */
os_parts *ggl_os_parts_claim(const void *data);
/* The caller has emptied what it had filled. */
void ggl_os_parts_release(os_parts *f);
/* Fills private memory with [at, at + size), whole pages of the file, and puts it in their place. False: the pages stay. Any number of threads
 * may fill and empty different parts. */
bool ggl_os_part_fill(os_parts *f, const void *at, size_t size);
/* Puts the file's pages back, and frees the memory. The system forgets what it holds of them. */
void ggl_os_part_empty(os_parts *f, const void *at, size_t size);

/* Lets the system read a touched page of the file alone, and not those around it; or again as it likes. */
void ggl_os_parts_alone(const void *at, size_t size, bool alone);

#endif
