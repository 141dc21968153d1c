/* Command lines of the tools: a table of options, read into variables that hold the defaults
 * before.
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
 *         return code;
 */
#ifndef TOOLS_ARGS_H
#define TOOLS_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The most that -t of any tool takes. */
enum { TOOL_MAX_THREADS = 512 };

typedef enum arg_kind {
    ARG_FLAG,   /* bool: given makes it true */
    ARG_UNFLAG, /* bool: given makes it false */
    ARG_INT,    /* int64_t, decimal */
    ARG_UINT64, /* uint64_t, decimal */
    ARG_FLOAT,  /* double, finite */
    ARG_STRING, /* const char *, borrowed from argv */
    ARG_MAYBE,  /* the same, as --flag=value only; --flag alone is "" */
    ARG_CHOICE, /* int: index into `choices` */
    ARG_LIST    /* arg_list: repeatable strings */
} arg_kind;

/* Strings in the order given; args_list_fini frees the array (the strings are argv's). */
typedef struct arg_list {
    const char **s;
    size_t n;
} arg_list;

typedef struct arg_option {
    const char *names; /* spellings, separated by spaces: "-n --predict". NULL with help: a heading
                          in the help */
    arg_kind kind;
    void *out;
    const char *value; /* what the help calls the value: "N" */
    const char *help;
    double min, max; /* ARG_INT, ARG_FLOAT: allowed range, both ends included; min = max: any */
    const char *const *choices; /* ARG_CHOICE: NULL at the end */
    bool *given;                /* may be NULL: set when the option appears */
    bool may_be_empty;          /* ARG_STRING, ARG_LIST: "" is a value; else it is an error */
} arg_option;

/* A flag of another program that people type here. */
typedef struct arg_hint {
    const char *names; /* spellings, separated by spaces */
    const char *text;  /* what to do instead */
} arg_hint;

typedef struct args_spec {
    const char *tool;          /* "llm-cli" */
    const char *usage;         /* what follows the tool's name in the usage line */
    const char *about;         /* a sentence or more */
    const arg_option *options; /* an empty row ends them; --help and --version are added */
    arg_list *positional;      /* NULL: there are none */
    const arg_hint *hints;     /* an empty row ends them; NULL: there are none */
} args_spec;

/* Reads argv[1..argc). -1: go on; else the tool's exit code: 0 after --help or --version on stdout,
 * 1 if that could not be written, 2 after an error, told on stderr. `--flag=value` is the same as
 * `--flag value`, also for short flags; `--` ends the options. A value that itself spells an option
 * must be given with
 * `=`. */
int args_parse(const args_spec *spec, int argc, char **argv);
void args_list_fini(arg_list *list);

/* Edits that turn a into b: insert, delete, replace, or swap neighbours (optimal string alignment);
 * SIZE_MAX for words of more than 63 bytes. */
size_t args_distance(const char *a, size_t n_a, const char *b, size_t n_b);

/* Strict numbers: the whole string, decimal, finite. False: not such a number, or (*range set) too
 * large for its type. */
bool args_read_int(const char *s, int64_t *out, bool *range);
bool args_read_uint64(const char *s, uint64_t *out, bool *range);
bool args_read_float(const char *s, double *out, bool *range);

/* Token ids as a flag gives them: "1,2,3", or as JSON, "[1, 2, 3]"; at least one. -1: *n of them are in *id, the caller's
 * (ggl_free); else the tool's exit code after an error, which is reported on stderr. */
int tool_read_ids(const char *tool, const char *flag, const char *s, int32_t **id, size_t *n);

/* Prints text that stands from column `at` on, in lines of at most 80 columns; further lines begin in
 * `column`, and ends of lines in the text are spaces. Ends by a newline. */
void tool_print_wrapped(const char *s, int at, int column);

/* "tool: message" on stderr, on a line of its own; returns `code`. */
#if defined(__GNUC__) || defined(__clang__)
__attribute__((format(printf, 3, 4)))
#endif
int tool_error(const char *tool, int code, const char *fmt, ...);

/* What stands on the terminal's last line, for tool_error to begin after. */
typedef enum tool_line {
    TOOL_LINE_EMPTY,
    TOOL_LINE_TEXT,    /* output, if stderr goes to the same place: kept */
    TOOL_LINE_PROGRESS /* on stderr: erased */
} tool_line;
void tool_set_line(tool_line what);
void tool_begin_line(void); /* what tool_error does about it before it prints */

/* Keeps the errno of a write to stdout that failed, so that tool_finish can say why. */
void tool_output_lost(int error);

/* Flushes stdout at the end of main: `code`, or 1 with a message if anything that was printed got
 * lost (a full disk). A closed pipe is silent, as the reader wanted it so, but still 1. */
int tool_finish(const char *tool, int code);

#endif
