/* A recursive descent over the text. A first pass counts the elements of each array and object,
 * so that their places in a table, side by side, are known when a bracket opens. */
#include "json.h"

#include "hex.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/index.h"
#include "ggl/internal/number.h"
#include "ggl/internal/show.h"
#include "ggl/internal/steps.h"
#include "text_file.h"

#define MAX_NUMBER 400 /* characters */
#define FEW_NAMES  16  /* up to this number, names are compared directly; more are put in a table */

typedef struct parser {
    llm_json *doc;
    const char *s, *name;
    size_t n, i;
    int depth;
    bool lenient;    /* llm_json_parse_answer */
    uint32_t *count; /* elements of each array and object, in the order of opening brackets */
    size_t n_count, cap_count, next; /* next: the one that opens next */
    size_t n_value, used;            /* of the table of values: its size, and how many are used */
    ggl_status status;
    ggl_error *err;
} parser;

static bool fail(parser *p, ggl_status s, size_t at, const char *what) {
    int line = 1;
    size_t begin = 0;
    for (size_t i = 0; i < at && i < p->n; i++)
        if (p->s[i] == '\n') {
            line++;
            begin = i + 1;
        }
    if (p->status == GGL_OK)
        p->status = ggl_fail(p->err, s, "%s:%d:%zu: %s", p->name, line, at - begin + 1, what);
    return false;
}

static bool no_memory(parser *p) {
    if (p->status == GGL_OK)
        p->status = ggl_fail(p->err, GGL_NOMEM, "%s: out of memory", p->name);
    return false;
}

static int peek(const parser *p) {
    return p->i < p->n ? (unsigned char)p->s[p->i] : -1;
}

/* Reports what is not there. where: in words; "": here. */
static bool missing(parser *p, const char *what, const char *where) {
    char text[160];
    if (p->i < p->n)
        snprintf(text, sizeof text, "%s is expected%s", what, *where ? where : " here");
    else
        snprintf(text, sizeof text, "the text ends where %s is expected%s", what, where);
    return fail(p, GGL_FORMAT, p->i, text);
}

static void skip_space(parser *p) {
    while (p->i < p->n &&
           (p->s[p->i] == ' ' || p->s[p->i] == '\t' || p->s[p->i] == '\n' || p->s[p->i] == '\r'))
        p->i++;
}

/* --- strings ---------------------------------------------------------------------------------- */

/* Returns the value of the four digits after "\\u"; -1: they are not hexadecimal digits. */
static long unit_at(const parser *p, size_t at) {
    long u = 0;
    for (size_t k = 0; k < 4; k++) {
        int d = at + k < p->n ? llm_hex_digit(p->s[at + k]) : -1;
        if (d < 0)
            return -1;
        u = u << 4 | d;
    }
    return u;
}

static char *put_utf8(char *to, long c) {
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const int lead[] = {0, 0xc0, 0xe0, 0xf0};
    *to++ = (char)(lead[more] | c >> (6 * more));
    while (more-- > 0)
        *to++ = (char)(0x80 | (c >> (6 * more) & 0x3f));
    return to;
}

/* Parses the escape at p->i, which is a backslash. */
static char *parse_escape(parser *p, char *to) {
    static const char from[] = "\"\\/bfnrt", is[] = "\"\\/\b\f\n\r\t";
    size_t at = p->i++;
    int c = peek(p);
    const char *known = c > 0 ? strchr(from, c) : NULL;
    if (known) {
        p->i++;
        *to++ = is[known - from];
        return to;
    }
    long u = c == 'u' ? unit_at(p, p->i + 1) : -1;
    if (u < 0)
        return fail(p, GGL_FORMAT, at, "this is not a valid escape") ? to : NULL;
    p->i += 5;
    if (u >= 0xd800 && u < 0xe000) {
        bool pair = u < 0xdc00 && p->i + 1 < p->n && p->s[p->i] == '\\' && p->s[p->i + 1] == 'u';
        long low = pair ? unit_at(p, p->i + 2) : -1;
        if (low < 0xdc00 || low > 0xdfff)
            return fail(p, GGL_FORMAT, at, "the other half of a surrogate pair is missing") ? to
                                                                                            : NULL;
        p->i += 6;
        u = 0x10000 + ((u - 0xd800) << 10) + (low - 0xdc00);
    }
    return put_utf8(to, u);
}

/* Finds the end of a string, its closing quote; *escapes: whether it has any. False: reported,
 * as it has no end or an invalid character. */
static bool scan_string(parser *p, size_t *end, bool *escapes) {
    size_t i = p->i;
    *escapes = false;
    while (i < p->n && p->s[i] != '"') {
        unsigned char c = (unsigned char)p->s[i];
        if (c < 0x20)
            return fail(p, GGL_FORMAT, i,
                        "a control character in a string must be written as an escape");
        size_t len = c < 0x80 ? 1 : ggl_utf8_length(p->s + i, p->n - i);
        if (len == 0)
            return fail(p, GGL_FORMAT, i, "this is not valid UTF-8");
        *escapes |= c == '\\';
        i += c == '\\' ? 2 : len;
    }
    if (i >= p->n)
        return fail(p, GGL_FORMAT, p->i - 1, "this string is not closed");
    *end = i;
    return true;
}

/* Resolves the escapes of a string, which makes it shorter. The place where it begins in the
 * text is stored before it, for messages; see string_at. */
static bool resolve(parser *p, json_value *v, size_t begin, size_t end) {
    char *all = ggl_arena_alloc(&p->doc->arena, sizeof begin + (end - begin), 1);
    if (!all)
        return no_memory(p);
    memcpy(all, &begin, sizeof begin);
    char *to = all + sizeof begin;
    v->s = to;
    v->flag = true;
    while (to && p->i < end) {
        if (p->s[p->i] == '\\')
            to = parse_escape(p, to);
        else
            *to++ = p->s[p->i++];
    }
    if (to)
        v->n = (uint32_t)(to - v->s);
    return to != NULL;
}

static bool parse_string(parser *p, json_value *v) {
    const size_t begin = p->i++;
    size_t end = 0;
    bool escapes;
    if (!scan_string(p, &end, &escapes))
        return false;
    *v = (json_value){.kind = JSON_STRING, .n = (uint32_t)(end - p->i), .s = p->s + p->i};
    if (escapes && !resolve(p, v, begin, end))
        return false;
    p->i = end + 1;
    return true;
}

/* Returns where a string begins in the text. */
static size_t string_at(const parser *p, const json_value *v) {
    size_t at;
    if (!v->flag)
        return (size_t)(v->s - p->s) - 1;
    memcpy(&at, v->s - sizeof at, sizeof at);
    return at;
}

/* --- numbers ---------------------------------------------------------------------------------- */

static size_t digits(const parser *p, size_t at) {
    size_t i = at;
    while (i < p->n && p->s[i] >= '0' && p->s[i] <= '9')
        i++;
    return i - at;
}

static bool parse_number(parser *p, json_value *v) {
    size_t at = p->i, i = at + (p->s[at] == '-'), n = digits(p, i);
    if (n == 0 || (n > 1 && p->s[i] == '0'))
        return fail(p, GGL_FORMAT, at,
                    n == 0 ? "a value is expected here" : "a number has no leading zeros");
    i += n;
    bool integer = true;
    if (i < p->n && p->s[i] == '.') {
        integer = false;
        if ((n = digits(p, ++i)) == 0)
            return fail(p, GGL_FORMAT, at, "a digit is expected after the point");
        i += n;
    }
    if (i < p->n && (p->s[i] == 'e' || p->s[i] == 'E')) {
        integer = false;
        i++;
        i += i < p->n && (p->s[i] == '+' || p->s[i] == '-');
        if ((n = digits(p, i)) == 0)
            return fail(p, GGL_FORMAT, at, "a digit is expected in the exponent");
        i += n;
    }
    if (i - at > MAX_NUMBER)
        return fail(p, GGL_LIMIT, at, "a number has at most 400 characters");
    v->kind = JSON_NUMBER;
    v->text = p->s + at;
    v->n_text = (uint16_t)(i - at);
    v->number = ggl_number_value(p->s + at, i - at);
    v->whole = integer && fabs(v->number) < 0x1p53;
    p->i = i;
    return p->lenient || isfinite(v->number) || fail(p, GGL_LIMIT, at, "this number is too large");
}

/* --- counting --------------------------------------------------------------------------------- */

/* Returns the place of the quote that ends the string which begins at i, or the end of the text. */
static size_t skip_string(const parser *p, size_t i) {
    for (i++; i < p->n && p->s[i] != '"'; i++)
        i += p->s[i] == '\\';
    return i;
}

typedef struct open_brackets {
    size_t at[LLM_JSON_MAX_DEPTH]; /* indices in parser.count */
    bool object[LLM_JSON_MAX_DEPTH];
    int n;
    bool empty; /* the innermost one has no element yet */
} open_brackets;

static void count_element(parser *p, const open_brackets *o) {
    p->count[o->at[o->n - 1]]++;
    p->n_value += o->object[o->n - 1] ? 2 : 1;
}

static bool count_bracket(parser *p, open_brackets *o, bool object) {
    if (!ggl_grow(&p->count, &p->cap_count, p->n_count + 1, sizeof *p->count))
        return no_memory(p);
    o->object[o->n] = object;
    o->at[o->n++] = p->n_count;
    p->count[p->n_count++] = 0;
    o->empty = true;
    return true;
}

/* Counts the elements of each array and object, up to the first error; the parser stops there,
 * too. */
static bool count_values(parser *p) {
    open_brackets o = {.n = 0};
    for (size_t i = p->i; i < p->n && p->n_value <= LLM_JSON_MAX_VALUES; i++) {
        const char c = p->s[i];
        const bool open = c == '[' || c == '{', close = c == ']' || c == '}';
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
            continue;
        if (o.empty && !close)
            count_element(p, &o);
        o.empty = false;
        if ((open && o.n == LLM_JSON_MAX_DEPTH) || ((close || c == ',') && o.n == 0))
            break;
        if (open && !count_bracket(p, &o, c == '{'))
            return false;
        o.n -= close;
        if (c == ',')
            count_element(p, &o);
        if (c == '"')
            i = skip_string(p, i);
    }
    if (p->n_value <= LLM_JSON_MAX_VALUES)
        return true;
    p->status = ggl_fail(p->err, GGL_LIMIT, "%s: more than %d values and names", p->name,
                         LLM_JSON_MAX_VALUES);
    return false;
}

/* --- values ----------------------------------------------------------------------------------- */

static bool parse_value(parser *p, json_value *v);

static bool same_name(ggl_str a, ggl_str b) {
    GGL_STEPS(1);
    return a.n == b.n && memcmp(a.s, b.s, a.n) == 0;
}

/* Reports the second of two equal names, as it is not known which value is meant. */
static bool twice(parser *p, const json_value *name) {
    char text[200];
    const size_t n = ggl_utf8_cut(name->s, name->n, 80);
    snprintf(text, sizeof text, "the name '%.*s%s' occurs twice in one object", (int)n, name->s,
             n < name->n ? ".." : "");
    return fail(p, GGL_FORMAT, string_at(p, name), text);
}

/* Checks the names of a large object with a table, in linear time. */
static bool check_many_names(parser *p, const json_value *v) {
    ggl_index table = {0};
    size_t i = 0;
    ggl_str *name = ggl_calloc(v->n, sizeof *name);
    bool ok = name && ggl_index_init(&table, v->n, sizeof *name, GGL_INDEX_STRINGS, NULL) == GGL_OK;
    for (size_t k = 0; ok && k < v->n; k++)
        name[k] = json_name(v, k);
    while (ok && i < v->n && ggl_index_put(&table, name, i) == i)
        i++;
    ggl_index_fini(&table);
    ggl_free(name);
    return ok ? i == v->n || twice(p, &v->item[v->n + i]) : no_memory(p);
}

/* Checks that no name occurs twice in an object. */
static bool check_names(parser *p, const json_value *v) {
    if (v->n > FEW_NAMES)
        return check_many_names(p, v);
    for (size_t i = 1; i < v->n; i++)
        for (size_t j = 0; j < i; j++)
            if (same_name(json_name(v, i), json_name(v, j)))
                return twice(p, &v->item[v->n + i]);
    return true;
}

static bool parse_name(parser *p, json_value *name) {
    if (peek(p) != '"')
        return missing(p, "a name in quotes", "");
    if (!parse_string(p, name))
        return false;
    skip_space(p);
    if (peek(p) != ':')
        return missing(p, "':'", " after a name");
    p->i++;
    skip_space(p);
    return true;
}

/* Parses the elements up to the closing bracket into item[n], and their names after them. */
static bool parse_elements(parser *p, const json_value *v, json_value *item) {
    const bool object = v->kind == JSON_OBJECT;
    const char end = object ? '}' : ']';
    size_t k = 0;
    for (bool more = peek(p) != end; more; k++) {
        if (k == v->n) /* the text has ended: all elements in it were counted */
            return missing(p, object ? "a name in quotes" : "a value", "");
        if ((object && !parse_name(p, &item[v->n + k])) || !parse_value(p, &item[k]))
            return false;
        skip_space(p);
        more = peek(p) == ',';
        if (!more && peek(p) != end)
            return missing(p, object ? "',' or '}'" : "',' or ']'", "");
        p->i += more;
        skip_space(p);
    }
    return true;
}

static bool parse_members(parser *p, json_value *v) {
    const bool object = p->s[p->i] == '{';
    if (p->depth++ == LLM_JSON_MAX_DEPTH)
        return fail(p, GGL_LIMIT, p->i, "nested more than 64 deep");
    json_value *item = p->doc->value + p->used;
    *v = (json_value){
        .kind = object ? JSON_OBJECT : JSON_ARRAY, .n = p->count[p->next++], .item = item};
    p->used += (size_t)v->n * (object ? 2 : 1);
    p->i++;
    skip_space(p);
    if (!parse_elements(p, v, item))
        return false;
    p->i++;
    p->depth--;
    return !object || p->lenient || check_names(p, v);
}

static bool parse_word(parser *p, json_value *v) {
    static const struct {
        const char *word;
        json_value value;
    } words[] = {{"null", {.kind = JSON_NULL}},
                 {"true", {.kind = JSON_BOOL, .flag = true}},
                 {"false", {.kind = JSON_BOOL}},
                 {"NaN", {.kind = JSON_NUMBER, .number = NAN}},
                 {"Infinity", {.kind = JSON_NUMBER, .number = INFINITY}},
                 {"-Infinity", {.kind = JSON_NUMBER, .number = -INFINITY}}};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        const size_t n = strlen(words[k].word);
        if (p->n - p->i < n || memcmp(p->s + p->i, words[k].word, n) != 0)
            continue;
        *v = words[k].value;
        p->i += n;
        return true;
    }
    return missing(p, "a value", "");
}

static bool parse_value(parser *p, json_value *v) {
    const int c = peek(p);
    *v = (json_value){0};
    if (c == '{' || c == '[')
        return parse_members(p, v);
    if (c == '"')
        return parse_string(p, v);
    const bool infinite = c == '-' && p->i + 1 < p->n && p->s[p->i + 1] == 'I';
    if (!infinite && (c == '-' || (c >= '0' && c <= '9')))
        return parse_number(p, v);
    return parse_word(p, v);
}

static bool begins(const parser *p, const char *s) {
    return p->n >= strlen(s) && memcmp(p->s, s, strlen(s)) == 0;
}

/* Reports texts whose first bytes show that they are not JSON. */
static bool check_begin(parser *p) {
    static const char *const texts[][2] = {
        {"\xef\xbb\xbf", "the text begins with a byte order mark: save it as UTF-8 without one"},
        {"\xff\xfe", "the text is UTF-16: save it as UTF-8"},
        {"\xfe\xff", "the text is UTF-16: save it as UTF-8"},
        {LLM_LFS_POINTER, LLM_LFS_ADVICE}};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        if (begins(p, texts[k][0])) {
            p->status = ggl_fail(p->err, GGL_FORMAT, "%s: %s", p->name, texts[k][1]);
            return false;
        }
    return true;
}

static bool parse_text(parser *p) {
    if (!check_begin(p))
        return false;
    if (p->n > UINT32_MAX) {
        p->status = ggl_fail(p->err, GGL_LIMIT, "%s: a text of 4 GiB or more", p->name);
        return false;
    }
    skip_space(p);
    if (!count_values(p))
        return false;
    p->doc->value = ggl_calloc(p->n_value + 1, sizeof *p->doc->value);
    if (!p->doc->value)
        return no_memory(p);
    if (!parse_value(p, &p->doc->root))
        return false;
    skip_space(p);
    return p->i == p->n || fail(p, GGL_FORMAT, p->i, "there is more text after the value");
}

static ggl_status parse(llm_json **out, const char *text, size_t n, const char *name, bool lenient,
                        ggl_error *err) {
    parser p = {.s = text, .n = n, .name = name, .lenient = lenient, .err = err};
    *out = NULL;
    p.doc = ggl_calloc(1, sizeof *p.doc);
    if (!p.doc)
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory", name);
    bool ok = parse_text(&p);
    ggl_free(p.count);
    if (!ok) {
        llm_json_free(p.doc);
        return p.status;
    }
    *out = p.doc;
    return GGL_OK;
}

ggl_status llm_json_parse(llm_json **out, const char *text, size_t n, const char *name,
                          ggl_error *err) {
    return parse(out, text, n, name, false, err);
}

ggl_status llm_json_parse_answer(llm_json **out, const char *text, size_t n, const char *name,
                                 ggl_error *err) {
    return parse(out, text, n, name, true, err);
}

ggl_status llm_json_read(llm_json **out, const char *path, size_t most, ggl_error *err) {
    char *text;
    size_t n;
    *out = NULL;
    ggl_status s = llm_read_text_file(path, most, &text, &n, err);
    if (s != GGL_OK)
        return s;
    s = llm_json_parse(out, text, n, path, err);
    if (s == GGL_OK)
        (*out)->text = text;
    else
        ggl_free(text);
    return s;
}

void llm_json_free(llm_json *doc) {
    if (!doc)
        return;
    ggl_arena_fini(&doc->arena);
    ggl_free(doc->value);
    ggl_free(doc->text);
    ggl_free(doc);
}

/* --- reading ---------------------------------------------------------------------------------- */

const json_value *llm_json_get(const json_value *v, const char *name) {
    const size_t n = strlen(name);
    for (size_t i = 0; v && v->kind == JSON_OBJECT && i < v->n; i++)
        if (v->item[v->n + i].n == n && memcmp(v->item[v->n + i].s, name, n) == 0)
            return &v->item[i];
    return NULL;
}

const json_value *llm_json_get_kind(const json_value *v, const char *name, json_kind kind) {
    const json_value *x = llm_json_get(v, name);
    return x && x->kind == kind ? x : NULL;
}

bool llm_json_integer(const json_value *v, uint64_t *magnitude, bool *negative) {
    uint64_t x = 0;
    if (v->kind != JSON_NUMBER || !isfinite(v->number))
        return false;
    const char *s = v->text, *end = s + v->n_text;
    *negative = *s == '-';
    for (s += *negative; s < end && *s >= '0' && *s <= '9'; s++) {
        const uint64_t digit = (uint64_t)(*s - '0');
        if (x > (UINT64_MAX - digit) / 10)
            return false;
        x = x * 10 + digit;
    }
    *magnitude = x;
    return s == end;
}

bool llm_json_is(const json_value *v, const char *s) {
    return v && v->kind == JSON_STRING && v->n == strlen(s) && memcmp(v->s, s, v->n) == 0;
}

bool llm_json_has(const json_value *object, const char *name, const char *s) {
    return llm_json_is(llm_json_get(object, name), s);
}

const char *llm_json_kind_text(json_kind kind) {
    static const char *const text[] = {"null",     "true or false", "a number",
                                       "a string", "an array",      "an object"};
    return text[kind];
}
