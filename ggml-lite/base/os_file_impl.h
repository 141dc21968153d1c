/* The calls of the operating system that os_file.c needs, written once for each system. Any thread may call them. */
#ifndef GGL_OS_FILE_IMPL_H
#define GGL_OS_FILE_IMPL_H

#include <stdbool.h>
#include <stddef.h>

/* Returns new pages of zeros, or those of a file, read-only; NULL: errno. populate: they are read now. */
void *ggl_os_pages_new(size_t size);
void *ggl_os_pages_map(int fd, size_t size, bool populate);
void ggl_os_pages_free(void *p, size_t size, bool mapped);

/* Returns the real path of the file that path leads to, following links, even to a file that does not exist yet, for ggl_free(). NULL: errno. */
char *ggl_os_resolve(const char *path);
bool ggl_os_may_write(const char *path);
/* Gives the new file the rights of the one that it will replace, as far as the system allows. */
void ggl_os_keep_rights(int fd, const char *path);
/* Removes a file that this process has open, and locked. */
void ggl_os_remove_open(int fd, const char *path);
int ggl_os_duplicate(int fd); /* -1: errno; ENOSYS: the system has no call for it */
/* Returns a descriptor that keeps the lock of a file, while the file gets another name, until it is closed; -1: an open file gets no other name here. */
int ggl_os_hold(int fd);
/* Flushes the folder of the path, which it changes, so that the file's new name reaches the disk. */
void ggl_os_sync_folder_of(char *path);

#endif
