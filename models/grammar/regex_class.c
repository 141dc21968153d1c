/* Characters of patterns: classes in brackets, escapes, properties. */
#include "regex_impl.h"

#include "common/hex.h"
#include "text/unicode.h"

/* A growing set of characters. */
typedef struct set {
    llm_char_range *range;
    size_t n, cap;
} set;

static bool set_add(regex_parser *p, set *s, uint32_t first, uint32_t last) {
    if (!ggl_grow(&s->range, &s->cap, s->n + 1, sizeof *s->range)) {
        llm_regex_fail(p, GGL_NOMEM, p->at, "out of memory");
        return false;
    }
    s->range[s->n++] = (llm_char_range){first, last};
    return true;
}

/* Adds the ranges, or all characters that are in none of them. The ranges ascend. */
static void set_add_all(regex_parser *p, set *s, const llm_char_range *r, size_t n, bool negated) {
    uint32_t next = 0;
    for (size_t i = 0; i < n; i++) {
        if (!negated)
            (void)set_add(p, s, r[i].first, r[i].last);
        else if (r[i].first > next)
            (void)set_add(p, s, next, r[i].first - 1);
        next = r[i].last + 1;
    }
    if (negated)
        (void)set_add(p, s, next, 0x10ffff);
}

static int32_t set_expr(regex_parser *p, set *s, bool negated) {
    const int32_t e = llm_expr_class(p->g, s->range, (int32_t)s->n, negated);
    ggl_free(s->range);
    return e;
}

/* --- named classes ---------------------------------------------------------------------------- */

static const llm_char_range digits[] = {{'0', '9'}};
static const llm_char_range words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
static const llm_char_range spaces[] = {
    {'\t', '\r'},     {' ', ' '},       {0xa0, 0xa0},     {0x1680, 0x1680}, {0x2000, 0x200a},
    {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}, {0xfeff, 0xfeff}};

/* \d \D \w \W \s \S: true, and their characters. */
static bool add_named_class(regex_parser *p, set *s, char letter) {
    switch (letter | 0x20) {
    case 'd':
        set_add_all(p, s, digits, 1, letter == 'D');
        return true;
    case 'w':
        set_add_all(p, s, words, 4, letter == 'W');
        return true;
    case 's':
        set_add_all(p, s, spaces, sizeof spaces / sizeof *spaces, letter == 'S');
        return true;
    default:
        return false;
    }
}

static const struct {
    const char *name;
    unsigned properties;
} categories[] = {{"L", UNICODE_L},
                  {"Letter", UNICODE_L},
                  {"Lu", UNICODE_LU},
                  {"Uppercase_Letter", UNICODE_LU},
                  {"Ll", UNICODE_LL},
                  {"Lowercase_Letter", UNICODE_LL},
                  {"Lt", UNICODE_LT},
                  {"Titlecase_Letter", UNICODE_LT},
                  {"Lm", UNICODE_LM},
                  {"Modifier_Letter", UNICODE_LM},
                  {"Lo", UNICODE_LO},
                  {"Other_Letter", UNICODE_LO},
                  {"M", UNICODE_M},
                  {"Mark", UNICODE_M},
                  {"Mn", UNICODE_MN},
                  {"Nonspacing_Mark", UNICODE_MN},
                  {"N", UNICODE_N},
                  {"Number", UNICODE_N},
                  {"Nd", UNICODE_ND},
                  {"Decimal_Number", UNICODE_ND},
                  {"Nl", UNICODE_NL},
                  {"Letter_Number", UNICODE_NL},
                  {"No", UNICODE_NO},
                  {"Other_Number", UNICODE_NO},
                  {"P", UNICODE_P},
                  {"Punctuation", UNICODE_P},
                  {"Pc", UNICODE_PC},
                  {"Connector_Punctuation", UNICODE_PC},
                  {"S", UNICODE_S},
                  {"Symbol", UNICODE_S},
                  {"White_Space", UNICODE_WHITE},
                  {"Script=Han", UNICODE_HAN},
                  {"sc=Han", UNICODE_HAN}};

static bool find_category(ggl_str name, unsigned *properties) {
    const char *prefix[] = {"gc=", "General_Category=", ""};
    for (size_t k = 0; k < 3; k++) {
        const size_t skip = strlen(prefix[k]);
        if (name.n < skip || memcmp(name.s, prefix[k], skip) != 0)
            continue;
        for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
            if (ggl_str_is((ggl_str){name.s + skip, name.n - skip}, categories[i].name)) {
                *properties = categories[i].properties;
                return true;
            }
    }
    return false;
}

/* Adds the characters with (without) any of the properties. */
static void add_properties(regex_parser *p, set *s, unsigned properties, bool negated) {
    for (uint32_t c = 0; c < 128; c++)
        if (((llm_unicode_ascii[c] & properties) != 0) != negated)
            (void)set_add(p, s, c, c);
    for (int i = 0; i < llm_n_unicode_ranges; i++) {
        const uint32_t first =
            llm_unicode_ranges[i].first < 128 ? 128 : llm_unicode_ranges[i].first;
        const uint32_t end =
            i + 1 < llm_n_unicode_ranges ? llm_unicode_ranges[i + 1].first : 0x110000;
        if (end > first &&
            ((llm_unicode_kinds[llm_unicode_ranges[i].kind] & properties) != 0) != negated)
            (void)set_add(p, s, first, end - 1);
    }
}

/* Reads {NAME} after \p or \P. */
static void add_property(regex_parser *p, set *s, bool negated) {
    const size_t from = p->at;
    const char *end = p->at < p->n ? memchr(p->s + p->at, '}', p->n - p->at) : NULL;
    if (!end || p->s[p->at] != '{') {
        llm_regex_fail(p, GGL_FORMAT, from, "\\p needs a property in braces, as \\p{L}");
        return;
    }
    const ggl_str name = {p->s + from + 1, (size_t)(end - p->s) - from - 1};
    unsigned properties;
    p->at += name.n + 2;
    if (find_category(name, &properties))
        add_properties(p, s, properties, negated);
    else
        llm_regex_fail(p, GGL_UNSUPPORTED, from, "the property \\p{%.*s} is not supported",
                       (int)(name.n < 40 ? name.n : 40), name.s);
}

/* --- escapes ---------------------------------------------------------------------------------- */

/* Reads n hexadecimal digits. False: there are fewer, and nothing is taken. */
static bool take_hex(regex_parser *p, size_t n, uint32_t *c) {
    *c = 0;
    if (p->n - p->at < n)
        return false;
    for (size_t i = 0; i < n; i++) {
        const int v = llm_hex_digit(p->s[p->at + i]);
        if (v < 0)
            return false;
        *c = *c << 4 | (uint32_t)v;
    }
    p->at += n;
    return true;
}

/* After \u: {H..}, HHHH, or a surrogate pair of two escapes. */
static bool take_unicode(regex_parser *p, uint32_t *c) {
    if (p->at < p->n && p->s[p->at] == '{') {
        const size_t from = p->at++;
        *c = 0;
        for (; p->at < p->n && llm_hex_digit(p->s[p->at]) >= 0 && *c <= 0x10ffff; p->at++)
            *c = *c << 4 | (uint32_t)llm_hex_digit(p->s[p->at]);
        return p->at > from + 1 && p->at < p->n && p->s[p->at++] == '}' && *c <= 0x10ffff;
    }
    uint32_t low;
    if (!take_hex(p, 4, c))
        return false;
    const size_t after = p->at;
    if (*c >= 0xd800 && *c < 0xdc00 && p->n - p->at >= 6 && memcmp(p->s + p->at, "\\u", 2) == 0) {
        p->at += 2;
        if (take_hex(p, 4, &low) && low >= 0xdc00 && low < 0xe000)
            *c = 0x10000 + ((*c - 0xd800) << 10) + (low - 0xdc00);
        else
            p->at = after;
    }
    return true;
}

static bool escape_fail(regex_parser *p, size_t at, ggl_status st, const char *what) {
    llm_regex_fail(p, st, at, "%s", what);
    return false;
}

/* Escapes that stand for one character; p->at is after the letter. */
static bool char_escape(regex_parser *p, size_t at, char letter, uint32_t *c) {
    static const char name[] = "tnvfr", value[] = "\t\n\v\f\r";
    const char *named = letter ? strchr(name, letter) : NULL;
    *c = (unsigned char)letter;
    if (named) {
        *c = (unsigned char)value[named - name];
        return true;
    }
    if (letter == 'x')
        return take_hex(p, 2, c) ||
               escape_fail(p, at, GGL_FORMAT, "\\x needs two hexadecimal digits");
    if (letter == 'u')
        return take_unicode(p, c) ||
               escape_fail(p, at, GGL_FORMAT, "\\u needs four hexadecimal digits");
    if (letter == 'c' && p->at < p->n &&
        ((p->s[p->at] | 0x20) >= 'a' && (p->s[p->at] | 0x20) <= 'z')) {
        *c = (unsigned char)p->s[p->at++] & 31;
        return true;
    }
    if (letter == '0' && (p->at >= p->n || llm_hex_digit(p->s[p->at]) < 0 || p->s[p->at] > '9')) {
        *c = 0;
        return true;
    }
    if (letter >= '0' && letter <= '9')
        return escape_fail(p, at, GGL_UNSUPPORTED,
                           "back references and octal escapes are not "
                           "supported");
    if (letter == 'k')
        return escape_fail(p, at, GGL_UNSUPPORTED, "back references are not supported");
    if ((letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z')) {
        llm_regex_fail(p, GGL_UNSUPPORTED, at, "the escape \\%c is not ECMA-262's", letter);
        return false;
    }
    return true;
}

/* Reads an escape. Sets *c and returns true if it is one character; adds a class's characters to the
 * set, and returns false, also after an error. */
static bool read_escape(regex_parser *p, set *s, uint32_t *c, bool in_class) {
    const size_t at = p->at++;
    if (p->at >= p->n)
        return escape_fail(p, at, GGL_FORMAT, "a backslash at the end");
    const char letter = p->s[p->at];
    if ((unsigned char)letter >= 0x80) {
        *c = llm_regex_char(p);
        return true;
    }
    p->at++;
    if (add_named_class(p, s, letter))
        return false;
    if (letter == 'p' || letter == 'P') {
        add_property(p, s, letter == 'P');
        return false;
    }
    if (in_class && letter == 'b') {
        *c = '\b';
        return true;
    }
    if (letter == 'b' || letter == 'B')
        return escape_fail(p, at, GGL_UNSUPPORTED, "word boundaries are not supported");
    return char_escape(p, at, letter, c);
}

int32_t llm_regex_escape(regex_parser *p) {
    set s = {0};
    uint32_t c;
    if (read_escape(p, &s, &c, false))
        (void)set_add(p, &s, c, c);
    return set_expr(p, &s, false);
}

/* --- brackets --------------------------------------------------------------------------------- */

/* Reads one member of a class: a character (true), or a class, which is added. */
static bool read_member(regex_parser *p, set *s, uint32_t *c) {
    if (p->s[p->at] == '\\')
        return read_escape(p, s, c, true);
    *c = llm_regex_char(p);
    return true;
}

static bool bracket_open(const regex_parser *p) {
    return p->status == GGL_OK && p->at < p->n && p->s[p->at] != ']';
}

int32_t llm_regex_bracket(regex_parser *p) {
    const size_t at = p->at++;
    const bool negated = p->at < p->n && p->s[p->at] == '^';
    p->at += negated;
    set s = {0};
    while (bracket_open(p)) {
        uint32_t first, last;
        const size_t from = p->at;
        const bool is_char = read_member(p, &s, &first);
        if (p->status == GGL_OK && p->at + 1 < p->n && p->s[p->at] == '-' &&
            p->s[p->at + 1] != ']') {
            p->at++;
            const bool is_last = read_member(p, &s, &last);
            if (is_char && is_last && last < first)
                llm_regex_fail(p, GGL_FORMAT, from, "the range is in the wrong order");
            else if (is_char && is_last)
                (void)set_add(p, &s, first, last);
            /* beside a class, '-' is a character, as in [\w-.] */
            if (!(is_char && is_last)) {
                (void)set_add(p, &s, '-', '-');
                if (is_char || is_last)
                    (void)set_add(p, &s, is_char ? first : last, is_char ? first : last);
            }
        } else if (is_char) {
            (void)set_add(p, &s, first, first);
        }
    }
    if (p->at >= p->n)
        llm_regex_fail(p, GGL_FORMAT, at, "the class is not closed by ']'");
    p->at++;
    return set_expr(p, &s, negated);
}

regex_node *llm_regex_fail(regex_parser *p, ggl_status st, size_t at, const char *fmt, ...) {
    if (p->status != GGL_OK)
        return NULL;
    va_list args;
    va_start(args, fmt);
    p->status = ggl_failv(p->err, st, fmt, args);
    va_end(args);
    (void)ggl_within(p->err, st, "column %zu", at + 1);
    return NULL;
}

uint32_t llm_regex_char(regex_parser *p) {
    const unsigned char first = (unsigned char)p->s[p->at];
    const size_t len = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    const uint32_t c = llm_unicode_decode(p->s + p->at, len);
    p->at += len;
    return c;
}
