/* Compiles a pattern to a program. pretok.h describes the subset of regular expressions. */
#include <string.h>

#include "ggl/internal/show.h"
#include "ggl/internal/text.h"
#include "pretok_impl.h"
#include "tokenizer_impl.h"
#include "unicode.h"

bool llm_pretok_set_holds(const set *s, uint32_t c, unsigned properties) {
    bool in = (properties & s->with) != 0;
    for (int i = 0; i < 4 && s->without[i] && !in; i++)
        in = !(properties & s->without[i]);
    for (int i = 0; i < s->n_range && !in; i++)
        in = c >= s->ranges[i].first && c <= s->ranges[i].last;
    return (in && !(properties & s->except)) != s->negated;
}

typedef struct parser {
    const char *s;
    size_t n, i;
    pretok_program *p;
    size_t cap_code, cap_set, cap_range;
    range *ranges; /* ranges of the set being parsed */
    int nesting;
    bool fold, in_lookahead, loop;
    bool lines; /* as Oniguruma */
    ggl_status status;
    ggl_error *err;
} parser;

static void parse_fail(parser *q, const char *what) {
    if (q->status == GGL_OK)
        q->status = ggl_fail(q->err, GGL_FORMAT, "at byte %zu of the pattern: %s", q->i, what);
}

/* Reports a group of a kind that is not known, whose '(' is before q->i, with its text as far as its end or a few characters. */
static void parse_group_fail(parser *q) {
    enum { MOST = 30 };
    const char *from = q->s + q->i - 1, *end = memchr(from, ')', q->n - (q->i - 1));
    size_t n = end ? (size_t)(end - from) + 1 : q->n - (q->i - 1);
    const bool cut = n > MOST;
    char shown[4 * MOST + 1];
    n = cut ? ggl_utf8_cut(from, n, MOST) : n;
    ggl_show(shown, sizeof shown, from, n);
    if (q->status == GGL_OK)
        q->status = ggl_fail(q->err, GGL_FORMAT,
                             "at byte %zu of the pattern: the group %s%s is of a kind that is "
                             "unknown; (x), (?:x), (?i:x), (?=x) and (?!x) are known",
                             q->i - 1, shown, cut ? ".." : "");
}

static void parse_no_memory(parser *q) {
    if (q->status == GGL_OK)
        q->status = ggl_fail(q->err, GGL_NOMEM, "out of memory for a pattern");
}

static bool next_is(const parser *q, const char *s) {
    return q->n - q->i >= strlen(s) && memcmp(q->s + q->i, s, strlen(s)) == 0;
}

static bool take(parser *q, const char *s) {
    bool is = next_is(q, s);
    q->i += is ? strlen(s) : 0;
    return is;
}

/* Inserts an instruction at `at`. The code after it moves as a block; its jumps are relative. */
static void insert(parser *q, int at, instruction what) {
    pretok_program *p = q->p;
    if (p->n_code == MAX_CODE) {
        parse_fail(q, "the pattern is too long");
        return;
    }
    if ((size_t)p->n_code == q->cap_code &&
        !ggl_grow(&p->code, &q->cap_code, (size_t)p->n_code + 1, sizeof *p->code)) {
        parse_no_memory(q);
        return;
    }
    memmove(p->code + at + 1, p->code + at, (size_t)(p->n_code - at) * sizeof *p->code);
    p->n_code++;
    p->code[at] = what;
}

static void emit(parser *q, op what, int32_t a, int32_t b) {
    insert(q, q->p->n_code, (instruction){.op = (uint8_t)what, .a = a, .b = b});
}

static void insert_split(parser *q, int at, int32_t b) {
    insert(q, at, (instruction){.op = OP_SPLIT, .a = 1, .b = b});
}

uint32_t llm_pretok_decode(const char *s, size_t n) {
    const unsigned char first = (unsigned char)s[0];
    return n == 1 && first >= 0x80 ? (uint32_t)STRAY + first : llm_unicode_decode(s, n);
}

static uint32_t parse_number(parser *q, unsigned base, uint32_t most) {
    uint32_t value = 0;
    size_t start = q->i;
    for (; q->i < q->n; q->i++) {
        char c = q->s[q->i];
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                                                : 99;
        if (digit >= base)
            break;
        value = value * base + digit;
        if (value > most)
            break;
    }
    if (q->i == start || value > most)
        parse_fail(q, "a number is expected, or this one is too large");
    return value;
}

/* Parses a literal or escaped character. */
static uint32_t parse_character(parser *q) {
    if (take(q, "\\")) {
        static const char named[] = "rnt", codes[] = "\r\n\t";
        const char *c = q->i < q->n ? strchr(named, q->s[q->i]) : NULL;
        if (take(q, "x{")) {
            uint32_t value = parse_number(q, 16, 0x10ffff);
            if (!take(q, "}"))
                parse_fail(q, "'}' is expected");
            return value;
        }
        if (q->i >= q->n || (!c && !(llm_unicode_properties((unsigned char)q->s[q->i] & 0x7f) &
                                     (UNICODE_P | UNICODE_S)))) {
            parse_fail(q, "this escape is unknown");
            return 0;
        }
        q->i++;
        return c ? (unsigned char)codes[c - named] : (unsigned char)q->s[q->i - 1];
    }
    if (q->i >= q->n) {
        parse_fail(q, "a character is expected");
        return 0;
    }
    size_t n = llm_utf8_length(q->s + q->i, q->n - q->i);
    q->i += n;
    return llm_pretok_decode(q->s + q->i - n, n);
}

/* Parses \s \S \d \D \w \W \p{..} \P{..}. *no: the negated form. 0: something else. */
static unsigned parse_property(parser *q, bool *no) {
    static const struct {
        const char *name;
        unsigned bits;
    } names[] = {{"L", UNICODE_L},   {"Lu", UNICODE_LU}, {"Ll", UNICODE_LL}, {"Lt", UNICODE_LT},
                 {"Lm", UNICODE_LM}, {"Lo", UNICODE_LO}, {"M", UNICODE_M},   {"N", UNICODE_N},
                 {"Nd", UNICODE_ND}, {"P", UNICODE_P},   {"S", UNICODE_S},   {"Han", UNICODE_HAN}},
      letters[] = {{"s", UNICODE_WHITE}, {"d", UNICODE_ND}, {"w", UNICODE_WORD}};
    if (q->n - q->i < 2 || q->s[q->i] != '\\')
        return 0;
    char c = q->s[q->i + 1];
    for (size_t k = 0; k < sizeof letters / sizeof *letters; k++)
        if ((c | 0x20) == letters[k].name[0]) {
            *no = c != letters[k].name[0];
            q->i += 2;
            return letters[k].bits;
        }
    if (!next_is(q, "\\p{") && !next_is(q, "\\P{"))
        return 0;
    q->i += 3;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        size_t n = strlen(names[k].name);
        if (next_is(q, names[k].name) && q->n - q->i > n && q->s[q->i + n] == '}') {
            q->i += n + 1;
            *no = c == 'P';
            return names[k].bits;
        }
    }
    parse_fail(q, "this property is unknown");
    return 1;
}

static void add_range(parser *q, set *s, uint32_t first, uint32_t last) {
    if ((size_t)s->n_range == q->cap_range &&
        !ggl_grow(&q->ranges, &q->cap_range, (size_t)s->n_range + 1, sizeof *q->ranges)) {
        parse_no_memory(q);
        return;
    }
    q->ranges[s->n_range++] = (range){first, last};
}

/* Adds a range, and the other case of its letters if case is ignored. */
static void add_folded(parser *q, set *s, uint32_t first, uint32_t last) {
    add_range(q, s, first, last);
    for (uint32_t c = first; q->fold && c <= last && c < 128; c++) {
        if ((c | 0x20) < 'a' || (c | 0x20) > 'z')
            continue;
        add_range(q, s, c ^ 0x20, c ^ 0x20);
        if ((c | 0x20) == 's')
            add_range(q, s, 0x17f, 0x17f);
        if ((c | 0x20) == 'k')
            add_range(q, s, 0x212a, 0x212a);
    }
}

static void add_property(parser *q, set *s, unsigned bits, bool no) {
    int i = 0;
    if (!no) {
        s->with |= bits;
        return;
    }
    while (i < 4 && s->without[i])
        i++;
    if (i == 4)
        parse_fail(q, "more than four negated properties in one class");
    else
        s->without[i] = bits;
}

/* Adds the set to the program; returns its index. */
static int finish_set(parser *q, set *s) {
    pretok_program *p = q->p;
    if ((size_t)p->n_set == q->cap_set &&
        !ggl_grow(&p->sets, &q->cap_set, (size_t)p->n_set + 1, sizeof *p->sets)) {
        parse_no_memory(q);
        return 0;
    }
    s->ranges = ggl_calloc((size_t)s->n_range, sizeof *s->ranges);
    if (!s->ranges) {
        parse_no_memory(q);
        return 0;
    }
    if (s->n_range > 0)
        memcpy(s->ranges, q->ranges, (size_t)s->n_range * sizeof *s->ranges);
    for (uint32_t c = 0; c < 128; c++)
        if (llm_pretok_set_holds(s, c, llm_unicode_properties(c)))
            s->ascii[c / 64] |= 1ull << (c % 64);
    p->sets[p->n_set] = *s;
    return p->n_set++;
}

/* Parses the rest of a class after '['. Returns the set's index. */
static int parse_class(parser *q) {
    set s = {.negated = take(q, "^")};
    bool no = false;
    for (bool first = true; q->status == GGL_OK && (first || !next_is(q, "]")); first = false) {
        if (take(q, "&&[^")) {
            unsigned bits;
            no = false;
            while (!no && (bits = parse_property(q, &no)) != 0 && q->status == GGL_OK)
                s.except |= bits;
            if (no || !take(q, "]") || !next_is(q, "]"))
                parse_fail(q, "only &&[^ properties ] at the end of a class is supported");
            break;
        }
        if (next_is(q, "["))
            parse_fail(q, "a class in a class is not supported");
        unsigned bits = parse_property(q, &no);
        if (bits) {
            add_property(q, &s, bits, no);
            continue;
        }
        uint32_t low = parse_character(q), high = low;
        if (q->n - q->i > 1 && q->s[q->i] == '-' && q->s[q->i + 1] != ']') {
            q->i++;
            high = parse_character(q);
        }
        if (high < low)
            parse_fail(q, "a range ends before it begins");
        else
            add_folded(q, &s, low, high);
    }
    if (!take(q, "]"))
        parse_fail(q, "']' is expected");
    return q->status == GGL_OK ? finish_set(q, &s) : 0;
}

static int parse_alternatives(parser *q);

/* Parses (x) (?:x) (?i:x) (?=x) (?!x) after '('. Returns the minimal length of a match. */
static int parse_group(parser *q) {
    bool fold = q->fold, in_lookahead = q->in_lookahead, loop = q->loop;
    bool positive = take(q, "?="), lookahead = positive || take(q, "?!");
    int start = q->p->n_code, least;
    if (lookahead) {
        emit(q, OP_LOOKAHEAD, 0, 0);
        q->in_lookahead = true;
        q->loop = false;
    } else if (take(q, "?i:")) {
        q->fold = true;
    } else if (!take(q, "?:") && next_is(q, "?")) {
        parse_group_fail(q);
    }
    least = ++q->nesting > MAX_NESTING ? (parse_fail(q, "groups are nested too deep"), 0)
                                       : parse_alternatives(q);
    q->nesting--;
    if (!take(q, ")"))
        parse_fail(q, "')' is expected");
    if (lookahead) {
        emit(q, OP_MATCH, 0, 0);
        least = 0;
    }
    if (lookahead && q->status == GGL_OK) {
        int n = q->p->n_code - start - 1;
        if (n > MAX_LOOKAHEAD || (q->loop && q->p->n_reach == 255))
            parse_fail(q, "this lookahead is too long");
        else
            q->p->code[start] = (instruction){.op = OP_LOOKAHEAD,
                                              .no = !positive,
                                              .a = n,
                                              .i_reach = (uint8_t)(q->loop ? ++q->p->n_reach : 0)};
    }
    q->fold = fold;
    q->in_lookahead = in_lookahead;
    q->loop = lookahead ? loop : q->loop;
    return least;
}

/* Parses a character, class or group. Returns the minimal length of a match. */
static int parse_atom(parser *q) {
    bool no = false;
    if (take(q, "("))
        return parse_group(q);
    if (take(q, "^")) {
        emit(q, q->lines ? OP_LINE_BEGIN : OP_BEGIN, 0, 0);
        return 0;
    }
    if (take(q, "$")) {
        emit(q, q->lines ? OP_LINE_END : OP_END, 0, 0);
        return 0;
    }
    if (q->lines && (next_is(q, "\\A") || next_is(q, "\\z"))) {
        emit(q, q->s[q->i + 1] == 'A' ? OP_BEGIN : OP_END, 0, 0);
        q->i += 2;
        return 0;
    }
    if (q->lines && take(q, ".")) {
        set s = {.negated = true};
        add_range(q, &s, '\n', '\n');
        emit(q, OP_SET, q->status == GGL_OK ? finish_set(q, &s) : 0, 0);
        return 1;
    }
    if (take(q, "\\b")) {
        emit(q, OP_BORDER, 0, 0);
        return 0;
    }
    unsigned bits = parse_property(q, &no);
    if (bits || take(q, "[")) {
        set s = {0};
        if (bits == UNICODE_WORD) {
            s.with = bits;
            s.negated = no;
            for (size_t i = 0; i < sizeof llm_pretok_word_numbers / sizeof *llm_pretok_word_numbers;
                 i++)
                add_range(q, &s, llm_pretok_word_numbers[i], llm_pretok_word_numbers[i]);
        } else if (bits) {
            add_property(q, &s, bits, no);
        }
        int i = !bits ? parse_class(q) : q->status == GGL_OK ? finish_set(q, &s) : 0;
        emit(q, OP_SET, i, 0);
        return 1;
    }
    /* '.' would be a character, too, but no published pattern uses it */
    if (q->i < q->n && strchr("?*+{.", q->s[q->i])) {
        parse_fail(q, "a character, a class or a group is expected");
        return 0;
    }
    uint32_t c = parse_character(q);
    if (q->fold && (c | 0x20) >= 'a' && (c | 0x20) <= 'z' && q->status == GGL_OK) {
        set s = {0};
        add_folded(q, &s, c, c);
        int i = q->status == GGL_OK ? finish_set(q, &s) : 0;
        emit(q, OP_SET, i, 0);
    } else {
        emit(q, OP_CHAR, (int32_t)c, 0);
    }
    return 1;
}

/* Repeats the atom at code[start..] min to max times, by parsing its source, from byte `source`,
 * again. */
static void repeat(parser *q, int start, size_t source, uint32_t min, uint32_t max) {
    size_t after = q->i;
    uint32_t copies = 1;
    if (min > MAX_COPIES || (max != NO_LIMIT && max > MAX_COPIES)) {
        parse_fail(q, "too many repetitions of a group");
        return;
    }
    /* last: start of the last copy; n: instructions of the first */
    int last = start, n = q->p->n_code - start;
    for (; copies < min && q->status == GGL_OK; copies++) {
        last = q->p->n_code;
        q->i = source;
        parse_atom(q);
    }
    if (max == NO_LIMIT && min == 0) { /* split; atom; jump back */
        insert_split(q, start, n + 2);
        emit(q, OP_JUMP, -n - 1, 0);
    } else if (max == NO_LIMIT) { /* after the last copy: split back to it */
        emit(q, OP_SPLIT, last - q->p->n_code, 1);
    } else if (min == 0) {
        insert_split(q, start, n + 1);
    }
    /* each further copy is optional */
    for (; max != NO_LIMIT && copies < max && q->status == GGL_OK; copies++) {
        int at = q->p->n_code;
        q->i = source;
        parse_atom(q);
        insert_split(q, at, q->p->n_code - at + 1);
    }
    q->loop = q->loop || max == NO_LIMIT;
    q->i = after;
}

/* Parses an atom with its repetition. Returns the minimal length of a match. */
static int parse_repeated(parser *q) {
    int start = q->p->n_code;
    size_t source = q->i;
    int least = parse_atom(q);
    uint32_t min = 1, max = 1;
    if (take(q, "?")) {
        min = 0;
    } else if (take(q, "*")) {
        min = 0;
        max = NO_LIMIT;
    } else if (take(q, "+")) {
        max = NO_LIMIT;
    } else if (take(q, "{")) {
        min = max = parse_number(q, 10, 100000);
        if (take(q, ","))
            max = next_is(q, "}") ? NO_LIMIT : parse_number(q, 10, 100000);
        if (!take(q, "}") || max < min || max == 0)
            parse_fail(q, "this is not a number of repetitions");
    } else {
        return least;
    }
    bool possessive = take(q, "+");
    if (next_is(q, "?"))
        parse_fail(q, "only greedy and possessive repetitions are supported");
    if (q->status != GGL_OK)
        return 0;
    instruction *atom = &q->p->code[start];
    bool single = q->p->n_code == start + 1 && (atom->op == OP_SET || atom->op == OP_CHAR);
    if (!single && (least == 0 || possessive)) {
        parse_fail(q, least == 0 ? "this may match nothing, so it cannot be repeated"
                                 : "only single characters can be possessive");
        return 0;
    }
    if (!single || q->in_lookahead) {
        repeat(q, start, source, min, max);
        return min > 0 ? least : 0;
    }
    if (atom->op == OP_CHAR) {
        set s = {0};
        add_range(q, &s, (uint32_t)atom->a, (uint32_t)atom->a);
        atom->a = q->status == GGL_OK ? finish_set(q, &s) : 0;
    }
    *atom = (instruction){
        .op = OP_RUN, .no = possessive, .a = atom->a, .b = q->p->n_run++, .min = min, .max = max};
    return min > 0 ? 1 : 0;
}

static int parse_sequence(parser *q) {
    int least = 0;
    while (q->status == GGL_OK && q->i < q->n && q->s[q->i] != '|' && q->s[q->i] != ')')
        least += parse_repeated(q);
    return least;
}

/* Parses x|y as: split; x; jump to the end; y. Returns the minimal length of a match. */
static int parse_alternatives(parser *q) {
    /* jump: the last of the jumps to the end; each holds the index of the previous one */
    int start = q->p->n_code, jump = -1;
    int least = parse_sequence(q);
    while (q->status == GGL_OK && take(q, "|")) {
        insert_split(q, start, q->p->n_code - start + 2);
        emit(q, OP_JUMP, jump, 0);
        jump = q->p->n_code - 1;
        start = q->p->n_code;
        int other = parse_sequence(q);
        least = other < least ? other : least;
    }
    while (q->status == GGL_OK && jump >= 0) {
        int before = q->p->code[jump].a;
        q->p->code[jump].a = q->p->n_code - jump;
        jump = before;
    }
    return least;
}

static void program_free(pretok_program *p) {
    for (int i = 0; i < p->n_set; i++)
        ggl_free(p->sets[i].ranges);
    ggl_free(p->sets);
    ggl_free(p->code);
}

static void *arena_copy(ggl_arena *arena, const void *data, size_t n, size_t size) {
    void *copy = ggl_arena_alloc(arena, n, size);
    if (copy && n > 0)
        memcpy(copy, data, n * size);
    return copy;
}

/* Copies the finished program into the arena. */
static const pretok_program *program_keep(const pretok_program *p, ggl_arena *arena) {
    pretok_program *kept = arena_copy(arena, p, 1, sizeof *p);
    if (!kept)
        return NULL;
    kept->code = arena_copy(arena, p->code, (size_t)p->n_code, sizeof *p->code);
    kept->sets = arena_copy(arena, p->sets, (size_t)p->n_set, sizeof *p->sets);
    bool ok = kept->code && kept->sets;
    for (int i = 0; ok && i < p->n_set; i++) {
        kept->sets[i].ranges =
            arena_copy(arena, p->sets[i].ranges, (size_t)p->sets[i].n_range, sizeof(range));
        ok = kept->sets[i].ranges != NULL;
    }
    return ok ? kept : NULL;
}

/* Ends a program, which has been parsed, and keeps it. */
static ggl_status finish_program(parser *q, const pretok_program **out, ggl_arena *arena) {
    emit(q, OP_MATCH, 0, 0);
    for (int i = 0; i < q->p->n_code; i++)
        if (q->p->code[i].op == OP_SPLIT)
            q->p->code[i].min = (uint32_t)q->p->n_split++;
    *out = NULL;
    if (q->status == GGL_OK) {
        *out = program_keep(q->p, arena);
        if (!*out)
            parse_no_memory(q);
    }
    program_free(q->p);
    ggl_free(q->ranges);
    return q->status;
}

static ggl_status compile(const pretok_program **out, ggl_arena *arena, ggl_str pattern, bool lines,
                          bool *matches_nothing, ggl_error *err) {
    pretok_program p = {0};
    parser q = {.s = pattern.s, .n = pattern.n, .p = &p, .lines = lines, .err = err};
    const int least = parse_alternatives(&q);
    if (q.i < q.n)
        parse_fail(&q, "')' without '('");
    if (matches_nothing)
        *matches_nothing = least == 0;
    return finish_program(&q, out, arena);
}

ggl_status llm_pretok_compile(const pretok_program **out, ggl_arena *arena, ggl_str pattern,
                              ggl_error *err) {
    return compile(out, arena, pattern, false, NULL, err);
}

ggl_status llm_pretok_compile_lines(const pretok_program **out, ggl_arena *arena, ggl_str pattern,
                                    bool *matches_nothing, ggl_error *err) {
    return compile(out, arena, pattern, true, matches_nothing, err);
}

ggl_status llm_pretok_compile_text(const pretok_program **out, ggl_arena *arena, ggl_str text,
                                   ggl_error *err) {
    pretok_program p = {0};
    parser q = {.s = text.s, .n = text.n, .p = &p, .err = err};
    while (q.i < q.n && q.status == GGL_OK) {
        const size_t n = llm_utf8_length(q.s + q.i, q.n - q.i);
        emit(&q, OP_CHAR, (int32_t)llm_pretok_decode(q.s + q.i, n), 0);
        q.i += n;
    }
    return finish_program(&q, out, arena);
}

static bool set_has(const set *s, uint32_t c) {
    return c < 128 ? s->ascii[c / 64] >> (c % 64) & 1
                   : llm_pretok_set_holds(s, c, llm_unicode_properties(c));
}

bool llm_pretok_tells_apart(const pretok_program *p, uint32_t a, uint32_t b) {
    bool apart = false;
    for (int i = 0; i < p->n_code; i++) {
        const uint32_t c = (uint32_t)p->code[i].a;
        apart =
            apart || (p->code[i].op == OP_CHAR && (c == a || c == b)) || p->code[i].op == OP_BORDER;
    }
    for (int i = 0; i < p->n_set; i++)
        apart = apart || set_has(&p->sets[i], a) != set_has(&p->sets[i], b);
    return apart;
}
