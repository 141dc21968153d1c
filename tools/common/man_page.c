/* See man_page.h. */
#include "man_page.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Prints text within a line of troff: no escapes, no hyphens that become dashes, no macro. */
static void print_n(const char *s, size_t n) {
    if (n > 0 && (*s == '.' || *s == '\''))
        fputs("\\&", stdout);
    for (; n > 0; s++, n--)
        if (*s == '\\')
            fputs("\\e", stdout);
        else if (*s == '-')
            fputs("\\-", stdout);
        else if (*s == '"')
            fputs("\\(dq", stdout); /* within the argument of a macro, too */
        else if (*s == '~')
            fputs("\\(ti", stdout);
        else if (*s == '^')
            fputs("\\(ha", stdout);
        else if (*s == '\'')
            fputs("\\(aq", stdout);
        else if (*s == '`')
            fputs("\\(ga", stdout);
        else
            putchar(*s == '\n' ? ' ' : *s);
}

static void print(const char *s) {
    print_n(s, strlen(s));
}

/* A heading: .SH or .SS. */
static void print_heading(const char *macro, const char *text, const char *more) {
    printf("%s \"", macro);
    for (; *text; text++) {
        const char upper = (char)toupper((unsigned char)*text);
        print_n(strcmp(macro, ".SH") == 0 ? &upper : text, 1);
    }
    print(more);
    puts("\"");
}

static void print_usage(const args_spec *spec) {
    printf(".B ");
    print(spec->tool);
    putchar('\n');
    print(spec->usage);
    putchar('\n');
}

static void print_option(const arg_option *o) {
    const char *names = o->names, *name;
    size_t n;
    puts(".TP");
    for (const char *separator = ""; arg_next_name(&names, &name, &n); separator = ", ") {
        printf("%s\\fB", separator);
        print_n(name, n);
        printf("\\fR");
    }
    if (o->value) {
        printf(o->kind == ARG_MAYBE ? "[=\\fI" : o->missing ? " [\\fI" : " \\fI");
        print(o->value);
        printf(o->kind == ARG_MAYBE || o->missing ? "\\fR]" : "\\fR");
    }
    putchar('\n');
    print(o->help ? o->help : "");
    putchar('\n');
}

static void print_options(const arg_option *o) {
    for (; arg_is_row(o); o++)
        if (o->names)
            print_option(o);
        else
            print_heading(".SS", o->help, "");
}

static void print_more(const args_spec *spec) {
    if (!spec->print_more)
        return;
    puts(".PP\n.nf\n.in 0"); /* the lines are as long as those of --help */
    spec->print_more();
    puts(".in\n.fi");
}

static void print_examples(const args_spec *spec) {
    for (const args_example *e = spec->examples; e && e->command; e++) {
        puts(".PP\n.RS 0\n.nf\n.B");
        printf("\\&");
        print(e->command);
        puts("\n.fi\n.RE\n.RS");
        print(e->text);
        puts("\n.RE");
    }
}

/* Prints what a command is for: "Writes a model." Returns the first sentence's length, without the
 * period. */
static size_t first_sentence(const char *about) {
    const char *end = strpbrk(about, ".:;(");
    while (end && *end == '.' && end[1] && end[1] != ' ' && end[1] != '\n')
        end = strpbrk(end + 1, ".:;(");
    size_t n = end ? (size_t)(end - about) : strlen(about);
    while (n > 0 && about[n - 1] == ' ')
        n--;
    return n;
}

/* A command's part of the page. */
static void print_command(const args_spec *spec) {
    print_heading(".SH", spec->tool, "");
    print_usage(spec);
    puts(".PP");
    print(spec->about);
    putchar('\n');
    print_options(spec->options);
    print_more(spec);
    if (spec->examples)
        print_heading(".SS", "examples", "");
    print_examples(spec);
}

static void print_commands(const args_spec *spec) {
    print_heading(".SH", "commands", "");
    for (const args_command *c = spec->commands; c->name; c++) {
        printf(".TP\n.B ");
        print(c->name);
        putchar('\n');
        print(c->about);
        putchar('\n');
    }
    for (const args_command *c = spec->commands; c->name; c++) {
        char name[64], flag[] = "--man", *argv[] = {name, flag, NULL};
        snprintf(name, sizeof name, "%s", c->name);
        c->run(2, argv);
    }
}

void man_page_print(const args_spec *spec, const char *version) {
    if (strchr(spec->tool, ' ')) {
        print_command(spec);
        return;
    }
    printf(".\\\" Written by %s --man.\n.TH \"", spec->tool);
    for (const char *s = spec->tool; *s; s++) {
        const char upper = (char)toupper((unsigned char)*s);
        print_n(&upper, 1);
    }
    printf("\" \"1\" \"\" \"ggml\\-lite %s\" \"User Commands\"\n", version);
    print_heading(".SH", "name", "");
    print(spec->tool);
    printf(" \\- ");
    print_n(spec->about, first_sentence(spec->about));
    putchar('\n');
    print_heading(".SH", "synopsis", "");
    print_usage(spec);
    print_heading(".SH", "description", "");
    print(spec->about);
    putchar('\n');
    print_heading(".SH", "options", "");
    print_options(spec->options);
    print_heading(".SS", "general", "");
    print_options(args_built_in);
    print_more(spec);
    if (spec->commands)
        print_commands(spec);
    if (spec->examples)
        print_heading(".SH", "examples", "");
    print_examples(spec);
    print_heading(".SH", "exit status", "");
    puts("0: done. 1: it could not be done. 2: the command line is wrong.");
}
