/* See arg_table.h. */
#include "arg_table.h"

#include <string.h>

#include "ggl/internal/nearest.h"
#include "ggl/internal/text.h"

bool arg_next_name(const char **names, const char **name, size_t *n) {
    *names += strspn(*names, " ");
    *name = *names;
    *n = strcspn(*names, " ");
    *names += *n;
    return *n > 0;
}

bool arg_is_among(const char *names, const char *s, size_t n_s) {
    const char *name;
    size_t n;
    while (names && arg_next_name(&names, &name, &n))
        if (n == n_s && memcmp(name, s, n) == 0)
            return true;
    return false;
}

static const char *const shells[] = {"bash", "zsh", "fish", NULL};

const arg_option args_built_in[] = {
    [ARGS_HELP] = {"-h --help", ARG_FLAG, .help = "print this and exit"},
    [ARGS_VERSION] = {"--version", ARG_FLAG, .help = "print the version and exit"},
    [ARGS_QUIET] = {"-q --quiet", ARG_FLAG,
                    .help = "print errors and warnings only: no notes, timings, progress"},
    [ARGS_COMPLETION] =
        {"--completion", ARG_CHOICE, .value = "SHELL", .choices = shells, .hidden = true,
         .help =
             "print a script that completes this program's command lines in bash, zsh or fish, and "
             "exit"},
    [ARGS_MAN] = {"--man", ARG_FLAG, .hidden = true,
                  .help = "print the manual page, for man, and exit"},
    {0}};

bool arg_is_row(const arg_option *o) {
    return o->names || o->help;
}

const arg_option *arg_find(const arg_option *o, const char *s, size_t n) {
    for (; arg_is_row(o); o++)
        if (arg_is_among(o->names, s, n))
            return o;
    return NULL;
}

int arg_find_choice(const arg_option *o, const char *s) {
    for (int i = 0; o->choices && o->choices[i]; i++)
        if (ggl_case_compare(o->choices[i], s) == 0)
            return i;
    return -1;
}

const arg_hint *arg_next_hint(const args_spec *spec, const arg_hint *h) {
    h = h ? h + 1 : spec->hints ? spec->hints->row : NULL;
    while (h && h->names && !(h->tools & spec->hints->tool))
        h++;
    return h && h->names ? h : NULL;
}

const args_command *args_find_command(const args_command *commands, const char *name) {
    for (; commands && commands->name; commands++)
        if (strcmp(commands->name, name) == 0)
            return commands;
    return NULL;
}

const char *args_near_command(const args_command *commands, const char *word) {
    ggl_nearest near = ggl_nearest_to(word);
    for (; commands && commands->name; commands++)
        ggl_nearest_try(&near, commands->name, SIZE_MAX);
    return near.best;
}

/* --- values --- */

/* Names of values that are paths; other names stand for texts. */
static const struct {
    const char *name;
    arg_value value;
} PATHS[] = {
    {"FILE", ARG_VALUE_FILE},           {"NAME|FILE", ARG_VALUE_FILE},
    {"FILE|NAME", ARG_VALUE_FILE},      {"FILE|JSON", ARG_VALUE_FILE},
    {"FILE|GBNF", ARG_VALUE_FILE},      {"OLD.json", ARG_VALUE_FILE},
    {"MODEL", ARG_VALUE_MODEL},         {"IN", ARG_VALUE_MODEL},
    {"MODEL_FOLDER", ARG_VALUE_FOLDER}, {"FOLDER", ARG_VALUE_FOLDER},
};

static arg_value path_of(const char *name, size_t n, arg_value otherwise) {
    for (size_t i = 0; i < sizeof PATHS / sizeof *PATHS; i++)
        if (strlen(PATHS[i].name) == n && memcmp(PATHS[i].name, name, n) == 0)
            return PATHS[i].value;
    return otherwise;
}

arg_value arg_value_of(const arg_option *o) {
    if (o->kind == ARG_FLAG || o->kind == ARG_UNFLAG)
        return ARG_VALUE_NONE;
    if (o->choices)
        return ARG_VALUE_WORDS;
    if (arg_is_among(o->names, "--model", 7) && strcmp(o->value, "FILE") == 0)
        return ARG_VALUE_MODEL;
    return o->value ? path_of(o->value, strlen(o->value), ARG_VALUE_TEXT) : ARG_VALUE_TEXT;
}

/* Returns the next word of a usage line, without brackets and dots. False: the end. */
static bool next_word(const char **usage, const char **word, size_t *n) {
    static const char around[] = " \n[]().";
    *word = *usage + strspn(*usage, around);
    *n = strcspn(*word, " \n[]()");
    *usage = *word + *n;
    while (*n > 0 && (*word)[*n - 1] == '.')
        --*n;
    return *n > 0;
}

bool arg_next_operand(const args_spec *spec, const char **usage, arg_operand *out) {
    bool after_flag = false;
    while (spec->positional && next_word(usage, &out->name, &out->n)) {
        const bool is_flag = out->name[0] == '-';
        const bool is_name = out->name[0] >= 'A' && out->name[0] <= 'Z' && !after_flag;
        after_flag = is_flag;
        if (!is_name)
            continue;
        out->value = path_of(out->name, out->n, ARG_VALUE_FILE);
        out->choices = NULL;
        for (const args_operand *o = spec->operands; o && o->name; o++)
            if (strlen(o->name) == out->n && memcmp(o->name, out->name, out->n) == 0) {
                out->value = ARG_VALUE_WORDS;
                out->choices = o->choices;
            }
        return true;
    }
    return false;
}
