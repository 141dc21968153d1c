/* Values of config.json that no line of a convert section reads. They are errors, like unread
 * tensors: ignoring an option would give a model that runs but is wrong. known_config.txt lists
 * values that have no effect.
 *
 * A line reads a value if it mentions it, in any branch. Paths are looked up in tables, so the
 * time is linear in the two texts. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conversion.h"
#include "ggl/internal/number.h"
#include "ggl/internal/show.h"
#include "ggl/internal/steps.h"

#define MAX_PATH  500 /* bytes; of a longer path, lines show the beginning */
#define MAX_SHOWN 1500

extern const unsigned char llm_embedded_known_config[];
extern const size_t llm_embedded_known_config_size;

typedef struct known_line {
    ggl_str name, rest; /* rest: the values, or why it is refused */
    bool refused;
} known_line;

typedef struct paths {
    ggl_str *name;
    ggl_index index;
    size_t n, cap, longest; /* longest: bytes of the longest name */
} paths;

typedef struct search {
    const arch_conversion *c;
    ggl_arena arena;
    paths named, ignored, only; /* only: objects outside of which nothing need be read; none: all */
    known_line *line, *pattern; /* lines of known_config.txt without and with '*' */
    size_t n_line, cap_line, n_pattern, cap_pattern;
    ggl_index by_name;
    size_t longest; /* bytes of the longest name in by_name */
    ggl_status status;
    ggl_error *err;
    const arch_expr *inner; /* the inner part of the field visited last */
    char path[MAX_PATH + 4];
    size_t end[LLM_JSON_MAX_DEPTH + 1]; /* length of the path at each depth */
    arch_unread_fn found;
    void *ctx;
} search;

static bool no_memory(search *s) {
    if (s->status == GGL_OK)
        s->status = ggl_fail(s->err, GGL_NOMEM, "out of memory");
    return false;
}

/* --- paths that the section mentions ---------------------------------------------------------- */

static bool put_path(search *s, paths *p, const char *text) {
    size_t n = strlen(text);
    char *own = ggl_arena_strndup(&s->arena, text, n);
    if (!own || !ggl_grow(&p->name, &p->cap, p->n + 1, sizeof *p->name))
        return no_memory(s);
    p->name[p->n] = (ggl_str){own, n};
    p->longest = n > p->longest ? n : p->longest;
    ggl_status st = arch_index_room(&p->index, p->name, p->n + 1, sizeof *p->name, s->err);
    if (st != GGL_OK) {
        s->status = st;
        return false;
    }
    ggl_index_put(&p->index, p->name, p->n++);
    return true;
}

static bool has_path(const paths *p, ggl_str path) {
    if (path.n > p->longest) /* so that a long path is not hashed for each value below it */
        return false;
    GGL_STEPS(path.n);
    return ggl_index_find(&p->index, p->name, path) != SIZE_MAX;
}

/* Adds the paths where section_config.c looks for rope.x. If it is for any kind of layer, the
 * path has an empty kind: "rope_parameters..factor". */
static void put_rope(search *s, const char *layer, const char *name) {
    static const char *const boxes[] = {"rope_parameters", "rope_scaling"};
    char text[3 * ARCH_MAX_NAME + 40];
    const char *const *outside;
    const char *key = llm_arch_rope_key(name, &outside);
    for (int alias = 0; alias < 2; alias++) {
        const char *k = alias ? "type" : key;
        if (alias && strcmp(key, "rope_type") != 0)
            continue;
        for (int b = 0; b < 2; b++) {
            snprintf(text, sizeof text, "%s.%s", boxes[b], k);
            put_path(s, &s->named, text);
            snprintf(text, sizeof text, "%s.%s.%s", boxes[b], layer ? layer : "", k);
            put_path(s, &s->named, text);
        }
    }
    for (int k = 0; k < ARCH_ROPE_NAMES && outside[k]; k++)
        put_path(s, &s->named, outside[k]);
    if (layer && strcmp(key, "rope_theta") == 0)
        put_path(s, &s->named, "rope_local_base_freq");
}

static void add_text(char *buf, size_t size, const char *text) {
    const size_t n = strlen(buf);
    snprintf(buf + n, size - n, "%s", text);
}

/* Writes the path of config.a.b[i].c: "a.b[].c"; "" for other expressions. */
static void path_text(const arch_expr *e, char *buf, size_t size) {
    buf[0] = 0;
    if (e->kind == EX_INDEX && e->a->kind != EX_NAME) {
        path_text(e->a, buf, size);
        add_text(buf, size, "[]");
    } else if (e->kind == EX_FIELD) {
        const bool top = e->a->kind == EX_NAME;
        if (!top)
            path_text(e->a, buf, size);
        if (top ? strcmp(e->a->name, "config") != 0 : !buf[0])
            return;
        add_text(buf, size, top ? "" : ".");
        add_text(buf, size, e->name);
    }
}

/* Adds the path of a field, or all paths of rope.x. */
static void put_field(search *s, paths *p, const arch_expr *e) {
    const char *name[2], *root;
    char text[MAX_PATH + 1];
    const int n = llm_arch_field_path(e, name, 2, &root);
    path_text(e, text, sizeof text);
    if (strcmp(root, "rope") == 0 && n <= 2)
        put_rope(s, n == 2 ? name[0] : NULL, name[n - 1]);
    else if (text[0])
        put_path(s, p, text);
}

/* Adds the fields of an expression: of config.a.b the whole path, not config.a. */
static void visit(void *ctx, arch_expr *e) {
    search *s = ctx;
    const bool inner = e == s->inner;
    if ((e->kind != EX_FIELD && !(inner && e->kind == EX_INDEX)) || s->status != GGL_OK)
        return;
    s->inner = e->a;
    if (!inner)
        put_field(s, &s->named, e);
}

static bool collect(search *s) {
    for (const arch_mapping *m = s->c->section->map; m && s->status == GGL_OK; m = m->next) {
        s->inner = NULL;
        if (m->kind >= MAP_IGNORE && m->expr)
            put_field(s, m->kind == MAP_ONLY ? &s->only : &s->ignored, m->expr);
        else if (m->expr)
            llm_arch_walk_expr(m->expr, visit, s);
    }
    return s->status == GGL_OK;
}

/* --- known_config.txt ------------------------------------------------------------------------- */

static ggl_str trim(ggl_str s) {
    while (s.n > 0 && *s.s == ' ') {
        s.s++;
        s.n--;
    }
    while (s.n > 0 && s.s[s.n - 1] == ' ')
        s.n--;
    return s;
}

static ggl_str first_word(ggl_str *s) {
    *s = trim(*s);
    size_t n = 0;
    while (n < s->n && s->s[n] != ' ')
        n++;
    ggl_str word = {s->s, n};
    *s = trim((ggl_str){s->s + n, s->n - n});
    return word;
}

static bool read_table(search *s) {
    const char *at = (const char *)llm_embedded_known_config,
               *end = at + llm_embedded_known_config_size;
    for (const char *next; at < end; at = next) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        next = stop + 1;
        ggl_str rest = {at, (size_t)(stop - at)}, word = first_word(&rest);
        if (word.n == 0 || word.s[0] == '#')
            continue;
        known_line line = {.refused = word.n == 6 && memcmp(word.s, "refuse", 6) == 0};
        line.name = line.refused ? first_word(&rest) : word;
        line.rest = rest;
        if (!ggl_grow(&s->line, &s->cap_line, s->n_line + 1, sizeof *s->line) ||
            !ggl_grow(&s->pattern, &s->cap_pattern, s->n_pattern + 1, sizeof *s->pattern))
            return no_memory(s);
        if (memchr(line.name.s, '*', line.name.n))
            s->pattern[s->n_pattern++] = line;
        else
            s->line[s->n_line++] = line;
    }
    s->status = ggl_index_init(&s->by_name, s->n_line, sizeof *s->line, GGL_INDEX_STRINGS, s->err);
    for (size_t i = 0; s->status == GGL_OK && i < s->n_line; i++) {
        s->longest = s->line[i].name.n > s->longest ? s->line[i].name.n : s->longest;
        ggl_index_put(&s->by_name, s->line, i);
    }
    return s->status == GGL_OK;
}

/* True if the path matches a pattern with one '*'. The time depends only on the pattern's
 * length. */
static bool fits(ggl_str pattern, ggl_str path) {
    const char *star = memchr(pattern.s, '*', pattern.n);
    const size_t before = (size_t)(star - pattern.s), after = pattern.n - before - 1;
    GGL_STEPS(pattern.n);
    return path.n >= before + after && memcmp(path.s, pattern.s, before) == 0 &&
           memcmp(path.s + path.n - after, star + 1, after) == 0;
}

static const known_line *find_line(const search *s, ggl_str path) {
    size_t i = SIZE_MAX;
    if (path.n <= s->longest) {
        GGL_STEPS(path.n);
        i = ggl_index_find(&s->by_name, s->line, path);
    }
    if (i != SIZE_MAX)
        return &s->line[i];
    for (i = 0; i < s->n_pattern; i++)
        if (fits(s->pattern[i].name, path))
            return &s->pattern[i];
    return NULL;
}

/* Writes a list as "[1, 2, 3, ..] of 48". */
static void list_text(const json_value *v, char *buf, size_t size) {
    char item[80];
    size_t n = (size_t)snprintf(buf, size, "[");
    for (size_t i = 0; i < v->n && i < 3 && n < size; i++) {
        const json_value *x = &v->item[i];
        llm_arch_json_text(x->kind == JSON_ARRAY ? &(json_value){.kind = JSON_OBJECT} : x, item,
                           sizeof item);
        n += (size_t)snprintf(buf + n, size - n, "%s%.*s", i ? ", " : "",
                              (int)ggl_utf8_cut(item, strlen(item), 24),
                              x->kind == JSON_ARRAY ? "[..]" : item);
    }
    if (n < size)
        snprintf(buf + n, size - n, v->n > 3 ? ", ..] of %" PRIu32 : "]", v->n);
}

/* Spelled as in config.json. */
static const char *odd_number_text(double x) {
    return isnan(x) ? "NaN" : x > 0 ? "Infinity" : "-Infinity";
}

const char *llm_arch_json_text(const json_value *v, char *buf, size_t size) {
    char shown[250];
    switch (v->kind) {
    case JSON_BOOL:
        snprintf(buf, size, "%s", v->flag ? "true" : "false");
        break;
    case JSON_NUMBER:
        if (!isfinite(v->number)) {
            snprintf(buf, size, "%s", odd_number_text(v->number));
            break;
        }
        snprintf(buf, size, "%.12g", v->number);
        if (ggl_number_value(buf, strlen(buf)) != v->number)
            snprintf(buf, size, "%.17g", v->number);
        break;
    case JSON_STRING:
        ggl_show(shown, sizeof shown, v->s, ggl_utf8_cut(v->s, v->n, 60)); /* on one line */
        snprintf(buf, size, "\"%s\"", shown);
        break;
    case JSON_ARRAY:
        list_text(v, buf, size);
        break;
    default:
        snprintf(buf, size, "%s", llm_json_kind_text(v->kind));
    }
    return buf;
}

static bool is_word(ggl_str word, const char *text, size_t n) {
    return word.n == n && memcmp(word.s, text, n) == 0;
}

/* True if a word of the table stands for the value. "false" is the truth value, not the string. */
static bool is_value(ggl_str word, const json_value *v) {
    char number[40];
    const bool flag = is_word(word, "true", 4) || is_word(word, "false", 5);
    switch (v->kind) {
    case JSON_BOOL:
        return flag && (word.n == 4) == v->flag;
    case JSON_NUMBER:
        if (isfinite(v->number))
            snprintf(number, sizeof number, "%.17g", v->number + 0.0); /* so that -0 prints as 0 */
        else
            snprintf(number, sizeof number, "%s", odd_number_text(v->number));
        return is_word(word, number, strlen(number));
    case JSON_STRING:
        return !flag && !(word.s[0] >= '0' && word.s[0] <= '9') && is_word(word, v->s, v->n);
    default:
        return false;
    }
}

/* True if one of the words stands for the value. */
static bool is_one_of(ggl_str words, const json_value *v) {
    for (ggl_str word = first_word(&words); word.n > 0; word = first_word(&words))
        if (is_value(word, v))
            return true;
    return false;
}

/* "= VALUE ..": true if one of them is the value, or for a list, each element is one of them.
 * "": true. */
static bool has_value(ggl_str rest, const json_value *v) {
    if (first_word(&rest).n == 0)
        return true;
    if (v->kind != JSON_ARRAY)
        return is_one_of(rest, v);
    for (size_t i = 0; i < v->n; i++)
        if (v->item[i].kind >= JSON_ARRAY || !is_one_of(rest, &v->item[i]))
            return false;
    return true;
}

/* --- config.json ------------------------------------------------------------------------------ */

static bool is_numeral(ggl_str s) {
    size_t i = 0;
    while (i < s.n && s.s[i] >= '0' && s.s[i] <= '9')
        i++;
    return s.n > 0 && i == s.n;
}

/* True if the section mentions the path. For rope_parameters.KIND.x also looks up the path
 * without kind, for x.NUMBER.y that of an element, x[].y, for x.NUMBER that of x, which config.x[i] mentions. */
static bool is_named(search *s, ggl_str path, int depth, int outside) {
    char text[MAX_PATH + 4];
    if (has_path(&s->named, path))
        return true;
    if (depth - outside == 2) {
        const char *last = s->path + s->end[outside + 1] + 1;
        return is_numeral((ggl_str){last, strlen(last)}) &&
               has_path(&s->named, (ggl_str){path.s, (size_t)(last - 1 - path.s)});
    }
    if (depth - outside != 3)
        return false;
    const size_t kind = (size_t)(s->path + s->end[outside + 1] - path.s);
    const char *middle = s->path + s->end[outside + 1] + 1, *rest = s->path + s->end[outside + 2];
    const char *element = is_numeral((ggl_str){middle, (size_t)(rest - middle)}) ? "[]" : ".";
    const size_t n_rest = strlen(rest);
    if (kind + strlen(element) + n_rest > s->named.longest)
        return false;
    snprintf(text, sizeof text, "%.*s%s%.*s", (int)kind, path.s, element, (int)n_rest, rest);
    return has_path(&s->named, (ggl_str){text, strlen(text)});
}

static bool is_empty(const json_value *v) {
    return v->kind == JSON_NULL || (v->kind >= JSON_ARRAY && v->n == 0);
}

/* True if a pattern of the user's matches. A pattern that matches an object or list covers
 * everything in it, so prefixes of the path up to each '.' and '[' are tried. A name may be
 * empty. */
static bool on_request(const search *s) {
    const llm_arch_ignore *r = s->c->ignore;
    bool any = false, escaped = false;
    if (!r || r->n_key == 0)
        return false;
    for (size_t i = 0; i == 0 || s->path[i - 1]; i++) {
        const char c = s->path[i];
        escaped = i > 0 && s->path[i - 1] == '\\' && !escaped;
        if (c == 0 || (!escaped && (c == '.' || c == '[')))
            any |= llm_arch_match_first(r->key, r->n_key, (ggl_str){s->path, i}, s->c->key_hits) <
                   r->n_key;
    }
    return any;
}

/* Writes a byte of a name into a path; escapes dots, brackets and backslashes. Returns the bytes
 * written. */
static size_t put_byte(char *to, char c) {
    if (c == '.' || c == '[' || c == '\\') {
        to[0] = '\\';
        to[1] = c;
        return 2;
    }
    if (c == 0)
        return (size_t)sprintf(to, "\\u0000");
    to[0] = c;
    return 1;
}

/* Appends a name to the path. False: too long; the path then ends in "..". */
static bool push_name(search *s, int depth, ggl_str name) {
    char text[8];
    size_t n = s->end[depth];
    bool fits = true;
    if (depth > 0 && n < MAX_PATH)
        s->path[n++] = '.';
    for (size_t i = 0; i < name.n && fits; i++) {
        const size_t k = put_byte(text, name.s[i]);
        if ((fits = n + k <= MAX_PATH)) {
            memcpy(s->path + n, text, k);
            n += k;
        }
    }
    fits = fits && n < MAX_PATH;
    if (!fits) {
        n = ggl_utf8_cut(s->path, n, MAX_PATH - 2);
        memcpy(s->path + n, "..", 2);
        n += 2;
    }
    s->path[n] = 0;
    s->end[depth + 1] = n;
    return fits;
}

static bool has_objects(const json_value *v) {
    for (size_t i = 0; v->kind == JSON_ARRAY && i < v->n; i++)
        if (v->item[i].kind >= JSON_ARRAY)
            return true;
    return false;
}

typedef struct above { /* state inherited by an object's values */
    ggl_str refused;   /* the reason; s NULL: not refused */
    bool too_long;     /* the path is too long to be looked up */
    bool apart;        /* outside of what an `only` line names */
    /* depth of the `within` object; paths are relative to it. 0: none */
    int outside;
    int own; /* the same of an `only` line's object, for the names in known_config.txt */
} above;

static void walk(search *s, const json_value *v, int depth, above up);

static void walk_items(search *s, const json_value *v, int depth, above up) {
    const size_t n = s->end[depth];
    for (size_t i = 0; i < v->n; i++) {
        above in = up;
        if (v->kind == JSON_OBJECT) {
            in.too_long = up.too_long || !push_name(s, depth, json_name(v, i));
            walk(s, &v->item[i], depth + 1, in);
        } else {
            in.too_long = up.too_long || n + 2 > MAX_PATH;
            if (!in.too_long)
                s->end[depth] = n + (size_t)sprintf(s->path + n, "[]");
            walk(s, &v->item[i], depth, in);
        }
        s->end[depth] = n;
        s->path[n] = 0;
    }
}

/* True for MLX's second object of its quantization. */
static bool is_repeated(const search *s, ggl_str path, const json_value *v) {
    return ggl_str_is(path, "quantization_config") && !llm_json_get(v, "quant_method") &&
           llm_json_get_kind(s->c->config, "quantization", JSON_OBJECT);
}

/* Reports the unread values in v, whose path is s->path up to s->end[depth]. */
static void walk(search *s, const json_value *v, int depth, above up) {
    const size_t begin = up.outside ? s->end[up.outside] + 1 : 0;
    const ggl_str path = {s->path + begin, s->end[depth] - begin};
    const bool inner = v->kind == JSON_OBJECT || has_objects(v),
               own = depth > 0 && v == s->c->inner;
    const bool look = depth > 0 && !up.too_long && !own;
    if (s->status != GGL_OK || is_empty(v) || (look && has_path(&s->ignored, path)) ||
        (depth == 1 && is_repeated(s, path, v)))
        return;
    const bool named = look && !inner && is_named(s, path, depth, up.outside);
    const size_t known = up.own ? s->end[up.own] + 1 : begin;
    const known_line *line =
        look && !named ? find_line(s, (ggl_str){s->path + known, s->end[depth] - known}) : NULL;
    if (line && line->refused)
        up.refused = line->rest;
    else if (named || (line && (line->rest.n == 0 || (!inner && has_value(line->rest, v)))))
        return;
    if (look && has_path(&s->only, path)) {
        up.apart = false;
        up.own = depth;
    }
    if (inner) {
        up.outside = own ? depth : up.outside;
        walk_items(s, v, depth, up);
        return;
    }
    if (up.apart && !up.refused.s)
        return;
    ggl_str read = line && !line->refused ? line->rest : (ggl_str){"", 0};
    (void)first_word(&read); /* "=" */
    const arch_unread x = {s->path, v, up.refused, read, on_request(s)};
    s->found(s->ctx, &x);
}

ggl_status llm_arch_convert_each_unread(const arch_conversion *c, arch_unread_fn found, void *ctx,
                                        ggl_error *err) {
    search s = {.c = c, .err = err, .found = found, .ctx = ctx};
    if (c->config->kind == JSON_OBJECT && collect(&s) && read_table(&s))
        walk(&s, c->config, 0, (above){.apart = s.only.n > 0});
    ggl_free(s.named.name);
    ggl_free(s.ignored.name);
    ggl_free(s.only.name);
    ggl_free(s.line);
    ggl_free(s.pattern);
    ggl_index_fini(&s.named.index);
    ggl_index_fini(&s.ignored.index);
    ggl_index_fini(&s.only.index);
    ggl_index_fini(&s.by_name);
    ggl_arena_fini(&s.arena);
    return s.status;
}

/* --- the error -------------------------------------------------------------------------------- */

enum { FEW = 4 }; /* values for which flags are proposed */

typedef struct shown {
    const arch_conversion *c;
    const char *file, *first_file, *refused_file; /* of the last value, the first, and `refused` */
    char text[MAX_SHOWN], first[MAX_PATH + 4], refused[MAX_PATH + 400];
    char flags[FEW * (MAX_PATH + 32)];
    size_t used, n, n_more, n_plain; /* n_plain: of which flags has one */
} shown;

/* True if the path, pasted as a pattern for --ignore-config, matches only itself. */
static bool is_plain_path(const char *path) {
    char plain[MAX_PATH + 4];
    size_t n = strlen(path);
    for (size_t i = 0; i <= n; i++)
        plain[i] = path[i] == '[' || path[i] == ']' ? '_' : path[i];
    return n == 0 || (llm_arch_is_pasteable(plain, n) && !strchr(plain, '*'));
}

static void add_flag(char *buf, size_t size, const char *path) {
    const size_t n = strlen(buf);
    snprintf(buf + n, size - n, "%s--ignore-config '%s'", n ? " " : "", path);
}

/* Returns what of a path the file has as names, and sets *file to it: "modules.Dense_0.a" is "a" in 2_Dense/config.json. */
static const char *path_in_file(const arch_conversion *c, const char *path, const char **file) {
    static const char begin[] = "modules.";
    const char *name = path + sizeof begin - 1,
               *dot = strncmp(path, begin, sizeof begin - 1) == 0 ? strchr(name, '.') : NULL;
    *file = dot ? llm_arch_convert_module_file(c, (ggl_str){name, (size_t)(dot - name)}) : NULL;
    if (*file)
        return dot + 1;
    *file = "config.json";
    return path;
}

static void show(void *ctx, const arch_unread *u) {
    shown *x = ctx;
    char value[120];
    if (u->on_request)
        return;
    llm_arch_json_text(u->value, value, sizeof value);
    if (u->refused.s && !x->refused[0])
        snprintf(x->refused, sizeof x->refused, "%s = %s: %.*s%s%.*s",
                 path_in_file(x->c, u->path, &x->refused_file), value, (int)u->refused.n,
                 u->refused.s, u->known.n > 0 ? "; what is read: " : "", (int)u->known.n,
                 u->known.s);
    const char *file, *path = path_in_file(x->c, arch_unread_text(u), &file),
                      *other = x->file && strcmp(x->file, file) != 0 ? file : NULL;
    if (x->n == 0)
        snprintf(x->first, sizeof x->first, "%s", u->path);
    if (x->n++ < FEW && is_plain_path(u->path))
        x->n_plain++, add_flag(x->flags, sizeof x->flags, u->path);
    if (x->used + (other ? strlen(other) : 0) + strlen(path) + sizeof value > sizeof x->text) {
        x->n_more++;
        return;
    }
    if (!x->file)
        x->first_file = file;
    x->file = file;
    x->used +=
        (size_t)snprintf(x->text + x->used, sizeof x->text - x->used, "%s%s%s%s = %s",
                         x->used ? ", " : "", other ? other : "", other ? ": " : "", path, value);
}

ggl_status llm_arch_convert_check_config(const arch_conversion *c, ggl_error *err) {
    shown x = {.c = c, .first_file = "config.json"};
    char more[64] = "";
    int line, column;
    ggl_status s = llm_arch_convert_each_unread(c, show, &x, err);
    if (s != GGL_OK || x.n == 0)
        return s;
    if (x.refused[0])
        return ggl_fail(err, GGL_UNSUPPORTED, "%s has %s", x.refused_file, x.refused);
    if (x.n_more)
        snprintf(more, sizeof more, ", and %zu more", x.n_more);
    llm_arch_line_col(c->section->place, &line, &column);
    const bool named = is_plain_path(x.first) && x.first[0];
    return ggl_fail(
        err, GGL_UNSUPPORTED,
        "%s has values that this conversion does not read: %s%s. If they change what the "
        "model computes, the convert section in %s:%d lacks lines for them; if not, add there: "
        "ignore config.%.*s. To continue at your own risk: %s",
        x.first_file, x.text, more, c->arch->text.name, line,
        named ? (int)strcspn(x.first, "[") : 1, named ? x.first : "x",
        x.n_plain == x.n ? x.flags : "--ignore-config PATTERN");
}
