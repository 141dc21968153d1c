/* Structs of parameters that can grow. Each begins with `size_t size`, which the caller sets to sizeof
 * the struct; new members are appended, never put into the padding of a member before them. So a
 * program and a library that were compiled with different headers understand each other:
 *
 *     ggl_x_params p = {.size = sizeof p, .n = 3};   // the caller
 *
 *     ggl_x_params own = {.n = 1};                   // the function: its defaults
 *     if (ggl_params_read(&own, sizeof own, p, "ggl_x_params", err) != GGL_OK) ...
 *
 * Threads: the functions have no state; any number of threads may call them at the same time. */
#ifndef GGL_PARAMS_H
#define GGL_PARAMS_H

#include <stddef.h>

#include "ggl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Copies the caller's struct `from` over the library's struct `to` of `size` bytes, which holds the
 * defaults: members that the caller's does not have keep them. to->size becomes `size`. from NULL: only
 * that. `name`: the struct's, for messages. GGL_USAGE: the caller's size is 0, or no possible one;
 * GGL_UNSUPPORTED: the caller's struct is larger, and a byte beyond `size` is not 0. *to is then
 * unchanged. */
GGL_NODISCARD ggl_status ggl_params_read(void *to, size_t size, const void *from, const char *name,
                                         ggl_error *err);
/* The other way round, for results and defaults: copies what the caller's struct `to` has room for, as
 * its size says, which stays. GGL_USAGE: as above. Bytes beyond `size` become 0. */
GGL_NODISCARD ggl_status ggl_params_write(void *to, const void *from, size_t size, const char *name,
                                          ggl_error *err);

/* For functions that give defaults: fills in the caller's struct `to` of `given` bytes. Such a function
 * gets the size from an inline function of the public header, which is compiled into the program: a struct
 * that was returned by value would have the library's size. */
void ggl_params_fill(void *to, size_t given, const void *defaults, size_t size);

#define GGL_READ_PARAMS(type, to, from, err)                                                       \
    ggl_params_read((to), sizeof(type), (from), #type, (err))
#define GGL_WRITE_PARAMS(type, to, from, err)                                                      \
    ggl_params_write((to), (from), sizeof(type), #type, (err))

#ifdef __cplusplus
}
#endif
#endif
