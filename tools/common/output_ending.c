#include "output_ending.h"

#include <stddef.h>
#include <string.h>

#include "ggl/internal/os_fs.h"
#include "ggl/internal/text.h"
#include "report.h"

/* Returns the ending of a name; NULL: it has none, as "talk", ".srt" and "talk.2" */
static const char *ending_of(const char *path) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
                      digits[] = "0123456789";
    enum { MOST = 12 };
    const char *slash = ggl_os_last_separator(path), *name = slash ? slash + 1 : path,
               *dot = strrchr(name, '.');
    if (!dot || dot == name)
        return NULL;
    const size_t n_digits = strspn(dot + 1, digits);
    const char *s = dot + 1;
    while (*s && (strchr(letters, *s) || strchr(digits, *s)))
        s++;
    return *s || dot[1 + n_digits] == '\0' || s - dot > MOST ? NULL : dot;
}

int output_ending_choose(const char *tool, const char *path, const output_ending *table,
                         const char *advice, int *format) {
    const char *end = ending_of(path);
    if (!end)
        return -1;
    while (table->end && ggl_case_compare_n(end, table->end, strlen(end) + 1) != 0)
        table++;
    if (table->format == OUTPUT_REFUSED)
        return tool_error(tool, 2,
                          "-o %s: files ending in %s are of a format that is not written; %s", path,
                          table->end ? table->end : end, advice);
    *format = table->format;
    return -1;
}
