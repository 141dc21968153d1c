/* The log of requests. */
#ifndef LLM_SERVER_LOG_H
#define LLM_SERVER_LOG_H

#include <stdio.h>

/* Writes a line with the time before it, in one call, because several threads write. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void log_line(FILE *log, const char *format, ...);

#endif
