/* Strings: sets of decoded texts (length, pattern, format), and how JSON spells them.
 *
 * A character is spelled as itself where JSON allows that, by a short escape if there is one, and as
 * \uXXXX (two of them above U+FFFF) if it is a control character, not ASCII, or one of " \ / < > & '
 * and U+007F, which common writers escape. Because each character has the same spellings in
 * every set, complements of sets can be taken before or after encoding. */
#include "schema_impl.h"

#include "regex.h"
#include "schema_formats.h"

#include <stdio.h>

/* --- spellings -------------------------------------------------------------------------------- */

static int32_t text_expr(schema *s, const char *text) {
    return llm_expr_text(s->g, (ggl_str){text, strlen(text)});
}

static int32_t hex_digit(schema *s, uint32_t first, uint32_t last) {
    llm_char_range r[3];
    int32_t n = 0;
    if (first < 10)
        r[n++] = (llm_char_range){'0' + first, '0' + (last < 9 ? last : 9)};
    if (last > 9) {
        const uint32_t from = (first > 10 ? first : 10) - 10;
        r[n++] = (llm_char_range){'a' + from, 'a' + last - 10};
        r[n++] = (llm_char_range){'A' + from, 'A' + last - 10};
    }
    return llm_expr_class(s->g, r, n, false);
}

/* Numbers from first to last as n hexadecimal digits. */
static int32_t hex_range(schema *s, uint32_t first, uint32_t last, int n) {
    if (n == 0)
        return LLM_EXPR_EMPTY;
    const uint32_t rest = (1u << 4 * (n - 1)) - 1;
    uint32_t low = first >> 4 * (n - 1), high = last >> 4 * (n - 1);
    if (low == high)
        return llm_expr_seq2(s->g, hex_digit(s, low, low),
                             hex_range(s, first & rest, last & rest, n - 1));
    int32_t all = LLM_EXPR_NONE;
    if ((first & rest) != 0) {
        all = llm_expr_seq2(s->g, hex_digit(s, low, low), hex_range(s, first & rest, rest, n - 1));
        low++;
    }
    int32_t end = LLM_EXPR_NONE;
    if ((last & rest) != rest) {
        end = llm_expr_seq2(s->g, hex_digit(s, high, high), hex_range(s, 0, last & rest, n - 1));
        high--;
    }
    if (low <= high && high < 16)
        all = llm_expr_alt2(
            s->g, all, llm_expr_seq2(s->g, hex_digit(s, low, high), hex_range(s, 0, rest, n - 1)));
    return llm_expr_alt2(s->g, all, end);
}

static int32_t unicode_escape(schema *s, uint32_t first, uint32_t last) {
    return llm_expr_seq2(s->g, text_expr(s, "\\u"), hex_range(s, first, last, 4));
}

/* Surrogate pairs of characters above U+FFFF. */
static int32_t pair_escape(schema *s, uint32_t first, uint32_t last) {
    first -= 0x10000;
    last -= 0x10000;
    int32_t all = LLM_EXPR_NONE;
    while (first <= last) {
        const uint32_t high = first >> 10, low = first & 1023;
        uint32_t end = high << 10 | 1023, end_high = high;
        if (low == 0 && last >> 10 > high) { /* whole rows at once */
            end_high = (last & 1023) == 1023 ? last >> 10 : (last >> 10) - 1;
            end = end_high << 10 | 1023;
        }
        if (end > last)
            end = last;
        all = llm_expr_alt2(s->g, all,
                            llm_expr_seq2(s->g, unicode_escape(s, 0xd800 + high, 0xd800 + end_high),
                                          unicode_escape(s, 0xdc00 + low, 0xdc00 + (end & 1023))));
        first = end + 1;
    }
    return all;
}

/* The part of a class that is within a range. */
static size_t range_part(const llm_exprs *g, const llm_expr *e, uint32_t first, uint32_t last,
                         llm_char_range *out) {
    size_t n = 0;
    for (int32_t i = 0; i < e->n; i++) {
        llm_char_range r = g->range[e->first + i];
        r.first = r.first < first ? first : r.first;
        r.last = r.last > last ? last : r.last;
        if (r.first <= r.last)
            out[n++] = r;
    }
    return n;
}

/* Characters that may be spelled as \uXXXX, and those that may be spelled as themselves. */
static const llm_char_range escaped[] = {{0, 0x1f},    {'"', '"'},     {'&', '\''},
                                         {'/', '/'},   {'<', '<'},     {'>', '>'},
                                         {'\\', '\\'}, {0x7f, 0xd7ff}, {0xe000, 0xffff}};
enum { N_ITSELF = 4 };
static const llm_char_range itself[N_ITSELF] = {
    {' ', '!'}, {'#', '<'}, {'=', '['}, {']', 0x10ffff}};

/* The characters that this compiler spells as themselves; out[N_ITSELF]. */
static void spelled_as_itself(const schema *s, llm_char_range *out) {
    memcpy(out, itself, sizeof itself);
    out[1].last -= s->hides_less;
}
static const char short_char[] = "\"\\/\b\f\n\r\t", short_letter[] = "\"\\/bfnrt";

static int32_t encode_class(schema *s, const llm_expr *e) {
    llm_exprs *g = s->g;
    const size_t room = (size_t)e->n + 8;
    llm_char_range own[N_ITSELF], *part = llm_schema_alloc(s, N_ITSELF * room, sizeof *part);
    int32_t *way = llm_schema_alloc(s, 3 * room, sizeof *way), n_ways = 0;
    if (!part || !way)
        return LLM_EXPR_NONE;
    size_t n = 0;
    spelled_as_itself(s, own);
    for (size_t k = 0; k < N_ITSELF; k++)
        n += range_part(g, e, own[k].first, own[k].last, part + n);
    way[n_ways++] = llm_expr_class(g, part, (int32_t)n, false);
    n = 0;
    for (size_t k = 0; k < 8; k++)
        for (size_t i =
                 range_part(g, e, (unsigned char)short_char[k], (unsigned char)short_char[k], part);
             i > 0; i--)
            part[room + n++] =
                (llm_char_range){(unsigned char)short_letter[k], (unsigned char)short_letter[k]};
    way[n_ways++] =
        llm_expr_seq2(g, text_expr(s, "\\"), llm_expr_class(g, part + room, (int32_t)n, false));
    for (size_t k = 0; k < sizeof escaped / sizeof *escaped; k++) {
        n = range_part(g, e, escaped[k].first, escaped[k].last, part);
        for (size_t i = 0; i < n; i++)
            way[n_ways++] = unicode_escape(s, part[i].first, part[i].last);
    }
    n = range_part(g, e, 0x10000, 0x10ffff, part);
    for (size_t i = 0; i < n; i++)
        way[n_ways++] = pair_escape(s, part[i].first, part[i].last);
    return llm_expr_alt(g, way, n_ways);
}

static int32_t encode_args(schema *s, const llm_expr *e) {
    int32_t *part = llm_schema_alloc(s, (size_t)e->n + 1, sizeof *part);
    if (!part)
        return LLM_EXPR_NONE;
    for (int32_t i = 0; i < e->n; i++)
        part[i] = llm_schema_encode(s, s->g->arg[e->first + i]);
    switch (e->kind) {
    case LLM_EXPR_KIND_SEQ:
        return llm_expr_seq(s->g, part, e->n);
    case LLM_EXPR_KIND_ALT:
        return llm_expr_alt(s->g, part, e->n);
    case LLM_EXPR_KIND_AND:
        return llm_expr_and(s->g, part, e->n);
    case LLM_EXPR_KIND_REPEAT:
        return llm_expr_repeat(s->g, part[0], e->min, e->max);
    default: /* NOT */
        return llm_expr_and(s->g, (int32_t[]){s->encoded_text, llm_expr_not(s->g, part[0])}, 2);
    }
}

int32_t llm_schema_encode(schema *s, int32_t decoded) {
    if (s->g->status != GGL_OK || decoded == LLM_EXPR_NONE || decoded == LLM_EXPR_EMPTY)
        return decoded;
    if ((size_t)decoded >= s->n_encoded) {
        const size_t n = s->n_encoded;
        if (!ggl_grow(&s->encoded, &s->n_encoded, (size_t)decoded + 1, sizeof *s->encoded)) {
            s->g->status = GGL_NOMEM;
            return LLM_EXPR_NONE;
        }
        memset(s->encoded + n, 0, (s->n_encoded - n) * sizeof *s->encoded);
    }
    if (s->encoded[decoded] == 0) {
        const llm_expr e = s->g->node[decoded];
        const int32_t x = e.kind == LLM_EXPR_KIND_CLASS ? encode_class(s, &e) : encode_args(s, &e);
        s->encoded[decoded] = x; /* NONE is found again each time, which is rare */
        return x;
    }
    return s->encoded[decoded];
}

int32_t llm_schema_string(schema *s, int32_t decoded) {
    if (decoded == LLM_EXPR_NONE)
        return LLM_EXPR_NONE;
    if (decoded == s->universe[TYPE_STRING])
        return s->any_string;
    const int32_t quote = llm_expr_range(s->g, '"', '"');
    return llm_expr_seq3(s->g, quote, llm_schema_encode(s, decoded), quote);
}

void llm_schema_begin_strings(schema *s) {
    llm_exprs *g = s->g;
    const int32_t quote = llm_expr_range(g, '"', '"');
    s->universe[TYPE_STRING] = llm_expr_any_text(g);
    s->encoded_text =
        llm_expr_repeat(g, llm_schema_encode(s, llm_expr_any_char(g)), 0, LLM_EXPR_MANY);
    int32_t letter[8], part[4];
    for (size_t k = 0; k < 8; k++)
        letter[k] =
            llm_expr_range(g, (unsigned char)short_letter[k], (unsigned char)short_letter[k]);
    llm_char_range own[N_ITSELF];
    spelled_as_itself(s, own);
    part[0] = llm_expr_class(g, own, N_ITSELF, false);
    part[1] = llm_expr_seq2(g, text_expr(s, "\\"), llm_expr_alt(g, letter, 8));
    part[2] = llm_expr_alt2(g, unicode_escape(s, 0, 0xd7ff), unicode_escape(s, 0xe000, 0xffff));
    part[3] = pair_escape(s, 0x10000, 0x10ffff);
    s->any_string = llm_expr_seq3(
        g, quote, llm_expr_repeat(g, llm_expr_alt(g, part, 4), 0, LLM_EXPR_MANY), quote);
}

/* --- keywords --------------------------------------------------------------------------------- */

SCALARS(length) {
    int64_t n;
    if (!llm_schema_count(s, u, &n))
        return LLM_EXPR_NONE;
    const int32_t one = llm_expr_any_char(s->g);
    const bool is_min = u->word[1] == 'i'; /* minLength, maxLength */
    if (is_min == u->negated)              /* at most */
        return u->negated && n == 0 ? LLM_EXPR_NONE
                                    : llm_expr_repeat(s->g, one, 0, (int32_t)n - u->negated);
    return llm_expr_repeat(s->g, one, (int32_t)n + u->negated, LLM_EXPR_MANY);
}

int32_t llm_schema_pattern(schema *s, const json_value *node, const char *word, ggl_str pattern) {
    const void **slot = llm_schema_slot(s, &s->memo, pattern.s, 1u << 30);
    if (!slot)
        return LLM_EXPR_NONE;
    if (*slot)
        return (int32_t)(uintptr_t)*slot - 1;
    ggl_error err = {0};
    int32_t e;
    if (llm_regex_read(&e, s->g, pattern, &err) != GGL_OK)
        llm_schema_fail(s, err.status, node, word, "'%.*s': %s",
                        (int)(pattern.n < 200 ? pattern.n : 200), pattern.s, err.msg);
    else
        *slot = (const void *)(uintptr_t)(e + 1);
    return e;
}

SCALARS(pattern) {
    if (u->value->kind != JSON_STRING) {
        llm_schema_fail(s, GGL_FORMAT, u->node, u->word, "must be a string");
        return LLM_EXPR_NONE;
    }
    const int32_t e = llm_schema_pattern(s, u->node, u->word, json_str(u->value));
    return u->negated ? llm_set_not(s, TYPE_STRING, e) : e;
}

/* All patterns of a format's row. */
static int32_t format_texts(schema *s, const word_use *u, const schema_format *f) {
    int32_t all = s->universe[TYPE_STRING];
    for (size_t i = 0; i < SCHEMA_FORMAT_PATTERNS && f->pattern[i]; i++) {
        const ggl_str p = {f->pattern[i], strlen(f->pattern[i])};
        all = llm_set_and(s, TYPE_STRING, all, llm_schema_pattern(s, u->node, u->word, p));
    }
    return all;
}

SCALARS(format) {
    if (u->value->kind != JSON_STRING) {
        llm_schema_fail(s, GGL_FORMAT, u->node, u->word, "must be a string");
        return LLM_EXPR_NONE;
    }
    const schema_format *f = llm_schema_format(json_str(u->value));
    if (!f) { /* an annotation */
        llm_schema_ignored(s, u->value, "not a format of JSON Schema; it has no effect");
        return u->negated ? LLM_EXPR_NONE : s->universe[TYPE_STRING];
    }
    if (!f->pattern[0]) {
        llm_schema_fail(s, GGL_UNSUPPORTED, u->node, u->word, "'%s' is not supported", f->name);
        return LLM_EXPR_NONE;
    }
    const int32_t e = format_texts(s, u, f);
    return u->negated ? llm_set_not(s, TYPE_STRING, e) : e;
}
