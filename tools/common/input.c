#include "input.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "ggl/internal/memory_left.h"
#include "ggl/internal/os_fs.h"
#include "common/other_text.h"
#include "common/text_file.h"
#include "common/user_text.h"
#include "ggl/internal/show.h"
#include "process.h"

/* What a file must contain to be read. */
typedef enum text_kind {
    BYTES,
    RAW_TEXT, /* neither UTF-16 nor UTF-32 */
    ANY_TEXT, /* nor with a NUL */
    TEXT      /* UTF-8 without NUL */
} text_kind;

enum { FIRST = 64 << 10 }; /* bytes that are judged before the others are read */

static const char *name_of(const char *path) {
    return strcmp(path, "-") == 0 ? "stdin" : path;
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

/* Returns whether the bytes of the file `path` are UTF-8 without NUL; if not, reports it. */
static bool is_text(const char *tool, const char *path, const char *s, size_t n) {
    const size_t good = text_length(s, n);
    const char *name = name_of(path);
    if (good == n && !llm_is_lfs_pointer(s, n))
        return true;
    const llm_other_file *other = llm_other_file_of((ggl_str){s, n});
    if (other)
        tool_error_about(tool, 1, "%s is %s, not a text%s%s", name, other->what,
                         other->advice ? "; " : "", other->advice ? other->advice : "");
    else
        tool_error_about(tool, 1, "%s is not a text in UTF-8: byte %zu is 0x%02x%s", name, good,
                         (unsigned char)s[good], s[good] ? " (iconv converts texts)" : "");
    return false;
}

/* Returns false after a message if a file that begins with s[n] is of another kind, whatever follows: a model
 * given by mistake is not read into memory, and a device of zeros ends. */
static bool begins_well(const char *tool, const char *path, text_kind kind, const char *s,
                        size_t n) {
    enum { CUT = 3 }; /* bytes of the last character, the rest of which is not among them */
    const char *wide = kind == BYTES ? NULL : llm_text_wide((ggl_str){s, n});
    if (wide) {
        tool_error_about(tool, 1, "%s: %s", name_of(path), wide);
        return false;
    }
    const ggl_str text = llm_text_after_mark((ggl_str){s, n});
    if ((kind == ANY_TEXT && memchr(text.s, 0, text.n)) ||
        (kind == TEXT && text_length(text.s, text.n) + CUT < text.n))
        return is_text(tool, path, text.s, text.n);
    return true;
}

/* How many bytes of an open file are read. */
typedef struct read_limit {
    uint64_t size; /* of a plain file; 0: not known before its end */
    size_t most;
    bool is_given; /* the caller has set the limit */
} read_limit;

static read_limit find_limit(FILE *f, size_t most) {
    os_stat st;
    const bool is_file = ggl_os_stat_fd(ggl_os_fileno(f), &st) && st.kind == OS_FILE;
    read_limit out = {is_file ? st.size : 0, most, most < SIZE_MAX};
    uint64_t usual = llm_most_of_stream();
    if (out.size > usual)
        usual = out.size;
    if (!out.is_given && usual < SIZE_MAX - 2)
        out.most = (size_t)usual;
    return out;
}

static void report_length(const char *tool, const char *path, const read_limit *limit) {
    if (limit->is_given)
        tool_error_about(tool, 1, "%s: the file has more than %zu MiB, the most for this",
                         name_of(path), limit->most >> 20);
    else
        tool_error_about(tool, 1,
                         "%s: the text is longer than %.1f MiB, the most that is read of a pipe or "
                         "a device (2 GiB, or the memory that is free); read a part of it, as "
                         "'head -c 1G' writes it",
                         name_of(path), (double)limit->most / 0x1p20);
}

/* Returns false after a message if a plain file is too long. */
static bool fits(const char *tool, const char *path, const read_limit *limit) {
    const uint64_t left = ggl_memory_left("");
    if (limit->size > limit->most) {
        report_length(tool, path, limit);
        return false;
    }
    if (left == 0 || limit->size <= left)
        return true;
    tool_error_about(tool, 1,
                     "%s of %.1f MiB does not fit in memory (%.1f MiB free); read a part of it, as "
                     "'head -c 1G' writes it",
                     name_of(path), (double)limit->size / 0x1p20, (double)left / 0x1p20);
    return false;
}

/* Makes room for more bytes than *cap: for all of a plain file, else twice as many, and for one more than the most. If out of
 * memory, frees the buffer and returns NULL. */
static char *grow(char *data, const read_limit *limit, size_t *cap) {
    size_t wanted = *cap > SIZE_MAX / 2 - 1 ? SIZE_MAX - 1 : *cap * 2;
    if (limit->size >= *cap && limit->size < SIZE_MAX - 2)
        wanted = (size_t)limit->size + 1; /* the end is seen by reading past it */
    if (wanted > limit->most && limit->most < SIZE_MAX - 1)
        wanted = limit->most + 1;
    char *grown = realloc(data, wanted + 1);
    if (!grown)
        free(data);
    *cap = wanted;
    return grown;
}

/* True if a call was interrupted by a signal that does not end the program, as a change of the
 * terminal's size: it is made again. */
static bool was_interrupted(void) {
    return errno == EINTR && !process_stopped;
}

FILE *tool_open_input(const char *path) {
    FILE *f;
    do /* that of a pipe waits for its writer */
        f = ggl_os_fopen(path, "rb");
    while (!f && was_interrupted());
    return f;
}

/* Returns how many bytes were read, fewer than n at the end, or if reading fails. */
static size_t read_some(FILE *f, char *to, size_t n) {
    size_t got = fread(to, 1, n, f);
    while (got < n && ferror(f) && was_interrupted()) {
        clearerr(f);
        got += fread(to + got, 1, n - got, f);
    }
    return got;
}

static char *read_file(const char *tool, const char *path, text_kind kind, size_t most,
                       size_t *size) {
    const bool is_stdin = strcmp(path, "-") == 0;
    FILE *f = is_stdin ? stdin : tool_open_input(path);
    if (!f) {
        if (!process_stopped)
            tool_error_about(tool, 1, "%s: %s", path, strerror(errno));
        return NULL;
    }
    const read_limit limit = find_limit(f, most);
    size_t n = 0, cap = FIRST;
    bool ok = true;
    char *data = malloc(cap + 1);
    while (data && ok) {
        n += read_some(f, data + n, cap - n);
        if (n < cap || n > limit.most)
            break;
        if (n == FIRST)
            ok = begins_well(tool, path, kind, data, n) && fits(tool, path, &limit);
        if (ok)
            data = grow(data, &limit, &cap);
    }
    const int error = errno;
    if (!data) {
        tool_error_about(tool, 1, "%s: out of memory", name_of(path));
    } else if (ok && ferror(f)) {
        ok = false;
        if (!process_stopped)
            tool_error_about(tool, 1, "%s: %s", name_of(path), strerror(error));
    } else if (ok && n > limit.most) {
        ok = false;
        report_length(tool, path, &limit);
    }
    if (data && ok) {
        data[n] = '\0';
        *size = n;
    } else {
        free(data);
        data = NULL;
    }
    if (!is_stdin)
        fclose(f);
    return data;
}

char *tool_read_at_most(const char *tool, const char *path, size_t most, size_t *size) {
    return read_file(tool, path, BYTES, most, size);
}

char *tool_read_file(const char *tool, const char *path, size_t *size) {
    return read_file(tool, path, BYTES, SIZE_MAX, size);
}

/* Drops a byte order mark, in place. Refuses UTF-16 and UTF-32: frees the text, and returns NULL. */
static char *begin_text(const char *tool, const char *path, char *text, size_t *n) {
    if (!text)
        return NULL;
    const ggl_str all = {text, *n};
    const char *wide = llm_text_wide(all);
    if (wide) {
        tool_error_about(tool, 1, "%s: %s", name_of(path), wide);
        free(text);
        return NULL;
    }
    const ggl_str rest = llm_text_after_mark(all);
    if (rest.n < *n)
        memmove(text, rest.s, rest.n + 1);
    *n = rest.n;
    return text;
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
                     name_of(path), good, (unsigned char)s[good]);
}

static char *read_text(const char *tool, const char *path, text_kind kind, size_t most,
                       size_t *size) {
    return begin_text(tool, path, read_file(tool, path, kind, most, size), size);
}

char *tool_read_raw_text(const char *tool, const char *path, size_t most, size_t *size) {
    return read_text(tool, path, RAW_TEXT, most, size);
}

char *tool_read_any_text(const char *tool, const char *path, size_t *size) {
    char *text = read_text(tool, path, ANY_TEXT, SIZE_MAX, size);
    const ggl_str all = {text, text ? *size : 0};
    const bool may_be = text && text_length(text, *size) < *size && !llm_is_binary(all) &&
                        !llm_other_file_of(all); /* a text in another encoding */
    if (text && !may_be && !is_text(tool, path, text, *size)) {
        free(text);
        return NULL;
    }
    if (text)
        warn_of_bytes(tool, path, text, *size);
    return text;
}

char *tool_read_text(const char *tool, const char *path, size_t most, size_t *size) {
    char *text = read_text(tool, path, TEXT, most, size);
    if (text && !is_text(tool, path, text, *size)) {
        free(text);
        return NULL;
    }
    return text;
}
