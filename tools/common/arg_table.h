/* Tables of options: what args.h reads, and what help, manual pages and completion are made of. */
#ifndef TOOLS_ARG_TABLE_H
#define TOOLS_ARG_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
    ARG_WORD,   /* const char *: one of `choices` */
    ARG_LIST    /* arg_list: repeatable strings */
} arg_kind;

enum { ARG_TYPED = 32 };

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
    const char *const
        *choices;          /* ARG_CHOICE, ARG_WORD, ARG_MAYBE: the allowed values; ends with NULL */
    const char *no_choice; /* what the message about another value adds; may be NULL */
    bool *given;           /* may be NULL; set to true if the option is given */
    char *typed; /* ARG_TYPED bytes for the spelling that was typed, for messages; may be NULL */
    const char
        *missing;      /* ARG_STRING: the value if none follows the flag; NULL: that is an error */
    bool may_be_empty; /* ARG_STRING, ARG_LIST: allow "" */
    bool hidden;       /* in the manual page, but not in --help */
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
    unsigned tools; /* the bits of the tools that have it */
    /* Spellings, separated by spaces. "-ngl=all" stands for the flag with this value, after a space
     * or '=', and comes before an option of that name. '*' stands for any text. A word without a dash is a command, such as
     * "run" in `ollama run`. */
    const char *names;
    const char *text;
    arg_hint_kind kind;
} arg_hint;

/* A tool's hints among a table for several tools. */
typedef struct arg_hints {
    const arg_hint *row; /* ends with an empty row */
    unsigned tool;       /* its bit */
} arg_hints;

/* A command line to copy, and a sentence about it. --version may be appended to the command. */
typedef struct args_example {
    const char *command; /* "llm-cli -m model.gguf" */
    const char *text;    /* "chats with a model" */
} args_example;

/* A command of a tool: the first argument, as "make" in `llm-bench make`. */
typedef struct args_command {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is the command's name; returns the exit code */
    const char *about;                 /* "writes a model with random weights" */
} args_command;

/* The values of an argument without a flag, by its name in the usage line: TYPE. */
typedef struct args_operand {
    const char *name;
    const char *const *choices; /* ends with NULL */
} args_operand;

typedef struct args_spec {
    const char *tool;          /* "llm-cli"; of a command, "llm-bench make" */
    const char *usage;         /* the usage line after the tool's name */
    const char *about;         /* a sentence or more; the manual page's title is the first */
    const arg_option *options; /* ends with an empty row; args_built_in are added */
    arg_list *positional;      /* NULL: no positional arguments */
    const arg_hints *hints;    /* may be NULL */

    /* The tables below end with an empty row, too, and may be NULL. */
    const args_example *examples;
    const args_command *commands;
    const args_operand *operands; /* those of the usage line that have choices */
    void (*print_more)(void);     /* prints what the help says beside the tables */
    const char *contains;         /* what --version says in a second line; NULL: nothing */
    bool last_wins; /* an option that is repeated has the last of its values; else it is an error */
} args_spec;

/* What every tool has; indices of args_built_in. */
enum { ARGS_HELP, ARGS_VERSION, ARGS_QUIET, ARGS_COMPLETION, ARGS_MAN };
extern const arg_option args_built_in[];

/* How a program that completes command lines finds values. */
typedef enum arg_value {
    ARG_VALUE_NONE,  /* the option has none */
    ARG_VALUE_TEXT,  /* of the user's own */
    ARG_VALUE_WORDS, /* the choices */
    ARG_VALUE_FILE,  /* also for what may be a file or something else */
    ARG_VALUE_MODEL, /* a GGUF file */
    ARG_VALUE_FOLDER
} arg_value;
/* For ARG_MAYBE: what the value is if there is one. */
arg_value arg_value_of(const arg_option *o);

/* An argument without a flag, read from a usage line. */
typedef struct arg_operand {
    const char *name; /* "OUT.gguf"; not terminated */
    size_t n;
    arg_value value;
    const char *const *choices; /* ARG_VALUE_WORDS */
} arg_operand;
/* Reads the next operand of the usage line at *usage, at first spec->usage: words in capitals that
 * follow no flag. False: the end. */
bool arg_next_operand(const args_spec *spec, const char **usage, arg_operand *out);

/* True if o is a row: not the empty one at the end. */
bool arg_is_row(const arg_option *o);
/* Returns the next of the space-separated spellings at *names. False: the end. */
bool arg_next_name(const char **names, const char **name, size_t *n);
/* True if s is one of the spellings; names may be NULL. */
bool arg_is_among(const char *names, const char *s, size_t n);
/* Returns the row of a table that has the spelling; NULL: none. */
const arg_option *arg_find(const arg_option *o, const char *s, size_t n);
/* Returns the index of s, upper or lower case, among the option's choices; -1 if it is not a
 * choice. */
int arg_find_choice(const arg_option *o, const char *s);
/* Returns the tool's hint after h, its first one after NULL; NULL: there is no further one. */
const arg_hint *arg_next_hint(const args_spec *spec, const arg_hint *h);
/* Returns the command of that name; NULL: none. commands may be NULL. */
const args_command *args_find_command(const args_command *commands, const char *name);
/* Returns the name of a command that the word may have been meant as; NULL: none is near. commands may be NULL. */
const char *args_near_command(const args_command *commands, const char *word);

#endif
