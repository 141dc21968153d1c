/* See report.h. */
#include "report.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "char_width.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_stream.h"
#include "ggl/internal/os_terminal.h"
#include "ggl/internal/show.h"
#include "process.h"

static _Thread_local struct {
    char *s;
    size_t size;
} copy;

void tool_copy_errors(char *buf, size_t size) {
    copy.s = buf;
    copy.size = size;
}

/* Returns the length of a path of the command line that begins at s and has spaces, and of what the message appends to it, as in
 * "my model.gguf.train:"; 0: there is none. */
static size_t typed_length(const char *s) {
    size_t longest = 0;
    const char *word = process_typed(0);
    for (int i = 1; word && (word = process_typed(i)); i++) {
        const char *value = *word == '-' ? strchr(word, '=') : NULL; /* --flag=value */
        word = value ? value + 1 : word;
        const size_t n = strlen(word);
        if (n > longest && strchr(word, ' ') && !strchr(word, '\n') && strncmp(s, word, n) == 0)
            longest = n;
    }
    return longest ? longest + strcspn(s + longest, " \n") : 0;
}

/* Returns the length of the word at s. What is quoted, or was typed so, is one word, so that it can be copied: 'a file.gguf'. */
static int word_length(const char *s) {
    const size_t n_typed = typed_length(s);
    if (n_typed > 0)
        return (int)n_typed;
    const bool quoted = *s && strchr("'\"`", *s);
    for (const char *end = s;
         quoted && (end = strpbrk(end + 1, (char[]){*s, '\n', 0})) && *end == *s;)
        if (end > s + 1 && !isalnum((unsigned char)end[1])) /* else it is as in "model's" */
            return (int)(end - s + 1 + (int)strcspn(end + 1, " \n"));
    return (int)strcspn(s, " \n");
}

/* As word_length, with what belongs to the word, so that neither is read alone: "key = value", and a flag's value. */
static int unit_length(const char *s) {
    const int n = word_length(s);
    int end = n; /* of "key", or of "key (--flag)" */
    if (strncmp(s + n, " (", 2) == 0)
        end += 2 + (int)strcspn(s + n + 2, ")\n") + 1;
    if (end > n && s[end - 1] != ')')
        end = n;
    if (strncmp(s + end, " = ", 3) == 0 && s[end + 3])
        return end + 3 + word_length(s + end + 3);
    const bool is_flag = *s == '-' && (s[1] == '-' || isalpha((unsigned char)s[1]));
    if (!is_flag || s[n] != ' ' || !s[n + 1] || s[n + 1] == '-' ||
        !isalnum((unsigned char)s[n - 1]))
        return n;
    return n + 1 + word_length(s + n + 1);
}

/* Prints a text from column `at` on, broken at spaces; what does not fit goes on in `column` below. Width 0: there is no limit. */
static void print_wrapped(FILE *f, const char *s, int at, int column, int width) {
    int begin = at;
    while (*s) {
        const int unit = unit_length(s), fits = char_columns(s, (size_t)unit) <= width - column,
                  n = fits ? unit : word_length(s), columns = char_columns(s, (size_t)n);
        if (width > 0 && at > begin && at + 1 + columns > width) {
            fprintf(f, "\n%*s", column, "");
            begin = at = column;
        } else if (at > begin) {
            fputc(' ', f);
            at++;
        }
        fprintf(f, "%.*s", n, s);
        at += columns;
        s += n;
        s += *s != '\0';
    }
    fputc('\n', f);
}

int tool_columns(FILE *f) {
    enum { LEAST = 40 };
    const int fd = ggl_os_fileno(f), n = ggl_os_is_terminal(fd) ? ggl_os_terminal_columns(fd) : 0;
    return n >= LEAST ? n : 0;
}

enum { INDENT = 4 }; /* of what goes on below */

/* Prints the lines of a message, and breaks long ones at spaces if the width is not 0. Lines that begin with a space, or with a number and '|',
 * show code or a list, and stay as they are. */
static void print_lines(FILE *to, char *text, int width) {
    for (char *s = text, *next; *s; s = next) {
        const size_t n = strcspn(s, "\n");
        next = s + n + (s[n] == '\n');
        s[n] = '\0';
        if (*s == ' ' || s[strspn(s, " 0123456789")] == '|' || strchr(s, '\t'))
            fprintf(to, "%s\n", s);
        else
            print_wrapped(to, s, 0, INDENT, width);
    }
}

int tool_error(const char *tool, int code, const char *fmt, ...) {
    char text[8192];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    const char *place = strstr(tool, ": "); /* "llm-server: FILE:LINE" */
    if (copy.s)
        snprintf(copy.s, copy.size, "%s%s%s", place ? place + 2 : "", place ? ": " : "", text);
    tool_begin_line();
    /* in one piece, as ranks of a job have the same standard error */
    os_memory_stream line;
    const bool in_memory = ggl_os_memory_stream_open(&line);
    FILE *to = in_memory ? line.to : stderr;
    fprintf(to, "%s: ", tool);
    /* names of files may have any bytes; lines and tabs are the message's own */
    for (const char *s = text; *s;) {
        const int n = (int)strcspn(s, "\n\t");
        ggl_fprint(to, "%.*s", n, s);
        s += n;
        if (*s)
            fputc(*s++, to);
    }
    fputc('\n', to);
    const int width = tool_columns(stderr);
    if (in_memory && ggl_os_memory_stream_close(&line)) {
        os_memory_stream broken = {0};
        const bool breaks = width > 0 && ggl_os_memory_stream_open(&broken);
        if (breaks)
            print_lines(broken.to, line.text, width);
        if (breaks && ggl_os_memory_stream_close(&broken))
            fwrite(broken.text, 1, broken.n, stderr);
        else
            fwrite(line.text, 1, line.n, stderr);
        free(broken.text);
    }
    free(line.text);
    return code;
}

int tool_error_about(const char *tool, int code, const char *fmt, ...) {
    char text[8192];
    va_list args;
    va_start(args, fmt);
    ggl_vformat(text, sizeof text, fmt, args);
    va_end(args);
    return tool_error(tool, code, "%s", text);
}

/* On a terminal, a long message is broken at spaces. */
static void print_message(const char *tool, const char *kind, const char *fmt, va_list args) {
    char text[4096];
    const int width = tool_columns(stderr);
    ggl_vformat(text, sizeof text, fmt, args);
    char before[256];
    snprintf(before, sizeof before, "%s%s%s%s", tool ? tool : "", tool ? ": " : "",
             kind ? kind : "", kind ? ": " : "");
    tool_begin_line();
    if (width > 0)
        print_wrapped(stderr, text, fprintf(stderr, "%s", before), INDENT, width);
    else
        fprintf(stderr, "%s%s\n", before, text);
}

static const char *name;

void tool_set_name(const char *tool) {
    name = tool;
}

void tool_note(const char *tool, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    if (!tool_is_quiet())
        print_message(tool ? tool : name, "note", fmt, args);
    va_end(args);
}

void tool_warning(const char *tool, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    print_message(tool, "warning", fmt, args);
    va_end(args);
}

void tool_say(const char *tool, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    if (!tool_is_quiet())
        print_message(tool ? tool : name, NULL, fmt, args);
    va_end(args);
}

void tool_print_notes(const char *lines) {
    static const char kind[] = "note: ";
    for (const char *s = lines; *s && !tool_is_quiet();) {
        s += strncmp(s, kind, sizeof kind - 1) == 0 ? sizeof kind - 1 : 0;
        const int n = (int)strcspn(s, "\n");
        tool_note(NULL, "%.*s", n, s);
        s += n + (s[n] == '\n');
    }
}

/* --- texts --- */

int tool_width(void) {
    enum { LEAST = 40, MOST = 100, UNKNOWN = 80 };
    const char *columns = getenv("COLUMNS");
    int n = ggl_os_terminal_columns(OS_STDOUT);
    if (n == 0 && columns)
        n = (int)strtol(columns, NULL, 10);
    if (n <= 0)
        return UNKNOWN;
    return n < LEAST ? LEAST : n > MOST ? MOST : n;
}

void tool_print_wrapped(const char *s, int at, int column) {
    print_wrapped(stdout, s, at, column, tool_width());
}

void tool_print_line(const char *s, int at, int column) {
    print_wrapped(stdout, s, at, column, ggl_os_is_terminal(OS_STDOUT) ? tool_width() : 0);
}

void tool_print_item(const char *label, const char *fmt, ...) {
    enum { COLUMN = 13 };
    char text[2048];
    va_list args;
    va_start(args, fmt);
    ggl_vformat(text, sizeof text, fmt, args);
    va_end(args);
    printf("%-*s", COLUMN, label);
    tool_print_wrapped(text, COLUMN, COLUMN);
}

/* --- streams --- */

static int lost_error;
static bool lost_reported;

void tool_output_lost(int error) {
    if (!lost_error)
        lost_error = error;
}

/* A window that closes with the program is left open for what stands in it. */
static void hold_window(void) {
    static bool held;
    if (held || process_stopped || !process_was_clicked() || !ggl_os_is_terminal(OS_STDIN))
        return;
    held = true;
    ggl_fprint(stderr, "\npress Enter to close this window\n");
    while (getchar() != '\n' && !feof(stdin) && !ferror(stdin))
        ;
}

/* Returns why stdout cannot be written, if it fails again. A large piece is written past the buffer: its error is only a mark of the
 * stream, and nothing is left to flush. */
static int ask_why(void) {
    clearerr(stdout);
    errno = 0;
    return putchar('\n') == EOF || fflush(stdout) != 0 ? errno : 0;
}

/* Returns the code, or another one if what was written did not arrive. */
static int flush_all(const char *tool, int code) {
    errno = 0;
    bool lost = fflush(stdout) != 0;
    int error = lost_error ? lost_error : errno;
    if (!lost && !ferror(stdout))
        return code;
    if (!error)
        error = ask_why();
    if (error != EPIPE && !lost_reported)
        tool_error(tool, 1, "could not write to stdout%s%s", error ? ": " : "",
                   error ? strerror(error) : "");
    lost_reported = true;
    return code != 0 ? code : 1;
}

int tool_finish(const char *tool, int code) {
    if (code == 1 && process_stopped) /* what failed was interrupted, as the reading of a pipe */
        code = process_stop_code();
    code = flush_all(tool, code);
    hold_window();
    return code;
}
