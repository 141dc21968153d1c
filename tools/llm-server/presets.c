/* Files of presets. */
#include "presets.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/text.h"

#define TOOL "llm-server"

enum { TOOL_TEXT = 600 };

/* The flags of a section. */
typedef struct section {
    const char *name; /* "*": for all models */
    const char **flag;
    size_t n, cap;
    bool loads;
    int line;
} section;

typedef struct reading {
    const char *path;
    char tool[TOOL_TEXT]; /* "llm-server: FILE:LINE", the beginning of messages */
    int line;
    section *section; /* [n]; the first is [*] */
    size_t n, cap;
    models *table;
} reading;

static void at_line(reading *r, int line) {
    snprintf(r->tool, sizeof r->tool, TOOL ": %.500s:%d", r->path, line);
}

static char *trim(char *s) {
    s += strspn(s, " \t\r");
    size_t n = strlen(s);
    while (n > 0 && strchr(" \t\r", s[n - 1]))
        n--;
    s[n] = '\0';
    return s;
}

/* Cuts off a comment: all of a line that begins with ; or #, or what follows one after white space. */
static void cut_comment(char *s) {
    for (char *c = s; *c; c++)
        if ((*c == ';' || *c == '#') && (c == s || c[-1] == ' ' || c[-1] == '\t')) {
            *c = '\0';
            return;
        }
}

/* Returns 1 for a word that means yes, 0 for no, -1 for others. */
static int yes_or_no(const char *s) {
    static const char *const yes[] = {"", "true", "1", "on", "yes"}, *const no[] = {"false", "0",
                                                                                    "off", "no"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (ggl_case_compare(s, yes[i]) == 0)
            return 1;
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (ggl_case_compare(s, no[i]) == 0)
            return 0;
    return -1;
}

static int no_memory(const reading *r) {
    return tool_error(r->tool, 1, "out of memory");
}

/* --- lines -------------------------------------------------------------------------------------- */

static int begin_section(reading *r, char *s) {
    const size_t n = strlen(s);
    if (n < 3 || s[n - 1] != ']')
        return tool_error_about(r->tool, 2, "a section is [NAME], not '%.60s'", s);
    s[n - 1] = '\0';
    const char *name = trim(s + 1);
    if (!*name)
        return tool_error(r->tool, 2, "the section has no name");
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->section[i].name, name) == 0 && r->section[i].line > 0)
            return tool_error_about(r->tool, 2, "line %d begins [%.60s], too", r->section[i].line,
                                    name);
    if (strcmp(name, "*") == 0) {
        if (r->n > 1)
            return tool_error(r->tool, 2, "[*], which is for all models, comes first");
        r->section[0].line = r->line;
        return -1;
    }
    if (!ggl_grow(&r->section, &r->cap, r->n + 1, sizeof *r->section))
        return no_memory(r);
    r->section[r->n++] = (section){.name = name, .line = r->line};
    return -1;
}

static int add_flag(reading *r, char *flag) {
    section *s = &r->section[r->n - 1];
    if (!flag || !ggl_grow(&s->flag, &s->cap, s->n + 1, sizeof *s->flag)) {
        free(flag);
        return no_memory(r);
    }
    s->flag[s->n++] = flag;
    return -1;
}

/* Returns "--flag=value", or NULL if memory ran out. */
static char *flag_text(const char *flag, size_t n, const char *value) {
    const size_t size = n + strlen(value) + 2;
    char *text = malloc(size);
    if (text)
        snprintf(text, size, "%.*s%s%s", (int)n, flag, *value ? "=" : "", value);
    return text;
}

/* Checks a flag by itself, so that the message has its line. */
static int check_flag(const reading *r, const char *flag) {
    server_options scratch;
    char program[] = TOOL, *copy = ggl_copy_text(flag), *argv[] = {program, copy, NULL};
    if (!copy)
        return no_memory(r);
    const int code = server_options_parse(r->tool, &scratch, 2, argv);
    server_options_fini(&scratch);
    free(copy);
    return code;
}

static int read_setting(reading *r, char *s) {
    char *equals = strchr(s, '=');
    char *value = equals ? trim(equals + 1) : s + strlen(s);
    if (equals)
        *equals = '\0';
    char *name = trim(s);
    size_t n = strlen(name), n_flag = 0;
    bool is_switch = false, is_server = false;
    section *at = &r->section[r->n - 1];
    if (r->n == 1 && at->line == 0) {
        if (strcmp(name, "version") == 0)
            return -1; /* of llama.cpp's presets */
        return tool_error_about(
            r->tool, 2, "'%.60s' comes before the first [NAME]; [*] is for all models", name);
    }
    if (n == 0)
        return tool_error(r->tool, 2, "the flag before the '=' is missing");
    for (char *c = name; *c && name[0] != '-'; c++)
        *c = *c == '_' ? '-' : *c;
    const char *flag = server_options_flag(name, n, &n_flag, &is_switch, &is_server);
    const int yes = yes_or_no(value);
    if (strcmp(name, "load-on-startup") == 0) {
        if (yes < 0)
            return tool_error_about(r->tool, 2,
                                    "load-on-startup: '%.60s' is neither true nor false", value);
        at->loads = yes;
        return -1;
    }
    if (is_server)
        return tool_error_about(
            r->tool, 2,
            "%.60s is a flag of the server, and not of a model: it belongs on the command line",
            name);
    if (is_switch && yes < 0)
        return tool_error_about(r->tool, 2, "%.60s: '%.60s' is neither true nor false", name,
                                value);
    if (is_switch && !yes)
        return -1;
    char dashed[80];
    snprintf(dashed, sizeof dashed, "%s%.70s", name[0] == '-' ? "" : n > 1 ? "--" : "-", name);
    if (!flag) {
        flag = dashed;
        n_flag = strlen(dashed);
    }
    /* flags of other programs have notes and answers of their own */
    char *text = flag_text(flag, n_flag, is_switch || (flag == dashed && yes == 1) ? "" : value);
    const int code = text ? check_flag(r, text) : no_memory(r);
    if (code < 0)
        return add_flag(r, text);
    free(text);
    return code;
}

static int read_line(reading *r, char *s) {
    at_line(r, ++r->line);
    cut_comment(s);
    s = trim(s);
    return !*s ? -1 : *s == '[' ? begin_section(r, s) : read_setting(r, s);
}

/* --- rows --------------------------------------------------------------------------------------- */

static bool has_sizes(const section *s) {
    for (size_t i = 0; i < s->n; i++)
        if (strncmp(s->flag[i], "--image-m", 9) == 0) /* -min-tokens, -max-tokens */
            return true;
    return false;
}

/* Adds the row of a section, whose flags follow those of [*]. */
static int add_row(reading *r, const section *s, int argc, char **argv) {
    const section *all = &r->section[0];
    const char **flag = ggl_calloc(all->n + s->n + 1, sizeof *flag);
    if (!flag)
        return no_memory(r);
    for (size_t i = 0; i < all->n; i++)
        flag[i] = all->flag[i];
    for (size_t i = 0; i < s->n; i++)
        flag[all->n + i] = s->flag[i];
    snprintf(r->tool, sizeof r->tool, TOOL ": %.500s:%d: [%.60s]", r->path, s->line, s->name);
    const unsigned what =
        (s->loads || all->loads ? ROW_LOADS : 0) | (has_sizes(s) ? ROW_OWN_SIZES : 0);
    const int code =
        models_list_add(r->table, r->tool, s->name, argc, argv, flag, all->n + s->n, what);
    ggl_free(flag);
    return code;
}

int presets_read(models *t, const char *path, char *text, int argc, char **argv) {
    reading r = {.path = path, .table = t};
    int code = -1;
    at_line(&r, 1);
    if (!ggl_grow(&r.section, &r.cap, 1, sizeof *r.section))
        return no_memory(&r);
    r.section[r.n++] = (section){.name = "*"};
    if (strncmp(text, "\xEF\xBB\xBF", 3) == 0)
        text += 3; /* a mark of UTF-8 */
    for (char *s = text; s && code < 0;) {
        char *end = strchr(s, '\n');
        if (end)
            *end = '\0';
        code = read_line(&r, s);
        s = end ? end + 1 : NULL;
    }
    for (size_t i = 1; i < r.n && code < 0; i++)
        code = add_row(&r, &r.section[i], argc, argv);
    for (size_t i = 0; i < r.n; i++) {
        for (size_t k = 0; k < r.section[i].n; k++)
            free((char *)r.section[i].flag[k]);
        ggl_free(r.section[i].flag);
    }
    ggl_free(r.section);
    return code;
}
