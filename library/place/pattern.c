#include "pattern.h"

#include <stdlib.h>
#include <string.h>

/* Returns the pattern in POSIX's form. NULL: out of memory. */
static char *posix_form(const char *s, size_t n) {
    char *p = malloc(5 * n + 1), *to = p;
    for (size_t i = 0; p && i < n; i++) {
        if (s[i] == '\\' && i + 1 < n && s[i + 1] == 'd') {
            memcpy(to, "[0-9]", 5);
            to += 5;
            i++;
        } else if (s[i] == '\\' && i + 1 < n) {
            *to++ = s[i++];
            *to++ = s[i];
        } else if (n - i >= 3 && memcmp(s + i, "(?:", 3) == 0) {
            *to++ = '(';
            i += 2;
        } else {
            *to++ = s[i];
        }
    }
    if (p)
        *to = '\0';
    return p;
}

ggl_status llm_pattern(regex_t *out, const char *s, size_t n, ggl_error *err) {
    char *pattern = posix_form(s, n), why[200];
    if (!pattern)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    const int bad = regcomp(out, pattern, REG_EXTENDED | REG_NOSUB);
    ggl_status st = GGL_OK;
    if (bad) {
        regerror(bad, out, why, sizeof why);
        st = ggl_fail(err, GGL_USAGE, "'%.*s' is not a regular expression: %s", (int)n, s, why);
    }
    free(pattern);
    return st;
}
