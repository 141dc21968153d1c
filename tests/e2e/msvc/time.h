/* Wine lacks this function. */
#include_next <time.h>
errno_t _gmtime64_s(struct tm *parts, const __time64_t *seconds);
