/* A small regular expression matcher: a backtracking machine over code points whose properties were
 * looked up once.
 *
 * Its time is to be linear in the text. A repeated character class is one instruction, a run; the
 * places to go back to after it are one entry of the stack. A run that is found long and then of no
 * use, such as the spaces of \s+$ before a word, would be walked again from each of its characters:
 * hence each run instruction remembers how far its class holds, and from which neighbouring
 * positions the instructions after it are known to fail; that depends on nothing but the position.
 * A lookahead with a loop, such as "digits in threes up to the end of the number", would walk to
 * the end of the number from each of its digits: whether it holds is computed for all positions of
 * a piece at once, from right to left. For each position p a bit per instruction says whether the
 * lookahead's end can be reached from that instruction at p; instructions that consume look at p +
 * 1, the others at p. */
#include <string.h>

#include "pretok.h"
#include "tokenizer_impl.h"
#include "unicode.h"

enum { STRAY = 0x110000, MAX_COPIES = 64, MAX_NESTING = 32, MAX_LOOKAHEAD = 63 };
#define NO_LIMIT UINT32_MAX

typedef enum op {
    OP_MATCH,     /* the end of the program, or of a lookahead */
    OP_CHAR,      /* the code point a */
    OP_SET,       /* a code point of set a */
    OP_RUN,       /* min to max of set a, as many as possible; b: its place in `runs` */
    OP_SPLIT,     /* go on at pc + a, or else at pc + b */
    OP_JUMP,      /* go on at pc + a */
    OP_LOOKAHEAD, /* the a instructions that follow, up to OP_MATCH, hold here (or not, if `no`) */
    OP_BEGIN,
    OP_END,
    OP_BORDER /* between \w and none */
} op;

typedef struct instruction {
    uint8_t op;
    bool no;         /* OP_LOOKAHEAD: negative. OP_RUN: possessive */
    uint8_t i_reach; /* OP_LOOKAHEAD: 1 + its place in `reach`, if it has a loop */
    int32_t a, b;
    uint32_t min, max;
} instruction;

typedef struct range {
    uint32_t first, last;
} range;

typedef struct set {
    uint64_t ascii[2];   /* the answer for U+0000 to U+007F */
    unsigned with;       /* any of these properties */
    unsigned without[4]; /* or none of those of one of these; 0: unused */
    unsigned except;     /* but none of these */
    bool negated;
    int n_range;
    range *ranges; /* or in one of these */
} set;

struct pretok_program {
    instruction *code;
    set *sets;
    int n_code, n_set, n_reach, n_run;
};

static bool set_holds(const set *s, uint32_t c, unsigned properties) {
    bool in = (properties & s->with) != 0;
    for (int i = 0; i < 4 && s->without[i] && !in; i++)
        in = !(properties & s->without[i]);
    for (int i = 0; i < s->n_range && !in; i++)
        in = c >= s->ranges[i].first && c <= s->ranges[i].last;
    return (in && !(properties & s->except)) != s->negated;
}

static bool set_has(const set *s, uint32_t c, unsigned properties) {
    return c < 128 ? s->ascii[c / 64] >> (c % 64) & 1 : set_holds(s, c, properties);
}

/* ---- compiling ---- */

typedef struct parser {
    const char *s;
    size_t n, i;
    pretok_program *p;
    size_t cap_code, cap_set, cap_range;
    range *ranges; /* of the set being read */
    int nesting;
    bool fold, in_lookahead, loop;
    ggl_status status;
    ggl_error *err;
} parser;

static void parse_fail(parser *q, const char *what) {
    if (q->status == GGL_OK)
        q->status = ggl_fail(q->err, GGL_FORMAT, "at byte %zu of the pattern: %s", q->i, what);
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

/* Puts an instruction at `at`; what lies behind moves as a block, whose jumps are relative. */
static void insert(parser *q, int at, instruction what) {
    pretok_program *p = q->p;
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

static uint32_t decode(const char *s, size_t n) {
    const unsigned char *u = (const unsigned char *)s;
    switch (n) {
    case 1:
        return u[0] < 0x80 ? u[0] : STRAY + u[0];
    case 2:
        return (u[0] & 0x1fu) << 6 | (u[1] & 0x3fu);
    case 3:
        return (u[0] & 0xfu) << 12 | (u[1] & 0x3fu) << 6 | (u[2] & 0x3fu);
    default:
        return (u[0] & 7u) << 18 | (u[1] & 0x3fu) << 12 | (u[2] & 0x3fu) << 6 | (u[3] & 0x3fu);
    }
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

/* A character that stands for itself, or is escaped. */
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
            parse_fail(q, "this escape is not known");
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
    return decode(q->s + q->i - n, n);
}

/* \s \S \d \D \w \W \p{..} \P{..}; *no: it is one of those without the properties. 0: something
 * else stands here. */
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
    parse_fail(q, "this property is not known");
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

/* The set goes into the program: its number. */
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
        if (set_holds(s, c, llm_unicode_properties(c)))
            s->ascii[c / 64] |= 1ull << (c % 64);
    p->sets[p->n_set] = *s;
    return p->n_set++;
}

/* After '['. */
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
                parse_fail(q, "only &&[^ properties ] at the end of a class is known");
            break;
        }
        if (next_is(q, "["))
            parse_fail(q, "a class in a class");
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

/* (x) (?:x) (?i:x) (?=x) (?!x), after '('. Returns the fewest characters it takes. */
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
        parse_fail(q, "this group is not known");
    }
    least = ++q->nesting > MAX_NESTING ? (parse_fail(q, "too many groups in groups"), 0)
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

/* One character, class or group. Returns the fewest characters it takes. */
static int parse_atom(parser *q) {
    bool no = false;
    if (take(q, "("))
        return parse_group(q);
    if (take(q, "^")) {
        emit(q, OP_BEGIN, 0, 0);
        return 0;
    }
    if (take(q, "$")) {
        emit(q, OP_END, 0, 0);
        return 0;
    }
    if (take(q, "\\b")) {
        emit(q, OP_BORDER, 0, 0);
        return 0;
    }
    unsigned bits = parse_property(q, &no);
    if (bits || take(q, "[")) {
        set s = {0};
        if (bits)
            add_property(q, &s, bits, no);
        int i = !bits ? parse_class(q) : q->status == GGL_OK ? finish_set(q, &s) : 0;
        emit(q, OP_SET, i, 0);
        return 1;
    }
    if (q->i < q->n &&
        strchr("?*+{.", q->s[q->i])) { /* '.' would be a character, too, but nobody publishes it */
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

/* min to max times the atom at code[start..], whose source begins at byte `source`. */
static void repeat(parser *q, int start, size_t source, uint32_t min, uint32_t max) {
    size_t after = q->i;
    uint32_t copies = 1;
    if (min > MAX_COPIES || (max != NO_LIMIT && max > MAX_COPIES)) {
        parse_fail(q, "too many repetitions of a group");
        return;
    }
    int last = start,
        n = q->p->n_code - start; /* where the last copy begins; instructions of the first */
    for (; copies < min && q->status == GGL_OK; copies++) {
        last = q->p->n_code;
        q->i = source;
        parse_atom(q);
    }
    if (max == NO_LIMIT && min == 0) { /* split; atom; jump back */
        insert_split(q, start, n + 2);
        emit(q, OP_JUMP, -n - 1, 0);
    } else if (max == NO_LIMIT) { /* the last copy; split back to it */
        emit(q, OP_SPLIT, last - q->p->n_code, 1);
    } else if (min == 0) {
        insert_split(q, start, n + 1);
    }
    for (; max != NO_LIMIT && copies < max && q->status == GGL_OK;
         copies++) { /* a further one may also be left out */
        int at = q->p->n_code;
        q->i = source;
        parse_atom(q);
        insert_split(q, at, q->p->n_code - at + 1);
    }
    q->loop = q->loop || max == NO_LIMIT;
    q->i = after;
}

/* An atom and how often it stands. */
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
            parse_fail(q, "this is no number of repetitions");
    } else {
        return least;
    }
    bool possessive = take(q, "+");
    if (next_is(q, "?"))
        parse_fail(q, "only greedy and possessive repetitions are known");
    if (q->status != GGL_OK)
        return 0;
    instruction *atom = &q->p->code[start];
    bool single = q->p->n_code == start + 1 && (atom->op == OP_SET || atom->op == OP_CHAR);
    if (!single && (least == 0 || possessive)) {
        parse_fail(q, least == 0 ? "this may be empty and cannot be repeated"
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

/* split; x; jump to the end; y: for x|y */
static int parse_alternatives(parser *q) {
    int start = q->p->n_code,
        jump = -1; /* the last of the jumps, each holds where the one before it is */
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

/* Into one place, for ever. */
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

ggl_status llm_pretok_compile(const pretok_program **out, ggl_arena *arena, ggl_str pattern,
                              ggl_error *err) {
    pretok_program p = {0};
    parser q = {.s = pattern.s, .n = pattern.n, .p = &p, .err = err};
    parse_alternatives(&q);
    if (q.i < q.n)
        parse_fail(&q, "')' without '('");
    emit(&q, OP_MATCH, 0, 0);
    *out = NULL;
    if (q.status == GGL_OK) {
        *out = program_keep(&p, arena);
        if (!*out)
            parse_no_memory(&q);
    }
    program_free(&p);
    ggl_free(q.ranges);
    return q.status;
}

/* ---- running ---- */

/* Where to go on if what comes next fails: at pc from position `last`, then last - 1, down to
 * `first`. `tried` is the position before that failed. */
typedef struct retry {
    int32_t pc, run; /* run: -1 if it is no run's */
    uint32_t first, last, tried;
} retry;

/* What a run instruction knows of the piece [first, last): its class holds in [holds_first,
 * holds_last), but not at holds_last; what follows it fails at fails_first to fails_last (none if
 * first > last). */
typedef struct run_memory {
    bool known;
    uint32_t first, last, holds_first, holds_last, fails_first, fails_last;
} run_memory;

/* Whether a lookahead holds at each position of the piece [first, last]: a byte each. */
typedef struct reach {
    uint8_t *holds;
    size_t cap;
    uint32_t first, last;
    bool known;
} reach;

typedef struct runner {
    const pretok_program *const *programs;
    int n_programs;
    const char *text; /* of the characters that are not yet words */
    uint32_t *c;      /* [n_character], code points; STRAY + byte for what is none */
    uint16_t *properties;
    const pretok_program *p; /* the program at work, and the piece it sees */
    uint32_t first, last;
    reach *reaches; /* of p */
    run_memory *runs;
    retry *stack;
    size_t n_stack, cap_stack;
    ggl_status (*word)(void *context, const char *s, size_t n);
    void *context;
    bool no_memory;
} runner;

static bool match(runner *r, int32_t pc, uint32_t at, uint32_t *end);

static bool on_border(const runner *r, uint32_t at) {
    bool before = at > r->first && (r->properties[at - 1] & UNICODE_WORD);
    bool behind = at < r->last && (r->properties[at] & UNICODE_WORD);
    return before != behind;
}

static bool one_holds(const runner *r, const instruction *i, uint32_t at) {
    if (at >= r->last)
        return false;
    return i->op == OP_CHAR ? r->c[at] == (uint32_t)i->a
                            : set_has(&r->p->sets[i->a], r->c[at], r->properties[at]);
}

static bool lookahead(runner *r, int32_t pc, uint32_t at);

/* Bit i: from instruction pc + i at position `at` the lookahead's end can be reached. next: the
 * same for at + 1. */
static uint64_t reach_bits(runner *r, int32_t pc, int n, uint32_t at, uint64_t next) {
    uint64_t bits = 0, before;
    do { /* again, for loops jump back */
        before = bits;
        for (int i = n - 1; i >= 0; i--) {
            const instruction *k = &r->p->code[pc + i];
            bool holds = false;
            switch ((op)k->op) {
            case OP_MATCH:
                holds = true;
                break;
            case OP_CHAR:
            case OP_SET:
                holds = (next >> (i + 1) & 1) && one_holds(r, k, at);
                break;
            case OP_SPLIT:
                holds = (bits >> (i + k->a) & 1) || (bits >> (i + k->b) & 1);
                break;
            case OP_JUMP:
                holds = bits >> (i + k->a) & 1;
                break;
            case OP_LOOKAHEAD:
                holds = (bits >> (i + 1 + k->a) & 1) && lookahead(r, pc + i, at);
                break;
            case OP_BEGIN:
                holds = at == r->first && (bits >> (i + 1) & 1);
                break;
            case OP_END:
                holds = at == r->last && (bits >> (i + 1) & 1);
                break;
            case OP_BORDER:
                holds = on_border(r, at) && (bits >> (i + 1) & 1);
                break;
            case OP_RUN: /* never inside a lookahead */
                break;
            }
            bits |= (uint64_t)holds << i;
        }
    } while (bits != before);
    return bits;
}

static bool looping_holds(runner *r, const instruction *k, int32_t pc, uint32_t at) {
    reach *t = &r->reaches[k->i_reach - 1];
    if (!t->known || t->first != r->first || t->last != r->last) {
        size_t n = (size_t)(r->last - r->first) + 1;
        if (n > t->cap && !ggl_grow(&t->holds, &t->cap, n, 1)) {
            r->no_memory = true;
            return false;
        }
        uint64_t bits = 0;
        for (uint32_t i = r->last + 1; i-- > r->first;) {
            bits = reach_bits(r, pc + 1, k->a, i, bits);
            t->holds[i - r->first] = bits & 1;
        }
        t->known = true;
        t->first = r->first;
        t->last = r->last;
    }
    return t->holds[at - r->first];
}

static bool lookahead(runner *r, int32_t pc, uint32_t at) {
    const instruction *k = &r->p->code[pc];
    uint32_t end;
    bool holds;
    if (k->i_reach)
        holds = looping_holds(r, k, pc, at);
    else if (k->a == 2 && (k[1].op == OP_SET || k[1].op == OP_CHAR))
        holds = one_holds(r, &k[1], at);
    else
        holds = match(r, pc + 1, at, &end);
    return holds != k->no;
}

static bool push(runner *r, retry t) {
    if (r->n_stack == r->cap_stack &&
        !ggl_grow(&r->stack, &r->cap_stack, r->n_stack + 1, sizeof *r->stack)) {
        r->no_memory = true;
        return false;
    }
    r->stack[r->n_stack++] = t;
    return true;
}

static run_memory *memory_of(runner *r, int32_t run) {
    run_memory *m = &r->runs[run];
    if (!m->known || m->first != r->first || m->last != r->last)
        *m = (run_memory){.known = true, .first = r->first, .last = r->last, .fails_first = 1};
    return m;
}

/* How many characters from `at` the run takes. */
static uint32_t run_length(runner *r, const instruction *k, uint32_t at) {
    const set *s = &r->p->sets[k->a];
    uint32_t n = 0, most = r->last - at < k->max ? r->last - at : k->max;
    run_memory *m = k->max == NO_LIMIT ? memory_of(r, k->b) : NULL;
    if (m && at >= m->holds_first && at < m->holds_last)
        return m->holds_last - at;
    while (n < most && set_has(s, r->c[at + n], r->properties[at + n]))
        n++;
    if (m) {
        m->holds_first = at;
        m->holds_last = at + n;
    }
    return n;
}

/* What follows the run fails at `at`, too. */
static void remember_failure(run_memory *m, uint32_t at) {
    if (m->fails_first > m->fails_last) {
        m->fails_first = m->fails_last = at;
    } else if (at + 1 == m->fails_first) {
        m->fails_first = at;
    } else if (at == m->fails_last + 1) {
        m->fails_last = at;
    } else if (at < m->fails_first || at > m->fails_last) {
        m->fails_first = m->fails_last = at; /* elsewhere: forget the old */
    }
}

/* The next place to try, from the top of the stack. False: there is none. */
static bool back(runner *r, size_t base, int32_t *pc, uint32_t *at) {
    while (r->n_stack > base && !r->no_memory) {
        retry *t = &r->stack[r->n_stack - 1];
        bool more = true;
        if (t->run >= 0) {
            run_memory *m = memory_of(r, t->run);
            remember_failure(m, t->tried);
            if (t->last >= m->fails_first && t->last <= m->fails_last) {
                more = m->fails_first > t->first;
                t->last = more ? m->fails_first - 1 : t->last;
            }
        }
        *pc = t->pc;
        *at = t->tried = t->last;
        if (!more || t->last-- == t->first)
            r->n_stack--;
        if (more)
            return true;
    }
    return false;
}

/* Runs from pc at position `at`; *end is where it ends. The first way through counts, as in Perl.
 */
static bool match(runner *r, int32_t pc, uint32_t at, uint32_t *end) {
    const size_t base = r->n_stack;
    for (;;) {
        const instruction *k = &r->p->code[pc];
        bool ok = true;
        switch ((op)k->op) {
        case OP_MATCH:
            r->n_stack = base;
            *end = at;
            return true;
        case OP_CHAR:
        case OP_SET:
            ok = one_holds(r, k, at++);
            pc++;
            break;
        case OP_RUN: {
            uint32_t n = run_length(r, k, at);
            ok = n >= k->min;
            if (ok && !k->no && n > k->min)
                ok = push(r, (retry){pc + 1, k->b, at + k->min, at + n - 1, at + n});
            at += n;
            pc++;
            break;
        }
        case OP_SPLIT:
            ok = push(r, (retry){pc + k->b, -1, at, at, at});
            pc += k->a;
            break;
        case OP_JUMP:
            pc += k->a;
            break;
        case OP_LOOKAHEAD:
            ok = lookahead(r, pc, at);
            pc += 1 + k->a;
            break;
        case OP_BEGIN:
            ok = at == r->first;
            pc++;
            break;
        case OP_END:
            ok = at == r->last;
            pc++;
            break;
        case OP_BORDER:
            ok = on_border(r, at);
            pc++;
            break;
        }
        if (!ok && !back(r, base, &pc, &at)) {
            r->n_stack = base;
            return false;
        }
    }
}

static size_t utf8_size(uint32_t c) {
    return c < 0x80 || c >= STRAY ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
}

/* Cuts the characters [first, last), which are not empty, by programs[level] and those after it. */
static ggl_status split(runner *r, int level, reach *reaches, run_memory *runs, uint32_t first,
                        uint32_t last) {
    if (level == r->n_programs) {
        const char *start = r->text;
        for (uint32_t i = first; i < last; i++)
            r->text += utf8_size(r->c[i]);
        return r->word(r->context, start, (size_t)(r->text - start));
    }
    const pretok_program *p = r->programs[level];
    reach *reaches_below = reaches + p->n_reach;
    run_memory *runs_below = runs + p->n_run;
    uint32_t from = first, end;
    ggl_status s = GGL_OK;
    for (uint32_t i = first; i < last && s == GGL_OK;) {
        r->p = p; /* the levels below have set theirs */
        r->reaches = reaches;
        r->runs = runs;
        r->first = first;
        r->last = last;
        bool found = match(r, 0, i, &end);
        if (r->no_memory)
            return GGL_NOMEM;
        if (found && i > from) {
            s = split(r, level + 1, reaches_below, runs_below, from, i);
            from = i;
        }
        if (found && end > i && s == GGL_OK) {
            s = split(r, level + 1, reaches_below, runs_below, i, end);
            from = end;
        }
        i = found && end > i ? end : i + 1;
    }
    return s == GGL_OK && last > from ? split(r, level + 1, reaches_below, runs_below, from, last)
                                      : s;
}

ggl_status llm_pretok_split(const pretok_program *const *programs, int n_programs, const char *text,
                            size_t n, ggl_status (*word)(void *context, const char *s, size_t n),
                            void *context, ggl_error *err) {
    runner r = {.programs = programs,
                .n_programs = n_programs,
                .text = text,
                .word = word,
                .context = context};
    int n_reach = 0, n_run = 0;
    uint32_t n_character = 0;
    ggl_status s = GGL_NOMEM;
    if (n == 0)
        return GGL_OK;
    if (n > UINT32_MAX / 4)
        return ggl_fail(err, GGL_LIMIT, "a text of %zu bytes is too long, at most %u are supported",
                        n, UINT32_MAX / 4);
    for (int i = 0; i < n_programs; i++) {
        n_reach += programs[i]->n_reach;
        n_run += programs[i]->n_run;
    }
    r.c = ggl_calloc(n, sizeof *r.c);
    r.properties = ggl_calloc(n, sizeof *r.properties);
    reach *reaches = ggl_calloc((size_t)n_reach, sizeof *reaches);
    run_memory *runs = ggl_calloc((size_t)n_run, sizeof *runs);
    if (r.c && r.properties && reaches && runs) {
        for (size_t i = 0; i < n; n_character++) {
            size_t len = llm_utf8_length(text + i, n - i);
            uint32_t c = decode(text + i, len);
            r.c[n_character] = c;
            r.properties[n_character] = (uint16_t)llm_unicode_properties(c < STRAY ? c : 0xfffd);
            i += len;
        }
        s = split(&r, 0, reaches, runs, 0, n_character);
    }
    if (s == GGL_NOMEM)
        s = ggl_fail(err, GGL_NOMEM, "out of memory for a text of %zu bytes", n);
    for (int i = 0; reaches && i < n_reach; i++)
        ggl_free(reaches[i].holds);
    ggl_free(reaches);
    ggl_free(runs);
    ggl_free(r.c);
    ggl_free(r.properties);
    ggl_free(r.stack);
    return s;
}
