/* One process at a time.
 *
 *     ggl_file_lock *l;
 *     if (ggl_file_lock_open(&l, "model.gguf", &err) == GGL_OK) {
 *         .. no other process has the lock of model.gguf ..
 *         ggl_file_lock_close(l);
 *     }
 *
 * The lock is one of the file PATH.lock, which is empty, and removed with it. It ends with the process, however that ends: a file that a
 * killed process has left locks nothing.
 *
 * Threads: a lock belongs to one thread at a time. */
#ifndef GGL_INTERNAL_FILE_LOCK_H
#define GGL_INTERNAL_FILE_LOCK_H

#include "ggl/status.h"

typedef struct ggl_file_lock ggl_file_lock;

/* Takes the lock of the path, without waiting. GGL_IO: another process, or another part of this one, has it; GGL_NOMEM. *out is NULL after a
 * failure, and where there can be no lock: in a folder that is not there or must not be written, on a full disk, on a file system without locks, and for a
 * device or a pipe. */
GGL_NODISCARD ggl_status ggl_file_lock_open(ggl_file_lock **out, const char *path, ggl_error *err);
void ggl_file_lock_close(ggl_file_lock *l); /* NULL is fine */

#endif
