/* See help.h. */
#include "help.h"

#include <stdio.h>
#include <string.h>

#include "ggl/internal/text.h"
#include "report.h"

/* The options that every tool has, and the examples, are groups like those of the table. */
static const char BUILT_IN[] = "general", COMMANDS[] = "commands", EXAMPLES[] = "examples";

/* Texts begin at this column; narrow terminals have them on a line of their own. */
static int text_column(void) {
    enum { NARROW = 60, COLUMN = 24, INDENT = 8 };
    return tool_width() < NARROW ? INDENT : COLUMN;
}

static void print_heading(const char *heading) {
    putchar('\n');
    tool_print_wrapped(heading, 0, 0);
}

/* Prints `text`, wrapped, starting at `column`; the current line has reached column `at`. */
static void print_text(const char *text, int at, int column) {
    if (at + 2 > column) {
        putchar('\n');
        at = 0;
    }
    printf("%*s", column - at, "");
    tool_print_wrapped(text, column, column);
}

static void print_option(const arg_option *o) {
    const char *names = o->names, *name;
    size_t n;
    int at = 2;
    printf("  ");
    for (const char *separator = ""; arg_next_name(&names, &name, &n); separator = ", ")
        at += printf("%s%.*s", separator, (int)n, name);
    if (o->value)
        at += printf(o->kind == ARG_MAYBE ? "[=%s]" : o->missing ? " [%s]" : " %s", o->value);
    print_text(o->help ? o->help : "", at, text_column());
}

/* Prints the rows up to the next heading. */
static void print_rows(const arg_option *o) {
    for (; arg_is_row(o) && o->names; o++)
        if (!o->hidden)
            print_option(o);
}

static void print_commands(const args_spec *spec) {
    int widest = 0;
    for (const args_command *c = spec->commands; c->name; c++)
        widest = (int)strlen(c->name) > widest ? (int)strlen(c->name) : widest;
    for (const args_command *c = spec->commands; c->name; c++)
        print_text(c->about, printf("  %s", c->name), widest + 4);
    printf("\n%s COMMAND --help prints the options of a command.\n", spec->tool);
}

static void print_examples(const args_spec *spec) {
    enum { INDENT = 2, DEEPER = 6 };
    for (const args_example *e = spec->examples; e->command; e++) {
        printf("%*s%s\n%*s", INDENT, "", e->command, DEEPER, "");
        tool_print_wrapped(e->text, DEEPER, DEEPER);
    }
}

bool help_groups(const args_spec *spec, char *text, size_t size) {
    size_t n = 0;
    for (const arg_option *o = spec->options; arg_is_row(o); o++) {
        if (o->names)
            continue;
        /* a heading may explain more than its name */
        n += (size_t)snprintf(text + n, size - n, "%s%.*s", n > 0 ? ", " : "",
                              (int)strcspn(o->help, ";,"), o->help);
        n = n < size ? n : size - 1;
    }
    return n > 0;
}

/* Prints the names of the groups. Returns false if the table has no groups. */
static bool print_groups(const args_spec *spec) {
    char groups[512], text[600];
    if (!help_groups(spec, groups, sizeof groups))
        return false;
    snprintf(text, sizeof text, "Groups of options (--help GROUP prints only that group): %s",
             groups);
    putchar('\n');
    tool_print_wrapped(text, 0, 0);
    return true;
}

void help_print(const args_spec *spec) {
    const int at = printf("usage: %s ", spec->tool);
    tool_print_wrapped(spec->usage, at, at);
    putchar('\n');
    tool_print_wrapped(spec->about, 0, 0);
    const bool groups = print_groups(spec);
    if (spec->commands) {
        print_heading(COMMANDS);
        print_commands(spec);
    }
    if (!groups || spec->options->names) /* a heading has its own empty line */
        putchar('\n');
    print_rows(spec->options);
    for (const arg_option *o = spec->options; arg_is_row(o); o++)
        if (!o->names) {
            print_heading(o->help);
            print_rows(o + 1);
        }
    if (groups)
        print_heading(BUILT_IN);
    print_rows(args_built_in);
    if (spec->print_more)
        spec->print_more();
    if (spec->examples) {
        print_heading(EXAMPLES);
        print_examples(spec);
    }
}

static bool begins_with(const char *heading, const char *word) {
    return *word && ggl_case_compare_n(heading, word, strlen(word)) == 0;
}

bool help_print_group(const args_spec *spec, const char *word) {
    for (const arg_option *o = spec->options; arg_is_row(o); o++)
        if (!o->names && begins_with(o->help, word)) {
            tool_print_wrapped(o->help, 0, 0);
            print_rows(o + 1);
            return true;
        }
    if (spec->commands && begins_with(COMMANDS, word)) {
        print_commands(spec);
        return true;
    }
    if (spec->examples && begins_with(EXAMPLES, word)) {
        print_examples(spec);
        return true;
    }
    if (begins_with(BUILT_IN, word))
        print_rows(args_built_in);
    return begins_with(BUILT_IN, word);
}
