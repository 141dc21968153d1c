/* Names for Windows: the programs have UTF-8, the system UTF-16. Private to os_*_windows.c. Any thread may call this. */
#ifndef GGL_OS_WIDE_H
#define GGL_OS_WIDE_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the text in UTF-16, for free(); NULL: errno, ENOMEM or EILSEQ. */
wchar_t *ggl_os_wide(const char *s);
/* Returns the text in UTF-8, for free(); NULL: errno. */
char *ggl_os_narrow(const wchar_t *s);
/* Puts '/' in the place of each backslash. */
void ggl_os_use_slashes(char *s);
/* Sets errno to what the system's last error means, and returns false. */
bool ggl_os_failed(void);

#endif
