/* The lexer of templates. Its rules on white space are Jinja's with trim_blocks (the line break after
 * a block or comment goes) and lstrip_blocks (white space before one that is first on its line goes);
 * "-" removes all white space on its side, "+" none. */
#include "lex.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/number.h"
#include "ggl/internal/text.h"
#include "strings.h"

/* Moves to `to`, counting lines. */
static void move_to(lexer *l, size_t to) {
    for (; l->at < to; l->at++)
        l->line += l->s[l->at] == '\n';
    l->h->line = l->line;
}

/* White space is that of Unicode, as for Python. */
static size_t skip_space(const lexer *l, size_t at) {
    const ggl_str all = {l->s, l->n};
    for (size_t next = at; at < l->n && llm_tv_is_space(llm_tv_next_char(all, &next));)
        at = next;
    return at;
}

/* Returns the end of the name that begins at `at`. */
static size_t skip_name(const lexer *l, size_t at) {
    const ggl_str all = {l->s, l->n};
    for (size_t next = at; at < l->n; at = next) {
        const uint32_t c = llm_tv_next_char(all, &next);
        if (c < 0x80 ? !isalnum((int)c) && c != '_' : llm_tv_is_space(c))
            break;
    }
    return at;
}

static bool begins(const lexer *l, size_t at, const char *what) {
    size_t n = strlen(what);
    return l->n - at >= n && memcmp(l->s + at, what, n) == 0;
}

/* Returns the offset of `what` from `at` on; l->n if none. */
static size_t find(const lexer *l, size_t at, const char *what) {
    const char *p = at < l->n ? ggl_find_bytes(l->s + at, l->n - at, what, strlen(what)) : NULL;
    return p ? (size_t)(p - l->s) : l->n;
}

/* Returns the offset of the next "{{", "{%" or "{#"; l->n if none. */
static size_t find_tag(const lexer *l, size_t at) {
    for (; at + 1 < l->n; at++) {
        const char *p = memchr(l->s + at, '{', l->n - at - 1);
        if (!p)
            break;
        at = (size_t)(p - l->s);
        if (strchr("{%#", l->s[at + 1]) && l->s[at + 1])
            return at;
    }
    return l->n;
}

/* Returns the text from l->at to the tag at `tag`, without the white space that the tag removes. */
static ggl_str text_before(const lexer *l, size_t tag) {
    ggl_str t = {l->s + l->at, tag - l->at};
    const char sign = tag + 2 < l->n ? l->s[tag + 2] : 0;
    if (sign == '-') {
        t = llm_tv_strip(l->h, t, NULL, TV_RIGHT);
    } else if (tag < l->n && l->s[tag + 1] != '{' && sign != '+') {
        size_t from = t.n;
        while (from > 0 && t.s[from - 1] != '\n')
            from--;
        if ((from > 0 || l->starts_line) && skip_space(l, l->at + from) >= tag)
            t.n = from;
    }
    return t;
}

/* Moves past the end of a tag, which is at `at`: the sign, two characters, and the white space that
 * the tag removes. */
static void pass_end(lexer *l, size_t at, bool trims) {
    const char sign = l->s[at];
    at += sign == '-' || sign == '+' ? 3 : 2;
    if (sign == '-')
        at = skip_space(l, at);
    else if (sign != '+' && trims && at < l->n && l->s[at] == '\n')
        at++;
    l->starts_line = l->s[at - 1] == '\n';
    move_to(l, at);
}

/* If the block tag at `at` is {% name %}, returns the offset of its end ("%}" or "-%}"); else 0. */
static size_t end_of_plain(const lexer *l, size_t at, const char *name) {
    at += 2;
    if (at < l->n && (l->s[at] == '-' || l->s[at] == '+'))
        at++;
    at = skip_space(l, at);
    if (!begins(l, at, name))
        return 0;
    at = skip_space(l, at + strlen(name));
    const bool sign = at < l->n && (l->s[at] == '-' || l->s[at] == '+');
    return begins(l, at + sign, "%}") ? at : 0;
}

/* Passes {% raw %}..{% endraw %}, whose beginning ends at `end`, and returns what is in it. */
static ggl_str pass_raw(lexer *l, size_t end) {
    pass_end(l, end, false);
    for (size_t tag = l->at; (tag = find(l, tag, "{%")) < l->n; tag++) {
        const size_t stop = end_of_plain(l, tag, "endraw");
        if (!stop)
            continue;
        const ggl_str text = text_before(l, tag);
        pass_end(l, stop, true);
        return text;
    }
    llm_tv_fail(l->h, GGL_FORMAT, "{%% raw %%} has no {%% endraw %%}");
}

static void pass_comment(lexer *l) {
    const size_t end = find(l, l->at + 2, "#}");
    if (end == l->n)
        llm_tv_fail(l->h, GGL_FORMAT, "a comment {# has no #}");
    const bool sign = end > l->at + 2 && (l->s[end - 1] == '-' || l->s[end - 1] == '+');
    pass_end(l, end - sign, true);
}

bool llm_lex_text(lexer *l, ggl_str *piece, lex_tag *tag) {
    *tag = LEX_END;
    while (l->at < l->n) {
        const size_t at = find_tag(l, l->at);
        *piece = text_before(l, at);
        if (at == l->n) {
            move_to(l, at);
            return piece->n > 0;
        }
        if (piece->n) { /* comes back for the tag, before which there is nothing then */
            l->starts_line = false;
            move_to(l, at);
            return true;
        }
        move_to(l, at);
        const size_t raw = l->s[at + 1] == '%' ? end_of_plain(l, at, "raw") : 0;
        if (raw) {
            *piece = pass_raw(l, raw);
            if (piece->n)
                return true;
        } else if (l->s[at + 1] == '#') {
            pass_comment(l);
        } else {
            *tag = l->s[at + 1] == '%' ? LEX_BLOCK : LEX_PRINT;
            l->close = *tag == LEX_BLOCK ? '%' : '}';
            l->open_brackets = 0;
            const char sign = at + 2 < l->n ? l->s[at + 2] : 0;
            move_to(l, at + 2 + (sign == '-' || sign == '+'));
            llm_lex_next(l);
            return false;
        }
    }
    return false;
}

/* --- tokens ----------------------------------------------------------------------------------- */

/* Appends the character of a numeric escape with up to `most` digits; returns how many there are. */
static size_t put_numeric(lexer *l, tv_text *t, const char *digits, size_t n, int base, int most) {
    uint32_t c = 0;
    int k = 0;
    for (; k < most && (size_t)k < n; k++) {
        const char d = (char)tolower((unsigned char)digits[k]);
        const int value = d >= '0' && d <= '9' ? d - '0' : d >= 'a' && d <= 'f' ? d - 'a' + 10 : 99;
        if (value >= base)
            break;
        c = c * (uint32_t)base + (uint32_t)value;
    }
    if (k == 0 || (base == 16 && k < most) || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        llm_tv_fail(l->h, GGL_FORMAT, "an escape in a string stands for no character");
    llm_tv_put_char(l->h, t, c);
    return (size_t)k;
}

/* Returns a literal's inside s without escapes, which are Python's. */
static ggl_str unescape(lexer *l, ggl_str s) {
    static const char named[] = "ntrabfv\\'\"", meant[] = "\n\t\r\a\b\f\v\\'\"";
    tv_text t = {0};
    for (size_t i = 0, from; i < s.n;) {
        for (from = i; i < s.n && s.s[i] != '\\';)
            i++;
        llm_tv_put(l->h, &t, s.s + from, i - from);
        if (i == s.n)
            break;
        const char c = s.s[++i], *name = c ? strchr(named, c) : NULL;
        const int hex = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
        i++;
        if (name)
            llm_tv_put(l->h, &t, &meant[name - named], 1);
        else if (hex)
            i += put_numeric(l, &t, s.s + i, s.n - i, 16, hex);
        else if (c >= '0' && c <= '7')
            i += put_numeric(l, &t, s.s + i - 1, s.n - i + 1, 8, 3) - 1;
        else if (c == 'N')
            llm_tv_fail(l->h, GGL_UNSUPPORTED, "\\N{..} in a string is not supported");
        else if (c != '\n') /* one that is unknown stays; before a line break, both go */
            llm_tv_put(l->h, &t, s.s + i - 2, 2);
    }
    return llm_tv_done(&t);
}

static void read_string(lexer *l) {
    const char quote = l->s[l->at];
    size_t end = l->at + 1;
    while (end < l->n && l->s[end] != quote)
        end += l->s[end] == '\\' ? 2 : 1;
    if (end >= l->n)
        llm_tv_fail(l->h, GGL_FORMAT, "a string that begins with %c has no end", quote);
    const ggl_str inside = {l->s + l->at + 1, end - l->at - 1};
    l->token.kind = LEX_STRING;
    l->token.text = memchr(inside.s, '\\', inside.n) ? unescape(l, inside) : inside;
    move_to(l, end + 1);
}

/* Reads 1, 1_000, 0x1f, 1.5 or 1e3. */
static void read_number(lexer *l) {
    char digits[64];
    size_t end = l->at, n = 0;
    int base = 10;
    const char second = end + 1 < l->n ? (char)tolower((unsigned char)l->s[end + 1]) : 0;
    if (l->s[end] == '0' && (second == 'x' || second == 'o' || second == 'b')) {
        base = second == 'x' ? 16 : second == 'o' ? 8 : 2;
        end += 2;
    }
    bool whole = true;
    for (; end < l->n && n < sizeof digits - 1; end++) {
        const char c = l->s[end], after = end + 1 < l->n ? l->s[end + 1] : 0;
        const bool e =
            base == 10 && n && (c == 'e' || c == 'E') &&
            (isdigit((unsigned char)after) || ((after == '-' || after == '+') && end + 2 < l->n &&
                                               isdigit((unsigned char)l->s[end + 2])));
        const bool point = base == 10 && whole && c == '.' && isdigit((unsigned char)after);
        const bool sign =
            n && (c == '-' || c == '+') && (digits[n - 1] | 0x20) == 'e' && base == 10;
        if (!(base == 16 ? isxdigit((unsigned char)c) : isdigit((unsigned char)c)) && !e &&
            !point && !sign && c != '_')
            break;
        whole = whole && !e && !point;
        if (c != '_')
            digits[n++] = c;
    }
    digits[n] = 0;
    l->token.kind = LEX_NUMBER;
    uint64_t value = 0;
    for (size_t i = 0; i < n && whole; i++) {
        const int d =
            isdigit((unsigned char)digits[i]) ? digits[i] - '0' : (digits[i] | 0x20) - 'a' + 10;
        if (d >= base || value > ((uint64_t)INT64_MAX - (uint64_t)d) / (uint64_t)base)
            llm_tv_fail(l->h, GGL_LIMIT, "%s is not an integer of 64 bits", digits);
        value = value * (uint64_t)base + (uint64_t)d;
    }
    l->token.value = whole ? tv_int((int64_t)value) : tv_float(ggl_number_value(digits, n));
    move_to(l, end);
}

static void read_operator(lexer *l) {
    static const char *const two[] = {"==", "!=", "<=", ">=", "//", "**"};
    size_t n = 1;
    for (size_t i = 0; i < sizeof two / sizeof *two; i++)
        if (begins(l, l->at, two[i]))
            n = 2;
    const char c = l->s[l->at];
    if (!c || !strchr("+-*/%~<>=()[]{}.,:|!", c) || (c == '!' && n == 1))
        llm_tv_fail(l->h, GGL_FORMAT, "'%.*s' cannot stand here", 1, l->s + l->at);
    l->open_brackets += strchr("([{", c) ? 1 : strchr(")]}", c) ? -1 : 0;
    l->token.kind = LEX_OPERATOR;
    l->token.text = (ggl_str){l->s + l->at, n};
    move_to(l, l->at + n);
}

void llm_lex_next(lexer *l) {
    move_to(l, skip_space(l, l->at));
    l->token = (lex_token){.line = l->line};
    if (l->at == l->n)
        llm_tv_fail(l->h, GGL_FORMAT, l->close == '%' ? "{%% has no %%}" : "{{ has no }}");
    const size_t sign = l->s[l->at] == '-' || l->s[l->at] == '+';
    if (l->open_brackets <= 0 && begins(l, l->at + sign, l->close == '%' ? "%}" : "}}")) {
        l->token.kind = LEX_TAG_END;
        return;
    }
    const unsigned char c = (unsigned char)l->s[l->at];
    if (isdigit(c)) {
        read_number(l);
    } else if (c == '"' || c == '\'') {
        read_string(l);
    } else if (isalpha(c) || c == '_' || c >= 0x80) {
        const size_t end = skip_name(l, l->at);
        l->token.kind = LEX_NAME;
        l->token.text = (ggl_str){l->s + l->at, end - l->at};
        move_to(l, end);
    } else {
        read_operator(l);
    }
}

void llm_lex_leave(lexer *l) {
    pass_end(l, l->at, l->close == '%');
}

bool llm_lex_is(const lexer *l, lex_kind kind, const char *text) {
    return l->token.kind == kind && l->token.text.n == strlen(text) &&
           memcmp(l->token.text.s, text, l->token.text.n) == 0;
}

const char *llm_lex_show(lexer *l) {
    const lex_token *t = &l->token;
    switch (t->kind) {
    case LEX_TAG_END:
        return "the end of the tag";
    case LEX_NUMBER:
        return "a number";
    case LEX_STRING:
        return "a string";
    default: {
        tv_text text = {0};
        llm_tv_put(l->h, &text, "'", 1);
        llm_tv_put(l->h, &text, t->text.s, t->text.n < 60 ? t->text.n : 60);
        llm_tv_put(l->h, &text, "'", 2); /* and the NUL of the literal */
        return text.s;
    }
    }
}
