#include "flips.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- changing a text -------------------------------------------------------------------------- */

typedef struct text {
    char *s;
    size_t n, cap;
    bool failed;
} text;

static void put(text *t, const char *s, size_t n) {
    if (t->n + n + 1 > t->cap) {
        size_t cap = 2 * (t->n + n) + 256;
        char *grown = realloc(t->s, cap);
        if (!grown) {
            t->failed = true;
            return;
        }
        t->s = grown;
        t->cap = cap;
    }
    memcpy(t->s + t->n, s, n);
    t->n += n;
    t->s[t->n] = '\0';
}

static void puts_(text *t, const char *s) {
    put(t, s, strlen(s));
}

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

/* Returns the end of the comment or string that begins at i; i if none does. */
static size_t skip(const char *s, size_t n, size_t i) {
    if (s[i] == '#')
        while (i < n && s[i] != '\n')
            i++;
    else if (s[i] == '"') {
        for (i++; i < n && s[i] != '"' && s[i] != '\n'; i++)
            ;
        i += i < n;
    }
    return i;
}

/* Returns the length of the name or key (".a.b", with its dot) that begins at i; 0: none. */
static size_t token_at(const char *s, size_t n, size_t i) {
    size_t k = i;
    bool key = s[i] == '.' && i + 1 < n && (isalpha((unsigned char)s[i + 1]) || s[i + 1] == '_');
    if (i > 0 && (is_word(s[i - 1]) || s[i - 1] == '.'))
        return 0;
    if (!key && !isalpha((unsigned char)s[i]) && s[i] != '_')
        return 0;
    for (k++; k < n && (is_word(s[k]) || (key && s[k] == '.')); k++)
        ;
    return k - i;
}

/* Returns where the whole name or key `word` occurs next from i on, outside of comments, strings
 * and the convert section; n: nowhere. */
static size_t find_word(const char *s, size_t n, size_t i, const char *word) {
    size_t len = strlen(word);
    while (i < n) {
        size_t over = skip(s, n, i), t;
        if (over > i) {
            i = over;
            continue;
        }
        t = token_at(s, n, i);
        if (t == 7 && memcmp(s + i, "convert", 7) == 0 && (i == 0 || s[i - 1] == '\n'))
            return n;
        if (t == len && memcmp(s + i, word, len) == 0)
            return i;
        i += t ? t : 1;
    }
    return n;
}

/* Returns the end of the argument that begins at i: the next ',' or ')' outside of inner
 * brackets. */
static size_t argument_end(const char *s, size_t n, size_t i) {
    for (int depth = 0; i < n; i++) {
        size_t over = skip(s, n, i);
        if (over > i)
            i = over - 1;
        else if (s[i] == '(' || s[i] == '[')
            depth++;
        else if (depth == 0 && (s[i] == ',' || s[i] == ')'))
            return i;
        else if (s[i] == ')' || s[i] == ']')
            depth--;
    }
    return n;
}

/* Returns the place of the ')' that closes the '(' at `open`. */
static size_t call_end(const char *s, size_t n, size_t open) {
    size_t i = open + 1;
    while ((i = argument_end(s, n, i)) < n && s[i] == ',')
        i++;
    return i;
}

/* --- the choices ------------------------------------------------------------------------------ */

/* Adds a reading and takes over *t. Adds nothing if n_changes is 0: the text has no such choice. */
static void add_flip(flips *f, const char *what, text *t, int n_changes, const char *fmt, ...)
    GGL_PRINTF(5, 6);
static void add_flip(flips *f, const char *what, text *t, int n_changes, const char *fmt, ...) {
    f->failed |= t->failed;
    if (n_changes == 0 || t->failed || f->n_at == (int)(sizeof f->at / sizeof *f->at)) {
        free(t->s);
        return;
    }
    flip *x = &f->at[f->n_at++];
    va_list args;
    va_start(args, fmt);
    vsnprintf(x->reading, sizeof x->reading, fmt, args);
    va_end(args);
    x->what = what;
    x->s = t->s;
    x->n = t->n;
}

/* Appends the text to *t with every `from` replaced by `to`; returns how many there were. */
static int replace(const flips *f, text *t, const char *from, const char *to) {
    size_t i = 0;
    int n = 0;
    for (size_t k; (k = find_word(f->s, f->n, i, from)) < f->n; i = k + strlen(from), n++) {
        put(t, f->s + i, k - i);
        puts_(t, to);
    }
    put(t, f->s + i, f->n - i);
    return n;
}

static void flip_rope_style(flips *f) {
    static const char *const way[2][3] = {{"rope_pair", "rope_half", "element i with i + half"},
                                          {"rope_half", "rope_pair", "neighbours"}};
    for (int k = 0; k < 2; k++) {
        text t = {0};
        int n = replace(f, &t, way[k][0], way[k][1]);
        add_flip(f, "rotated pairs", &t, n, "%s", way[k][2]);
    }
}

/* Inserts `line` after the header of *t. */
static void add_statement(text *t, const char *line) {
    text out = {0};
    size_t at = find_word(t->s, t->n, 0, "language");
    while (at < t->n && t->s[at] != '\n')
        at++;
    put(&out, t->s, at);
    puts_(&out, line);
    put(&out, t->s + at, t->n - at);
    out.failed |= t->failed;
    free(t->s);
    *t = out;
}

static size_t spaces_end(const char *s, size_t n, size_t i) {
    while (i < n && s[i] == ' ')
        i++;
    return i;
}

/* Appends `value` in place of the expression in from .. to. The expression stays in the text as
 * an arm that is not taken, so that the names in it still have a reader; *lost gets statements
 * that ignore its keys. With a name: appends a new argument instead. */
static void put_value(const flips *f, text *t, text *lost, const char *name, const char *value,
                      size_t from, size_t to) {
    if (name) {
        puts_(t, ", ");
        puts_(t, name);
        puts_(t, " = ");
        puts_(t, value);
        return;
    }
    puts_(t, "(");
    puts_(t, value);
    puts_(t, " if true else (");
    put(t, f->s + from, to - from);
    puts_(t, "\n))"); /* the expression may end in a comment */
    for (size_t j = from; j < to; j++)
        if (f->s[j] == '.' && token_at(f->s, f->n, j) > 0) {
            puts_(lost, "\nignore ");
            put(lost, f->s + j, token_at(f->s, f->n, j));
            puts_(lost, "\n");
        }
}

/* Returns the end of the term at i (a number, key, name, call, or brackets); i if none. */
static size_t term_end(const flips *f, size_t i) {
    size_t end = i + token_at(f->s, f->n, i);
    while (end < f->n && isdigit((unsigned char)f->s[i]) &&
           (is_word(f->s[end]) || f->s[end] == '.' || (f->s[end] == '-' && f->s[end - 1] == 'e')))
        end++;
    if (end < f->n && f->s[end] == '(')
        end = call_end(f->s, f->n, end) + 1;
    return end < f->n ? end : f->n;
}

/* Replaces a key, together with its default, by a number; returns how often. */
static int replace_key(const flips *f, text *t, const char *key, double value) {
    text lost = {0};
    size_t i = 0;
    int n = 0;
    for (size_t k; (k = find_word(f->s, f->n, i, key)) < f->n; n++) {
        char number[40];
        size_t end = k + strlen(key), after;
        while ((after = spaces_end(f->s, f->n, end)) + 2 < f->n && f->s[after] == '?' &&
               f->s[after + 1] == '?') {
            after = spaces_end(f->s, f->n, after + 2);
            end = term_end(f, after);
            if (end == after)
                break;
        }
        snprintf(number, sizeof number, "%.9g", value);
        put(t, f->s + i, k - i);
        put_value(f, t, &lost, NULL, number, k, end);
        i = end;
    }
    put(t, f->s + i, f->n - i);
    if (lost.s && !t->failed)
        add_statement(t, lost.s);
    t->failed |= lost.failed;
    free(lost.s);
    return n;
}

static void flip_key(flips *f, const char *what, const char *key, const double *value,
                     size_t n_values) {
    for (size_t i = 0; i < n_values; i++) {
        text t = {0};
        int n = replace_key(f, &t, key, value[i]);
        add_flip(f, what, &t, n, "%.7g", value[i]);
    }
}

static void flip_numbers(flips *f) {
    static const double base[] = {10000, 500000, 1000000}, eps[] = {1e-6, 1e-5, 1e-2};
    flip_key(f, "rope base", ".rope.freq_base", base, 3);
    flip_key(f, "norm epsilon", ".attention.layer_norm_rms_epsilon", eps, 3);
    flip_key(f, "norm epsilon", ".attention.layer_norm_epsilon", eps, 3);
}

static void flip_activations(flips *f) {
    static const char *const name[] = {"silu", "gelu", "gelu_erf", "gelu_quick", "relu"};
    for (size_t from = 0; from < 5; from++)
        for (size_t to = 0; to < 5; to++) {
            text t = {0};
            int n = from == to ? 0 : replace(f, &t, name[from], name[to]);
            add_flip(f, "activation", &t, n, "%s for %s", name[to], name[from]);
        }
}

/* Adds a reading with rms_norm or layer_norm replaced by a function that is defined after the
 * header. */
static void flip_norm_offset(flips *f, const char *norm, const char *row, const char *sign,
                             const char *reading) {
    text t = {0};
    char name[32], def[256];
    snprintf(name, sizeof name, "doctor_%s", norm);
    snprintf(def, sizeof def, "\ndef %s(x, w, eps) = affine(%s, w) %s (%s if has(w) else 0)\n",
             name, row, sign, row);
    int n = replace(f, &t, norm, name);
    if (n > 0 && !t.failed)
        add_statement(&t, def);
    add_flip(f, "norm weight", &t, n, "%s (%s)", reading, norm);
}

/* Returns where the value of a call's argument `name` begins, between `open` and `close`;
 * `close`: the call has no such argument. */
static size_t argument_value(const flips *f, size_t open, size_t close, const char *name) {
    for (size_t i = open; (i = find_word(f->s, f->n, i, name)) < close;) {
        i = spaces_end(f->s, close, i + strlen(name));
        if (f->s[i] == '=' && f->s[i + 1] != '=') /* s[close] is a ')', so i + 1 is in the text */
            return spaces_end(f->s, close, i + 1);
    }
    return close;
}

/* Sets `name = value` in every call of attend or attention, in place of the value that it has;
 * `swap`: instead turns a value "a if c else b" into "b if c else a". Returns how many were
 * changed. */
static int set_argument(const flips *f, text *t, const char *name, const char *value,
                        bool only_present, bool swap) {
    text lost = {0};
    size_t i = 0;
    int n = 0;
    for (size_t k = 0; k < f->n;) {
        size_t a = find_word(f->s, f->n, k, "attend"), b = find_word(f->s, f->n, k, "attention"),
               at = a < b ? a : b;
        size_t open = at + (at == a ? 6 : 9);
        k = open;
        if (at == f->n || open >= f->n || f->s[open] != '(')
            continue;
        size_t close = call_end(f->s, f->n, open), from = argument_value(f, open, close, name),
               to = close;
        bool has = from < close;
        if (close == f->n || (only_present && !has))
            continue;
        if (has)
            to = argument_end(f->s, f->n, from);
        size_t c = find_word(f->s, to, from, "if"), e = find_word(f->s, to, from, "else");
        if (swap && !(has && c < to && e < to))
            continue;
        put(t, f->s + i, from - i);
        if (swap) {
            put(t, f->s + e + 4, to - e - 4);
            puts_(t, " ");
            put(t, f->s + c, e - c);
            puts_(t, "else ");
            put(t, f->s + from, c - from);
        } else {
            put_value(f, t, &lost, has ? NULL : name, value, from, to);
        }
        i = to;
        n++;
    }
    put(t, f->s + i, f->n - i);
    if (lost.s && !t->failed)
        add_statement(t, lost.s);
    t->failed |= lost.failed;
    free(lost.s);
    return n;
}

static void flip_attention(flips *f) {
    text t = {0};
    int n = set_argument(f, &t, "scale", "1", false, false);
    add_flip(f, "attention scale", &t, n, "none: 1");
    t = (text){0};
    n = set_argument(f, &t, "scale", "none", true, false);
    add_flip(f, "attention scale", &t, n, "1 / sqrt of the head's size");
    t = (text){0};
    n = set_argument(f, &t, "window", "none", true, false);
    add_flip(f, "attention window", &t, n, "none");
    t = (text){0};
    n = set_argument(f, &t, "window", "", true, true);
    add_flip(f, "attention window", &t, n, "on the other layers");
    t = (text){0};
    n = set_argument(f, &t, "cap", "none", true, false);
    add_flip(f, "soft cap of scores", &t, n, "none");
}

void flips_find(flips *f, const char *s, size_t n) {
    *f = (flips){.s = s, .n = n};
    flip_rope_style(f);
    flip_numbers(f);
    flip_activations(f);
    flip_norm_offset(f, "rms_norm", "rms(x, eps)", "+", "1 + w");
    flip_norm_offset(f, "rms_norm", "rms(x, eps)", "-", "w - 1");
    flip_norm_offset(f, "layer_norm", "rms(center(x), eps)", "+", "1 + w");
    flip_attention(f);
}

void flips_fini(flips *f) {
    for (int i = 0; i < f->n_at; i++)
        free(f->at[i].s);
    *f = (flips){0};
}

bool flips_reads(const char *s, size_t n, const char *word) {
    return find_word(s, n, 0, word) < n;
}
