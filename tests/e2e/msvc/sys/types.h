/* Wine has the type ssize_t, and Microsoft has none. */
#define _SSIZE_T_DEFINED
#include_next <sys/types.h>
#undef _SSIZE_T_DEFINED
