/* Shared libraries that a program loads while it runs.
 * Any thread may call this at any time. */
#ifndef GGL_INTERNAL_OS_LIBRARY_H
#define GGL_INTERNAL_OS_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* Returns true if the name ends as those of shared libraries do here: ".so", ".dll" (Windows), ".dylib" or ".so" (macOS). */
bool ggl_os_library_is_name(const char *name);

/* Loads a library, or returns it anew if it is loaded already. NULL: ggl_os_library_error() says why. */
void *ggl_os_library_open(const char *path);
/* The same; it stays loaded when it is closed. */
void *ggl_os_library_open_for_ever(const char *path);
void *ggl_os_library_find(void *library, const char *name); /* NULL: it has no such symbol */
void ggl_os_library_close(void *library);
/* Why the last call of this thread has failed; valid until the next one. */
const char *ggl_os_library_error(void);
/* Sets `out` to the real path of the program or library that has the address. */
bool ggl_os_library_of(const void *address, char *out, size_t size);

#endif
