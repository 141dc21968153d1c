/* Numbers: bounds and multiples as sets of decimal texts. Bounds are decimal texts themselves and
 * never become binary.
 *
 * Bounds know these spellings: digits with or without a fraction, and one digit other than 0, perhaps
 * a fraction, and an exponent from -299 to 299, as common writers spell large and small
 * numbers. Each number has a spelling of the first kind, so intersections lose no value. */
#include "schema_impl.h"

#include <stdlib.h>

enum { MAX_EXPONENT = 299, MAX_DIGITS = 400 };

/* whole.part without leading zeros (except for "0"), and without trailing zeros of the fraction */
typedef struct decimal {
    bool negative, zero;
    ggl_str whole, part;
    ggl_str digits; /* the significant ones */
    int exponent;   /* of the first digit: d.ddd * 10^exponent */
} decimal;

static int32_t digit(schema *s, int first, int last) {
    return first > last ? LLM_EXPR_NONE
                        : llm_expr_range(s->g, (uint32_t)('0' + first), (uint32_t)('0' + last));
}
static int32_t digits(schema *s, int32_t min, int32_t max) {
    return llm_expr_repeat(s->g, digit(s, 0, 9), min, max);
}
static int32_t text(schema *s, const char *t, size_t n) {
    return llm_expr_text(s->g, (ggl_str){t, n});
}
static int32_t character(schema *s, char c) {
    return llm_expr_range(s->g, (unsigned char)c, (unsigned char)c);
}
static int32_t any_part(schema *s) {
    return llm_expr_optional(s->g,
                             llm_expr_seq2(s->g, character(s, '.'), digits(s, 1, LLM_EXPR_MANY)));
}
static int32_t any_whole(schema *s) {
    return llm_expr_alt2(s->g, character(s, '0'),
                         llm_expr_seq2(s->g, digit(s, 1, 9), digits(s, 0, LLM_EXPR_MANY)));
}
static int32_t negative(schema *s, int32_t e) {
    return llm_expr_seq2(s->g, character(s, '-'), e);
}
static int32_t zeros(schema *s, int32_t min, int32_t max) {
    return llm_expr_repeat(s->g, character(s, '0'), min, max);
}

/* --- decimals --------------------------------------------------------------------------------- */

/* Collects the digits of a number's text. Returns how many stand before the point. */
static int collect_digits(const char *t, size_t n, char *out, size_t *n_out) {
    int before = 0;
    bool point = false;
    for (size_t i = 0; i < n; i++) {
        if (t[i] == '.')
            point = true;
        else if (t[i] >= '0' && t[i] <= '9') {
            out[(*n_out)++] = t[i];
            before += !point;
        }
    }
    return before;
}

/* Reads a JSON number. False: the status is set. */
static bool read_decimal(schema *s, const word_use *u, const json_value *v, decimal *d) {
    *d = (decimal){0};
    const ggl_str number = v->kind == JSON_NUMBER ? json_number_text(v) : (ggl_str){"", 0};
    const char *t = number.s;
    const size_t n = number.n;
    if (n == 0) {
        llm_schema_fail(s, GGL_FORMAT, u->node, u->word, "must be a number");
        return false;
    }
    size_t mantissa = 0;
    while (mantissa < n && t[mantissa] != 'e' && t[mantissa] != 'E')
        mantissa++;
    char *all = llm_schema_alloc(s, mantissa + 2 * MAX_DIGITS + 2, 1);
    if (!all)
        return false;
    size_t count = 0, skip = 0;
    int before = collect_digits(t, mantissa, all, &count);
    while (skip < count && all[skip] == '0')
        skip++;
    while (count > skip && all[count - 1] == '0')
        count--;
    const long power = mantissa < n ? strtol(t + mantissa + 1, NULL, 10) : 0;
    const long point = before - (long)skip +
                       (power > 99999    ? 99999
                        : power < -99999 ? -99999
                                         : power);
    d->negative = t[0] == '-' && count > skip;
    d->zero = count == skip;
    d->digits = (ggl_str){all + skip, count - skip};
    d->exponent = d->zero ? 0 : (int)(point - 1);
    if (d->zero) {
        d->whole = (ggl_str){"0", 1};
        return true;
    }
    if (labs(point) > MAX_DIGITS || d->digits.n > MAX_DIGITS) {
        llm_schema_fail(s, GGL_UNSUPPORTED, u->node, u->word,
                        "the number needs more than %d digits", MAX_DIGITS);
        return false;
    }
    char *w = llm_schema_alloc(s, d->digits.n + 2 * MAX_DIGITS + 2, 1);
    if (!w)
        return false;
    const size_t lead = point > 0 ? 0 : (size_t)(1 - point); /* zeros before the digits */
    memset(w, '0', d->digits.n + 2 * MAX_DIGITS);
    memcpy(w + lead, d->digits.s, d->digits.n);
    const size_t whole = point > 0 ? (size_t)point : 1, used = lead + d->digits.n;
    d->whole = (ggl_str){w, whole};
    d->part = (ggl_str){w + whole, used > whole ? used - whole : 0};
    return true;
}

/* --- comparing -------------------------------------------------------------------------------- */

typedef enum relation { LESS, EQUAL, GREATER } relation;

/* Fractions (their digits) less or greater than that of d. */
static int32_t part_cmp(schema *s, const decimal *d, relation r) {
    llm_exprs *g = s->g;
    int32_t all = LLM_EXPR_NONE;
    for (size_t j = 0; j < d->part.n; j++) {
        const int here = d->part.s[j] - '0';
        const int32_t other = r == LESS ? digit(s, 0, here - 1) : digit(s, here + 1, 9);
        const int32_t prefix = text(s, d->part.s, j);
        all = llm_expr_alt2(g, all, llm_expr_seq3(g, prefix, other, digits(s, 0, LLM_EXPR_MANY)));
        if (r == LESS && j > 0)
            all = llm_expr_alt2(g, all, prefix);
    }
    if (r == GREATER)
        all = llm_expr_alt2(
            g, all,
            llm_expr_seq3(g, text(s, d->part.s, d->part.n), zeros(s, 0, LLM_EXPR_MANY),
                          llm_expr_seq2(g, digit(s, 1, 9), digits(s, 0, LLM_EXPR_MANY))));
    return all;
}

/* Texts with the same whole digits as d. */
static int32_t same_whole(schema *s, const decimal *d, relation r) {
    llm_exprs *g = s->g;
    const int32_t whole = text(s, d->whole.s, d->whole.n), point = character(s, '.');
    if (r == EQUAL && d->part.n == 0)
        return llm_expr_seq2(
            g, whole, llm_expr_optional(g, llm_expr_seq2(g, point, zeros(s, 1, LLM_EXPR_MANY))));
    if (r == EQUAL)
        return llm_expr_seq2(g, llm_expr_seq3(g, whole, point, text(s, d->part.s, d->part.n)),
                             zeros(s, 0, LLM_EXPR_MANY));
    const int32_t e = llm_expr_seq3(g, whole, point, part_cmp(s, d, r));
    return r == LESS && d->part.n > 0 ? llm_expr_alt2(g, e, whole) : e;
}

/* Texts with as many whole digits as d, or, if `any_length`, with any number of them. */
static int32_t plain_cmp(schema *s, const decimal *d, relation r, bool any_length) {
    llm_exprs *g = s->g;
    const int32_t n = (int32_t)d->whole.n;
    const int lowest = n > 1 || !any_length; /* of the first digit */
    int32_t all = same_whole(s, d, r), longer = LLM_EXPR_NONE;
    if (r == EQUAL)
        return all;
    for (int32_t i = 0; i < n; i++) {
        const int here = d->whole.s[i] - '0';
        const int32_t other =
            r == LESS ? digit(s, i == 0 ? lowest : 0, here - 1) : digit(s, here + 1, 9);
        const int32_t e = llm_expr_seq3(g, text(s, d->whole.s, (size_t)i), other,
                                        digits(s, n - i - 1, n - i - 1));
        all = llm_expr_alt2(g, all, llm_expr_seq2(g, e, any_part(s)));
    }
    if (any_length && r == GREATER)
        longer = llm_expr_seq2(g, digit(s, 1, 9), digits(s, n, LLM_EXPR_MANY));
    if (any_length && r == LESS && n > 1)
        longer = llm_expr_alt2(g, character(s, '0'),
                               llm_expr_seq2(g, digit(s, 1, 9), digits(s, 0, n - 2)));
    return llm_expr_alt2(g, all, llm_expr_seq2(g, longer, any_part(s)));
}

/* --- exponents -------------------------------------------------------------------------------- */

/* Decimal numbers of n digits from first to last; leading zeros count as digits. */
static int32_t digit_range(schema *s, int first, int last, int n) {
    if (n == 0)
        return LLM_EXPR_EMPTY;
    const int unit = n == 3 ? 100 : n == 2 ? 10 : 1;
    int32_t all = LLM_EXPR_NONE;
    for (int d = first / unit; d <= last / unit; d++) {
        const int low = d == first / unit ? first % unit : 0;
        const int high = d == last / unit ? last % unit : unit - 1;
        all = llm_expr_alt2(s->g, all,
                            llm_expr_seq2(s->g, digit(s, d, d), digit_range(s, low, high, n - 1)));
    }
    return all;
}

/* Whole numbers from first to last (at most 999), in one to three digits. */
static int32_t count_range(schema *s, int first, int last) {
    static const int limit[] = {0, 10, 100, 1000};
    int32_t all = LLM_EXPR_NONE;
    for (int n = 1; n <= 3; n++) {
        const int low = first, high = last < limit[n] ? last : limit[n] - 1;
        if (low <= high)
            all = llm_expr_alt2(s->g, all, digit_range(s, low, high, n));
    }
    return all;
}

static int32_t exponent(schema *s, int first, int last) {
    llm_exprs *g = s->g;
    int32_t all = LLM_EXPR_NONE;
    first = first < -MAX_EXPONENT ? -MAX_EXPONENT : first;
    last = last > MAX_EXPONENT ? MAX_EXPONENT : last;
    if (last >= 0 && first <= last)
        all = llm_expr_seq2(g, llm_expr_optional(g, character(s, '+')),
                            count_range(s, first > 0 ? first : 0, last));
    if (first < 0 && first <= last)
        all = llm_expr_alt2(g, all, negative(s, count_range(s, last < 0 ? -last : 1, -first)));
    const llm_char_range e[] = {{'E', 'E'}, {'e', 'e'}};
    return llm_expr_seq2(g, llm_expr_class(g, e, 2, false), all);
}

static int32_t any_scientific(schema *s, int first, int last) {
    return llm_expr_seq3(s->g, digit(s, 1, 9), any_part(s), exponent(s, first, last));
}

/* Texts d.ddde+ddd in the relation to d, which is not 0. */
static int32_t scientific_cmp(schema *s, const decimal *d, relation r) {
    llm_exprs *g = s->g;
    const decimal mantissa = {.whole = {d->digits.s, 1},
                              .part = {d->digits.s + 1, d->digits.n - 1}};
    const int32_t same =
        llm_expr_seq2(g, plain_cmp(s, &mantissa, r, false), exponent(s, d->exponent, d->exponent));
    if (r == EQUAL)
        return same;
    const int32_t other = r == LESS ? any_scientific(s, -MAX_EXPONENT, d->exponent - 1)
                                    : any_scientific(s, d->exponent + 1, MAX_EXPONENT);
    return llm_expr_alt2(g, same, other);
}

/* Texts without sign in the relation to the magnitude of d. */
static int32_t magnitude_cmp(schema *s, const decimal *d, relation r) {
    const int32_t plain = plain_cmp(s, d, r, true);
    if (d->zero)
        return r == GREATER
                   ? llm_expr_alt2(s->g, plain, any_scientific(s, -MAX_EXPONENT, MAX_EXPONENT))
               : r == EQUAL ? plain
                            : LLM_EXPR_NONE;
    return llm_expr_alt2(s->g, plain, scientific_cmp(s, d, r));
}

static int32_t any_magnitude(schema *s) {
    return llm_expr_alt2(s->g, llm_expr_seq2(s->g, any_whole(s), any_part(s)),
                         any_scientific(s, -MAX_EXPONENT, MAX_EXPONENT));
}

/* Numbers in the relation to d. */
static int32_t number_cmp(schema *s, const decimal *d, relation r) {
    llm_exprs *g = s->g;
    if (r == EQUAL) {
        const int32_t e = magnitude_cmp(s, d, EQUAL);
        return d->zero ? llm_expr_alt2(g, e, negative(s, e)) : d->negative ? negative(s, e) : e;
    }
    if (r == GREATER && d->negative)
        return llm_expr_alt2(g, any_magnitude(s), negative(s, magnitude_cmp(s, d, LESS)));
    if (r == GREATER)
        return magnitude_cmp(s, d, GREATER);
    if (d->negative || d->zero)
        return negative(s, magnitude_cmp(s, d, GREATER));
    return llm_expr_alt2(g, magnitude_cmp(s, d, LESS), negative(s, any_magnitude(s)));
}

/* --- keywords --------------------------------------------------------------------------------- */

void llm_schema_begin_numbers(schema *s) {
    llm_exprs *g = s->g;
    const int32_t sign = llm_expr_optional(g, character(s, '-')), whole = any_whole(s);
    const llm_char_range e[] = {{'E', 'E'}, {'e', 'e'}}, signs[] = {{'+', '+'}, {'-', '-'}};
    const int32_t two = llm_expr_seq2(g, zeros(s, 0, 1), digits(s, 1, 2));
    const int32_t three = llm_expr_seq2(g, digit(s, 1, 2), digits(s, 2, 2));
    const int32_t power = llm_expr_seq3(g, llm_expr_class(g, e, 2, false),
                                        llm_expr_optional(g, llm_expr_class(g, signs, 2, false)),
                                        llm_expr_alt2(g, two, three));
    s->universe[TYPE_NUMBER] =
        llm_expr_seq2(g, llm_expr_seq3(g, sign, whole, any_part(s)), llm_expr_optional(g, power));
    s->plain_number = llm_expr_seq2(g, sign, any_magnitude(s));
    const int32_t positive = llm_expr_seq2(g, digit(s, 1, 9), digits(s, 0, LLM_EXPR_MANY));
    s->integer = llm_expr_alt2(g, character(s, '0'), llm_expr_seq2(g, sign, positive));
    const int32_t part =
        llm_expr_seq3(g, digits(s, 0, LLM_EXPR_MANY), digit(s, 1, 9), digits(s, 0, LLM_EXPR_MANY));
    s->fraction =
        llm_expr_seq2(g, llm_expr_seq2(g, sign, whole), llm_expr_seq2(g, character(s, '.'), part));
}

int32_t llm_schema_number(schema *s, const json_value *v, bool all) {
    const word_use u = {.node = v, .value = v, .type = TYPE_NUMBER};
    decimal d;
    if (!read_decimal(s, &u, v, &d))
        return LLM_EXPR_NONE;
    if (all)
        return number_cmp(s, &d, EQUAL);
    int32_t e = text(s, d.whole.s, d.whole.n);
    if (d.part.n > 0)
        e = llm_expr_seq3(s->g, e, character(s, '.'), text(s, d.part.s, d.part.n));
    if (d.negative)
        e = negative(s, e);
    const int32_t given = llm_set_and(s, TYPE_NUMBER, llm_expr_text(s->g, json_number_text(v)),
                                      s->universe[TYPE_NUMBER]);
    const int32_t usual = llm_expr_list_filter(s->g, given, s->universe[TYPE_NUMBER], true);
    return llm_expr_alt2(s->g, e, usual);
}

SCALARS(bound) {
    const bool is_min = strstr(u->word, "in") != NULL; /* minimum, exclusiveMinimum */
    const json_value *strict = u->value;
    bool exclusive = u->word[0] == 'e';
    decimal d;
    if (exclusive && strict->kind == JSON_BOOL) /* draft 4: says how the other keyword is meant */
        return u->negated ? LLM_EXPR_NONE : s->universe[TYPE_NUMBER];
    if (!exclusive) {
        strict =
            llm_json_get_kind(u->node, is_min ? "exclusiveMinimum" : "exclusiveMaximum", JSON_BOOL);
        exclusive = strict && strict->flag;
    }
    if (!read_decimal(s, u, u->value, &d))
        return LLM_EXPR_NONE;
    const relation r = is_min != u->negated ? GREATER : LESS;
    const int32_t e = number_cmp(s, &d, r);
    return exclusive == u->negated ? llm_expr_alt2(s->g, e, number_cmp(s, &d, EQUAL)) : e;
}

/* --- multiples -------------------------------------------------------------------------------- */

/* The significant digits as a number; 0: it is more than LLM_MULTIPLE_MOST. */
static int32_t factor_of(const decimal *d) {
    int32_t n = 0;
    for (size_t i = 0; i < d->digits.n && n <= LLM_MULTIPLE_MOST; i++)
        n = n * 10 + (d->digits.s[i] - '0');
    return n <= LLM_MULTIPLE_MOST ? n : 0;
}

/* Multiples of factor * 10^scale, without sign: whole ones, perhaps with a fraction of zeros. */
static int32_t whole_multiples(schema *s, int32_t factor, int32_t scale) {
    llm_exprs *g = s->g;
    const llm_multiple m = {.modulus = factor};
    const int32_t positive = llm_expr_seq2(g, digit(s, 1, 9), digits(s, 0, LLM_EXPR_MANY));
    const int32_t head = factor == 1
                             ? positive
                             : llm_expr_and(g, (int32_t[]){positive, llm_expr_multiple(g, &m)}, 2);
    const int32_t whole =
        llm_expr_alt2(g, character(s, '0'), llm_expr_seq2(g, head, zeros(s, scale, scale)));
    const int32_t none = llm_expr_seq2(g, character(s, '.'), zeros(s, 1, LLM_EXPR_MANY));
    return llm_expr_seq2(g, whole, llm_expr_optional(g, none));
}

/* Multiples of factor / 10^places, without sign. Zeros may follow the places. */
static int32_t part_multiples(schema *s, int32_t factor, int32_t places) {
    llm_exprs *g = s->g;
    const llm_multiple m = {.modulus = factor, .places = places};
    const int32_t part =
        llm_expr_seq3(g, character(s, '.'), digits(s, 1, places), zeros(s, 0, LLM_EXPR_MANY));
    const int32_t all = llm_expr_seq2(g, any_whole(s), llm_expr_optional(g, part));
    return factor == 1 ? all : llm_expr_and(g, (int32_t[]){all, llm_expr_multiple(g, &m)}, 2);
}

SCALARS(multiple) {
    decimal d;
    if (!read_decimal(s, u, u->value, &d))
        return LLM_EXPR_NONE;
    if (d.zero || d.negative) {
        llm_schema_fail(s, GGL_FORMAT, u->node, u->word, "must be greater than 0");
        return LLM_EXPR_NONE;
    }
    const int32_t factor = factor_of(&d), scale = d.exponent + 1 - (int32_t)d.digits.n;
    if (factor == 0) {
        llm_schema_fail(s, GGL_UNSUPPORTED, u->node, u->word,
                        "digits that make a number above %d are not supported (zeros at the ends "
                        "do not count)",
                        LLM_MULTIPLE_MOST);
        return LLM_EXPR_NONE;
    }
    const int32_t one =
        scale < 0 ? part_multiples(s, factor, -scale) : whole_multiples(s, factor, scale);
    const int32_t sign = llm_expr_optional(s->g, character(s, '-'));
    const int32_t e = llm_expr_seq2(s->g, sign, one);
    if (!u->negated)
        return e;
    const int32_t plain = llm_expr_seq3(s->g, sign, any_whole(s), any_part(s));
    return llm_expr_and(s->g, (int32_t[]){plain, llm_expr_not(s->g, e)}, 2);
}
