/* Command lines: see args.h. */
#include "args.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ggl/alloc.h"
#include "ggl/nearest.h"
#include "ggl/number.h"

#ifndef TOOLS_VERSION
#define TOOLS_VERSION "unknown"
#endif

static tool_line line;

void tool_set_line(tool_line what) {
    line = what;
}

/* True if stdout and stderr go to the same terminal, pipe (2>&1) or file. */
static bool one_output(void) {
    struct stat out, error;
    return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &error) == 0 &&
           out.st_dev == error.st_dev && out.st_ino == error.st_ino;
}

/* Ends or erases a line begun on the terminal, so that an error starts on its own line. */
void tool_begin_line(void) {
    if (line == TOOL_LINE_PROGRESS)
        fputs("\r\033[K", stderr);
    else if (line == TOOL_LINE_TEXT && one_output())
        fputc('\n', stderr);
    line = TOOL_LINE_EMPTY;
}

int tool_error(const char *tool, int code, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    tool_begin_line();
    fprintf(stderr, "%s: ", tool);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    return code;
}

/* --- numbers --- */

static const char *skip_space(const char *s) {
    return s + strspn(s, " \t\r\n");
}

/* Reads an id at *s and the comma after it, if any, or stops at the end (']' or NUL). -1: no id. */
static int32_t next_id(const char **s) {
    int64_t id = -1;
    bool range;
    char digits[12] = "";
    size_t n = strspn(*s, "0123456789");
    if (n > 0 && n < sizeof digits) {
        memcpy(digits, *s, n);
        (void)args_read_int(digits, &id, &range);
    }
    *s = skip_space(*s + n);
    if (**s == ',')
        *s = skip_space(*s + 1);
    else if (**s != ']' && **s != '\0')
        return -1;
    return id > INT32_MAX ? -1 : (int32_t)id;
}

int tool_read_ids(const char *tool, const char *flag, const char *s, int32_t **id, size_t *n) {
    const char *at = skip_space(s);
    const char last = *at == '[' ? ']' : '\0';
    size_t cap = 0;
    int32_t next = 0;
    *id = NULL;
    *n = 0;
    if (last)
        at = skip_space(at + 1);
    while (next >= 0 && *at != last) {
        next = next_id(&at);
        if (!ggl_grow(id, &cap, *n + 1, sizeof **id)) {
            ggl_free(*id);
            *id = NULL;
            return tool_error(tool, 1, "out of memory");
        }
        (*id)[(*n)++] = next;
    }
    if (*n > 0 && next >= 0 && *skip_space(at + (last != '\0')) == '\0')
        return -1;
    ggl_free(*id);
    *id = NULL;
    *n = 0;
    return tool_error(tool, 2, "%s: '%s' is not a list of ids such as 1,2,3", flag, s);
}

bool args_read_uint64(const char *s, uint64_t *out, bool *range) {
    uint64_t v = 0;
    *range = false;
    if (*s == '\0')
        return false;
    for (const char *c = s; *c; c++)
        if (*c < '0' || *c > '9')
            return false;
    for (; *s; s++) {
        unsigned digit = (unsigned)(*s - '0');
        if (v > (UINT64_MAX - digit) / 10) {
            *range = true;
            return false;
        }
        v = v * 10 + digit;
    }
    *out = v;
    return true;
}

bool args_read_int(const char *s, int64_t *out, bool *range) {
    bool negative = *s == '-';
    uint64_t v;
    if (!args_read_uint64(s + (negative || *s == '+'), &v, range))
        return false;
    if (v > (uint64_t)INT64_MAX + negative) {
        *range = true;
        return false;
    }
    *out = negative ? (v > 0 ? -(int64_t)(v - 1) - 1 : 0) : (int64_t)v;
    return true;
}

bool args_read_float(const char *s, double *out, bool *range) {
    const size_t n = strlen(s);
    *range = false;
    if (n == 0 || ggl_number_length(s, n) != n)
        return false;
    const double v = ggl_number_value(s, n);
    if (!isfinite(v)) {
        *range = true;
        return false;
    }
    *out = v;
    return true;
}

/* --- names --- */

/* Returns the next of the space-separated spellings at *names. False: the end. */
static bool next_name(const char **names, const char **name, size_t *n) {
    *names += strspn(*names, " ");
    *name = *names;
    *n = strcspn(*names, " ");
    *names += *n;
    return *n > 0;
}

static bool is_among(const char *names, const char *s, size_t n_s) {
    const char *name;
    size_t n;
    while (names && next_name(&names, &name, &n))
        if (n == n_s && memcmp(name, s, n) == 0)
            return true;
    return false;
}

static const arg_option BUILT_IN[] = {
    {.names = "-h --help", .kind = ARG_FLAG, .help = "print this and exit"},
    {.names = "--version", .kind = ARG_FLAG, .help = "print the version and exit"},
    {0}};

static bool is_row(const arg_option *o) {
    return o->names || o->help;
}

static const arg_option *find_row(const arg_option *o, const char *s, size_t n) {
    for (; is_row(o); o++)
        if (is_among(o->names, s, n))
            return o;
    return NULL;
}

static const arg_option *find_option(const args_spec *spec, const char *s, size_t n) {
    const arg_option *o = find_row(spec->options, s, n);
    return o ? o : find_row(BUILT_IN, s, n);
}

const arg_option *args_find(const arg_option *options, const char *name) {
    return find_row(options, name, strlen(name));
}

enum { NAME_MAX_LENGTH = 63 };

size_t args_distance(const char *a, size_t n_a, const char *b, size_t n_b) {
    const bool too_long = n_a > NAME_MAX_LENGTH || n_b > NAME_MAX_LENGTH;
    return too_long ? SIZE_MAX : ggl_edit_distance(a, n_a, b, n_b);
}

/* Returns how far a typed flag is from a name; SIZE_MAX: too far for a typo. Any two short names
 * are near each other, so short ones must have the same letters. A long flag may be truncated. */
static size_t slip(const char *s, size_t n, const char *name, size_t n_name) {
    enum { SHORT = 4 };
    const size_t d = args_distance(s, n, name, n_name);
    if (n <= 2 || n_name <= 2)
        return SIZE_MAX;
    if (n > SHORT && n < n_name && memcmp(s, name, n) == 0)
        return 1;
    for (size_t i = 0; i < n && (n <= SHORT || n_name <= SHORT); i++)
        if (n != n_name || !memchr(name, s[i], n_name))
            return SIZE_MAX;
    return d < n / 3 + 1 ? d : SIZE_MAX;
}

static int unknown_option(const args_spec *spec, const char *s, size_t n) {
    const arg_option *tables[] = {spec->options, BUILT_IN};
    const char *best = NULL, *names, *name;
    size_t n_best = 0, n_name, d_best = SIZE_MAX;
    for (const arg_hint *h = spec->hints; h && h->names; h++)
        if (is_among(h->names, s, n))
            return tool_error(spec->tool, 2, "unknown flag '%.*s': %s", (int)n, s, h->text);
    for (int t = 0; t < 2; t++)
        for (const arg_option *o = tables[t]; is_row(o); o++)
            for (names = o->names; names && next_name(&names, &name, &n_name);) {
                const size_t d = slip(s, n, name, n_name);
                if (d < d_best) {
                    best = name;
                    n_best = n_name;
                    d_best = d;
                }
            }
    if (best)
        return tool_error(spec->tool, 2, "unknown flag '%.*s'; did you mean '%.*s'?", (int)n, s,
                          (int)n_best, best);
    return tool_error(spec->tool, 2, "unknown flag '%.*s'; --help lists them", (int)n, s);
}

/* --- values --- */

static bool list_add(arg_list *list, const char *s) {
    const char **grown = realloc(list->s, (list->n + 1) * sizeof *grown);
    if (!grown)
        return false;
    list->s = grown;
    list->s[list->n++] = s;
    return true;
}

void args_list_fini(arg_list *list) {
    free(list->s);
    *list = (arg_list){0};
}

static int out_of_range(const args_spec *spec, const arg_option *o, const char *flag, int n_flag,
                        const char *s) {
    if (o->min != o->max && o->kind == ARG_INT)
        return tool_error(spec->tool, 2, "%.*s: %s is out of range, %.0f to %.0f is allowed",
                          n_flag, flag, s, o->min, o->max);
    if (o->min != o->max)
        return tool_error(spec->tool, 2, "%.*s: %s is out of range, %.15g to %.15g is allowed",
                          n_flag, flag, s, o->min, o->max);
    return tool_error(spec->tool, 2, "%.*s: %s is out of range", n_flag, flag, s);
}

/* Returns the index of s among the option's choices; -1: it is none. */
static int find_choice(const arg_option *o, const char *s) {
    for (int i = 0; o->choices && o->choices[i]; i++)
        if (strcasecmp(o->choices[i], s) == 0)
            return i;
    return -1;
}

static int no_choice(const args_spec *spec, const arg_option *o, const char *flag, int n_flag,
                     const char *s) {
    char known[512] = "";
    for (int i = 0; o->choices[i]; i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "", o->choices[i]);
    }
    return tool_error(spec->tool, 2, "%.*s: '%s' is not one of %s", n_flag, flag, s, known);
}

/* Stores value s for option o. Returns -1, or the exit code after a message. */
static int read_value(const args_spec *spec, const arg_option *o, const char *flag, int n_flag,
                      const char *s) {
    bool range = false, ok = true;
    const char *what = "a number";
    int64_t i = 0;
    uint64_t u = 0;
    double f = 0;
    switch (o->kind) {
    case ARG_INT:
        ok = args_read_int(s, &i, &range);
        what = "a whole number";
        range = range || (ok && o->min != o->max && ((double)i < o->min || (double)i > o->max));
        break;
    case ARG_UINT64:
        ok = args_read_uint64(s, &u, &range);
        what = "a whole number of at least 0";
        break;
    case ARG_FLOAT:
        ok = args_read_float(s, &f, &range);
        range = range || (ok && o->min != o->max && (f < o->min || f > o->max));
        break;
    case ARG_CHOICE:
        *(int *)o->out = find_choice(o, s);
        return *(int *)o->out >= 0 ? -1 : no_choice(spec, o, flag, n_flag, s);
    case ARG_STRING:
    case ARG_LIST:
        if (!*s && !o->may_be_empty)
            return tool_error(spec->tool, 2, "%.*s: the value %s is empty", n_flag, flag,
                              o->value ? o->value : "");
        if (o->kind == ARG_STRING)
            *(const char **)o->out = s;
        else
            ok = list_add(o->out, s);
        return ok ? -1 : tool_error(spec->tool, 1, "out of memory");
    case ARG_MAYBE:
        if (o->choices && *s && find_choice(o, s) < 0)
            return no_choice(spec, o, flag, n_flag, s);
        *(const char **)o->out = o->choices && *s ? o->choices[find_choice(o, s)] : s;
        return -1;
    case ARG_FLAG:
    case ARG_UNFLAG:
        break;
    }
    if (range)
        return out_of_range(spec, o, flag, n_flag, s);
    if (!ok)
        return tool_error(spec->tool, 2, "%.*s: '%s' is not %s", n_flag, flag, s, what);
    if (o->kind == ARG_INT)
        *(int64_t *)o->out = i;
    else if (o->kind == ARG_UINT64)
        *(uint64_t *)o->out = u;
    else
        *(double *)o->out = f;
    return -1;
}

/* --- help --- */

enum { HELP_COLUMN = 24, HELP_WIDTH = 80 };

void tool_print_wrapped(const char *s, int at, int column) {
    int begin = at;
    while (*s) {
        int n = (int)strcspn(s, " \n");
        if (at > begin && at + 1 + n > HELP_WIDTH) {
            printf("\n%*s", column, "");
            begin = at = column;
        } else if (at > begin) {
            putchar(' ');
            at++;
        }
        printf("%.*s", n, s);
        at += n;
        s += n;
        s += *s != '\0';
    }
    putchar('\n');
}

static void print_option(const arg_option *o) {
    const char *names = o->names, *name;
    size_t n;
    int at = 2;
    if (!names) {
        putchar('\n');
        tool_print_wrapped(o->help, 0, 0);
        return;
    }
    printf("  ");
    for (const char *separator = ""; next_name(&names, &name, &n); separator = ", ")
        at += printf("%s%.*s", separator, (int)n, name);
    if (o->value)
        at += printf(o->kind == ARG_MAYBE ? "[=%s]" : " %s", o->value);
    if (at + 2 > HELP_COLUMN) {
        putchar('\n');
        at = 0;
    }
    printf("%*s", HELP_COLUMN - at, "");
    tool_print_wrapped(o->help ? o->help : "", HELP_COLUMN, HELP_COLUMN);
}

static void print_help(const args_spec *spec) {
    const int at = printf("usage: %s ", spec->tool);
    tool_print_wrapped(spec->usage, at, at);
    putchar('\n');
    tool_print_wrapped(spec->about, 0, 0);
    if (spec->options->names || !is_row(spec->options)) /* a heading has its own empty line */
        putchar('\n');
    for (const arg_option *o = spec->options; is_row(o); o++)
        print_option(o);
    for (const arg_option *o = BUILT_IN; is_row(o); o++)
        print_option(o);
}

/* --- parsing --- */

/* Reads the option argv[*i]; advances *i if its value is the next argument. Returns -1 or an
 * exit code. */
static int read_option(const args_spec *spec, int argc, char **argv, int *i) {
    const char *flag = argv[*i], *equals = strchr(flag, '=');
    size_t n = equals ? (size_t)(equals - flag) : strlen(flag);
    const arg_option *o = find_option(spec, flag, n);
    if (!o)
        return unknown_option(spec, flag, n);
    bool takes_none = o->kind == ARG_FLAG || o->kind == ARG_UNFLAG;
    if (takes_none && equals)
        return tool_error(spec->tool, 2, "%.*s does not accept a value", (int)n, flag);
    if (o->given)
        *o->given = true;
    if (o == &BUILT_IN[0]) {
        print_help(spec);
        return tool_finish(spec->tool, 0);
    }
    if (o == &BUILT_IN[1]) {
        printf("%s %s\n", spec->tool, TOOLS_VERSION);
        return tool_finish(spec->tool, 0);
    }
    if (takes_none) {
        *(bool *)o->out = o->kind == ARG_FLAG;
        return -1;
    }
    const bool maybe =
        o->kind == ARG_MAYBE && !(*i + 1 < argc && find_choice(o, argv[*i + 1]) >= 0);
    const char *value = equals ? equals + 1 : maybe ? "" : NULL;
    if (!value && *i + 1 < argc && !find_option(spec, argv[*i + 1], strlen(argv[*i + 1])))
        value = argv[++*i];
    if (!value)
        return tool_error(spec->tool, 2, "%.*s: the value %s is missing", (int)n, flag,
                          o->value ? o->value : "");
    const int code = read_value(spec, o, flag, (int)n, value);
    double number;
    bool range;
    if (code < 0 && o->number_follows && *i + 1 < argc &&
        args_read_float(argv[*i + 1], &number, &range))
        return read_value(spec, o, flag, (int)n, argv[++*i]);
    return code;
}

int args_parse(const args_spec *spec, int argc, char **argv) {
    bool options = true;
    for (int i = 1; i < argc; i++) {
        const char *s = argv[i];
        int code = -1;
        if (options && strcmp(s, "--") == 0)
            options = false;
        else if (options && s[0] == '-' && s[1] != '\0')
            code = read_option(spec, argc, argv, &i);
        else if (!spec->positional)
            code = tool_error(spec->tool, 2, "unexpected argument '%s'; see --help", s);
        else if (!*s)
            code = tool_error(spec->tool, 2, "argument %zu is empty; usage: %s %s",
                              spec->positional->n + 1, spec->tool, spec->usage);
        else if (!list_add(spec->positional, s))
            code = tool_error(spec->tool, 1, "out of memory");
        if (code >= 0)
            return code;
    }
    return -1;
}

/* --- streams --- */

static int lost_error;
static bool lost_reported;

void tool_output_lost(int error) {
    if (!lost_error)
        lost_error = error;
}

int tool_finish(const char *tool, int code) {
    errno = 0;
    bool lost = fflush(stdout) != 0;
    int error = lost_error ? lost_error : errno;
    if (!lost && !ferror(stdout))
        return code;
    if (error != EPIPE && !lost_reported)
        tool_error(tool, 1, "could not write to stdout%s%s", error ? ": " : "",
                   error ? strerror(error) : "");
    lost_reported = true;
    return code != 0 ? code : 1;
}
