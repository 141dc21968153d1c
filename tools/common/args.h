/* Command lines of the tools: a table of options, whose values are read into variables that hold
 * the defaults.
 *
 *     double temp = 0.8;
 *     bool verbose = false;
 *     const arg_option options[] = {
 *         {"--temp", ARG_FLOAT, &temp, .value = "T", .help = "randomness", .max = 100},
 *         {"-v --verbose", ARG_FLAG, &verbose, .help = "say more"},
 *         {0}};
 *     const args_spec spec = {"llm-cli", "-m MODEL [options]", "Runs a model.", options, NULL};
 *     int code = args_parse(&spec, argc, argv);
 *     if (code >= 0)
 *         return code; */
#ifndef TOOLS_ARGS_H
#define TOOLS_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The largest value of -t in all tools. */
enum { TOOL_MAX_THREADS = 512 };

typedef enum arg_kind {
    ARG_FLAG,   /* bool: set to true */
    ARG_UNFLAG, /* bool: set to false */
    ARG_INT,    /* int64_t, decimal */
    ARG_UINT64, /* uint64_t, decimal */
    ARG_FLOAT,  /* double, finite */
    ARG_STRING, /* const char *, borrowed from argv */
    ARG_MAYBE,  /* the same, but as --flag=value, or --flag value for one of the choices, if it has
                 * some; --flag alone is "" */
    ARG_CHOICE, /* int: index into `choices` */
    ARG_LIST    /* arg_list: repeatable strings */
} arg_kind;

/* Strings in the order given. args_list_fini frees the array; the strings belong to argv. */
typedef struct arg_list {
    const char **s;
    size_t n;
} arg_list;

typedef struct arg_option {
    /* Spellings, separated by spaces: "-n --predict". NULL with help: a heading in the help. */
    const char *names;
    arg_kind kind;
    void *out;
    const char *value; /* the value's name in the help: "N" */
    const char *help;
    double min, max; /* ARG_INT, ARG_FLOAT: the allowed range, inclusive; min = max: any */
    const char *const *choices; /* ARG_CHOICE, ARG_MAYBE: the allowed values; ends with NULL */
    bool *given;                /* may be NULL; set to true if the option is given */
    bool may_be_empty;          /* ARG_STRING, ARG_LIST: allow "" */
    /* ARG_LIST: if the next argument is a number, it belongs to the option, too, and becomes the
     * list's next string. */
    bool number_follows;
} arg_option;

/* How a flag of another program is answered. */
typedef enum arg_hint_kind {
    HINT_REFUSED,       /* an error; the text says what to do instead */
    HINT_SAME,          /* a spelling of an option here, which is the text; perhaps with its value:
                   * "--max-tokens", and "--color=always" */
    HINT_NOTHING,       /* accepted with a note; the text says why the flag changes nothing */
    HINT_NOTHING_VALUE, /* the same for a flag with a value, which is skipped */
    HINT_NOTHING_SWITCH /* the same for a flag whose value, such as on, off and auto, may be absent */
} arg_hint_kind;

/* A flag of another program that people may type here. */
typedef struct arg_hint {
    /* Spellings, separated by spaces. "-ngl=all" stands for the flag with this value, after a space
     * or '=', and comes before an option of that name. '*' stands for any text. A word without a dash is a command, such as
     * "run" in `ollama run`. */
    const char *names;
    const char *text;
    arg_hint_kind kind;
} arg_hint;

typedef struct args_spec {
    const char *tool;          /* "llm-cli" */
    const char *usage;         /* the usage line after the tool's name */
    const char *about;         /* a sentence or more */
    const arg_option *options; /* ends with an empty row; --help and --version are added */
    arg_list *positional;      /* NULL: no positional arguments */
    const arg_hint *hints;     /* ends with an empty row; may be NULL */
} args_spec;

/* Reads argv[1..argc). Returns -1 to continue, else the tool's exit code: 0 after --help or
 * --version on stdout, 1 if these could not be written, 2 after an error, reported on stderr.
 * `--flag=value` equals `--flag value`, also for short flags; `--` ends the options; in long flags,
 * `_` stands for `-`. A value that is itself an option's spelling must be given with `=`. An option
 * that is no list may be repeated only with the same value. Flags of other programs that change
 * nothing here, and variables of the environment that only those programs read, get a note on
 * stderr. */
int args_parse(const args_spec *spec, int argc, char **argv);
/* Reports an argument that is neither an option nor the value of one, with what was probably meant:
 * a model, or a prompt. Returns 2. */
int args_unexpected(const args_spec *spec, const char *s);
void args_list_fini(arg_list *list);
/* Returns the row of a table that has the spelling; NULL: none. */
const arg_option *args_find(const arg_option *options, const char *name);

/* Returns the edits that turn a into b: insert, delete, replace, or swap neighbors (optimal
 * string alignment). SIZE_MAX for words of more than 63 bytes. */
size_t args_distance(const char *a, size_t n_a, const char *b, size_t n_b);

/* Read a number that must be the whole string, decimal and finite. False: it is not, or, with
 * *range set, it is too large for its type. */
bool args_read_int(const char *s, int64_t *out, bool *range);
bool args_read_uint64(const char *s, uint64_t *out, bool *range);
bool args_read_float(const char *s, double *out, bool *range);

/* Reads token ids, "1,2,3" or as JSON "[1, 2, 3]", at least one. Returns -1 with *n ids in *id,
 * which the caller frees with ggl_free; else the tool's exit code after an error on stderr. */
int tool_read_ids(const char *tool, const char *flag, const char *s, int32_t **id, size_t *n);

/* Prints a text whose first line starts at column `at`, wrapped at 80 columns; further lines
 * start at `column`. Line ends in the text count as spaces. Ends with a newline. */
void tool_print_wrapped(const char *s, int at, int column);

/* Prints "tool: message" on a line of its own on stderr; returns `code`. */
#if defined(__GNUC__) || defined(__clang__)
__attribute__((format(printf, 3, 4)))
#endif
int tool_error(const char *tool, int code, const char *fmt, ...);

/* What the terminal's last line contains; tool_error starts a new line accordingly (progress.c). */
typedef enum tool_line {
    TOOL_LINE_EMPTY,
    TOOL_LINE_TEXT,    /* output, if stderr goes to the same place; kept */
    TOOL_LINE_PROGRESS /* on stderr; erased */
} tool_line;
void tool_set_line(tool_line what);
void tool_begin_line(void); /* ends or erases that line, as tool_error does */

/* Records the errno of a failed write to stdout, for tool_finish's message. */
void tool_output_lost(int error);

/* Flushes stdout at the end of main. Returns `code`, or 1 with a message if output was lost
 * (e.g. a full disk). A closed pipe gives no message, because the reader closed it on purpose,
 * but still 1. */
int tool_finish(const char *tool, int code);

#endif
