/* The format of a file that is written, by the ending of its name. */
#ifndef TOOLS_OUTPUT_ENDING_H
#define TOOLS_OUTPUT_ENDING_H

enum { OUTPUT_REFUSED = -1 };

/* Endings with their dot; NULL ends a table, and its format is that of all others: one of the tool's, or OUTPUT_REFUSED. */
typedef struct output_ending {
    const char *end;
    int format;
} output_ending;

/* Sets *format by the ending of `path`, without regard to case; it stays if the name has no ending, which has a letter. Returns -1, or after a
 * message the exit code 2 if files with the ending are not written; advice: what to do instead. */
int output_ending_choose(const char *tool, const char *path, const output_ending *table,
                         const char *advice, int *format);

#endif
