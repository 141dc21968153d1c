#include "input.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "ggl/internal/os_fs.h"
#include "common/other_text.h"
#include "common/text_file.h"
#include "common/user_text.h"
#include "ggl/internal/show.h"
#include "process.h"

/* Doubles a buffer. If out of memory, frees it and returns NULL. */
static char *buffer_grow(char *data, size_t *cap) {
    size_t wanted = *cap > SIZE_MAX / 2 - 1 ? 0 : *cap * 2;
    char *grown = wanted ? realloc(data, wanted + 1) : NULL;
    if (!grown)
        free(data);
    *cap = wanted;
    return grown;
}

char *tool_read_at_most(const char *tool, const char *path, size_t most, size_t *size) {
    bool is_stdin = strcmp(path, "-") == 0;
    const char *name = is_stdin ? "stdin" : path;
    FILE *f = is_stdin ? stdin : ggl_os_fopen(path, "rb");
    if (!f) {
        tool_error_about(tool, 1, "%s: %s", path, strerror(errno));
        return NULL;
    }
    size_t n = 0, cap = 4096;
    char *data = malloc(cap + 1);
    while (data) {
        n += fread(data + n, 1, cap - n, f);
        if (n < cap || n > most)
            break;
        data = buffer_grow(data, &cap);
    }
    int error = errno;
    if (!data) {
        tool_error_about(tool, 1, "%s: out of memory", name);
    } else if (ferror(f)) {
        if (!process_stopped)
            tool_error_about(tool, 1, "%s: %s", name, strerror(error));
        free(data);
        data = NULL;
    } else if (n > most) {
        tool_error_about(tool, 1, "%s: the file has more than %zu MiB, the most for this", name,
                         most >> 20);
        free(data);
        data = NULL;
    } else {
        data[n] = '\0';
        *size = n;
    }
    if (!is_stdin)
        fclose(f);
    return data;
}

char *tool_read_file(const char *tool, const char *path, size_t *size) {
    return tool_read_at_most(tool, path, SIZE_MAX, size);
}

/* Drops a byte order mark, in place. Refuses UTF-16 and UTF-32: frees the text, and returns NULL. */
static char *begin_text(const char *tool, const char *path, char *text, size_t *n) {
    if (!text)
        return NULL;
    const ggl_str all = {text, *n};
    const char *wide = llm_text_wide(all);
    if (wide) {
        tool_error_about(tool, 1, "%s: %s", strcmp(path, "-") == 0 ? "stdin" : path, wide);
        free(text);
        return NULL;
    }
    const ggl_str rest = llm_text_after_mark(all);
    if (rest.n < *n)
        memmove(text, rest.s, rest.n + 1);
    *n = rest.n;
    return text;
}

/* Returns the length of the UTF-8 text without NUL at the start of s[n]. */
static size_t text_length(const char *s, size_t n) {
    size_t i = 0;
    for (size_t length; i < n && s[i]; i += length) {
        length = ggl_utf8_length(s + i, n - i);
        if (length == 0)
            break;
    }
    return i;
}

bool tool_is_text(const char *tool, const char *path, const char *s, size_t n) {
    const size_t good = text_length(s, n);
    const char *name = strcmp(path, "-") == 0 ? "stdin" : path;
    if (good == n && !llm_is_lfs_pointer(s, n))
        return true;
    const llm_other_file *other = llm_other_file_of((ggl_str){s, n});
    if (other)
        tool_error_about(tool, 1, "%s is %s, not a text%s%s", name, other->what,
                         other->advice ? "; " : "", other->advice ? other->advice : "");
    else
        tool_error_about(tool, 1, "%s is not a text in UTF-8: byte %zu is 0x%02x", name, good,
                         (unsigned char)s[good]);
    return false;
}

/* Warns of a text with bytes that are no UTF-8, unless it was only cut within its last
 * character. */
static void warn_of_bytes(const char *tool, const char *path, const char *s, size_t n) {
    enum { LONGEST = 4 };
    const size_t good = text_length(s, n);
    bool is_cut = n - good < LONGEST && n > good && (unsigned char)s[good] >= 0xc2;
    for (size_t i = good + 1; i < n; i++)
        is_cut = is_cut && ((unsigned char)s[i] & 0xc0) == 0x80;
    if (good < n && !is_cut)
        tool_warning(tool,
                     "%s is not a text in UTF-8: byte %zu is 0x%02x; the model reads it as other "
                     "characters than are meant (iconv converts texts)",
                     strcmp(path, "-") == 0 ? "stdin" : path, good, (unsigned char)s[good]);
}

char *tool_read_raw_text(const char *tool, const char *path, size_t most, size_t *size) {
    return begin_text(tool, path, tool_read_at_most(tool, path, most, size), size);
}

char *tool_read_any_text(const char *tool, const char *path, size_t *size) {
    char *text = tool_read_raw_text(tool, path, SIZE_MAX, size);
    if (text && (llm_is_binary((ggl_str){text, *size}) || llm_is_lfs_pointer(text, *size))) {
        (void)tool_is_text(tool, path, text, *size);
        free(text);
        return NULL;
    }
    if (text)
        warn_of_bytes(tool, path, text, *size);
    return text;
}

char *tool_read_text(const char *tool, const char *path, size_t most, size_t *size) {
    char *text = tool_read_raw_text(tool, path, most, size);
    if (text && !tool_is_text(tool, path, text, *size)) {
        free(text);
        return NULL;
    }
    return text;
}
