/* Command lines: see args.h. */
#include "args.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "commit.h"
#include "common/glob.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/file.h"
#include "ggl/internal/nearest.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/show.h"
#include "ggl/internal/text.h"
#include "help.h"
#include "man_page.h"
#include "shell_completion.h"
#include "common/shell_quote.h"
#include "ggl/internal/os_process.h"

#ifndef TOOLS_VERSION
#define TOOLS_VERSION "unknown"
#endif

/* Prints an error about the command line, whose words may have escape sequences. Returns the exit code 2. */
GGL_PRINTF(2, 3)
static int wrong(const char *tool, const char *fmt, ...) {
    char text[2048];
    va_list args;
    va_start(args, fmt);
    ggl_vformat(text, sizeof text, fmt, args);
    va_end(args);
    return tool_error(tool, 2, "%s", text);
}

/* --- numbers --- */

static const char *skip_space(const char *s) {
    return s + strspn(s, " \t\r\n");
}

/* Reads an id at *s and the comma after it, if any, or stops at the end (']' or NUL). -1: no id. */
static int32_t next_id(const char **s) {
    int64_t id = -1;
    bool range;
    char digits[12] = "";
    size_t n = strspn(*s, "0123456789");
    if (n > 0 && n < sizeof digits) {
        memcpy(digits, *s, n);
        (void)args_read_int(digits, &id, &range);
    }
    *s = skip_space(*s + n);
    if (**s == ',')
        *s = skip_space(*s + 1);
    else if (**s != ']' && **s != '\0')
        return -1;
    return id > INT32_MAX ? -1 : (int32_t)id;
}

int tool_read_ids(const char *tool, const char *flag, const char *s, int32_t **id, size_t *n) {
    const char *at = skip_space(s);
    const char last = *at == '[' ? ']' : '\0';
    size_t cap = 0;
    int32_t next = 0;
    *id = NULL;
    *n = 0;
    if (last)
        at = skip_space(at + 1);
    while (next >= 0 && *at != last) {
        next = next_id(&at);
        if (!ggl_grow(id, &cap, *n + 1, sizeof **id)) {
            ggl_free(*id);
            *id = NULL;
            return tool_error(tool, 1, "out of memory");
        }
        (*id)[(*n)++] = next;
    }
    if (*n > 0 && next >= 0 && *skip_space(at + (last != '\0')) == '\0')
        return -1;
    ggl_free(*id);
    *id = NULL;
    *n = 0;
    return wrong(tool, "%s: '%s' is not a list of ids such as 1,2,3", flag, s);
}

/* --- names --- */

static const arg_option *find_option(const args_spec *spec, const char *s, size_t n) {
    const arg_option *o = arg_find(spec->options, s, n);
    return o ? o : arg_find(args_built_in, s, n);
}

const arg_option *args_find(const arg_option *options, const char *name) {
    return arg_find(options, name, strlen(name));
}

enum { NAME_MAX_LENGTH = 63 };

size_t args_distance(const char *a, size_t n_a, const char *b, size_t n_b) {
    const bool too_long = n_a > NAME_MAX_LENGTH || n_b > NAME_MAX_LENGTH;
    return too_long ? SIZE_MAX : ggl_edit_distance(a, n_a, b, n_b);
}

/* Returns how far a typed flag is from a name; SIZE_MAX: too far for a typo. Any two short names
 * are near each other, so short ones must have the same letters. A long flag may be truncated. */
static size_t slip(const char *s, size_t n, const char *name, size_t n_name) {
    enum { SHORT = 4 };
    const size_t d = args_distance(s, n, name, n_name);
    if (n <= 2 || n_name <= 2)
        return SIZE_MAX;
    if (ggl_same_letters(s, n, name, n_name))
        return 0;
    if (n > SHORT && n < n_name && memcmp(s, name, n) == 0)
        return d < 2 ? d : 2; /* a flag that one letter makes of it is nearer */
    for (size_t i = 0; i < n && (n <= SHORT || n_name <= SHORT); i++)
        if (n != n_name || !memchr(name, s[i], n_name))
            return SIZE_MAX;
    return d < n / 3 + 1 ? d : SIZE_MAX;
}

/* The nearest name so far. */
typedef struct near_flag {
    const char *name; /* NULL: none */
    size_t n, slip;
} near_flag;

static void try_names(near_flag *best, const char *names, const char *s, size_t n) {
    const char *name;
    size_t n_name;
    while (names && arg_next_name(&names, &name, &n_name)) {
        const size_t d = slip(s, n, name, n_name);
        if (d < best->slip)
            *best = (near_flag){name, n_name, d};
    }
}

static int unknown_option(const args_spec *spec, const char *s, size_t n) {
    const arg_option *tables[] = {spec->options, args_built_in};
    near_flag best = {.slip = SIZE_MAX};
    for (int t = 0; t < 2; t++)
        for (const arg_option *o = tables[t]; arg_is_row(o); o++)
            try_names(&best, o->names, s, n);
    for (const arg_hint *h = NULL; (h = arg_next_hint(spec, h));)
        if (h->kind == HINT_SAME && !strpbrk(h->names, "=*"))
            try_names(&best, h->names, s, n);
    if (best.name)
        return wrong(spec->tool, "unknown flag '%.*s'; did you mean '%.*s'?", (int)n, s,
                     (int)best.n, best.name);
    return wrong(spec->tool, "unknown flag '%.*s'; --help lists them", (int)n, s);
}

/* --- values --- */

static bool list_add(arg_list *list, const char *s) {
    const char **grown = realloc(list->s, (list->n + 1) * sizeof *grown);
    if (!grown)
        return false;
    list->s = grown;
    list->s[list->n++] = s;
    return true;
}

void args_list_fini(arg_list *list) {
    free(list->s);
    *list = (arg_list){0};
}

/* What follows numbers of the option in messages: a table's value name is in capitals. */
static const char *unit_of(const arg_option *o) {
    return o->value && strcmp(o->value, "MIB") == 0 ? " MiB" : "";
}

static int out_of_range(const args_spec *spec, const arg_option *o, const char *flag, int n_flag,
                        const char *s) {
    if (o->min != o->max && o->kind == ARG_INT)
        return wrong(spec->tool, "%.*s: %s is out of range, %.0f to %.0f%s is allowed", n_flag,
                     flag, s, o->min, o->max, unit_of(o));
    if (o->min != o->max)
        return wrong(spec->tool, "%.*s: %s is out of range, %.15g to %.15g is allowed", n_flag,
                     flag, s, o->min, o->max);
    return wrong(spec->tool, "%.*s: %s is out of range", n_flag, flag, s);
}

/* Appends a value to a list. */
static void list_value(char *list, size_t size, const char *s, size_t n) {
    const size_t used = strlen(list);
    snprintf(list + used, size - used, "%s%.*s", used > 0 ? ", " : "", (int)n, s);
}

/* Appends values that the flag takes because a hint says what they are here: --dtype=float16. */
static void list_hinted(const args_spec *spec, const char *flag, size_t n_flag, char *list,
                        size_t size) {
    for (const arg_hint *h = NULL; (h = arg_next_hint(spec, h));) {
        const char *names = h->names, *name;
        size_t n;
        while (h->kind != HINT_REFUSED && arg_next_name(&names, &name, &n))
            if (n > n_flag && name[n_flag] == '=' && memcmp(name, flag, n_flag) == 0 &&
                !memchr(name, '*', n)) /* of a pattern, no value can be named */
                list_value(list, size, name + n_flag + 1, n - n_flag - 1);
    }
}

static int no_choice(const args_spec *spec, const arg_option *o, const char *flag, int n_flag,
                     const char *s) {
    enum { MANY = 16 }; /* more than these are no help in a message */
    char known[512] = "";
    int n = 0;
    ggl_nearest near = ggl_nearest_to(s);
    for (; o->choices[n]; n++)
        ggl_nearest_try(&near, o->choices[n], SIZE_MAX);
    if (n > MANY)
        return wrong(spec->tool, "%.*s: there is no '%s'%s%s%s%s%s", n_flag, flag, s,
                     near.best ? "; did you mean '" : "", near.best ? near.best : "",
                     near.best ? "'?" : "", o->no_choice ? near.best ? " " : "; " : "",
                     o->no_choice ? o->no_choice : "");
    for (int i = 0; o->choices[i]; i++)
        list_value(known, sizeof known, o->choices[i], strlen(o->choices[i]));
    list_hinted(spec, flag, (size_t)n_flag, known, sizeof known);
    return wrong(spec->tool, "%.*s: '%s' is not one of %s%s%s", n_flag, flag, s, known,
                 o->no_choice ? "; " : "", o->no_choice ? o->no_choice : "");
}

/* Stores value s for option o. Returns -1, or the exit code after a message. */
static int read_value(const args_spec *spec, const arg_option *o, const char *flag, int n_flag,
                      const char *s) {
    bool range = false, ok = true;
    const char *what = "a number";
    int64_t i = 0;
    uint64_t u = 0;
    double f = 0;
    switch (o->kind) {
    case ARG_INT:
        ok = args_read_int(s, &i, &range);
        what = "a whole number";
        range = range || (ok && o->min != o->max && ((double)i < o->min || (double)i > o->max));
        break;
    case ARG_UINT64:
        ok = args_read_uint64(s, &u, &range);
        what = "a whole number of at least 0";
        break;
    case ARG_FLOAT:
        ok = args_read_float(s, &f, &range);
        range = range || (ok && o->min != o->max && (f < o->min || f > o->max));
        break;
    case ARG_CHOICE:
        *(int *)o->out = arg_find_choice(o, s);
        return *(int *)o->out >= 0 ? -1 : no_choice(spec, o, flag, n_flag, s);
    case ARG_WORD:
        if (arg_find_choice(o, s) < 0)
            return no_choice(spec, o, flag, n_flag, s);
        *(const char **)o->out = o->choices[arg_find_choice(o, s)];
        return -1;
    case ARG_STRING:
    case ARG_LIST:
        if (!*s && !o->may_be_empty && s != o->missing)
            return wrong(spec->tool, "%.*s: the value %s is empty", n_flag, flag,
                         o->value ? o->value : "");
        if (o->kind == ARG_STRING)
            *(const char **)o->out = s;
        else
            ok = list_add(o->out, s);
        return ok ? -1 : tool_error(spec->tool, 1, "out of memory");
    case ARG_MAYBE:
        if (o->choices && *s && arg_find_choice(o, s) < 0)
            return no_choice(spec, o, flag, n_flag, s);
        *(const char **)o->out = o->choices && *s ? o->choices[arg_find_choice(o, s)] : s;
        return -1;
    case ARG_FLAG:
    case ARG_UNFLAG:
        break;
    }
    if (range)
        return out_of_range(spec, o, flag, n_flag, s);
    if (!ok)
        return wrong(spec->tool, "%.*s: '%s' is not %s", n_flag, flag, s, what);
    if (o->kind == ARG_INT)
        *(int64_t *)o->out = i;
    else if (o->kind == ARG_UINT64)
        *(uint64_t *)o->out = u;
    else
        *(double *)o->out = f;
    return -1;
}

/* --- parsing --- */

/* The value that an option has got. */
typedef struct given_value {
    const char *flag, *value; /* as typed; NULL: none yet */
    int n_flag;
} given_value;

typedef struct parsing {
    const args_spec *spec;
    int argc, i; /* argv[i] is being read */
    char **argv;
    given_value *given; /* for each row of spec->options */
    const arg_option
        *list; /* of ARG_LIST, whose value argv[i - 1] is; NULL: it is something else */
    const arg_option *maybe; /* of ARG_MAYBE, without a value, at argv[i - 1]; NULL: the same */
} parsing;

/* What stands at argv[i]: a flag, and the word that may be its value. */
typedef struct typed_flag {
    const char *flag; /* as typed, with what follows it */
    int n_flag;
    const char *name; /* the same with '-' for '_' */
    size_t n;
    const char *next; /* what follows '=', or the next argument; NULL: nothing */
    bool equals;      /* it follows '=' */
} typed_flag;

enum { FLAG_SPACE = 64 };

/* name: FLAG_SPACE bytes for a spelling that differs from the typed one. */
static typed_flag read_flag(const parsing *p, char *name) {
    const char *s = p->argv[p->i], *equals = strchr(s, '=');
    typed_flag f = {.flag = s, .name = s, .n = equals ? (size_t)(equals - s) : strlen(s)};
    f.n_flag = (int)f.n;
    f.equals = equals != NULL;
    f.next = equals ? equals + 1 : p->i + 1 < p->argc ? p->argv[p->i + 1] : NULL;
    if (s[0] == '-' && s[1] == '-' && f.n < FLAG_SPACE) {
        for (size_t k = 0; k < f.n; k++)
            name[k] = s[k] == '_' ? '-' : s[k];
        f.name = name;
    }
    return f;
}

/* True if the n bytes at name are the text, or, with '*' in the name, match it. */
static bool is_like(const char *name, size_t n, const char *text, size_t n_text, bool ignore_case) {
    if (memchr(name, '*', n))
        return llm_glob_matches((ggl_str){name, n}, (ggl_str){text, n_text});
    return n == n_text &&
           (ignore_case ? ggl_case_compare_n(name, text, n) : strncmp(name, text, n)) == 0;
}

/* Returns the hint for the flag with its value (*pair), else that for the flag alone; NULL: none. */
static const arg_hint *find_hint(const args_spec *spec, const typed_flag *f, bool *pair) {
    const arg_hint *alone = NULL;
    *pair = false;
    for (const arg_hint *h = NULL; (h = arg_next_hint(spec, h));) {
        const char *names = h->names, *name;
        size_t n;
        while (arg_next_name(&names, &name, &n)) {
            const char *equals = memchr(name, '=', n);
            if (!equals && !alone && is_like(name, n, f->name, f->n, false))
                alone = h;
            if (equals && f->next && is_like(name, (size_t)(equals - name), f->name, f->n, false) &&
                is_like(equals + 1, n - (size_t)(equals + 1 - name), f->next, strlen(f->next),
                        true)) {
                *pair = true;
                return h;
            }
        }
    }
    return alone && !find_option(spec, f->name, f->n) ? alone : NULL;
}

/* The value as it was before a further one is read. */
typedef union old_value {
    int64_t i;
    uint64_t u;
    double f;
    int choice;
    const char *s;
} old_value;

static bool is_text(const arg_option *o) {
    return o->kind == ARG_STRING || o->kind == ARG_MAYBE || o->kind == ARG_WORD;
}

static old_value save_value(const arg_option *o) {
    old_value v = {0};
    if (is_text(o))
        v.s = *(const char **)o->out;
    else if (o->kind == ARG_CHOICE)
        v.choice = *(int *)o->out;
    else
        memcpy(&v, o->out, sizeof v.i);
    return v;
}

static bool same_value(const arg_option *o, const old_value *v) {
    if (is_text(o))
        return strcmp(*(const char **)o->out, v->s) == 0;
    if (o->kind == ARG_CHOICE)
        return *(int *)o->out == v->choice;
    return o->kind == ARG_FLOAT ? *(double *)o->out == v->f : *(int64_t *)o->out == v->i;
}

/* Returns how many bytes of a word are shown in a message. */
static int shown(const char *s) {
    enum { MOST = 60 };
    return (int)ggl_utf8_cut(s, strlen(s), MOST);
}

/* Stores a value of an option that may already have one. Returns -1 or an exit code. */
static int give_value(parsing *p, const arg_option *o, const typed_flag *f, const char *value) {
    given_value *g = &p->given[o - p->spec->options]; /* the built-in options have no values */
    if (g->flag && o->missing && value == o->missing && g->value != o->missing)
        return -1; /* an option without its value adds nothing to one with a value */
    const bool again = g->flag && o->kind != ARG_LIST && !(o->missing && g->value == o->missing);
    const old_value old = again ? save_value(o) : (old_value){0};
    const int code = read_value(p->spec, o, f->flag, f->n_flag, value);
    if (code < 0 && again && !p->spec->last_wins && !same_value(o, &old))
        return wrong(p->spec->tool,
                     "%.*s '%.*s' and %.*s '%.*s': this option has only one value; leave one "
                     "of them out",
                     g->n_flag, g->flag, shown(g->value), g->value, f->n_flag, f->flag,
                     shown(value), value);
    *g = (given_value){f->flag, value, f->n_flag};
    return code;
}

/* Does what an option that every tool has asks for. value: as for set_option. */
static int built_in(parsing *p, int which, const typed_flag *f, const char *value) {
    const args_spec *spec = p->spec;
    const arg_option *o = &args_built_in[which];
    int shell = -1;
    value = value ? value : f->next;
    switch (which) {
    case ARGS_QUIET: /* args_parse has set it before, except for one after a value "--" */
        tool_set_quiet(true);
        return -1;
    case ARGS_HELP:
        if (f->next && f->next[0] != '-' && !help_print_group(spec, f->next)) {
            char groups[512];
            if (help_groups(spec, groups, sizeof groups))
                return wrong(spec->tool, "%.*s: there is no group '%.*s'; the groups are %s",
                             f->n_flag, f->flag, shown(f->next), f->next, groups);
        } else if (f->next && f->next[0] != '-') {
            break;
        }
        help_print(spec);
        break;
    case ARGS_VERSION:
        printf("%s %s", spec->tool, TOOLS_VERSION);
        printf(*tool_commit ? " (%s)\n" : "\n", tool_commit);
        if (spec->contains)
            puts(spec->contains);
        break;
    case ARGS_MAN:
        man_page_print(spec, TOOLS_VERSION);
        break;
    case ARGS_COMPLETION:
        if (!value)
            return wrong(spec->tool, "%.*s: the value %s is missing", f->n_flag, f->flag, o->value);
        shell = arg_find_choice(o, value);
        if (shell < 0)
            return no_choice(spec, o, f->flag, f->n_flag, value);
        shell_completion_print(spec, o->choices[shell]);
        break;
    }
    return tool_finish(spec->tool, 0);
}

/* Sets option o, whose value is `value`, or, if that is NULL, the word after the flag. */
static int set_option(parsing *p, const arg_option *o, const typed_flag *f, const char *value) {
    const args_spec *spec = p->spec;
    if (o->given)
        *o->given = true;
    if (o->typed)
        snprintf(o->typed, ARG_TYPED, "%.*s", f->n_flag, f->flag);
    if (o >= args_built_in && o < args_built_in + ARGS_MAN + 1)
        return built_in(p, (int)(o - args_built_in), f, value);
    if (o->kind == ARG_FLAG || o->kind == ARG_UNFLAG) {
        *(bool *)o->out = o->kind == ARG_FLAG;
        return -1;
    }
    const bool follows = f->next && !f->equals;
    const bool maybe = o->kind == ARG_MAYBE && !(follows && arg_find_choice(o, f->next) >= 0);
    if (!value && f->equals)
        value = f->next;
    if (!value && maybe)
        value = "";
    const bool is_flag = follows && (find_option(spec, f->next, strlen(f->next)) ||
                                     (o->missing && f->next[0] == '-' && f->next[1]));
    if (!value && follows && !is_flag)
        value = p->argv[++p->i];
    value = value ? value : o->missing;
    if (!value)
        return wrong(spec->tool, "%.*s: the value %s is missing", f->n_flag, f->flag,
                     o->value ? o->value : "");
    const int code = give_value(p, o, f, value);
    double number;
    bool range;
    if (code < 0 && o->number_follows && p->i + 1 < p->argc &&
        args_read_float(p->argv[p->i + 1], &number, &range))
        return give_value(p, o, f, p->argv[++p->i]);
    return code;
}

/* True for the values of flags that are on or off, which llama.cpp's older versions have without. */
static bool is_switch(const char *s) {
    static const char names[] = "on off auto 0 1 true false enabled disabled";
    return arg_is_among(names, s, strlen(s));
}

/* Skips the value of a flag that changes nothing. Returns -1 or an exit code. */
static int skip_value(parsing *p, const arg_hint *h, const typed_flag *f) {
    const bool option = f->next && !f->equals && find_option(p->spec, f->next, strlen(f->next));
    const bool takes = h->kind == HINT_NOTHING_VALUE ||
                       (h->kind == HINT_NOTHING_SWITCH && f->next && is_switch(f->next));
    if (f->equals && !takes)
        return wrong(p->spec->tool, "%.*s does not accept %s", f->n_flag, f->flag,
                     h->kind == HINT_NOTHING ? "a value" : f->next);
    if (takes && (!f->next || option))
        return wrong(p->spec->tool, "%.*s: the value is missing", f->n_flag, f->flag);
    p->i += takes && !f->equals;
    return -1;
}

/* Sets the option that the hint's text spells, perhaps with its value. */
static int follow_spelling(parsing *p, const arg_hint *h, const typed_flag *f) {
    const char *equals = strchr(h->text, '=');
    const size_t n = equals ? (size_t)(equals - h->text) : strlen(h->text);
    const arg_option *o = find_option(p->spec, h->text, n);
    const bool takes_none = equals || o->kind == ARG_FLAG || o->kind == ARG_UNFLAG;
    if (f->equals && takes_none)
        return wrong(p->spec->tool, "%.*s does not accept a value", f->n_flag, f->flag);
    return set_option(p, o, f, equals ? equals + 1 : NULL);
}

/* Answers a flag of another program; pair: the hint is for this value only. Returns -1 or an exit
 * code. */
static int follow_hint(parsing *p, const arg_hint *h, const typed_flag *f, bool pair) {
    const char *tool = p->spec->tool;
    const char *space = pair ? " " : "", *value = pair ? f->next : "";
    typed_flag rest = *f;
    if (h->kind == HINT_REFUSED)
        return wrong(tool, "there is no flag '%.*s%s%s': %s", f->n_flag, f->flag, space, value,
                     h->text);
    if (pair) { /* the value is read already */
        p->i += !f->equals;
        rest.next = NULL;
        rest.equals = false;
    }
    if (h->kind == HINT_SAME)
        return follow_spelling(p, h, &rest);
    const int code = pair ? -1 : skip_value(p, h, &rest);
    if (code >= 0)
        return code;
    tool_note(tool, "%.*s%s%s: %s; the flag has no effect", f->n_flag, f->flag, space, value,
              h->text);
    return -1;
}

/* Reads the option argv[p->i]; advances p->i if its value is the next argument. Returns -1 or an
 * exit code. */
static int read_option(parsing *p) {
    char name[FLAG_SPACE];
    const typed_flag f = read_flag(p, name);
    bool pair;
    const arg_hint *h = find_hint(p->spec, &f, &pair);
    if (h)
        return follow_hint(p, h, &f, pair);
    const arg_option *o = find_option(p->spec, f.name, f.n);
    if (!o)
        return unknown_option(p->spec, f.flag, (size_t)f.n_flag);
    if (f.equals && (o->kind == ARG_FLAG || o->kind == ARG_UNFLAG))
        return wrong(p->spec->tool, "%.*s does not accept a value", f.n_flag, f.flag);
    const int code = set_option(p, o, &f, NULL);
    p->list = o->kind == ARG_LIST && !f.equals ? o : NULL;
    p->maybe = o->kind == ARG_MAYBE && !o->choices && !f.equals ? o : NULL;
    return code;
}

/* An argument that stands alone. After the value of an option that is repeated, it is probably another one, and after an option that
 * has its value after '=', that value. */
static int read_lone(const parsing *p, const char *s) {
    const char *names = p->list ? p->list->names : p->maybe ? p->maybe->names : NULL, *name;
    size_t n;
    char word[LLM_SHELL_WORD];
    if (!names || !arg_next_name(&names, &name, &n))
        return args_unexpected(p->spec, s, p->i + 1 < p->argc ? p->argv[p->i + 1] : NULL);
    if (p->list && p->list->number_follows)
        return ((const arg_list *)p->list->out)->n % 2
                   ? wrong(p->spec->tool, "%.*s %s: '%.*s' is not a number", (int)n, name,
                           p->list->value, shown(s), s)
                   : args_unexpected(p->spec, s, p->i + 1 < p->argc ? p->argv[p->i + 1] : NULL);
    if (p->maybe)
        return wrong(p->spec->tool, "unexpected argument '%s'; did you mean %.*s=%s?", s, (int)n,
                     name, llm_shell_quote(word, s));
    return wrong(p->spec->tool,
                 "unexpected argument '%s'; did you mean %.*s %s? Each value needs the flag", s,
                 (int)n, name, llm_shell_quote(word, s));
}

/* Returns the option that probably was meant before an argument that stands alone; NULL: none. */
static const char *missing_flag(const args_spec *spec, const char *s) {
    static const char *const flags[] = {"-m", "-f", "-p"};
    os_stat st;
    const bool exists = ggl_os_stat(s, &st);
    const bool model = strncmp(s, "builtin:", 8) == 0 || ggl_case_ends_with(s, ".gguf") ||
                       ggl_case_ends_with(s, ".safetensors") || ggl_case_ends_with(s, ".bin") ||
                       (exists && st.kind == OS_FOLDER);
    for (int k = model ? 0 : exists ? 1 : 2; k < 3; k++) {
        const arg_option *o = arg_find(spec->options, flags[k], 2);
        if (o && (o->kind == ARG_STRING ||
                  (o->kind == ARG_LIST && (k == 0 || strcmp(o->value, "TEXT") == 0))))
            return flags[k];
    }
    return NULL;
}

/* Returns USER/REPO or USER/REPO:QUANT if a model is named so, as ollama's users do with hf.co/ before it; else NULL. */
static const char *repository(const char *s) {
    static const char *const heads[] = {"https://", "hf:", "hf.co/", "huggingface.co/"};
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    for (size_t i = 0; s && i < sizeof heads / sizeof *heads; i++)
        if (ggl_case_compare_n(s, heads[i], strlen(heads[i])) == 0)
            s += strlen(heads[i]);
    const size_t n = s ? strspn(s, allowed) : 0;
    if (n == 0 || s[n] != '/' || strchr(".-", *s))
        return NULL;
    const char *rest = s + n + 1;
    rest += strspn(rest, allowed);
    return rest[-1] != '/' &&
                   (!*rest || (*rest == ':' && rest[1 + strspn(rest + 1, allowed)] == '\0'))
               ? s
               : NULL;
}

/* Says what to do instead of a command of another program. next: the argument after it, or NULL. */
static int wrong_command(const args_spec *spec, const char *s, const char *text, const char *next) {
    static const char place[] = "USER/REPO";
    const char *name = repository(next), *at = name ? strstr(text, place) : NULL;
    if (!at)
        return wrong(spec->tool, "there is no command '%s': %s", s, text);
    return wrong(spec->tool, "there is no command '%s': %.*s%s%s", s, (int)(at - text), text, name,
                 at + sizeof place - 1);
}

static int no_command(const args_spec *spec, const char *s, const char *near) {
    return wrong(spec->tool, "there is no command '%s'%s; did you mean '%s'?", s,
                 spec->positional ? ", and no file of that name" : "", near);
}

int args_unexpected(const args_spec *spec, const char *s, const char *next) {
    const char *flag = missing_flag(spec, s);
    const int n = shown(s);
    const char *dots = s[n] ? " .." : "";
    for (const arg_hint *h = NULL; (h = arg_next_hint(spec, h));)
        if (arg_is_among(h->names, s, strlen(s)))
            return wrong_command(spec, s, h->text, next);
    /* U+2010 to U+2015 and U+2212, which word processors and web pages make of "--" */
    if ((strncmp(s, "\xE2\x80", 2) == 0 && ((unsigned char)s[2] & 0xF8) == 0x90) ||
        strncmp(s, "\xE2\x88\x92", 3) == 0)
        return wrong(spec->tool,
                     "'%.*s' begins with a long dash; flags begin with the hyphens of the "
                     "keyboard: -%.*s or --%.*s",
                     n, s, n - 3, s + 3, n - 3, s + 3);
    const char *command = args_near_command(spec->commands, s);
    if (command && *s != '-')
        return no_command(spec, s, command);
    if (!flag)
        return wrong(spec->tool, "unexpected argument '%.*s%s'; see --help", n, s, dots);
    char word[LLM_SHELL_WORD];
    if (!*dots) /* a command to copy */
        return wrong(spec->tool, "unexpected argument '%s'; did you mean %s %s?", s, flag,
                     llm_shell_quote(word, s));
    return wrong(spec->tool, "unexpected argument '%.*s%s'; did you mean %s '%.*s%s'?", n, s, dots,
                 flag, n, s, dots);
}

/* Prints a note on variables that begin with the prefix, which have no effect here. */
static void note_variables(const args_spec *spec, const char *prefix, const char *readers) {
    enum { MOST = 3 };
    int n = 0;
    for (char **e = ggl_os_environment(); spec->hints && !tool_is_quiet() && e && *e; e++) {
        if (strncmp(*e, prefix, strlen(prefix)) != 0 || n++ >= MOST)
            continue;
        if (n == 1)
            fprintf(stderr,
                    "%s: note: only %s read%s these variables; flags set "
                    "the same here:",
                    spec->tool, readers, ggl_case_ends_with(readers, "s") ? "" : "s");
        ggl_fprint(stderr, " %.*s", (int)strcspn(*e, "="), *e);
    }
    if (n > MOST)
        fprintf(stderr, " and %d more", n - MOST);
    if (n > 0)
        fputc('\n', stderr);
}

/* Variables of llama.cpp's programs, LLAMA_ARG_CTX_SIZE for --ctx-size, and of ollama's server. */
static void note_environment(const args_spec *spec) {
    note_variables(spec, "LLAMA_ARG_", "llama.cpp's programs");
    if (arg_find(spec->options, "--port", 6))
        note_variables(spec, "OLLAMA_", "ollama");
}

static int read_arguments(parsing *p) {
    const args_spec *spec = p->spec;
    bool options = true;
    const char *first = p->argc > 1 ? p->argv[1] : NULL;
    if (first && *first != '-' && spec->positional && !ggl_file_exists(first)) {
        const char *near = args_near_command(spec->commands, first);
        if (near)
            return no_command(spec, first, near);
    }
    for (p->i = 1; p->i < p->argc; p->i++) {
        const char *s = p->argv[p->i];
        int code = -1;
        if (options && strcmp(s, "--") == 0)
            options = false;
        else if (options && s[0] == '-' && s[1] != '\0')
            code = read_option(p);
        else if (!spec->positional)
            code = read_lone(p, s);
        else if (!*s)
            code = wrong(spec->tool, "argument %zu is empty; usage: %s %s", spec->positional->n + 1,
                         spec->tool, spec->usage);
        else if (!list_add(spec->positional, s))
            code = tool_error(spec->tool, 1, "out of memory");
        if (code >= 0)
            return code;
    }
    if (!spec->last_wins) /* else it was said before */
        note_environment(spec);
    return -1;
}

/* True if the command line has -q anywhere, so that notes before it are left out, too. A value cannot
 * look like it. */
static bool is_quiet(int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (arg_is_among(args_built_in[ARGS_QUIET].names, argv[i], strlen(argv[i])))
            return true;
    return false;
}

int args_parse(const args_spec *spec, int argc, char **argv) {
    size_t n = 0;
    while (arg_is_row(&spec->options[n]))
        n++;
    tool_set_name(spec->tool);
    if (is_quiet(argc, argv))
        tool_set_quiet(true);
    parsing p = {.spec = spec, .argc = argc, .argv = argv};
    p.given = calloc(n + 1, sizeof *p.given);
    const int code = p.given ? read_arguments(&p) : tool_error(spec->tool, 1, "out of memory");
    free(p.given);
    return code;
}

int args_parse_between(const args_spec *spec, size_t least, size_t most, int argc, char **argv) {
    const arg_list *given = spec->positional;
    int code = args_parse(spec, argc, argv);
    if (code < 0 && (given->n < least || given->n > most))
        code = tool_error(spec->tool, 2, "%s; usage: %s %s",
                          given->n < least ? "an argument is missing" : "too many arguments",
                          spec->tool, spec->usage);
    if (code >= 0)
        args_list_fini(spec->positional);
    return code;
}
