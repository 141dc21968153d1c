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

#include "arg_table.h"
#include "report.h"

/* The largest value of -t in all tools. */
enum { TOOL_MAX_THREADS = 512 };

/* Reads argv[1..argc). Returns -1 to continue, else the tool's exit code: 0 after --help or
 * --version on stdout, 1 if these could not be written, 2 after an error, reported on stderr.
 * `--flag=value` equals `--flag value`, also for short flags; `--` ends the options; in long flags,
 * `_` stands for `-`. A value that is itself an option's spelling must be given with `=`. An option
 * that is no list may be repeated only with the same value. Flags of other programs that change
 * nothing here, and variables of the environment that only those programs read, get a note on
 * stderr. */
int args_parse(const args_spec *spec, int argc, char **argv);
/* The same, with from `least` to `most` arguments without a flag. On success they are in
 * *spec->positional, which the caller frees with args_list_fini. */
int args_parse_between(const args_spec *spec, size_t least, size_t most, int argc, char **argv);
/* Reports an argument that is neither an option nor the value of one, with what was probably meant:
 * a model, or a prompt. next: the argument after it, or NULL: the model of a command such as `run`. Returns 2. */
int args_unexpected(const args_spec *spec, const char *s, const char *next);
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

#endif
