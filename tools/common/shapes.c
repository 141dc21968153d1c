#include "ggl/internal/number.h"
#include "shapes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"

/* --- lines and words -------------------------------------------------------------------------- */

typedef struct lines {
    const char *s, *end;
    int number;
    char line[256];
    bool too_long;
} lines;

/* Sets *l to the next line that is not empty, without its comment. */
static bool next_line(lines *l) {
    while (l->s < l->end) {
        const char *stop = memchr(l->s, '\n', (size_t)(l->end - l->s));
        size_t n = (size_t)((stop ? stop : l->end) - l->s);
        l->too_long = n >= sizeof l->line;
        size_t kept = l->too_long ? sizeof l->line - 1 : n;
        memcpy(l->line, l->s, kept);
        l->line[kept] = '\0';
        l->s += n + (stop != NULL);
        l->number++;
        l->line[strcspn(l->line, "#\r")] = '\0';
        if (l->line[strspn(l->line, " \t")] != '\0' || l->too_long)
            return true;
    }
    return false;
}

/* Reads the next word of *s, cut to BENCH_SHAPE_NAME - 1 bytes. */
static bool next_word(const char **s, char word[BENCH_SHAPE_NAME]) {
    *s += strspn(*s, " \t");
    size_t n = strcspn(*s, " \t"), kept = n < BENCH_SHAPE_NAME ? n : BENCH_SHAPE_NAME - 1;
    memcpy(word, *s, kept);
    word[kept] = '\0';
    *s += n;
    return n > 0;
}

/* Returns the text after `word` if the line begins with it, else NULL. */
static const char *begins(const char *line, const char *word) {
    size_t n = strlen(word);
    line += strspn(line, " \t");
    return strncmp(line, word, n) == 0 && (line[n] == ' ' || line[n] == '\t') ? line + n : NULL;
}

static bool names(const char *rule, const char *tensor) {
    size_t n = strlen(rule), m = strlen(tensor);
    return strcmp(rule, tensor) == 0 ||
           (m > n && tensor[m - n - 1] == '.' && strcmp(tensor + m - n, rule) == 0);
}

/* --- one shape -------------------------------------------------------------------------------- */

static ggl_status bad_line(const lines *l, ggl_error *err, const char *what) {
    return ggl_fail(err, GGL_FORMAT, "shapes:%d: %s", l->number, what);
}

static ggl_status read_list(bench_shape *s, bench_key *k, const char *v, const lines *l,
                            ggl_error *err) {
    k->kind = BENCH_KEY_LIST;
    k->first = s->n_list;
    for (v++; *v != ']';) {
        char *end;
        long x = strtol(v, &end, 10);
        if (end == v || s->n_list == BENCH_SHAPE_LIST)
            return bad_line(
                l, err, "a list must be written as [1, 2, 3], or the lists are too long together");
        s->list[s->n_list++] = (int32_t)x;
        k->n++;
        v = end + strspn(end, " \t");
        if (*v == ',')
            v++;
        else if (*v != ']')
            return bad_line(l, err, "a list must end with ]");
        v += strspn(v, " \t");
    }
    return GGL_OK;
}

static ggl_status read_value(bench_shape *s, bench_key *k, const char *v, const lines *l,
                             ggl_error *err) {
    size_t n = strlen(v);
    if (*v == '[')
        return read_list(s, k, v, l, err);
    if (strcmp(v, "true") == 0 || strcmp(v, "false") == 0) {
        k->kind = BENCH_KEY_BOOL;
        k->number = *v == 't';
        return GGL_OK;
    }
    if (*v == '"' && n > 1 && v[n - 1] == '"' && n - 2 < sizeof k->string) {
        k->kind = BENCH_KEY_STRING;
        memcpy(k->string, v + 1, n - 2);
        return GGL_OK;
    }
    k->kind = strpbrk(v, ".e") ? BENCH_KEY_FLOAT : BENCH_KEY_INTEGER;
    k->number = ggl_number_value(v, n);
    return n > 0 && ggl_number_length(v, n) == n
               ? GGL_OK
               : bad_line(l, err, "a key's value is missing or wrong");
}

static ggl_status read_key(bench_shape *s, const lines *l, ggl_error *err) {
    const char *at = l->line;
    char name[BENCH_SHAPE_NAME], is[BENCH_SHAPE_NAME], value[256];
    if (!next_word(&at, name) || !next_word(&at, is) || strcmp(is, "=") != 0)
        return bad_line(l, err, "neither 'shape', 'vocab', 'with' nor KEY = VALUE");
    if (s->n_keys == BENCH_SHAPE_KEYS)
        return bad_line(l, err, "too many keys");
    bench_key *k = &s->key[s->n_keys++];
    *k = (bench_key){.first = 0};
    snprintf(k->name, sizeof k->name, "%s%s", name[0] == '.' ? s->arch : "", name);
    snprintf(value, sizeof value, "%s", at + strspn(at, " \t"));
    for (size_t n = strlen(value); n > 0 && strchr(" \t", value[n - 1]); n--)
        value[n - 1] = '\0';
    return read_value(s, k, value, l, err);
}

static ggl_status read_vocab(bench_shape *s, const char *at, const lines *l, ggl_error *err) {
    char number[BENCH_SHAPE_NAME];
    bool range;
    if (!next_word(&at, number) || !args_read_int(number, &s->n_vocab, &range) || s->n_vocab < 1 ||
        !next_word(&at, s->tokenizer))
        return bad_line(l, err, "vocab N MODEL [PRE]");
    (void)next_word(&at, s->pre);
    return GGL_OK;
}

static ggl_status read_shape(bench_shape *s, lines *l, ggl_error *err) {
    ggl_status st = GGL_OK;
    while (st == GGL_OK && next_line(l)) {
        const char *vocab = begins(l->line, "vocab");
        if (begins(l->line, "shape"))
            break;
        if (l->too_long)
            st = bad_line(l, err, "the line is too long");
        else if (vocab)
            st = read_vocab(s, vocab, l, err);
        else if (!begins(l->line, "with"))
            st = read_key(s, l, err);
    }
    if (st == GGL_OK && s->n_vocab == 0)
        return ggl_fail(err, GGL_FORMAT, "shapes: '%s' has no line 'vocab'", s->name);
    return st;
}

/* Returns how far a name is from the shape's, or from how that begins: 'tinylama' means 'tinyllama-1.1b'. */
static size_t distance_of(const char *name, const char *shape) {
    const size_t n = strlen(name), n_shape = strlen(shape);
    size_t least = args_distance(name, n, shape, n_shape);
    for (size_t k = n > 3 ? n - 1 : 3; k <= n + 1 && k < n_shape; k++) {
        const size_t d = args_distance(name, n, shape, k);
        least = d < least ? d : least;
    }
    return least;
}

static ggl_status not_found(const char *text, size_t n, const char *name, ggl_error *err) {
    char other[BENCH_SHAPE_NAME], best[BENCH_SHAPE_NAME] = "";
    size_t least = strlen(name) / 3 + 1; /* a larger distance is no help */
    for (int k = 0; bench_shape_at(text, n, k, other); k++) {
        const size_t d = distance_of(name, other);
        if (d < least) {
            least = d;
            memcpy(best, other, sizeof best);
        }
    }
    return ggl_fail(err, GGL_NOT_FOUND,
                    "there is no shape '%s'%s%s%s; 'llm-bench make --list' names them", name,
                    best[0] ? " (did you mean '" : "", best, best[0] ? "'?)" : "");
}

ggl_status bench_shape_find(bench_shape *out, const char *text, size_t n, const char *name,
                            ggl_error *err) {
    lines l = {.s = text, .end = text + n};
    *out = (bench_shape){.n_keys = 0};
    while (next_line(&l)) {
        const char *at = begins(l.line, "shape");
        if (!at || !next_word(&at, out->name) || strcmp(out->name, name) != 0)
            continue;
        if (!next_word(&at, out->arch))
            return bad_line(&l, err, "shape NAME ARCH");
        return read_shape(out, &l, err);
    }
    return not_found(text, n, name, err);
}

bool bench_shape_at(const char *text, size_t n, int k, char name[BENCH_SHAPE_NAME]) {
    lines l = {.s = text, .end = text + n};
    while (next_line(&l)) {
        const char *at = begins(l.line, "shape");
        if (at && next_word(&at, name) && k-- == 0)
            return true;
    }
    return false;
}

/* --- rules ------------------------------------------------------------------------------------ */

bool bench_shape_with(const char *text, size_t n, const char *shape, const char *tensor) {
    lines l = {.s = text, .end = text + n};
    char word[BENCH_SHAPE_NAME];
    bool inside = false;
    while (next_line(&l)) {
        const char *at = begins(l.line, "shape");
        if (at)
            inside = next_word(&at, word) && strcmp(word, shape) == 0;
        else if (inside && (at = begins(l.line, "with")))
            while (next_word(&at, word))
                if (names(word, tensor))
                    return true;
    }
    return false;
}

bool bench_shape_f32(const char *text, size_t n, const char *tensor) {
    lines l = {.s = text, .end = text + n};
    char word[BENCH_SHAPE_NAME];
    while (next_line(&l)) {
        const char *at = begins(l.line, "f32");
        while (at && next_word(&at, word))
            if (names(word, tensor))
                return true;
    }
    return false;
}

void bench_shape_values(const char *text, size_t n, const char *tensor, double *mean,
                        double *sigma) {
    lines l = {.s = text, .end = text + n};
    char word[BENCH_SHAPE_NAME], a[BENCH_SHAPE_NAME], b[BENCH_SHAPE_NAME];
    *mean = 0;
    *sigma = 0.02;
    while (next_line(&l)) {
        const char *at = begins(l.line, "values");
        if (at && next_word(&at, word) && names(word, tensor) && next_word(&at, a) &&
            next_word(&at, b)) {
            *mean = ggl_number_value(a, strlen(a));
            *sigma = ggl_number_value(b, strlen(b));
            return;
        }
    }
}

ggl_status bench_shape_set_layers(bench_shape *s, int64_t n_layer, ggl_error *err) {
    char name[2 * BENCH_SHAPE_NAME];
    snprintf(name, sizeof name, "%s.block_count", s->arch);
    for (int i = 0; i < s->n_keys; i++) {
        bench_key *k = &s->key[i];
        if (strcmp(k->name, name) != 0)
            continue;
        int64_t before = (int64_t)k->number;
        if (n_layer < 1 || n_layer > before)
            return ggl_fail(err, GGL_USAGE, "%" PRId64 " layers; '%s' has %" PRId64, n_layer,
                            s->name, before);
        k->number = (double)n_layer;
        for (int j = 0; j < s->n_keys; j++)
            if (s->key[j].kind == BENCH_KEY_LIST && s->key[j].n == before)
                s->key[j].n = (int)n_layer;
        return GGL_OK;
    }
    return ggl_fail(err, GGL_FORMAT, "shapes: '%s' has no %s", s->name, name);
}
