/* A recursive descent over the text. Elements of open arrays and objects wait on a stack and move to the arena, side by
 * side, when the bracket closes. */
#include "json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch_impl.h"
#include "ggl/index.h"
#include "ggl/show.h"
#include "ggl/steps.h"
#include "text_file.h"

#define MAX_NUMBER 400 /* characters */
#define FEW_NAMES  16  /* are compared one with another; more of them go into a table */

typedef struct member_name { /* on the stack */
    ggl_str name;
    size_t at; /* in the text */
} member_name;

typedef struct parser {
    llm_json *doc;
    const char *s, *name;
    size_t n, i;
    int depth;
    json_value *item; /* the stack */
    member_name *key; /* beside it */
    size_t n_item, cap_item, cap_key;
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

static void skip_space(parser *p) {
    while (p->i < p->n && (p->s[p->i] == ' ' || p->s[p->i] == '\t' || p->s[p->i] == '\n' || p->s[p->i] == '\r'))
        p->i++;
}

/* --- strings ---------------------------------------------------------------------------------- */

static int hex_digit(int c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The four digits behind "\u"; -1: they are none. */
static long unit_at(const parser *p, size_t at) {
    long u = 0;
    for (size_t k = 0; k < 4; k++) {
        int d = at + k < p->n ? hex_digit((unsigned char)p->s[at + k]) : -1;
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

/* The escape at p->i, a backslash. */
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
        return fail(p, GGL_FORMAT, at, "no escape begins like this") ? to : NULL;
    p->i += 5;
    if (u >= 0xd800 && u < 0xe000) {
        bool pair = u < 0xdc00 && p->i + 1 < p->n && p->s[p->i] == '\\' && p->s[p->i + 1] == 'u';
        long low = pair ? unit_at(p, p->i + 2) : -1;
        if (low < 0xdc00 || low > 0xdfff)
            return fail(p, GGL_FORMAT, at, "half of a surrogate pair stands alone") ? to : NULL;
        p->i += 6;
        u = 0x10000 + ((u - 0xd800) << 10) + (low - 0xdc00);
    }
    return put_utf8(to, u);
}

/* Up to the closing quote: whether it has escapes, and that it ends. */
static bool scan_string(parser *p, size_t *end, bool *escapes) {
    size_t i = p->i;
    *escapes = false;
    while (i < p->n && p->s[i] != '"') {
        unsigned char c = (unsigned char)p->s[i];
        if (c < 0x20)
            return fail(p, GGL_FORMAT, i, "a control character in a string is written as an escape");
        size_t len = c < 0x80 ? 1 : ggl_utf8_length(p->s + i, p->n - i);
        if (len == 0)
            return fail(p, GGL_FORMAT, i, "this is no UTF-8");
        *escapes |= c == '\\';
        i += c == '\\' ? 2 : len;
    }
    if (i >= p->n)
        return fail(p, GGL_FORMAT, p->i - 1, "this string does not end");
    *end = i;
    return true;
}

static bool parse_string(parser *p, ggl_str *out) {
    size_t end = 0;
    bool escapes;
    p->i++;
    if (!scan_string(p, &end, &escapes))
        return false;
    *out = (ggl_str){p->s + p->i, end - p->i};
    if (escapes) {
        char *text = ggl_arena_alloc(&p->doc->arena, out->n, 1), *to = text; /* escapes are longer than what they mean */
        if (!text)
            return no_memory(p);
        while (to && p->i < end) {
            if (p->s[p->i] == '\\')
                to = parse_escape(p, to);
            else
                *to++ = p->s[p->i++];
        }
        if (!to)
            return false;
        *out = (ggl_str){text, (size_t)(to - text)};
    }
    p->i = end + 1;
    return true;
}

/* --- numbers ---------------------------------------------------------------------------------- */

static size_t digits(const parser *p, size_t at) {
    size_t i = at;
    while (i < p->n && p->s[i] >= '0' && p->s[i] <= '9')
        i++;
    return i - at;
}

/* strtod's decimal point depends on the program's locale, so it is given none: -0.25e3 is read as -025e1. */
static double number_value(const char *s, size_t n) {
    char buf[MAX_NUMBER + 32];
    size_t used = 0, k = 0;
    long exponent = 0, given = 0;
    for (bool point = false; k < n && s[k] != 'e' && s[k] != 'E'; k++) {
        if (s[k] == '.') {
            point = true;
        } else {
            buf[used++] = s[k];
            exponent -= point;
        }
    }
    if (k < n) {
        bool minus = s[++k] == '-';
        for (k += s[k] == '-' || s[k] == '+'; k < n; k++)
            given = given < 100000 ? 10 * given + (s[k] - '0') : given;
        exponent += minus ? -given : given;
    }
    snprintf(buf + used, sizeof buf - used, "e%ld", exponent);
    return strtod(buf, NULL);
}

static bool parse_number(parser *p, json_value *v) {
    size_t at = p->i, i = at + (p->s[at] == '-'), n = digits(p, i);
    if (n == 0 || (n > 1 && p->s[i] == '0'))
        return fail(p, GGL_FORMAT, at, n == 0 ? "a value is expected here" : "a number has no leading zeros");
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
    v->number = number_value(p->s + at, i - at);
    v->whole = integer && fabs(v->number) < 0x1p53;
    p->i = i;
    return isfinite(v->number) || fail(p, GGL_LIMIT, at, "this number is too large");
}

/* --- values ----------------------------------------------------------------------------------- */

static bool parse_value(parser *p, json_value *v);

static bool push(parser *p, const json_value *v, member_name key) {
    if (!ggl_grow(&p->item, &p->cap_item, p->n_item + 1, sizeof *p->item) ||
        !ggl_grow(&p->key, &p->cap_key, p->n_item + 1, sizeof *p->key))
        return no_memory(p);
    p->item[p->n_item] = *v;
    p->key[p->n_item++] = key;
    return true;
}

static bool same_name(ggl_str a, ggl_str b) {
    GGL_STEPS(1);
    return a.n == b.n && memcmp(a.s, b.s, a.n) == 0;
}

/* The second of two equal names: which of their values holds nobody knows. */
static bool twice(parser *p, const member_name *k) {
    char text[200];
    const size_t n = ggl_utf8_cut(k->name.s, k->name.n, 80);
    snprintf(text, sizeof text, "the name '%.*s%s' stands twice in one object", (int)n, k->name.s,
             n < k->name.n ? ".." : "");
    return fail(p, GGL_FORMAT, k->at, text);
}

/* Names stand once in an object. Of a large one they go into a table, so that the time is linear. */
static bool check_names(parser *p, const member_name *k, size_t n) {
    ggl_index table = {0};
    if (n <= FEW_NAMES) {
        for (size_t i = 1; i < n; i++)
            for (size_t j = 0; j < i; j++)
                if (same_name(k[i].name, k[j].name))
                    return twice(p, &k[i]);
        return true;
    }
    if (ggl_index_init(&table, n, sizeof *k, GGL_INDEX_STRINGS, NULL) != GGL_OK)
        return no_memory(p);
    size_t i = 0;
    while (i < n && ggl_index_put(&table, k, i) == i)
        i++;
    ggl_index_fini(&table);
    return i == n || twice(p, &k[i]);
}

/* What waits on the stack from `first` on becomes v's. */
static bool close_bracket(parser *p, json_value *v, size_t first) {
    size_t n = p->n_item - first;
    json_value *item = ggl_arena_alloc(&p->doc->arena, n + 1, sizeof *item);
    ggl_str *name = v->kind == JSON_OBJECT ? ggl_arena_alloc(&p->doc->arena, n + 1, sizeof *name) : NULL;
    if (!item || (v->kind == JSON_OBJECT && !name))
        return no_memory(p);
    if (name && n > 0 && !check_names(p, p->key + first, n))
        return false;
    if (n > 0)
        memcpy(item, p->item + first, n * sizeof *item);
    for (size_t i = 0; name && i < n; i++)
        name[i] = p->key[first + i].name;
    v->of.n = n;
    v->of.item = item;
    v->of.name = name;
    p->n_item = first;
    return true;
}

static bool parse_member(parser *p, bool object) {
    member_name key = {{"", 0}, p->i};
    json_value v = {0};
    if (object) {
        if (peek(p) != '"')
            return fail(p, GGL_FORMAT, p->i, "a name in quotes is expected here");
        if (!parse_string(p, &key.name))
            return false;
        skip_space(p);
        if (peek(p) != ':')
            return fail(p, GGL_FORMAT, p->i, "':' is expected after a name");
        p->i++;
        skip_space(p);
    }
    return parse_value(p, &v) && push(p, &v, key);
}

static bool parse_members(parser *p, json_value *v) {
    bool object = p->s[p->i] == '{';
    char end = object ? '}' : ']';
    size_t first = p->n_item;
    if (p->depth++ == LLM_JSON_MAX_DEPTH)
        return fail(p, GGL_LIMIT, p->i, "nested more than 64 deep");
    *v = (json_value){.kind = object ? JSON_OBJECT : JSON_ARRAY};
    p->i++;
    skip_space(p);
    for (bool more = peek(p) != end; more;) {
        if (!parse_member(p, object))
            return false;
        skip_space(p);
        more = peek(p) == ',';
        if (!more && peek(p) != end)
            return fail(p, GGL_FORMAT, p->i, object ? "',' or '}' is expected here" : "',' or ']' is expected here");
        p->i += more;
        skip_space(p);
    }
    p->i++;
    p->depth--;
    return close_bracket(p, v, first);
}

static bool parse_word(parser *p, json_value *v) {
    static const char *const words[] = {"null", "true", "false", "NaN", "Infinity", "-Infinity"};
    for (int k = 0; k < 6; k++) {
        size_t n = strlen(words[k]);
        char text[100];
        if (p->n - p->i < n || memcmp(p->s + p->i, words[k], n) != 0)
            continue;
        snprintf(text, sizeof text,
                 "JSON has no %s: a number that is not one was written; put a number or null there",
                 words[k]);
        if (k >= 3)
            return fail(p, GGL_FORMAT, p->i, text);
        *v = (json_value){.kind = k ? JSON_BOOL : JSON_NULL, .flag = k == 1};
        p->i += n;
        return true;
    }
    return fail(p, GGL_FORMAT, p->i, p->i < p->n ? "a value is expected here" : "the text ends where a value is expected");
}

static bool parse_value(parser *p, json_value *v) {
    int c = peek(p);
    *v = (json_value){0};
    if (c == '{' || c == '[')
        return parse_members(p, v);
    if (c == '"') {
        v->kind = JSON_STRING;
        return parse_string(p, &v->str);
    }
    bool infinite = c == '-' && p->i + 1 < p->n && p->s[p->i + 1] == 'I';
    if (!infinite && (c == '-' || (c >= '0' && c <= '9')))
        return parse_number(p, v);
    return parse_word(p, v);
}

static bool begins(const parser *p, const char *s) {
    return p->n >= strlen(s) && memcmp(p->s, s, strlen(s)) == 0;
}

/* Texts that are no JSON from their first bytes on. */
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
    skip_space(p);
    if (!parse_value(p, &p->doc->root))
        return false;
    skip_space(p);
    return p->i == p->n || fail(p, GGL_FORMAT, p->i, "the value has ended, and more follows");
}

ggl_status llm_json_parse(llm_json **out, const char *text, size_t n, const char *name, ggl_error *err) {
    parser p = {.s = text, .n = n, .name = name, .err = err};
    *out = NULL;
    p.doc = ggl_calloc(1, sizeof *p.doc);
    if (!p.doc)
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory", name);
    bool ok = parse_text(&p);
    ggl_free(p.item);
    ggl_free(p.key);
    if (!ok) {
        llm_json_free(p.doc);
        return p.status;
    }
    *out = p.doc;
    return GGL_OK;
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
    ggl_free(doc->text);
    ggl_free(doc);
}

/* --- reading ---------------------------------------------------------------------------------- */

const json_value *json_get(const json_value *v, const char *name) {
    size_t n = strlen(name);
    for (size_t i = 0; v && v->kind == JSON_OBJECT && i < v->of.n; i++)
        if (v->of.name[i].n == n && memcmp(v->of.name[i].s, name, n) == 0)
            return &v->of.item[i];
    return NULL;
}

const json_value *json_get_kind(const json_value *v, const char *name, json_kind kind) {
    const json_value *x = json_get(v, name);
    return x && x->kind == kind ? x : NULL;
}

bool json_is(const json_value *v, const char *s) {
    return v && v->kind == JSON_STRING && v->str.n == strlen(s) && memcmp(v->str.s, s, v->str.n) == 0;
}

const char *json_kind_text(json_kind kind) {
    static const char *const text[] = {"null", "true or false", "a number", "a string", "an array", "an object"};
    return text[kind];
}
