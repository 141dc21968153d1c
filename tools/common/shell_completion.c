/* See shell_completion.h. A script consists of a tool's tables and functions; the one for bash also has
 * code that reads the command line and is the same for each tool. */
#include "shell_completion.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* --- what the shells share --- */

/* Prints s as a part of a name of a function: "llm_bench_make". */
static void print_name(const char *s) {
    for (; *s; s++)
        putchar(isalnum((unsigned char)*s) ? *s : '_');
}

/* Prints s[0..n) within single quotes; characters in `special` get a backslash. The shells differ in
 * how a quote is written between quotes. */
static void print_quoted(const char *s, size_t n, const char *special, const char *quote) {
    for (size_t i = 0; i < n; i++)
        if (s[i] == '\'')
            fputs(quote, stdout);
        else if (strchr(special, s[i]))
            printf("\\%c", s[i]);
        else
            putchar(s[i] == '\n' ? ' ' : s[i]);
}

/* Returns how much of a help text a list of completions shows: its first sentence, or whole words of
 * it. */
static size_t short_length(const char *help) {
    enum { LEAST = 16, MOST = 72 };
    size_t n = strcspn(help, ";(");
    const char *colon = memchr(help, ':', n);
    if (colon && colon - help >= LEAST)
        n = (size_t)(colon - help);
    for (size_t least = n; n > MOST || (n < least && n > 0 && help[n] != ' '); n--)
        ;
    while (n > 0 && strchr(" ,", help[n - 1]))
        n--;
    return n;
}

static void print_words(const char *const *words) {
    for (const char *separator = ""; words && *words; separator = " ")
        printf("%s%s", separator, *words++);
}

/* Calls a function for each row of the table, and for the options that every tool has. */
static void each_option(const args_spec *spec,
                        void (*print)(const args_spec *, const arg_option *)) {
    const arg_option *tables[] = {spec->options, args_built_in};
    for (int t = 0; t < 2; t++)
        for (const arg_option *o = tables[t]; arg_is_row(o); o++)
            if (o->names)
                print(spec, o);
}

static void print_command_parts(const args_spec *spec, const char *shell) {
    for (const args_command *c = spec->commands; c && c->name; c++) {
        char name[64], flag[] = "--completion", value[8], *argv[] = {name, flag, value, NULL};
        snprintf(name, sizeof name, "%s", c->name);
        snprintf(value, sizeof value, "%s", shell);
        c->run(3, argv);
    }
}

static void print_command_names(const args_spec *spec, const char *separator) {
    for (const args_command *c = spec->commands; c && c->name; c++)
        printf("%s%s", c == spec->commands ? "" : separator, c->name);
}

/* --- bash --- */

/* How the value of a flag is completed; the script below uses these names. */
static const char *const kinds[] = {
    [ARG_VALUE_NONE] = "none", [ARG_VALUE_TEXT] = "text",   [ARG_VALUE_WORDS] = "words",
    [ARG_VALUE_FILE] = "file", [ARG_VALUE_MODEL] = "model", [ARG_VALUE_FOLDER] = "folder"};

static void print_kind(arg_value value, const char *const *choices) {
    printf("kind=%s", kinds[value]);
    if (value == ARG_VALUE_WORDS) {
        fputs(" words='", stdout);
        print_words(choices);
        putchar('\'');
    }
    puts(" ;;");
}

static void bash_option(const args_spec *spec, const arg_option *o) {
    const char *names = o->names, *name;
    const arg_value value = arg_value_of(o);
    size_t n;
    (void)spec;
    if (value == ARG_VALUE_NONE)
        return;
    printf("    ");
    for (const char *separator = ""; arg_next_name(&names, &name, &n); separator = " | ")
        printf("%s%.*s", separator, (int)n, name);
    printf(") %s", o->kind == ARG_MAYBE ? "maybe=1 " : "");
    print_kind(value, o->choices);
}

static void bash_names(const args_spec *spec, const arg_option *o) {
    (void)spec;
    printf(" %s", o->names);
}

/* Prints the tables of a tool or a command: the values of flags, arguments without flags, the flags. */
static void bash_tables(const args_spec *spec) {
    const char *usage = spec->usage;
    arg_operand operand, last = {0};
    int n = 0;
    putchar('_');
    print_name(spec->tool);
    puts("__value() {\n    case $1 in");
    each_option(spec, bash_option);
    puts("    *) kind=none ;;\n    esac\n}");
    putchar('_');
    print_name(spec->tool);
    puts("__operand() {\n    case $1 in");
    while (arg_next_operand(spec, &usage, &operand)) {
        printf("    %d) ", n++);
        print_kind(operand.value, operand.choices);
        last = operand;
    }
    printf("    *) "); /* the last one may be repeated */
    print_kind(n > 0 ? last.value : ARG_VALUE_NONE, last.choices);
    puts("    esac\n}");
    putchar('_');
    print_name(spec->tool);
    fputs("__flags='", stdout);
    each_option(spec, bash_names);
    puts("'\n");
}

/* Completes the word at the cursor. TOOL is the tool's name; @ stands for its function's. The words
 * before the cursor are read as the tool would read them, to know whether the word is the value of a
 * flag. */
static const char bash_code[] =
    "@() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} part=@ prefix= flag= also= i=1 n=0 word kind words "
    "maybe\n"
    "    local commands='%' flags\n"
    "    COMPREPLY=()\n"
    "    if ((COMP_CWORD > 1)) && [[ \" $commands \" == *\" ${COMP_WORDS[1]} \"* ]]; then\n"
    "        part=@_${COMP_WORDS[1]}\n"
    "        commands=\n"
    "        i=2\n"
    "    fi\n"
    "    for (( ; i < COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]} also=\n"
    "        if [[ $word != -?* ]]; then\n"
    "            ((n += 1))\n"
    "            continue\n"
    "        fi\n"
    "        kind= words= maybe=\n"
    "        ${part}__value \"$word\"\n"
    "        if [[ ${COMP_WORDS[i+1]} == = ]]; then # --flag=value is three words\n"
    "            if ((i + 2 >= COMP_CWORD)); then\n"
    "                flag=$word\n"
    "                [[ $cur == = ]] && cur=\n"
    "                break\n"
    "            fi\n"
    "            ((i += 2))\n"
    "        elif [[ $maybe ]]; then\n"
    "            also=$words\n"
    "        elif [[ $kind != none ]]; then\n"
    "            ((i + 1 == COMP_CWORD)) && flag=$word && break\n"
    "            ((i += 1))\n"
    "        fi\n"
    "    done\n"
    "    if [[ ! $flag && $cur == -*=* ]]; then # = is no end of a word here\n"
    "        flag=${cur%%=*}\n"
    "        prefix=$flag=\n"
    "        cur=${cur#*=}\n"
    "    fi\n"
    "    kind= words= maybe= flags=${part}__flags\n"
    "    if [[ $flag ]]; then\n"
    "        ${part}__value \"$flag\"\n"
    "    elif [[ $cur == -* ]]; then\n"
    "        kind=words words=${!flags}\n"
    "    else\n"
    "        ${part}__operand $n\n"
    "        ((n == 0)) && also+=\" $commands\"\n"
    "        [[ $kind == none && ! $also ]] && also=${!flags}\n"
    "        words+=\" $also\"\n"
    "    fi\n"
    "    while IFS= read -r word; do\n"
    "        COMPREPLY+=(\"$prefix$word\")\n"
    "    done < <(\n"
    "        [[ ${words// } ]] && compgen -W \"$words\" -- \"$cur\"\n"
    "        case $kind in\n"
    "        file) compgen -f -- \"$cur\" ;;\n"
    "        model) compgen -f -X '!*.gguf' -- \"$cur\"; compgen -d -- \"$cur\" ;;\n"
    "        folder) compgen -d -- \"$cur\" ;;\n"
    "        esac\n"
    "    )\n"
    "    [[ $kind == file || $kind == model || $kind == folder ]] && compopt -o filenames "
    "2>/dev/null\n"
    "    return 0\n"
    "}\n";

static void bash_print(const args_spec *spec) {
    for (const char *s = bash_code; *s; s++)
        if (*s == '@') {
            putchar('_');
            print_name(spec->tool);
        } else if (*s == '%' && s[1] == '\'') {
            print_command_names(spec, " ");
        } else {
            putchar(*s);
        }
    printf("complete -F _");
    print_name(spec->tool);
    printf(" %s\n", spec->tool);
}

/* --- zsh --- */

/* Characters with a meaning in the specifications of _arguments. */
#define ZSH_SPECIAL "[]:\\"
#define ZSH_QUOTE   "'\\''"

static void zsh_action(arg_value value, const char *const *choices) {
    if (value == ARG_VALUE_WORDS) {
        putchar('(');
        print_words(choices);
        putchar(')');
    } else if (value == ARG_VALUE_FILE) {
        fputs("_files", stdout);
    } else if (value == ARG_VALUE_MODEL) {
        fputs("_files -g \"*.gguf\"", stdout);
    } else if (value == ARG_VALUE_FOLDER) {
        fputs("_files -/", stdout);
    } else {
        putchar(' ');
    }
}

/* A line of _arguments for each spelling: '(-n --predict)-n=[tokens to generate]:N: ' */
static void zsh_option(const args_spec *spec, const arg_option *o) {
    const char *names = o->names, *name;
    const arg_value value = arg_value_of(o);
    size_t n;
    (void)spec;
    while (arg_next_name(&names, &name, &n)) {
        printf(" \\\n        '");
        if (o->kind == ARG_LIST)
            putchar('*');
        else
            printf("(%s)", o->names);
        printf("%.*s%s[", (int)n, name,
               value == ARG_VALUE_NONE               ? ""
               : o->kind == ARG_MAYBE && !o->choices ? "=-"
                                                     : "=");
        print_quoted(o->help, short_length(o->help), ZSH_SPECIAL, ZSH_QUOTE);
        putchar(']');
        if (value != ARG_VALUE_NONE) {
            fputs(o->kind == ARG_MAYBE ? "::" : ":", stdout);
            print_quoted(o->value ? o->value : "", o->value ? strlen(o->value) : 0, ZSH_SPECIAL,
                         ZSH_QUOTE);
            putchar(':');
            zsh_action(value, o->choices);
        }
        putchar('\'');
    }
}

static void zsh_function(const args_spec *spec) {
    const char *usage = spec->usage;
    arg_operand operand, last = {0};
    putchar('_');
    print_name(spec->tool);
    puts("() {");
    if (spec->commands) {
        printf("    local -a commands=(");
        for (const args_command *c = spec->commands; c->name; c++) {
            printf("\n        '%s:", c->name);
            print_quoted(c->about, short_length(c->about), ZSH_SPECIAL, ZSH_QUOTE);
            putchar('\'');
        }
        printf("\n    )\n    case ${words[2]} in\n    ");
        print_command_names(spec, " | ");
        puts(")\n        if ((CURRENT > 2)); then\n            local command=${words[2]}\n"
             "            shift words\n            ((CURRENT -= 1))");
        fputs("            _", stdout);
        print_name(spec->tool);
        puts("_$command\n            return\n        fi\n        ;;\n    esac");
    }
    printf("    _arguments -S");
    each_option(spec, zsh_option);
    if (spec->commands)
        printf(" \\\n        '1::command:{_describe command commands}'");
    while (arg_next_operand(spec, &usage, &operand)) {
        printf(" \\\n        ':%.*s:", (int)operand.n, operand.name);
        zsh_action(operand.value, operand.choices);
        putchar('\'');
        last = operand;
    }
    if (last.name) {
        printf(" \\\n        '*:%.*s:", (int)last.n, last.name);
        zsh_action(last.value, last.choices);
        putchar('\'');
    }
    puts("\n}\n");
}

/* --- fish --- */

#define FISH_SPECIAL "\\"
#define FISH_QUOTE   "\\'"

/* Begins a line for a tool, or for a command only. */
static void fish_begin(const args_spec *spec) {
    const char *space = strchr(spec->tool, ' ');
    printf("complete -c %.*s", (int)strcspn(spec->tool, " "), spec->tool);
    if (space) {
        printf(" -n '__fish_seen_subcommand_from %s'", space + 1);
    } else if (spec->commands) {
        printf(" -n 'not __fish_seen_subcommand_from ");
        print_command_names(spec, " ");
        putchar('\'');
    }
}

static void fish_value(arg_value value, const char *const *choices, bool maybe) {
    const char *required = maybe ? "" : " -r";
    if (value == ARG_VALUE_WORDS) {
        printf("%s -f -a '", required);
        print_words(choices);
        putchar('\'');
    } else if (value == ARG_VALUE_FILE) {
        printf("%s -F", required);
    } else if (value == ARG_VALUE_MODEL) {
        printf("%s -f -a '(__fish_complete_suffix .gguf)'", required);
    } else if (value == ARG_VALUE_FOLDER) {
        printf("%s -f -a '(__fish_complete_directories)'", required);
    } else if (value == ARG_VALUE_TEXT) {
        printf("%s -f", required);
    }
}

static void fish_option(const args_spec *spec, const arg_option *o) {
    const char *names = o->names, *name;
    size_t n;
    fish_begin(spec);
    while (arg_next_name(&names, &name, &n)) {
        const int dashes = 1 + (name[1] == '-');
        printf(" -%c %.*s", dashes == 2 ? 'l' : n == 2 ? 's' : 'o', (int)n - dashes, name + dashes);
    }
    fish_value(arg_value_of(o), o->choices, o->kind == ARG_MAYBE);
    fputs(" -d '", stdout);
    print_quoted(o->help, short_length(o->help), FISH_SPECIAL, FISH_QUOTE);
    puts("'");
}

/* Arguments without flags: files unless all are words, which are offered at each place. */
static void fish_operands(const args_spec *spec) {
    const char *usage = spec->usage;
    arg_operand operand;
    bool any = false;
    for (const args_command *c = spec->commands; c && c->name; c++) {
        fish_begin(spec);
        printf(" -f -a %s -d '", c->name);
        print_quoted(c->about, short_length(c->about), FISH_SPECIAL, FISH_QUOTE);
        puts("'");
    }
    while (arg_next_operand(spec, &usage, &operand)) {
        fish_begin(spec);
        fish_value(operand.value, operand.choices, true);
        putchar('\n');
        any = true;
    }
    if (!any) {
        fish_begin(spec);
        puts(" -f");
    }
}

static void fish_function(const args_spec *spec) {
    each_option(spec, fish_option);
    fish_operands(spec);
}

/* --- all --- */

void shell_completion_print(const args_spec *spec, const char *shell) {
    const bool is_tool = !strchr(spec->tool, ' ');
    const bool is_bash = strcmp(shell, "bash") == 0, is_zsh = strcmp(shell, "zsh") == 0;
    if (is_tool && is_zsh)
        printf("#compdef %s\n", spec->tool);
    if (is_tool)
        printf("# Completion for %s; written by: %s --completion %s\n", spec->tool, spec->tool,
               shell);
    if (is_bash)
        bash_tables(spec);
    else if (is_zsh)
        zsh_function(spec);
    else
        fish_function(spec);
    print_command_parts(spec, shell);
    if (is_tool && is_bash)
        bash_print(spec);
    if (is_tool && is_zsh) { /* autoloaded, the file is the function; else it is sourced */
        printf("if [ \"$funcstack[1]\" = _%s ]; then\n    _", spec->tool);
        print_name(spec->tool);
        printf(" \"$@\"\nelse\n    compdef _");
        print_name(spec->tool);
        printf(" %s\nfi\n", spec->tool);
    }
}
