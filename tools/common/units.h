/* Numbers with units as arguments: "4.2G", "10us", "1Gbit/s". */
#ifndef TOOLS_UNITS_H
#define TOOLS_UNITS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct tool_unit {
    const char *name; /* the case of its letters does not matter */
    double times;
} tool_unit;

extern const tool_unit tool_unit_bytes[]; /* "" to "TiB"; tables end with a NULL name */

/* Reads a positive number and a unit of the table, all n bytes of the text. */
bool tool_read_unit(const char *s, size_t n, const tool_unit *units, double *out);

#endif
